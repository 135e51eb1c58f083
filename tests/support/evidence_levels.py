"""Rungs of evidence: which sources are read of a recorded story, and how the answers of one compare with its truth.

`score` counts what was found, what a rung cannot know and what is wrong, by what `expect.json` says: the sentences of
the broker itself and what was done to the clients. What is only known within bounds, or said to be unknown, counts as
not knowable, and as wrong if the bounds do not hold the truth; on the lowest rung, where all that is known are bounds,
it is counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from kardia.kafka.states import GroupState
from kardia.tables import LEAVE_CAUSES, Row
from tests.support.stories import NOISE_GROUPS, STARVED_STORIES, Story, lanes_of, observe, standing

RUNGS = {
    "1": {"server_log": False, "offsets": False, "requests": False, "samples": True},
    "2": {"server_log": False, "offsets": True, "requests": False},
    "3": {"server_log": True, "offsets": False, "requests": False},
    "4": {"server_log": True, "offsets": True, "requests": False},
    "5": {"server_log": True, "offsets": True, "requests": True},
}
"""Number -> arguments of `lanes_of`."""

NAMES = {
    "1": "the admin API",
    "2": "`__consumer_offsets`",
    "3": "`server.log`",
    "4": "both",
    "5": "both and the request log",
}

WITHIN_MS = 10
"""Of an instant that the coordinator's own line tells."""

WOKEN_WITHIN_MS = 100
"""A broker that has just woken takes its time from the sentence about a member to that about the rebalance: with the
request log it began with the first of the two."""

STORED_WITHIN_MS = 100
"""A record is stored so long after the sentence about it at most, on the starved machines of the recordings."""

STARVED_MS = 500
"""The same on a machine whose processors had eight times as much to do: 230 ms were seen."""

YOUNG_MS = 50
"""A broker that loads classes has begun the rebalance of its first JoinGroup so long before it is done with that."""

NOT_CLASSIC = frozenset({"hm1", "dump", *NOISE_GROUPS})
"""Groups of the stories that use the consumer protocol, or no protocol."""

TRIGGER_OF_REASON = (
    ("Adding new member", {"member_joined"}),
    ("on heartbeat expiration", {"session_expired"}),
    ("LeaveGroup", {"member_left", "poll_timeout", "removed_by_admin"}),
    ("re-joining group during Stable", {"leader_rejoined"}),
    ("Updating metadata for member", {"metadata_changed", "leader_rejoined"}),
    ("static member", {"static_replaced"}),
)
"""The coordinator's words and the trigger classes that they mean."""

ENDS = {"session timeout": "session_expired", "did not rejoin within the rebalance timeout": "rebalance_timeout"}


class Count(NamedTuple):
    """Of things that happened: found exactly, said to have been between two instants that hold the truth, not said,
    said otherwise."""

    found: int = 0
    between: int = 0
    unsaid: int = 0
    wrong: int = 0

    @property
    def unknown(self) -> int:
        """Not knowable exactly."""
        return self.between + self.unsaid


class Score(NamedTuple):
    """One story on one rung."""

    evictions: Count
    leaves: Count
    replacements: Count
    """Static members whose seat was taken."""
    rebalances: Count
    triggers: Count
    problems: list[str]
    """What is wrong, one sentence each."""


@cache
def rows_of(name: str, rung: str) -> dict[str, list[dict[str, Any]]]:
    """Standing lives and rebalances of the groups of a story that use the classic protocol."""
    return classic(observe(lanes_of(name, **RUNGS[rung])), not_classic(Story(name).expect))


def not_classic(expect: dict[str, Any]) -> frozenset[str]:
    """Groups of a story that have epochs, or no protocol."""
    return NOT_CLASSIC | {one["group"] for one in expect["rebalances"] if one.get("kind") == "modern"}


def classic(said: dict[str, list[Row]], others: frozenset[str] = NOT_CLASSIC) -> dict[str, list[dict[str, Any]]]:
    """Standing lives and rebalances of the groups that use the classic protocol."""
    return {
        table: [row for row in standing(table, said[table]) if row["group_id"] not in others]
        for table in ("members", "rebalances", "transitions")
    }


def score(name: str, rung: str) -> Score:
    """How a rung does on a story."""
    stored_within_ms = STARVED_MS if name in STARVED_STORIES else STORED_WITHIN_MS
    return scored(Story(name).expect, rows_of(name, rung), rung, stored_within_ms)


def scored(
    expect: dict[str, Any], rows: dict[str, list[dict[str, Any]]], rung: str, stored_within_ms: int = STORED_WITHIN_MS
) -> Score:
    """How these rows do on a story."""
    problems: list[str] = []
    others = not_classic(expect)
    true = [one for one in expect["evictions"] if one["group"] not in others and one["why"] in ENDS]
    true_ends = [(one["group"], one["member_id"], one["t"], ENDS[one["why"]]) for one in true]
    gone = [one for one in expect.get("leaves", ()) if one["group"] not in others]
    true_leaves = [(one["group"], one["member_id"], one["t"], "left") for one in gone]
    ended = [row for row in rows["members"] if row["ended_at_ms"] is not None and _in_scope(expect, row["ended_at_ms"])]
    evictions = _ends(true_ends, ended, set(ENDS.values()), problems)
    leaves = _ends(true_leaves, ended, set(LEAVE_CAUSES), problems)
    taken = [(one["group"], one["member_id"], one["t"], "static_replaced") for one in expect.get("replacements", ())]
    replacements = _ends(taken, ended, {"static_replaced"}, problems)
    invented = [row for row in ended if row["end_cause"] not in ("unknown", "static_replaced", "group_deleted")]
    problems += [f"no such end: {row['group_id']} {row['member_id']} {row['end_cause']}" for row in invented]
    rebalances, triggers = _rebalances(expect, rows["rebalances"], rung, stored_within_ms, problems)
    if rung == "1":
        rebalances = _shown(expect, rows["transitions"], problems)
    return Score(evictions, leaves, replacements, rebalances, triggers, problems)


def _in_scope(expect: dict[str, Any], at_ms: int) -> bool:
    return bool(expect["start_ms"] <= at_ms <= expect["end_ms"])


def _ends(
    true: list[tuple[str, str, int, str]], ended: list[dict[str, Any]], causes: set[str], problems: list[str]
) -> Count:
    """Ends of memberships; those that are found, or bounded, are taken out of `ended`."""
    found = between = unsaid = wrong = 0
    for group_id, member_id, at_ms, cause in true:
        same = [row for row in ended if (row["group_id"], row["member_id"]) == (group_id, member_id)]
        meant = causes if cause == "left" else {cause}
        # The sentence about the rebalance that a leave begins may stand before that about the leave.
        before_ms = WOKEN_WITHIN_MS if cause == "left" else WITHIN_MS
        right = [row for row in same if _is_at(row, at_ms, before_ms) and row["end_cause"] in meant]
        # That a seat was taken is seen in records, and of when only bounds; an eviction that is said has an instant.
        open_ends = {"unknown", "static_replaced"} & {"unknown", *meant} | (causes if cause == "left" else set())
        bounded = [row for row in same if row["end_cause"] in open_ends and _holds(row, "ended_at_ms", at_ms)]
        for row in (right or bounded)[:1]:
            ended.remove(row)
        found += bool(right)
        between += not right and bool(bounded)
        unsaid += not same
        if same and not right and not bounded:
            wrong += 1
            problems.append(f"another end: {group_id} {member_id} {at_ms} {cause}: {same}")
    return Count(found, between, unsaid, wrong)


def _is_at(row: dict[str, Any], at_ms: int, before_ms: int) -> bool:
    return bool(-before_ms <= row["ended_at_ms"] - at_ms <= WITHIN_MS)


def _holds(row: dict[str, Any], column: str, at_ms: int) -> bool:
    """Whether the bounds of a row hold an instant."""
    begin, bound = row[column] - WITHIN_MS, row["at_bound_ms"]
    return bool(begin <= at_ms and (bound is None or at_ms <= row[column] + bound + STORED_WITHIN_MS))


def _rebalances(
    expect: dict[str, Any], rows: list[dict[str, Any]], rung: str, near_ms: int, problems: list[str]
) -> tuple[Count, Count]:
    found = between = unsaid = wrong = named = unnamed = misnamed = 0
    left = [row for row in rows if _in_scope(expect, row["started_at_ms"])]
    for one in expect["rebalances"]:
        if one.get("kind", "classic") != "classic" or one["group"] in NOT_CLASSIC:
            continue
        row = next((row for row in left if _is_it(row, one)), None)
        if row is None:
            unsaid, unnamed = unsaid + 1, unnamed + 1
            continue
        left.remove(row)
        faults = list(_faults(row, one, rung, near_ms))
        problems += faults
        exact = abs(row["started_at_ms"] - one["t_start"]) <= WITHIN_MS and row["at_bound_ms"] == 0
        wrong, found, between = wrong + bool(faults), found + exact, between + (not exact)
        right = _triggers(one["reason"])
        if row["trigger"] == "unknown":
            unnamed += 1
        elif right is not None and row["trigger"] not in right:
            misnamed += 1
            problems.append(f"another trigger: {row['group_id']} {row['trigger']}: {one['reason']}")
        else:
            named += 1
    problems += [f"no such rebalance: {row['group_id']} {row['generation_before']} {row}" for row in left]
    return Count(found, between, unsaid, wrong), Count(named, 0, unnamed, misnamed)


def _shown(expect: dict[str, Any], rows: list[dict[str, Any]], problems: list[str]) -> Count:
    """Rebalances that samples show: one that was asked about while it lasted, or two answers of a group that is Stable
    and another one. Nothing of them is found, and none is said that was not."""
    told = [row for row in rows if row["entity"] == "group" and row["at_bound_ms"] is not None]
    shown = [row for row in told if row["cause"] == "rebalanced" or row["to_state"] in _REBALANCES]
    true = [one for one in expect["rebalances"] if one["group"] not in NOT_CLASSIC]
    between = sum(any(_lasted(one, row) for row in shown) for one in true)
    wrong = [row for row in shown if not any(_lasted(one, row) for one in true)]
    problems += [f"no such rebalance: {row}" for row in wrong]
    return Count(0, between, len(true) - between, len(wrong))


_REBALANCES = frozenset({GroupState.PREPARING, GroupState.COMPLETING})


def _lasted(one: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a rebalance lasted at some time between the bounds of a row."""
    began = one["group"] == row["group_id"] and one["t_start"] <= row["at_ms"] + row["at_bound_ms"] + WITHIN_MS
    return bool(began and one.get("t_done", row["at_ms"]) >= row["at_ms"] - STORED_WITHIN_MS)


def _triggers(reason: str | None) -> set[str] | None:
    """Trigger classes that a reason means; None where the release says none."""
    return next((triggers for words, triggers in TRIGGER_OF_REASON if words in (reason or "")), None)


def _is_it(row: dict[str, Any], one: dict[str, Any]) -> bool:
    """Whether a row may be about a rebalance: it left that generation, and may have begun then."""
    if (row["group_id"], row["generation_before"]) != (one["group"], one["from_gen"]):
        return False
    # A row without a known begin stands at its end: nothing before it was read.
    begun_before = row["certainty"] == "unknown" and row["started_at_ms"] >= one["t_start"]
    # That a young broker began its first one at the end of a slow request is the likely case, and said to be inferred.
    likely = row["certainty"] == "inferred" and one["from_gen"] == 0
    near = likely and 0 <= row["started_at_ms"] - one["t_start"] <= YOUNG_MS
    return begun_before or near or _holds(row, "started_at_ms", one["t_start"])


def _faults(row: dict[str, Any], one: dict[str, Any], rung: str, near_ms: int) -> Iterator[str]:
    """What a row says otherwise than the broker did. Answers, and so instants of the request log, come a little later
    than its sentences, and records by `near_ms` at most."""
    if row["generation_after"] is not None and "to_gen" in one and row["generation_after"] != one["to_gen"]:
        yield f"another generation: {row}"
    if row["members_after"] is not None and "members" in one and row["members_after"] != one["members"]:
        yield f"another size: {row}"
    for column, key in (("joined_at_ms", "t_joined"), ("completed_at_ms", "t_done")):
        said, true = row[column], one.get(key)
        if said is None or true is None:
            continue
        if not -near_ms <= true - said <= near_ms + (row["completed_bound_ms"] or 0):
            yield f"another {column} on rung {rung}: {row}"


def contradictions(name: str, lower: str, higher: str) -> Iterator[str]:
    """What a lower rung says to be exact and a higher one otherwise."""
    low, high, expect = rows_of(name, lower), rows_of(name, higher), Story(name).expect
    for row in low["members"]:
        if row["certainty"] != "exact" or not _in_scope(expect, row["ended_at_ms"] or 0):
            continue
        same = [one for one in high["members"] if _key(one, "member_id") == _key(row, "member_id")]
        if not any(_agrees(one, row) for one in same):
            yield f"{lower} and {higher}: {row}: {same}"
    for row in low["rebalances"]:
        if row["certainty"] != "exact" or not _in_scope(expect, row["started_at_ms"]):
            continue
        same = [one for one in high["rebalances"] if _key(one, "generation_before") == _key(row, "generation_before")]
        same = [one for one in same if _near(one, row, "started_at_ms", WOKEN_WITHIN_MS)]
        if not same and row["joined_at_ms"] is None:
            continue  # undone by a load before any request of it was answered
        if not any(one["trigger"] == row["trigger"] and _same_members(one, row) for one in same):
            yield f"{lower} and {higher}: {row}: {same}"


def _key(row: dict[str, Any], column: str) -> tuple[Any, Any]:
    return row["group_id"], row[column]


def _agrees(one: dict[str, Any], row: dict[str, Any]) -> bool:
    same = one["ended_at_ms"] is not None and one["end_cause"] == row["end_cause"]
    return same and _near(one, row, "ended_at_ms", WITHIN_MS)


def _same_members(one: dict[str, Any], row: dict[str, Any]) -> bool:
    """Who began it, and how many came of it, as far as both say it."""
    return all(
        one[column] == row[column] or row[column] is None
        for column in ("trigger_member_id", "generation_after", "members_after")
    )


def _near(one: dict[str, Any], row: dict[str, Any], column: str, within_ms: int) -> bool:
    return bool(abs(one[column] - row[column]) <= within_ms)
