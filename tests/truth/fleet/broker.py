"""A broker in virtual time: network threads and handler threads around the coordinator model, and its request log.

A request takes effect where Kafka lets it: in the handler thread (Scala), or a moment later in the coordinator's own
(Java), where what writes a record is answered some 5 ms later (`group.coordinator.append.linger.ms`). A connection is
not read while a request of it is unanswered. Timers fire to the millisecond; only what is answered by them is late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kardia.model.behaviour import behaviour_of
from kardia.model.coordinator import Coordinator
from kardia.model.operations import Answer, Commit, Join, Leave, Load, Operation, Sync, Unload
from kardia.model.sessions import Coordinator as Implementation
from kardia.model.settings import CoordinatorSettings
from tests.truth.fleet.answers import request_of, response_of
from tests.truth.fleet.lines import RequestLog, Sender, Times, line_of
from tests.truth.fleet.truth import Truth
from tests.truth.fleet.world import START_MS, World

API_OF = {"Join": "JOIN_GROUP", "Sync": "SYNC_GROUP", "Heartbeat": "HEARTBEAT", "Leave": "LEAVE_GROUP"}


@dataclass
class Connection:
    """One TCP connection. While `busy` nothing more is read from it."""

    sender: Sender
    busy: bool = False
    waiting: deque[Asked] = field(default_factory=deque)
    reaches_at_ms: float = 0.0
    """When the last request reached it: a connection keeps its order."""


@dataclass
class Asked:
    """A request on its way through the broker; `hear` is called with the answer when it has reached the client."""

    connection: Connection
    version: int
    operation: Operation | None
    hear: Callable[[Answer], None]
    fetch_wait_ms: float = 0.0
    fetched_bytes: int = 0
    number: int = 0
    arrived_at_ms: float = 0.0
    queue_ms: float = 0.0
    local_ms: float = 0.0
    network_ms: float = 0.0


class Broker:
    """The broker, one coordinator per group: groups of a shard share nothing but their load."""

    def __init__(self, world: World, version: str, groups: list[str], initial_delay_ms: int) -> None:
        """`version` decides the coordinator and the shape of a connection."""
        self.world = world
        self.log = RequestLog()
        behaviour = behaviour_of(version)
        self.java = behaviour.coordinator is Implementation.JAVA
        settings = CoordinatorSettings(initial_rebalance_delay_ms=initial_delay_ms, started_at_ms=int(START_MS))
        self._coordinators = {group_id: Coordinator(behaviour, settings) for group_id in groups}
        self.truths = {group_id: Truth(group_id) for group_id in groups}
        self._asked: dict[int, Asked] = {}
        self._number = 0
        self._connections = 0
        self._due: dict[str, float] = {}

    # --- what clients use

    def connect(self, client_id: str, software: tuple[str, str], host: str) -> Connection:
        """A new connection."""
        self._connections += 1
        place = f"{self._connections % 3}-{self._connections}" if self.java else str(self._connections)
        text = f"10.0.0.1:9092-{host}:{20_000 + self._connections % 40_000}-{place}"
        return Connection(Sender(client_id, software, text))

    def number(self) -> int:
        """A number for a request."""
        self._number += 1
        return self._number

    def send(self, asked: Asked) -> None:
        """The request has reached the broker's socket."""
        if asked.connection.busy:
            asked.connection.waiting.append(asked)
        else:
            self._take(asked)

    # --- on the way in

    def _take(self, asked: Asked) -> None:
        chance = self.world.random
        asked.connection.busy = True
        asked.arrived_at_ms = self.world.now_ms
        starved = chance.random() < 0.002
        asked.queue_ms = chance.expovariate(4.0) + (chance.uniform(5, 30) if starved else 0.0)
        asked.local_ms = 0.03 + chance.expovariate(5.0)
        handled_at_ms = asked.arrived_at_ms + asked.queue_ms + asked.local_ms
        operation = asked.operation
        if operation is None:
            self.world.at(handled_at_ms + asked.fetch_wait_ms, lambda: self._finish(asked, None))
            return
        asked.number = operation.number
        if not self.java:
            self.world.at(handled_at_ms, lambda: self._act(asked, operation))
            return
        soon = handled_at_ms + chance.uniform(0.05, 0.4)
        if isinstance(operation, Sync) and operation.assignments:
            soon += chance.uniform(5.0, 8.0)  # Stable when the record is stored
        self.world.at(soon, lambda: self._act(asked, operation))

    def _act(self, asked: Asked, operation: Operation) -> None:
        group_id: str = operation.group_id  # type: ignore[union-attr]
        self._asked[operation.number] = asked
        self.truths[group_id].asked[operation.number] = operation
        self._step(group_id, operation)

    def _step(self, group_id: str, operation: Operation | None) -> None:
        """Let the coordinator of a group come to now, and do something."""
        at_ms = int(self.world.now_ms)
        coordinator, truth = self._coordinators[group_id], self.truths[group_id]
        answers = coordinator.advance(at_ms)
        truth.note(coordinator.take_happenings(), coordinator.view(group_id), None)
        recorded = False
        if operation is not None:
            answers += coordinator.perform(operation, at_ms)
            happened = coordinator.take_happenings()
            recorded = any(one.kind == "recorded" for one in happened)
            truth.note(happened, coordinator.view(group_id), operation, at_ms)
        for answer in answers:
            self._answered(answer, operation, recorded)
        self._wake(group_id)

    def _wake(self, group_id: str) -> None:
        """Come back when the coordinator's next timer is due."""
        due = self._coordinators[group_id].next_deadline_at_ms()
        planned = self._due.get(group_id, -1.0)
        if due >= 0 and not 0 <= planned <= due:
            self._due[group_id] = due
            self.world.at(due + self.world.random.uniform(0.0, 0.9), lambda: self._woken(group_id, due))

    def _woken(self, group_id: str, due: float) -> None:
        if self._due.get(group_id) == due:
            self._due[group_id] = -1.0
            self._step(group_id, None)

    # --- on the way out

    def _answered(self, answer: Answer, operation: Operation | None, recorded: bool) -> None:
        asked = self._asked.pop(answer.number)
        linger_ms = 0.0
        writes = isinstance(operation, (Commit, Leave)) or (isinstance(operation, Join) and recorded)
        if self.java and operation is asked.operation and writes:
            linger_ms = self.world.random.uniform(4.0, 9.0)
        self.world.after(linger_ms, lambda: self._finish(asked, answer))

    def _finish(self, asked: Asked, answer: Answer | None) -> None:
        """The answer is known: it is written, the line appears, the connection is read again."""
        chance = self.world.random
        handled_at_ms = asked.arrived_at_ms + asked.queue_ms + asked.local_ms
        times = Times(
            asked.queue_ms,
            asked.local_ms,
            max(0.0, self.world.now_ms - handled_at_ms),
            0.02 + chance.expovariate(8.0),
            0.02 + chance.expovariate(10.0),
        )
        at_ms = asked.arrived_at_ms + times.total
        self.world.at(at_ms, lambda: self._written(asked, answer, times))

    def _written(self, asked: Asked, answer: Answer | None, times: Times) -> None:
        chance, now_ms = self.world.random, self.world.now_ms
        connection = asked.connection
        if answer is None:
            api, request, response = "FETCH", *_fetch(asked)
        else:
            operation = asked.operation
            api, request = request_of(operation)
            response = response_of(operation, answer)
        line = line_of(now_ms, api, asked.version, asked.number, connection.sender, request, response, times)
        late_ms = chance.expovariate(3.0) + (chance.uniform(2.0, 12.0) if chance.random() < 0.01 else 0.0)
        self.log.write(now_ms + late_ms, line)
        reply = answer or Answer(0, int(now_ms), 0)
        self.world.after(asked.network_ms, lambda: asked.hear(reply))
        connection.busy = False
        if connection.waiting:
            self._take(connection.waiting.popleft())

    # --- what happens to the broker

    def reload(self, group_id: str) -> None:
        """The coordinator gives the group up and loads it again, as after an election on the same broker."""
        self._step(group_id, Unload(self.number()))
        self.world.after(self.world.random.uniform(20, 400), lambda: self._step(group_id, Load(self.number())))

    def close(self) -> None:
        """Let every coordinator come to now: the truth ends here."""
        for group_id in self._coordinators:
            self._step(group_id, None)


def _fetch(asked: Asked) -> tuple[dict[str, Any], dict[str, Any]]:
    request = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 52428800, "isolationLevel": 0, "sessionId": 7}
    partition = {"partitionIndex": 0, "errorCode": 0, "recordsSizeInBytes": asked.fetched_bytes}
    topics = [{"topicId": "5nBrKJUIQ2-WOq2rXDYDoQ", "partitions": [partition]}]
    return (
        {**request, "sessionEpoch": 1, "topics": [], "forgottenTopicsData": [], "rackId": ""},
        {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 7, "responses": topics},
    )
