"""`__consumer_offsets` as a source: every partition from its beginning, then what comes.

`assign()`, so no group is joined and nothing is committed; `read_uncommitted`, because an open transaction would hide
a whole partition's news. From the beginning the topic gives the groups as they are now (it is compacted), which is how
Kardia knows members that joined before the request log was switched on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ingest.clients.log import CLIENT_LOG
from ingest.errors import AwayError, SettingsError
from ingest.metrics import Metrics
from ingest.offsets.complete_to import UNKNOWN, Ends
from ingest.offsets.records import record_event
from ingest.security.reach import connect, made
from kardia.events import Event

TOPIC = "__consumer_offsets"

BATCH = 2_000
"""Records taken at once."""

MARGIN_MS = 1_000.0
"""A record is here at the latest so long after its append while the connection is well: fetches return within
`fetch.wait.max.ms` (500 ms below). Complete-to stays so far behind what the ends of the partitions say."""

TROUBLE_MS = 10_000.0
"""After an error of the connection nothing is said to be complete for so long."""

CONSUMER: dict[str, Any] = {
    "client.id": "kardia-collector",
    "group.id": "kardia-collector",  # a word the library wants; assign() joins no group
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_uncommitted",
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "allow.auto.create.topics": False,
    # These records confirm what the request log says; they are in no hurry. Each fetch lists all fifty partitions in
    # the broker's request log, so few and large ones are asked for.
    "fetch.wait.max.ms": 500,
    "fetch.min.bytes": 64 * 1024,
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.queue.backoff.ms": 100,  # what a full queue adds to the age of what is known of the ends
}


class OffsetsSource:
    """Reads the offsets topic."""

    def __init__(
        self,
        bootstrap: str,
        saved: Mapping[int, int],
        metrics: Metrics,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`saved`: next offset by partition, from the positions; partitions without one are read from the beginning."""
        self._bootstrap = bootstrap
        self._metrics = metrics
        self._next: dict[int, int] = dict(saved)
        self._ends: Ends | None = None
        """None while the topic is not there."""
        self._looked_ms = 0.0
        self._trouble_until_ms = 0.0
        self._wall_ms = 0.0
        self._complete_to_ms = 0.0
        self.bootstrapped = False
        own = {**(settings or {}), **CONSUMER, "bootstrap.servers": bootstrap, "error_cb": self._troubled}
        self._consumer: Consumer = made(Consumer, own, logger=CLIENT_LOG)

    def poll(self, wall_ms: float) -> list[Event]:
        """Events that have come since the last call."""
        self._wall_ms = wall_ms
        if self._ends is None:
            self._assign(wall_ms)
            return []
        events: list[Event] = []
        grown: set[int] = set()
        messages = self._consumer.consume(BATCH, 0.0 if self.bootstrapped else 0.05)
        for message in messages:
            error = message.error()
            partition, offset = message.partition(), message.offset()
            if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # of the group whose name the library wants: it is not joined, and no right to it is needed
            if partition is None or offset is None:
                self._troubled()
            elif error is None:
                grown.add(partition)
                self._next[partition] = offset + 1
                event = record_event(partition, offset, message.timestamp()[1], message.key(), message.value())
                if event is None:
                    self._metrics.unknown_records.inc()
                else:
                    events.append(event)
            elif error.code() == KafkaError._PARTITION_EOF:
                grown.discard(partition)
                self._ends.reached(partition, wall_ms)
                self._next.setdefault(partition, offset)
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise _no_right(error.str(), self._bootstrap)
            else:
                self._troubled()
        is_all = len(messages) < BATCH  # else more of what was fetched waits to be taken, and fetching may pause
        for partition in grown:
            high = self._high(partition) if is_all else UNKNOWN
            self._ends.read(partition, self._next[partition], high, wall_ms)
        self.bootstrapped = self.bootstrapped or self._ends.all_were_reached
        if is_all and self.bootstrapped and wall_ms >= self._trouble_until_ms:
            self._complete_to_ms = max(self._complete_to_ms, self._ends.read_to_ms(wall_ms) - MARGIN_MS)
        return events

    def _high(self, partition: int) -> int:
        """High watermark as the latest fetch said it; asks no broker."""
        found = self._consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), cached=True)
        return UNKNOWN if found is None else int(found[1])

    def _assign(self, wall_ms: float) -> None:
        """Take all partitions. On a fresh cluster the topic appears with the first group: look again every second."""
        if wall_ms - self._looked_ms < 1_000:
            return
        self._looked_ms = wall_ms
        try:
            found = self._consumer.list_topics(TOPIC, timeout=5).topics[TOPIC]
        except KafkaException as error:
            if error.args[0].code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION):
                raise _no_right(error.args[0].str(), self._bootstrap) from None
            return
        if found.error is not None and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise _no_right(found.error.str(), self._bootstrap)
        if not found.partitions:
            # No group has ever been there, so there is nothing to be known from before.
            self.bootstrapped = True
            return
        self._ends = Ends(found.partitions)
        first = -2  # OFFSET_BEGINNING
        self._consumer.assign([TopicPartition(TOPIC, one, self._next.get(one, first)) for one in found.partitions])

    def _troubled(self, _: object = None) -> None:
        self._metrics.offsets_errors.inc()
        self._trouble_until_ms = self._wall_ms + TROUBLE_MS

    def distrust(self, wall_ms: float) -> None:
        """An end that was reached before a pause of this process, and is told after it, is no end of now."""
        self._trouble_until_ms = wall_ms + TROUBLE_MS

    @property
    def complete_to_ms(self) -> float:
        """Instant up to which all records have been read, 0 while that is not known."""
        return self._complete_to_ms

    @property
    def position(self) -> int:
        """Sum of the next offsets."""
        return sum(self._next.values())

    def positions(self) -> dict[int, int]:
        """Next offset by partition."""
        return dict(self._next)

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


def _no_right(text: str, bootstrap: str) -> SettingsError:
    return SettingsError(
        f"the offsets topic may not be read: {text}",
        f"{TOPIC} at {bootstrap}",
        "DESCRIBE and READ on Topic:__consumer_offsets for this principal",
        "grant them (`kardia doctor` prints the lines), or start with --no-offsets (groups that were there before are "
        "then learned from the log alone)",
    )


def partitions_of_offsets(bootstrap: str, settings: Mapping[str, Any] | None = None) -> int:
    """Partitions of the offsets topic, 0 when it is not there or the brokers do not answer.

    Raises `RefusedError` where they answer and do not take this client.
    """
    try:
        # All topics: asking for one by name makes brokers create it.
        _, answer = connect(bootstrap, settings, 10)
    except AwayError:
        return 0
    found = answer.topics.get(TOPIC)
    return 0 if found is None else len(found.partitions)
