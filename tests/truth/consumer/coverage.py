"""Counts what the histories of consumer groups have reached, against the list of what they must: `cells.json`.

A cell is a kind of situation: the state of the group, the operation, who asked, and the outcome; a step of a member
from one state to another; what a timer did. A cell of the list that a run never reaches is told. The list was made from
runs of 12,000 operations: what they reached eight times at least. Rarer ones are compared and counted, not required.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kardia.coordinator.classic.operations import Commit, DeleteGroups, Join, Leave, View
from kardia.coordinator.consumer.member import LEAVE, LEAVE_FOR_A_WHILE
from kardia.coordinator.consumer.operations import (
    Beat,
    Configure,
    ConsumerMemberView,
    ConsumerView,
    Fetch,
    OfClassicMember,
    Resolve,
    Topics,
)
from kardia.coordinator.operations import Load, Unload
from tests.truth.consumer.lockstep import AnyView, ConsumerStep
from tests.truth.coverage import ABSENT, AWAY, WAITS, Cell, Verdict
from tests.truth.listed import Listed, judged, read

CELLS_FILE = Path(__file__).with_name("cells.json")
TIMED = ("session_expired", "rebalance_timeout", "join_timeout", "sync_timeout", "deleted")
"""What a timer can do to a group, by the model's names."""


class ConsumerCoverage:
    """Counts cells. `see` is given every step."""

    def __init__(self) -> None:
        """Nothing seen."""
        self.counts: Counter[Cell] = Counter()

    def see(self, step: ConsumerStep) -> None:
        """Count one step."""
        operation = step.operation
        for group_id, after in step.after.items():
            self._see_members(step.before.get(group_id), after)
            self._see_conversion(step, group_id)
        if operation is None:
            for happening in step.happenings:
                if happening.kind in TIMED:
                    state = _state(step.before.get(happening.group_id))
                    self.counts[Cell(state, "timer", "", happening.kind)] += 1
            return
        if isinstance(operation, Load):
            self.counts.update(Cell(AWAY, "Load", "", _state(view)) for view in step.after.values() if view is not None)
        if isinstance(operation, Resolve):
            bumps = any(happening.kind == "epoch" for happening in step.happenings)
            self.counts[Cell("any", "Resolve", "", "new epoch" if bumps else "nothing new")] += 1
        if isinstance(operation, Load | Unload | Topics | Configure | Resolve):
            return
        own = next((one for one in step.answers if one.number == operation.number), None)
        kind, codes = type(operation).__name__, [WAITS if own is None else str(own.error_code)]
        if isinstance(operation, DeleteGroups):
            codes = [str(code) for _, code in getattr(own, "parts", ())]
            groups = [group_id for group_id, _ in getattr(own, "parts", ())]
        else:
            groups = [operation.group_id]
        for group_id, code in zip(groups, codes, strict=True):
            view = step.before.get(group_id)
            if not step.was_loaded:
                self.counts[Cell(AWAY, kind, "anybody", code)] += 1
            elif code in ("42", "112"):
                self.counts[Cell("any", kind, "anybody", code)] += 1
            else:
                self.counts[Cell(_state(view), kind, _who(operation, view), code)] += 1

    def _see_conversion(self, step: ConsumerStep, group_id: str) -> None:
        """A group of one kind where there was one of the other, and what became of those who waited."""
        before, after = step.before.get(group_id), step.after.get(group_id)
        if before is None or after is None or type(before) is type(after):
            return
        cause = "timer" if step.operation is None else type(step.operation).__name__
        self.counts[Cell(_state(before), "conversion", cause, _state(after))] += 1
        own = -1 if step.operation is None else step.operation.number
        for answer in step.answers:
            if answer.number != own:
                self.counts[Cell(_state(before), "conversion", "who waited", str(answer.error_code))] += 1

    def _see_members(self, before: AnyView | None, after: AnyView | None) -> None:
        if not isinstance(before, ConsumerView) or not isinstance(after, ConsumerView) or before is after:
            return
        old = {one.member_id: one for one in before.members}
        for one in after.members:
            was = old.get(one.member_id)
            if was is not None and (was.state, was.epoch) != (one.state, one.epoch):
                step = "another epoch" if was.epoch != one.epoch else "same epoch"
                self.counts[Cell(was.state, "member", step, one.state)] += 1


def _state(view: AnyView | None) -> str:
    if view is None:
        return ABSENT
    return f"classic {view.state}" if isinstance(view, View) else view.state


def _who_in_classic(operation: Beat | Commit | Fetch | OfClassicMember, view: View) -> str:
    """Who asks a classic group. What its own protocol asks is seen by the runs of classic groups."""
    if isinstance(operation, Beat):
        instance_id, epoch = operation.instance_id, operation.member_epoch
        held = instance_id is not None and any(one.group_instance_id == instance_id for one in view.members)
        known = held or any(one.member_id == operation.member_id for one in view.members)
        return ("member" if known else "stranger") + (" joins" if epoch == 0 else "")
    return "anybody"


def _who(operation: Beat | Commit | Fetch | DeleteGroups | OfClassicMember, view: AnyView | None) -> str:
    if isinstance(operation, DeleteGroups):
        return "administrator"
    if isinstance(view, View):
        return _who_in_classic(operation, view)
    members = {one.member_id: one for one in view.members} if view is not None else {}
    if isinstance(operation, Leave):
        return "one" if len(operation.members) == 1 else "several"
    member = members.get(operation.member_id or "")
    if isinstance(operation, Beat):
        return _who_beats(operation, members, member)
    if isinstance(operation, Join):
        kind = "new" if member is None else "member"
        return kind + (" static" if operation.group_instance_id is not None else "")
    if member is None:
        return "stranger" if operation.member_id else "nobody"
    kind = "member" if member.classic is None else "classic member"
    epoch = operation.member_epoch if isinstance(operation, Fetch) else operation.generation_id
    return kind if epoch == member.epoch else kind + ", other epoch"


def _who_beats(beat: Beat, members: dict[str, ConsumerMemberView], member: ConsumerMemberView | None) -> str:
    holder = None
    if beat.instance_id is not None:
        holder = next((one for one in members.values() if one.instance_id == beat.instance_id), None)
    if beat.member_epoch == 0:
        if beat.instance_id is None:
            return "joins" if member is None else "rejoins"
        if holder is None:
            return "joins static"
        return "returns" if holder.epoch == LEAVE_FOR_A_WHILE else "instance held"
    if beat.member_epoch in (LEAVE, LEAVE_FOR_A_WHILE):
        known = member is not None if beat.instance_id is None else holder is not None
        leaves = "leaves" if beat.member_epoch == LEAVE else "leaves for a while"
        return leaves if known else "stranger leaves"
    if member is None:
        return "stranger"
    return "away" if member.epoch == LEAVE_FOR_A_WHILE else member.state


def listed() -> list[Listed]:
    """The committed list."""
    return read(CELLS_FILE)


def judge(counts: Counter[Cell], version: str) -> Verdict:
    """Hold counts against the list."""
    return judged(listed(), counts, version)
