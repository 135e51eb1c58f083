"""Traffic that the coordinator model itself answers, as events: what a follower must predict to the last answer.

Clients come and go by chance. No answer takes time, and every request that is answered has its event.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import Answer, Operation
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.events import Event, Kind

GROUP = "g"
START_MS = 1_800_000_000_000
SOURCE = "10.0.0.1:9092/request/one"
PATIENCE_MS = 400_000
"""After the last request: by then everybody who waits is answered."""


class Traffic:
    """Some clients of one group, and the events that a log would have."""

    def __init__(self, version: str, seed: int, clients: int = 4, steps: int = 120) -> None:
        self.chance = random.Random(seed)
        self.version = version
        self.coordinator = Coordinator(behaviour_of(version), CoordinatorSettings(started_at_ms=START_MS))
        self.asked: dict[int, tuple[Operation, int, str]] = {}
        self.events: list[Event] = []
        self.members: dict[str, tuple[str, int, bool]] = {}
        """Client -> member id, generation, whether it leads."""
        self.waiting: dict[str, int] = {}
        self.number = 0
        at_ms = START_MS + 1_000
        for _ in range(steps):
            at_ms += self.chance.choice((1, 7, 150, 900, 2_500, 7_000))
            self.take(self.coordinator.advance(at_ms - 1))
            name = f"c{self.chance.randrange(clients)}"
            if name not in self.waiting:
                operation = self.ask(name)
                self.asked[operation.number] = operation, at_ms, name
                self.waiting[name] = operation.number
                self.take(self.coordinator.perform(operation, at_ms))
        self.take(self.coordinator.advance(at_ms + PATIENCE_MS))
        self.events.sort(key=lambda one: (one.handled_at_ms, one.start))

    def ask(self, name: str) -> Operation:
        """What a client does next, by chance."""
        self.number += 1
        number, (member_id, generation_id, leads) = self.number, self.members.get(name, ("", -1, False))
        does = self.chance.choice(("join", "sync", "heartbeat", "heartbeat", "heartbeat", "commit", "leave"))
        if not member_id or does == "join":
            topic = self.chance.choice((b"a", b"b"))
            protocols = (("range", b"\0\0\0\0\0\1\0\1" + topic + b"\xff\xff\xff\xff"),)
            session_ms = self.chance.choice((6_000, 10_000, 20_000))
            new_id = f"{name}-{number:08x}"
            return ops.Join(
                number, 9, GROUP, member_id, None, name, "h", session_ms, 15_000, "consumer", protocols, None, new_id
            )
        if does == "sync":
            view = self.coordinator.view(GROUP)
            given = tuple((one.member_id, b"x") for one in (view.members if view is not None and leads else ()))
            return ops.Sync(number, 5, GROUP, generation_id, member_id, None, None, None, given)
        if does == "heartbeat":
            return ops.Heartbeat(number, 4, GROUP, generation_id, member_id, None)
        if does == "commit":
            return ops.Commit(number, 8, GROUP, generation_id, member_id, None, "t", 0, number)
        return ops.Leave(number, 5, GROUP, (ops.Leaving(member_id, None, None),))

    def take(self, answers: list[Answer]) -> None:
        """Let clients hear, and write the lines."""
        for answer in answers:
            operation, at_ms, name = self.asked[answer.number]
            if self.waiting.get(name) == answer.number:
                del self.waiting[name]
            if isinstance(operation, ops.Join) and answer.error_code in (0, 79):
                generation_id = answer.generation_id if answer.error_code == 0 else -1
                self.members[name] = answer.member_id, generation_id, answer.leader == answer.member_id
            elif answer.error_code == 25 or isinstance(operation, ops.Leave):
                self.members.pop(name, None)
            self.events.append(event_of(operation, answer, at_ms, name))


KINDS = {
    ops.Join: Kind.JOIN,
    ops.Sync: Kind.SYNC,
    ops.Heartbeat: Kind.HEARTBEAT,
    ops.Leave: Kind.LEAVE,
    ops.Commit: Kind.COMMIT,
}


def event_of(operation: Operation, answer: Answer, at_ms: int, client_id: str) -> Event:
    """The line of an answered request."""
    handled, decided, number = float(at_ms), float(answer.at_ms), answer.number
    asked = operation._asdict()
    is_join = isinstance(operation, ops.Join)
    return Event(
        int(KINDS[type(operation)]),
        0,
        SOURCE,
        number,
        number + 1,
        decided,
        handled,
        handled,
        decided,
        GROUP,
        asked.get("member_id", ""),
        "",
        client_id,
        "h",
        f"connection of {client_id}",
        "",
        asked["version"],
        answer.error_code,
        answer.generation_id if is_join else asked.get("generation_id", -1),
        dict(_detail(operation, answer)),
    )


def _detail(operation: Operation, answer: Answer) -> Iterator[tuple[str, object]]:
    if isinstance(operation, ops.Join):
        yield "session_timeout_ms", operation.session_timeout_ms
        yield "rebalance_timeout_ms", operation.rebalance_timeout_ms
        yield "protocol_type", "consumer"
        yield "protocols", [[name, data.hex()] for name, data in operation.protocols]
        yield "assigned_member_id", answer.member_id
        yield "leader", answer.leader
        yield "protocol_name", answer.protocol_name or ""
        yield "members", [[member_id, instance_id or ""] for member_id, instance_id, _ in answer.members]
    elif isinstance(operation, ops.Sync):
        yield "assignments", [[member_id, []] for member_id, _ in operation.assignments]
    elif isinstance(operation, ops.Leave):
        yield "members", [[member_id, "", "", error] for member_id, _, error in answer.left]
