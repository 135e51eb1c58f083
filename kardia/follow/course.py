"""The course of one group: clues put to the model one after the other, each answer compared with the one in the log.

Stops at the first answer that is another one; what may be behind that is for `candidates`. Acts that no request of the
log did (edits) are given beforehand, by instant or by the clue that they come before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer
from kardia.follow.clues import MOVED, NOT_STORED, UNSHOWN, Clue, Heard, Lost, Moved
from kardia.follow.model import NEVER_MS, Model
from kardia.follow.tolerances import INSTANT_MS, LONG_AGO_MS, ORDER_MS
from kardia.kafka.states import GroupState

Item = Clue | Heard | Moved | Lost

Act = Callable[[Model, int], list[Answer]]
"""Something that no request of the log did, done to a model at an instant."""


NEVER_WAITS = frozenset({23, 26, 79, 81})
"""Answers to a JoinGroup that are given at once."""


class Contradiction(NamedTuple):
    """The model says otherwise than the log. `what`: error, generation, leader, members, early (the model answers
    before the broker did), late (it does not answer when the broker did), or renewed (of requests that were folded)."""

    clue: Clue | Heard
    at_ms: int
    what: str
    predicted: Answer | None
    state: GroupState
    """Of the model's group before the clue."""


class Course:
    """A model with the requests that it has not answered yet."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.open: dict[int, Clue] = {}
        self.stores: list[tuple[int, int, int]] = []
        """When the record of a request is stored, or could not be; its number; with which error."""
        self.overdue: list[tuple[int, int]] = []
        """When a request must have been answered, and its number."""
        self.acts: list[tuple[int, int, Act]] = []
        """Edits to come, by instant."""
        self._numbered = 0
        self.listed = False
        """A join phase has ended since this was last asked, and the leader's list was as predicted."""

    def copy(self) -> Course:
        """The same, to be gone on with apart."""
        other = Course(self.model.copy())
        other.open, other.stores, other.overdue = dict(self.open), list(self.stores), list(self.overdue)
        other.acts, other._numbered = list(self.acts), self._numbered
        return other

    def act_later(self, acts: Iterable[tuple[int, Act]]) -> None:
        """Edits by instant."""
        for at_ms, act in acts:
            self._numbered += 1
            heappush(self.acts, (at_ms, self._numbered, act))

    def is_calm(self) -> bool:
        """Whether nothing is under way: requests that only renew a session change nothing else."""
        return not (self.open or self.stores or self.acts) and self.model.state is GroupState.STABLE

    # --- going on

    def step(self, item: Item, before: Iterable[Act] = ()) -> Contradiction | None:
        """Take an item; the first answer on the way that is not the log's."""
        at_ms = item.from_ms if isinstance(item, Moved) else item.at_ms
        found = self.go_on(at_ms - 1)
        while found is None and self.stores and self.stores[0][0] <= at_ms:
            _, number, error = heappop(self.stores)  # who is answered at an instant may ask again at it
            found = self._compare(self.model.stored(number, at_ms, error))
        for act in before:
            found = found or self._compare(act(self.model, at_ms))
        if found is not None:
            return found
        if isinstance(item, Clue):
            return self._ask(item)
        if isinstance(item, Heard):
            return self._hear(item)
        if isinstance(item, Lost):
            self.model.pass_over(at_ms)
            return None
        return self._compare(self.model.unload(at_ms))

    def go_on(self, to_ms: int) -> Contradiction | None:
        """Let time pass."""
        stores, overdue, acts, model = self.stores, self.overdue, self.acts, self.model
        while True:
            store_ms = stores[0][0] if stores else NEVER_MS
            overdue_ms = overdue[0][0] if overdue else NEVER_MS
            act_ms = acts[0][0] if acts else NEVER_MS
            next_ms = min(store_ms, overdue_ms, act_ms)
            if next_ms > to_ms:
                break
            found = self._compare(model.advance(next_ms))
            if found is None and act_ms == next_ms:
                found = self._compare(heappop(acts)[2](model, next_ms))
            elif found is None and store_ms == next_ms:
                _, number, error = heappop(stores)
                found = self._compare(model.stored(number, next_ms, error))
            elif found is None:
                clue = self.open.get(heappop(overdue)[1])
                if clue is not None:
                    found = Contradiction(clue, next_ms, "late", None, model.state)
            if found is not None:
                return found
        if model.next_deadline_at_ms() <= to_ms:
            return self._compare(model.advance(to_ms))
        model.shard.now_ms = max(to_ms, model.shard.now_ms)
        return None

    def _ask(self, clue: Clue) -> Contradiction | None:
        model, operation, number = self.model, clue.operation, clue.number
        if not model.shard.loaded:
            found = self._compare(model.load(clue.at_ms - 1))
            if found is not None:
                return found
        state = model.state
        if isinstance(operation, ops.Join):
            operation = self._shown(operation, clue)
            if clue.error_code == 0:
                model.chosen.learn(clue.generation_id, clue.leader, clue.protocol_name, clue.answered_at_ms)
            self._lead(clue)
        self.open[number] = clue
        group = model.group
        answers = model.perform(operation, clue.at_ms)
        found = self._compare(answers, state, -1 if group is None else group.generation_id)
        if found is not None:
            return self._unanswered(clue.at_ms) or found
        if number not in self.open:
            return None
        if clue.error_code in NEVER_WAITS:
            return Contradiction(clue, model.now_ms, "error", None, state)
        if number in model.shard.stores:
            heappush(self.stores, (max(self._stored_at_ms(clue), clue.at_ms), number, clue.error_code))
        heappush(self.overdue, (clue.answered_at_ms + INSTANT_MS, number))
        return None

    def _stored_at_ms(self, clue: Clue) -> int:
        """When what a request wrote is stored: by when the first is answered that waits for it."""
        waiting = (
            one.answered_at_ms
            for one in self.open.values()
            if isinstance(one.operation, ops.Sync) and one.error_code == clue.error_code
        )
        return min(waiting) if isinstance(clue.operation, ops.Sync) else clue.answered_at_ms

    def _lead(self, clue: Clue) -> None:
        """Of two that join an Empty group at one instant either may be the first: the answers say which leads."""
        group, chosen = self.model.group, self.model.chosen
        if group is None or group.state is not GroupState.PREPARING or not group.from_empty:
            return
        if chosen.leaders.get(group.generation_id + 1) != clue.member_id:
            return
        first = next((one for one in self.open.values() if one.member_id == group.leader), None)
        if first is not None and clue.arrived_at_ms <= first.at_ms + ORDER_MS:
            self.model.leads_next = clue.member_id

    def _unanswered(self, at_ms: int) -> Contradiction | None:
        """What the log had answered before an instant and the model has not: that is where they part."""
        before = [one for one in self.open.values() if one.answered_at_ms <= at_ms]
        clue = min(before, key=lambda one: one.answered_at_ms, default=None)
        return None if clue is None else Contradiction(clue, at_ms, "late", None, self.model.state)

    def _shown(self, operation: ops.Join, clue: Clue) -> ops.Join:
        """Where the log does not show what a member supports, its answer says whether that has changed."""
        if operation.protocols[0][1] != UNSHOWN:
            return operation
        name = clue.protocol_name or "range"
        group = self.model.group
        member = None if group is None else group.members.get(operation.member_id)
        same = (
            group is not None
            and member is not None
            and clue.error_code == 0
            and clue.generation_id == group.generation_id
        )
        told = f"{operation.number}".encode()
        if same and member is not None:
            return operation._replace(protocols=member.protocols)
        return operation._replace(protocols=((name, b"\0\0\0\0\0\1\0\1x" + len(told).to_bytes(4, "big") + told),))

    def _hear(self, item: Heard) -> Contradiction | None:
        group = self.model.group
        for member_id, at_ms, _ in item.heard:
            wrong = group is None or group.state is not GroupState.STABLE or member_id not in group.members
            if wrong or (group is not None and group.generation_id != item.generation_id):
                return Contradiction(item, at_ms, "renewed", None, self.model.state)
            self.model.renew(member_id, at_ms)
        return None

    # --- comparing

    def _compare(
        self, answers: list[Answer], state: GroupState | None = None, before: int = -2
    ) -> Contradiction | None:
        """`before`: the generation in which a request found the group that is answered at once."""
        for answer in answers:
            clue = self.open.pop(answer.number, None)
            if clue is None:
                continue
            what = differs(clue, answer, self.model.chosen.ends.get(clue.generation_id, clue.answered_at_ms))
            if what == "early" and answer.generation_id == before:
                what = ""  # no phase has ended: it waits for what was written before
            if what:
                return Contradiction(clue, self.model.now_ms, what, answer, state or self.model.state)
            if clue.members and not clue.skips and self.model.phase_ended_at(answer.at_ms):
                self.listed = True
        return None


def _ids(answer: Answer) -> frozenset[str]:
    return frozenset(member_id for member_id, _, _ in answer.members)


def differs(clue: Clue, answer: Answer, end_ms: int) -> str:
    """In what an answer is not the one in the log; empty if in nothing. `end_ms`: when the first JoinGroup of the same
    generation was answered."""
    operation = clue.operation
    if isinstance(operation, ops.Leave):
        wanted = (clue.error_code,) if operation.version < 3 else clue.entries
        given = (answer.error_code,) if operation.version < 3 else tuple(error for _, _, error in answer.left)
        if operation.version < 3 and clue.entries and clue.error_code == 0:
            wanted = clue.entries[:1]
        return "" if wanted == given or (not wanted and answer.error_code == clue.error_code) else "error"
    if answer.error_code != clue.error_code:
        if clue.error_code in MOVED:
            return ""  # it was refused at the door, slowly: the group has moved
        failed = clue.error_code in NOT_STORED and answer.error_code == 0 and isinstance(operation, ops.Commit)
        return "" if failed else "error"
    if not isinstance(operation, ops.Join | ops.Sync):
        return ""
    if isinstance(operation, ops.Join) and clue.error_code == 0:
        if answer.generation_id != clue.generation_id:
            return "generation"
        if answer.leader != clue.leader:
            return "leader"
        if clue.members and clue.members != _ids(answer):
            return "members"
    if isinstance(operation, ops.Sync) and clue.error_code == 0:
        return ""  # what it waited for is that a record is stored, and the log says when
    joined = isinstance(operation, ops.Join) and clue.error_code == 0 and end_ms > clue.at_ms
    apart_ms = answer.at_ms - (end_ms if joined else clue.answered_at_ms)
    if answer.at_ms > clue.at_ms:
        return "early" if apart_ms < -INSTANT_MS else "late" if apart_ms > INSTANT_MS else ""
    return "early" if apart_ms < -LONG_AGO_MS and clue.error_code == 0 else ""
