"""Lines of the Kafka client library, with a time that people can read: the library's own are stamped in epoch seconds.

Every client is given `CLIENT_LOG`; it writes to standard error. A client hands its lines over while it is polled. While
a broker is down each says so ten times a second: of one kind and client so many a minute are written (`bounded_log`).
"""

from __future__ import annotations

import logging
import time

from ingest.clients.bounded_log import Bounded

NAME = "kafka client"

KIND_VALUES = 2
"""Of what the library gives with each line the first two are the kind of it (FAIL, METADATAUPDATE) and the client."""

LINE = "%(asctime)s.%(msecs)03dZ %(name)s: %(levelname)s %(message)s"
SECONDS = "%Y-%m-%dT%H:%M:%S"


class _Lines(logging.Formatter):
    """`2026-11-22T10:41:58.559Z kafka client: ERROR FAIL […]: …`, in UTC; nothing in it acts on a terminal."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


class _NotFatal(logging.Filter):
    """Leaves out what ends a client: whoever has it gets the error, and says it in a sentence of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and record.args[:1] == ("FATAL",))


def _made() -> logging.Logger:
    logger = logging.getLogger(NAME)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Lines(LINE, SECONDS))
        handler.addFilter(_NotFatal())
        handler.addFilter(Bounded(values=KIND_VALUES))
        logger.addHandler(handler)
        logger.propagate = False
    return logger


CLIENT_LOG = _made()
"""For the keyword `logger` of `confluent_kafka` clients."""


class _Quiet:
    """Takes lines and drops them."""

    def log(self, *_: object, **__: object) -> None:
        """Drop the line."""


QUIET = _Quiet()
"""For clients whose errors become a sentence of ours: their own lines would stand beside it."""
