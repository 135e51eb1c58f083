"""Holds what Kardia said in a night against the broker's own log. Pure: values in, findings out.

Asked is: whatever was said to be exact at any time, even if it was corrected later, is in server.log, at that instant
within its bound; what stands at the end is not invented, not doubled, and lacks nothing that server.log has; nothing is
left open or provisional for long; and who is a member at the end is a member for the broker. `unknown` is no fault.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from demo import server_log
from demo.server_log import Fact
from demo.tables import Record, standing
from demo.verdict import END_OF, TRIGGERS, facts_that_end_by
from kardia.certainty import stands
from kardia.tables import TABLES

WITHIN_MS = 20
"""Both logs have whole milliseconds, and the broker writes its sentence a little after it has decided."""

FIRST_WITHIN_MS = 250
"""Of the first rebalance of a group: a broker that is seconds old loads its classes between deciding and logging."""

REVERTED_MS = 10_000
"""A write of the coordinator is over after `offsets.commit.timeout.ms`, 5 s by default; then the seat is given back."""

INFERRED_WITHIN_MS = 10_000
"""What is only inferred must have happened; its instant may be off."""

STALL_WINDOW_MS = 1_500
"""A stall of the machine so near to an instant explains that a sentence was written late."""

NOT_SURE_SHARE = 0.1
"""Of what stands of a table at the end so much may be provisional: an answer that is still awaited never comes where
its client or its broker died."""

OPEN_FOR_MS = 90_000
"""How long something may stay open or provisional after its time: longer than every timeout of a night."""

_FENCED = "fenced"
"""End cause of who is refused because another process took its seat: server.log names it when that one comes."""

_CLIENT_WORDS = "; client reason: "
_MEMBER_ID = re.compile(r"[A-Za-z0-9._-]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

UNTRUE, INVENTED, DOUBLED, MISSED, OPEN = "untrue", "invented", "doubled", "missed", "open"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    at_ms: int
    group_id: str
    what: str
    told: str


@dataclass(frozen=True)
class Night:
    """Everything that is compared."""

    facts: Sequence[Fact]
    """What server.log says."""
    ever: Mapping[str, Sequence[Record]]
    """Table -> every row that was ever written, in the order of writing."""
    until_ms: int
    """What happened later does not count."""
    members_now: Mapping[str, set[str]] = field(default_factory=dict)
    """Group -> its members at `until_ms`, as the broker itself says."""
    member_ids: frozenset[str] | None = None
    """Every member id that the broker ever wrote down; None where that is not known."""
    was_given: Callable[[str], bool] = lambda _member_id: True
    """Whether a member id stands in a request log, so that a client may have got it. One whose JoinGroup was answered
    by an error has an id that only the broker knows, and joins again."""
    stalls: Sequence[tuple[int, float]] = ()
    """When this machine kept a program waiting, and for how many ms."""
    by_requests_alone: bool = False
    """Kardia did not read server.log. What a broker did that stood still or fell then stays provisional for ever: no
    request tells it."""
    gaps: Sequence[tuple[int, int]] = ()
    """Of what Kardia said that it knows nothing; that they are no wider than what was lost is asked by `losses`. What
    happened in one need not be known."""

    def was_blind(self, at_ms: int) -> bool:
        """Whether an instant lies in a gap."""
        return any(first - WITHIN_MS <= at_ms <= last + WITHIN_MS for first, last in self.gaps)


@dataclass(frozen=True)
class Comparison:
    """What came of it."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]
    errors_ms: tuple[int, ...]
    """How far exact instants were from server.log, their bounds taken off."""

    def and_also(self, findings: Iterable[Finding], counts: Mapping[str, int]) -> Comparison:
        """This and what else was compared."""
        both = sorted((*self.findings, *findings), key=lambda one: (one.at_ms, one.told))
        return replace(self, findings=tuple(both), counts={**self.counts, **counts})


def compare(night: Night) -> Comparison:
    """All findings by instant."""
    judge = _Judge(night)
    found = []
    for one in judge.findings():
        if one.what == MISSED and night.was_blind(one.at_ms):
            judge.counts["missed in a gap that was told"] += 1
        else:
            found.append(one)
    return Comparison(
        tuple(sorted(found, key=lambda one: (one.at_ms, one.told))), dict(judge.counts), tuple(judge.errors_ms)
    )


class _Judge:
    def __init__(self, night: Night) -> None:
        self._night = night
        self.counts: Counter[str] = Counter()
        self.errors_ms: list[int] = []
        self._unsure: dict[str, list[Finding]] = {"members": [], "rebalances": []}
        self._ends: dict[tuple[str, str, str], list[int]] = {}
        self._starts: dict[str, list[Fact]] = {}
        self._sizes: dict[tuple[str, int], list[Fact]] = {}
        self._given_back: dict[tuple[str, str], list[int]] = {}
        """(group, member) -> when it had its seat again, that another one had taken."""
        for fact in night.facts:
            if fact.at_ms > night.until_ms:
                continue
            self.counts[f"server.log: {fact.what}"] += 1
            if fact.member_id and fact.what in END_OF:
                self._ends.setdefault((fact.what, fact.group_id, fact.member_id), []).append(fact.at_ms)
            elif fact.what == server_log.STATIC_REVERTED:
                self._given_back.setdefault((fact.group_id, fact.member_id), []).append(fact.at_ms)
            elif fact.what == server_log.REBALANCE_STARTED:
                self._starts.setdefault(fact.group_id, []).append(fact)
            elif fact.what in (server_log.GENERATION_STARTED, server_log.GROUP_EMPTY):
                self._sizes.setdefault((fact.group_id, fact.generation), []).append(fact)

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong."""
        yield from self._ever("members", "ended_at_ms", self._end_fault)
        yield from self._ever("rebalances", "started_at_ms", self._start_fault)
        yield from self._lives()
        yield from self._rebalances()
        yield from self._predictions()
        yield from self._now()
        for table, column in (("members", "joined_at_ms"), ("rebalances", "started_at_ms")):
            self.counts[f"still provisional: {table}"] = len(self._unsure[table])
            if self._night.by_requests_alone:
                continue
            if len(self._unsure[table]) > NOT_SURE_SHARE * len(self._standing(table, column)):
                yield from self._unsure[table]

    # What was ever said for sure.

    def _ever(self, table: str, column: str, fault_of: Callable[[Record], str]) -> Iterator[Finding]:
        """Untruths that were said to be exact; each once, however often it was repeated."""
        told: set[tuple[Any, ...]] = set()
        for row in self._rows(table, column):
            if row["certainty"] != "exact" or row.get("withdrawn"):
                continue
            fault = fault_of(row)
            at = (*(row[name] for name in TABLES[table].key), row[column], fault)
            if at not in told:
                told.add(at)
                self.counts[f"said to be exact: {table}"] += 1
                if fault:
                    yield Finding(row[column], row["group_id"], UNTRUE, f"said to be exact: {fault}")

    def _end_fault(self, row: Record) -> str:
        """What is wrong with the end of a life."""
        if not _ending(row):
            return ""
        true = self._ends_of(row)
        return self._instant_fault(
            f"{_short(row['member_id'])} ended by {row['end_cause']}", row["ended_at_ms"], row["at_bound_ms"], true
        )

    def _ends_of(self, row: Record) -> list[int]:
        """Instants at which server.log has an end of this member that agrees with the cause."""
        keys = ((what, row["group_id"], row["member_id"]) for what in _ending(row))
        return sorted(at_ms for key in keys for at_ms in self._ends.get(key, ()))

    def _start_fault(self, row: Record) -> str:
        """What is wrong with the begin of a rebalance, its trigger and its size."""
        who = f"rebalance of {row['group_id']} from generation {row['generation_before']} ({row['trigger']})"
        facts = [one for one in self._starts.get(row["group_id"], ()) if one.generation == row["generation_before"]]
        allowed_ms = WITHIN_MS if row["generation_before"] else FIRST_WITHIN_MS
        true = [one.at_ms for one in facts]
        fault = self._instant_fault(who, row["started_at_ms"], row["at_bound_ms"], true, allowed_ms)
        if fault:
            return fault
        fact = min(facts, key=lambda one: abs(one.at_ms - row["started_at_ms"]))
        for words, triggers in TRIGGERS:
            if words not in fact.reason.partition(_CLIENT_WORDS)[0]:
                continue
            named = _MEMBER_ID.findall(fact.reason.partition(_CLIENT_WORDS)[0])
            if row["trigger"] not in triggers or (named and row["trigger_member_id"] not in named):
                member = _short(row["trigger_member_id"] or "nobody")
                return f"{who}, {member}: the broker says {fact.reason[:90]!r}"
            break  # words of a later row may be a part of these
        # One generation may have begun twice, where a coordinator that was none any more could not store it.
        sizes = [
            0 if one.what == server_log.GROUP_EMPTY else one.members
            for one in self._sizes.get((row["group_id"], row["generation_after"] or -1), ())
        ]
        if sizes and row["members_after"] is not None and row["members_after"] not in sizes:
            return f"{who}: {row['members_after']} members after it, the broker says {sizes[0]}"
        return ""

    def _instant_fault(
        self, who: str, at_ms: int, bound_ms: int | None, true: Sequence[int], allowed_ms: int = WITHIN_MS
    ) -> str:
        if not true:
            return f"{who} at {at_ms}: server.log has none"
        off = min((_outside(at_ms, bound_ms, one) for one in true), key=abs)
        self.errors_ms.append(abs(off))
        if abs(off) > allowed_ms + self._stalled_ms(at_ms):
            return f"{who} at {at_ms}, bound {bound_ms}: server.log has it {off:+d} ms outside"
        return ""

    def _stalled_ms(self, at_ms: int) -> float:
        """For how long the machine stood still around an instant: so much further it may be off."""
        stalls = self._night.stalls
        first = bisect_left(stalls, (at_ms - STALL_WINDOW_MS, 0.0))
        last = bisect_right(stalls, (at_ms + STALL_WINDOW_MS, float("inf")))
        return sum(stall_ms for _, stall_ms in stalls[first:last])

    # What stands at the end.

    def _lives(self) -> Iterator[Finding]:
        rows = self._standing("members", "joined_at_ms")
        known = self._night.member_ids
        by_member: dict[tuple[str, str], list[Record]] = {}
        for row in rows:
            by_member.setdefault((row["group_id"], row["member_id"]), []).append(row)
            self.counts[f"lives: {row['end_cause'] or 'open'} ({row['certainty']})"] += 1
            # Of a static member that takes the place of another the broker writes the old id alone.
            if known is not None and row["member_id"] not in known and not row["group_instance_id"]:
                told = f"{_short(row['member_id'])}: the broker never wrote of such a member"
                yield Finding(row["joined_at_ms"], row["group_id"], INVENTED, told)
            yield from self._standing_end(row)
        for (group_id, member_id), lives in by_member.items():
            lives.sort(key=lambda row: int(row["joined_at_ms"]))
            for one, other in pairwise(lives):
                if one["ended_at_ms"] is None or one["ended_at_ms"] > other["joined_at_ms"]:
                    told = f"{_short(member_id)} has two lives at once, from {one['joined_at_ms']} and from "
                    yield Finding(other["joined_at_ms"], group_id, DOUBLED, told + str(other["joined_at_ms"]))
        yield from self._missed_ends(by_member)

    def _standing_end(self, row: Record) -> Iterator[Finding]:
        at_ms = row["ended_at_ms"]
        if at_ms is None or at_ms > self._night.until_ms:
            return
        who = f"{_short(row['member_id'])} ended by {row['end_cause']}"
        if _ending(row) and row["certainty"] == "inferred":
            true = self._ends_of(row)
            if not any(abs(_outside(at_ms, row["at_bound_ms"], one)) <= INFERRED_WITHIN_MS for one in true):
                yield Finding(at_ms, row["group_id"], INVENTED, f"inferred, and not in server.log: {who}")
        elif row["certainty"] == "provisional" and at_ms < self._night.until_ms - OPEN_FOR_MS:
            self._unsure["members"].append(Finding(at_ms, row["group_id"], OPEN, f"still provisional: {who}"))

    def _missed_ends(self, by_member: Mapping[tuple[str, str], Sequence[Record]]) -> Iterator[Finding]:
        """Evictions of which the tables say nothing, or something else."""
        for (what, group_id, member_id), instants in self._ends.items():
            lives = by_member.get((group_id, member_id), ())
            for at_ms in instants:
                near = [row for row in lives if row["ended_at_ms"] is not None]
                given_back = self._given_back.get((group_id, member_id), ())
                if what == server_log.STATIC_REPLACED and any(0 <= at - at_ms <= REVERTED_MS for at in given_back):
                    self.counts["seats that were given back"] += 1
                elif not lives and what == server_log.STATIC_REPLACED and not self._night.was_given(member_id):
                    self.counts["replaced ids that no client was given"] += 1
                elif not lives:
                    yield Finding(at_ms, group_id, MISSED, f"{what} of {_short(member_id)}: it is in no table")
                elif not near:
                    yield Finding(at_ms, group_id, MISSED, f"{what} of {_short(member_id)}: its life has no end")
                elif not any(_agrees(row, what, at_ms) for row in near):
                    said = ", ".join(f"{row['end_cause']} ({row['certainty']})" for row in near)
                    yield Finding(at_ms, group_id, MISSED, f"{what} of {_short(member_id)}: the tables say {said}")

    def _rebalances(self) -> Iterator[Finding]:
        taken: dict[int, Record] = {}
        for row in self._standing("rebalances", "started_at_ms"):
            if row["withdrawn"]:
                self.counts["rebalances: withdrawn"] += 1
                continue
            self.counts[f"rebalances: {row['trigger']} ({row['certainty']})"] += 1
            fact = self._start_of(row)
            who = f"rebalance of {row['group_id']} from generation {row['generation_before']} ({row['trigger']})"
            if fact is None:
                if stands(row["certainty"]):
                    told = f"{row['certainty']}, and not in server.log: {who}"
                    yield Finding(row["started_at_ms"], row["group_id"], INVENTED, told)
            elif id(fact) in taken:
                other = taken[id(fact)]["started_at_ms"]
                told = f"{who} stands twice, from {other} and from {row['started_at_ms']}"
                yield Finding(row["started_at_ms"], row["group_id"], DOUBLED, told)
            else:
                taken[id(fact)] = row
            long_ago = row["started_at_ms"] < self._night.until_ms - OPEN_FOR_MS
            if long_ago and row["certainty"] == "provisional":
                told = f"still provisional: {who}"
                self._unsure["rebalances"].append(Finding(row["started_at_ms"], row["group_id"], OPEN, told))
            elif long_ago and row["completed_at_ms"] is None and self._lasts(row):
                yield Finding(row["started_at_ms"], row["group_id"], OPEN, f"never completed, it seems: {who}")
        for group_id, facts in self._starts.items():
            for fact in facts:
                if id(fact) not in taken and not self._undone(fact):
                    told = f"rebalance of {group_id} from generation {fact.generation} ({fact.reason[:70]})"
                    yield Finding(fact.at_ms, group_id, MISSED, told)

    def _undone(self, start: Fact) -> bool:
        """Whether the group was loaded before the generation began that this rebalance was to lead to: it was as if
        there had been none, and the tables may say so."""
        sizes = self._sizes.get((start.group_id, start.generation + 1), ())
        begun = [one.at_ms for one in sizes if one.what == server_log.GENERATION_STARTED]
        begun_ms = min((at_ms for at_ms in begun if at_ms >= start.at_ms), default=self._night.until_ms + 1)
        return any(
            fact.what == server_log.LOADED and fact.group_id == start.group_id and start.at_ms <= fact.at_ms < begun_ms
            for fact in self._night.facts
        )

    def _lasts(self, row: Record) -> bool:
        """Whether a rebalance without a completion is said to last: no other began after it, nor was the group loaded,
        which takes back one that was under way."""
        later = [
            one.at_ms for one in self._starts.get(row["group_id"], ()) if one.generation > row["generation_before"]
        ]
        loaded = [
            fact.at_ms
            for fact in self._night.facts
            if fact.what == server_log.LOADED and fact.group_id == row["group_id"]
        ]
        since_ms: int = row["started_at_ms"]
        return row["certainty"] != "unknown" and max(later + loaded, default=0) <= since_ms

    def _start_of(self, row: Record) -> Fact | None:
        """The fact that a rebalance is about: of its group and generation, nearest, and not too far."""
        same = [one for one in self._starts.get(row["group_id"], ()) if one.generation == row["generation_before"]]
        near = min(same, key=lambda one: abs(one.at_ms - row["started_at_ms"]), default=None)
        if near is None or abs(_outside(row["started_at_ms"], row["at_bound_ms"], near.at_ms)) > INFERRED_WITHIN_MS:
            return None
        return near

    def _predictions(self) -> Iterator[Finding]:
        for row in self._standing("predictions", "predicted_at_ms"):
            self.counts[f"predictions: {row['kind']} {row['outcome']}"] += 1
            who = f"{row['kind']} timeout of {_short(row['member_id'])} at {row['deadline_at_ms']}"
            failed = self._ends.get((server_log.MEMBER_FAILED, row["group_id"], row["member_id"]), [])
            left = self._ends.get((server_log.MEMBER_LEFT, row["group_id"], row["member_id"]), [])
            out = self._ends.get((server_log.NOT_JOINED, row["group_id"], row["member_id"]), [])
            at_ms = row["outcome_at_ms"]
            if row["outcome"] == "open" and row["deadline_at_ms"] < self._night.until_ms - OPEN_FOR_MS:
                yield Finding(row["predicted_at_ms"], row["group_id"], OPEN, f"still open: {who}")
            elif row["outcome"] == "came_true":
                true = {"session": failed, "poll": left + failed}.get(row["kind"], out + failed)
                if not any(abs(one - at_ms) <= INFERRED_WITHIN_MS for one in true):
                    told = f"came true at {at_ms}, and not in server.log: {who}"
                    yield Finding(row["predicted_at_ms"], row["group_id"], INVENTED, told)
            elif row["outcome"] == "averted" and row["kind"] == "session":
                late = [one for one in failed if row["predicted_at_ms"] <= one < (at_ms or 0) - WITHIN_MS]
                if late:
                    told = f"averted, says Kardia; server.log has it at {late[0]}: {who}"
                    yield Finding(row["predicted_at_ms"], row["group_id"], UNTRUE, told)

    def _now(self) -> Iterator[Finding]:
        """Who is a member at the end."""
        said: dict[str, set[str]] = {}
        for row in self._standing("members", "joined_at_ms"):
            if row["ended_at_ms"] is None or row["ended_at_ms"] > self._night.until_ms:
                said.setdefault(row["group_id"], set()).add(row["member_id"])
        for group_id, true in self._night.members_now.items():
            for member_id in sorted(true - said.get(group_id, set())):
                told = f"{_short(member_id)} is a member at the end, says the broker, and not in the tables"
                yield Finding(self._night.until_ms, group_id, MISSED, told)
            for member_id in sorted(said.get(group_id, set()) - true):
                told = f"{_short(member_id)} is still a member at the end in the tables, and not for the broker"
                yield Finding(self._night.until_ms, group_id, INVENTED, told)

    def _rows(self, table: str, column: str) -> Iterator[Record]:
        until_ms = self._night.until_ms
        return (row for row in self._night.ever.get(table, ()) if (row[column] or until_ms + 1) <= until_ms)

    def _standing(self, table: str, column: str) -> list[Record]:
        until_ms = self._night.until_ms
        rows: Iterable[Record] = self._night.ever.get(table, ())
        return [row for row in standing(rows, TABLES[table].key) if row[column] <= until_ms]


def _ending(row: Record) -> tuple[str, ...]:
    """Facts of server.log that agree with the cause of an end; none if it has no such line."""
    cause = row["end_cause"] or ""
    return (server_log.STATIC_REPLACED,) if cause == _FENCED else facts_that_end_by(cause)


def _agrees(row: Record, what: str, at_ms: int) -> bool:
    """Whether an end says what the broker says, or says that it does not know. An id that never synced and whose seat
    another one took is waited for by the coordinator all the same."""
    cause = row["end_cause"]
    ending = _ending(row)
    seat_taken = server_log.STATIC_REPLACED in ending and row["ended_at_ms"] <= at_ms
    if what == server_log.NOT_SYNCED and seat_taken:
        return True
    return what in ending or cause == "unknown" or row["certainty"] == "unknown"


def _outside(at_ms: int, bound_ms: int | None, true_ms: int) -> int:
    """How far the truth is before an instant, or after it and its bound; without a bound it may be any time later."""
    if true_ms < at_ms:
        return true_ms - at_ms
    return 0 if bound_ms is None else max(0, true_ms - at_ms - bound_ms)


def _short(member_id: str) -> str:
    """A member id without most of its UUID."""
    return member_id[:-24] + "…" if len(member_id) > 36 else member_id
