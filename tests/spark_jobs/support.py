"""A recorded story in a real topic, `kardia stream` as a process of its own, and tables as plain rows to compare.

A story is cut into many small records, as a collector sends them while it follows a log: events of up to `CHUNK` lines,
then a tick in every lane. So a job with a small bound per batch has many batches to be killed in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from demo.broker import Broker
from ingest.archives.ranges import tick
from ingest.wire.batches import CLUSTER_HEADER, FORMAT, FORMAT_HEADER, decode_batch, encode_batch
from kardia.events import ALL_SHARDS, DEFAULT_LANES, Event, Kind, lane_of, stream_of
from kardia.observe import ObserverSettings
from kardia.tables import LIVE_TABLES, SELF_TEST, TABLES
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.writers.faults import VARIABLE
from stores import delta
from stores.locations import Folder
from tests.support.stories import lanes_of

ROOT = Path(__file__).resolve().parent.parent.parent
STORY = "c04_mpi-4.1.2"
"""Seven members, poll timeouts, an expiry, rebalances, predictions: every live table has rows but `rejected` and
`disagreements`."""

CLUSTER = "demo"
SLICES = 30
MAX_RECORDS = 40
"""Of a batch: the story has nine of them, so that there are some to be killed in."""

Message = tuple[int, bytes | None, list[tuple[str, bytes]]]
"""Partition, value, headers."""

HEADERS: list[tuple[str, bytes]] = [(FORMAT_HEADER, FORMAT.encode()), (CLUSTER_HEADER, CLUSTER.encode())]


def story_messages(
    story: str = STORY, slices: int = SLICES, *, lanes: int = DEFAULT_LANES, begin: int = 0, end: int | None = None
) -> list[Message]:
    """A story as records of the topic: `slices` times the events of a stretch of time, then a tick in every lane; of
    the slices from `begin` to `end`."""
    return _messages(_in_lanes(lanes_of(story, server_log=True), lanes), slices, begin, end)


def _in_lanes(found: Sequence[Sequence[Event]], lanes: int) -> Sequence[Sequence[Event]]:
    """The same events in another number of lanes."""
    if lanes == len(found):
        return found
    everything = {(one.source, one.start, one.end, one.shard, one.kind): one for events in found for one in events}
    return [
        [one for one in everything.values() if one.shard == ALL_SHARDS or lane_of(one.shard, lanes) == lane]
        for lane in range(lanes)
    ]


def _messages(lanes: Sequence[Sequence[Event]], slices: int, begin: int, until: int | None) -> list[Message]:
    stamps = [event.logged_at_ms for events in lanes for event in events if event.logged_at_ms > 0]
    first_ms, last_ms = min(stamps), max(stamps)
    width_ms = (last_ms - first_ms) / slices + 1
    buckets: list[list[list[Event]]] = [[[] for _ in lanes] for _ in range(slices)]
    sources: dict[str, str] = {}
    for lane, events in enumerate(lanes):
        for event in events:
            at = min(slices - 1, max(0, int((event.logged_at_ms - first_ms) / width_ms)))
            buckets[at][lane].append(event)
            sources.setdefault(stream_of(event.source), event.source)
    messages: list[Message] = []
    for number, bucket in list(enumerate(buckets))[begin:until]:
        complete_ms = first_ms + (number + 1) * width_ms
        for lane, sent in enumerate(bucket):
            if sent:
                messages.append((lane, encode_batch(sent), HEADERS))
            ticks = [
                tick(source, number, number + 1, complete_ms, _sent(sent, source), 0, {}, complete_ms)
                for source in sorted(sources.values())
            ]
            messages.append((lane, encode_batch(ticks), HEADERS))
    return messages


def _sent(events: Iterable[Event], source: str) -> int:
    return sum(event.source == source for event in events)


def requests_in(value: bytes | None) -> list[Event]:
    """Lines of the request log in a record, in the order of their positions."""
    events = [event for event in decode_batch(value or b"") if event.kind < Kind.TICK]
    return sorted((event for event in events if event.source.split("/")[1] == "request"), key=lambda event: event.end)


def produce(
    bootstrap: str, topic: str, messages: Iterable[Message], more: Mapping[str, str | int] | None = None
) -> None:
    """Send records and wait until all are acknowledged; `more`: settings of librdkafka."""
    failures: list[Any] = []
    config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
    producer = Producer({**config, **(more or {})})
    for partition, value, headers in messages:
        producer.produce(
            topic,
            value,
            key=str(partition).encode(),
            partition=partition,
            headers=list(headers),
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failures


def stream_command(bootstrap: str, topic: str, home: Path, *more: str) -> list[str]:
    """`kardia stream` on tables and checkpoint below `home`."""
    return [
        *(sys.executable, "-m", "cli.main", "stream", "--bootstrap-server", bootstrap, "--topic", topic),
        *("--tables", str(home / "tables"), "--checkpoint", str(home / "checkpoint"), "--cluster", CLUSTER),
        *more,
    ]


def run_stream(
    command: Sequence[str], environment: Mapping[str, str] | None = None, timeout_s: float = 500
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, whatever that is."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={
            **os.environ,
            "KARDIA_STREAM_MAX_RECORDS": str(MAX_RECORDS),
            "KARDIA_STREAM_ARCHIVE_MAX_RECORDS": str(2 * MAX_RECORDS),
            "KARDIA_STREAM_JOURNAL_BYTES": "4000",  # so that there are bases and journals to be killed at
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def story_topic(kafka: Broker, topic: str) -> str:
    """Put the story into a topic of its own."""
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, story_messages())
    return topic


def straight_run(kafka: Broker, topic: str, home: Path) -> Path:
    """Tables on a disk, of a run that nothing interrupted."""
    done = run_stream(stream_command(kafka.bootstrap, topic, home, "--once"))
    assert done.returncode == 0, done.stderr
    return home / "tables"


def kill_and_finish(command: Sequence[str], kills: Iterable[str]) -> None:
    """Run again and again, each time killed at another step (`spark_jobs.writers.faults`), then to the end."""
    for kill in kills:
        killed = run_stream(command, {VARIABLE: kill})
        assert killed.returncode == -signal.SIGKILL, (kill, killed.stderr[-3_000:])
    done = run_stream(command)
    assert done.returncode == 0, done.stderr[-3_000:]


def rows(directory: Folder, name: str) -> list[dict[str, Any]]:
    """All rows of a table, in an order of their own."""
    if not delta.is_there(directory / name):
        return []
    found: list[dict[str, Any]] = delta.opened(directory / name).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: tuple(str(row[column]) for column in row))


def all_rows(directory: Folder, names: Sequence[str] = LIVE_TABLES) -> dict[str, list[dict[str, Any]]]:
    """Rows of several tables, without what a self-test counted: it begins anew with its process."""
    return {name: [_without(row, SELF_TEST) for row in rows(directory, name)] for name in names}


def _without(row: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in columns}


def told_rows(
    directory: Folder, names: Sequence[str], without: Sequence[str] = ("batch_id",)
) -> dict[str, Counter[str]]:
    """Rows of several tables as counted texts, without the columns that may differ between two ways of running."""
    return {name: Counter(said(row, (*without, *SELF_TEST)) for row in rows(directory, name)) for name in names}


def lanes_say(names: Sequence[str]) -> dict[str, Counter[str]]:
    """What lanes tell of the whole story without Spark, by table, as `told_rows` has what the tables hold."""
    factory = ObserverFactory(ObserverSettings(cluster_id=CLUSTER))
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    messages = story_messages()
    for number in range(LANES):
        lane = Lane(factory, "any", number, LANES)
        values = [value for partition, value, _ in messages if partition == number]
        given = lane.step([Record(offset, 0, HEADERS[0][1], value) for offset, value in enumerate(values)])
        for name in names:
            told = (dict(zip(TABLES[name].names, _plain(row), strict=True)) for row in given.get(name, ()))
            found[name].update(said(row) for row in told)
    return found


def _plain(row: tuple[object, ...]) -> list[object]:
    fields = ("member_id", "client_id", "waited_ms", "joined")
    return [
        [dict(zip(fields, entry, strict=True)) for entry in value]
        if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple)
        else (list(value) if isinstance(value, tuple) else value)
        for value in row
    ]


def said(row: Mapping[str, Any], without: Sequence[str] = ("batch_id",)) -> str:
    """A row as text, without the columns that may differ between two ways of running."""
    return repr([(column, value) for column, value in row.items() if column not in without])


def table_names_with_rows(directory: Folder) -> set[str]:
    """Tables that have a row."""
    return {name for name in TABLES if rows(directory, name)}


def refuse_unless(condition: Callable[[], bool], sentence: str) -> None:
    """Fail with a sentence, for conditions that a test builds on."""
    if not condition():
        raise AssertionError(sentence)


LANES = DEFAULT_LANES
