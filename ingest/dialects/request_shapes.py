"""Shapes of the request log's JSON lines, brokers 2.8 to 4.4: only the fields that an event needs.

One line type per API. Field names follow the *broker's* schema, not the version of the request, so both names of a
field that was renamed are declared (`generationId`, `generationIdOrMemberEpoch`). Unknown fields are skipped without
being built. `request` and `response` may be an empty string (up to 4.3) or null (4.4): logging was switched on
between arrival and completion, or the broker closed the connection instead of answering.

Bounds are those of the wire (int16, int32, int64) and, where the broker refuses anything else, those of the protocol.
Truth: Kafka's message schemas and `RequestConvertToJson`, checked against recorded lines of eight broker versions.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

Int16 = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Generation = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
"""-1: no generation (a commit without a group, a join)."""
Epoch = Annotated[int, Meta(ge=-3, le=2**31 - 1)]
"""-1 leave, -2 temporary leave of a static member, 0 join."""
Timeout = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Version = Annotated[int, Meta(ge=0, le=2**15 - 1)]
Duration = Annotated[float, Meta(ge=0, le=1e10)]
"""Milliseconds, 1 µs resolution; the bound is about four months, a request waits for minutes at most."""
GroupId = Annotated[str, Meta(max_length=2**15 - 1)]


class Shape(Struct, rename="camel", gc=False):
    """Base of the shapes: camelCase names, no part of a reference cycle."""


class Header(Shape):
    request_api_version: Version
    client_id: str | None = None


class Software(Shape):
    software_name: str = "unknown"
    software_version: str = "unknown"


class Times(Shape, kw_only=True):
    """What places a request in time, and who sent it."""

    request_header: Header
    connection: str
    total_time_ms: Duration
    request_queue_time_ms: Duration
    local_time_ms: Duration
    remote_time_ms: Duration
    throttle_time_ms: Duration = 0.0
    """For that long the connection is not read after this answer: the next request on it comes late."""


class Envelope(Times, kw_only=True):
    """What every line has."""

    client_information: Software = field(default_factory=Software)


class ErrorOnly(Shape):
    error_code: Int16 = 0


# --- HEARTBEAT ---------------------------------------------------------------------------------------------------


class HeartbeatRequest(Shape):
    group_id: GroupId
    generation_id: Generation
    member_id: str
    group_instance_id: str | None = None


class HeartbeatLine(Envelope, kw_only=True):
    request: HeartbeatRequest | str | None
    response: ErrorOnly | str | None


# --- JOIN_GROUP --------------------------------------------------------------------------------------------------


class JoinProtocol(Shape):
    name: str
    metadata: str | None = None  # text lines do not show it


class JoinRequest(Shape):
    group_id: GroupId
    session_timeout_ms: Timeout
    member_id: str
    protocol_type: str
    protocols: list[JoinProtocol]
    rebalance_timeout_ms: Int32 | None = None
    group_instance_id: str | None = None
    reason: str | None = None


class JoinMember(Shape):
    member_id: str
    group_instance_id: str | None = None


class JoinResponse(Shape):
    error_code: Int16
    generation_id: Generation
    leader: str
    member_id: str
    members: list[JoinMember]
    protocol_name: str | None = None
    skip_assignment: bool = False


class JoinLine(Envelope, kw_only=True):
    request: JoinRequest | str | None
    response: JoinResponse | str | None
    release: str = ""  # of text lines only


# --- SYNC_GROUP --------------------------------------------------------------------------------------------------


class SyncAssignment(Shape):
    member_id: str
    assignment: str = ""


class SyncRequest(Shape):
    group_id: GroupId
    generation_id: Generation
    member_id: str
    assignments: list[SyncAssignment]
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None


class SyncResponse(Shape):
    error_code: Int16
    assignment: str = ""
    protocol_type: str | None = None
    protocol_name: str | None = None


class SyncLine(Envelope, kw_only=True):
    request: SyncRequest | str | None
    response: SyncResponse | str | None


# --- LEAVE_GROUP -------------------------------------------------------------------------------------------------


class LeavingMember(Shape):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveRequest(Shape):
    group_id: GroupId
    member_id: str | None = None  # versions 0 to 2
    members: list[LeavingMember] | None = None  # versions 3 and up


class LeftMember(Shape):
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: Int16 = 0


class LeaveResponse(Shape):
    error_code: Int16
    members: list[LeftMember] | None = None


class LeaveLine(Envelope, kw_only=True):
    request: LeaveRequest | str | None
    response: LeaveResponse | str | None


# --- OFFSET_COMMIT, TXN_OFFSET_COMMIT ----------------------------------------------------------------------------


class CommitPartition(Shape):
    partition_index: Count
    committed_offset: Int64


class CommitTopic(Shape):
    partitions: list[CommitPartition]
    name: str = ""
    topic_id: str = ""


class CommitRequest(Shape):
    group_id: GroupId
    topics: list[CommitTopic]
    member_id: str = ""
    group_instance_id: str | None = None
    generation_id: Epoch = -1  # brokers up to 3.8 or so, and TXN_OFFSET_COMMIT everywhere
    generation_id_or_member_epoch: Epoch = -1


class CommittedPartition(Shape):
    partition_index: Count
    error_code: Int16


class CommittedTopic(Shape):
    partitions: list[CommittedPartition]
    name: str = ""
    topic_id: str = ""


class CommitResponse(Shape):
    topics: list[CommittedTopic]


class CommitLine(Envelope, kw_only=True):
    request: CommitRequest | str | None
    response: CommitResponse | str | None


# --- FETCH -------------------------------------------------------------------------------------------------------


class ReplicaState(Shape):
    replica_id: Int32 = -1


class FetchRequest(Shape):
    replica_id: Int32 = -1  # up to version 14
    replica_state: ReplicaState | None = None  # from version 15


class FetchPartition(Shape):
    records_size_in_bytes: Size = 0  # brokers 3.x and up
    record_set_size_in_bytes: Size = 0  # brokers 2.8


class FetchTopic(Shape):
    partitions: list[FetchPartition] = []
    partition_responses: list[FetchPartition] = []


class FetchResponse(Shape):
    responses: list[FetchTopic]
    error_code: Int16 = 0


class FetchLine(Envelope, kw_only=True):
    request: FetchRequest | str | None
    response: FetchResponse | str | None


# --- lines that are folded: only what differs from line to line, and what says that nothing else does -----------------


class QuietHeartbeat(Shape, kw_only=True):
    """Fields in the order of a line, which is the fastest to decode; bounds of durations are looked at in columns."""

    request_header: Header
    request: HeartbeatRequest | str | None
    response: ErrorOnly | str | None
    connection: str
    total_time_ms: float
    request_queue_time_ms: float
    local_time_ms: float
    remote_time_ms: float
    throttle_time_ms: Duration = 0.0


class QuietFetchTopic(Shape):
    """As `FetchTopic`; a list that is not there is not made."""

    partitions: list[FetchPartition] | UnsetType = UNSET
    partition_responses: list[FetchPartition] | UnsetType = UNSET


class QuietFetchResponse(Shape):
    responses: list[QuietFetchTopic]
    error_code: Int16 = 0


class QuietFetch(Shape, kw_only=True):
    """As `QuietHeartbeat`."""

    request_header: Header
    request: FetchRequest | str | None
    response: QuietFetchResponse | str | None
    connection: str
    total_time_ms: float
    request_queue_time_ms: float
    local_time_ms: float
    remote_time_ms: float
    throttle_time_ms: Duration = 0.0


# --- PUSH_TELEMETRY, DELETE_GROUPS, the heartbeats of the other group protocols ------------------------------------


class TelemetryRequest(Shape):
    metrics: str
    compression_type: Int16
    client_instance_id: str


class TelemetryLine(Envelope, kw_only=True):
    request: TelemetryRequest | str | None
    response: ErrorOnly | str | None


class DeleteGroupsRequest(Shape):
    groups_names: list[GroupId]


class DeletedGroup(Shape):
    group_id: GroupId
    error_code: Int16


class DeleteGroupsResponse(Shape):
    results: list[DeletedGroup]


class DeleteGroupsLine(Envelope, kw_only=True):
    request: DeleteGroupsRequest | str | None
    response: DeleteGroupsResponse | str | None


class Assigned(Shape):
    """Partitions of a topic, or tasks of a subtopology."""

    partitions: list[Int32]
    topic_id: str = ""
    subtopology_id: str = ""


class AssignedTopics(Shape):
    topic_partitions: list[Assigned] = []


class ModernRequest(Shape):
    """Null means: as before. A consumer owns `topic_partitions`, a thread of Kafka Streams `active_tasks`."""

    group_id: GroupId
    member_id: str
    member_epoch: Epoch
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    topic_partitions: list[Assigned] | None = None
    active_tasks: list[Assigned] | None = None


class StreamsStatus(Shape):
    status_code: int = -1


class ModernResponse(Shape):
    error_code: Int16
    status: list[StreamsStatus] | None = None
    member_id: str | None = None
    member_epoch: Epoch = -1
    heartbeat_interval_ms: Int32 = 0
    assignment: AssignedTopics | None = None
    active_tasks: list[Assigned] | None = None


class ModernLine(Envelope, kw_only=True):
    request: ModernRequest | str | None
    response: ModernResponse | str | None
