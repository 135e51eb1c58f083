"""Windows of a replay: bounded, in order of time, the same for the same files, and ticks that say neither too much nor
too little."""

from __future__ import annotations

import math
from pathlib import Path

from ingest.offline import ParsedRange
from kardia.events import Event, Kind
from spark_jobs.replay.inputs import groups_of
from spark_jobs.replay.pieces import Loaded, Piece, Segment, spill
from spark_jobs.replay.windows import Window, Windows


def piece(source: str, first: float, last: float, number: int = 0) -> Piece:
    return Piece(
        f"/nowhere/{source}-{number}",
        Segment(0, 0, 0, 0),
        source,
        number,
        number + 1,
        first,
        last,
        10,
        5,
        {"blank": 1},
        {},
    )


def ticks(window: Window) -> dict[str, float]:
    return {reading.source: reading.complete_to_ms for reading in window.readings}


def test_a_window_is_complete_only_up_to_what_comes_next() -> None:
    windows = Windows(size=2)
    windows.add([piece("a/request/1", first, first + 12, number) for number, first in enumerate((0, 10, 20))], [])
    first, second = windows.ready([])
    assert (ticks(first), first.last) == ({"a/request/1": 20.0}, False)
    assert (ticks(second), second.last) == ({"a/request/1": 32.0}, True)


def test_nothing_is_fed_beyond_what_is_not_parsed_yet() -> None:
    windows = Windows()
    windows.add([piece("a/request/1", 0, 50), piece("b/request/1", 30, 90)], [])
    (only,) = windows.ready([("a/request/1", 25.0)])
    assert [one.source for one in only.pieces] == ["a/request/1"]
    assert ticks(only) == {"a/request/1": 25.0}
    assert not only.last
    windows.add([piece("a/request/1", 25, 60, 1)], [])
    (rest,) = windows.ready([])
    assert ticks(rest) == {"a/request/1": 60.0, "b/request/1": 90.0}
    assert rest.last


def test_a_quiet_log_keeps_pace_with_its_brokers_other_log() -> None:
    windows = Windows(size=2)
    windows.add([piece("a/server/1", 0, 5), piece("a/request/1", 0, 100), piece("a/request/1", 100, 200, 1)], [])
    first, second = windows.ready([])
    assert ticks(first) == {"a/server/1": 100.0, "a/request/1": 100.0}
    assert ticks(second) == {"a/server/1": 200.0, "a/request/1": 200.0}


def test_a_broker_that_stopped_is_not_complete_beyond_its_last_line() -> None:
    windows = Windows(size=2)
    windows.add([piece("dead/request/1", 0, 50), piece("b/request/1", 0, 100), piece("b/request/1", 100, 200, 1)], [])
    _, second = windows.ready([])
    assert ticks(second) == {"dead/request/1": 50.0, "b/request/1": 200.0}


def test_lines_and_ignored_lines_are_told_once() -> None:
    windows = Windows(size=1)
    windows.add([piece("a/request/1", 0, 5), piece("a/request/1", 5, 9, 1)], [("client", "host", [3])])
    told = list(windows.ready([]))
    assert [(reading.lines, reading.ignored) for window in told for reading in window.readings] == [
        (10, {"blank": 1}),
        (10, {"blank": 1}),
    ]
    assert [(reading.start, reading.end) for window in told for reading in window.readings] == [(0, 1), (1, 2)]
    assert [window.learned for window in told] == [[("client", "host", [3])], []]


def test_pieces_of_a_source_keep_their_order_when_stamps_step_back() -> None:
    windows = Windows(size=1)
    windows.add([piece("a/request/1", 7, 9), piece("a/request/1", 6, 12, 1)], [])
    assert [window.pieces[0].start for window in windows.ready([])] == [0, 1]


def test_no_input_at_all_is_one_empty_last_window() -> None:
    (window,) = Windows().ready([])
    assert window.last
    assert not window.pieces
    assert groups_of([]) == [[]]
    assert not math.isfinite(min((), default=math.inf))


def test_segments_of_a_spilled_piece_are_decoded_together(tmp_path: Path) -> None:
    def event(start: int) -> Event:
        return Event(int(Kind.FETCH), 1, "b/request/1", start, start + 1, 1.0, 1.0, 1.0, 1.0)

    for sizes in ((0, 3), (15, 16), (65_535, 65_536)):
        lists = [[event(number) for number in range(size)] for size in sizes]
        parsed = ParsedRange("b/request/1", 0, 9, lists, [("c", "h", lists[0])], [], 0, {}, {}, 0.0, 0.0)
        loaded = Loaded(spill(parsed, tmp_path / "piece"))
        segments = [*loaded.index.lanes, loaded.index.clients[0].events]
        assert loaded.events(segments) == [*lists[0], *lists[1], *lists[0]]
        assert loaded.events([]) == []


def test_a_log_that_was_silent_or_slow_says_so() -> None:
    """Between the pieces and inside them: a broker that logs nothing may be down, and nobody's silence is evidence."""
    windows = Windows()
    first, second = piece("a/request/1", 0, 50), piece("a/request/1", 9_000, 9_100, 1)
    second.silences, second.slow = [(9_010.0, 9_090.0)], [[9_000.0, 700.0, 600.0, 100.0, 0.0]]
    windows.add([first, second], [])
    (only,) = windows.ready([])
    (reading,) = only.readings
    assert reading.signs == {
        "last_line_at_ms": 9_100,
        "silences": [[50, 9_000], [9_010.0, 9_090.0]],
        "slow": [[9_000.0, 700.0, 600.0, 100.0, 0.0]],
    }
