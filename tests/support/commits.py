"""Commits to a broker that has just come up: its coordinator may be named before it has become one."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

WITHIN_S = 60.0
"""How long a coordinator may take to be there."""

NOT_YET = (
    *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR),
    *(KafkaError._WAIT_COORD, KafkaError._TIMED_OUT),
)
"""What a commit is answered until its coordinator is there: on a fresh broker the first one makes the topic."""


def is_not_yet(error: BaseException) -> bool:
    """Whether the same commit may succeed later."""
    return isinstance(error, KafkaException) and error.args[0].code() in NOT_YET


def commit(consumer: Consumer, place: TopicPartition) -> None:
    """Commit an offset. Raises KafkaException when it is refused, or when there is no coordinator within `WITHIN_S`."""
    for attempt in Retrying(
        retry=retry_if_exception(is_not_yet), stop=stop_after_delay(WITHIN_S), wait=wait_fixed(0.1), reraise=True
    ):
        with attempt:
            consumer.commit(offsets=[place], asynchronous=False)
