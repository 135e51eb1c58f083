"""Counts what the histories have reached: state, operation, who asked, outcome; late answers; what timers did.

The universe of cells is written down here, so that a cell that was never reached is seen. Those that cannot be reached
are data, with their reasons: `unreachable.json`. A cell on that list that is reached after all is an error as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import View
from kardia.coordinator.operations import Load, Unload
from kardia.kafka.sessions import coordinator_of
from tests.truth.lockstep import Step
from tests.truth.old_outcomes import outcomes
from tests.truth.oracle.settings import OLD_VERSIONS

UNREACHABLE_FILE = Path(__file__).with_name("unreachable.json")

ABSENT, AWAY, NAMELESS = "no group", "not coordinator", "no group id"
STATES = (ABSENT, "Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
WAITS = "waits"

_KNOWN = ("leader", "member")
WHO: dict[str, tuple[str, ...]] = {
    "Join": ("new", "new static", "returning static", "pending", *_KNOWN, "stranger"),
    "Sync": (*_KNOWN, "pending", "stranger"),
    "Heartbeat": (*_KNOWN, "pending", "stranger"),
    "Leave": (*_KNOWN, "pending", "stranger", "batch", "nobody"),
    "Commit": (*_KNOWN, "pending", "stranger", "nobody"),
    "TxnCommit": (*_KNOWN, "pending", "stranger", "nobody"),
    "TxnEnd": ("commit", "abort"),
    "OffsetDelete": ("administrator",),
    "DeleteGroups": ("administrator", "batch"),
}
"""Who can ask. "nobody": neither member id, instance id nor generation, as a consumer without a group, or a LeaveGroup
that names no member."""

OUTCOMES: dict[str, tuple[str, ...]] = {
    "Join": (WAITS, "0", "-1", "23", "25", "26", "79", "81", "82"),
    "Sync": (WAITS, "0", "22", "23", "25", "27", "82"),
    "Heartbeat": ("0", "22", "25", "27", "82"),
    "Leave": ("0", "25", "82"),
    "Commit": ("0", "12", "22", "25", "27", "69", "82"),
    "TxnCommit": ("0", "22", "25", "82"),
    "TxnEnd": ("0",),
    "OffsetDelete": ("0", "68", "69", "86"),
    "DeleteGroups": ("0", "68", "69"),
}
"""Answers at once, and "waits". Codes 16 and 24 depend on nothing else and are counted apart. OffsetDelete and
DeleteGroups are counted once for each error among their parts, the end of a transaction once for each group of which
something was open in it, and as of no group where nothing was."""

LATE: dict[str, tuple[str, ...]] = {"Join": ("0", "16", "25", "82"), "Sync": ("0", "16", "27", "82")}
"""Answers to a JoinGroup or SyncGroup that waited."""

TIMED = (
    "pending_expired",
    "session_expired",
    "join_timeout",
    "rebalance_timeout",
    "sync_timeout",
    "nobody_rejoined",
    "generation",
    "offsets_expired",
    "died",
)
"""What a timer can do to a group, by the model's names."""


LOADED = ("Empty", "Stable", "PreparingRebalance")
"""What a load makes of a group; the last when it is over group.max.size."""


class Cell(NamedTuple):
    """One kind of situation."""

    state: str
    operation: str
    who: str
    outcome: str


def universe() -> list[Cell]:
    """Every cell there could be: members only where there are some, pending ids only where there is a group."""
    cells = []
    for state in STATES:
        absent_roles: set[str] = set()
        if state in (ABSENT, "Empty"):
            absent_roles |= {*_KNOWN, "returning static"}
        if state == ABSENT:
            absent_roles |= {"pending"}
        for operation, roles in WHO.items():
            cells += [
                Cell(state, operation, who, outcome)
                for who in roles
                if who not in absent_roles
                for outcome in OUTCOMES[operation]
            ]
    cells += [
        Cell(AWAY, operation, "anybody", outcome) for operation in WHO for outcome in ("16", *OUTCOMES[operation])
    ]
    cells += [Cell(NAMELESS, operation, "anybody", "24") for operation in WHO]
    waiting = ("PreparingRebalance", "CompletingRebalance")
    cells += [
        Cell(state, "late answer", kind, code) for state in waiting for kind, codes in LATE.items() for code in codes
    ]
    cells += [Cell(state, "timer", "", kind) for state in STATES[1:] for kind in TIMED]
    cells += [Cell(AWAY, "Load", "", state) for state in LOADED]
    return cells


class Coverage:
    """Counts cells. `see` is given every step."""

    def __init__(self) -> None:
        """Nothing seen."""
        self.counts: Counter[Cell] = Counter()
        self._asked: dict[int, str] = {}

    def see(self, step: Step) -> None:
        """Count one step."""
        operation = step.operation
        if operation is None:
            self._see_timers(step)
        self._see_late_answers(step)
        if isinstance(operation, Load):
            self.counts.update(Cell(AWAY, "Load", "", view.state) for view in step.after.values() if view is not None)
        if operation is None or isinstance(operation, Load | Unload | ops.Stored):
            return
        own = next((answer for answer in step.answers if answer.number == operation.number), None)
        kind = type(operation).__name__
        if isinstance(operation, ops.TxnEnd | ops.OffsetDelete | ops.DeleteGroups):
            assert own is not None
            self.counts.update(_of_parts(operation, own, step))
            return
        if own is None:
            self._asked[operation.number] = f"{kind} {operation.group_id}"
        outcome = WAITS if own is None else str(own.error_code)
        if outcome == "24":
            cell = Cell(NAMELESS, kind, "anybody", outcome)
        elif not step.was_loaded:
            cell = Cell(AWAY, kind, "anybody", outcome)
        else:
            view = step.before.get(operation.group_id)
            if isinstance(operation, ops.Leave) and own is not None and own.error_code == 0 and len(own.left) == 1:
                outcome = str(own.left[0][2])
            cell = Cell(_state(view), kind, _who(operation, view), outcome)
        self.counts[cell] += 1

    def _see_late_answers(self, step: Step) -> None:
        """Answers to requests of before, which waited."""
        for answer in step.answers:
            if step.operation is not None and answer.number == step.operation.number:
                continue
            kind, group_id = self._waiting(answer)
            self.counts[Cell(_state(step.before.get(group_id)), "late answer", kind, str(answer.error_code))] += 1

    def _see_timers(self, step: Step) -> None:
        """What timers did, each in the state that it found: several of one ms are one step."""
        found: dict[str, str] = {}
        left: dict[str, str] = {}
        for happening in step.happenings:
            group_id, kind = happening.group_id, happening.kind
            if kind == "state":
                left[group_id], _, after = happening.detail.partition(":")[0].partition(" to ")
                found[group_id] = after
            elif kind in TIMED:
                state = found.get(group_id) or _state(step.before.get(group_id))
                # A generation is told after the change of state that it comes with.
                self.counts[Cell(left[group_id] if kind == "generation" else state, "timer", "", kind)] += 1

    def _waiting(self, answer: ops.Answer) -> tuple[str, str]:
        kind, _, group_id = self._asked.get(answer.number, "? ").partition(" ")
        return kind, group_id


_OfAMember = ops.Join | ops.Sync | ops.Heartbeat | ops.Leave | ops.Commit | ops.TxnCommit


def _of_parts(operation: ops.TxnEnd | ops.OffsetDelete | ops.DeleteGroups, own: ops.Answer, step: Step) -> set[Cell]:
    """Cells of what has several answers in one, or is none of a group."""
    kind, code = type(operation).__name__, str(own.error_code)
    if isinstance(operation, ops.TxnEnd):
        ended = {one.group_id for one in step.happenings if one.kind.startswith("transaction_")}
        who = "commit" if operation.commits else "abort"
        return {Cell(_state(step.before.get(one)), kind, who, code) for one in ended} or {Cell(ABSENT, kind, who, code)}
    if not step.was_loaded and code != "24":
        return {Cell(AWAY, kind, "anybody", error) for error in {code, *(str(one) for _, one in own.parts)}}
    if isinstance(operation, ops.DeleteGroups):
        who = "administrator" if len(operation.group_ids) == 1 else "batch"
        return {Cell(_state(step.before.get(one)), kind, who, str(error)) for one, error in own.parts}
    if code == "24":
        return {Cell(NAMELESS, kind, "anybody", code)}
    state = _state(step.before.get(operation.group_id))
    return {Cell(state, kind, "administrator", error) for error in {str(one) for _, one in own.parts} or {code}}


def _state(view: View | None) -> str:
    return ABSENT if view is None else view.state


def _who(operation: _OfAMember, view: View | None) -> str:
    if isinstance(operation, ops.Leave):
        if len(operation.members) != 1:
            return "batch" if operation.members else "nobody"
        member_id, instance_id = operation.members[0].member_id, operation.members[0].group_instance_id
    else:
        member_id, instance_id = operation.member_id, operation.group_instance_id
    members = view.members if view is not None else ()
    if not member_id and instance_id is not None:
        held = next((one for one in members if one.group_instance_id == instance_id), None)
        if isinstance(operation, ops.Join):
            return "new static" if held is None else "returning static"
        if isinstance(operation, ops.Leave) and held is not None:
            member_id = held.member_id
    if isinstance(operation, ops.Join) and not member_id:
        return "new"
    if isinstance(operation, ops.Commit | ops.TxnCommit) and not member_id and operation.generation_id < 0:
        return "nobody" if instance_id is None else "stranger"
    if view is not None:
        if any(member_id == one for one, _ in view.pending):
            return "pending"
        if any(member_id == one.member_id for one in members):
            return "leader" if member_id == view.leader else "member"
    return "stranger"


class Rule(NamedTuple):
    """Cells that cannot be reached, and why. An empty list stands for all."""

    reason: str
    states: Sequence[str] = ()
    operations: Sequence[str] = ()
    who: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    coordinators: Sequence[str] = ()

    def covers(self, cell: Cell, version: str) -> bool:
        """Whether the cell is one of these."""
        pairs = zip(cell, (self.states, self.operations, self.who, self.outcomes), strict=True)
        return all(not wanted or value in wanted for value, wanted in pairs) and (
            not self.coordinators or coordinator_of(version) in self.coordinators
        )


def rules() -> list[Rule]:
    """The committed list."""
    return [Rule(**entry) for entry in json.loads(UNREACHABLE_FILE.read_text(encoding="utf-8"))]


class Verdict(NamedTuple):
    """Coverage against the list."""

    reached: int
    unreachable: int
    missing: Sequence[Cell]
    """Neither reached nor on the list."""
    impossible: Sequence[Cell]
    """Reached although the list says that it cannot be, or not in the universe at all."""


def judge(counts: Counter[Cell], version: str, listed: Iterable[Rule] | None = None) -> Verdict:
    """Hold counts against the universe and the list; of the older releases, against what must be met in any state."""
    if version in OLD_VERSIONS:
        met = {(cell.operation, cell.outcome) for cell in counts if counts[cell]}
        never = [Cell("any state", operation, "", one) for operation, one in sorted(outcomes(version) - met)]
        return Verdict(sum(count > 0 for count in counts.values()), 0, never, ())
    known = list(rules() if listed is None else listed)
    cells = universe()
    barred = {cell for cell in cells if any(rule.covers(cell, version) for rule in known)}
    reached = {cell for cell in counts if counts[cell]}
    missing = [cell for cell in cells if cell not in reached and cell not in barred]
    impossible = sorted(cell for cell in reached if cell in barred or cell not in set(cells))
    return Verdict(len(reached), len(barred), missing, impossible)
