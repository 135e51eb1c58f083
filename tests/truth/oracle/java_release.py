"""Kafka's Java coordinator (4.x) as one object in virtual time: the service with its runtime, one shard, one log.

Everything around the service is a stand-in: events run when they are drained, an append is committed at once, the
loader replays what was appended. Built once per configuration and reused; `wipe` gives a new, empty, loaded shard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jpype

from kardia.coordinator.classic.operations import View
from kardia.coordinator.classic.settings import CoordinatorSettings
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.java_log import JavaLog
from tests.truth.oracle.jvm import MadeUp, each, either, field, jclass
from tests.truth.oracle.members import member_view
from tests.truth.oracle.settings import AnySettings, properties

_RUNTIME = "org.apache.kafka.coordinator.common.runtime."
_GROUP = "org.apache.kafka.coordinator.group."
_SHARE_CONFIG = _GROUP + "modern.share.ShareGroupConfig"
_EVENTS = "java.util.concurrent.LinkedBlockingDeque"
"""Of threads: a change of topics waits in one for what another one runs."""
_PERSISTER = "org.apache.kafka.server.share.persister."


class JavaRelease:
    """One shard of the Java coordinator. `service` takes requests; call `settle` after each."""

    def __init__(self, clock: Clock, settings: AnySettings) -> None:
        """Build it and become its coordinator."""
        self._clock = clock
        self._settings = settings
        self._properties = properties(settings)
        self._configs: dict[int, Any] = {}
        """By group.max.size; a shard that is loaded has the newest."""
        self._epoch = 0
        self._groups: Any = None
        self._group_configs: Any = None
        self._offsets: Any = None
        self._armed: dict[str, tuple[int, Any]] = {}
        self._keys: dict[int, str] = {}
        self._instances: dict[str, str | None] = {}
        self._fields: dict[tuple[type, str], Any] = {}
        self._partition = jclass("org.apache.kafka.common.TopicPartition")("__consumer_offsets", 0)
        self._events = jclass(_EVENTS)()
        holds = isinstance(settings, CoordinatorSettings) and settings.appends_take_time
        self._log = JavaLog(self._partition, holds=holds)
        self._pending_join = field(_GROUP + "classic.ClassicGroup", "pendingJoinMembers")
        self._make()
        try:
            self._key = field(_RUNTIME + "CoordinatorTimerImpl$1", "val$key")
        except jpype.JException:
            self._key = field(_RUNTIME + "CoordinatorRuntime$EventBasedCoordinatorTimer$1", "val$key")
        # Time-outs of writes have no key; with every append committed at once they never fire.
        self._is_keyed = self._key.getDeclaringClass().isInstance
        self.armed_sessions: list[str] = []
        """GROUP-MEMBER of every session timer in the order of arming; the driver empties it."""

    def _executor(self) -> Any:
        """What resolves regular expressions. Classic groups have none."""
        return jclass("java.util.concurrent.Executors").newSingleThreadExecutor()

    def _make(self) -> None:
        abstract, config = self._config(self._properties)
        share_class = jclass(_SHARE_CONFIG)
        self._shard_config = config
        manager_class = jclass(_GROUP + "GroupConfigManager")
        configs: list[Any] = [config, share_class(abstract)]  # from 4.3
        if hasattr(config, "extractGroupConfigMap"):
            # Up to 4.3: what a group has that sets only some of its configuration, the broker's values.
            configs.insert(0, config.extractGroupConfigMap(configs[1]))
        manager = manager_class(*configs[: manager_class.class_.getConstructors()[0].getParameterCount()])
        self._group_configs = manager
        registry = jclass("com.yammer.metrics.core.MetricsRegistry")()
        metrics = jclass(_GROUP + "metrics.GroupCoordinatorMetrics")(
            registry, jclass("org.apache.kafka.common.metrics.Metrics")()
        )
        log_context = either(
            "org.apache.kafka.common.utils.internals.LogContext", "org.apache.kafka.common.utils.LogContext"
        )()
        seconds = jclass("java.time.Duration").ofSeconds(5)
        builder = jclass(_RUNTIME + "CoordinatorRuntime$Builder")()
        shard_builder = jclass(_GROUP + "GroupCoordinatorShard$Builder")
        nobody = jclass("java.util.Optional").empty()
        authorizer = "withAuthorizerPlugin" if hasattr(shard_builder, "withAuthorizerPlugin") else "withAuthorizer"
        parts: dict[str, Any] = {
            "withLogPrefix": "",
            "withLogContext": log_context,
            "withEventProcessor": MadeUp(_RUNTIME + "CoordinatorEventProcessor")
            .passes("enqueueLast", self._events, _EVENTS, "addLast", 0)
            .passes("enqueueFirst", self._events, _EVENTS, "addFirst", 0)
            .make(),
            "withPartitionWriter": self._log.writer,
            "withLoader": self._log.loader,
            "withCoordinatorShardBuilderSupplier": jpype.JProxy(
                _RUNTIME + "CoordinatorShardBuilderSupplier",
                dict={"get": lambda: getattr(shard_builder(self._shard_config, manager), authorizer)(nobody)},
            ),
            "withTime": self._clock.time,
            "withTimer": self._clock.timer,
            "withDefaultWriteTimeOut": seconds,
            "withWriteTimeout": seconds,
            "withCoordinatorRuntimeMetrics": _silent(_RUNTIME + "CoordinatorRuntimeMetrics"),
            "withCoordinatorMetrics": metrics,
            "withSerializer": jclass(_GROUP + "GroupCoordinatorRecordSerde")(),
            "withCompression": jclass("org.apache.kafka.common.compress.Compression").NONE,
            "withExecutorService": self._executor(),
            "withCachedBufferMaxBytesSupplier": jpype.JProxy(
                "java.util.function.Supplier", dict={"get": lambda: jclass("java.lang.Integer").valueOf(1 << 20)}
            ),
        }
        for name, value in parts.items():
            if hasattr(builder, name):
                builder = getattr(builder, name)(value)
        try:
            builder = builder.withAppendLingerMs(0)
        except TypeError:
            builder = builder.withAppendLingerMs(jclass("java.util.OptionalInt").of(0))
        self._runtime = builder.build()
        constructor = jclass(_GROUP + "GroupCoordinatorService").class_.getDeclaredConstructors()[0]
        constructor.setAccessible(True)
        by_type: dict[str, Any] = {
            "LogContext": log_context,
            "GroupCoordinatorConfig": config,
            "CoordinatorRuntime": self._runtime,
            "GroupCoordinatorMetrics": metrics,
            "GroupConfigManager": manager,
            "Persister": either(
                *(f"{_PERSISTER}{name}" for name in ("NoOpStatePersister", "NoOpShareStatePersister"))
            )(),
            "Timer": self._clock.timer,
            "Optional": jclass("java.util.Optional").empty(),
            "Time": self._clock.time,
        }
        arguments = [by_type.get(str(kind.getSimpleName())) for kind in constructor.getParameterTypes()]
        self.service = constructor.newInstance(jpype.JArray(jpype.JObject)(arguments))
        self._complete = next(
            one for one in self.service.getClass().getMethods() if str(one.getName()) == "completeTransaction"
        )
        self.service.startup(jpype.JProxy("java.util.function.IntSupplier", dict={"getAsInt": lambda: 1}))

    def _config(self, given_properties: dict[str, str]) -> tuple[Any, Any]:
        """The broker's configuration with these properties, and the coordinator's view of it."""
        config_class = jclass(_GROUP + "GroupCoordinatorConfig")
        definitions = jclass("org.apache.kafka.common.config.ConfigDef")()
        for source in (config_class, jclass(_SHARE_CONFIG)):
            for part in source.class_.getFields():  # One definition from 4.1 on, five before.
                if part.getType().getSimpleName() == "ConfigDef":
                    for key in part.get(None).configKeys().values():
                        definitions.define(key)
        given = jclass("java.util.HashMap")()
        for name, value in given_properties.items():
            given.put(name, value)
        abstract = jclass("org.apache.kafka.common.config.AbstractConfig")(definitions, given, False)
        return abstract, config_class(abstract)

    def wipe(self) -> None:
        """A new, empty shard, loaded now."""
        if self._groups is not None:
            self.unload()
        self._clock.clear()
        self._clock.on_add, self._clock.on_fire = self._on_add, self._on_fire
        self._armed.clear()
        self._instances.clear()
        self._keys.clear()
        self._log.wipe()
        self.load(int(self._properties["group.max.size"]))

    def load(self, group_max_size: int | None = None, meanwhile: Callable[[], None] | None = None) -> None:
        """Become coordinator, with another group.max.size if one is given: replay the log. `meanwhile` is called when
        the log has been read and the shard still loads."""
        if group_max_size is not None:
            if group_max_size not in self._configs:
                with_size = self._properties | {"group.max.size": str(group_max_size)}
                self._configs[group_max_size] = self._config(with_size)[1]
            self._shard_config = self._configs[group_max_size]
        self._epoch += 1
        held: Any = None if meanwhile is None else self._log.hold_load()
        self.service.onElection(0, self._epoch)
        self.settle()
        if meanwhile is not None:
            meanwhile()
            held.complete(None)
            self.settle()
        context = self._field(self._runtime, "coordinators").get(self._partition)
        shard = self._field(self._field(context, "coordinator"), "coordinator")
        self._groups = self._field(self._field(shard, "groupMetadataManager"), "groups")
        offsets = self._field(self._field(shard, "offsetMetadataManager"), "offsets")
        self._offsets = self._field(offsets, "offsetsByGroup")

    def unload(self) -> None:
        """Be coordinator no longer."""
        self._epoch += 1
        self.service.onResignation(0, jclass("java.util.OptionalInt").of(self._epoch))
        self.settle()
        self._groups = None

    def store(self, error_code: int) -> None:
        """Everything is stored that was written. That something could not be is found out by the coordinator's own
        timer, and nothing is done here."""
        if not error_code:
            self._log.store()

    def hold_appends(self) -> None:
        """From now on nothing is stored before `store`."""
        self._log.hold()

    def settle(self) -> None:
        """Run every event that waits."""
        events = self._events
        while (event := events.pollFirst()) is not None:
            self._run(event)

    def _run(self, event: Any) -> None:
        try:
            event.run()
        except jpype.JException as error:
            event.complete(error)

    def group_ids(self) -> list[str]:
        """Groups that exist, of whatever kind."""
        return [] if self._groups is None else sorted(str(group_id) for group_id in self._groups.keySet())

    def view(self, group_id: str) -> View | None:
        """What is held about a group, or None."""
        group = None if self._groups is None else self._groups.get(group_id)
        if group is None:
            return None
        sessions = f"heartbeat-{group_id}-"
        members = sorted(
            member_view(member, self._instances, lambda member_id: self._deadline(sessions + member_id))
            for member in each(group.allMembers())
        )
        pending = [str(member_id) for member_id in self._pending_join.get(group)]
        protocol_type, protocol_name = group.protocolType(), group.protocolName()
        leader = group.leaderOrNull()
        return View(
            str(group.stateAsString()),
            int(group.generationId()),
            str(protocol_type.get()) if protocol_type.isPresent() else None,
            str(protocol_name.get()) if protocol_name.isPresent() else None,
            None if leader is None else str(leader),
            tuple(members),
            tuple(sorted((member_id, self._deadline(sessions + member_id)) for member_id in pending)),
            tuple(sorted(str(member_id) for member_id in group.allPendingSyncMembers())),
            self._deadline(f"join-{group_id}"),
            self._deadline(f"sync-{group_id}"),
        )

    def committed(self, group_id: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Committed offsets of a group with the instants of their commits."""
        by_topic = None if self._groups is None else self._offsets.get(group_id)
        if by_topic is None:
            return {}
        return {
            (str(topic.getKey()), int(one.getKey())): (
                int(one.getValue().committedOffset),
                int(one.getValue().commitTimestampMs),
            )
            for topic in by_topic.entrySet()
            for one in topic.getValue().entrySet()
        }

    def end_transaction(self, producer_id: int, commits: bool) -> Any:
        """The marker of a transaction reaches the partition; returns the future of its being written."""
        results = jclass("org.apache.kafka.common.requests.TransactionResult")
        given: dict[str, Any] = {
            "TopicPartition": self._partition,
            "long": jpype.JLong(producer_id),
            "int": jpype.JInt(0),
            "TransactionResult": results.COMMIT if commits else results.ABORT,
            "Duration": jclass("java.time.Duration").ofSeconds(5),
        }
        # The epoch of the producer and, from 4.2 on, the version of transactions.
        shorts = iter((jpype.JShort(0), jpype.JShort(2)))
        kinds = [str(kind.getSimpleName()) for kind in self._complete.getParameterTypes()]
        return self.service.completeTransaction(*(next(shorts) if one == "short" else given[one] for one in kinds))

    def _deadline(self, key: str) -> int:
        armed = self._armed.get(key)
        if armed is None:
            return -1
        deadline_at_ms, entry = armed
        if entry.cancelled():
            del self._armed[key]
            return -1
        return deadline_at_ms

    def _on_add(self, task: Any, entry: Any, deadline_at_ms: int, number: int) -> None:
        if self._is_keyed(task):
            key = str(self._key.get(task))
            self._armed[key] = (deadline_at_ms, entry)
            self._keys[number] = key
            if key.startswith("heartbeat-"):
                self.armed_sessions.append(key[10:])

    def _on_fire(self, number: int) -> None:
        # An entry that has fired does not say so: it was never in one of Kafka's own lists.
        key = self._keys.pop(number, None)
        if key is not None:
            self._armed.pop(key, None)

    def _field(self, owner: Any, name: str) -> Any:
        found = self._fields.get((type(owner), name))
        if found is None:
            found = self._fields[type(owner), name] = field(owner.getClass(), name)
        return found.get(owner)


def _silent(interface: str) -> Any:
    class Silent:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    return jpype.JProxy(interface, inst=Silent())
