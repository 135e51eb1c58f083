"""Lines of the Kafka client library carry a time that people read."""

from __future__ import annotations

import io
import logging
import re

from confluent_kafka import Producer

from ingest.clients.bounded_log import KEPT
from ingest.clients.log import CLIENT_LOG


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


def test_a_client_whose_broker_is_down_does_not_flood_the_log() -> None:
    """It tries again ten times a second, and each time it says so."""
    handler = logging.StreamHandler(io.StringIO())
    for one in CLIENT_LOG.handlers[0].filters:
        handler.addFilter(one)
    tried = Tried()
    CLIENT_LOG.addHandler(tried)
    CLIENT_LOG.addHandler(handler)
    try:
        producer = Producer({"bootstrap.servers": "127.0.0.1:1"}, logger=CLIENT_LOG)
        while tried.count < 3 * KEPT:
            producer.poll(0.1)
    finally:
        CLIENT_LOG.removeHandler(tried)
        CLIENT_LOG.removeHandler(handler)
    said = handler.stream.getvalue().splitlines()
    assert 0 < len([line for line in said if "FAIL" in line]) <= KEPT


class Tried(logging.Handler):
    """Counts the library's lines about attempts that failed."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "FAIL" in record.getMessage()


def test_nothing_in_a_line_acts_on_a_terminal() -> None:
    record = logging.LogRecord("kafka client", logging.ERROR, "", 0, "a\x1b[31mb\nc", (), None)
    assert "\x1b" not in CLIENT_LOG.handlers[0].format(record)
