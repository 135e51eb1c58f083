"""Kafka's Java coordinator as it is asked about consumer groups: with topics, an executor that waits, and their view.

A look-up of regular expressions is handed to an executor of ours, which does the oldest one when `resolve` is called.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import jpype

from kardia.coordinator.classic.operations import View
from kardia.coordinator.consumer.operations import ConsumerMemberView, ConsumerView, Partition, Topic
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.java_release import JavaRelease
from tests.truth.oracle.jvm import each, field, jclass
from tests.truth.oracle.read_before import Members, Texts
from tests.truth.oracle.requests import COMMITS_BY_ID
from tests.truth.oracle.settings import AnySettings

_MODERN = "org.apache.kafka.coordinator.group.modern."
_IMAGE = "org.apache.kafka.image."
_SESSION = "session-timeout-"
_COORDINATOR_IMAGE = "org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadata"


class ConsumerRelease(JavaRelease):
    """One shard of the Java coordinator that holds consumer groups."""

    def __init__(self, clock: Clock, settings: AnySettings) -> None:
        """Build it and become its coordinator, in a cluster without topics."""
        self._tasks: list[Any] = []
        self._ids: dict[str, str] = {}
        self._topics: dict[str, Topic] = {}
        self._configured: set[str] = set()
        self._made: dict[str, Any] = {}
        """Kafka's ids of topics by ours."""
        self._texts = Texts()
        self._members = Members(self._read)
        self._map = jclass("java.util.HashMap")
        self._image = jclass(_IMAGE + "MetadataImage").EMPTY
        self._offset = 0
        self._over = jclass("java.lang.Object")()
        """Stands behind the events of a call that has ended."""
        super().__init__(clock, settings)
        commits = jclass("org.apache.kafka.common.protocol.ApiKeys").OFFSET_COMMIT
        self._knows_commits_by_id = int(commits.latestVersion()) >= COMMITS_BY_ID
        self._classic = jclass("org.apache.kafka.coordinator.group.classic.ClassicGroup")
        self._has_assignment_timestamp = hasattr(jclass(_MODERN + "ModernGroup"), "assignmentTimestamp")
        self._owners = field(_MODERN + "consumer.ConsumerGroup", "currentPartitionEpoch")

    def _executor(self) -> Any:
        def submit(task: Any, *_: Any) -> None:
            self._tasks.append(task)

        nothing: Callable[..., None] = lambda *_: None  # noqa: E731
        return jpype.JProxy(
            "java.util.concurrent.ExecutorService",
            dict={"submit": submit, "execute": submit, "shutdown": nothing, "shutdownNow": nothing, "close": nothing},
        )

    def resolve(self) -> None:
        """Do the oldest look-up that waits."""
        if self._tasks:
            self._tasks.pop(0).run()
            self.settle()

    def wipe(self) -> None:
        """A new, empty shard in a cluster without topics, loaded now."""
        if self._topics:
            self.change_topics(())
        for group_id in self._configured:
            self._group_configs.updateGroupConfig(group_id, jclass("java.util.Properties")())
        self._configured.clear()
        self._tasks.clear()
        self._members.clear()
        super().wipe()

    def unload(self) -> None:
        """Be coordinator no longer."""
        super().unload()
        # What was handed over is called off; the thread would find so.
        for task in self._tasks:
            task.run()
        self._tasks.clear()
        self.settle()

    def configure(self, request: Any) -> None:
        """A group has a configuration of its own, or none any more."""
        given = jclass("java.util.Properties")()
        if request.session_timeout_ms >= 0:
            self._configured.add(request.group_id)
            names = jclass("org.apache.kafka.coordinator.group.GroupConfig")
            given.put(names.CONSUMER_SESSION_TIMEOUT_MS_CONFIG, str(request.session_timeout_ms))
            given.put(names.CONSUMER_HEARTBEAT_INTERVAL_MS_CONFIG, str(request.heartbeat_interval_ms))
            if hasattr(names, "CONSUMER_ASSIGNMENT_INTERVAL_MS_CONFIG"):
                given.put(names.CONSUMER_ASSIGNMENT_INTERVAL_MS_CONFIG, str(request.assignment_interval_ms))
        self._group_configs.updateGroupConfig(request.group_id, given)

    # -- topics ---------------------------------------------------------------------------------------------------

    def uuid(self, topic_id: str) -> Any:
        """Kafka's id of a topic."""
        made = self._made.get(topic_id)
        if made is None:
            digest = hashlib.sha256(topic_id.encode()).digest()
            made = self._made[topic_id] = jclass("org.apache.kafka.common.Uuid")(
                jpype.JLong(int.from_bytes(digest[:8], "big", signed=True)),
                jpype.JLong(int.from_bytes(digest[8:16], "big", signed=True)),
            )
            self._ids[str(made)] = topic_id
        return made

    def uuid_of(self, name: str) -> Any:
        """Kafka's id of the topic that has a name now, None if none has."""
        topic = self._topics.get(name)
        return None if topic is None or not self._knows_commits_by_id else self.uuid(topic.topic_id)

    def change_topics(self, topics: tuple[Topic, ...]) -> None:
        """The cluster has these topics from now on."""
        new = {topic.name: topic for topic in topics}
        old, self._topics = self._topics, new
        delta = jclass(_IMAGE + "MetadataDelta$Builder")().setImage(self._image).build()
        metadata = "org.apache.kafka.common.metadata."
        gone = [topic for topic in old.values() if topic.topic_id not in {one.topic_id for one in topics}]
        for topic in gone:
            delta.replay(jclass(metadata + "RemoveTopicRecord")().setTopicId(self.uuid(topic.topic_id)))
        for topic in topics:
            before = old.get(topic.name)
            known = before.partitions if before is not None and before.topic_id == topic.topic_id else 0
            if not known:
                record = jclass(metadata + "TopicRecord")().setName(topic.name).setTopicId(self.uuid(topic.topic_id))
                delta.replay(record)
            for number in range(known, topic.partitions):
                partition = jclass(metadata + "PartitionRecord")()
                delta.replay(partition.setTopicId(self.uuid(topic.topic_id)).setPartitionId(number))
        if new == old:
            return
        self._offset += 1
        provenance = jclass(_IMAGE + "MetadataProvenance")(self._offset, 1, self._clock.now_ms, True)
        self._image = delta.apply(provenance)
        self._forget_offsets(gone)
        self._publish(delta, bool(gone))

    def _publish(self, delta: Any, waits: bool) -> None:
        service = self.service
        if hasattr(service, "onMetadataUpdate"):
            if waits:
                self._while_events_run(lambda: service.onMetadataUpdate(delta, self._image))
            else:
                service.onMetadataUpdate(delta, self._image)
                self.settle()
            return
        try:
            service.onNewMetadataImage(self._image, delta)
        except TypeError:
            wrapped = [
                jclass(_COORDINATOR_IMAGE + name)(one) for name, one in (("Image", self._image), ("Delta", delta))
            ]
            service.onNewMetadataImage(*wrapped)
        self.settle()

    def _forget_offsets(self, gone: list[Topic]) -> None:
        """What brokers before 4.3 say in a call of its own."""
        if not gone or not hasattr(self.service, "onPartitionsDeleted"):
            return
        deleted = jclass("java.util.ArrayList")()
        for topic in gone:
            for number in range(topic.partitions):
                deleted.add(jclass("org.apache.kafka.common.TopicPartition")(topic.name, number))
        no_caching = jclass("org.apache.kafka.common.utils.BufferSupplier").NO_CACHING
        self._while_events_run(lambda: self.service.onPartitionsDeleted(deleted, no_caching))

    def _while_events_run(self, call: Callable[[], None]) -> None:
        """The call waits for what it hands to the events of the shard, so they run beside it."""

        def act() -> None:
            try:
                call()
            finally:
                self._events.addLast(self._over)

        caller = threading.Thread(target=act)
        caller.start()
        while not self._over.equals(event := self._events.takeFirst()):
            self._run(event)
        caller.join()
        self.settle()

    def _on_add(self, task: Any, entry: Any, deadline_at_ms: int, number: int) -> None:
        super()._on_add(task, entry, deadline_at_ms, number)
        key = self._keys.get(number, "")
        if key.startswith(_SESSION):
            self.armed_sessions.append(key[len(_SESSION) :])

    # -- view -----------------------------------------------------------------------------------------------------

    def is_classic(self, group_id: str) -> bool:
        """Whether there is a classic group of this name."""
        group = None if self._groups is None else self._groups.get(group_id)
        return isinstance(group, self._classic)

    def consumer_view(self, group_id: str) -> ConsumerView | View | None:
        """What is held about a group, or None."""
        group = None if self._groups is None else self._groups.get(group_id)
        if group is None:
            return None
        if isinstance(group, self._classic):
            # Groups of either kind may have had this member under another instance id.
            self._instances.clear()
            return self.view(group_id)
        members = self._members.of(group_id, group, group.targetAssignment)
        expressions = group.resolvedRegularExpressions()
        return ConsumerView(
            str(group.stateAsString()),
            int(group.groupEpoch()),
            int(group.assignmentEpoch()),
            int(group.assignmentTimestamp()) if self._has_assignment_timestamp else 0,
            tuple(sorted(self._with_timers(group_id, member) for member in members.values())),
            () if expressions.isEmpty() else _resolved(expressions),
            self._owned(self._owners.get(group)),
        )

    def _with_timers(self, group_id: str, member: ConsumerMemberView) -> ConsumerMemberView:
        member_id = member.member_id
        return member._replace(
            session_deadline_at_ms=self._deadline(f"session-timeout-{group_id}-{member_id}"),
            rebalance_deadline_at_ms=self._deadline(f"rebalance-timeout-{group_id}-{member_id}"),
            join_deadline_at_ms=self._deadline(f"join-{group_id}-{member_id}"),
            sync_deadline_at_ms=self._deadline(f"sync-{group_id}-{member_id}"),
        )

    def _read(self, member_id: str, member: Any, given: Any) -> ConsumerMemberView:
        assignor = member.serverAssignorName()
        return ConsumerMemberView(
            member_id,
            _text(member.instanceId()),
            _text(member.rackId()),
            str(member.clientId()),
            str(member.clientHost()),
            int(member.rebalanceTimeoutMs()),
            tuple(sorted(str(name) for name in member.subscribedTopicNames())),
            _text(member.subscribedTopicRegex()) or None,
            str(assignor.get()) if assignor.isPresent() else None,
            int(member.memberEpoch()),
            int(member.previousMemberEpoch()),
            str(member.state().name()),
            self._partitions(member.assignedPartitions()),
            self._partitions(member.partitionsPendingRevocation()),
            tuple(partition for partition, _ in self._partitions(given.partitions())),
            -1,
            -1,
            -1,
            -1,
            _classic(member),
        )

    def _partitions(self, by_topic: Any) -> tuple[tuple[Partition, int], ...]:
        """Partitions of a map of topics, with their epochs if it has them."""
        found: tuple[tuple[Partition, int], ...] = self._texts.of(by_topic, self._read_partitions)
        return found

    def _read_partitions(self, by_topic: Any) -> tuple[tuple[Partition, int], ...]:
        found: list[tuple[Partition, int]] = []
        for entry in each(by_topic.entrySet()):
            topic_id = self._ids[str(entry.getKey())]
            numbers = entry.getValue()
            if hasattr(numbers, "entrySet"):
                found += _numbers(topic_id, numbers)
            else:
                found += [((topic_id, int(number)), 0) for number in numbers]
        return tuple(sorted(found))

    def _owned(self, by_topic: Any) -> tuple[tuple[Partition, int], ...]:
        """As `_partitions` of a group, whose maps change and do not tell in a text what is in them."""
        found: list[tuple[Partition, int]] = []
        for entry in each(by_topic.entrySet()):
            topic_id = self._ids[str(entry.getKey())]
            found += self._texts.of(self._map(entry.getValue()), partial(_numbers, topic_id), topic_id)
        return tuple(sorted(found))

    def topic_id(self, made: Any) -> str:
        """Our id of a topic that Kafka names."""
        return self._ids[str(made)]


def _classic(member: Any) -> tuple[int, tuple[str, ...]] | None:
    if not member.useClassicProtocol():
        return None
    protocols = tuple(str(one.name()) for one in member.supportedClassicProtocols().get())
    return int(member.classicProtocolSessionTimeout().get()), protocols


def _numbers(topic_id: str, epochs: Any) -> tuple[tuple[Partition, int], ...]:
    return tuple(((topic_id, int(one.getKey())), int(one.getValue())) for one in each(epochs.entrySet()))


def _resolved(expressions: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        sorted(
            (str(one.getKey()), tuple(sorted(str(topic) for topic in _topics(one.getValue()))))
            for one in expressions.entrySet()
        )
    )


def _topics(resolved: Any) -> Any:
    return resolved.topics() if hasattr(resolved, "topics") and callable(resolved.topics) else resolved.topics


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
