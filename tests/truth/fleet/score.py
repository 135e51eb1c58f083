"""The comparison: what the observer said against what the coordinator did, group by group.

A *problem* is a disagreement that the goals forbid; it names group, instant and both sides, so that a reader can find
it in the log. What the evidence could not show by the end of the log is not judged. Instants in ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.stories import named, standing
from tests.truth.fleet import between, claimed_states, foretold, honesty, ledgers, ties
from tests.truth.fleet.bounds import off_ms
from tests.truth.fleet.damage import Damage
from tests.truth.fleet.honesty import JUDGED
from tests.truth.fleet.late import USUAL_MS
from tests.truth.fleet.run import Run
from tests.truth.fleet.seen import Seen
from tests.truth.fleet.ties import TIMER_MS
from tests.truth.fleet.truth import Life, TrueRebalance, Truth
from tests.truth.fleet.world import START_MS

HANDLED_MS = 12
"""An instant at which a request took effect: the coordinator's own queue is not in the line."""

END_MARGIN_MS = 1_500.0
"""What happens that late is not judged: its lines may be missing."""

TIMED = ("session_expired", "rebalance_timeout", "sync_timeout", "join_timeout")


@dataclass
class Score:
    """Counts by name, errors in ms by name, and problems."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: dict[str, list[int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def count(self, name: str, more: int = 1) -> None:
        """Add to a count."""
        self.counts[name] += more

    def error(self, name: str, error_ms: int) -> None:
        """Note how far an instant was off."""
        self.errors.setdefault(name, []).append(error_ms)

    def problem(self, kind: str, group_id: str, at_ms: float, text: str) -> None:
        """Note a disagreement."""
        self.counts[f"problem: {kind}"] += 1
        self.problems.append(f"{kind}: {group_id} at {at_ms - START_MS:,.0f}: {text}")

    def add(self, other: Score, run: str) -> None:
        """Take over what another run gave; `run` says which, before its problems."""
        self.counts += other.counts
        for name, errors in other.errors.items():
            self.errors.setdefault(name, []).extend(errors)
        self.problems += [f"{run}: {text}" for text in other.problems]


def score(run: Run, seen: Seen) -> Score:
    """Everything that is compared."""
    result = Score()
    result.count("groups", len(run.truths))
    result.count("lines", sum(len(lines) for lines in run.logs))
    result.count("divergences", seen.divergences)
    tables = {name: by_group(named(name, rows)) for name, rows in seen.rows.items() if name != "progress"}
    stood = {name: by_group(standing(name, seen.rows[name])) for name in ("members", "rebalances", "predictions")}
    # A collector that sleeps at the end has not read the last lines.
    read_to_ms = min([run.ended_at_ms, *(begin for begin, end in run.sleeps if end > run.ended_at_ms)])
    for group_id, truth in run.truths.items():
        until_ms = read_to_ms - END_MARGIN_MS
        of_group = {name: rows.get(group_id, []) for name, rows in tables.items()}
        doubts = claimed_states.doubts(of_group["health"])
        # A log that was silent because the machine slept looks like that of a broker that was down.
        silent = run.scenario.restarts or run.scenario.outages or run.scenario.quiet or run.scenario.asleep
        evidence = Evidence(seen.damage, seen.named, doubts, run.scenario.plain, silent, seen.apart_ms)
        _lives(result, truth, stood["members"].get(group_id, []), until_ms, evidence)
        ledgers.compare(result, truth, stood["rebalances"].get(group_id, []), until_ms, evidence)
        claimed_states.compare(result, truth, of_group["transitions"], until_ms, seen.damage)
        between.compare(result, truth, of_group["transitions"], until_ms, seen.apart_ms)
        honesty.compare(result, truth, of_group, until_ms, requests=run.scenario.requests)
        honesty.compare_last(result, truth, {name: rows.get(group_id, []) for name, rows in stood.items()}, until_ms)
        foretold.compare(
            result, truth, stood["predictions"].get(group_id, []), of_group["predictions"], until_ms, seen.damage
        )
    return result


def by_group(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by their group."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["group_id"], []).append(row)
    return found


@dataclass
class Evidence:
    """What the observer was shown of a group, and of whom it said at last that it does not know."""

    damage: Damage
    named: set[str]
    doubts: dict[str, tuple[int, str]]
    """Member -> (instant, status) of its last row of `health`, if that says unknown or overdue."""
    complete: bool = True
    """No broker moved or died, and nothing is lost."""
    died: bool = False
    """A broker died, with what it had not logged, or one that nobody asked anything may have."""
    apart_ms: float = 0.0
    """How far the clock by which bounds are said is from the brokers'."""

    @property
    def blind(self) -> bool:
        """Whether evidence is lost."""
        return self.died or self.damage.begins_at_ms > 0 or bool(self.damage.told or self.damage.thin)

    def missed(self, life: Life, row: dict[str, Any] | None) -> str:
        """What a missed end is: a name of a count where the evidence is absent, empty where it is a mistake."""
        if row is None:
            return "" if life.member_id in self.named else "never in the log"
        at_ms, status = self.doubts.get(life.member_id, (-1, ""))
        return f"said to be {status}" if self.blind and status and at_ms >= life.ended_at_ms else ""

    def hides(self, one: TrueRebalance) -> bool:
        """Whether whoever began a rebalance is said to be unknown at last: the group that it left Empty is, too."""
        at_ms, status = self.doubts.get(one.member_id, (-1, ""))
        return self.blind and bool(status) and at_ms >= one.started_at_ms


def _settled(truth: Truth, at_ms: int, until_ms: float) -> bool:
    """Whether what happened then can be known: the join phase it belongs to has ended."""
    for one in truth.rebalances:
        if one.started_at_ms <= at_ms and (one.joined_at_ms < 0 or at_ms <= one.joined_at_ms):
            return 0 <= one.joined_at_ms <= until_ms
    return at_ms <= until_ms


def _lives(result: Score, truth: Truth, rows: list[dict[str, Any]], until_ms: float, evidence: Evidence) -> None:
    said = {row["member_id"]: row for row in sorted(rows, key=lambda row: row["joined_at_ms"])}
    lives = {life.member_id: life for life in truth.lives}
    for life in lives.values():
        row = said.get(life.member_id)
        shown_to_ms = until_ms - truth.shown_after_ms(life.cause, life.ended_at_ms)
        if life.ended_at_ms >= 0 and _settled(truth, life.ended_at_ms, shown_to_ms):
            _one_end(result, truth, life, row, evidence)
        if row is not None and life.ended_at_ms < 0 and row["ended_at_ms"] is not None:
            _one_that_is_there(result, truth, life, row, evidence)
    takers = {seat.taker_id for seat in truth.lent}
    for member_id, row in said.items():
        if member_id in takers and member_id not in lives:
            result.count("seats that could not be given away for good, seen meanwhile")
        elif member_id not in lives:
            result.problem("invented member", truth.group_id, row["joined_at_ms"], member_id)


def _one_that_is_there(result: Score, truth: Truth, life: Life, row: dict[str, Any], evidence: Evidence) -> None:
    """A member is said to have ended. It had, if a load that nobody has seen since took it back, or if it came back
    under its id where evidence is lost; where brokers move or evidence is lost, what is provisional may be wrong."""
    was_so = any(
        one.cause == row["end_cause"] and abs(one.ended_at_ms - row["ended_at_ms"]) <= HANDLED_MS
        for one in truth.lives
        if one.member_id == life.member_id and one is not life
    )
    if was_so and life.joined_at_ms in truth.loads:
        result.count("ends undone by a load that nobody saw")
    elif was_so and evidence.damage.dark(life.joined_at_ms, life.joined_at_ms):
        result.count("ends of members that came back where nothing is seen")
    elif not evidence.complete and row["certainty"] not in JUDGED:
        result.count("ends said provisionally of members that are there")
    else:
        text = f"{life.member_id} said to have ended by {row['end_cause']}, {row['certainty']}; it is a member"
        result.problem("invented end", truth.group_id, row["ended_at_ms"], text)


def _of_one_instant(truth: Truth, life: Life, row: dict[str, Any], error_ms: int) -> bool:
    """Whether the timer of the cause that is said was due when it is said to have fired, by the coordinator itself, and
    another one of another kind fired then: which came first is lost in the stamps, and with it what became of those who
    wait for the second."""
    at_ms = row["ended_at_ms"]
    if "static_replaced" in (row["end_cause"], life.cause):
        return ties.seat_taken_as_it_ended(truth, life.member_id)
    if not ties.was_due(truth, life.member_id, row["end_cause"], at_ms):
        return False
    others = (one for one in truth.lives if one is not life and one.cause in TIMED and one.cause != row["end_cause"])
    tied = any(abs(off_ms(at_ms, row["at_bound_ms"], one.ended_at_ms)) <= TIMER_MS for one in others)
    return abs(error_ms) <= TIMER_MS + 1 or tied


def _one_end(result: Score, truth: Truth, life: Life, row: dict[str, Any] | None, evidence: Evidence) -> None:
    timed = life.cause in TIMED
    kind = "evictions" if timed else "other ends"
    open_ended = row is None or row["ended_at_ms"] is None
    absent = evidence.missed(life, row) if open_ended else ""
    if absent == "never in the log":
        result.count(f"{kind} never in the log")
        return
    result.count(kind)
    if absent:
        result.count(f"{kind}: {absent}")
        return
    if row is None or row["ended_at_ms"] is None:
        text = f"{life.member_id}: {life.cause}; {'never seen' if row is None else 'still a member'}"
        result.problem("missed end", truth.group_id, life.ended_at_ms, text)
        return
    said = row["end_cause"]
    error_ms = off_ms(row["ended_at_ms"], row["at_bound_ms"], life.ended_at_ms)
    if said == "unknown":
        result.count(f"{kind}: cause unknown")
        result.count(f"cause unknown: {life.cause}")
        between.compare_end(result, truth, life, row, kind, evidence.apart_ms)
        return
    if said != life.cause:
        name = "wrong cause" if timed or said in TIMED else "wrong cause of a leave"
        text = f"{life.member_id}: {life.cause}, said {said} ({row['certainty']}), {error_ms:+d} ms"
        if row["certainty"] not in JUDGED and _of_one_instant(truth, life, row, error_ms):
            result.count("causes of one instant, said provisionally")
        elif name == "wrong cause" or row["certainty"] == "exact":
            result.problem(name, truth.group_id, life.ended_at_ms, text)
        result.count(f"{kind}: {life.cause} said {said}")
    result.count(f"{kind}: found")
    result.error("eviction instant" if timed else "other end instant", row["ended_at_ms"] - life.ended_at_ms)
    if timed:
        result.count("evictions: instant within its bound", abs(error_ms) <= TIMER_MS)
        late_ms = life.ended_at_ms - life.due_ms
        if life.due_ms >= 0 and late_ms <= USUAL_MS:
            result.error("eviction instant, timer in time", row["ended_at_ms"] - life.ended_at_ms)
    if abs(error_ms) > (TIMER_MS if timed else HANDLED_MS):
        text = f"{life.member_id}: {life.cause} ({row['certainty']}) {error_ms:+d} ms off"
        result.problem("instant of an end", truth.group_id, life.ended_at_ms, text)
