"""`kardia stream` as it is run: a real topic, real Spark, real Delta, its own process; killed, stopped, refused, and
with records missing from the topic.

One uninterrupted run is the measure. Every other way to the end of the topic must give the same rows, `batch_id`
included, in every table: lost nothing, doubled nothing.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from demo.broker import Broker
from demo.ports import free_ports
from ingest.archives.ranges import tick
from ingest.wire.batches import CLUSTER_HEADER, MAX_BYTES, decode_batch, encode_batch
from kardia.events import Event, Kind, event_id, lane_of, shard_of
from kardia.tables import LIVE_TABLES, TABLES
from spark_jobs.checkpoint.journal import MIN_BYTES
from spark_jobs.topic import MAX_RECORDS_PER_ARCHIVE_BATCH, MAX_RECORDS_PER_BATCH
from supervise import process
from tests.spark_jobs.support import (
    HEADERS,
    LANES,
    MAX_RECORDS,
    ROOT,
    all_rows,
    kill_and_finish,
    lanes_say,
    produce,
    rows,
    run_stream,
    story_messages,
    story_topic,
    straight_run,
    stream_command,
    told_rows,
)
from tests.support.stories import lanes_of

pytestmark = pytest.mark.slow

TOPIC = "kardia.events"
LARGE = "127.0.0.1:9092/request/large"
EACH = 300
START_TIMEOUT_S = 240.0
TABLE_NAMES = tuple(TABLES)
SOME_STEPS = ("members:written", "progress:written")
ARCHIVE_STEPS = ("events:written", "marks:written")
"""Where something has been written that the rest has not. Every step in a long run, `events:before` where the tables
are in a store."""
ALL_STEPS = tuple(
    f"{name}:{moment}"
    for name in (
        "batch",
        *(name for name in LIVE_TABLES if name not in ("rejected", "disagreements", "surprises", "lag")),
    )
    for moment in ("before", "written")
)


def kills_at(steps: tuple[str, ...], straight: Path) -> list[str]:
    """Kills of one query in batches in which the table has rows; a table that has none further on is left out."""
    kills: list[str] = []
    before, batch_id = "", -1
    for step in steps:
        table, _, moment = step.partition(":")
        # After `x:before@3` the repeat of batch 3 reaches `x:written@3`; what another table wrote it skips.
        first = batch_id if moment == "written" and before == table else batch_id + 1
        told_by = {"batch": "progress", "marks": "events"}.get(table, table)
        batches = sorted({row["batch_id"] for row in rows(straight, told_by) if row["batch_id"] >= first})
        if batches:
            before, batch_id = table, batches[0]
            kills.append(f"{step}@{batch_id}")
    return kills


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> str:
    """The story in a topic."""
    return story_topic(kafka, TOPIC)


@pytest.fixture(scope="module")
def straight(kafka: Broker, topic: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of a run that nothing interrupted."""
    return straight_run(kafka, topic, tmp_path_factory.mktemp("straight"))


def test_the_tables_are_what_the_lanes_say(straight: Path) -> None:
    names = ("transitions", "rebalances", "members", "predictions", "rejected", "disagreements")
    expected = lanes_say(names)
    assert told_rows(straight, names) == expected
    assert expected["transitions"]


def test_every_event_is_archived_once(straight: Path) -> None:
    wanted = Counter(
        event_id(event)
        for lane in lanes_of("c04_mpi-4.1.2", server_log=True)
        for event in lane
        if event.kind < Kind.TICK
    )
    assert Counter(row["event_id"] for row in rows(straight, "events")) == wanted
    assert max(wanted.values()) == 1


def test_killed_between_the_steps_nothing_is_lost_or_doubled(
    kafka: Broker, topic: str, straight: Path, tmp_path: Path
) -> None:
    kills = kills_at(SOME_STEPS, straight)
    assert len(kills) == len(SOME_STEPS)
    kill_and_finish(stream_command(kafka.bootstrap, topic, tmp_path, "--once", "--no-archive"), kills)
    assert all_rows(tmp_path / "tables") == all_rows(straight)


def test_the_archive_killed_between_its_steps_has_every_event_once(
    kafka: Broker, topic: str, straight: Path, tmp_path: Path
) -> None:
    kills = kills_at(ARCHIVE_STEPS, straight)
    assert len(kills) == len(ARCHIVE_STEPS)
    kill_and_finish(stream_command(kafka.bootstrap, topic, tmp_path, "--once"), kills)
    assert all_rows(tmp_path / "tables", TABLE_NAMES) == all_rows(straight, TABLE_NAMES)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("writer", ["delta-rs", "delta-spark"])
def test_killed_at_every_step_with_either_writer(
    kafka: Broker, topic: str, straight: Path, tmp_path: Path, writer: str
) -> None:
    kills = kills_at(ALL_STEPS, straight)
    assert len(kills) >= 12
    kill_and_finish(
        stream_command(kafka.bootstrap, topic, tmp_path, "--once", "--no-archive", "--writer", writer), kills
    )
    assert all_rows(tmp_path / "tables") == all_rows(straight)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_killed_at_random_instants(kafka: Broker, topic: str, straight: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    command = stream_command(kafka.bootstrap, topic, tmp_path, "--once")
    for _ in range(8):
        process = subprocess.Popen(command, cwd=ROOT, env=_environment(), stderr=subprocess.DEVNULL)
        try:
            process.wait(chance.uniform(6, 25))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert run_stream(command).returncode == 0
    assert all_rows(tmp_path / "tables", TABLE_NAMES) == all_rows(straight, TABLE_NAMES)


LIVE_TOPIC = "live.events"
HOME = Path("Kärdia Daten 1")
"""A relative path, with what a person writes into the name of a folder."""

STOP_S = 10.0
"""A stop takes 4 s at most by its own limits (`stream.STOP_S` and its neighbours); the rest is for a busy machine."""


def _environment() -> dict[str, str]:
    few = {"KARDIA_STREAM_MAX_RECORDS": MAX_RECORDS, "KARDIA_STREAM_ARCHIVE_MAX_RECORDS": 2 * MAX_RECORDS}
    return {**os.environ, **{name: str(number) for name, number in few.items()}}


@pytest.fixture
def port() -> int:
    """Where the live job counts."""
    return free_ports(1)[0]


@pytest.fixture
def running(kafka: Broker, port: int, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A live job on a topic of its own, on half of the story; it has said that it is ready. Its paths are relative."""
    messages = story_messages()
    kafka.create_topic(LIVE_TOPIC, LANES)
    produce(kafka.bootstrap, LIVE_TOPIC, messages[: len(messages) // 2])
    process = subprocess.Popen(
        stream_command(kafka.bootstrap, LIVE_TOPIC, HOME, "--metrics-port", str(port)),
        cwd=tmp_path,
        env={**_environment(), "KARDIA_STREAM_ARCHIVE_EVERY_S": "0.5", "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "stream: ready: " in line:
            break
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _counters(port: int) -> dict[str, float]:
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if not line.startswith("#"))}


def test_a_live_job_archives_what_comes_refuses_a_second_one_and_stops_in_order(
    kafka: Broker, straight: Path, running: subprocess.Popen[str], port: int, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    words = stream_command(kafka.bootstrap, LIVE_TOPIC, home)
    locations = [Path(word).as_uri() if word.startswith(str(home)) else word for word in words]
    assert sum(word.startswith("file:///") and "%20" in word for word in locations) == 2  # tables and checkpoint
    second = run_stream(locations)
    assert second.returncode == 2
    assert re.search(rf'another run holds it.*"pid": {running.pid}.*Next: stop the other run', second.stderr)
    wanted = Counter(row["event_id"] for row in rows(straight, "events"))

    def archived() -> Counter[str]:
        there = DeltaTable.is_deltatable(str(home / "tables" / "events"))
        return Counter(row["event_id"] for row in rows(home / "tables", "events")) if there else Counter()

    def wait_for(reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not reached():
            assert time.monotonic() < deadline
            assert running.poll() is None, running.stderr.read() if running.stderr else ""
            time.sleep(0.1)

    wait_for(lambda: bool(archived()))
    messages = story_messages()
    produce(kafka.bootstrap, LIVE_TOPIC, messages[len(messages) // 2 :])
    wait_for(lambda: archived() == wanted)
    counted = _counters(port)
    assert counted["kardia_stream_batches_total"] >= 5
    assert counted["kardia_stream_lanes_read_total"] == LANES  # each stays with the worker that read it first
    produce(kafka.bootstrap, LIVE_TOPIC, messages)  # a batch is in hand when it is stopped
    children = psutil.Process(running.pid).children(recursive=True)
    asked_s = time.monotonic()
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert time.monotonic() - asked_s < STOP_S
    assert running.returncode == 0, said
    routine = ("TransformWithStateInPandas", "stream: keeps ")
    told = [line for line in said.splitlines() if line and not any(one in line for one in routine)]
    assert told == ["stream: stopped; the next start goes on after the last batch in the tables"], said
    psutil.wait_procs(children, 10)
    assert not [child for child in children if child.is_running()]
    assert [path.name for path in tmp_path.iterdir()] == [HOME.name]


def test_killed_before_the_first_record_it_starts_again(kafka: Broker, tmp_path: Path) -> None:
    """Spark's first batch is empty then, and committed: the tables have it all the same."""
    topic = "empty.at.first"
    kafka.create_topic(topic, LANES)
    job = subprocess.Popen(stream_command(kafka.bootstrap, topic, tmp_path), cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        process.until(lambda: any((tmp_path / "checkpoint").glob("live/*/commits/0")), START_TIMEOUT_S, lambda: topic)
    finally:
        job.kill()
        job.wait()
    messages = story_messages(end=10)
    produce(kafka.bootstrap, topic, messages)
    done = run_stream(stream_command(kafka.bootstrap, topic, tmp_path, "--once"))
    assert done.returncode == 0, done.stderr[-3_000:]
    events = [event for _, value, _ in messages for event in decode_batch(value or b"")]
    told = rows(tmp_path / "tables", "progress")
    assert sum(row["events"] for row in told) == sum(event.kind < Kind.TICK for event in events) > 0
    assert sum(row["gaps"] for row in told) == 0


def test_foreign_records_are_rejected_and_lost_ones_stop_the_job(kafka: Broker, tmp_path: Path) -> None:
    """Foreign bytes are refused by offset; a loss stops the job with partition and range; told so, it marks the gap."""
    name = "robbed.events"
    kafka.create_topic(name, LANES)
    messages = story_messages()
    half = len(messages) // 2
    other = [HEADERS[0], (CLUSTER_HEADER, b"other")]
    foreign = [(2, b"foreign", []), (2, None, HEADERS), (2, b"\x90", [("kardia-format", b"msgpack/9")] * 2)]
    foreign += [(2, value, other) for lane, value, _ in messages if lane == 2][:3]
    produce(kafka.bootstrap, name, [*messages[:half], *foreign])
    command = stream_command(kafka.bootstrap, name, tmp_path, "--no-archive", "--once")
    first = run_stream(command, {"KARDIA_STREAM_MAX_RECORDS": "1000"})
    assert first.returncode == 0, first.stderr
    found = rows(tmp_path / "tables", "rejected")
    assert Counter(row["reason"] for row in found) == {
        "not_an_event": 2,
        "unsupported_version": 1,
        "foreign_cluster": 3,
    }
    assert "stream: 3 records of another cluster were refused" in first.stderr
    assert {row["source"] for row in found} == {f"{name}/topic/2"}

    produce(kafka.bootstrap, name, messages[half:])
    ends = {lane: sum(message[0] == lane for message in messages[:half]) for lane in range(LANES)}
    gone = TopicPartition(name, 0, ends[0] + 3)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # kept: its end would be the end of the request
    admin.delete_records([gone])[gone].result(60)
    refused = run_stream(command)
    assert refused.returncode == 2
    assert f"partition 0: offsets {ends[0]}–{ends[0] + 2}" in refused.stderr
    assert "--accept-loss" in refused.stderr

    accepted = run_stream([*command, "--accept-loss"], {"KARDIA_STREAM_MAX_RECORDS": "1000"})
    assert accepted.returncode == 0, accepted.stderr
    progress = rows(tmp_path / "tables", "progress")
    gaps = Counter({row["lane"]: 0 for row in progress})
    for row in progress:
        gaps[row["lane"]] += row["gaps"]
    assert gaps[0] >= 1
    assert all(gaps[lane] == 0 for lane in range(1, LANES))


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_backlog_of_the_largest_records_fits_into_the_heap(kafka: Broker, tmp_path: Path) -> None:
    """Records of half a MiB that compress well, 150 MB in a lane: more than the heap takes, if all are unpacked."""
    name = "large.events"
    kafka.create_topic(name, LANES)
    produce(kafka.bootstrap, name, _large_records(EACH), {"compression.type": "lz4"})
    command = stream_command(kafka.bootstrap, name, tmp_path, "--once")
    default = {
        "KARDIA_STREAM_MAX_RECORDS": str(MAX_RECORDS_PER_BATCH),
        "KARDIA_STREAM_ARCHIVE_MAX_RECORDS": str(MAX_RECORDS_PER_ARCHIVE_BATCH),
        "KARDIA_STREAM_JOURNAL_BYTES": str(MIN_BYTES),
    }
    done = run_stream(command, default, timeout_s=1_000)
    assert done.returncode == 0, done.stderr[-2_000:]
    held = Counter({row["lane"]: 0 for row in rows(tmp_path / "tables", "progress")})
    for row in rows(tmp_path / "tables", "progress"):
        held[row["lane"]] += row["events"]
    assert held == dict.fromkeys(range(LANES), EACH * 800)


def _large_records(each: int) -> Iterator[tuple[int, bytes, list[tuple[str, bytes]]]]:
    """Heartbeats of one member in each lane, with the longest names, and a tick in each record."""
    groups = {lane_of(shard_of(name), LANES): name for name in (f"g-{number}-" + "x" * 240 for number in range(99))}
    at_ms = 1_790_000_000_000.0
    for number in range(each):
        for lane, group in groups.items():
            events: list[Event] = []
            for turn in range(800):
                at_ms += 0.01
                start = (number * 801 + turn) * 1_000
                event = Event(
                    *(int(Kind.HEARTBEAT), shard_of(group), LARGE, start, start + 1_000, at_ms, at_ms, at_ms, at_ms),
                    *(group, "m" * 250, "", "", "10.0.0.1", "127.0.0.1:9092-10.0.0.1:1-0", "apache-kafka-java/4.1.2"),
                    *(4, 0, 1),
                )
                events.append(event)
            end = events[-1].end
            events.append(tick(LARGE, end - 800_000, end, at_ms, 800, 800, {}, at_ms))
            value = encode_batch(events)
            assert len(value) <= MAX_BYTES
            yield lane, value, HEADERS


def test_what_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    command = stream_command("127.0.0.1:1", "x", tmp_path)
    done = run_stream(command, {"KARDIA_STREAM_WAIT_S": "0"})
    assert done.returncode == 2
    assert "nobody listens at this address (--bootstrap-server 127.0.0.1:1)" in done.stderr
    assert "Next: check the address" in done.stderr
    assert "Traceback" not in done.stderr
    missing = run_stream([word for word in command if word not in ("--topic", "x")], {"KARDIA_STREAM_TRIGGER_MS": "-1"})
    assert missing.returncode == 2
    assert "trigger_ms" in missing.stderr
