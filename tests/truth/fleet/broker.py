"""A broker in virtual time: network threads and handler threads around the cluster's coordinators, and its request log.

A request takes effect where Kafka lets it: in the handler thread (Scala), or a moment later in the coordinator's own
(Java). What writes a record is answered when it is stored: some 5 ms later (`group.coordinator.append.linger.ms`,
Java), more where other replicas have to have it, seconds where one of them stands still. A connection is not read while
a request of it is unanswered. Timers fire late, in the way of `late`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kardia.coordinator.classic.operations import Answer, Commit, Heartbeat, Join, Leave, Operation, Sync, groups_of
from kardia.coordinator.consumer.operations import Beat
from kardia.coordinator.share.operations import ShareBeat
from kardia.coordinator.streams.operations import StreamsBeat
from kardia.events import shard_of
from kardia.kafka.states import ErrorCode
from tests.truth.fleet.answers import request_of, response_of
from tests.truth.fleet.late import JAVA_THREADS, SCALA_THREADS, TimerThread
from tests.truth.fleet.lines import RequestLog, Sender, Times, line_of
from tests.truth.fleet.server_lines import server_line
from tests.truth.fleet.world import START_MS, World

if TYPE_CHECKING:
    from tests.truth.fleet.cluster import Cluster


SAID_MS = 0.3
"""From a step of the coordinator to its line in `server.log`."""

STORED_WITHIN_MS = 5_000.0
"""`offsets.commit.timeout.ms`: who waits longer for a record is told that it is not stored. It may be so later."""

STARVED_MS = 60.0
"""So much longer each step of a request may take in a broker beside others that take the processor: 10 to 60 ms were
recorded, in the queue, in the handler and in the coordinator's thread."""

NETWORK_THREADS = 3
"""`num.network.threads`; new connections go to them in turn."""


@dataclass
class Connection:
    """One TCP connection. While `busy` nothing more is read from it."""

    broker: Broker
    sender: Sender
    lost: Callable[[Connection], None]
    """Called on the client's side when the broker is gone."""
    alive: bool = True
    deaf: bool = False
    """The client has given it up, of which the broker knows nothing: what it answers there is heard by nobody."""
    busy: bool = False
    waiting: deque[Asked] = field(default_factory=deque)
    reaches_at_ms: float = 0.0
    """When the last request reached it: a connection keeps its order."""
    logged_at_ms: float = 0.0
    """When its last line reached the log. Nothing more is read from it before that: `processCompletedSends` of
    `SocketServer` writes the line and unmutes it then."""


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
    """One broker of a cluster."""

    def __init__(self, world: World, cluster: Cluster, number: int, *, java: bool, seed: int) -> None:
        """`number` is the last part of its address."""
        self.world, self.cluster, self.java = world, cluster, java
        self.address = f"10.0.0.{number}:9092"
        self.log = RequestLog()
        self.server_log = RequestLog()
        self.up = True
        threads = JAVA_THREADS if java else SCALA_THREADS
        self.timers = {kinds: TimerThread(f"{seed} {number} {place}", START_MS) for place, kinds in enumerate(threads)}
        self._chance = random.Random(f"appends {seed} {number}")
        self.replicated_ms = self._chance.choice((0.0, 0.0, 6.0, 30.0))
        """Mean time until the other replicas of `__consumer_offsets` have a record; 0 where it has but one."""
        self.stands_to_ms = 0.0
        """Until then its process stands still (SIGSTOP, a starved machine): sockets take what comes, nothing else."""
        self.starved_to_ms = 0.0
        """Until then its threads wait for a processor: whatever they do takes them up to `STARVED_MS` longer."""
        self._taken_at_ms: dict[int, float] = {}
        """Shard -> when its coordinator takes the last request that it was given: it keeps their order."""
        self.stores_from_ms = 0.0
        """Until then nothing that it appends is stored: a replica in sync stands still."""
        self._stored_at_ms: dict[int, float] = {}
        """Shard -> when the last record of its coordinator is stored."""
        self._behind: dict[str, Callable[[], None]] = {}
        """Group -> the request that its coordinator has not come to yet, see `_keep`."""
        self._connections: list[Connection] = []
        self._accepted = 0
        """Connections since its process began. Each network thread numbers its own; the numbers are in the log, the
        threads only in Java's."""
        self._opened = 0
        """Connections at all: no two are of the same port of a client, whatever process accepted them."""

    # --- what clients use

    def connect(
        self, client_id: str, software: tuple[str, str], host: str, lost: Callable[[Connection], None]
    ) -> Connection:
        """A new connection."""
        self._accepted += 1
        self._opened += 1
        thread, number = self._accepted % NETWORK_THREADS, self._accepted // NETWORK_THREADS
        place = f"{thread}-{number}" if self.java else str(number)
        text = f"{self.address}-{host}:{20_000 + self._opened % 40_000}-{place}"
        connection = Connection(self, Sender(client_id, software, text), lost)
        self._connections.append(connection)
        return connection

    def send(self, asked: Asked) -> None:
        """The request has reached the broker's socket."""
        if not asked.connection.alive:
            return
        if self.stands_still:
            self.world.at(self.stands_to_ms, partial(self.send, asked))
        elif asked.connection.busy:
            asked.connection.waiting.append(asked)
        else:
            self._take(asked)

    def say(self, at_ms: float, message: str, group_id: str) -> None:
        """Its coordinator writes a line to `server.log`."""
        # Written under the lock of the group, or by the coordinator's one thread: lines keep their order.
        self.server_log.write(at_ms, SAID_MS, server_line(at_ms, message, group_id, java=self.java))

    # --- what happens to it

    def die(self) -> None:
        """The process is gone: connections break, nobody is answered, nothing more is logged."""
        self.up = False
        self.stands_to_ms = 0.0
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.alive = False
            self.world.after(1.0, partial(connection.lost, connection))

    def stop(self, for_ms: float) -> None:
        """The process stands still for so long, and then fires everything that has come due, late."""
        if self.up:
            self.stands_to_ms = max(self.stands_to_ms, self.world.now_ms + for_ms)

    def starve(self, for_ms: float) -> None:
        """Neighbours take the processor for so long."""
        self.starved_to_ms = max(self.starved_to_ms, self.world.now_ms + for_ms)

    @property
    def is_starved(self) -> bool:
        """Whether its threads wait for a processor now."""
        return self.world.now_ms < self.starved_to_ms

    @property
    def stands_still(self) -> bool:
        """Whether nothing happens in it now."""
        return self.world.now_ms < self.stands_to_ms

    def start(self) -> None:
        """A new process, which counts its connections from 0."""
        self.up = True
        self._accepted = 0

    # --- on the way in

    def _take(self, asked: Asked) -> None:
        chance = self.world.random
        asked.connection.busy = True
        asked.arrived_at_ms = self.world.now_ms
        starved = chance.random() < 0.002
        asked.queue_ms = chance.expovariate(4.0) + (chance.uniform(5, 30) if starved else 0.0)
        asked.local_ms = 0.03 + chance.expovariate(5.0)
        if self.is_starved:
            asked.queue_ms += self._chance.uniform(0, STARVED_MS)
            asked.local_ms += self._chance.uniform(0, STARVED_MS)
        handled_at_ms = asked.arrived_at_ms + asked.queue_ms + asked.local_ms
        operation = asked.operation
        if operation is None:
            self.world.at(handled_at_ms + asked.fetch_wait_ms, lambda: self._finish(asked, None))
            return
        asked.number = operation.number
        if not self.java:
            acts_at_ms = handled_at_ms - (self._chance.uniform(0, asked.local_ms) if self.is_starved else 0.0)
            self.world.at(acts_at_ms, lambda: self._act(asked, operation))
            return
        soon = handled_at_ms + chance.uniform(0.05, 0.4)
        if self.is_starved:
            shard = shard_of(groups_of(operation)[0])
            soon += self._chance.uniform(0, STARVED_MS)
            self._taken_at_ms[shard] = soon = max(soon, self._taken_at_ms.get(shard, 0.0))
        self.world.at(soon, lambda: self._come_to(asked, operation))

    def _come_to(self, asked: Asked, operation: Operation) -> None:
        """A Java coordinator takes the requests of a group in the order in which they came."""
        for group_id in groups_of(operation):
            self._behind.pop(group_id, _nothing)()
        if isinstance(operation, Sync) and operation.assignments and not self.cluster.tells_stored:
            stored_ms = self.world.random.uniform(5.0, 8.0)  # Stable when the record is stored
            self.world.after(stored_ms, lambda: self._act(asked, operation))
        elif isinstance(operation, Leave) and self._chance.random() < 0.1:
            self._keep(operation.group_id, lambda: self._act(asked, operation))
        else:
            self._act(asked, operation)

    def _keep(self, group_id: str, act: Callable[[], None]) -> None:
        """A Java coordinator is busy with another append. It acts later, or when the next request of the group has
        come: requests that show by when they were done, because they wait for nothing else. Of others nothing could
        show it."""
        self._behind[group_id] = act
        busy_ms = self._chance.uniform(5.0, 90.0)
        self.world.after(
            busy_ms, lambda: self._behind.pop(group_id)() if self._behind.get(group_id) is act else _nothing()
        )

    def _act(self, asked: Asked, operation: Operation) -> None:
        if not asked.connection.alive:
            return
        if self.stands_still:
            asked.local_ms += self.stands_to_ms - self.world.now_ms  # in the middle of the handler
            self.world.at(self.stands_to_ms, lambda: self._act(asked, operation))
            return
        refused = self.cluster.refusal(self, operation)
        if refused is not None:
            self._finish(asked, refused)
        else:
            self.cluster.perform(asked, operation)

    # --- on the way out

    def answered(self, asked: Asked, answer: Answer, operation: Operation | None, recorded: bool) -> None:
        """The coordinator has an answer, by `operation` or by a timer; `recorded`: it wrote a record in that step."""
        now_ms, linger_ms = self.world.now_ms, 0.0
        if operation is not None and asked.operation is operation and not _is_thrown(operation, answer):
            shard = shard_of(groups_of(operation)[0])
            may_write = isinstance(operation, Join | Beat | ShareBeat | StreamsBeat) and not self.cluster.tells_stored
            writes = isinstance(operation, Commit) or (isinstance(operation, Leave) and self.java)
            if writes or (may_write and recorded):
                linger_ms = self.stored_in_ms(shard)
            elif self.cluster.waits(operation):
                # What writes nothing is answered when that is stored which was written before it.
                linger_ms = self.all_stored_in_ms(shard)
            if linger_ms > STORED_WITHIN_MS:
                linger_ms, answer = STORED_WITHIN_MS, self.cluster.not_stored(operation, int(now_ms + STORED_WITHIN_MS))
        self.world.after(linger_ms, lambda: self._finish(asked, answer))

    def stored_in_ms(self, shard: int) -> float:
        """How long it takes until a record that the coordinator of a shard writes now is stored, and all before it."""
        now_ms = self.world.now_ms
        at_ms = max(now_ms, self.stores_from_ms) + self.replicated_ms * self._chance.uniform(0.5, 1.5)
        if self.java:
            at_ms += self.world.random.uniform(4.0, 9.0)
        self._stored_at_ms[shard] = at_ms = max(at_ms, self._stored_at_ms.get(shard, 0.0))
        return at_ms - now_ms

    def all_stored_in_ms(self, shard: int) -> float:
        """How long it takes until everything is stored that the coordinator of a shard has written."""
        return max(0.0, self._stored_at_ms.get(shard, 0.0) - self.world.now_ms)

    def _finish(self, asked: Asked, answer: Answer | None) -> None:
        """The answer is known: it is written, the line appears, the connection is read again."""
        if not asked.connection.alive:
            return
        if self.stands_still:
            self.world.at(self.stands_to_ms, lambda: self._finish(asked, answer))
            return
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
        if not connection.alive:
            return
        if self.stands_still:
            waits_ms = self.stands_to_ms - now_ms
            later = replace(times, send=times.send + waits_ms)
            self.world.at(self.stands_to_ms, lambda: self._written(asked, answer, later))
            return
        text, sender = self.cluster.text, connection.sender
        if text is not None:
            size = asked.fetched_bytes
            line = text.line(now_ms, asked.version, asked.number, sender, asked.operation, answer, times, size)
        else:
            if answer is None:
                api, request, response = "FETCH", *_fetch(asked)
            else:
                api, request = request_of(asked.operation)
                response = response_of(asked.operation, answer)
            line = line_of(now_ms, api, asked.version, asked.number, sender, request, response, times)
        late_ms = chance.expovariate(3.0)
        late_ms += chance.uniform(2.0, self.log.most_late_ms) if chance.random() < 0.01 else 0.0
        connection.logged_at_ms = max(now_ms + late_ms, connection.logged_at_ms)
        self.log.write(now_ms, connection.logged_at_ms - now_ms, line)
        reply = answer or Answer(0, int(now_ms), 0)
        self.world.after(asked.network_ms, lambda: asked.hear(reply))
        connection.busy = False
        if connection.waiting:
            self._take(connection.waiting.popleft())


def _is_thrown(operation: Operation, answer: Answer) -> bool:
    """Whether a request was refused by what was thrown before anything was written: then nothing is waited for. So are
    all but members of a LeaveGroup, each of whom has an error of its own, and a heartbeat that is told to rejoin.
    Source: `CoordinatorRuntime.CoordinatorWriteEvent.run`; `tests/truth/test_refused_at_once.py`."""
    if isinstance(operation, Leave):
        return False
    told = answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS and isinstance(operation, Heartbeat)
    return answer.error_code != ErrorCode.NONE and not told


def _nothing() -> None:
    """Nobody is waited for."""


def _fetch(asked: Asked) -> tuple[dict[str, Any], dict[str, Any]]:
    request = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 52428800, "isolationLevel": 0, "sessionId": 7}
    partition = {"partitionIndex": 0, "errorCode": 0, "recordsSizeInBytes": asked.fetched_bytes}
    topics = [{"topicId": "5nBrKJUIQ2-WOq2rXDYDoQ", "partitions": [partition]}]
    return (
        {**request, "sessionEpoch": 1, "topics": [], "forgottenTopicsData": [], "rackId": ""},
        {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 7, "responses": topics},
    )
