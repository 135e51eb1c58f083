"""How slow a broker was, from its lines: what counts, in which window, and the same however the lines are read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.archives.ranges import parse_range, plan
from ingest.blocks import Gathered, Splitter, read_cut
from ingest.dialects.request_json import RequestJson
from ingest.router import Directory
from ingest.stamps import zone_named
from kardia.events import Event, Kind
from kardia.slowness import SLOW_MS, WINDOW_MS, Windows, between, note
from tests.ingest.lines import START_MS, line
from tests.ingest.world import World

BEGIN = float(START_MS // 1000 * 1000)


def times(queue: float, local: float, remote: float, throttle: float = 0.0) -> dict[str, Any]:
    """Parts of a line, in ms."""
    total = queue + local + remote + 0.5
    return {
        "totalTimeMs": total,
        "requestQueueTimeMs": queue,
        "localTimeMs": local,
        "remoteTimeMs": remote,
        "throttleTimeMs": throttle,
    }


def fetch(at: int, **parts: Any) -> bytes:
    """A FETCH that waited for data."""
    header = {"requestApiKey": 1, "requestApiVersion": 13, "clientId": "c-1", "requestApiKeyName": "FETCH"}
    request = {"replicaId": -1, "topics": []}
    return line(at, requestHeader=header, request=request, response={"errorCode": 0, "responses": []}, **parts)


def slow_in(data: bytes, cuts: tuple[int, ...] = (), *, fold: bool) -> Windows:
    """Windows that a reader finds in lines, in their order."""
    gathered = Gathered(1, Directory())
    dialect = RequestJson(zone_named("UTC"), fold=fold)
    splitter = Splitter()
    for start, end in pairwise(sorted({0, len(data), *cuts})):
        read_cut(dialect, splitter.feed(data[start:end]), "s", gathered)
    return dict(sorted(gathered.slow.items()))


def block(*lines: bytes) -> bytes:
    """A log."""
    return b"".join(one + b"\n" for one in lines)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize(
    ("one", "taken"),
    [
        (line(7, **times(SLOW_MS, 0.0, 0.0)), SLOW_MS),
        (line(7, **times(100.0, 300.0, 200.0)), 600.0),
        (line(7, **times(100.0, 300.0, 99.0)), None),
        (fetch(7, **times(10.0, 20.0, 5_000.0)), None),
        (fetch(7, **times(400.0, 200.0, 5_000.0)), 600.0),
    ],
)
def test_what_no_request_has_to_wait_for_counts(one: bytes, taken: float | None, *, fold: bool) -> None:
    found = slow_in(block(line(1), one), (len(line(1)) + 1,), fold=fold)
    assert [window[1] for window in found.values()] == ([] if taken is None else [taken])


SAMPLE = block(
    *(
        line(at, **times(queue=float(at * 3 % 1_700), local=1.0, remote=float(at % 7))) if at % 4 else fetch(at)
        for at in range(0, 4_000, 90)
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(SAMPLE)), max_size=6), st.booleans())
def test_the_same_lines_give_the_same_windows_however_they_are_read(cuts: list[int], fold: bool) -> None:
    found = slow_in(SAMPLE, tuple(cuts), fold=fold)
    assert found == slow_in(SAMPLE, fold=False)
    assert len(found) > 2
    assert all(begin % WINDOW_MS == 0 for begin in found)


def test_live_and_archive_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    path = tmp_path / "archive" / "kafka-request.log"
    path.write_bytes(SAMPLE)
    archived: Windows = {}
    for piece in plan([path], range_bytes=len(SAMPLE) // 3):
        for window in (parse_range(piece, fold=True).ticks()[0].detail or {})["slow"]:
            note(archived, window)
    told: Windows = {}
    with World(tmp_path) as world:
        for begin in range(0, len(SAMPLE), 2_000):
            world.file.write(SAMPLE[begin : begin + 2_000])
            world.step(2)
        world.drain()
        for event in world.topic.events(0):
            for window in (event.detail or {}).get("slow", ()) if event.kind == Kind.TICK else ():
                note(told, window)
    assert told == archived == slow_in(SAMPLE, fold=False)


def test_a_throttled_heartbeat_says_so_and_is_not_folded() -> None:
    data = block(line(1), line(2, **times(0.1, 0.1, 0.1, throttle=1_500)), line(3))
    dialect = RequestJson(zone_named("UTC"), fold=True)
    gathered = Gathered(1, Directory())
    read_cut(dialect, Splitter().feed(data), "s", gathered)
    single: list[Event] = gathered.events[0]
    assert [event.detail for event in single] == [{"throttle_ms": 1_500.0}]
    assert dialect.quiet is not None
    assert [len(stretch) for stretch in dialect.quiet.take().stretches()] == [2]


def test_a_window_counts_between_two_instants_only_when_it_is_over() -> None:
    windows = [[BEGIN, 700.0, 700.0, 0.0, 0.0], [BEGIN + 1_000, 900.0, 1.0, 899.0, 0.0]]
    assert between(windows, BEGIN, BEGIN + 1_999) == [0.0, 700.0, 700.0, 0.0, 0.0]
    assert between(windows, BEGIN, BEGIN + 2_000) == [0.0, 900.0, 1.0, 899.0, 0.0]
    assert between(windows, BEGIN + 2_000, BEGIN + 9_000) is None
    assert between([], BEGIN, BEGIN + 9_000) is None
