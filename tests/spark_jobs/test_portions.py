"""Portions of a replay: bounded, in order of time, the same for the same files, and ticks that say neither too much nor
too little."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

from ingest.archives.planning import RANGE_BYTES
from ingest.archives.ranges import FileRange, ParsedRange
from ingest.session_lengths import Beats, Evicted, Sessions
from kardia.events import Event, Kind
from spark_jobs.replay.inputs import groups_of
from spark_jobs.replay.pieces import Loaded, ParsedPiece, Segment, spill
from spark_jobs.replay.portions import Portion, Portions


def piece(source: str, first: float, last: float, number: int = 0) -> ParsedPiece:
    return ParsedPiece(
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


def ticks(portion: Portion) -> dict[str, float]:
    return {stream.source: stream.complete_to_ms for stream in portion.streams}


def test_a_portion_is_complete_only_up_to_what_comes_next() -> None:
    portions = Portions(size=2)
    portions.add([piece("a/request/1", first, first + 12, number) for number, first in enumerate((0, 10, 20))], [])
    first, second = portions.ready([])
    assert (ticks(first), first.last) == ({"a/request/1": 20.0}, False)
    assert (ticks(second), second.last) == ({"a/request/1": 32.0}, True)


def test_nothing_is_fed_beyond_what_is_not_parsed_yet() -> None:
    portions = Portions()
    portions.add([piece("a/request/1", 0, 50), piece("b/request/1", 30, 90)], [])
    (only,) = portions.ready([("a/request/1", 25.0)])
    assert [one.source for one in only.pieces] == ["a/request/1"]
    assert ticks(only) == {"a/request/1": 25.0}
    assert not only.last
    portions.add([piece("a/request/1", 25, 60, 1)], [])
    (rest,) = portions.ready([])
    assert ticks(rest) == {"a/request/1": 60.0, "b/request/1": 90.0}
    assert rest.last


def test_an_eviction_that_both_logs_show_is_told_once() -> None:
    portions = Portions(size=2)
    beats = Beats("m", "consumer", 1_000.0, [(5_000.0, 5_000.0, math.inf)])
    requests = piece("a/request/1", 0, 40_000)
    requests.sessions = Sessions([beats], [])
    server = piece("a/server/1", 0, 30_000)
    server.sessions = Sessions([], [Evicted(15_003.0, "m")])
    portions.add([requests, server, piece("a/request/1", 41_000, 42_000, 1)], [])
    told = [stream.signs.get("session_shown") for portion in portions.ready([]) for stream in portion.streams]
    assert [one for one in told if one] == [[["consumer", 10_000, 16_003.0]]]


def test_a_quiet_log_keeps_pace_with_its_brokers_other_log() -> None:
    portions = Portions(size=2)
    portions.add([piece("a/server/1", 0, 5), piece("a/request/1", 0, 100), piece("a/request/1", 100, 200, 1)], [])
    first, second = portions.ready([])
    assert ticks(first) == {"a/server/1": 100.0, "a/request/1": 100.0}
    assert ticks(second) == {"a/server/1": 200.0, "a/request/1": 200.0}


def test_a_broker_that_stopped_is_not_complete_beyond_its_last_line() -> None:
    portions = Portions(size=2)
    portions.add([piece("dead/request/1", 0, 50), piece("b/request/1", 0, 100), piece("b/request/1", 100, 200, 1)], [])
    _, second = portions.ready([])
    assert ticks(second) == {"dead/request/1": 50.0, "b/request/1": 200.0}


def test_lines_and_ignored_lines_are_told_once() -> None:
    portions = Portions(size=1)
    portions.add([piece("a/request/1", 0, 5), piece("a/request/1", 5, 9, 1)], [("client", "host", [3])])
    told = list(portions.ready([]))
    assert [(stream.lines, stream.ignored) for portion in told for stream in portion.streams] == [
        (10, {"blank": 1}),
        (10, {"blank": 1}),
    ]
    assert [(stream.start, stream.end) for portion in told for stream in portion.streams] == [(0, 1), (1, 2)]
    assert [portion.learned for portion in told] == [[("client", "host", [3])], []]


def test_pieces_of_a_source_keep_their_order_when_stamps_step_back() -> None:
    portions = Portions(size=1)
    portions.add([piece("a/request/1", 7, 9), piece("a/request/1", 6, 12, 1)], [])
    assert [portion.pieces[0].start for portion in portions.ready([])] == [0, 1]


def test_no_input_at_all_is_one_empty_last_portion() -> None:
    (portion,) = Portions().ready([])
    assert portion.last
    assert not portion.pieces
    assert groups_of([]) == [[]]
    assert not math.isfinite(min((), default=math.inf))


def test_ranges_of_a_file_fill_a_group_though_each_is_a_line_longer() -> None:
    line = 1_000
    starts = [number * (RANGE_BYTES + line) for number in range(8)]
    ranges = [
        FileRange("/nowhere", "request", "b/request/1", start, end, "UTC", 0.0, False, 6, 50)
        for start, end in pairwise(starts)
    ]
    assert groups_of(ranges) == [[0, 1, 2], [3, 4, 5], [6]]


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
    portions = Portions()
    first, second = piece("a/request/1", 0, 50), piece("a/request/1", 9_000, 9_100, 1)
    second.silences, second.slow = [(9_010.0, 9_090.0)], [[9_000.0, 700.0, 600.0, 100.0, 0.0]]
    portions.add([first, second], [])
    (only,) = portions.ready([])
    (stream,) = only.streams
    assert stream.signs == {
        "last_line_at_ms": 9_100,
        "silences": [[50, 9_000], [9_010.0, 9_090.0]],
        "slow": [[9_000.0, 700.0, 600.0, 100.0, 0.0]],
        "is_over": True,
    }


def test_a_missing_file_is_told_once_and_is_no_silence() -> None:
    portions = Portions(after_holes=frozenset({"a/request/3"}))
    last = (("a/request/1", 1.0, 2.0), ("a/request/2", 60_000.0, 60_001.0), ("a/request/3", 120_000.0, 120_001.0))
    portions.add([piece(source, first, end) for source, first, end in last], [])
    (only,) = portions.ready([])
    (stream,) = only.streams
    assert stream.signs["holes"] == [[60_001.0, 120_000.0]]
    assert stream.signs["silences"] == [[2.0, 60_000.0]]
    portions.add([piece("a/request/3", 120_002.0, 120_003.0, 1)], [])
    (rest,) = portions.ready([])
    assert "holes" not in rest.streams[0].signs


def test_it_is_told_when_no_more_will_be_read_of_a_broker() -> None:
    portions = Portions(size=1)
    portions.add([piece("a/request/1", 0, 10), piece("b/request/1", 5, 90), piece("b/request/1", 91, 99, 1)], [])
    over = [
        [stream.source for stream in portion.streams if stream.signs.get("is_over")] for portion in portions.ready([])
    ]
    assert over == [["a/request/1"], ["a/request/1"], ["a/request/1", "b/request/1"]]
