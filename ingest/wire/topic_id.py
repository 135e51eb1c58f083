"""Which topic it is: a name comes back when a topic is deleted and made again, its id does not (KIP-516).

Offsets begin anew in a topic that was made again, so that a position in the one before says nothing in it: whoever
keeps one keeps the id beside it. Brokers before 2.8 give topics no id.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

LOOK_S = 10.0
"""How often a running program asks."""

UNKNOWN = ""
"""Id where brokers give none, or where the topic is not there."""


def topic_id(admin: AdminClient, topic: str, timeout_s: float) -> str:
    """Id of a topic in hexadecimal digits; `UNKNOWN` where brokers do not tell."""
    try:
        return _id_in(_asked(admin, topic, timeout_s).result(timeout_s))
    except (KafkaException, TimeoutError):
        return UNKNOWN


def _asked(admin: AdminClient, topic: str, timeout_s: float) -> Future[Any]:
    return admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)[topic]


def _id_in(description: Any) -> str:
    found = description.topic_id
    if found is None:
        return UNKNOWN
    high, low = found.get_most_significant_bits(), found.get_least_significant_bits()
    return f"{high % (1 << 64):016x}{low % (1 << 64):016x}" if high or low else UNKNOWN


class TopicWatch:
    """Asks for the id again and again, and never waits for the answer."""

    def __init__(self, admin: AdminClient, topic: str, known: str) -> None:
        """`known`: the id until now."""
        self.known = known
        self._admin = admin
        self._topic = topic
        self._answer: Future[Any] | None = None
        self._due_s = time.monotonic() + LOOK_S

    def changed(self) -> bool:
        """Whether it is another topic since the last call; `known` is its id then."""
        if self._answer is None and time.monotonic() >= self._due_s:
            self._answer = _asked(self._admin, self._topic, LOOK_S)
        if self._answer is None or not self._answer.done():
            return False
        answer, self._answer = self._answer, None
        self._due_s = time.monotonic() + LOOK_S
        try:
            found = _id_in(answer.result())
        except (KafkaException, TimeoutError):
            return False  # away, or not there at the moment: whoever uses it says so
        before, self.known = self.known, found or self.known
        return UNKNOWN not in (before, found) and before != found
