"""What is said to have been between two instants, against the truth: samples of the admin API prove no more.

Ends whose cause is unknown, members that came, rebalances that were not seen themselves. Instants in ms, of bounds by
the clock of whoever asked, which is `apart_ms` off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kardia.kafka.states import GroupState
from tests.truth.fleet.bounds import off_ms
from tests.truth.fleet.claimed_states import BETWEEN
from tests.truth.fleet.truth import Life, TrueRebalance, Truth

if TYPE_CHECKING:
    from tests.truth.fleet.score import Score

NEAR_MS = 2
"""Instants of the truth are cut to 1 ms, and so are those of rows."""

OUTSIDE = "outside its bounds"
"""The problem of all that was not when it is said to have been."""

_SEEN = frozenset({GroupState.PREPARING, GroupState.COMPLETING})


def compare_end(result: Score, truth: Truth, life: Life, row: dict[str, Any], kind: str, apart_ms: float) -> None:
    """An end whose cause is not known. Whose seat somebody else had for a while may be said to have ended then."""
    ended = [life.ended_at_ms, *(seat.from_ms for seat in truth.lent if seat.holder_id == life.member_id)]
    off = min((off_ms(row["ended_at_ms"], row["at_bound_ms"], at_ms) for at_ms in ended), key=abs)
    if abs(off) <= NEAR_MS + apart_ms:
        result.count(f"{kind}: within their bounds")
        if row["at_bound_ms"] is not None:
            result.error("width of the bounds of an end", row["at_bound_ms"])
    else:
        text = f"{life.member_id}: {life.cause} {off:+d} ms off, bound {row['at_bound_ms']}"
        result.problem(OUTSIDE, truth.group_id, life.ended_at_ms, text)


def compare(result: Score, truth: Truth, rows: list[dict[str, Any]], until_ms: float, apart_ms: float) -> None:
    """Rows of `transitions` of a group that samples have told."""
    told = [row for row in rows if row["cause"] in BETWEEN and row["at_bound_ms"] is not None]
    for row in told:
        if row["entity"] == "member":
            _came(result, truth, row, apart_ms)
        elif row["cause"] == "rebalanced":
            _rebalanced(result, truth, row, apart_ms)
    shown = [row for row in told if row["cause"] == "rebalanced" or row["to_state"] in _SEEN]
    for one in truth.rebalances:
        if 0 <= one.joined_at_ms <= until_ms and shown:
            result.count("rebalances: shown by samples", any(_meets(one, row, apart_ms) for row in shown))


def _came(result: Score, truth: Truth, row: dict[str, Any], apart_ms: float) -> None:
    """Whose seat could not be given away for good comes twice; who had it is shown as well."""
    member_id = row["member_id"]
    came = [life.joined_at_ms for life in truth.lives if life.member_id == member_id]
    came += [seat.from_ms for seat in truth.lent if seat.taker_id == member_id]
    came += [seat.to_ms for seat in truth.lent if seat.holder_id == member_id]
    if not any(abs(off_ms(row["at_ms"], row["at_bound_ms"], at_ms)) <= NEAR_MS + apart_ms for at_ms in came):
        result.problem(OUTSIDE, truth.group_id, row["at_ms"], f"came, bound {row['at_bound_ms']}; {came}")


def _rebalanced(result: Score, truth: Truth, row: dict[str, Any], apart_ms: float) -> None:
    if not any(_meets(one, row, apart_ms) and one.assigned_at_ms >= 0 for one in truth.rebalances):
        result.problem(OUTSIDE, truth.group_id, row["at_ms"], f"rebalanced, bound {row['at_bound_ms']}; it had not")


def _meets(one: TrueRebalance, row: dict[str, Any], apart_ms: float) -> bool:
    """Whether a rebalance lasted at some time between the bounds of a row."""
    over_ms = max(one.joined_at_ms, one.assigned_at_ms)
    return one.started_at_ms <= row["at_ms"] + row["at_bound_ms"] + NEAR_MS and (
        over_ms < 0 or over_ms >= row["at_ms"] - NEAR_MS
    )
