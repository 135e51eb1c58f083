"""`ConsumerOracle`: Kafka's coordinator of one release behind perform, advance and view: consumer groups, and the
classic groups that they come from and become."""

from __future__ import annotations

import base64
import uuid
from contextlib import suppress
from typing import Any

import jpype

from kardia.coordinator.classic.operations import Answer, Join, Sync, View
from kardia.coordinator.consumer.operations import (
    Beat,
    Configure,
    ConsumerAnswer,
    ConsumerOperation,
    ConsumerView,
    Fetch,
    Resolve,
    SyncAnswer,
)
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.wire import read_assignment, version_of, write_assignment
from kardia.coordinator.errors import NotModelledError
from tests.truth.oracle.consumer_release import ConsumerRelease
from tests.truth.oracle.epochs import EpochOracle
from tests.truth.oracle.jvm import jclass
from tests.truth.oracle.requests import read

_DATA = "org.apache.kafka.common.message."


class ConsumerOracle(EpochOracle):
    """One coordinator of consumer groups; see `Driven`."""

    _release: ConsumerRelease

    def __init__(self, version: str, settings: ConsumerSettings) -> None:
        """As `Driven`, with the classes of these requests."""
        super().__init__(version, settings)
        self._beat = jclass(_DATA + "ConsumerGroupHeartbeatRequestData")
        self._owned = jclass(_DATA + "ConsumerGroupHeartbeatRequestData$TopicPartitions")
        self._fetch = jclass(_DATA + "OffsetFetchRequestData$OffsetFetchRequestGroup")
        self._buffer = jclass("java.nio.ByteBuffer")
        self._protocol = jclass("org.apache.kafka.clients.consumer.internals.ConsumerProtocol")

    def _build(self, version: str, settings: ConsumerSettings) -> ConsumerRelease:  # noqa: ARG002
        return ConsumerRelease(self._clock, settings)

    def reset(self) -> None:
        """As `Driven`. The requests are shared; topics are those of the coordinator that plays now."""
        self._requests.topic_uuid = self._release.uuid_of
        super().reset()

    def _put(self, operation: ConsumerOperation) -> bool:
        if isinstance(operation, Configure):
            self._release.configure(operation)
        elif isinstance(operation, Resolve):
            self._release.resolve()
        else:
            return False
        return True

    def _fire(self) -> None:
        with suppress(jpype.JException):  # The timer's thread of a broker writes it to the log.
            super()._fire()

    def view(self, group_id: str) -> ConsumerView | View | None:
        """What is held about a group, or None if there is none or its shard is not loaded."""
        return self._release.consumer_view(group_id)

    def _begin(self, operation: Any) -> Any:
        service = self._release.service
        if isinstance(operation, Beat | Join) and operation.new_id:
            self._ids.will_be(uuid_of(operation.new_id))
        if isinstance(operation, Beat):
            context = self._requests.context_of(
                "CONSUMER_GROUP_HEARTBEAT", operation.version, operation.client_id, operation.client_host
            )
            return service.consumerGroupHeartbeat(context, self._heartbeat(operation))
        if isinstance(operation, Fetch):
            group = self._fetch().setGroupId(operation.group_id).setMemberEpoch(operation.member_epoch)
            group.setMemberId(operation.member_id).setTopics(None)
            # One method from 4.4 on; without topics it means all.
            fetch_all = service.fetchAllOffsets if hasattr(service, "fetchAllOffsets") else service.fetchOffsets
            return fetch_all(self._requests.context_of("OFFSET_FETCH", 9), group, False)
        return self._requests.begin(service, operation)

    def _heartbeat(self, beat: Beat) -> Any:
        data = self._beat().setGroupId(beat.group_id).setMemberId(beat.member_id).setMemberEpoch(beat.member_epoch)
        data.setRebalanceTimeoutMs(beat.rebalance_timeout_ms).setInstanceId(beat.instance_id).setRackId(beat.rack_id)
        data.setServerAssignor(beat.assignor).setSubscribedTopicRegex(beat.regex)
        if beat.names is not None:
            data.setSubscribedTopicNames(self._java_list(beat.names))
        if beat.owned is not None:
            owned = self._list()
            for topic_id in dict.fromkeys(topic_id for topic_id, _ in beat.owned):
                numbers = self._java_list(jpype.JInt(number) for one, number in beat.owned if one == topic_id)
                owned.add(self._owned().setTopicId(self._release.uuid(topic_id)).setPartitions(numbers))
            data.setTopicPartitions(owned)
        return data

    def _read(self, operation: Any, future: Any) -> ConsumerAnswer:
        now_ms = self._clock.now_ms
        try:
            response = future.get()
            if isinstance(operation, Fetch):
                return Answer(operation.number, now_ms, int(response.errorCode()))
            if isinstance(operation, Sync) and not int(response.errorCode()):
                return self._read_sync(operation, response)
            if not isinstance(operation, Beat):
                return read(operation, response, now_ms)
        except jpype.JException as error:
            return Answer(operation.number, now_ms, self._code_of(error))
        return self._beat_answer(operation, response)

    def _read_sync(self, operation: Sync, response: Any) -> ConsumerAnswer:
        """A classic group hands out the bytes of its leader, or what it was made with: a consumer group, partitions."""
        if self._release.is_classic(operation.group_id):
            answer = read(operation, response, self._clock.now_ms)
            return answer._replace(assignment=_sorted(answer.assignment))
        return SyncAnswer(operation.number, self._clock.now_ms, 0, self._assignment(response))

    def _assignment(self, response: Any) -> tuple[tuple[str, int], ...]:
        """Partitions in the assignment of a SyncGroup."""
        if not len(response.assignment()):
            return ()
        read_back = self._protocol.deserializeConsumerProtocolAssignment(self._buffer.wrap(response.assignment()))
        found = [
            (str(one.topic()), int(number)) for one in read_back.assignedPartitions() for number in one.partitions()
        ]
        return tuple(sorted(found))


def uuid_of(made: str) -> str:
    """The random UUID in a member id: all of it in a consumer group, in another form; in a classic one its end."""
    if len(made) >= 36:
        return made[-36:]
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(made + "==")))


def _sorted(assignment: bytes) -> bytes:
    """An assignment with its topics in order; whatever else comes back as it is."""
    try:
        read_back = read_assignment(assignment)
        in_order = write_assignment(version_of(assignment), read_back.partitions)
    except (ValueError, NotModelledError):
        return assignment
    return in_order if len(in_order) == len(assignment) and not read_back.user_data else assignment
