"""Storms: on how many occasions a group has rebalanced of late, the steps of a rolling restart left out.

One count for the notifier, the metric, the Prometheus rule and the boards, so that they agree. Pure: the instant is an
argument.
"""

from __future__ import annotations

from api.present.current import GroupView
from kardia.occasions import occasions
from kardia.rollouts import Life, Step, rollouts

WITHIN_MS, REBALANCES = 300_000, 4
"""A storm: so many rebalances within so long."""


def recent(view: GroupView, now_ms: int) -> list[Step]:
    """Rebalances that were over within `WITHIN_MS` before an instant and are no steps of a roll-out; the first of each
    occasion."""
    late = [step for step in view.steps if now_ms - step.completed_at_ms < WITHIN_MS]
    if len(late) < REBALANCES:
        return late  # no storm in any case: nobody need ask why
    first = view.remembered("occasions", _first_of_each)
    return [step for step in late if step in first]


def _first_of_each(view: GroupView) -> frozenset[Step]:
    steps = sorted(view.steps, key=lambda step: step.started_at_ms)
    lives = [
        Life(row.member_id, row.joined_at_ms, row.ended_at_ms, row.end_cause)
        for rows in (view.lives, view.ended)
        for row in rows.values()
    ]
    rolled = {step for one in rollouts(steps, lives) for step in one.steps}
    others = [step for step in steps if step not in rolled]
    return frozenset(run[0] for run in occasions(others, lives))
