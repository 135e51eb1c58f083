"""Compares what the tables say with what the broker's own log says; the story's script is not known here.

Every fact of the broker must be found in the tables, at the same instant within a bound; every end of a membership,
every rebalance and every emptied group in the tables must be a fact of the broker; every timeout must have been
predicted before it struck. The one thing no broker logs is *why* a librdkafka client left: there the client's own error
says it. Pure functions over values.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from demo import epochs, server_log
from demo.evidence import (
    Evidence,
    Line,
    Tolerance,
    allowed_ms,
    facts_of,
    has_epochs,
    invented,
    is_forming,
    line_of,
    nearest,
)
from demo.request_log import Commit
from demo.server_log import Fact
from demo.tables import Record
from kardia.tables import LEAVE_CAUSES

_STRAGGLER_FROM_MS = 2_000
"""Rebalances that lasted longer are said to have waited for somebody, and it is checked for whom and how long."""

_STORED_WITHIN_MS = 30
"""The broker logs that an assignment was received; the rebalance is complete when it is stored, for which there is no
line. A Java coordinator gathers records for 5 ms before it writes: so much later is no error."""

END_OF = {
    server_log.MEMBER_FAILED: ("session_expired",),
    server_log.MEMBER_LEFT: LEAVE_CAUSES,
    server_log.STATIC_REPLACED: ("static_replaced",),
    server_log.NOT_JOINED: ("rebalance_timeout",),
    server_log.NOT_SYNCED: ("sync_timeout",),
    server_log.NOT_MOVED_ON: ("rebalance_timeout",),
}
"""End causes that agree with a fact. The broker cannot tell a poll timeout of librdkafka from another leave."""


def facts_that_end_by(cause: str) -> tuple[str, ...]:
    """Facts that agree with an end cause; none if the broker writes nothing of it."""
    return tuple(what for what, causes in END_OF.items() if cause in causes)


TRIGGERS = (
    ("Adding new member", ("member_joined",)),
    ("on heartbeat expiration", ("session_expired",)),
    ("LeaveGroup", ("member_left", "poll_timeout", "removed_by_admin")),
    ("Updating metadata for static member", ("static_replaced",)),  # it came back while the group completed
    ("Updating metadata", ("metadata_changed",)),
    ("re-joining", ("leader_rejoined",)),
    ("pending sync request expiration", ("sync_timeout",)),
)
"""Words of the broker's reason, and the triggers that agree with them."""


@dataclass(frozen=True)
class Verdict:
    """The lines by instant, and what follows from them."""

    lines: tuple[Line, ...]
    tolerance: Tolerance = field(default_factory=Tolerance)
    first_group_id: str = ""
    """The broker's first group, which is no measure: it loads its classes with it."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong, as sentences; empty when all is right."""
        said = [f"{line.who} {line.done}: {line.fault}" for line in self.lines if line.fault]
        if self.median_ms > self.tolerance.median_ms:
            most = f"{self.tolerance.median_ms:g}"
            said.append(f"the median error is {self.median_ms:.1f} ms, expected at most {most}")
        return tuple(said)

    @property
    def errors_ms(self) -> tuple[int, ...]:
        """Sizes of all errors, but for those of the broker's first group."""
        counted = [line for line in self.lines if not self.first_group_id or line.group_id != self.first_group_id]
        return tuple(abs(line.error_ms) for line in counted if line.error_ms is not None)

    @property
    def median_ms(self) -> float:
        """Median error."""
        return statistics.median(self.errors_ms) if self.errors_ms else 0.0

    @property
    def max_ms(self) -> int:
        """Largest error."""
        return max(self.errors_ms, default=0)

    @property
    def excused(self) -> tuple[Line, ...]:
        """Lines that are right only because the machine was seen to keep a program waiting around their instant."""
        return tuple(line for line in self.lines if not line.fault and line.excused_by_ms)


def judge(evidence: Evidence) -> Verdict:
    """The verdict on everything in `evidence`."""
    evidence = replace(evidence, facts=_with_groups(evidence))
    names = {row["member_id"]: row["client_id"] or row["member_id"] for row in evidence.members}
    lines = [
        *_joins(evidence, names),
        *_ends(evidence, names),
        *_rebalances(evidence),
        *epochs.lines(evidence, names),
        *_empties(evidence),
        *_commits(evidence, names),
        *_witnessed(evidence),
    ]
    return Verdict(tuple(sorted(lines, key=lambda line: line.at_ms)), evidence.tolerance, evidence.first_group_id)


def _with_groups(evidence: Evidence) -> list[Fact]:
    """The facts; where the broker names a member and not its group (2.3 and 2.4, of a static member that is back), the
    group that the tables have it in is taken: a member id is used once."""
    groups = {row["member_id"]: row["group_id"] for row in evidence.members}
    return [
        fact if fact.group_id else replace(fact, group_id=groups.get(fact.member_id, "")) for fact in evidence.facts
    ]


def _joins(evidence: Evidence, names: Mapping[str, str]) -> Iterable[Line]:
    lives = _lives(evidence.members)
    for fact in facts_of(evidence, server_log.MEMBER_ADDED):
        there = lives.get((fact.group_id, fact.member_id), [])
        row = _nearest_life(there, "joined_at_ms", fact.at_ms)
        if row is not None and has_epochs(evidence, fact.group_id) and _joins_anew(evidence, row, fact):
            continue
        yield line_of(
            evidence,
            fact,
            names.get(fact.member_id, fact.member_id),
            said=f"joined as {row['member_id'][:24]}…" if row else "nothing",
            instant=row["joined_at_ms"] if row else None,
            forming=is_forming(evidence, fact),
        )


def _lives(rows: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """(group, member) -> its lives: in a group with epochs a client may join again under its old id."""
    lives: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        lives.setdefault((row["group_id"], row["member_id"]), []).append(row)
    return lives


def _nearest_life(lives: Iterable[Record], column: str, at_ms: int) -> Record | None:
    return min(lives, key=lambda row: abs(int(row[column]) - at_ms), default=None)


def _joins_anew(evidence: Evidence, row: Record, fact: Fact) -> bool:
    """Whether it was a member then: who asks for epoch 0 again has the line of a join as well, and so has a member of
    a classic group at its first JoinGroup after the group was converted."""
    within_ms = allowed_ms(evidence, fact.group_id, fact.at_ms)
    return row["joined_at_ms"] < fact.at_ms - within_ms and (row["ended_at_ms"] or fact.at_ms) >= fact.at_ms


def _ends(evidence: Evidence, names: Mapping[str, str]) -> Iterable[Line]:
    lives = _lives(row for row in evidence.members if row["ended_at_ms"] is not None)
    found: list[Record] = []
    for what, causes in END_OF.items():
        for fact in facts_of(evidence, what):
            row = _nearest_life(lives.get((fact.group_id, fact.member_id), []), "ended_at_ms", fact.at_ms)
            if row is not None:
                found.append(row)
            cause = row["end_cause"] if row else "nothing"
            fault = "" if row is None or cause in causes else f"Kardia says {cause}"
            lead: int | None = None
            kind = {"session_expired": "session", "poll_timeout": "poll"}.get(cause, "")
            if kind:
                lead, missing = _lead(evidence, fact, kind)
                fault = fault or missing
            who = names.get(fact.member_id, fact.member_id)
            yield line_of(evidence, fact, who, cause, row["ended_at_ms"] if row else None, lead, fault)
    for row in (row for several in lives.values() for row in several):
        if not any(row is one for one in found):
            yield invented(row["ended_at_ms"], row["group_id"], names[row["member_id"]], f"ended: {row['end_cause']}")


def _lead(evidence: Evidence, fact: Fact, kind: str) -> tuple[int | None, str]:
    """How long before the fact it was first said, and what is wrong with that."""
    said = [
        row
        for row in evidence.predictions
        if (row["group_id"], row["member_id"], row["kind"]) == (fact.group_id, fact.member_id, kind)
        and row["outcome"] == "came_true"
    ]
    if not said:
        return None, "was not predicted"
    first = min(int(row["predicted_at_ms"]) for row in said)
    seen = evidence.seen_at_ms.get((fact.group_id, fact.member_id, kind))
    lead = fact.at_ms - (first if seen is None else max(first, seen))
    return lead, "" if lead > -evidence.tolerance.late_ms else f"was predicted {-lead} ms too late"


def _rebalances(evidence: Evidence) -> Iterable[Line]:
    rows = {
        (row["group_id"], row["generation_before"]): row for row in evidence.rebalances if not epochs.is_of_epoch(row)
    }
    found = set()
    for fact in facts_of(evidence, server_log.REBALANCE_STARTED):
        at = (fact.group_id, fact.generation)
        found.add(at)
        row = rows.get(at)
        forming = fact.generation == 0 or is_forming(evidence, fact)
        who = f"group {fact.group_id}"
        if row is None:
            yield line_of(evidence, fact, who, "nothing", None, forming=forming, done="began to rebalance")
            continue
        yield line_of(
            evidence,
            fact,
            who,
            _why(row),
            row["started_at_ms"],
            None,
            _trigger_fault(fact, row),
            forming,
            "began to rebalance",
        )
        ended = _ended(evidence, fact)
        if ended is not None and not (row["completed_at_ms"] is None and _may_be_overtaken(evidence, ended)):
            fault = _straggler_fault(evidence, fact, row) or _members_fault(evidence, fact, row)
            done = f"completed its rebalance after {(ended.at_ms - fact.at_ms) / 1000:.1f} s"
            yield line_of(evidence, ended, who, _waited(row), _completed(ended, row), None, fault, forming, done)
    for at, row in rows.items():
        if at not in found:
            yield invented(row["started_at_ms"], row["group_id"], f"group {row['group_id']}", "rebalance")


def _ended(evidence: Evidence, start: Fact) -> Fact | None:
    """The fact that ended a rebalance: the leader's assignment was received, or nobody was left."""
    for fact in evidence.facts:
        of_it = (fact.group_id, fact.generation) == (start.group_id, start.generation + 1)
        if of_it and fact.what in (server_log.ASSIGNED, server_log.GROUP_EMPTY):
            return fact
    return None


def _may_be_overtaken(evidence: Evidence, ended: Fact) -> bool:
    """Whether the next rebalance began while an assignment was being stored: then nobody was given it (seen on a busy
    machine, where SyncGroup was answered 27). Source: `classicGroupSyncToClassicGroup`, `storeGroup`."""
    return ended.what == server_log.ASSIGNED and any(
        fact.what == server_log.REBALANCE_STARTED
        and (fact.group_id, fact.generation) == (ended.group_id, ended.generation)
        and 0 <= fact.at_ms - ended.at_ms <= _STORED_WITHIN_MS
        for fact in evidence.facts
    )


def _completed(ended: Fact, row: Record) -> int | None:
    """When the rebalance was complete, less what it may take to store an assignment that was received."""
    at_ms: int | None = row["completed_at_ms"]
    if at_ms is None or ended.what != server_log.ASSIGNED:
        return at_ms
    return at_ms - min(max(at_ms - ended.at_ms, 0), _STORED_WITHIN_MS)


def _why(row: Record) -> str:
    return f"{row['trigger']} ({row['trigger_client_id'] or row['trigger_member_id'] or 'nobody'})"


def _waited(row: Record) -> str:
    waits = row["stragglers"] or []
    if not waits or waits[0]["waited_ms"] < _STRAGGLER_FROM_MS:
        return "generation complete"
    return f"waited {waits[0]['waited_ms'] / 1000:.1f} s for {waits[0]['client_id'] or waits[0]['member_id']}"


def _trigger_fault(fact: Fact, row: Record) -> str:
    for words, triggers in TRIGGERS:
        if words in fact.reason:
            return "" if row["trigger"] in triggers else f"Kardia says {row['trigger']}, the broker: {fact.reason[:60]}"
    return ""


def _straggler_fault(evidence: Evidence, start: Fact, row: Record) -> str:
    """What is wrong with the longest wait that Kardia names, for a rebalance that waited for its members."""
    joined = _generation_started(evidence, start)
    if start.generation == 0 or joined is None or joined - start.at_ms < _STRAGGLER_FROM_MS:
        return ""
    longest = max((wait["waited_ms"] for wait in row["stragglers"] or []), default=0)
    off = longest - (joined - start.at_ms)
    right = abs(off) <= allowed_ms(evidence, start.group_id, joined)
    return "" if right else f"the longest wait named is {off:+d} ms off"


def _members_fault(evidence: Evidence, start: Fact, row: Record) -> str:
    """What is wrong with the number of members of the new generation. It also counts who joined while the group
    rebalanced already, of whom the Scala coordinator says nothing else."""
    counts = [
        fact.members
        for fact in evidence.facts
        if fact.what == server_log.GENERATION_STARTED
        and (fact.group_id, fact.generation) == (start.group_id, start.generation + 1)
        and fact.members >= 0
    ]
    if not counts or counts[0] == row["members_after"]:
        return ""
    return f"Kardia says {row['members_after']} members, the broker {counts[0]}"


def _empties(evidence: Evidence) -> Iterable[Line]:
    rows = [row for row in evidence.transitions if row["entity"] == "group" and row["to_state"] == "Empty"]
    facts = facts_of(evidence, server_log.GROUP_EMPTY)
    for fact in facts:
        row = nearest(rows, "group_id", fact.group_id, fact.at_ms)
        said = "state Empty" if row else "nothing"
        yield line_of(evidence, fact, f"group {fact.group_id}", said, row["at_ms"] if row else None)
    for row in rows:
        within_ms = allowed_ms(evidence, row["group_id"], row["at_ms"])
        if epochs.left_by_its_last_member(evidence, row):
            continue
        near = any(f.group_id == row["group_id"] and abs(f.at_ms - row["at_ms"]) <= within_ms for f in facts)
        if not near and row["from_state"] != "Unknown":
            yield invented(row["at_ms"], row["group_id"], f"group {row['group_id']}", "state Empty")


def _commits(evidence: Evidence, names: Mapping[str, str]) -> Iterable[Line]:
    """Commits that the broker accepted while, as it says, the group rebalanced: Kardia must have known both.

    In the classic protocol such a commit is accepted and renews the session of a member that has not joined again yet.
    """
    for start in facts_of(evidence, server_log.REBALANCE_STARTED):
        joined = _generation_started(evidence, start)
        inside = [
            commit
            for commit in evidence.commits
            if joined is not None and commit.group_id == start.group_id and start.at_ms < commit.at_ms < joined
        ]
        accepted = [commit for commit in inside if commit.accepted]
        if joined is None or not accepted:
            continue
        members = list(dict.fromkeys(commit.member_id for commit in accepted))
        wrong = [fault for commit in accepted if (fault := _commit_fault(evidence, commit, names))]
        who = names.get(members[0], members[0]) if len(members) == 1 else f"{len(members)} members of {start.group_id}"
        yield Line(
            round(accepted[-1].at_ms),
            start.group_id,
            who,
            f"committed offsets while the group rebalanced ({len(accepted)} accepted)",
            "in PreparingRebalance, still members" if not wrong else wrong[0],
            None,
            None,
            "not what the tables say" if wrong else "",
            # A client that is told to rejoin commits before it does: of interest only where the group waits.
            routine=joined - start.at_ms < _STRAGGLER_FROM_MS,
        )


def _commit_fault(evidence: Evidence, commit: Commit, names: Mapping[str, str]) -> str:
    """What the tables have wrong about an accepted commit; instants may be off by what an instant may be off."""
    at_ms = round(commit.at_ms)
    within_ms = allowed_ms(evidence, commit.group_id, at_ms)
    states = [_state(evidence, commit.group_id, at_ms), _state(evidence, commit.group_id, at_ms - within_ms)]
    states += [
        str(row["to_state"])  # a rebalance of one member is over within milliseconds
        for row in evidence.transitions
        if row["entity"] == "group" and row["group_id"] == commit.group_id and abs(row["at_ms"] - at_ms) <= within_ms
    ]
    name = names.get(commit.member_id, commit.member_id)
    if "PreparingRebalance" not in states:
        return f"{name}: group in {states[0]}"
    return "" if _present(evidence, commit) else f"{name}: not a member"


def _present(evidence: Evidence, commit: Commit) -> bool:
    """Whether the tables have the committing member in the group at that instant."""
    at_ms = round(commit.at_ms)
    return any(
        row["member_id"] == commit.member_id and row["joined_at_ms"] <= at_ms < (row["ended_at_ms"] or at_ms + 1)
        for row in evidence.members
    )


def _state(evidence: Evidence, group_id: str, at_ms: int) -> str:
    """State of a group at an instant, as the tables have it."""
    before = [
        row
        for row in evidence.transitions
        if row["entity"] == "group" and row["group_id"] == group_id and row["at_ms"] <= at_ms
    ]
    return str(max(before, key=lambda row: int(row["seq"]))["to_state"]) if before else "no state"


def _generation_started(evidence: Evidence, start: Fact) -> int | None:
    """Instant at which the generation began that ended the join phase of a rebalance."""
    for fact in evidence.facts:
        of_it = (fact.group_id, fact.generation) == (start.group_id, start.generation + 1)
        if of_it and fact.what == server_log.GENERATION_STARTED:
            return fact.at_ms
    return None


def _witnessed(evidence: Evidence) -> Iterable[Line]:
    """Poll timeouts and the clients' own words about them must be the same ones. Where no line names the library
    (before 2.5), a member that leaves by itself leaves for a reason that is unknown, and the tables have to say so."""
    if evidence.witnesses is None:
        return
    left = {(row["client_id"], row["ended_at_ms"]) for row in evidence.members if row["end_cause"] == "poll_timeout"}
    untold = {
        (row["client_id"], row["ended_at_ms"])
        for row in evidence.members
        if row["end_cause"] == "left" and row["certainty"] == "unknown"
    }
    for witness in evidence.witnesses:
        if any(client == witness.client_id and at_ms <= witness.at_ms for client, at_ms in untold):
            continue
        before = [at for at in left if at[0] == witness.client_id and at[1] <= witness.at_ms]
        if not before:
            yield Line(
                witness.at_ms,
                "",
                witness.client_id,
                "says that it missed its poll interval",
                "nothing",
                None,
                None,
                "no poll timeout in the tables",
            )
        else:
            left.discard(max(before, key=lambda at: int(at[1])))
    for client, at_ms in left:
        yield invented(at_ms, "", client, "poll_timeout (the client says nothing of it)")
