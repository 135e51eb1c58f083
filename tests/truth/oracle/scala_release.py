"""Kafka's Scala coordinator (3.7 to 3.9) as one object in virtual time: the adapter, its coordinator and group manager.

What reaches down into a broker is made up: a replica manager whose appends are answered at once, a log that gives them
back at a load, a scheduler that runs loads and unloads in the same call. The two purgatories share one virtual timer.
The periodic look for expired offsets runs every check interval from the start of a history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jpype

from kardia.coordinator.classic.operations import View
from kardia.coordinator.classic.settings import CoordinatorSettings
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.jvm import MadeUp, either, field, jclass
from tests.truth.oracle.members import member_view
from tests.truth.oracle.scala_log import ScalaLog
from tests.truth.oracle.scala_values import items

_GROUP = "kafka.coordinator.group."
REQUEST_TIMED_OUT = 7
_ATOMIC = "java.util.concurrent.atomic.AtomicLong"


class ScalaRelease:
    """One partition of the Scala coordinator. `service` takes requests; nothing has to be settled."""

    def __init__(self, clock: Clock, settings: CoordinatorSettings) -> None:
        """Build what is used by all histories; the coordinator itself is new in each."""
        self._clock = clock
        self._settings = settings
        self._epoch = 0
        self._loaded = False
        self._armed: dict[tuple[str, int, str], tuple[int, Any]] = {}
        self._instances: dict[str, str | None] = {}
        self.armed_sessions: list[str] = []
        """GROUP-MEMBER of every session timer in the order of arming; the driver empties it."""
        self._log = ScalaLog(holds=settings.appends_take_time)
        self._metrics = jclass("org.apache.kafka.common.metrics.Metrics")()
        self._coordinator: Any = None
        self._offset_config = either("org.apache.kafka.coordinator.group.OffsetConfig", _GROUP + "OffsetConfig")(
            4096,
            5 * 1024 * 1024,
            settings.offsets_retention_ms,
            settings.offsets_retention_check_interval_ms,
            1,
            100 * 1024 * 1024,
            1,
            self._no_compression(),
            5000,
            -1,
        )
        self._manager = self._make_manager()
        field(_GROUP + "GroupMetadataManager", "scheduler").set(self._manager, self._scheduler())
        self._pending = field(_GROUP + "GroupMetadata", "pendingMembers")
        self._kinds = {
            name: (kind, field(_GROUP + name, "group"))
            for name, kind in (
                ("DelayedHeartbeat", "heartbeat"),
                ("DelayedJoin", "join"),
                ("InitialDelayedJoin", "join"),
                *(("DelayedSync", "sync") for _ in range(self.has_sync_timer)),
            )
        }
        self._member = field(_GROUP + "DelayedHeartbeat", "memberId")
        self._purgatory = jclass("kafka.server.DelayedOperationPurgatory")
        self.service: Any = None

    has_sync_timer = True

    def _no_compression(self) -> Any:
        return jclass("org.apache.kafka.common.record.CompressionType").NONE

    def _make_manager(self) -> Any:
        latest = jclass("org.apache.kafka.server.common.MetadataVersion").latestProduction()
        jclass("kafka.server.KafkaRequestHandler").setBypassThreadCheck(True)
        return jclass(_GROUP + "GroupMetadataManager")(
            1, latest, self._offset_config, self._log.replica_manager, self._clock.time, self._metrics
        )

    def _make_coordinator(self, purgatories: list[Any]) -> Any:
        group_config = self._group_config(self._settings.group_max_size)
        return jclass(_GROUP + "GroupCoordinator")(
            1, group_config, self._offset_config, self._manager, *purgatories, self._clock.time, self._metrics
        )

    def _start_service(self) -> Any:
        service = jclass(_GROUP + "GroupCoordinatorAdapter")(self._coordinator, self._clock.time)
        service.startup(jpype.JProxy("java.util.function.IntSupplier", dict={"getAsInt": lambda: 1}))
        return service

    def _scheduler(self) -> Any:
        def schedule(name: Any, task: Any) -> None:
            # The periodic task is ours to run (see `wipe`); loads and unloads run at once.
            if str(name) != "delete-expired-group-metadata":
                task.run()

        nothing = jpype.JProxy("java.lang.Runnable", dict={"run": lambda: None})
        act = jpype.JProxy("java.util.function.BiFunction", dict={"apply": schedule})
        return (
            MadeUp("org.apache.kafka.server.util.KafkaScheduler")
            .passes("schedule", act, "java.util.function.BiFunction", "apply", 0, 1)
            .passes("startup", nothing, "java.lang.Runnable", "run")
            .make()
        )

    def wipe(self) -> None:
        """A new coordinator with an empty log, loaded now."""
        if self._loaded:
            self.unload()
        self._clock.clear()
        self._clock.on_add = self._on_add
        self._armed.clear()
        self._instances.clear()
        self._log.wipe()
        purgatories = [
            self._purgatory(name, self._clock.timer, 1, 1000, False, True) for name in ("Heartbeat", "Rebalance")
        ]
        self._coordinator = self._make_coordinator(purgatories)
        self.service = self._start_service()
        self.load()
        self._look_for_expired_from(self._clock.now_ms)

    def _look_for_expired_from(self, now_ms: int) -> None:
        next_at_ms = now_ms + self._settings.offsets_retention_check_interval_ms

        def look() -> None:
            self._manager.cleanupGroupMetadata()
            self._look_for_expired_from(next_at_ms)

        self._clock.at(next_at_ms, look)

    def _group_config(self, group_max_size: int) -> Any:
        settings = self._settings
        return jclass(_GROUP + "GroupConfig")(
            settings.group_min_session_timeout_ms,
            settings.group_max_session_timeout_ms,
            group_max_size,
            settings.initial_rebalance_delay_ms,
        )

    def store(self, error_code: int) -> None:
        """Everything is stored that was written, or could not be within the time limit."""
        self._log.store(REQUEST_TIMED_OUT if error_code else 0)

    def load(self, group_max_size: int | None = None, meanwhile: Callable[[], None] | None = None) -> None:
        """Become coordinator, with another group.max.size if one is given: replay the log. `meanwhile` is called while
        the partition loads."""
        self._log.meanwhile = meanwhile
        if group_max_size is not None:
            config = field(_GROUP + "GroupCoordinator", "groupConfig")
            config.set(self._coordinator, self._group_config(group_max_size))
        self._epoch += 1
        self._elect()
        self._loaded = True

    def unload(self) -> None:
        """Be coordinator no longer."""
        self._epoch += 1
        self._resign()
        self._loaded = False

    def _elect(self) -> None:
        self.service.onElection(0, self._epoch)

    def _resign(self) -> None:
        self.service.onResignation(0, jclass("java.util.OptionalInt").of(self._epoch))

    def settle(self) -> None:
        """Everything happens inside the calls."""

    def group_ids(self) -> list[str]:
        """Groups that exist."""
        return sorted(str(group.groupId()) for group in items(self._manager.currentGroups()))

    def view(self, group_id: str) -> View | None:
        """What is held about a group, or None."""
        found = self._manager.getGroup(group_id)
        if not self._loaded or found.isEmpty():
            return None
        group = found.get()
        owner = int(group.hashCode())
        members = sorted(
            member_view(member, self._instances, lambda member_id: self._deadline("heartbeat", owner, member_id))
            for member in items(group.allMemberMetadata())
        )
        pending = [str(member_id) for member_id in items(self._pending.get(group))]
        protocol_type = group.protocolType()
        leader = group.leaderOrNull()
        return View(
            str(group.currentState().toString()),
            int(group.generationId()),
            str(protocol_type.get()) if protocol_type.isDefined() else None,
            self._protocol_name(group),
            None if leader is None else str(leader),
            tuple(members),
            tuple(sorted((one, self._deadline("heartbeat", owner, one)) for one in pending)),
            self._pending_sync(group),
            self._deadline("join", owner),
            self._deadline("sync", owner),
        )

    def committed(self, group_id: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Committed offsets of a group with the instants of their commits."""
        found = self._manager.getGroup(group_id)
        if not self._loaded or found.isEmpty():
            return {}
        return {
            (str(one._1().topic()), int(one._1().partition())): (
                int(_part(one._2(), "offset", "committedOffset")),
                int(_part(one._2(), "commitTimestamp", "commitTimestampMs")),
            )
            for one in items(found.get().allOffsets())
        }

    def end_transaction(self, producer_id: int, commits: bool) -> Any:
        """The marker of a transaction is written, and the coordinator told; returns a future that is done."""
        self._log.end_transaction(producer_id, commits)
        results = jclass("org.apache.kafka.common.requests.TransactionResult")
        partitions = jclass("java.util.ArrayList")()
        partitions.add(jclass("org.apache.kafka.common.TopicPartition")("__consumer_offsets", 0))
        self.service.onTransactionCompleted(producer_id, partitions, results.COMMIT if commits else results.ABORT)
        return jclass("java.util.concurrent.CompletableFuture").completedFuture(None)

    def _protocol_name(self, group: Any) -> str | None:
        name = group.protocolName()
        return str(name.get()) if name.isDefined() else None

    def _pending_sync(self, group: Any) -> tuple[str, ...]:
        return tuple(sorted(str(member_id) for member_id in items(group.allPendingSyncMembers())))

    def _deadline(self, kind: str, owner: int, member_id: str = "") -> int:
        deadline_at_ms, task = self._armed.get((kind, owner, member_id), (-1, None))
        return -1 if task is None or task.isCompleted() else deadline_at_ms

    def _on_add(self, task: Any, _entry: Any, deadline_at_ms: int, _number: int) -> None:
        kind, group_field = self._kinds[str(task.getClass().getSimpleName())]
        group = group_field.get(task)
        member_id = str(self._member.get(task)) if kind == "heartbeat" else ""
        # By object, not by name: timers of a group that was unloaded or deleted go on beside those of its successor.
        self._armed[kind, int(group.hashCode()), member_id] = (deadline_at_ms, task)
        if kind == "heartbeat":
            self.armed_sessions.append(f"{group.groupId()}-{member_id}")


def _part(owner: Any, *names: str) -> Any:
    """What the first of these names gives that the release has: a method in some, a field in others."""
    found = getattr(owner, next(name for name in names if hasattr(owner, name)))
    return found() if callable(found) else found
