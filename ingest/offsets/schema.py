"""Layouts of the records of `__consumer_offsets`, as data.

A key is an int16 (the kind of record) and fields that are never flexible; a value is an int16 version and fields, which
from `flexible` on use compact lengths and end in tagged fields. `Field.since` and `Field.until` are versions of
the value. A layout is `open` where releases changed what follows under the same version number (share and
streams groups before they were final): its fields are read and the rest is left alone.
Truth: `group-coordinator/src/main/resources/common/message/*.json` of Kafka 3.8 to 4.4 and `GroupMetadataValue` back
to 0.9; checked against records of real brokers. Kinds 5, 7 and 8 as written by 3.7 (early access) differ.
"""

from __future__ import annotations

from typing import NamedTuple

NEVER = 1_000


class Field(NamedTuple):
    """One field. `type`: int8, int16, int32, int64, string, bytes, uuid, or a struct; `many` makes it an array."""

    name: str
    type: str | tuple[Field, ...]
    since: int = 0
    until: int = NEVER
    nullable: int = NEVER
    """First version in which it may be null."""
    many: bool = False
    tag: int = -1
    """Number of a tagged field, -1 for an ordinary one."""


class Layout(NamedTuple):
    """One kind of record. `highest`: highest version of the value that is known."""

    name: str
    protocol: str
    key: tuple[Field, ...]
    value: tuple[Field, ...] = ()
    highest: int = 0
    flexible: int = 0
    open: bool = False


_GROUP = (Field("group", "string"),)
_MEMBER = (*_GROUP, Field("member", "string"))
_OFFSET_KEY = (*_GROUP, Field("topic", "string"), Field("partition", "int32"))

_OFFSET_COMMIT = (
    Field("offset", "int64"),
    Field("leaderEpoch", "int32", since=3),
    Field("metadata", "string"),
    Field("commitTimestamp", "int64"),
    Field("expireTimestamp", "int64", since=1, until=1),
    Field("topicId", "uuid", since=4, tag=0),
)

_CLASSIC_MEMBER = (
    Field("memberId", "string"),
    Field("groupInstanceId", "string", since=3, nullable=3),
    Field("clientId", "string"),
    Field("clientHost", "string"),
    Field("rebalanceTimeout", "int32", since=1),
    Field("sessionTimeout", "int32"),
    Field("subscription", "bytes"),
    Field("assignment", "bytes"),
)

_GROUP_METADATA = (
    Field("protocolType", "string"),
    Field("generation", "int32"),
    Field("protocol", "string", nullable=0),
    Field("leader", "string", nullable=0),
    Field("currentStateTimestamp", "int64", since=2),
    Field("members", _CLASSIC_MEMBER, many=True),
)

_TOPIC_PARTITIONS = (Field("topicId", "uuid"), Field("partitions", "int32", many=True))
_ASSIGNED = (*_TOPIC_PARTITIONS, Field("assignmentEpochs", "int32", many=True, nullable=0, tag=0))
_RACKS = (Field("partition", "int32"), Field("racks", "string", many=True))
_TOPIC_METADATA = (
    Field("topicId", "uuid"),
    Field("topicName", "string"),
    Field("numPartitions", "int32"),
    Field("partitionMetadata", _RACKS, many=True),
)
_CLASSIC_METADATA = (
    Field("sessionTimeoutMs", "int32"),
    Field("supportedProtocols", (Field("name", "string"), Field("metadata", "bytes")), many=True),
)
_EPOCHS = (Field("memberEpoch", "int32"), Field("previousMemberEpoch", "int32"), Field("state", "int8"))
_EPOCH = (Field("epoch", "int32"),)
_ASSIGNMENT_EPOCH = (Field("assignmentEpoch", "int32"),)

LAYOUTS: dict[int, Layout] = {
    # The two kinds of commit: flexible from version 4.
    0: Layout("OffsetCommit", "any", _OFFSET_KEY, _OFFSET_COMMIT, highest=4, flexible=4),
    1: Layout("OffsetCommit", "any", _OFFSET_KEY, _OFFSET_COMMIT, highest=4, flexible=4),
    2: Layout("GroupMetadata", "classic", _GROUP, _GROUP_METADATA, highest=4, flexible=4),
    3: Layout("ConsumerGroupMetadata", "consumer", _GROUP, (*_EPOCH, Field("metadataHash", "int64", tag=0))),
    4: Layout("ConsumerGroupPartitionMetadata", "consumer", _GROUP, (Field("topics", _TOPIC_METADATA, many=True),)),
    5: Layout(
        "ConsumerGroupMemberMetadata",
        "consumer",
        _MEMBER,
        (
            Field("instanceId", "string", nullable=0),
            Field("rackId", "string", nullable=0),
            Field("clientId", "string"),
            Field("clientHost", "string"),
            Field("subscribedTopicNames", "string", many=True),
            Field("subscribedTopicRegex", "string", nullable=0),
            Field("rebalanceTimeoutMs", "int32"),
            Field("serverAssignor", "string", nullable=0),
            Field("classicMemberMetadata", _CLASSIC_METADATA, nullable=0, tag=0),
        ),
    ),
    6: Layout(
        "ConsumerGroupTargetAssignmentMetadata",
        "consumer",
        _GROUP,
        (*_ASSIGNMENT_EPOCH, Field("assignmentTimestamp", "int64", tag=0)),
    ),
    7: Layout(
        "ConsumerGroupTargetAssignmentMember",
        "consumer",
        _MEMBER,
        (Field("topicPartitions", _TOPIC_PARTITIONS, many=True),),
    ),
    8: Layout(
        "ConsumerGroupCurrentMemberAssignment",
        "consumer",
        _MEMBER,
        (
            *_EPOCHS,
            Field("assignedPartitions", _ASSIGNED, many=True),
            Field("partitionsPendingRevocation", _ASSIGNED, many=True),
        ),
    ),
    9: Layout("ShareGroupPartitionMetadata", "share", _GROUP, open=True),
    10: Layout(
        "ShareGroupMemberMetadata",
        "share",
        _MEMBER,
        (
            Field("rackId", "string", nullable=0),
            Field("clientId", "string"),
            Field("clientHost", "string"),
            Field("subscribedTopicNames", "string", many=True),
        ),
    ),
    11: Layout("ShareGroupMetadata", "share", _GROUP, _EPOCH, open=True),
    12: Layout("ShareGroupTargetAssignmentMetadata", "share", _GROUP, _ASSIGNMENT_EPOCH, open=True),
    13: Layout("ShareGroupTargetAssignmentMember", "share", _MEMBER, open=True),
    14: Layout("ShareGroupCurrentMemberAssignment", "share", _MEMBER, _EPOCHS, open=True),
    15: Layout("ShareGroupStatePartitionMetadata", "share", _GROUP, open=True),
    16: Layout(
        "ConsumerGroupRegularExpression",
        "consumer",
        (*_GROUP, Field("regularExpression", "string")),
        (Field("topics", "string", many=True), Field("version", "int64"), Field("timestamp", "int64")),
    ),
    17: Layout("StreamsGroupMetadata", "streams", _GROUP, _EPOCH, open=True),
    18: Layout("StreamsGroupPartitionMetadata", "streams", _GROUP, open=True),
    19: Layout(
        "StreamsGroupMemberMetadata",
        "streams",
        _MEMBER,
        (
            Field("instanceId", "string", nullable=0),
            Field("rackId", "string", nullable=0),
            Field("clientId", "string"),
            Field("clientHost", "string"),
            Field("rebalanceTimeoutMs", "int32"),
        ),
        open=True,
    ),
    20: Layout("StreamsGroupTargetAssignmentMetadata", "streams", _GROUP, _ASSIGNMENT_EPOCH, open=True),
    21: Layout("StreamsGroupTargetAssignmentMember", "streams", _MEMBER, open=True),
    22: Layout("StreamsGroupCurrentMemberAssignment", "streams", _MEMBER, _EPOCHS, open=True),
    23: Layout("StreamsGroupTopology", "streams", _GROUP, open=True),
    24: Layout("StreamsGroupTargetAssignmentResolvedTopicIds", "streams", _GROUP, open=True),
}
"""Every kind of record by its number. Another number is skipped, as the broker does."""
