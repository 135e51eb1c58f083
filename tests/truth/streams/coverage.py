"""Counts what the histories of streams groups have reached, against the list of what they must: `cells.json`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kardia.coordinator.operations import Load
from kardia.coordinator.streams.operations import StreamsBeat, StreamsView
from tests.truth.coverage import ABSENT, AWAY, Cell, Verdict
from tests.truth.listed import Listed, judged, read
from tests.truth.streams.lockstep import StreamsStep

CELLS_FILE = Path(__file__).with_name("cells.json")
TIMED = ("session_expired", "rebalance_timeout", "assigned", "deleted")
"""What a timer can do to a group, by the model's names."""


class StreamsCoverage:
    """Counts cells. `see` is given every step."""

    def __init__(self) -> None:
        """Nothing seen."""
        self.counts: Counter[Cell] = Counter()

    def see(self, step: StreamsStep) -> None:
        """Count one step."""
        operation = step.operation
        if operation is None:
            for happening in step.happenings:
                if happening.kind in TIMED:
                    state = _state(step.before.get(happening.group_id))
                    self.counts[Cell(state, "timer", "", happening.kind)] += 1
        elif isinstance(operation, Load):
            self.counts.update(Cell(AWAY, "Load", "", view.state) for view in step.after.values() if view is not None)
        elif isinstance(operation, StreamsBeat):
            self._see_beat(operation, step)

    def _see_beat(self, beat: StreamsBeat, step: StreamsStep) -> None:
        answer = step.answers[0]
        if not step.was_loaded:
            self.counts[Cell(AWAY, "StreamsBeat", "anybody", str(answer.error_code))] += 1
            return
        before, after = step.before.get(beat.group_id), step.after.get(beat.group_id)
        outcome = str(answer.error_code)
        if not answer.error_code and before is not None and after is not None:
            outcome += ", new epoch" if after.group_epoch > before.group_epoch else ", same epoch"
            outcome += ", new target" if after.assignment_epoch > before.assignment_epoch else ""
        state = _state(before)
        self.counts[Cell(state, "StreamsBeat", _who(beat, before), outcome)] += 1
        for status in answer.statuses or ():
            self.counts[Cell(state, "status", "", str(status))] += 1
        self._see_member(beat, before, after)

    def _see_member(self, beat: StreamsBeat, before: StreamsView | None, after: StreamsView | None) -> None:
        states = [
            next((one.state for one in view.members if one.member_id == beat.member_id), ABSENT)
            for view in (before, after)
            if view is not None
        ]
        if len(states) == 2 and ABSENT not in states:
            owned = "no report" if beat.active is None else "report"
            self.counts[Cell(states[0], "member", owned, states[1])] += 1


def _state(view: StreamsView | None) -> str:
    return ABSENT if view is None else view.state


def _who(beat: StreamsBeat, view: StreamsView | None) -> str:
    member = next((one for one in view.members if one.member_id == beat.member_id), None) if view is not None else None
    kind = "stranger" if member is None else "member"
    if member is not None and member.epoch < 0:
        kind = "member that is away"
    if beat.instance_id is not None:
        kind = f"static {kind}"
    if beat.member_epoch <= 0:
        what = {0: "joins", -1: "leaves", -2: "leaves for a while"}.get(beat.member_epoch, "sends nonsense")
        return f"{kind} {what}"
    if member is None or beat.member_epoch == member.epoch:
        return kind
    return f"{kind}, previous epoch" if beat.member_epoch == member.previous_epoch else f"{kind}, other epoch"


def listed() -> list[Listed]:
    """The committed list."""
    return read(CELLS_FILE)


def judge(counts: Counter[Cell], version: str) -> Verdict:
    """Hold counts against the list."""
    return judged(listed(), counts, version)
