"""What the coordinator really did with one group: lives, rebalances, and its state after every step.

Made from the model's happenings and views only; the log that the observer reads is not looked at. Instants are whole
milliseconds on the broker's clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kardia.coordinator.classic.operations import Join, Leave, MemberView, Operation, View
from kardia.coordinator.happenings import Happening
from kardia.kafka.states import GroupState
from tests.truth.fleet.broker import STORED_WITHIN_MS

END_CAUSES = {
    "session_expired": "session_expired",
    "join_timeout": "join_timeout",
    "rebalance_timeout": "rebalance_timeout",
    "sync_timeout": "sync_timeout",
    "left": "left",
    "removed_by_admin": "removed_by_admin",
    "rejected": "rejected",
}
"""Happening -> `end_cause` of `members`."""

WHY = (
    ("member added", "member_joined"),
    ("leader rejoined", "leader_rejoined"),
    ("metadata changed", "metadata_changed"),
    ("session expired", "session_expired"),
    ("member left", "member_left"),
    ("sync timeout", "sync_timeout"),
    ("static member replaced", "static_replaced"),
    ("loaded", "coordinator_loaded"),
    ("assignment not stored", "assignment_not_stored"),
)
"""The model's word for why a group prepares -> `trigger` of `rebalances`."""


@dataclass
class Life:
    """One membership. `ended_at_ms` -1 while it lasts."""

    member_id: str
    joined_at_ms: int
    ended_at_ms: int = -1
    cause: str = ""
    instance_id: str = ""
    session_timeout_ms: int = -1
    due_ms: int = -1
    """Deadline of its session, only of one that expired: the timer fired then or a little later."""
    armed_ms: int = -1
    """Longest silence that its session stood, only of one that expired: the timeout in force at the end."""


@dataclass
class TrueRebalance:
    """One rebalance. Instants -1 where it did not come so far."""

    started_at_ms: int
    trigger: str
    member_id: str
    generation_before: int
    joined_at_ms: int = -1
    generation_after: int = -1
    assigned_at_ms: int = -1
    joins: dict[str, int] = field(default_factory=dict)
    """Member -> when its JoinGroup took effect."""
    dropped: list[str] = field(default_factory=list)
    members_before: int = -1
    """Just before what began it; -1 where that is not counted."""
    members_after: int = -1
    """When its join phase ended."""


ANSWERED_MS = 100.0
"""So long after everything is stored all is answered that had waited for it, and logged; and what was written so
shortly before nothing could be stored waits for it, too."""

STAMPS_MS = 2
"""Two instants computed from stamps that are cut to 1 ms may be off by that much."""


class Lent(NamedTuple):
    """A static member's seat that somebody else had for a while, to whom it could not be given for good. That one was
    no member, as it was never told so; who asks the coordinator meanwhile is shown it."""

    holder_id: str
    taker_id: str
    from_ms: int
    to_ms: int


class Truth:
    """One group."""

    def __init__(self, group_id: str, *, java: bool = False) -> None:
        """Begin before the group is there. `java`: its coordinator is Java's, and the group a classic one."""
        self.group_id, self.java = group_id, java
        self.starved = False
        """Its brokers were starved of a processor at times: instants are judged by what is promised of them then."""
        self.asked: dict[int, Operation] = {}
        self.causes: dict[int, str] = {}
        """Number of a LeaveGroup -> why the client really left; clients tell it, the log may not."""
        self.lives: list[Life] = []
        self.rebalances: list[TrueRebalance] = []
        self.loads: list[int] = []
        self.pending_expired: list[int] = []
        self.given_up: list[list[int]] = []
        """[given up at, taken up at]: from the end of a coordinator to the first answer of the next one, -1 while it
        lasts. Until then nobody can know that it is another one."""
        self.stalls: list[tuple[float, float]] = []
        """[from, to]: nothing of the group's shard could be stored, so that answers waited."""
        self.lent: list[Lent] = []
        self._went_back_to = -1
        """Generation that a load left the group with, until the next rebalance begins; -1 else."""
        self._alive: dict[str, Life] = {}
        self._at: list[int] = []
        self._views: list[View | None] = []

    def seat_taken_at_its_end(self, member_id: str) -> bool:
        """Whether the session of a static member ended in the very instant in which another process came for its seat:
        which of the two was first is lost in stamps that are cut to 1 ms."""
        return any(
            life.member_id == member_id
            and life.cause == "session_expired"
            and life.instance_id
            and any(
                heir.instance_id == life.instance_id
                and heir is not life
                and abs(heir.joined_at_ms - life.ended_at_ms) <= STAMPS_MS
                for heir in self.lives
            )
            for life in self.lives
        )

    # --- taking note

    def note(
        self, happenings: list[Happening], view: View | None, operation: Operation | None, at_ms: int = -1
    ) -> None:
        """Take a step of the coordinator: what happened in it, and how the group is after it."""
        actor = ""
        for one in happenings:
            actor = self._happened(one, operation, actor)
        if happenings:
            at_ms = max(at_ms, happenings[-1].at_ms)
        if isinstance(operation, Join) and self.rebalances and view is not None:
            self._joined(operation, view, at_ms)
        if any(one.kind == "generation" for one in happenings):
            self.rebalances[-1].members_after = len(view.members) if view is not None else 0
        if any(one.kind == "loaded" for one in happenings):
            self._loaded(view, at_ms)
        if at_ms >= 0 and (not self._views or self._views[-1] != view):
            self._at.append(at_ms)
            self._views.append(view)
        if view is not None:
            for member in view.members:
                if member.member_id in self._alive:
                    self._alive[member.member_id].session_timeout_ms = member.session_timeout_ms

    def _happened(self, one: Happening, operation: Operation | None, actor: str) -> str:
        kind = one.kind
        if kind == "member_added":
            self._begin(one.member_id, one.at_ms, one.detail)
            return one.member_id
        if kind == "member_replaced":
            old = self._alive.get(one.detail)
            self._end(one.detail, one.at_ms, "static_replaced")
            self._begin(one.member_id, one.at_ms, old.instance_id if old else "")
            return one.member_id
        if kind == "member_given_back":
            self._give_back(one.member_id, one.detail, one.at_ms)
            return actor
        if kind in END_CAUSES:
            cause = END_CAUSES[kind]
            if kind == "left" and isinstance(operation, Leave):
                cause = self.causes.get(operation.number, "left")
            self._end(one.member_id, one.at_ms, cause)
            if kind == "rebalance_timeout" and self.rebalances:
                self.rebalances[-1].dropped.append(one.member_id)
            return actor or one.member_id
        if kind == "pending_expired":
            self.pending_expired.append(one.at_ms)
        elif kind == "state":
            self._moved(one, operation, actor)
        elif kind == "generation":
            current = self.rebalances[-1]
            current.joined_at_ms = one.at_ms
            current.generation_after = int(one.detail)
        elif kind == "loaded":
            self.loads.append(one.at_ms)
        elif kind == "unloaded" and (not self.given_up or self.given_up[-1][1] >= 0):
            self.given_up.append([one.at_ms, -1])
        return actor

    def taken_up(self, at_ms: int) -> None:
        """The coordinator has answered as one that leads the group."""
        if self.given_up and self.given_up[-1][1] < 0:
            self.given_up[-1][1] = at_ms

    def given_up_at(self, at_ms: float) -> int | None:
        """When the group's coordinator had been given up of which nobody can know at an instant; None else."""
        for begin, end in self.given_up:
            if begin <= at_ms and (end < 0 or at_ms <= end):
                return begin
        return None

    def _moved(self, one: Happening, operation: Operation | None, actor: str) -> None:
        moved, _, why = one.detail.partition(": ")
        to = moved.partition(" to ")[2]
        if to == GroupState.PREPARING:
            trigger = next(trigger for words, trigger in WHY if why.startswith(words))
            if not actor and isinstance(operation, Join):
                actor = operation.member_id
            last = self._views[-1] if self._views else None
            if trigger == "assignment_not_stored" and last is not None:
                actor = last.leader or ""
            before = self.rebalances[-1].generation_after if self.rebalances else 0
            if self.rebalances and self.rebalances[-1].generation_after < 0:
                before = self.rebalances[-1].generation_before
            if self._went_back_to >= 0:
                before, self._went_back_to = self._went_back_to, -1
            if trigger == "member_left" and actor:
                cause = next(life.cause for life in reversed(self.lives) if life.member_id == actor)
                trigger = {"left": "member_left"}.get(cause, cause)
            members_before = len(last.members) if last is not None else 0
            self.rebalances.append(TrueRebalance(one.at_ms, trigger, actor, before, members_before=members_before))
        elif to == GroupState.STABLE and self.rebalances:
            self.rebalances[-1].assigned_at_ms = one.at_ms

    def _joined(self, operation: Join, view: View, at_ms: int) -> None:
        current = self.rebalances[-1]
        member_id = operation.member_id
        if not member_id or member_id not in self._alive:
            member_id = operation.new_id
        waits = {member.member_id for member in view.members if member.waits_for_join}
        if (member_id in waits and current.joined_at_ms < 0) or current.joined_at_ms == at_ms:
            current.joins.setdefault(member_id, at_ms)

    def _loaded(self, view: View | None, at_ms: int) -> None:
        self._went_back_to = 0 if view is None else view.generation_id
        there = {} if view is None else {member.member_id: member for member in view.members}
        for member_id in list(self._alive):
            if member_id not in there:
                self._end(member_id, at_ms, "lost_at_load")
        for member_id, member in there.items():
            if member_id not in self._alive:
                self._begin(member_id, at_ms, member.group_instance_id or "")

    def _begin(self, member_id: str, at_ms: int, instance_id: str) -> None:
        life = self._alive[member_id] = Life(member_id, at_ms, instance_id=instance_id)
        self.lives.append(life)

    def _give_back(self, member_id: str, taker_id: str, at_ms: int) -> None:
        """Whose seat was taken has it again. The taker was a member only if it was told so: by a join phase that ended
        meanwhile."""
        last = self._views[-1] if self._views else None
        if last is None or not any(one.member_id == taker_id and one.waits_for_join for one in last.members):
            instance_id = self._alive[taker_id].instance_id
            self._end(taker_id, at_ms, "static_replaced")
            self._begin(member_id, at_ms, instance_id)
            return
        self.lives.remove(self._alive.pop(taker_id))
        life = next(one for one in reversed(self.lives) if one.member_id == member_id)
        self.lent.append(Lent(member_id, taker_id, life.ended_at_ms, at_ms))
        life.ended_at_ms, life.cause = -1, ""
        self._alive[member_id] = life

    def _end(self, member_id: str, at_ms: int, cause: str) -> None:
        life = self._alive.pop(member_id, None)
        if life is None:
            return
        life.ended_at_ms, life.cause = at_ms, cause
        before = self._views[-1] if self._views else None
        if cause == "session_expired" and before is not None:
            own = (one.session_deadline_at_ms for one in before.members if one.member_id == member_id)
            life.due_ms = next(own, -1)

    # --- asking

    def says_of(self, row: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Of a row of `transitions` that only groups with epochs have: what is untrue in it, "" if nothing is. None of
        any other row."""
        return None

    def unanswered_since_ms(self, at_ms: float) -> float:
        """What was asked for since then may not have been answered by an instant."""
        hidden = (begin - ANSWERED_MS for begin, end in self.stalls if begin <= at_ms <= end + ANSWERED_MS)
        return min(hidden, default=at_ms)

    def converted_just_before(self, at_ms: float) -> bool:  # noqa: ARG002
        """Whether the group changed its protocol so shortly before an instant that no reader of its records knew it."""
        return False

    def converted_between(self, from_ms: float, to_ms: float) -> bool:  # noqa: ARG002
        """Whether the group changed its protocol in a stretch of time: then the sessions of all begin anew."""
        return False

    def view_at(self, at_ms: float) -> View | None:
        """The group at an instant, after what happened at it."""
        place = bisect_right(self._at, at_ms) - 1
        return self._views[place] if place >= 0 else None

    def member_at(self, member_id: str, at_ms: float) -> MemberView | None:
        """A member at an instant, None when it is none."""
        view = self.view_at(at_ms)
        if view is None:
            return None
        return next((member for member in view.members if member.member_id == member_id), None)

    def member_between(self, member_id: str, from_ms: float, to_ms: float) -> list[MemberView | None]:
        """A member as it was, one after the other, in a stretch of time."""
        inside = (at_ms for at_ms in self._at if from_ms < at_ms <= to_ms)
        return [self.member_at(member_id, at_ms) for at_ms in (from_ms, *inside)]

    def shown_after_ms(self, cause: str, at_ms: float) -> int:
        """How long after an instant nothing shows what happened then: that the time for SyncGroup was over, or that a
        join phase ended with nobody, is shown by no answer to whoever may have joined unseen before; and a leader that
        is alone may wait until its assignment is stored."""
        with_nobody = any(
            one.dropped and not one.joins and abs(one.joined_at_ms - at_ms) <= STAMPS_MS for one in self.rebalances
        )
        if cause == "sync_timeout" or with_nobody:
            return self.longest_rebalance_timeout_ms()
        before = self.view_at(at_ms - STAMPS_MS - 1)
        stores = before is not None and before.state == GroupState.COMPLETING and len(before.members) == 1
        return int(STORED_WITHIN_MS) if stores else 0

    def longest_rebalance_timeout_ms(self) -> int:
        """The highest rebalance timeout that any member ever had: so long may somebody wait in a JoinGroup, unseen."""
        views = (view for view in self._views if view is not None)
        return max((member.rebalance_timeout_ms for view in views for member in view.members), default=0)

    def states_between(self, from_ms: float, to_ms: float) -> set[str]:
        """States the group was in during a stretch of time."""
        first, last = bisect_right(self._at, from_ms), bisect_right(self._at, to_ms)
        views = [self.view_at(from_ms), *self._views[first:last]]
        return {view.state if view else str(GroupState.DEAD) for view in views}

    def changes_between(self, from_ms: float, to_ms: float) -> bool:
        """Whether the state or the generation changes in a stretch of time."""
        first = self.view_at(from_ms)
        state = (first.state, first.generation_id) if first else None
        for at_ms, view in zip(self._at, self._views, strict=True):
            if from_ms < at_ms <= to_ms and ((view.state, view.generation_id) if view else None) != state:
                return True
        return False
