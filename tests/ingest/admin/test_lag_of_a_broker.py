"""Lag on a real broker, compared with the broker's own numbers: ends by a consumer's watermarks, commits by
`Consumer.committed`.

Goal: what Kardia says of records that a group has not read is what the broker says, whatever happens to topic, group or
collector. Method: one collector, observers and tables in this process; conditions are awaited, never slept for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from demo.broker import Broker
from ingest.admin.partition_ends import LATEST
from tests.support.commits import commit
from tests.support.lagging import Watching

pytestmark = pytest.mark.slow


class Group:
    """A group with a topic of its own, on the real broker; it commits without being a member."""

    def __init__(self, kafka: Broker, partitions: int = 2) -> None:
        self.kafka = kafka
        self.name = f"lag-{uuid4().hex[:8]}"
        self.topic = f"{self.name}-topic"
        kafka.create_topic(self.topic, partitions)
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        self.consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": self.name, "log_level": 0})

    def produce(self, count: int, partition: int = 0) -> None:
        # A new one each time: it knows of partitions that were added.
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        producer.list_topics(self.topic, timeout=30)
        for number in range(count):
            producer.produce(self.topic, str(number).encode(), partition=partition)
        assert producer.flush(60) == 0

    def commit(self, offset: int, partition: int = 0) -> None:
        commit(self.consumer, TopicPartition(self.topic, partition, offset))

    def lag(self, partition: int = 0) -> int:
        """By the broker."""
        place = TopicPartition(self.topic, partition)
        _, high = self.consumer.get_watermark_offsets(place, timeout=30)
        return int(high) - int(self.consumer.committed([place], timeout=30)[0].offset)


@pytest.fixture
def watching(kafka: Broker, tmp_path: Path) -> Iterator[Watching]:
    found = Watching(kafka.bootstrap, tmp_path)
    yield found
    found.stop()


def test_lag_is_the_brokers_and_is_told_by_the_command_line(kafka: Broker, watching: Watching) -> None:
    group = Group(kafka)
    group.produce(10)
    group.produce(4, 1)
    group.commit(3)
    group.commit(4, 1)

    def lags() -> list[int | None]:
        return [row["lag"] for _, row in sorted(watching.latest(group.name).items())]

    watching.until(lambda: lags() == [group.lag(), group.lag(1)] == [7, 0], "both are known")
    group.produce(5)
    watching.until(lambda: lags() == [12, 0], "the end is followed")
    group.commit(15)
    watching.until(lambda: lags() == [group.lag(), 0] == [0, 0], "the commit is followed")
    group.produce(2)
    watching.until(lambda: lags() == [2, 0], "it is behind again")
    row = watching.latest(group.name)[group.topic, 0]
    assert row["behind_from_ms"] <= row["behind_at_ms"] <= row["behind_to_ms"] <= row["at_ms"]
    assert row["behind_to_ms"] - row["behind_from_ms"] < 60_000
    questions = watching.ask()
    found = questions.lag_of(group.name, 100)
    assert [(one["partition"], one["lag"]) for one in found["partitions"]] == [(0, 2), (1, 0)]
    assert found["group"]["lag"] == 2
    assert found["group"]["time_lag_ms"] > 0
    assert group.name in [one["group_id"] for one in questions.lag(1_000)["groups"]]


def test_a_restarted_collector_knows_what_was_committed_once(kafka: Broker, watching: Watching) -> None:
    group = Group(kafka)
    group.produce(6)
    group.commit(2)
    watching.until(lambda: (group.topic, 0) in watching.latest(group.name), "the commit is known")
    watching.until(lambda: watching.latest(group.name)[group.topic, 0]["lag"] == 4, "and the end")
    watching.stop()
    watching.start()
    group.produce(3)
    watching.until(lambda: watching.latest(group.name)[group.topic, 0]["lag"] == 7, "the end is asked for again")


def test_topics_that_grow_are_made_anew_or_deleted(kafka: Broker, watching: Watching) -> None:
    group = Group(kafka, 1)
    group.produce(8)
    group.commit(5)
    watching.until(lambda: (group.topic, 0) in watching.latest(group.name), "the commit is known")
    watching.until(lambda: watching.latest(group.name)[group.topic, 0]["lag"] == 3, "and the end")
    group.admin.create_partitions([NewPartitions(group.topic, 2)])[group.topic].result(30)

    def grown() -> bool:
        return len(group.consumer.list_topics(group.topic, timeout=30).topics[group.topic].partitions) == 2

    watching.until(grown, "the broker has the new partition")
    group.produce(4, 1)
    group.commit(1, 1)
    watching.until(lambda: (group.topic, 1) in watching.latest(group.name), "the new partition is known")
    watching.until(lambda: watching.latest(group.name)[group.topic, 1]["lag"] == 3, "and its end")
    group.admin.delete_topics([group.topic])[group.topic].result(30)
    # The coordinator takes the commits of a deleted topic back.
    watching.until(
        lambda: {row["state"] for row in watching.latest(group.name).values()} == {"gone"}, "its commits are gone"
    )
    assert all(row["lag"] is None for row in watching.latest(group.name).values())


def test_a_commit_beyond_the_end_and_one_before_the_start_are_told_as_that(kafka: Broker, watching: Watching) -> None:
    group = Group(kafka)
    group.produce(10)
    group.produce(10, 1)
    group.commit(50)
    group.commit(2, 1)
    for done in group.admin.delete_records([TopicPartition(group.topic, 1, 6)]).values():
        done.result(30)
    watching.until(lambda: len(watching.latest(group.name)) == 2, "both are known")
    watching.until(
        lambda: watching.latest(group.name)[group.topic, 0]["state"] == "beyond_end", "it has committed too much"
    )
    assert watching.latest(group.name)[group.topic, 0]["lag"] is None
    row = watching.latest(group.name)[group.topic, 1]
    assert (row["state"], row["start_offset"], row["lag"]) == ("below_start", 6, 8)


def test_asking_for_a_topic_that_is_not_there_does_not_make_it(kafka: Broker, watching: Watching) -> None:
    """Brokers make topics that a client asks for by name, by default; a deleted one would come back, empty."""
    group = Group(kafka, 1)
    gone = f"{group.topic}-gone"
    found, errors = watching.ends._listed([(gone, 0), (group.topic, 0), (group.topic, 7)], LATEST)
    assert found == {(group.topic, 0): (0, 0)}
    assert {topic for topic, _ in errors} == {gone, group.topic}
    group.produce(1)
    assert gone not in group.admin.list_topics(timeout=30).topics


def test_a_group_that_is_deleted_takes_its_lag_with_it(kafka: Broker, watching: Watching) -> None:
    group = Group(kafka, 1)
    group.produce(3)
    group.commit(1)
    watching.until(lambda: (group.topic, 0) in watching.latest(group.name), "the commit is known")
    group.consumer.close()
    group.admin.delete_consumer_groups([group.name])[group.name].result(30)
    watching.until(lambda: watching.latest(group.name)[group.topic, 0]["state"] == "gone", "it is gone")
    assert (group.topic, 0) not in watching.ends.committed.wanted()
