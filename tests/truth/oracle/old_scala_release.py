"""Kafka's Scala coordinator of 2.3 to 2.7 in virtual time: as `scala_release`, and what differs from it.

No adapter stands before it yet: requests are calls with a Scala function for the answer (`old_requests`). Timers,
scheduler, log and settings have other names, members that have not synced yet are not kept, and 2.3 speaks Scala 2.12.
"""

from __future__ import annotations

from typing import Any

import jpype

from tests.truth.oracle.jvm import MadeUp, jclass
from tests.truth.oracle.scala_release import ScalaRelease
from tests.truth.oracle.scala_values import option, scala_list

_GROUP = "kafka.coordinator.group."


def module(name: str) -> Any:
    """A Scala object."""
    return getattr(jclass(name + "$"), "MODULE$")


class OldScalaRelease(ScalaRelease):
    """One partition of the Scala coordinator. `service` is the coordinator itself."""

    has_sync_timer = False

    def _no_compression(self) -> Any:
        return module("kafka.message.NoCompressionCodec")

    def _make_manager(self) -> Any:
        one = option(jclass("java.lang.Integer").valueOf(1))
        zookeeper = MadeUp("kafka.zk.KafkaZkClient").returns("getTopicPartitionCount", one).make()
        made = jclass(_GROUP + "GroupMetadataManager")
        latest = module("kafka.api.ApiVersion").latestVersion()
        given = [1, latest, self._offset_config, self._log.replica_manager, zookeeper, self._clock.time, self._metrics]
        return made(*given[: _parameters(made)])

    def _make_coordinator(self, purgatories: list[Any]) -> Any:
        made = jclass(_GROUP + "GroupCoordinator")
        group_config = self._group_config(self._settings.group_max_size)
        given = [1, group_config, self._offset_config, self._manager, *purgatories, self._clock.time, self._metrics]
        return made(*given[: _parameters(made)])

    def _start_service(self) -> Any:
        self._coordinator.startup(True)
        return self._coordinator

    def _scheduler(self) -> Any:
        def schedule(name: Any, task: Any) -> None:
            # The periodic task is ours to run; loads and unloads run at once.
            if str(name) != "delete-expired-group-metadata":
                task.apply()

        nothing = jpype.JProxy("java.lang.Runnable", dict={"run": lambda: None})
        act = jpype.JProxy("java.util.function.BiFunction", dict={"apply": schedule})
        return (
            MadeUp("kafka.utils.KafkaScheduler")
            .passes("schedule", act, "java.util.function.BiFunction", "apply", 0, 1)
            .passes("startup", nothing, "java.lang.Runnable", "run")
            .make()
        )

    def _elect(self) -> None:
        named = self._coordinator
        (named.onElection if hasattr(named, "onElection") else named.handleGroupImmigration)(0)

    def _resign(self) -> None:
        named = self._coordinator
        (named.onResignation if hasattr(named, "onResignation") else named.handleGroupEmigration)(0)

    def end_transaction(self, producer_id: int, commits: bool) -> Any:
        """The marker of a transaction is written, and the coordinator told; returns a future that is done."""
        self._log.end_transaction(producer_id, commits)
        results = jclass("org.apache.kafka.common.requests.TransactionResult")
        partition = jclass("org.apache.kafka.common.TopicPartition")("__consumer_offsets", 0)
        result = results.COMMIT if commits else results.ABORT
        self._coordinator.scheduleHandleTxnCompletion(producer_id, scala_list([partition]), result)
        return jclass("java.util.concurrent.CompletableFuture").completedFuture(None)

    def _protocol_name(self, group: Any) -> str | None:
        if hasattr(group, "protocolName"):
            return super()._protocol_name(group)
        name = group.protocolOrNull()
        return None if name is None else str(name)

    def _pending_sync(self, group: Any) -> tuple[str, ...]:  # noqa: ARG002
        return ()


def _parameters(made: Any) -> int:
    """How many parameters the constructor of a class has: metrics came later."""
    return int(made.class_.getConstructors()[0].getParameterCount())
