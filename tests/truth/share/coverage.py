"""Counts what the histories of share groups have reached, against the list of what they must: `cells.json`.

A cell is the state of the group, who sent which heartbeat, and the outcome; what a timer did. The list was made from
runs of a few thousand operations: what they reached eight times at least.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kardia.coordinator.operations import Load
from kardia.coordinator.share.operations import ShareBeat, ShareView
from tests.truth.coverage import ABSENT, AWAY, Cell, Verdict
from tests.truth.listed import Listed, judged, read
from tests.truth.share.lockstep import ShareStep

CELLS_FILE = Path(__file__).with_name("cells.json")
TIMED = ("session_expired", "initialized", "deleted")
"""What a timer can do to a group, by the model's names."""


class ShareCoverage:
    """Counts cells. `see` is given every step."""

    def __init__(self) -> None:
        """Nothing seen."""
        self.counts: Counter[Cell] = Counter()

    def see(self, step: ShareStep) -> None:
        """Count one step."""
        operation = step.operation
        if operation is None:
            for happening in step.happenings:
                if happening.kind in TIMED:
                    state = _state(step.before.get(happening.group_id))
                    self.counts[Cell(state, "timer", "", happening.kind)] += 1
        elif isinstance(operation, Load):
            self.counts.update(Cell(AWAY, "Load", "", view.state) for view in step.after.values() if view is not None)
        elif isinstance(operation, ShareBeat):
            code = step.answers[0].error_code
            if not step.was_loaded:
                self.counts[Cell(AWAY, "ShareBeat", "anybody", str(code))] += 1
                return
            before, after = step.before.get(operation.group_id), step.after.get(operation.group_id)
            outcome = str(code)
            if not code and before is not None and after is not None:
                outcome += ", new epoch" if after.group_epoch > before.group_epoch else ", same epoch"
                outcome += ", new target" if after.assignment_epoch > before.assignment_epoch else ""
            self.counts[Cell(_state(before), "ShareBeat", _who(operation, before), outcome)] += 1


def _state(view: ShareView | None) -> str:
    return ABSENT if view is None else view.state


def _who(beat: ShareBeat, view: ShareView | None) -> str:
    member = next((one for one in view.members if one.member_id == beat.member_id), None) if view is not None else None
    if beat.member_epoch in (0, -1):
        what = "joins" if beat.member_epoch == 0 else "leaves"
        return f"{'stranger' if member is None else 'member'} {what}"
    if member is None:
        return "stranger"
    if beat.member_epoch == member.epoch:
        return "member"
    return "member, previous epoch" if beat.member_epoch == member.previous_epoch else "member, other epoch"


def listed() -> list[Listed]:
    """The committed list."""
    return read(CELLS_FILE)


def judge(counts: Counter[Cell], version: str) -> Verdict:
    """Hold counts against the list."""
    return judged(listed(), counts, version)
