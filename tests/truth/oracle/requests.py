"""Operations as Kafka's request objects, and Kafka's response objects as answers.

Does by hand what the broker does between the wire and the coordinator: fills in what old versions did not send, and
turns the list of one that answers LeaveGroup 0 to 2 into its single error. `begin` hands an operation to a service and
returns what will hold its answer; `read` makes the answer once it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer
from tests.truth.oracle.jvm import either, jclass

TOO_LARGE = "m" * 5000
"""Metadata over the default of offset.metadata.max.bytes, 4096."""

COMMITS_BY_ID = 10
"""The version of OffsetCommit from which on a topic is named by its id; the broker adds the name."""

_DATA = "org.apache.kafka.common.message."


class Requests:
    """Speaks to any object that implements Kafka's interface GroupCoordinator."""

    def __init__(self) -> None:
        """Look the classes up once."""
        self._contexts: dict[tuple[str, int, str, str], Any] = {}
        self.topic_uuid: Callable[[str], Any] = lambda _: None
        """Kafka's id of a topic by its name; without one a commit names the topic only."""
        self._keys = jclass("org.apache.kafka.common.protocol.ApiKeys")
        self._header = jclass("org.apache.kafka.common.requests.RequestHeader")
        self._context = jclass("org.apache.kafka.common.requests.RequestContext")
        self._principal = jclass("org.apache.kafka.common.security.auth.KafkaPrincipal").ANONYMOUS
        self._listener = jclass("org.apache.kafka.common.network.ListenerName")("PLAINTEXT")
        self._security = jclass("org.apache.kafka.common.security.auth.SecurityProtocol").PLAINTEXT
        self._information = jclass("org.apache.kafka.common.network.ClientInformation").EMPTY
        self._address = jclass("java.net.InetAddress")
        packages = ("utils", "utils.internals")
        self._no_caching = either(*(f"org.apache.kafka.common.{one}.BufferSupplier" for one in packages)).NO_CACHING
        self._join = jclass(_DATA + "JoinGroupRequestData")
        self._protocol = jclass(_DATA + "JoinGroupRequestData$JoinGroupRequestProtocol")
        self._protocols = jclass(_DATA + "JoinGroupRequestData$JoinGroupRequestProtocolCollection")
        self._sync = jclass(_DATA + "SyncGroupRequestData")
        self._assignment = jclass(_DATA + "SyncGroupRequestData$SyncGroupRequestAssignment")
        self._heartbeat = jclass(_DATA + "HeartbeatRequestData")
        self._leave = jclass(_DATA + "LeaveGroupRequestData")
        self._identity = jclass(_DATA + "LeaveGroupRequestData$MemberIdentity")
        self._commit = jclass(_DATA + "OffsetCommitRequestData")
        self._commit_topic = jclass(_DATA + "OffsetCommitRequestData$OffsetCommitRequestTopic")
        self._commit_partition = jclass(_DATA + "OffsetCommitRequestData$OffsetCommitRequestPartition")
        self._txn = jclass(_DATA + "TxnOffsetCommitRequestData")
        self._txn_topic = jclass(_DATA + "TxnOffsetCommitRequestData$TxnOffsetCommitRequestTopic")
        self._txn_partition = jclass(_DATA + "TxnOffsetCommitRequestData$TxnOffsetCommitRequestPartition")
        self._offset_delete = jclass(_DATA + "OffsetDeleteRequestData")
        self._offset_topic = jclass(_DATA + "OffsetDeleteRequestData$OffsetDeleteRequestTopic")
        self._offset_topics = jclass(_DATA + "OffsetDeleteRequestData$OffsetDeleteRequestTopicCollection")
        self._offset_partition = jclass(_DATA + "OffsetDeleteRequestData$OffsetDeleteRequestPartition")
        self._list = jclass("java.util.ArrayList")
        self._begin: dict[type, Callable[[Any, Any], Any]] = {
            ops.Join: self._begin_join,
            ops.Sync: self._begin_sync,
            ops.Heartbeat: self._begin_heartbeat,
            ops.Leave: self._begin_leave,
            ops.Commit: self._begin_commit,
            ops.TxnCommit: self._begin_txn,
            ops.OffsetDelete: self._begin_offset_delete,
            ops.DeleteGroups: self._begin_delete,
        }
        # 4.4 calls the field what it has become: a generation or a member epoch.
        self._txn_generation = (
            "setGenerationIdOrMemberEpoch" if hasattr(self._txn, "setGenerationIdOrMemberEpoch") else "setGenerationId"
        )

    def begin(self, service: Any, operation: ops.Operation) -> Any:
        """Hand the operation over; returns Kafka's future of the response."""
        return self._begin[type(operation)](service, operation)

    def context_of(self, api: str, version: int, client_id: str = "c", host: str = "/127.0.0.1") -> Any:
        """The frame of a request in a version, from a client."""
        key = (api, version, client_id, host)
        found = self._contexts.get(key)
        if found is None:
            # A version that the release does not have never reaches its coordinator; the nearest says the same.
            keys = getattr(self._keys, api)
            version = min(max(version, int(keys.oldestVersion())), int(keys.latestVersion()))
            found = self._contexts[key] = self._context(
                self._header(getattr(self._keys, api), version, client_id, 1),
                "1",
                self._address.getByName(host.lstrip("/")),
                self._principal,
                self._listener,
                self._security,
                self._information,
                False,
            )
        return found

    def read(self, operation: ops.Operation, response: Any, at_ms: int) -> Answer:
        """The answer in a response of the operation's kind."""
        return read(operation, response, at_ms)

    def _begin_join(self, service: Any, join: ops.Join) -> Any:
        protocols = self._protocols()
        for name, metadata in join.protocols:
            protocols.add(self._protocol().setName(name).setMetadata(metadata))
        rebalance_ms = join.session_timeout_ms if join.version == 0 else join.rebalance_timeout_ms
        data = (
            self._join()
            .setGroupId(join.group_id)
            .setMemberId(join.member_id)
            .setSessionTimeoutMs(join.session_timeout_ms)
            .setRebalanceTimeoutMs(rebalance_ms)
            .setProtocolType(join.protocol_type)
            .setProtocols(protocols)
        )
        if join.group_instance_id is not None:
            data.setGroupInstanceId(join.group_instance_id)
        if join.reason is not None:
            data.setReason(join.reason)
        context = self.context_of("JOIN_GROUP", join.version, join.client_id, join.client_host)
        return service.joinGroup(context, data, self._no_caching)

    def _begin_sync(self, service: Any, sync: ops.Sync) -> Any:
        data = self._sync().setGroupId(sync.group_id).setGenerationId(sync.generation_id).setMemberId(sync.member_id)
        if sync.group_instance_id is not None:
            data.setGroupInstanceId(sync.group_instance_id)
        if sync.protocol_type is not None:
            data.setProtocolType(sync.protocol_type)
        if sync.protocol_name is not None:
            data.setProtocolName(sync.protocol_name)
        if sync.assignments:
            assignments = self._list()
            for member_id, assignment in sync.assignments:
                assignments.add(self._assignment().setMemberId(member_id).setAssignment(assignment))
            data.setAssignments(assignments)
        return service.syncGroup(self.context_of("SYNC_GROUP", sync.version), data, self._no_caching)

    def _begin_heartbeat(self, service: Any, beat: ops.Heartbeat) -> Any:
        data = (
            self._heartbeat().setGroupId(beat.group_id).setGenerationId(beat.generation_id).setMemberId(beat.member_id)
        )
        if beat.group_instance_id is not None:
            data.setGroupInstanceId(beat.group_instance_id)
        return service.heartbeat(self.context_of("HEARTBEAT", beat.version), data)

    def _begin_leave(self, service: Any, leave: ops.Leave) -> Any:
        members = self._list()
        for entry in leave.members:
            identity = self._identity().setMemberId(entry.member_id)
            if entry.group_instance_id is not None:
                identity.setGroupInstanceId(entry.group_instance_id)
            if entry.reason is not None:
                identity.setReason(entry.reason)
            members.add(identity)
        # Versions 0 to 2 are brought into the form of version 3 before they reach the coordinator.
        context = self.context_of("LEAVE_GROUP", max(leave.version, 3))
        return service.leaveGroup(context, self._leave().setGroupId(leave.group_id).setMembers(members))

    def _begin_commit(self, service: Any, commit: ops.Commit) -> Any:
        partition = (
            self._commit_partition()
            .setPartitionIndex(commit.partition)
            .setCommittedOffset(commit.offset)
            .setCommittedMetadata(TOO_LARGE if commit.too_large else "")
        )
        topic = self._commit_topic().setName(commit.topic).setPartitions(self._one(partition))
        if commit.version >= COMMITS_BY_ID and (made := self.topic_uuid(commit.topic)) is not None:
            topic.setTopicId(made)
        data = (
            self._commit()
            .setGroupId(commit.group_id)
            .setGenerationIdOrMemberEpoch(commit.generation_id)
            .setMemberId(commit.member_id)
            .setRetentionTimeMs(commit.retention_ms)
            .setTopics(self._one(topic))
        )
        if commit.group_instance_id is not None:
            data.setGroupInstanceId(commit.group_instance_id)
        context = self.context_of("OFFSET_COMMIT", commit.version)
        return service.commitOffsets(context, data, self._no_caching)

    def _begin_txn(self, service: Any, commit: ops.TxnCommit) -> Any:
        partition = (
            self._txn_partition()
            .setPartitionIndex(commit.partition)
            .setCommittedOffset(commit.offset)
            .setCommittedMetadata("")
        )
        topic = self._txn_topic().setName(commit.topic).setPartitions(self._one(partition))
        data = (
            self._txn()
            .setTransactionalId("t")
            .setGroupId(commit.group_id)
            .setProducerId(commit.producer_id)
            .setProducerEpoch(commit.producer_epoch)
            .setMemberId(commit.member_id)
            .setTopics(self._one(topic))
        )
        getattr(data, self._txn_generation)(commit.generation_id)
        if commit.group_instance_id is not None:
            data.setGroupInstanceId(commit.group_instance_id)
        context = self.context_of("TXN_OFFSET_COMMIT", commit.version)
        return service.commitTransactionalOffsets(context, data, self._no_caching)

    def _begin_delete(self, service: Any, delete: ops.DeleteGroups) -> Any:
        context = self.context_of("DELETE_GROUPS", 2)
        names = self._list()
        for group_id in delete.group_ids:
            names.add(group_id)
        return service.deleteGroups(context, names, self._no_caching)

    def _begin_offset_delete(self, service: Any, delete: ops.OffsetDelete) -> Any:
        topics = self._offset_topics()
        for name in dict.fromkeys(topic for topic, _ in delete.partitions):
            partitions = self._list()
            for topic, number in delete.partitions:
                if topic == name:
                    partitions.add(self._offset_partition().setPartitionIndex(number))
            topics.add(self._offset_topic().setName(name).setPartitions(partitions))
        data = self._offset_delete().setGroupId(delete.group_id).setTopics(topics)
        return service.deleteOffsets(self.context_of("OFFSET_DELETE", 0), data, self._no_caching)

    def _one(self, item: Any) -> Any:
        items = self._list()
        items.add(item)
        return items


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def read(operation: ops.Operation, response: Any, at_ms: int) -> Answer:
    """The answer in a response of the operation's kind."""
    number = operation.number
    if isinstance(operation, ops.Join):
        members = tuple(
            sorted(
                (str(member.memberId()), _text(member.groupInstanceId()), bytes(member.metadata()))
                for member in response.members()
            )
        )
        return Answer(
            number,
            at_ms,
            int(response.errorCode()),
            int(response.generationId()),
            _text(response.leader()) or "",
            _text(response.memberId()) or "",
            # An error carries no name; Scala says null, Java an empty string.
            _text(response.protocolName()) or None,
            members,
            bool(response.skipAssignment()),
        )
    if isinstance(operation, ops.Sync):
        return Answer(number, at_ms, int(response.errorCode()), assignment=bytes(response.assignment()))
    if isinstance(operation, ops.Heartbeat):
        return Answer(number, at_ms, int(response.errorCode()))
    if isinstance(operation, ops.Leave):
        left = tuple(
            (str(member.memberId()), _text(member.groupInstanceId()), int(member.errorCode()))
            for member in response.members()
        )
        error_code = int(response.errorCode())
        if operation.version < 3:
            return Answer(number, at_ms, error_code or left[0][2])
        return Answer(number, at_ms, error_code, left=left)
    if isinstance(operation, ops.Commit | ops.TxnCommit):
        partition = response.topics().get(0).partitions().get(0)
        return Answer(number, at_ms, int(partition.errorCode()))
    if isinstance(operation, ops.OffsetDelete):
        parts = sorted(
            (f"{topic.name()}-{partition.partitionIndex()}", int(partition.errorCode()))
            for topic in response.topics()
            for partition in topic.partitions()
        )
        return Answer(number, at_ms, int(response.errorCode()), parts=tuple(parts))
    if isinstance(operation, ops.DeleteGroups):
        errors = {str(one.groupId()): int(one.errorCode()) for one in response}
        return Answer(number, at_ms, errors[operation.group_ids[0]], parts=tuple(sorted(errors.items())))
    if isinstance(operation, ops.TxnEnd):
        return Answer(number, at_ms, 0)  # its future holds nothing, or what went wrong
    raise TypeError(f"{operation} has no response")
