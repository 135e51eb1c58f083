"""`kardia live --from-topic`: what collectors of other hosts sent, through a real broker, without a log of its own.

Method: a recorded story as records of a topic. Rows are those of the same records stepped as the job steps them; a
kill, a retention and a topic made again stand between two parts of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from demo.broker import Broker
from ingest.assembly import SystemClock
from ingest.errors import SettingsError
from ingest.metrics import Metrics
from ingest.wire.batches import CLUSTER_HEADER
from live.ahead import Ahead
from live.metrics import LiveMetrics
from live.run import Around, Running, started
from live.settings import LiveSettings
from spark_jobs.errors import CheckpointError, JobError
from spark_jobs.writers import Reached, nothing_happens
from tests.live.living import CLUSTER, Killed
from tests.live.test_same_rows import by_the_job, facts_in
from tests.spark_jobs.support import LANES, Message, produce, rows, story_messages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Reading:
    """A process that reads a topic, and what it said."""

    def __init__(self, kafka: Broker, home: Path, topic: str) -> None:
        self.said: list[str] = []
        self.settings = LiveSettings(
            tables=home / "tables", from_topic=topic, events_bootstrap_server=kafka.bootstrap, cluster=CLUSTER
        )
        self.settings.tables.mkdir(exist_ok=True)

    @contextmanager
    def alive(self, reached: Reached = nothing_happens) -> Iterator[Running]:
        around = Around(SystemClock(), Ahead(), self.said.append, Metrics(), LiveMetrics())
        with started(self.settings, around, reached) as running:
            yield running

    def read(self, ends: Sequence[int], reached: Reached = nothing_happens) -> None:
        """Read until each lane is at its end, and stop in order."""
        with self.alive(reached) as running:
            while running.engine.next_offsets() != list(ends):
                if not running.source.step():
                    running.source.rest()
            assert running.source.stop()
            running.engine.await_tables()


def sent(begin: int = 0, end: int | None = None) -> list[Message]:
    """A part of a story as the collectors of this cluster send it."""
    messages = story_messages(begin=begin, end=end)
    return [
        (lane, value, [(key, CLUSTER.encode() if key == CLUSTER_HEADER else said) for key, said in headers])
        for lane, value, headers in messages
    ]


def ends_of(messages: Sequence[Message]) -> list[int]:
    counts = Counter(lane for lane, _, _ in messages)
    return [counts[lane] for lane in range(LANES)]


def as_sent(messages: Sequence[Message]) -> dict[int, list[bytes]]:
    return {lane: [value or b"" for at, value, _ in messages if at == lane] for lane in range(LANES)}


def gaps_in(tables: Path) -> Counter[int]:
    found = Counter[int]()
    for row in rows(tables, "progress"):
        found[row["lane"]] += row["gaps"]
    return +found


@pytest.mark.parametrize("step", ["file:before", "file:written", "progress:written"])
def test_rows_are_those_of_the_job_whatever_kills_it(kafka: Broker, tmp_path: Path, step: str) -> None:
    topic = f"live.{step.replace(':', '.')}"
    first, second = sent(end=20), sent(begin=20)
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, first)
    reading = Reading(kafka, tmp_path, topic)
    reading.read(ends_of(first))
    produce(kafka.bootstrap, topic, second)

    def kill(at: str, _: int) -> None:
        if at == step:
            raise Killed

    with suppress(Killed):
        reading.read(ends_of([*first, *second]), kill)
        raise AssertionError("it was not killed")
    reading.read(ends_of([*first, *second]))
    assert facts_in(reading.settings.tables) == by_the_job(as_sent([*first, *second]), 7)
    assert gaps_in(reading.settings.tables) == {}
    assert reading.said == []


def test_what_the_topic_lost_is_a_gap_and_is_said(kafka: Broker, tmp_path: Path) -> None:
    topic = "live.lost"
    first, lost, last = (sent(begin=begin, end=end) for begin, end in ((0, 10), (10, 20), (20, None)))
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, first)
    reading = Reading(kafka, tmp_path, topic)
    reading.read(ends_of(first))
    produce(kafka.bootstrap, topic, [*lost, *last])
    to = [TopicPartition(topic, lane, end) for lane, end in enumerate(ends_of([*first, *lost]))]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.delete_records(to).values():
        future.result(60)
    reading.read(ends_of([*first, *lost, *last]))
    assert gaps_in(reading.settings.tables).keys() == {lane for lane in range(LANES) if ends_of(lost)[lane]}
    assert all("before they were read" in text for text in reading.said)
    assert len(reading.said) == sum(count > 0 for count in ends_of(lost))


@pytest.mark.parametrize("running", [False, True], ids=["away", "running"])
def test_a_topic_made_again_is_read_from_its_beginning(kafka: Broker, tmp_path: Path, running: bool) -> None:
    topic = f"live.again.{running}"
    first, second = sent(end=10), sent(begin=10)
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, first)
    reading = Reading(kafka, tmp_path, topic)

    def made_again() -> None:
        kafka.delete_topic(topic)
        kafka.create_topic(topic, LANES)
        produce(kafka.bootstrap, topic, second)

    if running:
        with reading.alive() as (engine, source):
            while engine.next_offsets() != ends_of(first):
                source.step()
            made_again()
            while engine.next_offsets() != ends_of(second) or not reading.said:
                if not source.step():
                    source.rest()
            assert source.stop()
            engine.await_tables()
    else:
        reading.read(ends_of(first))
        made_again()
    reading.read(ends_of(second))
    assert gaps_in(reading.settings.tables).keys() == set(range(LANES))
    (text,) = reading.said
    assert "deleted and made again" in text
    counted = sum(row["events"] + row["duplicates"] for row in rows(reading.settings.tables, "progress"))
    reading.read(ends_of(second))  # nothing is read again
    assert counted == sum(row["events"] + row["duplicates"] for row in rows(reading.settings.tables, "progress"))


def test_refusals(kafka: Broker, tmp_path: Path) -> None:
    reading = Reading(kafka, tmp_path, "live.none")
    with pytest.raises(JobError, match=r"there is no topic live\.none"):
        reading.read([])
    for wrong, sentence in (
        ({"events_bootstrap_server": ""}, "not known where the topic is"),
        ({"request_log": ("kafka-request.log",)}, "both named"),
    ):
        reading.settings = reading.settings.model_copy(update=wrong)
        with pytest.raises(SettingsError, match=sentence):
            reading.read([])
        reading = Reading(kafka, tmp_path, "live.none")
    for topic in ("live.one", "live.other"):
        kafka.create_topic(topic, LANES)
    Reading(kafka, tmp_path, "live.one").read([-1] * LANES)
    with pytest.raises(CheckpointError, match=r"topic is 'live\.other', was 'live\.one'"):
        Reading(kafka, tmp_path, "live.other").read([-1] * LANES)
