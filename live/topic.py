"""The lanes fed from a topic that collectors on other hosts send to, in place of logs of this machine.

Records are taken with the offsets that they have there, so that the lanes find by themselves what the topic lost, as in
the job; a batch holds what was taken since the one before. A topic that was deleted and made again has another id: it
is read from its beginning, and each lane tells a gap before it (`spark_jobs.lane`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from ingest.clients.log import CLIENT_LOG
from ingest.ports import Clock
from ingest.tail.positions import Positions
from ingest.wire.batches import CLUSTER_HEADER, FORMAT_HEADER
from ingest.wire.topic_id import UNKNOWN, TopicWatch, topic_id
from spark_jobs.errors import TopicError
from spark_jobs.lane import Record
from spark_jobs.topic import lanes_of

RECORDS = 500
"""Records that are stepped at once, at most."""

REST_S = 0.25
"""Longest pause without a record: an ordered end, and what is due, wait no longer."""

TIMEOUT_S = 30.0

CONSUMER: Mapping[str, str | int | bool] = {
    "group.id": "kardia-live",  # never used: partitions are assigned, and nothing is committed
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "queued.max.messages.kbytes": 16_384,
    "fetch.message.max.bytes": 2 << 20,
}


class Where(NamedTuple):
    """The topic, and the brokers that have it."""

    bootstrap: str
    topic: str
    client: Mapping[str, str]

    def lanes(self) -> int:
        """Partitions of the topic. Raises `JobError` when it cannot be read."""
        return lanes_of(self.bootstrap, self.topic, self.client)


class Taker(Protocol):
    """Lanes that are fed, as `live.engine.Engine` has them."""

    directory: Path
    positions: Positions

    @property
    def save_ms(self) -> float:
        """So long after it was saved it is saved again."""

    def next_offsets(self) -> list[int]:
        """Of each lane the offset after the last record that it took; below 0 before the first of a topic."""

    def take(self, records: Mapping[int, Sequence[Record]]) -> None:
        """Step some lanes, each with its records."""

    def begin_anew(self) -> None:
        """The topic was made again."""

    def save(self, positions: Positions) -> None:
        """Write what was taken."""


class FromTopic:
    """Records of the topic, taken by the lanes of one that keeps them."""

    def __init__(self, where: Where, engine: Taker, clock: Clock, say: Callable[[str], None]) -> None:
        """Read on where the lanes are."""
        self._where, self._engine, self._clock, self._say = where, engine, clock, say
        own: dict[str, str | int | float | bool] = {**where.client, "bootstrap.servers": where.bootstrap}
        self._consumer = Consumer({**own, **CONSUMER}, logger=CLIENT_LOG)
        admin = AdminClient(own, logger=CLIENT_LOG)
        now = topic_id(admin, where.topic, TIMEOUT_S)
        self._watch = TopicWatch(admin, where.topic, now)
        known = engine.positions.topic_id
        is_other = UNKNOWN not in (known, now) and known != now
        engine.positions.topic_id = now or known
        self._dirty = is_other
        if is_other:
            self._begin_anew()
        else:
            self._assign(engine.next_offsets())
        self._waiting: list[Message] = []
        self._saved_s = clock.monotonic_s()
        self._save_failed = False

    def step(self) -> bool:
        """One round; True when there may be more at once."""
        if not self._save_failed:
            messages = [*self._waiting, *self._consumer.consume(RECORDS, 0)]
            self._waiting = []
            self._take(messages)
            if self._watch.changed():
                self._engine.positions.topic_id = self._watch.known
                self._begin_anew()
        else:
            messages = []
        if self._dirty and (self._clock.monotonic_s() - self._saved_s) * 1000 >= self._engine.save_ms:
            self._save()
        return bool(messages)

    def rest(self) -> None:
        """Wait for a record, a little."""
        message = self._consumer.poll(REST_S)
        if message is not None:
            self._waiting.append(message)

    def stop(self) -> bool:
        """Write what was taken. True when it is on the disk."""
        if self._dirty:
            self._save()
        return not self._dirty

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def _take(self, messages: list[Message]) -> None:
        records: dict[int, list[Record]] = {}
        for message in messages:
            error = message.error()
            if error is not None:
                self._on_error(error)
                continue
            records.setdefault(message.partition() or 0, []).append(_record(message))
        if records:
            self._engine.take(records)
            self._dirty = True

    def _on_error(self, error: KafkaError) -> None:
        """What is gone is passed over, and the lane tells of it. All else the client tries again by itself."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._assign(self._engine.next_offsets())
        elif error.fatal():
            raise TopicError(
                f"{self._where.topic} cannot be read: {error.str()}",
                self._where.bootstrap,
                "a topic that this client may read",
                "look at the brokers and the client's rights, then start again",
            )

    def _assign(self, offsets: list[int]) -> None:
        """Read each partition from the offset that its lane is at, or from the first that there is behind it."""
        assigned = []
        for number, offset in enumerate(offsets):
            partition = TopicPartition(self._where.topic, number, max(offset, 0))
            try:
                begin, end = self._consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
            except KafkaException as error:
                raise TopicError(
                    f"the offsets of {self._where.topic} cannot be read: {error.args[0].str()}",
                    self._where.bootstrap,
                    "a reachable broker that lets this client read the topic",
                    "check --events-bootstrap-server, the network and the permissions",
                ) from error
            if end < partition.offset:
                raise TopicError(
                    f"partition {number} of {self._where.topic} ends at {end}, but {offset} has been read: its brokers "
                    "have lost records that they had acknowledged",
                    self._where.bootstrap,
                    "the records that were read; offsets only grow",
                    "see whether a replica that was behind became the leader; then give another --tables",
                )
            if begin > partition.offset and offset >= 0:
                self._on_loss(number, offset, begin)
            partition.offset = max(begin, partition.offset)
            assigned.append(partition)
        self._consumer.assign(assigned)

    def _on_loss(self, number: int, offset: int, begin: int) -> None:
        """Read on from the first record that there is."""
        self._say(
            f"partition {number} of {self._where.topic} has lost the offsets {offset} to {begin - 1} before they were "
            "read: retention or a deletion removed them. The groups of this lane are unknown across the gap. Next: "
            "keep the topic longer than this process is ever away"
        )

    def _begin_anew(self) -> None:
        self._say(
            f"{self._where.topic} was deleted and made again: the new one is read from its beginning; what the old one "
            "still held is lost, and the groups are unknown across the gap. Next: nothing, if that was wanted"
        )
        self._engine.begin_anew()
        self._assign(self._engine.next_offsets())
        self._dirty = True

    def _save(self) -> None:
        """Write a batch. A full disk stops the reading, not the process: told once, tried each time it is due."""
        self._saved_s = self._clock.monotonic_s()
        try:
            self._engine.save(self._engine.positions)
        except OSError as error:
            if not self._save_failed:
                self._say(
                    f"a batch cannot be written: {error.strerror or error} ({self._engine.directory}). Expected: room "
                    "and the right to write. Next: make room; nothing more is read until then, nothing is lost"
                )
            self._save_failed = True
            return
        self._save_failed = self._dirty = False


def _record(message: Any) -> Record:
    """A message without an error as the lanes take it. Of several headers with one key the first counts, as in the
    job."""
    headers: dict[str, bytes] = {}
    for key, said in message.headers() or ():
        headers.setdefault(key, said)
    _, at_ms = message.timestamp()
    return Record(message.offset(), at_ms, headers.get(FORMAT_HEADER), message.value(), headers.get(CLUSTER_HEADER))
