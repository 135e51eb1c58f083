"""Predictions of session timeouts against what happened: recall, precision at half of the timeout, lead.

Recall counts members whose silence lasted until they were evicted. Inside a rebalance silence is no evidence, because
a member may wait in a JoinGroup or SyncGroup that is logged when it is answered: those are counted apart. Precision
is that of the predictions that were open when half of the timeout had passed in silence: each came true, or the member
was heard again after a real silence. What is said to have become of a prediction is held against what did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kardia.kafka.states import GroupState
from tests.truth.fleet import ties
from tests.truth.fleet.damage import Damage
from tests.truth.fleet.truth import STAMPS_MS, Life, Truth
from tests.truth.fleet.world import START_MS

if TYPE_CHECKING:
    from kardia.coordinator.classic.operations import View
    from tests.truth.fleet.score import Score

NEAR_MS = 12


def compare(
    result: Score,
    truth: Truth,
    rows: list[dict[str, Any]],
    told: list[dict[str, Any]],
    until_ms: float,
    damage: Damage,
) -> None:
    """Score the session predictions of one group: `rows` as they stand, `told` as they were said."""
    made = {(row["member_id"], row["predicted_at_ms"]): row["certainty"] for row in told if row["outcome"] == "open"}
    ours: dict[str, list[dict[str, Any]]] = {}
    dated = [row for row in rows if row["deadline_at_ms"] is not None]  # else it says no instant that could be scored
    for row in dated:
        if row["kind"] == "session" and row["deadline_at_ms"] <= until_ms:
            row["certainty_when_made"] = made.get((row["member_id"], row["predicted_at_ms"]), "")
            ours.setdefault(row["member_id"], []).append(row)
    for life in truth.lives:
        if life.cause == "session_expired" and 0 <= life.ended_at_ms <= until_ms:
            view = truth.view_at(life.due_ms - life.session_timeout_ms / 2)
            seen = view is not None and view.state == GroupState.STABLE and not _owes_sync(view, life)
            where = "timeouts" if seen else "timeouts inside a rebalance"
            result.count(where)
            found = [
                row
                for row in ours.get(life.member_id, [])
                if abs(row["deadline_at_ms"] - life.due_ms) <= NEAR_MS and row["predicted_at_ms"] < life.ended_at_ms
            ]
            if not found and not seen:
                continue
            began_ms = life.due_ms - life.session_timeout_ms
            if not found and (damage.begins_at_ms > 0 or damage.dark(began_ms, life.ended_at_ms)):
                result.counts[where] -= 1
                result.count("timeouts in the dark")
                continue
            if not found:
                result.problem("not foretold", truth.group_id, life.ended_at_ms, life.member_id)
                continue
            result.count(f"{where}: foretold")
            lead_ms = life.ended_at_ms - found[0]["predicted_at_ms"]
            inside = "" if seen else " inside a rebalance"
            result.error(f"lead{inside}", lead_ms)
            if life.session_timeout_ms > 0:
                share = round(100 * lead_ms / life.session_timeout_ms)
                result.error(f"lead{inside}, share of the timeout in %", share)
    for member_id, mine in ours.items():
        for row in mine:
            result.count("predictions")
            result.count(f"predictions: {row['outcome']}")
            _precise(result, truth, member_id, row)
            _outcome(result, truth, member_id, row)


def _owes_sync(view: View, life: Life) -> bool:
    """Whether the member was to be removed for a missing SyncGroup, no later than its session would be over."""
    return life.member_id in view.pending_sync and view.sync_deadline_at_ms <= life.due_ms


def _outcome(result: Score, truth: Truth, member_id: str, row: dict[str, Any]) -> None:
    """Whether a prediction became what it is said to have become: its session ran out at that deadline, or did not."""
    came_true = any(
        life.member_id == member_id
        and life.cause == "session_expired"
        and abs(life.due_ms - row["deadline_at_ms"]) <= NEAR_MS
        for life in truth.lives
    )
    if row["certainty"] == "provisional" and _of_one_instant(truth, member_id):
        result.count("outcomes of one instant, said provisionally")
    elif (row["outcome"], came_true) in (("averted", True), ("came_true", False)):
        text = f"{member_id}: deadline {row['deadline_at_ms'] - START_MS:,.0f} {row['outcome']}, {row['certainty']}"
        result.problem("untrue outcome", truth.group_id, row["predicted_at_ms"], text)


def _of_one_instant(truth: Truth, member_id: str) -> bool:
    """Whether nothing shows if its session was what ended a member."""
    return ties.seat_taken_as_it_ended(truth, member_id) or any(
        ties.two_timers(truth, member_id, "session_expired", other, life.ended_at_ms)
        for life in truth.lives
        if life.member_id == member_id
        for other in ("rebalance_timeout", "sync_timeout")
    )


def _precise(result: Score, truth: Truth, member_id: str, row: dict[str, Any]) -> None:
    """Whether at half of its timeout the member was silent in truth and its timer ran to the deadline that was said."""
    before = truth.member_at(member_id, row["predicted_at_ms"] - 1)
    if before is None:
        return
    half_ms = row["deadline_at_ms"] - before.session_timeout_ms / 2
    if row["outcome"] == "averted" and row["outcome_at_ms"] < half_ms:
        result.count("predictions taken back before half")
        return
    if row["outcome"] == "averted" and truth.converted_between(row["predicted_at_ms"], half_ms):
        result.count("predictions undone by a conversion")  # records tell of it a second later
        return
    if truth.unanswered_since_ms(half_ms) < half_ms:
        result.count("predictions while answers waited")  # which nobody knew then
        return
    # A renewal in the very ms in which half has passed has no order with it: both are cut to 1 ms.
    around = [truth.member_at(member_id, at_ms) for at_ms in (half_ms, half_ms - STAMPS_MS)]
    sure = "" if row["certainty_when_made"] == "inferred" else " (provisional)"
    result.count(f"predictions at half{sure}")
    if any(one is not None and abs(one.session_deadline_at_ms - row["deadline_at_ms"]) <= NEAR_MS for one in around):
        result.count(f"predictions at half{sure}: right")
    elif not sure:
        text = f"{member_id}: deadline said {row['deadline_at_ms']}, then {around[0]}"
        result.problem("foretold and untrue", truth.group_id, row["predicted_at_ms"], text)
