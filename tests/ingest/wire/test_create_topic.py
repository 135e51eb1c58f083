"""Brokers that do not answer in time when a topic is to be created: an error with an empty text was all that came."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.wire.producer import _create


def test_brokers_that_do_not_answer_are_told_in_a_sentence() -> None:
    nobody = AdminClient({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
    with pytest.raises(TimeoutError, match="not created the topic orders within 1 s; see whether they are up"):
        _create(nobody, NewTopic("orders", 1), 1.0)
