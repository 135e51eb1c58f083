"""The collector as a process, against a real broker: stopped, killed, started again; and what it refuses.

Goal: the promises of `test_collector.py` hold with a real producer, real signals and a real topic.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.ports import free_ports
from ingest.archives.ranges import read_offsets_file
from ingest.wire.batches import CLUSTER_HEADER, FORMAT_HEADER, check_format, decode_batch
from kardia.events import DEFAULT_LANES, Event, Kind, event_id, lane_of
from tests.ingest.archives import wrapping
from tests.ingest.lines import line

if TYPE_CHECKING:
    from demo.broker import Broker

pytestmark = pytest.mark.slow

PATIENCE_S = 180.0


def collect(*options: str) -> list[str]:
    return [sys.executable, "-m", "cli.main", "collect", *options]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE_S)


class Topic:
    """The topic of events, read from its beginning."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest", "log_level": 0}
        )
        self._consumer.assign([TopicPartition(name, lane, 0) for lane in range(DEFAULT_LANES)])
        self.events: list[Event] = []

    def read(self) -> list[Event]:
        """Everything that has come so far; every record is in the partition of its lane and says what it is."""
        for message in self._consumer.consume(1_000, 0.2):
            if message.error() is not None:
                continue
            headers = dict(message.headers() or [])
            check_format(headers[FORMAT_HEADER])  # type: ignore[arg-type]
            assert headers[CLUSTER_HEADER] == b"test"
            assert message.key() == str(message.partition()).encode()
            for event in decode_batch(message.value() or b""):
                assert event.shard < 0 or lane_of(event.shard) == message.partition()
                self.events.append(event)
        return self.events

    def members(self) -> list[str]:
        """Members of the heartbeats, each id once."""
        by_id = {event_id(event): event for event in self.read() if event.kind == Kind.HEARTBEAT}
        return sorted(event.member_id for event in by_id.values())

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def name() -> str:
    return f"events-{uuid4().hex[:8]}"


@pytest.fixture
def options(kafka: Broker, name: str, tmp_path: Path) -> list[str]:
    return [
        "--request-log",
        str(tmp_path / "kafka-request.log"),
        "--events-bootstrap-server",
        kafka.bootstrap,
        "--topic",
        name,
        "--cluster",
        "test",
        "--positions",
        str(tmp_path / "positions"),
        "--log-timezone",
        "UTC",
    ]


class Log:
    """A request log with numbered heartbeats."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0

    def write(self, count: int) -> None:
        with self.path.open("ab") as file:
            for _ in range(count):
                self.number += 1
                request = {"groupId": f"g-{self.number % 9}", "generationId": 1, "memberId": f"m-{self.number:06d}"}
                file.write(line(self.number, request=request) + b"\n")

    def members(self) -> list[str]:
        return [f"m-{number:06d}" for number in range(1, self.number + 1)]


def test_both_logs_of_a_containers_output_are_collected(
    kafka: Broker, name: str, options: list[str], tmp_path: Path
) -> None:
    """What the kubelet keeps of a broker that logs to its console, by one pattern for both logs."""
    pod = tmp_path / "kafka_my-cluster-kafka-0_11" / "kafka"
    pod.mkdir(parents=True)
    lines = [_heartbeat(number) for number in range(3)]
    told = b"[2026-11-18 11:06:40,009] INFO [GroupCoordinator 1]: Startup complete. (kafka.coordinator.group.X)"
    lines += [told.replace(b"Startup complete.", b"Preparing to rebalance group g in state Stable"), b"x" * 40_000]
    (pod / "0.log").write_bytes(wrapping.cri(lines))
    pattern = str(tmp_path / "*" / "kafka" / "*.log")
    options[1] = pattern
    topic = Topic(kafka.bootstrap, name)
    with running(collect(*options, "--server-log", pattern)) as process:
        wait_until(lambda: len(topic.members()) == 3, "the requests come")
        wait_until(
            lambda: _ticked(topic) == {"10.0.0.1:9092/request", "10.0.0.1:9092/server"}, "both are of one broker"
        )
        (pod / "0.log").rename(pod / "0.log.20261120-100000")
        (pod / "0.log").write_bytes(wrapping.cri([_heartbeat(9)]))
        wait_until(lambda: "m-9" in topic.members(), "the log goes on")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    topic.close()


def _heartbeat(number: int) -> bytes:
    return line(number, request={"groupId": "g", "generationId": 1, "memberId": f"m-{number}"})


def _ticked(topic: Topic) -> set[str]:
    return {event.source.rpartition("/")[0] for event in topic.read() if event.kind == Kind.TICK}


def test_stopped_killed_and_rotated_it_loses_nothing(
    kafka: Broker, name: str, options: list[str], tmp_path: Path
) -> None:
    log = Log(tmp_path / "kafka-request.log")
    log.write(500)
    with running(collect(*options)) as process:
        wait_until(
            lambda: name in AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics, "topic"
        )
        topic = Topic(kafka.bootstrap, name)
        wait_until(lambda: topic.members() == log.members(), "the first lines")
        log.write(200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    sent = len([event for event in topic.read() if event.kind == Kind.HEARTBEAT])
    for number in range(3):
        with running(collect(*options)) as process:
            log.write(300)
            if number == 1:
                log.path.rename(tmp_path / "kafka-request.log.2026-11-20-10")
            log.write(300)
            before = len(topic.members())
            wait_until(lambda before=before: len(topic.members()) > before, "news")  # type: ignore[misc]
            process.kill()
            process.wait(PATIENCE_S)
    with running(collect(*options)) as process:
        wait_until(lambda: (tmp_path / "positions" / "lock").read_text().strip() == str(process.pid), "the start")
        wait_until(lambda: topic.members() == log.members(), "everything")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert not [event for event in topic.events if event.kind in (Kind.GAP, Kind.REJECTED)]
    assert sent <= 700  # an ordered stop repeats nothing
    topic.close()


def test_groups_of_a_real_cluster_and_its_capture(kafka: Broker, name: str, tmp_path: Path) -> None:
    group = f"group-{uuid4().hex[:8]}"
    kafka.create_topic(f"topic-{group}", 1)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "client.id": "c-1", "log_level": 0})
    consumer.subscribe([f"topic-{group}"])
    wait_until(lambda: consumer.poll(0.1) is not None or bool(consumer.assignment()), "an assignment")
    (port,) = free_ports(1)
    options = ["--bootstrap-server", kafka.bootstrap, "--topic", name, "--cluster", "test"]
    options += ["--positions", str(tmp_path / "positions"), "--metrics-port", str(port)]
    with running(collect(*options)) as process:
        wait_until(
            lambda: name in AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics, "topic"
        )
        topic = Topic(kafka.bootstrap, name)

        def seen() -> list[Event]:
            return [event for event in topic.read() if event.kind == Kind.GROUP_RECORD and event.group_id == group]

        wait_until(lambda: any((event.detail or {}).get("members") for event in seen()), "the group's record")
        wait_until(lambda: any(event.kind == Kind.TICK for event in topic.read()), "a tick of the offsets topic")
        members = [member for event in seen() for member in (event.detail or {}).get("members", ())]
        assert {(member[2], member[3]) for member in members} == {("c-1", "127.0.0.1")}
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
        assert 'kardia_collector_events_total{kind="group_record"}' in text
        consumer.close()
        wait_until(lambda: (seen()[-1].detail or {}).get("members") == [], "the empty group")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    topic.close()
    out = tmp_path / "offsets.jsonl.gz"
    command = [sys.executable, "-m", "cli.main", "capture", "--bootstrap-server", kafka.bootstrap]
    subprocess.run([*command, "--out", str(out)], check=True, timeout=PATIENCE_S, capture_output=True)
    captured = [
        event for event in read_offsets_file(out) if event.kind == Kind.GROUP_RECORD and event.group_id == group
    ]
    assert {event_id(event) for event in captured} == {event_id(event) for event in seen_by(topic, group)}


def seen_by(topic: Topic, group: str) -> list[Event]:
    return [event for event in topic.events if event.kind == Kind.GROUP_RECORD and event.group_id == group]


def refused(*options: str) -> str:
    done = subprocess.run(collect(*options), capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_another_number_of_partitions_is_refused(kafka: Broker, name: str, options: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(name, 2)])[name].result(30)
    text = refused(*options)
    assert "has 2 partitions" in text
    assert f"Expected: {DEFAULT_LANES}" in text


def test_a_second_collector_on_the_same_positions_is_refused(name: str, options: list[str], tmp_path: Path) -> None:
    with running(collect(*options)) as process:
        wait_until(lambda: (tmp_path / "positions" / "lock").exists(), "the lock")
        wait_until(lambda: (tmp_path / "positions" / "lock").read_text().strip() == str(process.pid), "its owner")
        assert f"process {process.pid}" in refused(*options)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "nothing to read"),
        (("--request-log", "x.log"), "nowhere to send"),
        (("--request-log", "x.log", "--events-bootstrap-server", "127.0.0.1:1"), "time zone of the logs is not given"),
        (
            ("--request-log", "x.log", "--events-bootstrap-server", "127.0.0.1:1", "--log-timezone", "Mars"),
            "'Mars' is not known",
        ),
        (("--request-log", "x.log", "--metrics-port", "70000"), "metrics_port"),
    ],
)
def test_settings_that_contradict_are_refused_with_a_sentence(options: tuple[str, ...], expected: str) -> None:
    assert expected in refused(*options)


def test_the_environment_is_read_and_unknown_names_in_it_are_not(tmp_path: Path) -> None:
    environment = {**os.environ, "KARDIA_COLLECT_TOPIC": ""}
    done = subprocess.run(
        collect("--request-log", "x.log"), capture_output=True, text=True, check=False, timeout=240, env=environment
    )
    assert done.returncode == 2
    assert "topic" in done.stderr


def test_a_topic_that_was_made_again_meanwhile_is_told(
    kafka: Broker, name: str, options: list[str], tmp_path: Path
) -> None:
    """What the topic before had acknowledged is lost with it, unless the job had read it: both compare its id."""
    log = Log(tmp_path / "kafka-request.log")
    for made, count in enumerate((50, 30)):
        log.write(count)
        if made:
            kafka.delete_topic(name)
            kafka.create_topic(name, DEFAULT_LANES)
        with running(collect(*options)) as process:
            wait_until(
                lambda: name in AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics, name
            )
            topic = Topic(kafka.bootstrap, name)
            wait_until(lambda: len(topic.members()) == count, "the lines that were written last")  # noqa: B023
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
            topic.close()
        assert (f"the topic {name} was deleted and made again" in said.decode()) == bool(made)
