"""The one partition of __consumer_offsets that the Java coordinator writes to and is loaded from, held in memory.

An append is committed at once: the high watermark follows in the same call, or, where appends take time, when it is
told to.
"""

from __future__ import annotations

from typing import Any

import jpype

from tests.truth.oracle.jvm import either, jclass

_RUNTIME = "org.apache.kafka.coordinator.common.runtime."


class JavaLog:
    """Offers the runtime its PartitionWriter and its CoordinatorLoader."""

    def __init__(self, partition: Any, *, holds: bool = False) -> None:
        """An empty log. `holds`: what is appended is committed by `store`."""
        self._partition = partition
        self._holds = holds
        self._end = 0
        self._batches: list[tuple[int, Any]] = []
        self._listeners: list[Any] = []
        self._held: Any = None
        self._future = jclass("java.util.concurrent.CompletableFuture")
        self._guard = jclass("org.apache.kafka.storage.internals.log.VerificationGuard")
        self._serde = jclass("org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde")()
        self._config = jclass("org.apache.kafka.storage.internals.log.LogConfig")(jclass("java.util.HashMap")())
        self._buffer = jclass("java.nio.ByteBuffer")
        self._records = either(
            "org.apache.kafka.common.record.internal.MemoryRecords", "org.apache.kafka.common.record.MemoryRecords"
        )
        self._control = either(
            "org.apache.kafka.common.record.internal.ControlRecordType",
            "org.apache.kafka.common.record.ControlRecordType",
        )
        results = jclass("org.apache.kafka.common.requests.TransactionResult")
        self._result = {"COMMIT": results.COMMIT, "ABORT": results.ABORT}
        self.writer = jpype.JProxy(
            _RUNTIME + "PartitionWriter",
            dict={
                "registerListener": lambda _, listener: self._listeners.append(listener),
                "deregisterListener": self._deregister,
                "config": lambda _: self._config,
                "append": self._append,
                "maybeStartTransactionVerification": lambda *_: self._future.completedFuture(self._guard()),
            },
        )
        self.loader = jpype.JProxy(_RUNTIME + "CoordinatorLoader", dict={"load": self._load, "close": lambda: None})

    def hold_load(self) -> Any:
        """Let the next load end when the future that is returned is completed, with None."""
        self._held = self._future()
        return self._held

    def hold(self) -> None:
        """From now on what is appended is committed by `store`."""
        self._holds = True

    def store(self) -> None:
        """Everything is committed that was appended."""
        for listener in self._listeners:
            listener.onHighWatermarkUpdated(self._partition, self._end)

    def wipe(self) -> None:
        """Forget all records."""
        self._end = 0
        self._batches.clear()

    def _deregister(self, _partition: Any, listener: Any) -> None:
        self._listeners = [kept for kept in self._listeners if not kept.equals(listener)]

    def _append(self, _partition: Any, _guard: Any, records: Any, *_version: Any) -> int:
        start = self._end
        # The runtime uses its buffer again: keep the bytes.
        kept = self._buffer.allocate(records.sizeInBytes())
        kept.put(records.buffer())
        self._batches.append((start, kept))
        self._end += int(records.lastBatch().get().lastOffset()) + 1
        if not self._holds:
            self.store()
        return self._end

    def _load(self, _partition: Any, playback: Any) -> Any:
        for start, kept in self._batches:
            kept.rewind()
            for batch in self._records.readableRecords(kept).batches():
                if batch.isControlBatch():
                    result = self._result[str(self._control.parse(batch.iterator().next().key()))]
                    playback.replayEndTransactionMarker(batch.producerId(), batch.producerEpoch(), result)
                    continue
                for record in batch:
                    known = self._serde.deserialize(record.key(), record.value())
                    offset = start + int(record.offset())
                    playback.replay(offset, batch.producerId(), batch.producerEpoch(), known)
        if self._batches:
            playback.updateLastWrittenOffset(jpype.JLong(self._end))
            playback.updateLastCommittedOffset(jpype.JLong(self._end))
        summary = jclass(_RUNTIME + "CoordinatorLoader$LoadSummary")(0, 0, 0, 0, 0)
        held, self._held = self._held, None
        return (held or self._future.completedFuture(None)).thenApply(_always(summary))


def _always(value: Any) -> Any:
    return jpype.JProxy("java.util.function.Function", dict={"apply": lambda _: value})
