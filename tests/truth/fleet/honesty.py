"""Live honesty: of every row ever written, whether what it called certain was so.

`exact` must be true always and `inferred` in 999 of 1,000; of `provisional` and `unknown` only the share is told. Rows
that were replaced later count as well: somebody may have acted on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kardia.coordinator.classic.operations import MemberView
from kardia.kafka.states import GroupState
from tests.truth.fleet import ledgers, ties
from tests.truth.fleet.bounds import MOST_LATE_MS, off_ms
from tests.truth.fleet.truth import Life, Truth
from tests.truth.fleet.world import START_MS

if TYPE_CHECKING:
    from tests.truth.fleet.score import Score

NEAR_MS = 12
DEADLINE_MS = 3
"""A deadline is a renewal, whose line is cut to 1 ms, and a timeout."""

JAVA_DEADLINE_MS = 10
"""A Java coordinator takes a heartbeat at any time between its handling and its answer, and may answer it when what
was written before is stored, 5 to 9 ms later. Nothing shows when it took it; both were seen in recordings."""

STORED_MS = 60
"""A record is stamped when it is written, and the group is Stable when it is stored: so much later where the broker is
well."""

LEFT_OPEN_MS = 5_000.0
"""So long after its deadline a prediction may wait for what shows its outcome."""

JUDGED = ("exact", "inferred")
_LEAVES = frozenset({"left", "poll_timeout", "removed_by_admin"})


def compare(
    result: Score, truth: Truth, tables: dict[str, list[dict[str, Any]]], until_ms: float, *, requests: bool
) -> None:
    """Judge each row by itself. `requests`: those are read, and tell whose seat was given back."""
    judges = {"members": _member, "transitions": _transition, "rebalances": _rebalance, "health": _health}
    for table, judge in judges.items():
        for row in tables[table]:
            certainty = row["certainty"]
            if row.get("withdrawn"):
                continue
            result.count(f"said: {table} {certainty}")
            if certainty in JUDGED and row["at_ms"] <= until_ms:
                wrong = judge(truth, row)
                if wrong and certainty == "inferred" and _hidden(truth, row):
                    result.count("inferred while answers waited for seconds, and untrue")
                elif wrong and not requests and _was_lent(truth, row):
                    result.count("seats that could not be given away for good, said to be taken")
                elif wrong:
                    result.count(f"untrue: {table} {certainty}")
                    text = f"{table} {row.get('member_id') or ''} {wrong}"
                    result.problem(f"{certainty} and untrue", truth.group_id, row["at_ms"], text)


def _was_lent(truth: Truth, row: dict[str, Any]) -> bool:
    """Whether a row says of a seat that it was taken when it was, or of who had it that it was there meanwhile: by the
    coordinator's own words, which do not say whom Scala's gives it back to when that cannot be stored."""
    member_id, at_ms = row.get("member_id"), row["at_ms"]
    by_ms = at_ms + (row.get("at_bound_ms") or 0)
    taken = "static_replaced" in (row.get("cause"), row.get("end_cause"), *(row.get("reasons") or ()))
    for seat in truth.lent:
        if member_id == seat.holder_id and taken and abs(at_ms - seat.from_ms) <= NEAR_MS:
            return True
        if member_id == seat.taker_id and seat.from_ms - NEAR_MS <= by_ms and at_ms <= seat.to_ms + NEAR_MS:
            return True
    return False


def _hidden(truth: Truth, row: dict[str, Any]) -> bool:
    """Whether what a row tells of happened, and was told, while nothing could be stored: what was asked for had no
    answer."""
    since_ms, told_at_ms = truth.unanswered_since_ms(row["at_ms"]), row["known_at_ms"]
    return bool(since_ms < row["at_ms"] and truth.unanswered_since_ms(told_at_ms) <= row["at_ms"])


def compare_last(result: Score, truth: Truth, stood: dict[str, list[dict[str, Any]]], until_ms: float) -> None:
    """Judge what is provisional still when everything has been read: nothing corrects it any more, so it is asked to be
    true as well. A prediction is open no longer when its deadline has passed."""
    judges = {"members": _member, "rebalances": _rebalance}
    for table, judge in judges.items():
        for row in stood[table]:
            result.count(f"stand: {table}")
            if row["certainty"] == "provisional" and row["at_ms"] <= until_ms:
                result.count(f"stand provisional: {table}")
                wrong = judge(truth, row)
                if wrong and table == "rebalances":
                    continue  # the ledger's score judges each that stands, and knows what happened in one instant
                if wrong and _of_one_instant(truth, row):
                    result.count("ends of one instant, said provisionally")
                elif wrong and _left(truth, row):
                    result.count("leaves whose reason is said provisionally")
                elif wrong:
                    result.count(f"stand provisional and untrue: {table}")
                    text = f"{table} {row.get('member_id') or ''} {wrong}"
                    result.problem("provisional and untrue at last", truth.group_id, row["at_ms"], text)
    open_join_phase = bool(truth.rebalances) and not 0 <= truth.rebalances[-1].joined_at_ms <= until_ms
    for row in stood["predictions"]:
        # Whoever stopped polling may be dead, which its session will show; who is silent may wait in a JoinGroup.
        waits = row["kind"] == "poll" or open_join_phase
        due_ms = until_ms if row["deadline_at_ms"] is None else row["deadline_at_ms"]
        if row["outcome"] == "open" and due_ms <= until_ms - LEFT_OPEN_MS and not waits:
            text = f"{row['member_id']} {row['kind']}, deadline {row['deadline_at_ms'] - START_MS:,.0f}"
            result.problem("prediction left open", truth.group_id, row["predicted_at_ms"], text)


def _of_one_instant(truth: Truth, row: dict[str, Any]) -> bool:
    """Whether it is said to have ended by one of two things of which nothing shows the first."""
    member_id, cause = row["member_id"], row["end_cause"]
    if cause in ("static_replaced", "session_expired") and ties.seat_taken_as_it_ended(truth, member_id):
        return True
    return any(
        ties.two_timers(truth, member_id, cause, life.cause, life.ended_at_ms) for life in _lives(truth, member_id)
    )


def _left(truth: Truth, row: dict[str, Any]) -> bool:
    """Whether a member is said to have left when it did: only its client knows why, if its version tells no reason."""
    return row["end_cause"] in _LEAVES and any(
        life.cause in _LEAVES and abs(off_ms(row["ended_at_ms"], row["at_bound_ms"], life.ended_at_ms)) <= NEAR_MS
        for life in _lives(truth, row["member_id"])
    )


def _lives(truth: Truth, member_id: str) -> list[Life]:
    return [life for life in truth.lives if life.member_id == member_id]


def _near(truth: Truth, member_id: str, at_ms: int) -> MemberView | None:
    """The member at an instant or right beside it."""
    near_ms = (at_ms, at_ms + NEAR_MS, at_ms - NEAR_MS, truth.unanswered_since_ms(at_ms))
    found = (truth.member_at(member_id, one) for one in near_ms)
    return next((member for member in found if member is not None), None)


def _ended(truth: Truth, member_id: str, at_ms: int, bound_ms: int | None, cause: str) -> str:
    for life in _lives(truth, member_id):
        same = cause in (life.cause, "unknown") or (cause, life.cause) == ("fenced", "static_replaced")
        if life.ended_at_ms >= 0 and same and abs(off_ms(at_ms, bound_ms, life.ended_at_ms)) <= NEAR_MS:
            return ""
    return f"said to end at {at_ms - START_MS:,.0f} by {cause}; {_lives(truth, member_id)}"


def _was_one_for_a_ms(truth: Truth, member_id: str, at_ms: int) -> bool:
    """Whether a process had its seat taken by the next one within the width of a stamp, by which a line may be said to
    be of the ms before or after."""
    brief = (one for one in _lives(truth, member_id) if 0 <= one.ended_at_ms - one.joined_at_ms <= 1)
    return any(abs(one.joined_at_ms - at_ms) <= 1 for one in brief)


def _member(truth: Truth, row: dict[str, Any]) -> str:
    member_id = row["member_id"]
    if row["ended_at_ms"] is not None:
        return _ended(truth, member_id, row["ended_at_ms"], row["at_bound_ms"], row["end_cause"])
    begun = row["joined_at_ms"] + (row["at_bound_ms"] or 0)
    found = _near(truth, member_id, row["at_ms"]) or _near(truth, member_id, max(row["at_ms"], begun))
    if found is None:
        brief = _was_one_for_a_ms(truth, member_id, row["joined_at_ms"])
        return "" if brief else "said to be a member; it was not"
    said = row["session_timeout_ms"]
    if said is not None and said != found.session_timeout_ms:
        later = truth.member_at(member_id, row["at_ms"] + NEAR_MS)
        if later is None or later.session_timeout_ms != said:
            return f"session timeout {found.session_timeout_ms}, said {said}"
    return ""


def _has_successor(truth: Truth, member_id: str, at_ms: int) -> bool:
    """Whether by an instant a life was over, replaced or evicted, and another one had its instance id, if only until it
    had to be given back."""
    if any(seat.holder_id == member_id and seat.from_ms <= at_ms + NEAR_MS for seat in truth.lent):
        return True
    over = [one for one in _lives(truth, member_id) if 0 <= one.ended_at_ms <= at_ms + NEAR_MS]
    return any(
        other.instance_id == one.instance_id != "" and one.ended_at_ms <= other.joined_at_ms <= at_ms + NEAR_MS
        for one in over
        for other in truth.lives
    )


def _transition(truth: Truth, row: dict[str, Any]) -> str:
    at_ms, cause = row["at_ms"], row["cause"]
    said = truth.says_of(row)
    if said is not None:
        return said
    if row["entity"] == "member":
        if cause == "fenced":  # it is told so at some time after somebody else had its place
            return "" if _has_successor(truth, row["member_id"], at_ms) else "said to be fenced; nobody had its place"
        if row["to_state"] == "Absent":
            return _ended(truth, row["member_id"], at_ms, row["at_bound_ms"], cause)
        if any(_near(truth, row["member_id"], at_ms + late_ms) for late_ms in (0, row["at_bound_ms"] or 0)):
            return ""
        if _was_one_for_a_ms(truth, row["member_id"], at_ms):
            return ""
        return f"said to be a member by {cause}; it was not"
    to, bound_ms = row["to_state"], row["at_bound_ms"]
    to_ms = at_ms + (MOST_LATE_MS if bound_ms is None else bound_ms) + (STORED_MS if cause == "group record" else 0)
    if to in truth.states_between(at_ms - NEAR_MS, to_ms + NEAR_MS):
        return ""
    starts = (one.started_at_ms for one in truth.rebalances)
    if to == GroupState.PREPARING and any(abs(off_ms(at_ms, to_ms - at_ms, start)) <= NEAR_MS for start in starts):
        return ""  # it began and ended within one step
    if any(abs(one.joined_at_ms - at_ms) <= NEAR_MS for one in truth.rebalances) and to == GroupState.COMPLETING:
        return ""
    view = truth.view_at(at_ms)
    return f"said {to} by {cause}; it was {view.state if view else 'Dead'}"


def _rebalance(truth: Truth, row: dict[str, Any]) -> str:
    found = [one for one in truth.rebalances if one.generation_before == row["generation_before"]]
    if not found:
        return f"no rebalance of generation {row['generation_before']}"
    # After a load, and by another group of the name, a generation is left a second time.
    true = min(found, key=lambda one: ledgers.distance(one, row))
    if true.trigger == "sync_timeout" and not true.member_id:
        return ""  # of an id left behind by a replaced static member: nothing can show it
    if abs(off_ms(row["started_at_ms"], row["at_bound_ms"], true.started_at_ms)) > NEAR_MS:
        return f"started at {row['started_at_ms'] - START_MS:,.0f}, {row['trigger']}; {true}"
    if {row["trigger"], true.trigger} == {"metadata_changed", "topic_metadata"} and truth.converted_between(
        true.started_at_ms - 1, true.started_at_ms
    ):
        return ""  # a conversion looks at the topics for the first time, and takes a seat: either makes the epoch
    both_left = {row["trigger"], true.trigger} <= {"poll_timeout", "member_left", "removed_by_admin"}
    if row["trigger"] != "unknown" and row["trigger"] != true.trigger and not both_left:
        return f"trigger {row['trigger']}; {true}"
    named = row["trigger_member_id"] or ""
    if true.trigger == "sync_timeout" and named in ledgers.unsynced(truth, true):
        return ""  # one timer removes all who are missing, in the order of a hash table
    if row["certainty"] == "exact" and row["trigger"] == true.trigger and named != true.member_id:
        return f"begun by {named}; {true}"
    return ""


def _health(truth: Truth, row: dict[str, Any]) -> str:
    """The deadline, if the member stays silent: it is void when the member waits in a JoinGroup or SyncGroup."""
    member_id, at_ms = row["member_id"], row["at_ms"]
    if row["status"] == "ended":
        cause = row["reasons"][0] if row["reasons"] else "unknown"
        return _ended(truth, member_id, at_ms, None, cause)
    given_up_at = truth.given_up_at(at_ms)
    # A deadline is one of the coordinator that was heard last. Whoever has given the group up tells nobody.
    found = truth.member_at(member_id, at_ms if given_up_at is None else given_up_at - 1)
    if found is None:
        gone = any(abs(life.ended_at_ms - at_ms) <= NEAR_MS for life in _lives(truth, member_id))
        unseen = any(truth.member_between(member_id, truth.unanswered_since_ms(at_ms), at_ms))
        return "" if gone or unseen else "has a deadline; it was no member"
    said = row["session_deadline_at_ms"]
    if said is None or found.waits_for_join or found.waits_for_sync or found.session_deadline_at_ms < 0:
        return ""
    width_ms = JAVA_DEADLINE_MS if truth.java or truth.starved else DEADLINE_MS
    if abs(found.session_deadline_at_ms - said) <= width_ms:
        return ""
    if truth.converted_just_before(at_ms):
        return ""
    if given_up_at is not None:
        at_ms = given_up_at - 1
    before = truth.member_at(member_id, at_ms - 1)  # instants are whole ms: it may have been answered within this one
    if before is not None and (before.waits_for_join or before.waits_for_sync):
        return ""
    near = [truth.member_at(member_id, at_ms + shift) for shift in (-1, -2, -4, -NEAR_MS, NEAR_MS)]
    near += truth.member_between(member_id, truth.unanswered_since_ms(at_ms), at_ms)
    if any(one is not None and abs(one.session_deadline_at_ms - said) <= width_ms for one in near):
        return ""
    return f"deadline {found.session_deadline_at_ms - START_MS:,.0f}, said {said - START_MS:,.0f}"
