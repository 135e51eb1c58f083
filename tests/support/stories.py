"""Recorded stories of real brokers, replayed through the real dialects and the observer; no Kafka, Spark or Delta.

A story is a folder of `tests/corpora`: request log, server.log, records of `__consumer_offsets`, and `expect.json`,
which was made from server.log and from what was done to the clients.
"""

from __future__ import annotations

import gzip
import json
import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ingest.admin.samples import ReadSamples
from ingest.archives.ranges import ParsedRange, parse_range, plan, read_offsets_file, route, tick
from ingest.broker_processes import Processes, summary_of
from ingest.router import Directory
from ingest.session_lengths import SessionLengths
from ingest.stamps import Stamps, zone_named
from kardia.events import (
    ALL_SHARDS,
    DEFAULT_LANES,
    DEFAULT_OFFSETS_PARTITIONS,
    SILENCE_MS,
    Event,
    Kind,
    broker_of,
    lane_of,
    stream_of,
)
from kardia.follow.self_test import SelfTest
from kardia.kafka.states import ErrorCode
from kardia.observe import Observer, ObserverSettings
from kardia.tables import TABLES, Row

CORPORA = Path(__file__).resolve().parent.parent / "corpora"

OTHERS = Path(os.environ.get("KARDIA_STORIES", CORPORA / "others")).resolve()
"""A folder of stories that somebody has recorded, to be held against their brokers like those of `CORPORA`."""

FIRST_LIGHT = (
    "c01_kill-3.9.2",
    "c01_kill-4.1.2",
    "c02_sigstop-3.9.2",
    "c03_zombie-3.9.2",
    "c04_mpi-3.9.2",
    "c04_mpi-4.1.2",
    "c05_leave-3.9.2",
    "c06_static-3.9.2",
    "c09_join-3.9.2",
    "c10_slow-3.9.2",
    "c13_commit-3.9.2",
    "c18_libs-4.1.2",
    "z01_timezone-4.1.2",
)
"""Stories of the classic protocol on one broker."""

STORIES = (*FIRST_LIGHT, "c15_assign-4.1.2", "c19_admin-4.4.0", "m01_coordinator_kill-4.1.2")
"""All of them; in the last one the coordinator is killed, and one of its groups uses the consumer protocol."""

MODERN_STORIES = (
    "k01_kill-4.1.2",
    "k03_zombie-4.1.2",
    "k05_leave-4.4.0",
    "k06_static-4.1.2",
    "k07_unreleased-4.4.0",
    "k08_rebalance_timeout-4.1.2",
    "k11_migration-4.1.2",
    "s01_share-4.1.2",
    "t01_streams-4.4.0",
)
"""Of consumer, share and streams groups; in k11 a group changes its protocol, and back."""

RECORDED_EPOCHS = (
    "e01_lives-4.1.2",
    "e01_lives-4.4.0",
    "e02_plans-4.3.1",
    "e02_plans-4.4.0",
    "e03_moves-4.0.2",
    "e03_moves-4.1.2",
    "e03_moves-4.2.1",
    "e04_share-4.4.0",
    "e05_streams-4.2.1",
    "e06_breaks-4.4.0",
    "e07_long_polls-4.4.0",
    "e08_restarts-4.3.1",
    "e09_edges-4.2.1",
    "e10_paused-4.4.0",
    "drawn-2-4.4.0",
    "drawn-10-4.2.1",
    "drawn-12-4.4.0",
    "drawn-15-3.9.2",
    *sorted(folder.name for folder in OTHERS.glob("*") if (folder / "expect.json").exists()),
)
"""Many groups in one story, most of them with epochs, recorded by `tests/corpora/epochs_recording.py`."""

OLD_STORIES = (
    "o01_kill-2.0.1",
    "o01_kill-2.7.2",
    "o04_mpi-2.3.1",
    "o05_leave-2.0.1",
    "o06_static-2.3.1",
    "o10_slow-2.7.2",
    "o11_join_timeout-2.0.1",
    "o13_commit-2.3.1",
    "o20_dead_joiner-2.0.1",
    "o25_odd-2.3.1",
    "o26_live_offsets-2.0.1",
    "o27_completing-2.0.1",
)
"""Of brokers 2.0 to 2.7, whose request log is text."""

STARVED_BROKERS = (
    "n01_broker_kill-3.9.2",
    "d03_coordkill_classic-3.9.2",
    "d03_coordkill_modern-4.2.1",
    "d04_broker_frozen-4.4.0",
)
"""Of brokers killed, or stopped, on a starved machine: what was done to the broker is in truth.jsonl, or in README."""

STARVED_STORIES = ("d01_busy_s202-3.9.2", "d06_early_kill-4.4.0")
"""On a machine whose load average was 8 and more, so that handlers were up to seconds late: twenty busy classic groups;
members that were killed before their first heartbeat, of either protocol."""

SAMPLED_STORIES = ("a01_changes-3.9.2", "a01_changes-4.4.0")
"""With the admin API sampled beside them, recorded by `tests/corpora/samples_recording.py`."""

NOISE_GROUPS = frozenset({"warmup"})


@dataclass(frozen=True)
class Story:
    """One recording."""

    name: str

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return OTHERS / self.name if (OTHERS / self.name).exists() else CORPORA / self.name

    @property
    def expect(self) -> dict[str, Any]:
        """What a correct reconstruction reports."""
        data: dict[str, Any] = json.loads((self.folder / "expect.json").read_text())
        return data

    @property
    def zone(self) -> str:
        """Time zone of its logs."""
        meta: dict[str, Any] = json.loads((self.folder / "meta.json").read_text())
        return str(meta["log_timezone"])


@cache
def lanes_of(
    name: str,
    server_log: bool = False,
    offsets: bool = True,
    requests: bool = True,
    samples: bool = False,
    count: int = DEFAULT_LANES,
) -> tuple[tuple[Event, ...], ...]:
    """Events of a story by lane, each source in the order of its positions."""
    return lanes_in(Story(name), server_log, offsets, requests, samples, count)


def lanes_in(
    story: Story,
    server_log: bool = False,
    offsets: bool = True,
    requests: bool = True,
    samples: bool = False,
    count: int = DEFAULT_LANES,
) -> tuple[tuple[Event, ...], ...]:
    """Events of the story in a folder, which a test may have made itself."""
    servers = sorted(story.folder.glob("server*.log.gz")) if server_log else []
    asked = sorted(story.folder.glob("kafka-request*.log.gz")) if requests else []
    pieces = [parse_range(piece) for piece in plan(asked, servers, zone=story.zone, lanes=count)]
    directory = Directory()
    for piece in pieces:
        directory.merge(piece.directory)
    lanes: list[list[Event]] = [[] for _ in range(count)]
    if samples:
        _add_samples(lanes, story.folder / "samples.jsonl.gz")
    shown = _sessions_shown(pieces)
    if offsets and (story.folder / "offsets.jsonl.gz").exists():
        records = list(read_offsets_file(story.folder / "offsets.jsonl.gz"))
        for event in records:
            lanes[lane_of(event.shard, count)].append(event)
        if not pieces:  # with a log of a broker its clock counts
            last_at_ms = max(event.logged_at_ms for event in records)
            for events in lanes:
                events.append(tick(records[0].source, 0, len(records), last_at_ms, 0, len(records), {}, last_at_ms))
    for piece in pieces:
        for lane, events in route(piece, directory).items():
            lanes[lane].extend(sorted(events, key=lambda event: event.start))
        signs = shown[piece.source, piece.start]
        for lane, told in enumerate(piece.ticks()):
            lanes[lane].append(told._replace(detail={**(told.detail or {}), **signs}))
    return tuple(tuple(events) for events in lanes)


def _sessions_shown(pieces: list[ParsedRange]) -> dict[tuple[str, int], dict[str, Any]]:
    """(Source, begin) of each range -> what its tick says of the length of sessions, by both logs of its broker."""
    lengths: dict[str, SessionLengths] = defaultdict(SessionLengths)
    found = {}
    for piece in sorted(pieces, key=lambda one: stream_of(one.source).endswith("/request")):  # sentences first
        own = lengths[broker_of(piece.source)]
        if stream_of(piece.source).endswith("/request"):
            own.take(piece.sessions, piece.silences, piece.last_at_ms)
        else:
            own.take(piece.sessions)
        found[piece.source, piece.start] = own.signs()
    return found


def _add_samples(lanes: list[list[Event]], path: Path) -> None:
    """What `kardia capture --admin` wrote, and up to when it says everything."""
    with gzip.open(path) as lines:
        read = ReadSamples(lines, DEFAULT_OFFSETS_PARTITIONS)
        events = list(read)
    for event in events:
        for lane in lanes if event.shard == ALL_SHARDS else [lanes[lane_of(event.shard, len(lanes))]]:
            lane.append(event)
    at, end = read.known_to_ms, events[-1].end
    for lane in lanes:
        lane.append(tick(events[-1].source, 0, end, at, 0, end, {}, at))


def doctored(name: str) -> tuple[tuple[Event, ...], ...]:
    """A story whose server.log says otherwise than its requests, in two lines: its first eviction four seconds later,
    and its last assignment of another generation; as far as it has such lines."""
    lanes = [list(lane) for lane in lanes_of(name, server_log=True)]

    def said(what: str) -> list[tuple[float, int, int]]:
        """Lines that say it, by their stamps."""
        return sorted(
            (event.logged_at_ms, lane, place)
            for lane, events in enumerate(lanes)
            for place, event in enumerate(events)
            if event.kind == Kind.COORDINATOR_LINE and (event.detail or {}).get("what") == what
        )

    for at, lane, place in said("member_failed")[:1]:
        later = at + 4_000
        lanes[lane][place] = lanes[lane][place]._replace(
            logged_at_ms=later, arrived_at_ms=later, handled_at_ms=later, decided_at_ms=later
        )
    for _, lane, place in said("assignment_received")[-1:]:
        event = lanes[lane][place]
        lanes[lane][place] = event._replace(generation_id=event.generation_id + 1)
    return tuple(map(tuple, lanes))


def surprises(lanes: Iterable[Iterable[Event]], cluster: str = "test") -> list[Row]:
    """Rows of `surprises` of a story in which the broker answers a heartbeat as no release does, once in each lane."""
    rows: list[Row] = []
    for lane in lanes:
        events = list(lane)
        beats = [
            (event.handled_at_ms, place)
            for place, event in enumerate(events)
            if event.kind == Kind.HEARTBEAT and event.error_code == 0
        ]
        for _, place in sorted(beats)[len(beats) // 2 :][:1]:
            events[place] = events[place]._replace(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        test = SelfTest(cluster)
        rows += test.step(sorted(events, key=lambda one: one.logged_at_ms))
        rows += test.finish()
    return rows


def observe(lanes: tuple[tuple[Event, ...], ...]) -> dict[str, list[Row]]:
    """Rows of all lanes, each lane in one step."""
    rows: dict[str, list[Row]] = {}
    for lane, events in enumerate(lanes):
        observer = Observer(ObserverSettings("test"), lane)
        for part in (observer.step(events), observer.finish()):
            for table, some in part.items():
                rows.setdefault(table, []).extend(some)
    return rows


def live(name: str, every_ms: int = 1_000, count: int = DEFAULT_LANES, offsets: bool = True) -> dict[str, list[Row]]:
    """Rows of a story that is read as it is written: each broker's log is complete up to now every `every_ms`."""
    rows: dict[str, list[Row]] = {}
    stamps = stamps_of(name)
    lanes = lanes_of(name, offsets=offsets, count=count)
    told = told_live(lanes, every_ms, stamps)
    for lane, events in enumerate(lanes):
        observer = Observer(ObserverSettings("test"), lane)
        for step in read_live(events, every_ms, stamps, told):
            for table, some in observer.step(step).items():
                rows.setdefault(table, []).extend(some)
    return rows


@cache
def stamps_of(name: str) -> dict[str, list[float]]:
    """Source of each request log of a story -> instants of its lines, those that give no event among them."""
    story, found = Story(name), {}
    for piece in plan(sorted(story.folder.glob("kafka-request*.log.gz")), zone=story.zone):
        stamps = Stamps(zone_named(story.zone))
        with gzip.open(piece.path) as lines:
            found[parse_range(piece).source] = sorted(at for line in lines if (at := stamps.at_ms(line)) is not None)
    return found


def _signs(stamps: list[float], since: float, now: float) -> dict[str, Any]:
    """When a log was alive, as its collector says it in a tick."""
    first, last = bisect_right(stamps, since), bisect_right(stamps, now)
    lines = stamps[first:last]
    silences = [[one, two] for one, two in pairwise(lines) if two - one >= SILENCE_MS]
    signs: dict[str, Any] = {"last_line_at_ms": stamps[last - 1]} if last else {}
    return signs | ({"first_line_at_ms": stamps[first], "silences": silences} if last > first else {})


Told = dict[tuple[str, float], dict[str, Any]]
"""(source, instant of a tick) -> what that tick tells of the broker's process."""


def told_live(lanes: tuple[tuple[Event, ...], ...], every_ms: int, stamps: dict[str, list[float]]) -> Told:
    """What ticks every `every_ms` tell of each broker's process: of the events of all lanes, as a collector sees it."""
    told: Told = {}
    read = list(
        {(event.source, event.start): event for events in lanes for event in events if event.kind != Kind.TICK}.values()
    )
    first_at_ms = min(event.logged_at_ms for event in read if event.logged_at_ms > 0)
    for source, lines in stamps.items():
        own = sorted((event for event in read if event.source == source), key=lambda event: event.logged_at_ms)
        processes, now, begin, last_line_at_ms = Processes(), first_at_ms, 0, None
        while begin < len(own):
            now += every_ms
            end = bisect_right(own, now, key=lambda event: event.logged_at_ms)
            signs = _signs(lines, now - every_ms, now)
            silences = signs.get("silences", [])
            summary = summary_of(own[begin:end], (), silences)
            processes.take(summary, silences, last_line_at_ms, signs.get("first_line_at_ms"))
            told[source, now] = processes.signs()
            begin, last_line_at_ms = end, signs.get("last_line_at_ms", last_line_at_ms)
    return told


def read_live(
    events: tuple[Event, ...],
    every_ms: int,
    stamps: dict[str, list[float]] | None = None,
    told: Told | None = None,
) -> Iterator[list[Event]]:
    """What one look at the logs after the other brings; each ends with a tick of each log. Without `stamps` every log
    is taken to be alive at each tick; without `told` a lane is left to its own groups."""
    waiting = sorted((event for event in events if event.kind != Kind.TICK), key=lambda event: event.logged_at_ms)
    sources = sorted({event.source for event in events if "/request/" in event.source})
    if not waiting:
        return
    first = next(event.logged_at_ms for event in waiting if event.logged_at_ms > 0)  # what has no stamp comes with it
    now, last, begin = first, waiting[-1].logged_at_ms, 0
    if told:  # the ticks of the whole log
        sources = sorted({source for source, _ in told})
        now, last = min(at for _, at in told) - every_ms, max(at for _, at in told) - 1.0
    while begin < len(waiting) or now < last:
        now += every_ms
        end = bisect_right(waiting, now, key=lambda event: event.logged_at_ms)
        ticks = [
            Event(int(Kind.TICK), -1, source, 0, end, now, now, now, now, detail=signs)
            for source in sources
            for lines in ((stamps or {}).get(source, []),)
            for signs in (_signs(lines, now - every_ms, now) | (told or {}).get((source, now), {}),)
        ]
        yield [*waiting[begin:end], *ticks]
        begin = end


def named(table: str, rows: list[Row]) -> list[dict[str, Any]]:
    """Rows as dictionaries by column name."""
    return [dict(zip(TABLES[table].names, row, strict=True)) for row in rows]


def standing(table: str, rows: list[Row]) -> list[dict[str, Any]]:
    """Of each life, rebalance or prediction the row that stands: the one known last."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in named(table, rows):
        key = tuple(row[column] for column in TABLES[table].key)
        if key not in best or row["known_at_ms"] >= best[key]["known_at_ms"]:
            best[key] = row
    return [row for row in best.values() if not row.get("withdrawn")]
