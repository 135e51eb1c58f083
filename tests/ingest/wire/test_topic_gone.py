"""A topic that is deleted while a collector writes to it: brokers make a topic that a producer asks for, with a number
of partitions of their own, before anybody could create it with that of the lanes."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from confluent_kafka.admin import AdminClient

from demo.broker import Broker
from ingest.errors import DeliveryError
from ingest.wire.batches import encode_batch
from ingest.wire.producer import KafkaTopic, ensure_topic
from kardia.events import DEFAULT_LANES
from supervise import process

TOPIC = "gone.events"

ASKS_S = 10.0
"""A producer asks for a topic again whenever a record is refused, and once a second."""


@pytest.mark.slow
def test_a_topic_that_is_deleted_is_not_made_by_who_writes_to_it(kafka: Broker) -> None:
    ensure_topic(kafka.bootstrap, TOPIC, DEFAULT_LANES)
    topic = KafkaTopic(kafka.bootstrap, TOPIC, "demo")
    acknowledged: list[int] = []
    topic.send(0, encode_batch([]), lambda: acknowledged.append(0))

    def is_sent() -> bool:
        topic.poll(0.1)
        return bool(acknowledged)

    process.until(is_sent, 60.0, lambda: "not acknowledged")
    kafka.delete_topic(TOPIC)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    until_s = time.monotonic() + ASKS_S
    with suppress(DeliveryError):  # for good, sooner or later: the collector starts anew, and creates the topic
        while time.monotonic() < until_s:
            topic.send(1, encode_batch([]), lambda: acknowledged.append(1))
            topic.poll(0.1)
            assert TOPIC not in admin.list_topics(timeout=5).topics
    ensure_topic(kafka.bootstrap, TOPIC, DEFAULT_LANES)
    assert len(admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions) == DEFAULT_LANES
