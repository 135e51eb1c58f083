"""Lines of the Kafka client library carry a time that people read."""

from __future__ import annotations

import logging
import re

from confluent_kafka import Producer

from ingest.client_log import CLIENT_LOG


def test_a_line_of_the_library_has_its_time_in_utc() -> None:
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(CLIENT_LOG.handlers[0].format(record))

    kept = Kept()
    CLIENT_LOG.addHandler(kept)
    try:
        producer = Producer({"bootstrap.servers": "127.0.0.1:1"}, logger=CLIENT_LOG)
        while not said:
            producer.poll(0.1)
    finally:
        CLIENT_LOG.removeHandler(kept)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z kafka client: \w+ FAIL .*127\.0\.0\.1:1", said[0])


def test_nothing_in_a_line_acts_on_a_terminal() -> None:
    record = logging.LogRecord("kafka client", logging.ERROR, "", 0, "a\x1b[31mb\nc", (), None)
    assert "\x1b" not in CLIENT_LOG.handlers[0].format(record)
