"""Brokers that share the shards of `__consumer_offsets`, and the coordinator of each group behind them.

A group's shard is led by one broker; the others answer NOT_COORDINATOR, and so does the one that gave it up. A move
unloads the shard's groups (who waits is answered 16) and loads them elsewhere: every session starts anew, joins are
lost, and while a broker loads it answers 14, or 0 to a heartbeat that does nothing. A broker that dies answers nobody;
what it had not logged is never logged. The state itself is the model's, one coordinator per group: groups of a shard
share nothing but their load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import (
    Answer,
    Commit,
    Heartbeat,
    Join,
    Operation,
    Stored,
    Sync,
    View,
    groups_of,
)
from kardia.coordinator.classic.records import GroupRecord
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.timers import TimerKind
from kardia.events import shard_of
from kardia.kafka.sessions import Coordinator as Implementation
from kardia.kafka.states import ErrorCode
from tests.truth.fleet.broker import STORED_WITHIN_MS, Asked, Broker
from tests.truth.fleet.offsets_topic import OffsetsTopic
from tests.truth.fleet.old_lines import TextLog, is_text
from tests.truth.fleet.old_server_lines import OldNarrator
from tests.truth.fleet.server_lines import Narrator
from tests.truth.fleet.truth import Truth
from tests.truth.fleet.world import START_MS, World

Kinds = tuple[TimerKind, ...]
"""What one timer thread fires."""

ALL_KINDS: Kinds = tuple(TimerKind)

NOT_STORED = {True: ErrorCode.COORDINATOR_NOT_AVAILABLE, False: ErrorCode.REQUEST_TIMED_OUT}
"""Whether the coordinator is Java's -> the error of what could not be stored in time. In Scala's it becomes 27 where a
group could not be."""

RETURNS_AFTER_MS = 5_000.0
"""A shard returns to a broker after that at the earliest. Sooner, nobody may have asked in between, and the request log
shows no more of it than of a load on the same broker, which the scenario `reloads` plays."""


@dataclass
class Shard:
    """Who leads a partition of `__consumer_offsets`: None while nobody does."""

    leader: Broker | None
    loading: bool = False
    moves: int = 0
    left_at_ms: dict[int, float] = field(default_factory=dict)
    """Place of a broker -> when it gave the shard up."""


def while_loading(operation: Operation, at_ms: int, *, java: bool) -> Answer:
    """What a broker answers whose shard still loads; held against Kafka's classes in `tests/truth/test_loading.py`."""
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if isinstance(operation, Heartbeat):
        error = ErrorCode.NONE  # and without any effect
    elif isinstance(operation, Sync) and not java:
        error = ErrorCode.REBALANCE_IN_PROGRESS
    return refused(operation, error, at_ms, java=java)


def refused(operation: Operation, error: ErrorCode, at_ms: int, *, java: bool) -> Answer:
    """An answer of nothing but an error."""
    echoed = operation.member_id if isinstance(operation, Join) and not java else ""
    parts = tuple((group_id, int(error)) for group_id in sorted(getattr(operation, "group_ids", ())))
    return Answer(operation.number, at_ms, int(error), member_id=echoed, parts=parts)


class Cluster:
    """The brokers and everything their coordinators hold."""

    def __init__(
        self,
        world: World,
        version: str,
        groups: Sequence[str],
        initial_delay_ms: int,
        brokers: int,
        seed: int,
        group_max_size: int,
    ) -> None:
        """`version` decides the coordinator and the shape of lines and records."""
        self.world = world
        behaviour = behaviour_of(version)
        self.java = behaviour.coordinator is Implementation.JAVA
        self._behaviour = behaviour
        self._settings = CoordinatorSettings(
            initial_rebalance_delay_ms=initial_delay_ms,
            started_at_ms=int(START_MS),
            group_max_size=group_max_size,
            appends_take_time=self.tells_stored,
        )
        self.brokers = [Broker(world, self, number + 1, java=self.java, seed=seed) for number in range(brokers)]
        self.truths = {group_id: self._new_truth(group_id) for group_id in groups}
        self.topic = OffsetsTopic(seed, version)
        self.clients: dict[str, tuple[str, str]] = {}
        """Member id -> client id and address of whoever asked for it."""
        self._coordinators = {group_id: self._new_coordinator(group_id) for group_id in groups}
        self._records: dict[str, GroupRecord | None] = dict.fromkeys(groups)
        self._asked: dict[int, Asked] = {}
        self._due: dict[tuple[str, Kinds], float] = {}
        """Group and timer thread -> deadline of the timer that its broker's thread will fire next."""
        self._number = 0
        self.text = TextLog(version) if is_text(version) else None
        """Writes the request log of a release whose lines are text."""
        self.version = version
        self._narrator = OldNarrator(version) if is_text(version) else Narrator(java=self.java)
        self.sleeps: list[tuple[float, float]] = []
        """From when to when the machine stood still."""
        self.shards: dict[int, Shard] = {}
        self._groups: dict[int, list[str]] = {}
        for group_id in groups:
            shard = shard_of(group_id)
            self._groups.setdefault(shard, []).append(group_id)
            self.shards[shard] = Shard(self.brokers[shard % brokers])

    tells_stored = True
    """Whether its coordinators are told when a record is stored, and hold back themselves what waits for that."""

    def waits(self, operation: Operation) -> bool:
        """Whether an answer waits until all is stored that its coordinator wrote before. In Java's those of JoinGroup
        and SyncGroup do not."""
        return self.java and not isinstance(operation, Join | Sync)

    def not_stored(self, operation: Operation, at_ms: int) -> Answer:
        """What is answered to who has waited too long for a record, or for one before it."""
        return self._refused(operation, NOT_STORED[self.java], at_ms)

    def _new_truth(self, group_id: str) -> Truth:
        return Truth(group_id, java=self.java)

    def _new_coordinator(self, group_id: str) -> Coordinator:  # noqa: ARG002
        return Coordinator(self._behaviour, self._settings)

    # --- what clients and brokers ask

    def number(self) -> int:
        """A number for a request."""
        self._number += 1
        return self._number

    def coordinator_of(self, group_id: str) -> Broker | None:
        """What FindCoordinator says: the leader of the group's shard, None while there is none."""
        leader = self.shards[shard_of(group_id)].leader
        return leader if leader is not None and leader.up else None

    def refusal(self, broker: Broker, operation: Operation) -> Answer | None:
        """What a broker answers that does not lead the group's shard, or is loading it; None where it may perform."""
        shard = self.shards[shard_of(groups_of(operation)[0])]
        at_ms = int(self.world.now_ms)
        if shard.leader is not broker:
            return self._refused(operation, ErrorCode.NOT_COORDINATOR, at_ms)
        if not shard.loading:
            return None
        return while_loading(operation, at_ms, java=self.java)

    def _refused(self, operation: Operation, error: ErrorCode, at_ms: int) -> Answer:
        return refused(operation, error, at_ms, java=self.java)

    def perform(self, asked: Asked, operation: Operation) -> None:
        """The coordinator takes a request."""
        group_id = groups_of(operation)[0]
        self._asked[operation.number] = asked
        if isinstance(operation, Join):
            self.clients[operation.member_id or operation.new_id] = operation.client_id, operation.client_host
        self.truths[group_id].asked[operation.number] = operation
        self._step(group_id, operation)

    def view(self, group_id: str) -> object | None:
        """A group as its coordinator holds it, in the words of its protocol."""
        return self._coordinators[group_id].view(group_id)

    def record(self, group_id: str) -> GroupRecord | None:
        """The last record of a classic group."""
        return self._coordinators[group_id].record(group_id)

    def names(self, partitions: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        """Partitions by the names of their topics."""
        return tuple(partitions)

    # --- the coordinators

    def _step(
        self, group_id: str, operation: Operation | None, *, silent: bool = False, fire: tuple[Kinds, int] | None = None
    ) -> None:
        """Let the coordinator of a group do something. `fire`: timers of these kinds that were due by then, instead.
        `silent`: nobody hears its answers."""
        at_ms = int(self.world.now_ms)
        coordinator, truth = self._coordinators[group_id], self.truths[group_id]
        answers = []
        if fire is not None:
            kinds, due_ms = fire
            answers = coordinator.fire_late(kinds, due_ms, at_ms)
            happened, view = coordinator.take_happenings(), coordinator.view(group_id)
            truth.note(happened, view, None)
            self._tell(group_id, happened, None, view)
            self._write(group_id, coordinator, None, answers, happened)
        recorded = False
        if operation is not None:
            more = coordinator.perform(operation, at_ms, overtakes=True)
            happened = coordinator.take_happenings()
            recorded, view = any(one.kind == "recorded" for one in happened), coordinator.view(group_id)
            truth.note(happened, view, operation, at_ms)
            self._tell(group_id, happened, operation, view, recorded=recorded)
            recorded |= self._write(group_id, coordinator, operation, more, happened)
            answers += more
            if self.tells_stored and isinstance(operation, Join | Sync):
                self._await_store(group_id, operation.number, recorded=recorded)
        for answer in answers:
            asked = self._asked.pop(answer.number)
            if not isinstance(operation, Unload):
                truth.taken_up(at_ms)
            if not silent:
                asked.connection.broker.answered(asked, answer, operation, recorded)
        self._wake(group_id)

    def _await_store(self, group_id: str, number: int, *, recorded: bool) -> None:
        """Tell the coordinator when the record of a request is stored, or that it could not be in time; Java's the
        latter as well of what was written before a request that has none."""
        shard = shard_of(group_id)
        leader = self.shards[shard].leader
        if leader is None or not (recorded or self.java):
            return
        after_ms = leader.stored_in_ms(shard) if recorded else leader.all_stored_in_ms(shard)
        error = ErrorCode.NONE
        if after_ms > STORED_WITHIN_MS:
            after_ms, error = STORED_WITHIN_MS, NOT_STORED[True] if self.java else ErrorCode.REBALANCE_IN_PROGRESS
        if recorded or error is not ErrorCode.NONE:
            self.world.after(after_ms, partial(self._stored, leader, Stored(self.number(), group_id, number, error)))

    def _stored(self, leader: Broker, told: Stored) -> None:
        if leader.stands_still:
            self.world.at(leader.stands_to_ms, partial(self._stored, leader, told))
        else:
            self._step(told.group_id, told)

    def _tell(
        self,
        group_id: str,
        happened: Sequence[Happening],
        operation: Operation | None,
        view: View | None,
        *,
        recorded: bool = False,
    ) -> None:
        """Let the coordinator say in `server.log` what it did."""
        leader, now_ms = self.shards[shard_of(group_id)].leader, self.world.now_ms
        said = self._narrator.told(group_id, happened, operation, view)
        if leader is None:
            return
        if isinstance(operation, Sync) and recorded and view is not None:
            leader.say(now_ms, self._narrator.assignment_received(operation, view), group_id)
        for message in said:
            leader.say(now_ms, message, group_id)

    def _write(
        self,
        group_id: str,
        coordinator: Coordinator,
        operation: Operation | None,
        answers: list[Answer],
        happened: Sequence[Happening],  # noqa: ARG002
    ) -> bool:
        """Put into the topic what the coordinator has written. Whether records of its group were written that
        `happened` does not tell of."""
        record = coordinator.record(group_id)
        if record is not self._records[group_id]:
            self._records[group_id] = record
            self.topic.group(group_id, record, self.world.now_ms, self._stores_from_ms(group_id))
        if isinstance(operation, Commit) and answers and answers[0].error_code == ErrorCode.NONE:
            what = operation.topic, operation.partition, operation.offset
            self.topic.commit(group_id, *what, self.world.now_ms, self._stores_from_ms(group_id))
        return False

    def _stores_from_ms(self, group_id: str) -> float:
        leader = self.shards[shard_of(group_id)].leader
        return 0.0 if leader is None else leader.stores_from_ms

    def _wake(self, group_id: str) -> None:
        """Come back when a timer thread of the broker that leads the group gets to its next timer."""
        leader = self.shards[shard_of(group_id)].leader
        for kinds, thread in leader.timers.items() if leader is not None else ():
            due = self._coordinators[group_id].next_deadline_at_ms(kinds)
            planned = self._due.get((group_id, kinds), -1.0)
            if due >= 0 and not 0 <= planned <= due:
                self._due[group_id, kinds] = due
                fires_at_ms = max(thread.fires_at_ms(due), self.world.now_ms) + thread.jitter_ms()
                self.world.at(fires_at_ms, partial(self._woken, group_id, kinds, due))

    def _woken(self, group_id: str, kinds: Kinds, due: int) -> None:
        leader = self.shards[shard_of(group_id)].leader
        if leader is not None and leader.stands_still:
            wakes_ms = leader.stands_to_ms + leader.timers[kinds].jitter_ms()
            self.world.at(wakes_ms, partial(self._woken, group_id, kinds, due))
            return
        if self._due.get((group_id, kinds)) == due:
            self._due[group_id, kinds] = -1.0
            self._step(group_id, None, fire=(kinds, due))

    # --- what happens to the cluster

    def reload(self, group_id: str, after_ms: float) -> None:
        """The coordinator gives the group up and loads it again, as after an election on the same broker."""
        self._step(group_id, Unload(self.number()))
        self.world.after(after_ms, lambda: self._step(group_id, Load(self.number())))

    def move(self, shard_id: int, to: Broker, elected_after_ms: float, load_ms: float) -> None:
        """Another broker becomes the leader of a shard; the old one gives it up before."""
        shard = self.shards[shard_id]
        if shard.leader is None or shard.leader is to or shard.loading or not to.up:
            return
        if self.world.now_ms < shard.left_at_ms.get(self.brokers.index(to), -RETURNS_AFTER_MS) + RETURNS_AFTER_MS:
            return
        shard.left_at_ms[self.brokers.index(shard.leader)] = self.world.now_ms
        shard.leader = None
        for group_id in self._groups[shard_id]:
            self._step(group_id, Unload(self.number()))
        shard.moves += 1
        self.world.after(elected_after_ms, lambda: self._elect(shard_id, to, load_ms))

    def _elect(self, shard_id: int, to: Broker, load_ms: float) -> None:
        shard = self.shards[shard_id]
        if shard.leader is not None:
            return
        if not to.up:
            self.world.after(500.0, lambda: self._elect(shard_id, to, load_ms))
            return
        shard.leader, shard.loading = to, True
        moves = shard.moves

        def loaded() -> None:
            if shard.leader is to and shard.moves == moves:
                shard.loading = False
                for group_id in self._groups[shard_id]:
                    self._step(group_id, Load(self.number()))

        self.world.after(load_ms, loaded)

    def crash(self, broker: Broker, down_ms: float, load_ms: float, failover_ms: float) -> None:
        """A broker dies and comes back. Its shards go to the others after `failover_ms`, or wait for it."""
        if not broker.up:
            return
        led = [shard_id for shard_id, shard in self.shards.items() if shard.leader is broker]
        broker.die()
        for shard_id in led:
            shard = self.shards[shard_id]
            shard.leader, shard.loading = None, False
            shard.moves += 1
            for group_id in self._groups[shard_id]:
                self._step(group_id, Unload(self.number()), silent=True)
        others = [other for other in self.brokers if other.up]
        self.world.after(down_ms, broker.start)
        for place, shard_id in enumerate(led):
            to = others[place % len(others)] if others else broker
            after_ms = failover_ms if others else down_ms + 50.0
            self.world.after(after_ms, partial(self._elect, shard_id, to, load_ms))

    def stall(self, broker: Broker, for_ms: float) -> None:
        """A replica in sync with what a broker leads stands still: nothing is stored until it goes on, or is out of
        sync."""
        broker.stores_from_ms = max(broker.stores_from_ms, self.world.now_ms + for_ms)
        for group_id, truth in self.truths.items():
            if self.shards[shard_of(group_id)].leader is broker:
                truth.stalls.append((self.world.now_ms, broker.stores_from_ms))

    def sleep(self, for_ms: float) -> None:
        """The machine under all brokers stands still."""
        self.sleeps.append((self.world.now_ms, self.world.now_ms + for_ms))
        for broker in self.brokers:
            broker.stop(for_ms)

    @property
    def wakes_at_ms(self) -> float:
        """When the machine last woke, or will wake."""
        return self.sleeps[-1][1] if self.sleeps else 0.0

    @property
    def asleep(self) -> bool:
        """Whether the machine stands still now."""
        return self.world.now_ms < self.wakes_at_ms

    def close(self) -> None:
        """Let every coordinator come to now: the truth ends here."""
        for group_id in self._coordinators:
            self._step(group_id, None, fire=(ALL_KINDS, int(self.world.now_ms)))
