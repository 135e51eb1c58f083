"""The topic of events on a real Kafka: an idempotent producer, and the topic itself.

Order and uniqueness within a lane while this process lives are the idempotent producer's; over restarts the ids of
the events do it. A record is retried for ever when the brokers are away (reading pauses meanwhile), and refused for
good only for reasons that waiting does not mend: then the collector ends with a sentence and its positions stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # ConfigResource is re-exported
    AdminClient,
    ConfigResource,
)
from confluent_kafka.cimpl import NewTopic
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from ingest.clients.log import CLIENT_LOG
from ingest.errors import DeliveryError, TopicError
from ingest.security.reach import connect, made
from ingest.wire.batches import CLUSTER_HEADER, FORMAT_HEADER, MAX_BYTES, format_of
from ingest.wire.topic_id import TopicWatch, topic_id

PRODUCER: dict[str, Any] = {
    "enable.idempotence": True,
    "acks": "all",
    # One that somebody has deleted would come back with as many partitions as the brokers give to any topic.
    "allow.auto.create.topics": False,
    "compression.type": "lz4",
    "linger.ms": 5,
    "message.timeout.ms": 0,  # never give up: the loop holds back, and positions wait
    "message.max.bytes": 4 * 1024 * 1024,
    "queue.buffering.max.kbytes": 128 * 1024,
}
"""Settings that the promises rest on; what the user configures is added, these win."""

_NOT_ALLOWED = (KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
"""The first of the idempotent producer that asks for its id, and may write to no topic."""

_CREATE_WAIT_S = 60

_NAMES_NO_FACTOR = (
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.INVALID_REPLICATION_FACTOR,
)
"""Librdkafka's word, or the broker's, where a topic without a replication factor cannot be."""

TOPIC_WAIT_S = 60.0
"""How long a start waits for brokers that are not there yet."""


class KafkaTopic:
    """Sends records to `kardia.events`."""

    def __init__(self, bootstrap: str, topic: str, cluster: str, settings: Mapping[str, Any] | None = None) -> None:
        """Connect in the background; `ensure_topic` is the one that waits."""
        self._topic = topic
        self._bootstrap = bootstrap
        self._settings = dict(settings or {})
        self._cluster = cluster.encode()
        self._refused: list[KafkaError] = []
        self._in_flight = 0
        own = {**(settings or {}), "bootstrap.servers": bootstrap, **PRODUCER, "error_cb": self._error}
        self._producer: Producer = made(Producer, own, logger=CLIENT_LOG)

    def watch(self, known: str) -> TopicWatch:
        """Tells when the topic is made again; `known` is its id where its brokers do not answer."""
        own = {**self._settings, "bootstrap.servers": self._bootstrap}
        admin: AdminClient = made(AdminClient, own, logger=CLIENT_LOG)
        return TopicWatch(admin, self._topic, topic_id(admin, self._topic, TOPIC_WAIT_S) or known)

    @property
    def in_flight(self) -> int:
        """Records sent and not acknowledged."""
        return self._in_flight

    def send(self, lane: int, data: bytes, acknowledged: Callable[[], None]) -> None:
        """Send one record to the partition of its lane."""

        def delivered(error: KafkaError | None, _: Any) -> None:
            self._in_flight -= 1
            if error is None:
                acknowledged()
            else:
                self._refused.append(error)

        self._in_flight += 1
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=data,
                    key=str(lane).encode("ascii"),
                    partition=lane,
                    headers=[(FORMAT_HEADER, format_of(data).encode()), (CLUSTER_HEADER, self._cluster)],
                    on_delivery=delivered,
                )
            except BufferError:
                self._serve(0.1)  # the library's queue is full: wait for acknowledgements
            except KafkaException as error:
                raise self._refusal(error.args[0]) from None
            else:
                return

    def poll(self, timeout_s: float) -> None:
        """Let acknowledgements in."""
        self._serve(timeout_s)
        if self._refused:
            raise self._refusal(self._refused[0])

    def _serve(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:  # what is fatal to the idempotent producer, a missing right for instance
            raise self._refusal(error.args[0]) from None

    def _refusal(self, error: KafkaError) -> DeliveryError:
        if error.code() == KafkaError._FATAL:
            with suppress(KafkaException):
                self._producer.poll(0)  # what is behind it is told to the callback
            error = next((one for one in self._refused if one.code() != KafkaError._FATAL), error)
        if error.code() in _NOT_ALLOWED:
            return DeliveryError(
                "the topic may not be written to by this principal",
                self._topic,
                f"the right Write on Topic:{self._topic}; before 2.8 IdempotentWrite on the cluster as well",
                "grant it (`kardia doctor` prints the line), and start again; positions were not moved",
            )
        return DeliveryError(
            f"the topic refused a record: {error.str()}",
            self._topic,
            f"records of up to {MAX_BYTES} bytes and a little more to be written by this principal",
            "check max.message.bytes of the topic, and that it still exists; positions were not moved",
        )

    def _error(self, error: KafkaError) -> None:
        if error.fatal():
            self._refused.append(error)


def ensure_topic(
    bootstrap: str,
    topic: str,
    lanes: int,
    settings: Mapping[str, Any] | None = None,
    wait_s: float = TOPIC_WAIT_S,
) -> None:
    """Create the topic if it is missing, and refuse it when its number of partitions is not the number of lanes.

    A lane keeps the order of its groups; with another number of partitions a group would change its lane in the
    middle of its life.
    """
    admin, _ = connect(bootstrap, settings, wait_s, "--events-bootstrap-server")
    partitions = _partitions(admin, topic, bootstrap, wait_s)
    if partitions is None:
        try:
            create_topic(admin, topic, lanes)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicError(
                    f"the topic cannot be created: {error.args[0].str()}",
                    f"{topic} at {bootstrap}",
                    "the right to create it, or a topic that is there and that this principal may write to",
                    f"create it by hand with {lanes} partitions, or allow this principal to; `kardia doctor` prints "
                    "the rights that are needed",
                ) from None
        except TimeoutError as error:
            raise TopicError(
                str(error),
                f"{topic} at {bootstrap}",
                f"a topic within {_CREATE_WAIT_S} s",
                f"create it by hand with {lanes} partitions, or start the collector again when the brokers answer",
            ) from None
        partitions = _partitions(admin, topic, bootstrap, wait_s, must_exist=True)
    if partitions != lanes:
        raise TopicError(
            f"the topic has {partitions} partitions",
            f"{topic} at {bootstrap}",
            f"{lanes}, one per lane",
            "use another topic, or drain this one, delete it and let it be made anew",
        )


def create_topic(admin: AdminClient, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """Create a topic with the brokers' own replication factor. Raises KafkaException, also where it exists already, and
    TimeoutError where the brokers do not answer.

    A broker from 2.4 on takes its own factor when none is named (KIP-464); an older one is asked for it.
    """
    try:
        _create(admin, NewTopic(topic, partitions, config=dict(config or {})))
    except KafkaException as error:
        if error.args[0].code() not in _NAMES_NO_FACTOR:
            raise
        _create(admin, NewTopic(topic, partitions, _replication_factor(admin), config=dict(config or {})))


def _create(admin: AdminClient, topic: NewTopic, wait_s: float = _CREATE_WAIT_S) -> None:
    try:
        admin.create_topics([topic])[topic.topic].result(timeout=wait_s)
    except TimeoutError:
        raise TimeoutError(
            f"the brokers have not created the topic {topic.topic} within {wait_s:.0f} s; see whether they are "
            "up, and whether the machine is too busy for them, then start again"
        ) from None


def _replication_factor(admin: AdminClient) -> int:
    """`default.replication.factor` of a broker."""
    brokers = admin.list_topics(timeout=_CREATE_WAIT_S).brokers
    asked = ConfigResource(ConfigResource.Type.BROKER, str(min(brokers)))
    [found] = admin.describe_configs([asked]).values()
    return int(found.result(timeout=_CREATE_WAIT_S)["default.replication.factor"].value)


class _NotYetError(Exception):
    """The brokers do not answer, or the new topic is not known to all of them yet."""


def _partitions(
    admin: AdminClient, topic: str, bootstrap: str, wait_s: float, *, must_exist: bool = False
) -> int | None:
    """Partitions of the topic, None when it does not exist; waits for brokers that are away."""

    def look() -> int | None:
        try:
            # All topics: asking for one by name makes brokers create it, with a number of partitions of their own.
            found = admin.list_topics(timeout=5).topics.get(topic)
        except KafkaException as error:
            raise _NotYetError(str(error.args[0].str())) from None
        if found is not None and found.error is None and found.partitions:
            return len(found.partitions)
        code = None if found is None or found.error is None else found.error.code()
        if code in (None, KafkaError.UNKNOWN_TOPIC_OR_PART) and not must_exist:
            return None
        raise _NotYetError(str(found.error) if found is not None else "topic not there yet")

    try:
        return Retrying(
            wait=wait_exponential(multiplier=0.1, max=2),
            stop=stop_after_delay(wait_s),
            retry=retry_if_exception_type(_NotYetError),
            reraise=True,
        )(look)
    except _NotYetError as error:
        raise TopicError(
            f"the brokers do not tell about the topic: {error}",
            f"{topic} at {bootstrap}",
            f"an answer within {wait_s:.0f} s",
            "check --events-bootstrap-server and that the brokers are up, then start the collector again",
        ) from None
