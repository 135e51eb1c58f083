"""`StreamsOracle`: Kafka's coordinator of streams groups of one release behind perform, advance and view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jpype

from kardia.coordinator.streams.operations import (
    ConfigureStreams,
    EndpointView,
    StreamsAnswer,
    StreamsBeat,
    StreamsOperation,
    StreamsView,
    Subtopology,
    Task,
    Topology,
)
from kardia.coordinator.streams.settings import StreamsSettings
from tests.truth.oracle.epochs import EpochOracle
from tests.truth.oracle.jvm import jclass
from tests.truth.oracle.streams_release import StreamsRelease

_REQUEST = "org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData"


class StreamsOracle(EpochOracle):
    """One coordinator of streams groups; see `Driven`."""

    _release: StreamsRelease

    def __init__(self, version: str, settings: StreamsSettings) -> None:
        """As `Driven`, with the classes of these requests."""
        super().__init__(version, settings)
        self._beat = jclass(_REQUEST)
        parts = ("Topology", "Subtopology", "TopicInfo", "CopartitionGroup", "TaskIds", "Endpoint", "KeyValue")
        self._parts = {name: jclass(f"{_REQUEST}${name}") for name in (*parts, "TaskOffset")}
        self._topologies: dict[Topology, Any] = {}

    def _build(self, version: str, settings: StreamsSettings) -> StreamsRelease:  # noqa: ARG002
        return StreamsRelease(self._clock, settings)

    def view(self, group_id: str) -> StreamsView | None:
        """What is held about a group, or None if there is none or its shard is not loaded."""
        return self._release.streams_view(group_id)

    def _fire(self) -> None:
        try:
            super()._fire()
        except jpype.JException:  # The timer's thread of a broker writes it to the log.
            return

    def _put(self, operation: StreamsOperation) -> bool:
        if not isinstance(operation, ConfigureStreams):
            return False
        self._release.configure(operation)
        return True

    def _begin(self, operation: Any) -> Any:
        context = self._requests.context_of(
            "STREAMS_GROUP_HEARTBEAT", operation.version, operation.client_id, operation.client_host
        )
        return self._release.service.streamsGroupHeartbeat(context, self._heartbeat(operation))

    def _heartbeat(self, beat: StreamsBeat) -> Any:
        data = self._beat().setGroupId(beat.group_id).setMemberId(beat.member_id).setMemberEpoch(beat.member_epoch)
        data.setInstanceId(beat.instance_id).setRackId(beat.rack_id).setRebalanceTimeoutMs(beat.rebalance_timeout_ms)
        data.setProcessId(beat.process_id).setShutdownApplication(beat.shutdown)
        data.setEndpointInformationEpoch(beat.endpoint_epoch)
        if beat.topology is not None:
            data.setTopology(self._topology(beat.topology))
        for part, put in (
            (beat.active, data.setActiveTasks),
            (beat.standby, data.setStandbyTasks),
            (beat.warmup, data.setWarmupTasks),
        ):
            if part is not None:
                put(self._tasks(part))
        if beat.endpoint is not None:
            host, port = beat.endpoint
            data.setUserEndpoint(self._parts["Endpoint"]().setHost(host).setPort(port))
        if beat.tags is not None:
            pair = self._parts["KeyValue"]
            data.setClientTags(self._java_list(pair().setKey(key).setValue(value) for key, value in beat.tags))
        if beat.offsets is not None:
            data.setTaskOffsets(self._java_list(self._offset(*one) for one in beat.offsets))
        return data

    def _offset(self, task: Task, offset: int) -> Any:
        made = self._parts["TaskOffset"]().setSubtopologyId(task[0]).setPartition(task[1])
        return made.setOffset(jpype.JLong(offset))

    def _tasks(self, tasks: Iterable[Task]) -> Any:
        numbers: dict[str, list[int]] = {}
        for subtopology_id, number in tasks:
            numbers.setdefault(subtopology_id, []).append(number)
        kind = self._parts["TaskIds"]
        return self._java_list(
            kind().setSubtopologyId(one).setPartitions(self._java_list(jpype.JInt(number) for number in held))
            for one, held in numbers.items()
        )

    def _topology(self, topology: Topology) -> Any:
        made = self._topologies.get(topology)
        if made is None:
            parts = self._java_list(self._subtopology(one) for one in topology.subtopologies)
            made = self._parts["Topology"]().setEpoch(topology.epoch).setSubtopologies(parts)
            self._topologies[topology] = made
        return made

    def _subtopology(self, one: Subtopology) -> Any:
        info, group = self._parts["TopicInfo"], self._parts["CopartitionGroup"]
        repartitions = [topic.name for topic in one.repartitions]
        together = [
            group()
            .setSourceTopics(self._indexes(names, one.sources))
            .setRepartitionSourceTopics(self._indexes(names, repartitions))
            for names in one.copartitioned
        ]
        made = self._parts["Subtopology"]().setSubtopologyId(one.subtopology_id)
        made.setSourceTopics(self._java_list(one.sources)).setSourceTopicRegex(self._java_list(one.patterns))
        made.setRepartitionSinkTopics(self._java_list(one.sinks)).setCopartitionGroups(self._java_list(together))
        for topics, put in (
            (one.repartitions, made.setRepartitionSourceTopics),
            (one.changelogs, made.setStateChangelogTopics),
        ):
            put(self._java_list(info().setName(topic.name).setPartitions(topic.partitions) for topic in topics))
        return made

    def _indexes(self, names: Iterable[str], of: Iterable[str]) -> Any:
        places = {name: place for place, name in enumerate(of)}
        return self._java_list(jpype.JShort(places[name]) for name in names if name in places)

    # -- answers --------------------------------------------------------------------------------------------------

    def _read(self, operation: Any, future: Any) -> StreamsAnswer:
        try:
            result = future.get()
        except jpype.JException as error:
            return StreamsAnswer(operation.number, self._clock.now_ms, self._code_of(error))
        response = result.data()
        code = int(response.errorCode())
        if code:
            return StreamsAnswer(operation.number, self._clock.now_ms, code)
        statuses, endpoints = response.status(), response.partitionsByUserEndpoint()
        missing = {str(one.getKey()): int(one.getValue().numPartitions()) for one in _entries(result)}
        return StreamsAnswer(
            operation.number,
            self._clock.now_ms,
            code,
            str(response.memberId() or ""),
            int(response.memberEpoch()),
            int(response.heartbeatIntervalMs()),
            _told(response.activeTasks()),
            _told(response.standbyTasks()),
            _told(response.warmupTasks()),
            None if statuses is None else tuple(sorted(int(one.statusCode()) for one in statuses)),
            int(response.endpointInformationEpoch()),
            None if endpoints is None else tuple(sorted(_endpoint(one) for one in endpoints)),
            tuple(sorted(missing.items())),
        )


def _entries(result: Any) -> Iterable[Any]:
    found: Mapping[str, Any] = result.creatableTopics().entrySet()
    return found


def _told(tasks: Any) -> tuple[Task, ...] | None:
    if tasks is None:
        return None
    return tuple(sorted((str(one.subtopologyId()), int(number)) for one in tasks for number in one.partitions()))


def _endpoint(one: Any) -> EndpointView:
    where = one.userEndpoint()
    return EndpointView(
        (str(where.host()), int(where.port())), _by_topic(one.activePartitions()), _by_topic(one.standbyPartitions())
    )


def _by_topic(partitions: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((str(one.topic()), tuple(sorted(int(n) for n in one.partitions()))) for one in partitions))
