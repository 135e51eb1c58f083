"""The rebalance of a classic group that is under way: the table has its row when it is over, so here is one until then.

A classic group's JoinGroups are logged when they are answered, so that only then it is known whom a rebalance waited
for. What began it may be known at once, as a change of the group's state: a leave or a session that is over. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from kardia.story.facts import ENDS_THAT_BEGIN, Material, Row
from kardia.tables import TABLES, TRIGGERS
from kardia.tolerances import LATE_MS


def with_its_row(material: Material) -> Material:
    """The material with a row of the rebalance that its last change of state has begun, if there is none yet."""
    changes = [row for row in material.transitions if row["entity"] == "group"]
    if not changes or changes[-1]["to_state"] != "PreparingRebalance":
        return material
    began = changes[-1]
    if any(_is_of(row, began["at_ms"]) for row in material.rebalances):
        return material
    return replace(material, rebalances=(*material.rebalances, _row(material, began)))


def _is_of(row: Row, at_ms: int) -> bool:
    """Whether a row is of the rebalance that began at an instant, or of a later one. One that was never over, because
    its assignment never came, is of neither."""
    over_ms = row["completed_at_ms"]
    return bool(row["started_at_ms"] >= at_ms - LATE_MS or (over_ms is not None and over_ms > at_ms))


def _row(material: Material, began: Row) -> Row:
    at_ms, trigger = began["at_ms"], began["cause"] if began["cause"] in TRIGGERS else "unknown"
    ended = [
        life
        for life in material.lives
        if life["ended_at_ms"] is not None
        and life["end_cause"] in ENDS_THAT_BEGIN.get(trigger, ())
        and abs(life["ended_at_ms"] - at_ms) <= LATE_MS
    ]
    who = min(ended, key=lambda life: abs(int(life["ended_at_ms"]) - at_ms), default=None)
    there = [
        life
        for life in material.lives
        if life["joined_at_ms"] < at_ms and (life["ended_at_ms"] is None or life["ended_at_ms"] >= at_ms)
    ]
    known = {
        name: began[name] for name in ("cluster_id", "group_id", "at_ms", "known_at_ms", "certainty", "at_bound_ms")
    }
    return dict.fromkeys(TABLES["rebalances"].names) | {
        **known,
        "protocol": "classic",
        "started_at_ms": at_ms,
        "trigger": trigger,
        "trigger_member_id": None if who is None else who["member_id"],
        "trigger_client_id": None if who is None else who["client_id"],
        "generation_before": began["generation_id"],
        "members_before": len(there),
    }
