"""The replica manager under the Scala coordinator, made up: appends succeed at once, or when they are told to, and can
be read again at a load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jpype

from tests.truth.oracle.jvm import MadeUp, either, jclass

_CONSUMER = "java.util.function.Consumer"
_SUPPLIER = "java.util.function.Supplier"
_BOTH = "java.util.function.BiConsumer"
_STORAGE = "org.apache.kafka.storage.internals.log."


class ScalaLog:
    """One partition of __consumer_offsets. `replica_manager` is what the coordinator is given."""

    def __init__(self, *, holds: bool = False) -> None:
        """An empty log. `holds`: whether an append has succeeded is said by `store`."""
        self._holds = holds
        self._held: list[tuple[Any, Any, int]] = []
        self.meanwhile: Callable[[], None] | None = None
        """Called once, in the next load."""
        self._end = 0
        self._batches: dict[int, Any] = {}
        self._some = jclass("scala.Some")
        self._nothing = jclass("scala.Option").empty()
        self._long = jclass("java.lang.Long")
        self._tuple = jclass("scala.Tuple2")
        self._buffer = jclass("java.nio.ByteBuffer")
        self._records = jclass("org.apache.kafka.common.record.MemoryRecords")
        self._fetched = either(_STORAGE + "FetchDataInfo", "kafka.server.FetchDataInfo")
        self._offset = either(_STORAGE + "LogOffsetMetadata", "kafka.server.LogOffsetMetadata")
        self._stored = jclass("org.apache.kafka.common.requests.ProduceResponse$PartitionResponse")
        self._errors = jclass("org.apache.kafka.common.protocol.Errors")
        self._none = self._errors.NONE
        self._map = jclass("scala.collection.immutable.Map$Map1")
        self._control = jclass("org.apache.kafka.common.record.ControlRecordType")
        self._marker = jclass("org.apache.kafka.common.record.EndTransactionMarker")
        start = jclass("java.util.concurrent.atomic.AtomicLong")(0)
        log = (
            MadeUp(str(either("kafka.log.UnifiedLog", "kafka.log.Log").class_.getName()))
            .passes("logStartOffset", start, "java.util.concurrent.atomic.AtomicLong", "get")
            .passes(
                "read",
                jpype.JProxy("java.util.function.Function", dict={"apply": self._read}),
                "java.util.function.Function",
                "apply",
                0,
            )
            .make()
        )
        # Tombstones of expired and deleted groups go past the replica manager, straight to the partition.
        partition = (
            MadeUp("kafka.cluster.Partition")
            .passes(
                "appendRecordsToLeader",
                jpype.JProxy(_CONSUMER, dict={"accept": self._keep}),
                _CONSUMER,
                "accept",
                0,
            )
            .make()
        )
        manager = "kafka.server.ReplicaManager"
        # Up to 3.7 appends of the coordinator have a method of their own, and the verification hands on a buffer.
        own_method = hasattr(jclass(manager), "appendForGroup")
        append, entries_at, verified_at = ("appendForGroup", 2, 6) if own_method else ("appendRecords", 4, 5)

        def verify(callback: Any) -> None:  # of transactions; none before 3.6
            guard = jclass(_STORAGE + "VerificationGuard").SENTINEL
            if own_method:
                callback.apply(self._none, jclass("kafka.server.RequestLocal").NoCaching(), guard)
            else:
                callback.apply(self._tuple(self._none, guard))

        self.replica_manager = (
            MadeUp(manager)
            .returns("getMagic", self._some(jclass("java.lang.Byte").valueOf(jpype.JByte(2))))
            .returns("onlinePartition", self._some(partition))
            .returns("nonOfflinePartition", self._some(partition))  # its name up to 2.7
            .returns("getLog", self._some(log))
            .passes(
                "tryCompleteActions",
                jclass("java.util.concurrent.CountDownLatch")(0),
                "java.util.concurrent.CountDownLatch",
                "countDown",
            )
            .passes(
                "getLogEndOffset",
                jpype.JProxy(_SUPPLIER, dict={"get": self._end_offset}),
                _SUPPLIER,
                "get",
            )
            .passes(
                append, jpype.JProxy(_BOTH, dict={"accept": self._append}), _BOTH, "accept", entries_at, entries_at + 1
            )
            .passes(
                "maybeStartTransactionVerificationForPartition",
                jpype.JProxy(_CONSUMER, dict={"accept": verify}),
                _CONSUMER,
                "accept",
                verified_at,
            )
            .make()
        )

    def wipe(self) -> None:
        """Forget all records."""
        self._end = 0
        self._batches.clear()
        self._held.clear()

    def end_transaction(self, producer_id: int, commits: bool) -> None:
        """The marker of a transaction is written."""
        kind = self._control.COMMIT if commits else self._control.ABORT
        marker = self._marker(kind, jpype.JInt(0))
        self._keep(self._records.withEndTransactionMarker(jpype.JLong(producer_id), jpype.JShort(0), marker))

    def _end_offset(self) -> Any:
        """Asked for at the begin of a load."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return self._some(self._long.valueOf(self._end))

    def _append(self, entries: Any, callback: Any) -> None:
        entry = entries.iterator().next()
        start = self._end
        self._keep(entry._2())
        self._held.append((callback, entry._1(), start))
        if not self._holds:
            self.store(0)

    def store(self, error_code: int) -> None:
        """Tell who appended that it is stored, or the error with which it could not be."""
        error = self._errors.forCode(jpype.JShort(error_code))
        held, self._held = self._held, []
        for callback, partition, start in held:
            callback.apply(self._map(partition, self._stored(error, start, -1, 0)))

    def _keep(self, records: Any) -> None:
        kept = self._buffer.allocate(records.sizeInBytes())
        kept.put(records.buffer())
        kept.flip()
        stored = self._records.readableRecords(kept)
        start, end = self._end, self._end
        for batch in stored.batches():
            end += int(batch.lastOffset()) - int(batch.baseOffset()) + 1
            batch.setLastOffset(end - 1)
        self._batches[start] = stored
        self._end = end

    def _read(self, start: Any) -> Any:
        records = self._batches[int(start)]
        if str(self._offset.class_.getName()).startswith("kafka.server."):  # Scala's, before 3.4
            return self._fetched(self._offset(start, -1, 0), records, False, self._nothing)
        return self._fetched(self._offset(start), records)
