"""Cutting bytes into lines: fed whole, byte by byte and in random pieces; bounds at n-1, n, n+1; damaged bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.blocks import Gathered, Splitter, read_cut, read_last
from ingest.dialects import MAX_LINE_BYTES
from ingest.dialects.request_json import RequestJson
from ingest.router import Directory
from ingest.stamps import zone_named
from kardia.events import Event, Kind
from tests.ingest.lines import START_MS, body, line


def gathered_of(data: bytes, cuts: list[int] | None = None, *, ended: bool = True) -> Gathered:
    """Read bytes cut at these places."""
    gathered = Gathered(1, Directory())
    dialect = RequestJson(zone_named("UTC"))
    splitter = Splitter()
    places = sorted({0, len(data), *(cuts or ())})
    for start, end in pairwise(places):
        read_cut(dialect, splitter.feed(data[start:end]), "s", gathered)
    if ended:
        rest, piece = splitter.finish()
        if rest:
            read_last(dialect, rest, "s", piece.start, gathered)
        read_cut(dialect, piece, "s", gathered)
    return gathered


def events(gathered: Gathered) -> list[Event]:
    return gathered.events[0]


def reasons(gathered: Gathered) -> list[str]:
    return [(event.detail or {})["reason"] for event in events(gathered) if event.kind == Kind.REJECTED]


SAMPLE = b"\n".join([line(1), b"", b"\tat x", line(2)[:150], line(3) + b"\r", line(4)]) + b"\n"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(SAMPLE)), max_size=30))
def test_any_cutting_reads_the_same(cuts: list[int]) -> None:
    assert events(gathered_of(SAMPLE, cuts)) == events(gathered_of(SAMPLE))


def test_byte_by_byte() -> None:
    whole = gathered_of(SAMPLE)
    single = gathered_of(SAMPLE, list(range(len(SAMPLE))))
    assert events(single) == events(whole)
    assert (single.lines, single.ignored, single.rejected) == (whole.lines, whole.ignored, whole.rejected)
    assert whole.lines == 6
    assert len(events(whole)) + whole.ignored.total() == 6


def test_positions_are_those_of_the_file() -> None:
    for event in events(gathered_of(SAMPLE)):
        assert SAMPLE[event.start : event.start + 1] == b"["
        assert SAMPLE[event.end - 1 : event.end] == b"\n"


def padded(length: int) -> bytes:
    """A valid line of exactly so many bytes."""
    bare = len(line(1, principal=""))
    data = line(1, principal="p" * (length - bare))
    assert len(data) == length
    return data


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("piece", [64 * 1024, 1 << 30])
def test_the_bound_of_a_line(over: int, piece: int) -> None:
    data = line(0) + b"\n" + padded(MAX_LINE_BYTES + over) + b"\n" + line(2) + b"\n"
    gathered = gathered_of(data, list(range(0, len(data), piece)))
    kinds = [event.kind for event in events(gathered)]
    assert kinds == [Kind.HEARTBEAT, Kind.REJECTED if over > 0 else Kind.HEARTBEAT, Kind.HEARTBEAT]
    assert gathered.lines == 3
    if over > 0:
        refused = events(gathered)[1]
        detail = refused.detail or {}
        assert detail["reason"] == "line_too_long"
        assert str(MAX_LINE_BYTES + over) in detail["expected"]
        assert (refused.start, refused.end) == (len(line(0)) + 1, len(line(0)) + 1 + MAX_LINE_BYTES + over + 1)


def test_memory_is_bounded_by_one_line() -> None:
    splitter = Splitter()
    for _ in range(40):
        splitter.feed(b"x" * 256 * 1024)
        assert len(splitter.carry) <= MAX_LINE_BYTES
    piece = splitter.feed(b"\nnext\n")
    assert (piece.long_start, piece.long_end, piece.block) == (0, 40 * 256 * 1024 + 1, b"next\n")


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (b"\xef\xbb\xbf" + line(1) + b"\n", [Kind.HEARTBEAT]),
        (b"\0" * 5000 + line(1) + b"\n", [Kind.HEARTBEAT]),
        (line(1) + b"\n" + b"\0" * 70 + line(2) + b"\n", [Kind.HEARTBEAT, Kind.HEARTBEAT]),
        (line(1) + b"\r\n" + line(2) + b"\r\n", [Kind.HEARTBEAT, Kind.HEARTBEAT]),
        (line(1).replace(b"g-1", b"g\xfe1") + b"\n" + line(2) + b"\n", [Kind.REJECTED, Kind.HEARTBEAT]),
    ],
)
def test_damaged_bytes(data: bytes, kinds: list[Kind]) -> None:
    gathered = gathered_of(data)
    assert [event.kind for event in events(gathered)] == kinds
    assert [event.group_id for event in events(gathered) if event.kind == Kind.HEARTBEAT][-1] == "g-1"


def test_nuls_are_counted_and_not_part_of_the_line() -> None:
    gathered = gathered_of(b"\0" * 70 + line(1) + b"\n")
    assert gathered.nul_bytes == 70
    assert events(gathered)[0].start == 70


def test_the_last_line_without_an_end_is_a_line_if_it_can_be_read() -> None:
    assert [event.kind for event in events(gathered_of(line(1)))] == [Kind.HEARTBEAT]
    gathered = gathered_of(line(1)[:200])
    assert reasons(gathered) == ["incomplete_line"]
    assert gathered.rejected == {"incomplete_line": 1}


def test_stamps_of_ignored_lines_show_that_the_log_is_alive() -> None:
    other = line(500, requestHeader={**body()["requestHeader"], "requestApiKey": 18})
    gathered = gathered_of(line(1) + b"\n" + other + b"\nrest of it\n")
    assert (gathered.first_at_ms, gathered.last_at_ms) == (START_MS + 1, START_MS + 500)


@pytest.mark.parametrize("hole", [1, MAX_LINE_BYTES - 1, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES + 7])
@pytest.mark.parametrize("chunk", [100_000, 1 << 20, 1 << 23])
def test_a_hole_does_not_take_the_line_behind_it(hole: int, chunk: int) -> None:
    """A writer that kept its offset over a truncate leaves NUL bytes as long as the file was."""
    data = line(1) + b"\n" + b"\0" * hole + line(2) + b"\n" + line(3) + b"\n"
    gathered, splitter = Gathered(1, Directory()), Splitter()
    for at in range(0, len(data), chunk):
        read_cut(RequestJson(zone_named("UTC")), splitter.feed(data[at : at + chunk]), "s", gathered)
    assert [event.kind for event in gathered.events[0]] == [Kind.HEARTBEAT] * 3
    assert gathered.nul_bytes == hole
    assert (gathered.events[0][1].start, splitter.position) == (len(line(1)) + 1 + hole, len(data))
