"""Who looks for a topic that is not there must not make it: brokers create one that is asked for by name, by their
default, with a number of partitions of their own, and so many lanes a deployment then has for its life."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from demo.broker import Broker
from ingest.offsets.source import TOPIC, partitions_of_offsets
from spark_jobs.errors import TopicError
from spark_jobs.topic import CONSUMER, lanes_of

ABSENT = "nobody-made-this"


@pytest.mark.slow
def test_a_job_that_starts_before_the_collector_makes_no_topic(kafka: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    with pytest.raises(TopicError, match=f"there is no topic {ABSENT}"):
        lanes_of(kafka.bootstrap, ABSENT)
    with pytest.raises(TopicError):
        lanes_of(kafka.bootstrap, ABSENT)
    assert ABSENT not in admin.list_topics(timeout=30).topics
    kafka.create_topic(ABSENT, 5)
    assert lanes_of(kafka.bootstrap, ABSENT) == 5


@pytest.mark.slow
def test_nor_is_the_offsets_topic_made_by_counting_its_partitions(kafka: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    there = admin.list_topics(timeout=30).topics.get(TOPIC)
    assert partitions_of_offsets(kafka.bootstrap) == (len(there.partitions) if there is not None else 0)
    assert (TOPIC in admin.list_topics(timeout=30).topics) == (there is not None)


def test_nor_by_the_client_inside_spark() -> None:
    assert CONSUMER["kafka.allow.auto.create.topics"] == "false"
