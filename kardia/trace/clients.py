"""The members of a trace as clients: what each remembers, and the requests that its acts become.

Member ids are made as the coordinator makes them, NAME-UUID, with UUIDs counted from 1, so that Kafka's own classes
can be told which to draw and every run has the same. A name in a trace is a client's name; `name_of` leads back to
it.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Mapping

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer, Operation
from kardia.coordinator.operations import Load, Unload
from kardia.kafka.states import ErrorCode
from kardia.trace.language import COORDINATOR, Act, Trace
from kardia.trace.reading import duration_ms

GROUP = "g"
DEFAULTS: Mapping[str, str] = {
    "session": "10s",
    "rebalance": "60s",
    "version": "9",
    "protocols": "range",
    "subscribes": "orders",
}
"""What a member says in JoinGroup unless the trace says otherwise."""

SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION, COMMIT_VERSION, TXN_VERSION = 3, 3, 5, 8, 3
"""Lowest versions with an instance id (for LeaveGroup, with a reason): they need nothing that a trace does not say."""


class Client:
    """What one member knows: the id it was given, the generation it joined, and whether it leads."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        """A client that has sent nothing."""
        self.name = name
        self.options = {**DEFAULTS, **options}
        self.member_id = ""
        self.generation_id = -1
        self.leads = False
        self.listed: tuple[str, ...] = ()
        self.lost = False
        """It has left, or was told that its id is unknown or fenced: the next JoinGroup asks for a new one."""
        self.asked_to_retry = False
        """Its last JoinGroup was answered 79."""

    @property
    def instance_id(self) -> str | None:
        """group.instance.id, None for a dynamic member."""
        return self.options.get("instance")

    def told(self, operation: Operation, answer: Answer) -> None:
        """Learn from an answer to an own request."""
        self.lost = self.lost or answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        self.lost = self.lost or (isinstance(operation, ops.Leave) and answer.error_code == ErrorCode.NONE)
        if not isinstance(operation, ops.Join):
            return
        self.asked_to_retry = answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id, self.lost = answer.member_id, False
        if answer.error_code == ErrorCode.NONE:
            self.generation_id = answer.generation_id
            self.leads = answer.leader == answer.member_id
            self.listed = tuple(member_id for member_id, _, _ in answer.members)


class Clients:
    """All members of a trace, and the numbers of their requests."""

    def __init__(self, trace: Trace) -> None:
        """Nobody has sent anything."""
        self.by_name = {name: Client(name, options) for name, options in trace.members.items()}
        self.name_of: dict[str, str] = {}
        """Member id to the name of the client it was made for."""
        self._number = 0

    def requests(self, act: Act) -> Iterator[Operation]:
        """Requests an act makes; whoever sends them tells each client its answer before asking for the next."""
        if act.verb == "removes":
            leaving = (ops.Leaving("", self.by_name[name].instance_id, act.reason or None) for name in act.whom)
            yield ops.Leave(self._next(), LEAVE_VERSION, GROUP, tuple(leaving))
        elif act.verb == "deletes the group":
            yield ops.DeleteGroups(self._next(), (GROUP,))
        elif act.who == COORDINATOR:
            if act.verb in ("moves", "unloads", "dies"):
                yield Unload(self._next())
            if act.verb in ("moves", "loads", "restarts"):
                yield Load(self._next())
        elif act.verb in ("joins", "asks for a member id"):
            yield from self._joins(act, self.by_name[act.who])
        elif act.verb != "stops":
            yield self._by_member(act, self.by_name[act.who])

    def _joins(self, act: Act, client: Client) -> Iterator[ops.Join]:
        if client.lost or act.verb != "joins":
            client.member_id, client.lost = "", False
        client.asked_to_retry = False
        yield self._join(act, client)
        if act.verb == "joins" and client.asked_to_retry:
            yield self._join(act, client)

    def _join(self, act: Act, client: Client) -> ops.Join:
        options = {**client.options, **act.options}
        number = self._next()
        new_id = f"{client.instance_id or client.name}-{uuid.UUID(int=number, version=4)}"
        self.name_of[new_id] = client.name
        session_ms, rebalance_ms = duration_ms(options["session"]), duration_ms(options["rebalance"])
        version = int(options["version"])
        subscription = _subscription(options["subscribes"])
        protocols = tuple((name, subscription) for name in options["protocols"].split(","))
        return ops.Join(
            number,
            version,
            GROUP,
            client.member_id,
            client.instance_id,
            client.name,
            "/10.0.0.9",
            session_ms,
            session_ms if version == 0 else rebalance_ms,
            "consumer",
            protocols,
            act.reason or None,
            new_id,
        )

    def _by_member(self, act: Act, client: Client) -> Operation:
        number, member_id, instance_id = self._next(), client.member_id, client.instance_id
        generation_id = int(act.options.get("generation", client.generation_id))
        if act.verb == "syncs":
            given = tuple((one, b"partitions of " + one.encode()) for one in client.listed) if client.leads else ()
            return ops.Sync(number, SYNC_VERSION, GROUP, generation_id, member_id, instance_id, None, None, given)
        if act.verb == "heartbeats":
            return ops.Heartbeat(number, HEARTBEAT_VERSION, GROUP, generation_id, member_id, instance_id)
        if act.verb == "leaves":
            entry = ops.Leaving(member_id, instance_id, act.reason or None)
            return ops.Leave(number, LEAVE_VERSION, GROUP, (entry,))
        if act.transaction:
            return ops.TxnCommit(
                number, TXN_VERSION, GROUP, 1, 0, generation_id, member_id, instance_id, "orders", 0, number
            )
        return ops.Commit(number, COMMIT_VERSION, GROUP, generation_id, member_id, instance_id, "orders", 0, number)

    def _next(self) -> int:
        self._number += 1
        return self._number


def _subscription(topic: str) -> bytes:
    """What a consumer sends as its subscription: version 0, the names of its topics, no user data (-1)."""
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)
