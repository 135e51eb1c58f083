"""Rung 1 on a real broker: groups sampled by the admin API while a small story goes on, and the same story read from
everything else that the broker writes.

Goal: what samples say holds whatever a higher rung says (each bound has the truth in it, nothing is exact, nobody is
invented), samples add nothing beside higher rungs, and a recorded file says what was said live. Members are processes
of their own: one stays, one leaves, one is killed.
"""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from demo.broker import Broker
from ingest.admin.sampler import Sampler
from ingest.admin.samples import is_sample, sample_line
from ingest.offsets.capture import Capture
from ingest.wire.batches import decode_batch
from kardia.events import DEFAULT_LANES, Event, Kind
from kardia.observe import ObserverSettings
from kardia.tables import TABLES, Row
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay
from stores import delta
from tests.support.stories import observe, standing

pytestmark = pytest.mark.slow

PATIENCE_S = 240.0
SESSION_MS = 15_000
"""Long enough that a machine with much else to do evicts nobody but him who was killed."""
NEAR_MS = 50
"""A stamp of the broker is cut to 1 ms, and a starved machine writes it late."""

MEMBER = f"""
import signal, sys
from confluent_kafka import Consumer
bootstrap, group, name, topic = sys.argv[1:]
own = {{"client.id": name, "session.timeout.ms": {SESSION_MS}, "heartbeat.interval.ms": 1000}}
consumer = Consumer({{"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0, **own}})
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
consumer.subscribe([topic])
while not over:
    consumer.poll(0.1)
consumer.close()
"""


def until(condition: Callable[[], Any], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


@contextmanager
def collecting(bootstrap: str, topic: str, folder: Path) -> Iterator[None]:
    """`kardia collect` with the admin API alone."""
    words = ("collect", "--admin", "--no-offsets", "--admin-every-s", "1", "--topic", topic)
    with (folder / "collect.log").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *words, "--bootstrap-server", bootstrap, "--positions", str(folder)],
            stderr=said,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, (folder / "collect.log").read_text()


def sent(bootstrap: str, topic: str) -> list[list[Event]]:
    """Events of the topic, by lane."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, lane, 0) for lane in range(DEFAULT_LANES)])
    lanes: list[list[Event]] = [[] for _ in range(DEFAULT_LANES)]
    ended: set[int] = set()
    while len(ended) < DEFAULT_LANES:
        message = consumer.poll(10)
        assert message is not None, "the topic can be read"
        partition = message.partition()
        assert partition is not None
        if message.error() is not None:
            ended.add(partition)
        else:
            lanes[partition] += decode_batch(message.value() or b"")
    consumer.close()
    return lanes


def is_sent(bootstrap: str, topic: str, group: str, state: str | None) -> bool:
    """Whether the collector has said that a group is in a state; group "" and None: that it has sampled all once."""
    return any(
        event.kind == Kind.GROUP_SAMPLE and event.group_id == group and (event.detail or {}).get("state") == state
        for lane in sent(bootstrap, topic)
        for event in lane
    )


def play(kafka: Broker, group: str, topic: str, sampler: Sampler, file: BinaryIO, is_known: Callable[[], bool]) -> None:
    """Three members come one after the other, the second when somebody else knows of the group too; one leaves, one is
    killed and expires."""
    seen: dict[str, tuple[str, int]] = {}

    def is_seen(state: str, count: int) -> bool:
        for sample in sampler.take():
            file.write(sample_line(sample))
            if sample.answer is not None:
                seen[sample.answer.group] = (sample.answer.state, len(sample.answer.members))
        return seen.get(group) == (state, count)

    def start(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", MEMBER, kafka.bootstrap, group, name, topic])

    members = []
    try:
        for number, name in enumerate(("stays", "leaves", "dies"), 1):
            members.append(start(name))
            until(lambda number=number: is_seen("Stable", number), f"{name} is a member")  # type: ignore[misc]
            until(is_known, "the collector has sampled the group")
        members[1].terminate()
        until(lambda: is_seen("Stable", 2), "it has left")
        members[2].kill()
        until(lambda: is_seen("Stable", 1), "it has expired")
        members[0].terminate()
        until(lambda: is_seen("Empty", 0), "all are gone")
    finally:
        for member in members:
            member.kill()
            member.wait()


def rows_of(tables: Path, group: str) -> dict[str, list[dict[str, Any]]]:
    """Standing rows of the group, without what depends on when they were written."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table in ("members", "rebalances", "transitions"):
        rows = delta.opened(tables / table).to_pyarrow_table().to_pylist() if (tables / table).exists() else []
        columns = [column.name for column in TABLES[table].columns]
        said = standing(table, [tuple(row[name] for name in columns) for row in rows])
        found[table] = sorted(
            (
                {key: value for key, value in row.items() if key != "batch_id"}
                for row in said
                if row["group_id"] == group
            ),
            key=repr,
        )
    return found


class Story(dict[str, Any]):
    """Rows of a group by what they are made of; made when they are asked for."""

    def __init__(self, group: str, folder: Path, inputs: dict[str, Inputs], live: dict[str, list[Row]]) -> None:
        self.group, self._folder, self._inputs = group, folder, inputs
        self["live"] = {
            table: [row for row in standing(table, live[table]) if row["group_id"] == group]
            for table in ("members", "rebalances", "transitions")
        }

    def __missing__(self, name: str) -> dict[str, list[dict[str, Any]]]:
        tables = self._folder / name.replace(" ", "-")
        replay(self._inputs[name], tables, ObserverFactory(ObserverSettings("c")), workers=1)
        self[name] = rows_of(tables, self.group)
        return dict(self[name])


@pytest.fixture(scope="module")
def story(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """What everybody has of the story."""
    folder = tmp_path_factory.mktemp("sampled")
    group, topic = f"sampled-{uuid4().hex[:8]}", f"orders-{uuid4().hex[:8]}"
    kafka.create_topic(topic, 6)
    samples, offsets, events = folder / "samples.jsonl", folder / "offsets.jsonl", f"events-{uuid4().hex[:8]}"
    sampler = Sampler(kafka.bootstrap, {}, print, every_s=0.2)
    try:
        with samples.open("wb") as file, collecting(kafka.bootstrap, events, folder):
            until(lambda: is_sent(kafka.bootstrap, events, "", None), "the collector samples")
            play(kafka, group, topic, sampler, file, lambda: is_sent(kafka.bootstrap, events, group, "Stable"))
            until(lambda: is_sent(kafka.bootstrap, events, group, "Empty"), "the collector has seen the end")
    finally:
        sampler.close()
    with Capture(kafka.bootstrap, offsets, {}) as copy:
        for _ in copy.run():
            pass
    requests, server = [kafka.request_log], [kafka.server_log]
    inputs = {
        "samples": Inputs(files=[samples]),
        "server": Inputs(server_logs=server),
        "server and samples": Inputs(server_logs=server, files=[samples]),
        "records": Inputs(offsets=[offsets]),
        "records and samples": Inputs(offsets=[offsets], files=[samples]),
        "all": Inputs(requests, server, [offsets]),
        "all and samples": Inputs(requests, server, [offsets], files=[samples]),
    }
    return Story(group, folder, inputs, observe(tuple(map(tuple, sent(kafka.bootstrap, events)))))


def within(at_ms: int, row: dict[str, Any], begin: str) -> bool:
    """Whether an instant lies between the bounds that a row says."""
    return bool(row[begin] - NEAR_MS <= at_ms <= row[begin] + row["at_bound_ms"] + NEAR_MS)


@pytest.mark.parametrize("source", [pytest.param("samples", marks=pytest.mark.long), "live"])
def test_what_samples_say_holds_by_everything_else_that_the_broker_wrote(story: Story, source: str) -> None:
    said, truth = story[source], {row["member_id"]: row for row in story["all"]["members"]}
    assert {row["client_id"] for row in said["members"]} == {"stays", "leaves", "dies"}
    assert [row["end_cause"] for row in truth.values() if row["client_id"] == "dies"] == ["session_expired"]
    assert len(said["members"]) == 3, "one life each"
    for row in said["members"]:
        true = truth[row["member_id"]]
        assert (row["end_cause"], row["certainty"]) == ("unknown", "unknown")
        assert within(true["ended_at_ms"], row, "ended_at_ms"), (row, true)
        assert (row["client_id"], row["client_host"]) == (true["client_id"], true["client_host"])
    began = {row["member_id"]: row for row in said["transitions"] if row["to_state"] == "Member"}
    for member_id, row in began.items():
        assert within(truth[member_id]["joined_at_ms"], row, "at_ms"), (row, truth[member_id])
    assert len(began) >= 2, "who came while it was sampled came between two samples"
    assert {row["certainty"] for row in said["transitions"]} <= {"inferred", "unknown"}
    assert not said["rebalances"]
    states = [
        row["to_state"] for row in sorted(said["transitions"], key=lambda row: row["at_ms"]) if row["entity"] == "group"
    ]
    assert states[-1] == "Empty"
    assert "Stable" in states


@pytest.mark.long
@pytest.mark.parametrize("beside", ["records", "all"])
def test_beside_records_and_requests_samples_add_and_change_nothing(story: Story, beside: str) -> None:
    assert story[f"{beside} and samples"] == story[beside]


@pytest.mark.long
def test_beside_sentences_samples_name_who_is_a_member_and_what_was_told_stands(story: Story) -> None:
    both, alone = story["server and samples"], story["server"]
    told = {row["member_id"]: row for row in alone["members"] if row["certainty"] == "exact"}
    now = {row["member_id"]: row for row in both["members"]}
    assert len(now) == len(both["members"]) == 3, "no life twice"
    assert told, "server.log tells of the leave and of the eviction"
    for member_id, row in told.items():
        other = now[member_id]
        same = ("ended_at_ms", "end_cause", "certainty", "at_bound_ms")
        assert [other[name] for name in same] == [row[name] for name in same]
    assert {row["client_id"] for row in both["members"]} == {"stays", "leaves", "dies"}
    assert [row["started_at_ms"] for row in both["rebalances"]] == [row["started_at_ms"] for row in alone["rebalances"]]


@pytest.mark.long
def test_a_capture_of_the_admin_api_is_known_by_its_content_and_ends_in_order(
    kafka: Broker, story: Story, tmp_path: Path
) -> None:
    out = tmp_path / "samples.jsonl.gz"
    words = ("capture", "--admin", "--for-s", "3", "--admin-every-s", "1", "--out", str(out))
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *words, "--bootstrap-server", kafka.bootstrap],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert " samples in " in done.stderr
    assert all(map(is_sample, gzip.decompress(out.read_bytes()).splitlines()))
    assert not list(tmp_path.glob("*.part"))
    replay(Inputs(files=[out]), tmp_path / "tables", ObserverFactory(ObserverSettings("c")), workers=1)
    said = rows_of(tmp_path / "tables", story.group)
    assert [row["to_state"] for row in said["transitions"]] == ["Empty"]
