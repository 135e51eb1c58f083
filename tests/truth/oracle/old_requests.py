"""Operations as calls of the Scala coordinator of 2.3 to 2.7, and what it hands its callbacks as answers.

Does by hand what `KafkaApis` of these releases does between the wire and the coordinator: from which version on a
member id is required, what a commit is worth and until when, and the single error of LeaveGroup 0 to 2. `begin` hands
an operation over and returns what will hold its answer (`Held`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jpype

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.jvm import jclass
from tests.truth.oracle.requests import TOO_LARGE
from tests.truth.oracle.scala_values import items, option, scala_list, scala_map, scala_set

_MEMBER_ID_REQUIRED_FROM = 4
_MEMBERS_FROM = 3


class Held:
    """An answer to come, as Kafka's futures hold theirs."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.answer: Answer | None = None

    def isDone(self) -> bool:  # noqa: N802 - as in Java
        """Whether it is there."""
        return self.answer is not None

    def get(self) -> Answer | None:
        """The answer."""
        return self.answer


class OldRequests:
    """Speaks to a `GroupCoordinator` of these releases."""

    def __init__(self, clock: Clock) -> None:
        """Look the classes up once."""
        self._clock = clock
        self._partition = jclass("org.apache.kafka.common.TopicPartition")
        self._offset = jclass("kafka.common.OffsetAndMetadata")
        self._optional = jclass("java.util.Optional")
        self._tuple = jclass("scala.Tuple2")
        self._map = jclass("scala.collection.immutable.Map$Map1")
        self._parameters = {
            str(method.getName()): int(method.getParameterCount())
            for method in jclass("kafka.coordinator.group.GroupCoordinator").class_.getMethods()
            if str(method.getName()).startswith("handle")
        }
        """How many a method has tells what its release hands on."""
        self._takes_several = "handleDeleteOffsets" in self._parameters
        """LeaveGroup of several members came with OffsetDelete, in 2.4."""
        self._begin: dict[type, Callable[[Any, Any, Held], None]] = {
            ops.Join: self._join,
            ops.Sync: self._sync,
            ops.Heartbeat: self._heartbeat,
            ops.Leave: self._leave,
            ops.Commit: self._commit,
            ops.TxnCommit: self._txn_commit,
            ops.OffsetDelete: self._offset_delete,
            ops.DeleteGroups: self._delete_groups,
        }

    def begin(self, service: Any, operation: Any) -> Held:
        """Hand the operation over."""
        held = Held()
        self._begin[type(operation)](service, operation, held)
        return held

    def read(self, operation: Any, answer: Answer | None, at_ms: int) -> Answer:
        """The answer as it was given; the end of a transaction is answered with nothing."""
        return Answer(operation.number, at_ms, 0) if answer is None else answer

    def _told(self, held: Held, make: Callable[[Any], Answer]) -> Any:
        """A Scala function that takes what the coordinator says, once."""

        def apply(result: Any) -> None:
            if held.answer is None:
                held.answer = make(result)

        return jpype.JProxy("scala.Function1", dict={"apply": apply})

    def _join(self, service: Any, join: ops.Join, held: Held) -> None:
        def make(result: Any) -> Answer:
            name = result.protocolName() if hasattr(result, "protocolName") else option(result.subProtocol())
            members = tuple(
                sorted(
                    (str(one.memberId()), _text(one.groupInstanceId()), bytes(one.metadata()))
                    for one in items(result.members())
                )
            )
            return Answer(
                join.number,
                self._clock.now_ms,
                int(result.error().code()),
                int(result.generationId()),
                _text(result.leaderId()) or "",
                _text(result.memberId()) or "",
                (_text(name.get()) if name.isDefined() else None) or None,
                members,
            )

        protocols = [self._tuple(name, jpype.JArray(jpype.JByte)(data)) for name, data in join.protocols]
        service.handleJoinGroup(
            join.group_id,
            join.member_id,
            option(join.group_instance_id),
            join.version >= _MEMBER_ID_REQUIRED_FROM and join.group_instance_id is None,
            join.client_id,
            join.client_host,
            join.session_timeout_ms if join.version == 0 else join.rebalance_timeout_ms,
            join.session_timeout_ms,
            join.protocol_type,
            scala_list(protocols),
            self._told(held, make),
        )

    def _sync(self, service: Any, sync: ops.Sync, held: Held) -> None:
        def make(result: Any) -> Answer:
            assignment = bytes(result.memberAssignment())
            return Answer(sync.number, self._clock.now_ms, int(result.error().code()), assignment=assignment)

        assignments = {one: jpype.JArray(jpype.JByte)(data) for one, data in sync.assignments}
        compared = self._parameters["handleSyncGroup"] > 6  # from 2.5 on
        protocol = [option(sync.protocol_type), option(sync.protocol_name)] if compared else []
        service.handleSyncGroup(
            sync.group_id,
            sync.generation_id,
            sync.member_id,
            *protocol,
            option(sync.group_instance_id),
            scala_map(assignments),
            self._told(held, make),
        )

    def _heartbeat(self, service: Any, beat: ops.Heartbeat, held: Held) -> None:
        told = self._told(held, lambda error: Answer(beat.number, self._clock.now_ms, int(error.code())))
        service.handleHeartbeat(beat.group_id, beat.member_id, option(beat.group_instance_id), beat.generation_id, told)

    def _leave(self, service: Any, leave: ops.Leave, held: Held) -> None:
        if not self._takes_several:
            [one] = leave.members
            told = self._told(held, lambda error: Answer(leave.number, self._clock.now_ms, int(error.code())))
            service.handleLeaveGroup(leave.group_id, one.member_id, told)
            return

        def make(result: Any) -> Answer:
            left = tuple(
                (
                    str(one.memberId()),
                    _text(one.groupInstanceId().get()) if one.groupInstanceId().isDefined() else None,
                    int(one.error().code()),
                )
                for one in items(result.memberResponses())
            )
            code = int(result.topLevelError().code())
            if leave.version < _MEMBERS_FROM:
                return Answer(leave.number, self._clock.now_ms, code or left[0][2])
            return Answer(leave.number, self._clock.now_ms, code, left=left)

        identity = jclass("org.apache.kafka.common.message.LeaveGroupRequestData$MemberIdentity")
        members = []
        for one in leave.members:
            made = identity().setMemberId(one.member_id)
            members.append(made if one.group_instance_id is None else made.setGroupInstanceId(one.group_instance_id))
        service.handleLeaveGroup(leave.group_id, scala_list(members), self._told(held, make))

    def _commit(self, service: Any, commit: ops.Commit, held: Held) -> None:
        expires_at_ms = None if commit.retention_ms == -1 else self._clock.now_ms + commit.retention_ms
        service.handleCommitOffsets(
            commit.group_id,
            commit.member_id,
            option(commit.group_instance_id),
            commit.generation_id,
            self._offsets(commit, TOO_LARGE if commit.too_large else "", expires_at_ms),
            self._told(held, lambda result: self._first_error(commit.number, result)),
        )

    def _txn_commit(self, service: Any, commit: ops.TxnCommit, held: Held) -> None:
        told = self._told(held, lambda result: self._first_error(commit.number, result))
        checked = self._parameters["handleTxnCommitOffsets"] > 5  # from 2.5 on
        who = [commit.member_id, option(commit.group_instance_id), commit.generation_id] if checked else []
        offsets = self._offsets(commit, "", None)
        service.handleTxnCommitOffsets(
            commit.group_id, commit.producer_id, jpype.JShort(commit.producer_epoch), *who, offsets, told
        )

    def _offsets(self, commit: ops.Commit | ops.TxnCommit, metadata: str, expires_at_ms: int | None) -> Any:
        expires = option(None if expires_at_ms is None else jclass("java.lang.Long").valueOf(expires_at_ms))
        made = self._offset(commit.offset, self._optional.empty(), metadata, self._clock.now_ms, expires)
        return self._map(self._partition(commit.topic, commit.partition), made)

    def _first_error(self, number: int, result: Any) -> Answer:
        return Answer(number, self._clock.now_ms, int(result.iterator().next()._2().code()))

    def _offset_delete(self, service: Any, delete: ops.OffsetDelete, held: Held) -> None:
        partitions = [self._partition(topic, number) for topic, number in delete.partitions]
        pair = service.handleDeleteOffsets(delete.group_id, scala_list(partitions))
        parts = tuple(
            sorted((f"{one._1().topic()}-{one._1().partition()}", int(one._2().code())) for one in items(pair._2()))
        )
        held.answer = Answer(delete.number, self._clock.now_ms, int(pair._1().code()), parts=parts)

    def _delete_groups(self, service: Any, delete: ops.DeleteGroups, held: Held) -> None:
        found = service.handleDeleteGroups(scala_set(delete.group_ids))
        errors = {str(one._1()): int(one._2().code()) for one in items(found)}
        parts = tuple(sorted(errors.items()))
        held.answer = Answer(delete.number, self._clock.now_ms, errors[delete.group_ids[0]], parts=parts)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
