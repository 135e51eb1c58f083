"""Fields of the text request lines of brokers 2.0 to 2.7, as data: names, order, and in which versions they are there.

Names follow the broker's release, not the version of the request (`session_timeout` up to 2.2, `session_timeout_ms`
from 2.3): both are listed, they never collide. Whether a field is there follows from the version alone. `to` is the
name of the field in a JSON line of 2.8 and newer, empty where no event needs it.
Truth: recorded lines of eight releases, every API in every version.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Value(Enum):
    """What stands behind a field's name."""

    NUMBER = 1
    TEXT = 2
    """Anything at all: a client chose it."""
    OPTION = 3
    """The same, or `null`."""
    BYTES = 4
    """Only their length is shown."""
    NAMES = 5
    """A list of texts without field names: where one ends is not shown."""


_NEVER = 32_767


class Field(NamedTuple):
    """One field. `since` and `until`: versions of the request in which it is there."""

    names: tuple[str, ...]
    to: str
    value: Value | Struct
    """A `Struct` stands for a list of them."""
    since: int = 0
    until: int = _NEVER


class Struct(NamedTuple):
    """Fields in their order. From version `flexible` on each struct, also within, ends with `_tagged_fields={}`."""

    fields: tuple[Field, ...]
    flexible: int = _NEVER


class Api(NamedTuple):
    """Request and response of one API; `key` is its number."""

    key: int
    request: Struct
    response: Struct


def _number(name: str, to: str, since: int = 0, until: int = _NEVER) -> Field:
    return Field(tuple(name.split("|")), to, Value.NUMBER, since, until)


def _text(name: str, to: str, since: int = 0, until: int = _NEVER) -> Field:
    return Field(tuple(name.split("|")), to, Value.TEXT, since, until)


def _bytes(name: str) -> Field:
    return Field(tuple(name.split("|")), "", Value.BYTES)


def _instance(since: int = 0) -> Field:
    return Field(("group_instance_id",), "groupInstanceId", Value.OPTION, since)


def _list(name: str, to: str, *fields: Field, since: int = 0, flexible: int = _NEVER) -> Field:
    return Field(tuple(name.split("|")), to, Struct(fields, flexible), since)


_ERROR = _number("error_code", "errorCode")
_GROUP = _text("group_id", "groupId")
_GENERATION = _number("generation_id", "generationId")
_MEMBER = _text("member_id", "memberId")


def _throttle(since: int) -> Field:
    return _number("throttle_time_ms", "throttleTimeMs", since)


def _commit_topics(flexible: int, epoch_since: int, timestamp: int) -> Field:
    partitions = _list(
        "partitions",
        "partitions",
        _number("partition|partition_index", "partitionIndex"),
        _number("offset|committed_offset", "committedOffset"),
        _number("timestamp|commit_timestamp", "", timestamp, timestamp),
        _number("leader_epoch|committed_leader_epoch", "", epoch_since),
        Field(("metadata", "committed_metadata"), "", Value.TEXT),
        flexible=flexible,
    )
    return _list("topics", "topics", _text("topic|name", "name"), partitions, flexible=flexible)


def _committed(flexible: int, throttle: int) -> Struct:
    partitions = _list(
        "partition_responses|partitions",
        "partitions",
        _number("partition|partition_index", "partitionIndex"),
        _ERROR,
        flexible=flexible,
    )
    topics = _list("responses|topics", "topics", _text("topic|name", "name"), partitions, flexible=flexible)
    return Struct((_throttle(throttle), topics), flexible)


APIS: dict[str, Api] = {
    "JOIN_GROUP": Api(
        11,
        Struct(
            (
                _GROUP,
                _number("session_timeout|session_timeout_ms", "sessionTimeoutMs"),
                _number("rebalance_timeout|rebalance_timeout_ms", "rebalanceTimeoutMs", 1),
                _MEMBER,
                _instance(5),
                _text("protocol_type", "protocolType"),
                _list(
                    "group_protocols|protocols",
                    "protocols",
                    _text("protocol_name|name", "name"),
                    _bytes("protocol_metadata|metadata"),
                    flexible=6,
                ),
            ),
            6,
        ),
        Struct(
            (
                _throttle(2),
                _ERROR,
                _GENERATION,
                Field(("protocol_type",), "protocolType", Value.OPTION, 7),
                Field(("group_protocol", "protocol_name"), "protocolName", Value.OPTION),
                _text("leader_id|leader", "leader"),
                _MEMBER,
                _list(
                    "members",
                    "members",
                    _MEMBER,
                    _instance(5),
                    _bytes("member_metadata|metadata"),
                    flexible=6,
                ),
            ),
            6,
        ),
    ),
    "SYNC_GROUP": Api(
        14,
        Struct(
            (
                _GROUP,
                _GENERATION,
                _MEMBER,
                _instance(3),
                Field(("protocol_type",), "protocolType", Value.OPTION, 5),
                Field(("protocol_name",), "protocolName", Value.OPTION, 5),
                _list(
                    "group_assignment|assignments",
                    "assignments",
                    _MEMBER,
                    _bytes("member_assignment|assignment"),
                    flexible=4,
                ),
            ),
            4,
        ),
        Struct(
            (
                _throttle(1),
                _ERROR,
                Field(("protocol_type",), "protocolType", Value.OPTION, 5),
                Field(("protocol_name",), "protocolName", Value.OPTION, 5),
                _bytes("member_assignment|assignment"),
            ),
            4,
        ),
    ),
    "HEARTBEAT": Api(
        12,
        Struct((_GROUP, _GENERATION, _MEMBER, _instance(3)), 4),
        Struct((_throttle(1), _ERROR), 4),
    ),
    "LEAVE_GROUP": Api(
        13,
        Struct(
            (
                _GROUP,
                _text("member_id", "memberId", 0, 2),
                _list("members", "members", _MEMBER, _instance(), since=3, flexible=4),
            ),
            4,
        ),
        Struct(
            (
                _throttle(1),
                _ERROR,
                _list("members", "members", _MEMBER, _instance(), _ERROR, since=3, flexible=4),
            ),
            4,
        ),
    ),
    "OFFSET_COMMIT": Api(
        8,
        Struct(
            (
                _GROUP,
                _number("generation_id", "generationId", 1),
                _text("member_id", "memberId", 1),
                _instance(7),
                _number("retention_time|retention_time_ms", "", 2, 4),
                _commit_topics(8, 6, 1),
            ),
            8,
        ),
        _committed(8, 3),
    ),
    "TXN_OFFSET_COMMIT": Api(
        28,
        Struct(
            (
                _text("transactional_id", ""),
                _GROUP,
                _number("producer_id", ""),
                _number("producer_epoch", ""),
                _number("generation_id", "generationId", 3),
                _text("member_id", "memberId", 3),
                _instance(3),
                _commit_topics(3, 2, _NEVER),
            ),
            3,
        ),
        _committed(3, 0),
    ),
    "DELETE_GROUPS": Api(
        42,
        Struct((Field(("groups", "groups_names"), "groupsNames", Value.NAMES),), 2),
        Struct(
            (
                _throttle(0),
                _list("group_error_codes|results", "results", _GROUP, _ERROR, flexible=2),
            ),
            2,
        ),
    ),
}
"""APIs that say something about groups, but for FETCH, of which two numbers are needed."""
