"""`ShareOracle`: Kafka's coordinator of share groups of one release behind perform, advance and view.

The share coordinator is Kafka's stand-in for it, which agrees to everything at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jpype

from kardia.coordinator.consumer.operations import BeatAnswer, Partition
from kardia.coordinator.share.operations import (
    NONE_OF,
    ConfigureShare,
    ShareMemberView,
    ShareOperation,
    ShareView,
)
from kardia.coordinator.share.settings import ShareSettings
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.consumer_release import ConsumerRelease
from tests.truth.oracle.epochs import EpochOracle
from tests.truth.oracle.jvm import each, jclass
from tests.truth.oracle.read_before import Members, Texts

_REQUEST = "org.apache.kafka.common.message.ShareGroupHeartbeatRequestData"


class ShareRelease(ConsumerRelease):
    """One shard of the Java coordinator that holds share groups."""

    def __init__(self, clock: Clock, settings: ShareSettings) -> None:
        """Build it and become its coordinator, in a cluster without topics."""
        self._states: Any = None
        self._has_states: bool | None = None
        super().__init__(clock, settings)
        self._members = Members(self._read_share_member)
        self._plain_texts = Texts()

    def wipe(self) -> None:
        """As any shard. A configuration of a group that is taken back leaves Kafka's defaults in 4.0, not the broker's,
        so it is forgotten instead."""
        self._field(self._group_configs, "configMap").clear()
        self._configured.clear()
        super().wipe()

    def load(self, group_max_size: int | None = None, meanwhile: Callable[[], None] | None = None) -> None:
        """As any shard."""
        super().load(group_max_size, meanwhile)
        context = self._field(self._runtime, "coordinators").get(self._partition)
        shard = self._field(self._field(context, "coordinator"), "coordinator")
        manager = self._field(shard, "groupMetadataManager")
        if self._has_states is None:
            names = [str(one.getName()) for one in manager.getClass().getDeclaredFields()]
            self._has_states = "shareGroupStatePartitionMetadata" in names  # from 4.1
        self._states = self._field(manager, "shareGroupStatePartitionMetadata") if self._has_states else None

    def configure(self, request: Any) -> None:
        """A group has a configuration of its own."""
        given = jclass("java.util.Properties")()
        names = jclass("org.apache.kafka.coordinator.group.GroupConfig")
        given.put(names.SHARE_SESSION_TIMEOUT_MS_CONFIG, str(request.session_timeout_ms))
        given.put(names.SHARE_HEARTBEAT_INTERVAL_MS_CONFIG, str(request.heartbeat_interval_ms))
        self._group_configs.updateGroupConfig(request.group_id, given)

    def share_view(self, group_id: str) -> ShareView | None:
        """What is held about a share group, or None."""
        group = None if self._groups is None else self._groups.get(group_id)
        if group is None:
            return None
        states = None if self._states is None else self._states.get(group_id)
        members = self._members.of(group_id, group, group.targetAssignment)
        return ShareView(
            str(group.stateAsString()),
            int(group.groupEpoch()),
            int(group.assignmentEpoch()),
            int(group.assignmentTimestamp()) if self._has_assignment_timestamp else 0,
            tuple(sorted(self._with_timer(group_id, member) for member in members.values())),
            self._named(states.initializingTopics()) if states is not None else (),
            self._named(states.initializedTopics()) if states is not None else (),
        )

    def _with_timer(self, group_id: str, member: ShareMemberView) -> ShareMemberView:
        session = f"session-timeout-{group_id}-{member.member_id}"
        return member._replace(session_deadline_at_ms=self._deadline(session))

    def _read_share_member(self, member_id: str, member: Any, given: Any) -> ShareMemberView:
        rack_id = member.rackId()
        return ShareMemberView(
            member_id,
            None if rack_id is None else str(rack_id),
            str(member.clientId()),
            str(member.clientHost()),
            tuple(sorted(str(name) for name in member.subscribedTopicNames())),
            int(member.memberEpoch()),
            int(member.previousMemberEpoch()),
            self._plain(member.assignedPartitions()),
            self._plain(given.partitions()),
            -1,
        )

    def _plain(self, by_topic: Any) -> tuple[Partition, ...]:
        found: tuple[Partition, ...] = self._plain_texts.of(by_topic, self._read_plain)
        return found

    def _read_plain(self, by_topic: Any) -> tuple[Partition, ...]:
        named = [self.topic_id(entry.getKey()) for entry in by_topic.entrySet() if entry.getValue().isEmpty()]
        given = (partition for partition, _ in self._partitions(by_topic))
        return tuple(sorted((*given, *((topic_id, NONE_OF) for topic_id in named))))

    def _named(self, by_topic: Any) -> tuple[Partition, ...]:
        found = [
            (self.topic_id(entry.getKey()), int(number))
            for entry in each(by_topic.entrySet())
            for number in each(entry.getValue().partitions())
        ]
        return tuple(sorted(found))


class ShareOracle(EpochOracle):
    """One coordinator of share groups; see `Driven`."""

    _release: ShareRelease

    def __init__(self, version: str, settings: ShareSettings) -> None:
        """As `Driven`, with the classes of these requests."""
        super().__init__(version, settings)
        self._beat = jclass(_REQUEST)

    def _build(self, version: str, settings: ShareSettings) -> ShareRelease:  # noqa: ARG002
        return ShareRelease(self._clock, settings)

    def view(self, group_id: str) -> ShareView | None:
        """What is held about a group, or None if there is none or its shard is not loaded."""
        return self._release.share_view(group_id)

    def _put(self, operation: ShareOperation) -> bool:
        if not isinstance(operation, ConfigureShare):
            return False
        self._release.configure(operation)
        return True

    def _begin(self, operation: Any) -> Any:
        data = self._beat().setGroupId(operation.group_id).setMemberId(operation.member_id)
        data.setMemberEpoch(operation.member_epoch).setRackId(operation.rack_id)
        if operation.names is not None:
            data.setSubscribedTopicNames(self._java_list(operation.names))
        context = self._requests.context_of("SHARE_GROUP_HEARTBEAT", 1, operation.client_id, operation.client_host)
        return self._release.service.shareGroupHeartbeat(context, data)

    def _read(self, operation: Any, future: Any) -> BeatAnswer:
        try:
            response = future.get()
        except jpype.JException as error:
            return BeatAnswer(operation.number, self._clock.now_ms, self._code_of(error))
        return self._beat_answer(operation, response)
