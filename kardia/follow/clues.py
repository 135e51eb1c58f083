"""Events of classic requests as operations of the coordinator, with the answer that the log shows.

States what the line says. Where a line does not show the bytes of a subscription, equality is all that is made of its
fingerprint: equal fingerprint, equal bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Operation
from kardia.events import Event, Kind
from kardia.follow.tolerances import INSTANT_MS
from kardia.kafka.states import ErrorCode

FOLLOWED = frozenset({int(kind) for kind in (Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE, Kind.COMMIT)})
"""Kinds of requests that are followed."""

OF_COORDINATOR = frozenset(
    int(code)
    for code in (
        ErrorCode.NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
"""Answers of a coordinator that leads the group; others (authorization, quotas, unknown topics) come from before it."""

MOVED = frozenset({14, 16})
"""Answers of a broker that does not lead the group's shard, or not yet. 15 is also what is told where a record could
not be stored (Java)."""

NOT_STORED = frozenset({7, 15})
"""Answers to what could not be stored in time; its effect on a session was before."""
NOT_STORED_MS = 1_000
"""Nobody is told so earlier."""

UNSHOWN = b""
"""Stands for a subscription that the log does not show."""


class Clue(NamedTuple):
    """One request with its answer. `generation_id`, `leader` and `members` are of an answer to JoinGroup only."""

    number: int
    at_ms: int
    """When it took effect, as far as the stamps of its line say; cut to 1 ms."""
    arrived_at_ms: int
    """It did not before."""
    answered_at_ms: int
    """Nor after, unless it is one that is parked."""
    operation: Operation
    error_code: int
    generation_id: int = -1
    leader: str = ""
    members: frozenset[str] = frozenset()
    """The leader's list; empty for everybody else."""
    instances: tuple[tuple[str, str], ...] = ()
    """The same with instance ids."""
    entries: tuple[int, ...] = ()
    """LeaveGroup: the error of each entry."""
    protocol_name: str = ""
    skips: bool = False
    """A static leader came back and shall not assign: no join phase has ended."""
    member_id: str = ""
    """Whose request it is, by the id in its answer where it has been given one."""
    connection: str = ""
    source: str = ""
    start: int = -1


class Heard(NamedTuple):
    """Requests of a Stable group that did nothing but renew sessions: of each member when it was heard last, and
    when that request arrived. `at_ms` is the last of these instants; no timer was due in between."""

    at_ms: int
    heard: tuple[tuple[str, int, int], ...]
    generation_id: int


class Moved(NamedTuple):
    """By `at_ms` the coordinator has given the group up, and not before `from_ms`. `source` is whose log shows it."""

    at_ms: int
    from_ms: int
    source: str
    why: str


class Lost(NamedTuple):
    """A part of the log is lost, up to `at_ms`."""

    at_ms: int
    from_ms: int
    why: str


def clue_of(event: Event, number: int) -> Clue | None:
    """The clue of an event of one of the kinds that are followed; None where its answer says nothing of the group."""
    waited = event.decided_at_ms - event.handled_at_ms > NOT_STORED_MS
    not_stored = event.error_code in NOT_STORED and event.kind != Kind.HEARTBEAT and waited
    if event.error_code not in OF_COORDINATOR and not sent_away(event) and not not_stored:
        return None
    build = _BUILDERS[event.kind]
    return build(event, number, event.group_instance_id or None)


_WAITING = frozenset((int(Kind.JOIN), int(Kind.SYNC)))
_NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)


def sent_away(event: Event) -> bool:
    """Whether a coordinator had let a request wait when it gave the group up. Others were refused at the door."""
    refused = event.error_code == _NOT_COORDINATOR
    return refused and event.kind in _WAITING and event.decided_at_ms - event.handled_at_ms > INSTANT_MS


def _join(event: Event, number: int, instance: str | None) -> Clue:
    detail = event.detail or {}
    shown = detail.get("protocols") or ()
    protocols = tuple((str(name), _subscription(str(told))) for name, told in shown)
    assigned = str(detail.get("assigned_member_id") or "")
    new_id = assigned or f"unknown-{number}"
    session_ms = int(detail.get("session_timeout_ms", -1))
    operation = ops.Join(
        number,
        event.api_version,
        event.group_id,
        event.member_id,
        instance,
        event.client_id,
        event.client_host,
        session_ms,
        int(detail.get("rebalance_timeout_ms", session_ms)),
        str(detail.get("protocol_type") or "consumer"),
        protocols or (("", UNSHOWN),),
        str(detail.get("reason") or "") or None,
        new_id,
    )
    listed = tuple((str(one[0]), str(one[1] or "")) for one in detail.get("members") or ())
    return Clue(
        number,
        int(event.handled_at_ms),
        int(event.arrived_at_ms),
        int(event.decided_at_ms),
        operation,
        event.error_code,
        event.generation_id,
        str(detail.get("leader") or ""),
        frozenset(member_id for member_id, _ in listed),
        listed,
        (),
        str(detail.get("protocol_name") or ""),
        bool(detail.get("skip_assignment")),
        event.member_id or assigned,
        event.connection,
        event.source,
        event.start,
    )


def _subscription(told: str) -> bytes:
    """Bytes that are equal where the fingerprints are, in the form of a subscription to a topic."""
    data = told.encode()
    return struct.pack(">hih", 0, 1, 6) + b"orders" + struct.pack(">i", len(data)) + data


def _sync(event: Event, number: int, instance: str | None) -> Clue:
    given = tuple((str(one[0]), b"x") for one in (event.detail or {}).get("assignments") or ())
    operation = ops.Sync(
        number, event.api_version, event.group_id, event.generation_id, event.member_id, instance, None, None, given
    )
    return _plain(event, number, operation)


def _heartbeat(event: Event, number: int, instance: str | None) -> Clue:
    operation = ops.Heartbeat(number, event.api_version, event.group_id, event.generation_id, event.member_id, instance)
    return _plain(event, number, operation)


def _commit(event: Event, number: int, instance: str | None) -> Clue:
    too_large = event.error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    operation = ops.Commit(
        number,
        event.api_version,
        event.group_id,
        event.generation_id,
        event.member_id,
        instance,
        "t",
        0,
        number,
        too_large,
    )
    return _plain(event, number, operation)


def _leave(event: Event, number: int, _: str | None) -> Clue:
    entries = (event.detail or {}).get("members") or ()
    leaving = tuple(ops.Leaving(str(one[0]), str(one[1] or "") or None, str(one[2] or "") or None) for one in entries)
    operation = ops.Leave(number, event.api_version, event.group_id, leaving)
    member_id = leaving[0].member_id if len(leaving) == 1 else ""
    return _plain(event, number, operation)._replace(entries=tuple(int(one[3]) for one in entries), member_id=member_id)


def _plain(event: Event, number: int, operation: Operation) -> Clue:
    return Clue(
        number,
        int(event.handled_at_ms),
        int(event.arrived_at_ms),
        int(event.decided_at_ms),
        operation,
        event.error_code,
        member_id=event.member_id,
        connection=event.connection,
        source=event.source,
        start=event.start,
    )


_BUILDERS = {
    int(Kind.JOIN): _join,
    int(Kind.SYNC): _sync,
    int(Kind.HEARTBEAT): _heartbeat,
    int(Kind.LEAVE): _leave,
    int(Kind.COMMIT): _commit,
}
