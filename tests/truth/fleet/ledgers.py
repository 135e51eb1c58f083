"""Rebalances as they stand at the end, against those that the coordinator went through: none invented, none doubled,
each with its trigger, who began it, its instants, its generation, and who was waited for.

A row belongs to the true rebalance of its generation; where a load took a generation back, which then is left a second
time, to the one that is nearest to it. Instants in ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kardia.kafka.states import GroupState
from tests.truth.fleet import ties
from tests.truth.fleet.bounds import MOST_LATE_MS, off_ms
from tests.truth.fleet.truth import TrueRebalance, Truth
from tests.truth.fleet.world import START_MS

if TYPE_CHECKING:
    from tests.truth.fleet.score import Evidence, Score

INSTANT_MS = 3
"""Start, end of the join phase and completion: two stamps that are cut to 1 ms, and the way from a handler thread to
the coordinator's own."""

ASKED_MS = 10
"""Start by a LeaveGroup: within that nothing is promised, because a Java coordinator waits for more records."""

WAITED_MS = 24
"""How long somebody was waited for: two instants, one of which may be that of a request in the coordinator's queue."""

BEGINS = {
    "session_expired": "session_expired",
    "join_timeout": "session_expired",
    "sync_timeout": "sync_timeout",
    "left": "member_left",
    "poll_timeout": "poll_timeout",
    "removed_by_admin": "removed_by_admin",
}
"""Cause of an end -> trigger of the rebalance that it begins."""

LEFT = frozenset({"poll_timeout", "member_left"})
"""A client that leaves may say why, and the log of an old version cannot show it."""


def compare(result: Score, truth: Truth, rows: list[dict[str, Any]], log_to_ms: float, evidence: Evidence) -> None:
    """Score the rebalances of one group, whose log goes to an instant."""
    of_true = _matched(result, truth, rows, evidence)
    for place, one in enumerate(truth.rebalances):
        found = of_true.get(place, [])
        if len(found) > 1:
            starts = [row["started_at_ms"] - int(START_MS) for row in found]
            text = f"generation {one.generation_before} has {len(found)} rows: {starts}"
            result.problem("rebalance twice", truth.group_id, one.started_at_ms, text)
        if one.trigger == "sync_timeout" and not one.member_id:
            continue  # of an id left behind by a replaced static member: nobody is removed, nothing shows it
        until_ms = log_to_ms - truth.shown_after_ms(one.trigger, one.joined_at_ms)
        if not 0 <= one.joined_at_ms <= until_ms or _hidden_by_the_next(truth, place):
            continue
        dark = evidence.damage.dark(one.started_at_ms, one.joined_at_ms) or evidence.hides(one)
        if not found and (dark or one.joined_at_ms <= evidence.damage.begins_at_ms):
            result.count("rebalances in the dark")
            continue
        result.count("rebalances")
        if not found:
            result.problem("missed rebalance", truth.group_id, one.started_at_ms, f"{one}")
        else:
            _one(result, truth, one, max(found, key=lambda row: row["known_at_ms"]), log_to_ms)


def _hidden_by_the_next(truth: Truth, place: int) -> bool:
    """Whether the end of the log comes in the join phase that began right after it: its answers would have shown it."""
    later = truth.rebalances[place + 1 :]
    return (
        bool(later)
        and later[0].joined_at_ms < 0
        and later[0].started_at_ms <= truth.rebalances[place].joined_at_ms + 500
    )


def _matched(
    result: Score, truth: Truth, rows: list[dict[str, Any]], evidence: Evidence
) -> dict[int, list[dict[str, Any]]]:
    """Place of a true rebalance -> rows about it. Rows of none are problems."""
    of_true: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        places = [
            place for place, one in enumerate(truth.rebalances) if one.generation_before == row["generation_before"]
        ]
        if places:
            nearest = min(places, key=lambda place: distance(truth.rebalances[place], row))
            of_true.setdefault(nearest, []).append(row)
        elif not evidence.complete and row["certainty"] == "unknown":
            result.count("rebalances of a generation that is said to be unknown")
        else:
            text = f"generation {row['generation_before']}, {row['trigger']}, {row['certainty']}"
            result.problem("invented rebalance", truth.group_id, row["started_at_ms"], text)
    return of_true


def distance(one: TrueRebalance, row: dict[str, Any]) -> tuple[int, int, bool, int]:
    """How far a row is from a true rebalance: by its start within its bound, by its completion, by what it led to (one
    that a conversion cuts off begins in the same ms as the next, after a pause of the broker), by its start alone (what
    is within the width of stamps is met: a bound open at its end meets whatever came later to the ms)."""
    off = _beyond_stamps(off_ms(row["started_at_ms"], row["at_bound_ms"], one.started_at_ms))
    over = 0
    if row["completed_at_ms"] is not None and one.assigned_at_ms >= 0:
        over = _beyond_stamps(off_ms(row["completed_at_ms"], row["completed_bound_ms"], one.assigned_at_ms))
    after = row.get("generation_after")
    return off, over, after not in (None, one.generation_after), abs(one.started_at_ms - row["started_at_ms"])


def _beyond_stamps(off: int) -> int:
    return max(0, abs(off) - INSTANT_MS)


def unsynced(truth: Truth, one: TrueRebalance) -> set[str]:
    """Who was removed by the timer for SyncGroup that began a rebalance."""
    removed = (life for life in truth.lives if life.cause == "sync_timeout")
    return {life.member_id for life in removed if abs(life.ended_at_ms - one.started_at_ms) <= 1}


Wrong = Callable[[str, str], None]
"""Notes a problem with a rebalance: its kind, and what is wrong."""


def _one(result: Score, truth: Truth, one: TrueRebalance, row: dict[str, Any], until_ms: float) -> None:
    def wrong(kind: str, text: str) -> None:
        result.problem(kind, truth.group_id, one.started_at_ms, f"{text}; {row['certainty']}; {one}")

    if row["generation_after"] != one.generation_after:
        wrong("generation", f"said {row['generation_after']}")
    _trigger(result, truth, one, row, wrong)
    _trigger_member(result, truth, one, row, wrong)
    _instants(result, truth, one, row, until_ms, wrong)
    _straggler(result, truth, one, row)
    for column, true in (("members_before", one.members_before), ("members_after", one.members_after)):
        said = row[column]
        if true >= 0 and said is not None:
            result.count(f"rebalances: {column}")
            if said != true and row["certainty"] in ("exact", "inferred"):
                wrong(column.replace("_", " "), f"said {said}, {true}")


def _trigger(result: Score, truth: Truth, one: TrueRebalance, row: dict[str, Any], wrong: Wrong) -> None:
    if row["trigger"] == "unknown":
        result.count("rebalances: trigger unknown")
        result.count(f"trigger unknown: {one.trigger}")
    elif row["trigger"] != one.trigger:
        result.count(f"rebalances: {one.trigger} said {row['trigger']}")
        if row["certainty"] not in ("exact", "inferred") and _of_one_instant(truth, one, row):
            result.count("triggers of one instant, said provisionally")
        elif not {row["trigger"], one.trigger} <= LEFT or row["certainty"] == "exact":
            wrong("wrong trigger", f"said {row['trigger']} {row['trigger_member_id']}")
    else:
        result.count("rebalances: trigger right")


def _trigger_member(result: Score, truth: Truth, one: TrueRebalance, row: dict[str, Any], wrong: Wrong) -> None:
    """Who began it, where the trigger is right."""
    if row["trigger"] != one.trigger:
        return
    named = row["trigger_member_id"] or ""
    if one.trigger == "sync_timeout" and named in unsynced(truth, one):
        return  # one timer removes all who are missing, in the order of a hash table
    if not named and one.member_id and row["certainty"] != "exact":
        result.count("trigger members not named")  # records do not show who joined first
    elif named != one.member_id:
        if row["certainty"] in ("exact", "inferred") or named not in _near(truth, one):
            wrong("wrong trigger member", f"said {named}")
        result.count("trigger members of one instant, said provisionally")


def _instants(
    result: Score, truth: Truth, one: TrueRebalance, row: dict[str, Any], until_ms: float, wrong: Wrong
) -> None:
    width_ms = ASKED_MS if truth.starved else INSTANT_MS
    if row["trigger"] != "unknown":
        start_ms = ASKED_MS if one.trigger in LEFT else width_ms
        _instant(result, "start", row["started_at_ms"], row["at_bound_ms"], one.started_at_ms, wrong, start_ms)
    bound_ms = row["completed_bound_ms"]
    shown_late = row["protocol"] != "classic" or row["completed_at_ms"] is not None  # by an answer; by a record alone
    if row["joined_at_ms"] is None and one.joined_at_ms >= 0 and shown_late:
        result.count("rebalances: end of the join phase not dated")
    else:
        _instant(result, "end of the join phase", row["joined_at_ms"], bound_ms, one.joined_at_ms, wrong, width_ms)
    over_at_ms = completed_at_ms(truth, one)
    if over_at_ms <= until_ms:
        _instant(result, "completion", row["completed_at_ms"], bound_ms, over_at_ms, wrong, width_ms)


def _instant(
    result: Score,
    what: str,
    said: int | None,
    bound_ms: int | None,
    true: int,
    wrong: Wrong,
    width_ms: float = INSTANT_MS,
) -> None:
    """One instant of a rebalance with its bound. -1 in truth: it did not come so far, and nothing may be said of it."""
    if said is None or true < 0:
        if said is not None or true >= 0:
            wrong(f"rebalance, {what}", f"said {said}, {true}")
        return
    result.error(f"rebalance, {what}", said - true)
    if abs(off_ms(said, bound_ms, true)) > width_ms:
        wrong(f"rebalance, {what}", f"{off_ms(said, bound_ms, true):+d} ms, bound {bound_ms}")


def completed_at_ms(truth: Truth, one: TrueRebalance) -> int:
    """When it was over: the assignment was stored, or nobody was left when the join phase ended. -1: it was not."""
    if one.assigned_at_ms >= 0:
        return one.assigned_at_ms
    emptied = GroupState.EMPTY in truth.states_between(one.joined_at_ms, one.joined_at_ms)
    again = any(
        other.generation_before == one.generation_after and other.started_at_ms == one.joined_at_ms
        for other in truth.rebalances
    )  # who was in it left within the same ms
    return one.joined_at_ms if emptied and not again else -1


def _of_one_instant(truth: Truth, one: TrueRebalance, row: dict[str, Any]) -> bool:
    """Whether what is said to have begun it was so, in the instant in which something else had begun it."""
    near = [life for life in truth.lives if abs(life.ended_at_ms - one.started_at_ms) <= INSTANT_MS]
    named = row["trigger_member_id"] or ""
    if row["trigger"] == "static_replaced" and ties.seat_taken_as_it_ended(truth, one.member_id):
        return True
    if row["trigger"] in ("session_expired", "sync_timeout") and ties.was_due(
        truth, named, row["trigger"], one.started_at_ms, MOST_LATE_MS
    ):
        return True  # its timer was late: that it had not fired before something else began it is not shown
    if any(BEGINS.get(life.cause) == row["trigger"] and life.member_id == named for life in near):
        return True
    joined_at_ms = one.joins.get(named, -1)
    joins = ("member_joined", "leader_rejoined", "metadata_changed")
    return row["trigger"] in joins and 0 <= joined_at_ms <= one.started_at_ms + INSTANT_MS


def _near(truth: Truth, one: TrueRebalance) -> set[str]:
    """Who did the same within the width of a stamp: the order of several is lost."""
    joined = {member_id for member_id, at_ms in one.joins.items() if abs(at_ms - one.started_at_ms) <= INSTANT_MS}
    return joined | {
        life.member_id
        for life in truth.lives
        if BEGINS.get(life.cause) == one.trigger and abs(life.ended_at_ms - one.started_at_ms) <= INSTANT_MS
    }


def _straggler(result: Score, truth: Truth, one: TrueRebalance, row: dict[str, Any]) -> None:
    """The longest waited for: who never came, or was evicted before it did, else who joined last."""
    waited = dict.fromkeys(one.dropped, one.joined_at_ms - one.started_at_ms)
    waited |= {
        life.member_id: life.ended_at_ms - one.started_at_ms
        for life in truth.lives
        if life.cause == "session_expired" and one.started_at_ms < life.ended_at_ms <= one.joined_at_ms
    }
    waited |= {
        member_id: at_ms - one.started_at_ms for member_id, at_ms in one.joins.items() if member_id not in waited
    }
    if row["completed_at_ms"] is None and row["protocol"] not in (None, "classic"):
        return  # told while it lasted, and not over by the end of the log
    if len(waited) < 2 or max(waited.values()) < 600 or row["trigger"] == "unknown":
        return
    result.count("stragglers")
    longest = max(waited.values())
    names = {member_id for member_id, ms in waited.items() if ms >= longest - WAITED_MS / 2}
    found = [entry for entry in row["stragglers"] if not entry["pending"]]  # ids that nobody used are no members
    if (
        found
        and found[0]["member_id"] in names
        and abs(found[0]["waited_ms"] - longest)
        <= WAITED_MS + (row["at_bound_ms"] or 0) + (row["completed_bound_ms"] or 0)
    ):
        result.count("stragglers: right")
    else:
        text = f"{names} waited {longest}; said {found[:2]}"
        result.problem("straggler", truth.group_id, one.started_at_ms, text)
