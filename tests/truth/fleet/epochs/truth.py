"""What the coordinator did with a group that has epochs, in the words by which classic groups are scored.

A rebalance is what docs/epochs.md says: from a new group epoch to the moment at which every member has come to it. Its
generation is the epoch, its join phase ends when a target was computed for it. A view is that of a classic group: no
member ever waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kardia.coordinator.classic.operations import Join, MemberView, Operation, View
from kardia.coordinator.consumer.member import LEAVE_FOR_A_WHILE
from kardia.coordinator.consumer.operations import Beat, ConsumerMemberView, ConsumerView
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share.operations import ShareMemberView, ShareView
from kardia.coordinator.streams.operations import StreamsBeat, StreamsMemberView, StreamsView
from tests.truth.fleet.bounds import MOST_LATE_MS
from tests.truth.fleet.epochs.records import ENDS
from tests.truth.fleet.truth import TrueRebalance, Truth

TRIGGERS = {
    "left": "member_left",
    "join_timeout": "rebalance_timeout",
}
"""Cause of an end -> trigger of the new epoch, where they differ."""

ADDED, CHANGED, TOPICS, REPLACED = "member_joined", "metadata_changed", "topic_metadata", "static_replaced"

EpochView = ConsumerView | ShareView | StreamsView

UNREAD_MS = 400
"""From a record to its reader, and what it waits there for the rest of its operation."""

STORED_MS = 60
"""From a record to its being stored on all replicas, at the most."""

NEAR_MS = 12
"""As for every instant at which a request took effect."""

_LAST_OF_CONSUMER = "the last member of the consumer protocol"


class Refused(NamedTuple):
    """A heartbeat or JoinGroup that was refused."""

    at_ms: int
    member_id: str
    error_code: int


class EpochTruth(Truth):
    """One group, of any protocol."""

    def __init__(self, group_id: str, session_ms: int) -> None:
        """`session_ms`: of a member that does not say its own."""
        super().__init__(group_id)
        self.conversions: list[tuple[int, str]] = []
        """When it changed its protocol, and whether it was `upgraded` or `downgraded`, or had no members and was
        `replaced`."""
        self.created: list[int] = []
        """When a group of the name came into being: Empty, until the request that made it was done."""
        self.refused: list[Refused] = []
        self.away: list[tuple[int, str, bool]] = []
        """When a static member left for a moment, or (last) was back."""
        self._session_ms = session_ms
        self._open: list[TrueRebalance] = []
        self._last: EpochView | None = None
        self._operation: Operation | Beat | StreamsBeat | None = None
        self._members = 0
        """Members before what comes next in the step that is gone through."""
        """The one whose step is gone through."""
        self._loaded_now = True

    # --- taking note

    def note(
        self,
        happenings: list[Happening],
        view: View | EpochView | None,
        operation: Operation | Beat | StreamsBeat | None,
        at_ms: int = -1,
    ) -> None:
        """Take a step of the coordinator, of any protocol."""
        modern = view if isinstance(view, EpochView) else None
        self.created += [one.at_ms for one in happenings if one.kind == "created"]
        if not self._loaded_now and not isinstance(operation, Load):
            return
        self._loaded_now = not isinstance(operation, Unload)
        if modern is None and self._last is None:
            self.conversions += [(one.at_ms, one.kind) for one in happenings if one.kind == "replaced"]
            if any(one.kind == "created" for one in happenings):
                self._went_back_to = 0
            super().note(happenings, view if isinstance(view, View) else None, operation, at_ms)  # type: ignore[arg-type]
            return
        at = max([at_ms, *(one.at_ms for one in happenings)])
        if isinstance(modern, ShareView):
            happenings = [*self._who_came(modern, at), *happenings]
        self._go_through(happenings, modern, operation)
        if isinstance(operation, Unload) and (not self.given_up or self.given_up[-1][1] >= 0):
            self.given_up.append([at, -1])
        if isinstance(operation, Load):
            self.loads.append(at)
        if at >= 0:
            self._keep(view if isinstance(view, View) else _as_classic(modern, self._session_ms), at)
        if isinstance(operation, Unload):
            return  # what it was comes back with the load
        if modern is not None:
            self._went_back_to = -1  # its epoch counts on, whatever the classic group before it went back to
            self._come_on(modern, at)
        else:
            self._open.clear()
            self._take_seats(view, at)
        self._last = modern

    def _keep(self, view: View | None, at: int) -> None:
        if not self._views or self._views[-1] != view:
            self._at.append(at)
            self._views.append(view)
        for member in view.members if view is not None else ():
            if member.member_id in self._alive:
                self._alive[member.member_id].session_timeout_ms = member.session_timeout_ms

    def _go_through(
        self, happenings: Sequence[Happening], view: EpochView | None, operation: Operation | Beat | StreamsBeat | None
    ) -> None:
        """What happened in a step, in its order: what comes before an epoch is why there is one."""
        actor, why, self._operation = "", "", operation
        self._members = len(self._alive)
        for one in happenings:
            if one.kind in ENDS:
                actor, why = one.member_id, self._over(one, operation)
            elif one.kind in ("member_added", "member_replaced"):
                self._happened(one, None, "")
                actor, why = one.member_id, ADDED if one.kind == "member_added" else REPLACED
                if why == REPLACED:
                    self._is_gone(self._replaced_by(actor), one.at_ms)
            elif one.kind == "epoch":
                self._raised(one, *self._why(actor, why, view, operation))
                actor, why = "", ""
            elif one.kind == "assigned":
                self._assigned(int(one.detail), one.at_ms)
            elif one.kind in ("upgraded", "downgraded", "replaced"):
                self.conversions.append((one.at_ms, one.kind))
            elif one.kind == "created" and view is None:
                self._went_back_to = 0
            elif one.kind == "left_for_a_while":
                self.away.append((one.at_ms, one.member_id, False))
                for rebalance in self._open:
                    self._reaches(rebalance, one.member_id, one.at_ms)
            elif one.kind not in ("loaded", "unloaded"):
                self._happened(one, None, actor)

    def _who_came(self, view: ShareView, at: int) -> list[Happening]:
        """Share groups do not tell who is new."""
        return [
            Happening(at, self.group_id, "member_added", one.member_id)
            for one in view.members
            if one.member_id not in self._alive
        ]

    def _take_seats(self, view: object, at: int) -> None:
        """A static member that comes back with JoinGroup may make the group a classic one: nothing tells of it."""
        there = {one.member_id: one for one in view.members} if isinstance(view, View) else {}
        for member_id in [one for one in self._alive if one not in there]:
            self._end(member_id, at, "static_replaced")
        for member_id, member in there.items():
            if member_id not in self._alive:
                self._begin(member_id, at, member.group_instance_id or "")

    def _over(self, one: Happening, operation: Operation | Beat | StreamsBeat | None) -> str:
        cause = one.kind
        if cause == "left":
            cause = self.causes.get(operation.number if operation is not None else -1, "left")
        self._end(one.member_id, one.at_ms, cause)
        self._is_gone(one.member_id, one.at_ms)
        return TRIGGERS.get(cause, cause)

    def _is_gone(self, member_id: str, at: int) -> None:
        """Nobody waits for it any more."""
        was = next((old for old in self._last.members if old.member_id == member_id), None) if self._last else None
        for rebalance in self._open:
            if was is not None and was.epoch != LEAVE_FOR_A_WHILE and rebalance.started_at_ms < at:
                self._reaches(rebalance, member_id, at)

    def _why(
        self, actor: str, why: str, view: EpochView | None, operation: Operation | Beat | StreamsBeat | None
    ) -> tuple[str, str]:
        """(trigger, member) of a new epoch."""
        if why and why != REPLACED:
            return why, actor
        asker = getattr(operation, "member_id", "") or actor
        before = _subscription(self._last, (actor and self._replaced_by(actor)) or asker)
        after = _subscription(view, asker)
        if self._last is None and why == REPLACED:
            return CHANGED, asker  # of a classic group, whose seats are not seen here
        if after is not None and before is not None and before != after:
            return CHANGED, asker
        return TOPICS, ""

    def _replaced_by(self, member_id: str) -> str:
        """Whose place a member has taken."""
        mine = next((life for life in reversed(self.lives) if life.member_id == member_id), None)
        old = (life for life in reversed(self.lives) if mine is not None and life.ended_at_ms == mine.joined_at_ms)
        return next((life.member_id for life in old if mine is not None and life.instance_id == mine.instance_id), "")

    def _raised(self, one: Happening, trigger: str, member_id: str) -> None:
        epoch = int(one.detail)
        new = TrueRebalance(
            one.at_ms, trigger, member_id, epoch - 1, generation_after=epoch, members_before=self._members
        )
        self._members = len(self._alive)
        self.rebalances.append(new)
        self._open.append(new)

    def _assigned(self, epoch: int, at_ms: int) -> None:
        for one in self._open:
            if one.joined_at_ms < 0 and one.generation_after <= epoch:
                one.joined_at_ms = at_ms

    def _come_on(self, view: EpochView, at: int) -> None:
        """Who has come to which epoch by a step."""
        if view.assignment_epoch >= 0:
            self._assigned(view.assignment_epoch, at)
        here = [one for one in view.members if one.epoch != LEAVE_FOR_A_WHILE]
        was = {one.member_id: one.epoch for one in self._last.members} if self._last is not None else {}
        for one in here:
            if was.get(one.member_id) == LEAVE_FOR_A_WHILE:
                self.away.append((at, one.member_id, True))
        for rebalance in list(self._open):
            epoch = rebalance.generation_after
            for one in here:
                if one.epoch >= epoch:
                    self._reaches(rebalance, one.member_id, at)
            if not view.members or (view.assignment_epoch >= epoch and all(one.epoch >= epoch for one in here)):
                rebalance.assigned_at_ms = at
                rebalance.joined_at_ms = at if rebalance.joined_at_ms < 0 else rebalance.joined_at_ms
                self._open.remove(rebalance)

    def _reaches(self, rebalance: TrueRebalance, member_id: str, at: int) -> None:
        """It is waited for no longer; who joined meanwhile is waited for since then."""
        lives = (life for life in reversed(self.lives) if life.member_id == member_id)
        since = max(rebalance.started_at_ms, next(lives).joined_at_ms)
        rebalance.joins.setdefault(member_id, rebalance.started_at_ms + at - since)

    def _moved(self, one: Happening, operation: Operation | None, actor: str) -> None:
        if _LAST_OF_CONSUMER not in one.detail:
            super()._moved(one, operation, actor)
            return
        before = self.rebalances[-1].generation_after if self.rebalances else 0
        taken = self._operation.group_instance_id if isinstance(self._operation, Join) else None
        if taken:  # a static member that came back with JoinGroup was the last one
            member_id = next(life.member_id for life in reversed(self.lives) if life.instance_id == taken)
            self.rebalances.append(TrueRebalance(one.at_ms, REPLACED, member_id, before))
            return
        of_actor = (life for life in reversed(self.lives) if life.member_id == actor)
        last = next(of_actor, None) or max(self.lives, key=lambda life: life.ended_at_ms)
        self.rebalances.append(TrueRebalance(one.at_ms, TRIGGERS.get(last.cause, last.cause), last.member_id, before))

    def note_refusal(self, at_ms: int, member_id: str, error_code: int) -> None:
        """A heartbeat or JoinGroup was refused."""
        self.refused.append(Refused(at_ms, member_id, error_code))

    # --- asking

    def _was_replaced_by(self, member_id: str, to_ms: float) -> bool:
        mine = (life for life in self.lives if life.member_id == member_id and life.cause == REPLACED)
        return any(0 <= life.ended_at_ms <= to_ms for life in mine)

    def converted_just_before(self, at_ms: float) -> bool:
        """See `Truth`: sessions of all members begin anew with it."""
        return any(at_ms - UNREAD_MS <= one <= at_ms for one, _ in self.conversions)

    def converted_between(self, from_ms: float, to_ms: float) -> bool:
        """See `Truth`."""
        return any(from_ms < at_ms <= to_ms for at_ms, _ in self.conversions)

    def unanswered_since_ms(self, at_ms: float) -> float:
        """See `Truth`: an answer waits until what was written before is stored."""
        return min(super().unanswered_since_ms(at_ms), at_ms - STORED_MS)

    def says_of(self, row: Mapping[str, Any]) -> str | None:
        """See `Truth.says_of`: conversions, refusals, static members that left for a moment."""
        cause, begin_ms, bound_ms = row["cause"], row["at_ms"] - NEAR_MS, row["at_bound_ms"]
        end_ms = row["at_ms"] + NEAR_MS + (MOST_LATE_MS if bound_ms is None else bound_ms)
        if cause in ("upgraded", "downgraded"):
            near = any(one in (cause, "replaced") and begin_ms <= at_ms <= end_ms for at_ms, one in self.conversions)
            return "" if near else f"said to be {cause}; {self.conversions}"
        if row["entity"] == "group" and row["to_state"] == "Empty":
            return "" if any(begin_ms <= at_ms <= end_ms for at_ms in self.created) else None
        codes = {
            "instance_id_in_use": (111,),
            "fenced": (110, 82),
            "upgrade_refused": (69,),
            "upgrade_failed": (-1,),
        }.get(cause)
        if codes is not None:
            mine = [one for one in self.refused if one.member_id == row["member_id"]]
            near = any(one.error_code in codes and begin_ms <= one.at_ms <= end_ms for one in mine)
            # Who waited in a JoinGroup of a classic group is told when its place is taken.
            near = near or (cause == "fenced" and self._was_replaced_by(row["member_id"], end_ms))
            return "" if near else f"said to be refused, {cause}; {mine}"
        if cause == "static_id_asked_for":
            near = any(one.error_code == 111 and begin_ms <= one.at_ms <= end_ms for one in self.refused)
            return "" if near else f"said to be refused, {cause}; {self.refused}"
        if cause in ("static_left", "static_returned"):
            back = cause == "static_returned"
            mine_away = [(at_ms, is_back) for at_ms, who, is_back in self.away if who == row["member_id"]]
            near = any(is_back == back and begin_ms <= at_ms <= end_ms for at_ms, is_back in mine_away)
            return "" if near or row["entity"] == "group" else f"{cause}; {mine_away}"
        return None


def _subscription(view: EpochView | None, member_id: str) -> tuple[object, ...] | None:
    for one in view.members if view is not None else ():
        if one.member_id == member_id and not isinstance(one, StreamsMemberView):
            return (one.names, one.regex if isinstance(one, ConsumerMemberView) else None)
    return None


def _as_classic(view: EpochView | None, session_ms: int) -> View | None:
    """The view of a group as one of a classic group, whose members never wait."""
    if view is None:
        return None
    members = tuple(_member(one, session_ms) for one in view.members)
    return View(view.state, view.group_epoch, "consumer", None, None, members, (), (), -1, -1)


def _member(one: ConsumerMemberView | ShareMemberView | StreamsMemberView, session_ms: int) -> MemberView:
    if isinstance(one, ShareMemberView):
        return MemberView(one.member_id, None, session_ms, -1, False, False, False, one.session_deadline_at_ms)
    classic = one.classic if isinstance(one, ConsumerMemberView) else None
    own_ms = classic[0] if classic is not None else session_ms
    waits = one.rebalance_timeout_ms
    return MemberView(one.member_id, one.instance_id, own_ms, waits, False, False, False, one.session_deadline_at_ms)
