"""Copy `__consumer_offsets` into a file, up to the end that it has when the copy begins; or samples of the admin API.

The file appears under its name only when it is complete: an interrupted capture leaves nothing that looks whole.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential

from ingest.admin.sampler import Sampler
from ingest.admin.samples import sample_line
from ingest.clients.log import CLIENT_LOG
from ingest.errors import SettingsError
from ingest.offsets.records import captured_line
from ingest.offsets.source import CONSUMER, TOPIC, partitions_of_offsets
from ingest.security.reach import connect, made
from kardia.events import DEFAULT_OFFSETS_PARTITIONS

_ANSWER_S = 15.0
"""How long a broker may take to answer first."""

_SILENCE_S = 1.0
_MAX_SILENCES = 60
"""A capture that receives nothing for a minute gives up."""

_LED_SOON = frozenset((KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE))
_LEADER_S = 30.0
"""A broker that has just started, or taken a partition over, does not lead it for some seconds."""


def _is_led_soon(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _LED_SOON


class Capture:
    """One copy."""

    def __init__(self, bootstrap: str, out: Path, settings: Mapping[str, Any] | None = None) -> None:
        """`out` is written compressed when its name ends in .gz."""
        self._bootstrap = bootstrap
        self._out = out
        connect(bootstrap, settings, _ANSWER_S)
        own = {**(settings or {}), **CONSUMER, "bootstrap.servers": bootstrap}
        self._consumer: Consumer = made(Consumer, own, logger=CLIENT_LOG)
        self._ends: dict[int, int] = {}
        self.total = 0
        """Offsets to pass. Compacted records and markers are passed without being written."""
        self.written = 0
        """Records written."""

    def __enter__(self) -> Capture:
        """Ask where the partitions end now, and begin at their beginning."""
        try:
            topic = self._consumer.list_topics(TOPIC, timeout=_ANSWER_S).topics[TOPIC]
            if topic.error is not None:
                raise KafkaException(topic.error)
            begins: list[TopicPartition] = []
            for partition in topic.partitions:
                low, high = self._bounds(TopicPartition(TOPIC, partition))
                if high > low:
                    self._ends[partition] = high
                    self.total += high - low
                    begins.append(TopicPartition(TOPIC, partition, low))
            self._begins = {begin.partition: begin.offset for begin in begins}
            self._consumer.assign(begins)
        except KafkaException as error:
            self._consumer.close()
            raise self._unreadable(error.args[0]) from None
        return self

    def _unreadable(self, error: KafkaError) -> SettingsError:
        return SettingsError(
            f"the offsets topic cannot be read: {error.str()}",
            f"{TOPIC} at {self._bootstrap}",
            "brokers that answer and the right to DESCRIBE and READ the topic",
            "check --bootstrap-server and the ACLs; `kardia doctor` prints those that are needed",
        )

    def _bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """First offset of a partition, and the one behind its last."""
        again = Retrying(
            retry=retry_if_exception(_is_led_soon),
            stop=stop_after_delay(_LEADER_S),
            wait=wait_exponential(0.1, max=2.0),
            reraise=True,
        )
        low, high = again(self._consumer.get_watermark_offsets, partition, timeout=15)
        return low, high

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def run(self) -> Iterator[int]:
        """Copy; yields how many offsets have been passed."""
        part = self._out.with_name(self._out.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _created(part, packed=self._out.name.endswith(".gz")) as file:
                yield from self._copy(file)
            part.replace(self._out)
        finally:
            part.unlink(missing_ok=True)

    def _copy(self, file: BinaryIO) -> Iterator[int]:
        at = dict(self._begins)
        silences = 0
        while any(at[partition] < end for partition, end in self._ends.items()):
            messages = self._consumer.consume(5_000, _SILENCE_S)
            silences = 0 if messages else silences + 1
            if silences > _MAX_SILENCES:
                raise SettingsError(
                    f"nothing came for {_MAX_SILENCES * _SILENCE_S:.0f} s",
                    f"{TOPIC} at {self._bootstrap}",
                    "records up to the end of every partition",
                    "check that all brokers that lead its partitions are up",
                )
            for message in messages:
                error = message.error()
                partition, offset = message.partition(), message.offset()
                if partition is None or offset is None:
                    continue
                if error is not None:
                    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        raise self._unreadable(error)
                    if error.code() == KafkaError._PARTITION_EOF:
                        at[partition] = max(at[partition], self._ends[partition])
                    continue
                at[partition] = offset + 1
                if offset < self._ends[partition]:
                    file.write(captured_line(partition, offset, message.timestamp()[1], message.key(), message.value()))
                    self.written += 1
            yield sum(min(at[partition], end) - self._begins[partition] for partition, end in self._ends.items())


def capture_samples(
    bootstrap: str,
    out: Path,
    settings: Mapping[str, Any] | None,
    every_s: float,
    ended: Callable[[], bool],
    say: Callable[[str], None],
) -> int:
    """Write what the admin API answers about groups, until `ended`; how many samples that were
    (`ingest.admin.samples`)."""
    connect(bootstrap, settings, _ANSWER_S)
    partitions = partitions_of_offsets(bootstrap, settings) or DEFAULT_OFFSETS_PARTITIONS
    sampler = Sampler(bootstrap, settings, say, every_s, partitions)
    part = out.with_name(out.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    try:
        with _created(part, packed=out.name.endswith(".gz")) as file:
            is_last = False
            while not is_last:
                is_last = ended()
                if is_last:
                    sampler.close()
                samples = sampler.take()
                file.writelines(map(sample_line, samples))
                written += sum(sample.answer is not None for sample in samples)
        part.replace(out)
    finally:
        sampler.close()
        part.unlink(missing_ok=True)
    return written


def _created(path: Path, *, packed: bool) -> BinaryIO:
    return gzip.open(path, "wb") if packed else path.open("wb")  # type: ignore[return-value]
