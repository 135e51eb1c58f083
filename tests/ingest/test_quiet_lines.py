"""Folding a block is reading its lines one by one: the same events, positions, counters and rejections, also where
lines are damaged in every way that the mutations know, wherever the blocks are cut, and whether lines are decoded or
recognised as like others."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ingest.blocks import Gathered, Splitter, read_cut
from ingest.dialects import quiet_columns
from ingest.dialects.line_patterns import Patterns
from ingest.dialects.request_json import RequestJson
from ingest.dialects.request_layout import PREFIX
from ingest.router import Directory
from kardia.events import Event, Kind
from tests.ingest.lines import STORIES, body, line
from tests.support.mutations import damaged

LANES = 6
SOURCE = "b/request/1"


def read(
    data: bytes, block_bytes: int, *, fold: bool, start: int = 0, patterns: Patterns | None = None
) -> tuple[Gathered, list[Event], int]:
    """What is read of a log; its events in order; how many of them were folded."""
    dialect = RequestJson(ZoneInfo("Europe/Berlin"), fold=fold, patterns=patterns)
    gathered = Gathered(LANES, Directory())
    splitter = Splitter(start)
    for at in range(0, len(data), block_bytes):
        read_cut(dialect, splitter.feed(data[at : at + block_bytes]), SOURCE, gathered)
    stretches = dialect.quiet.take().stretches() if dialect.quiet is not None else []
    events = [event for lane in gathered.events for event in lane]
    events += [event for waiting in gathered.unrouted.values() for event in waiting]
    events += [event for stretch in stretches for event in stretch.events()]
    return gathered, _in_order(events), sum(map(len, stretches))


def _in_order(events: Iterable[Event]) -> list[Event]:
    """Without the software, of which a connection tells once: a stretch has that of its first line."""
    return sorted((event._replace(software="") for event in events), key=lambda one: one.start)


def compared(data: bytes, block_bytes: int, start: int = 0) -> int:
    single, events, _ = read(data, block_bytes, fold=False, start=start)
    patterns = Patterns()
    read(data, 2_000, fold=True, start=start, patterns=patterns)  # it learns of each block
    counts = set()
    for how in (None, Patterns(), patterns):
        folding, folded, count = read(data, block_bytes, fold=True, start=start, patterns=how)
        assert folded == events
        for name in ("ignored", "rejected", "lines", "nul_bytes", "first_at_ms", "last_at_ms", "silences", "slow"):
            assert getattr(folding, name) == getattr(single, name), name
        counts.add(count)
    (count,) = counts
    return count


@pytest.mark.parametrize("seed", range(24))
def test_damaged_lines_are_what_they_are_when_read_alone(seed: int) -> None:
    lines, _ = damaged("request", f"quiet/{seed}", 120)
    data = b"\n".join(lines) + b"\n"
    for block_bytes in (3_000, 1 << 20):
        compared(data, block_bytes, start=seed % 2)


def some_stories() -> list[Path]:
    """Request logs of stories; those of share groups alone have nothing to fold."""
    logs = STORIES.glob("*/kafka-request.log.gz")
    return sorted(log for log in logs if not log.parent.name.startswith(("e0", "drawn-", "s01")))[::5]


@pytest.mark.parametrize("path", some_stories(), ids=lambda path: path.parent.name)
def test_a_story_is_the_same(path: Path) -> None:
    assert compared(gzip.decompress(path.read_bytes())[:400_000], 20_000) > 0


def fetched(**changes: Any) -> dict[str, Any]:
    return {
        "requestHeader": {**body()["requestHeader"], "requestApiKey": 1},
        "request": {"maxWaitMs": 500, "sessionEpoch": 0},
        "response": {"errorCode": 0, "responses": []},
        **changes,
    }


UNUSUAL: dict[str, dict[str, Any]] = {
    "follower": fetched(request={"replicaId": 3}),
    "follower of 4.x": fetched(request={"replicaState": {"replicaId": 3}}),
    "no request": fetched(request=""),
    "no response": fetched(response=None),
    "error": fetched(response={"errorCode": 70, "responses": []}),
    "no list of topics": fetched(response={"errorCode": 0}),
    "null in place of a list": fetched(response={"errorCode": 0, "responses": [{"partitions": None}]}),
    "negative time": fetched(totalTimeMs=-0.5),
    "time beyond the bound": fetched(remoteTimeMs=1e11),
    "negative throttle": fetched(throttleTimeMs=-1),
    "throttled": {"throttleTimeMs": 7},
    "slow": {"localTimeMs": 700.0, "totalTimeMs": 701.0},
    "no group": {"request": {"generationId": 1, "memberId": "m"}},
    "connection without an address": {"connection": "x"},
    "client that looks like text": fetched(
        requestHeader={
            **body()["requestHeader"],
            "requestApiKey": 1,
            "clientId": "Completed request:RequestHeader(apiKey=FETCH, apiVersion=1",
        }
    ),
    "letters": {"request": {**body()["request"], "groupId": "größe"}},
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_line_among_usual_ones(name: str) -> None:
    lines = [line(number) for number in range(20)]
    lines[7:7] = [line(7, **UNUSUAL[name])]
    lines[11:11] = [line(11, **fetched())]
    assert lines[0].find(PREFIX) > 0
    assert compared(b"\n".join(lines) + b"\n", 1 << 20, start=1) >= 20


@pytest.mark.parametrize(
    "stamp", [b"[2026-13-20 10:47:18,113]", b"[2026-11-20 10:47:18.113]", b"2026-11-20T10:47:18,113Z "]
)
def test_a_stamp_of_another_form_among_usual_ones(stamp: bytes) -> None:
    lines = [line(number) for number in range(6)]
    lines[2] = stamp + lines[2][25:]
    lines[3] = stamp[:22] + b"x" + lines[3][23:]
    compared(b"\n".join(lines) + b"\n", 1 << 20, start=1)


def test_the_hour_that_comes_twice_is_told_by_the_order_of_the_lines() -> None:
    change_ms = 1_792_890_000_000  # 2026-10-25T01:00Z, in Berlin 03:00 becomes 02:00
    local = [change_ms + 7_200_000 - 1_800_000 + at * 60_000 for at in range(30)]
    local += [change_ms + 3_600_000 + at * 60_000 for at in range(90)]
    data = b"".join(line(at, at_ms=stamp) + b"\n" for at, stamp in enumerate(local))
    assert compared(data, 1 << 20) == 120
    _, events, _ = read(data, 1 << 20, fold=True)
    stamps = [event.logged_at_ms for event in events]
    assert stamps == sorted(stamps)
    assert stamps[-1] - stamps[0] == 119 * 60_000


def test_a_file_folds_from_its_first_line_on() -> None:
    data = b"".join(line(number) + b"\n" for number in range(10))
    dialect = RequestJson(UTC, fold=True)
    assert dialect.quiet is not None
    gathered = Gathered(LANES, Directory())
    read_cut(dialect, Splitter().feed(data), SOURCE, gathered)
    (stretch,) = dialect.quiet.take().stretches()
    assert (len(stretch), stretch.head.kind, gathered.lines) == (10, Kind.HEARTBEAT, 10)
    assert dialect.quiet.take().stretches() == []


def _of(member: str) -> dict[str, Any]:
    return {"groupId": "g-1", "generationId": 5, "memberId": member, "groupInstanceId": None}


@pytest.mark.parametrize(("most", "lines_of_each"), [(1_000, 50), (1, 50), (1_000, 2)])
@pytest.mark.parametrize("patterns", [None, Patterns()], ids=["decoded", "recognised"])
def test_who_goes_on_after_a_taking_is_known(
    most: int, lines_of_each: int, patterns: Patterns | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there are too many, or each has sent enough; then all are met anew, and say the same."""
    monkeypatch.setattr(quiet_columns, "SENDERS_MAX", most)
    monkeypatch.setattr(quiet_columns, "LINES_REMEMBERED", lines_of_each)
    lines = [line(number, request=_of(f"m-{number % 3}")) + b"\n" for number in range(60)]
    _, whole, _ = read(b"".join(lines), 1 << 20, fold=True)
    dialect = RequestJson(ZoneInfo("Europe/Berlin"), fold=True, patterns=patterns)
    assert dialect.quiet is not None
    found: list[Event] = []
    heads: list[dict[str, Event]] = []
    splitter = Splitter()
    for at in range(0, 60, 6):
        read_cut(dialect, splitter.feed(b"".join(lines[at : at + 6])), SOURCE, Gathered(LANES, Directory()))
        rows = dialect.quiet.take()
        found += rows.events()
        heads.append({head.member_id: head for head in rows.heads})
    assert _in_order(found) == whole
    same = [one["m-0"] is another["m-0"] for one, another in itertools.pairwise(heads)]
    # Six lines of three senders a taking: with two lines of each they are met anew at every second one.
    assert same == ([most > 3] * 9 if lines_of_each == 50 else [True, False] * 4 + [True])
