"""On how many occasions a group has rebalanced: what belongs to one start-up, or to one shut-down, counts once.

Members that are started together join within seconds, each with a rebalance of its own where the coordinator does not
wait for the first ones; those that are stopped together leave alike. So a run of rebalances in which members only come,
or only go by themselves, is one occasion, and so is a restart of everybody: all go, nobody is left, all come. Whoever
comes and goes in turn, beside others who stay, rebalances them each time. Pure; reads no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardia.rollouts import Life, Step

PAUSE_MAX_MS = 60_000
"""Longest pause within an occasion: who comes later than that was not started with the others."""

COMES, GOES = "member_joined", "member_left"
_SECOND = ("leader_rejoined", "metadata_changed")
"""Triggers of what follows by itself: second steps of a cooperative assignor."""


def occasions(steps: Sequence[Step], lives: Sequence[Life]) -> list[tuple[Step, ...]]:
    """Rebalances, in order of time, by occasion; `lives` of everybody who came or went meanwhile."""
    runs: list[list[Step]] = []
    for step in steps:
        if runs and _goes_on(runs[-1], step, lives):
            runs[-1].append(step)
        else:
            runs.append([step])
    return [tuple(run) for run in runs]


def _goes_on(run: Sequence[Step], step: Step, lives: Sequence[Life]) -> bool:
    """Whether a rebalance belongs to the occasion of those before it."""
    way = next((one.trigger for one in reversed(run) if one.trigger not in _SECOND), run[0].trigger)
    if way not in (COMES, GOES) or step.started_at_ms - run[-1].completed_at_ms > PAUSE_MAX_MS:
        return False
    if step.trigger in _SECOND:
        return True
    if step.trigger == COMES and way == GOES:
        return _was_empty(step.started_at_ms, lives)
    begin_ms = next(one.started_at_ms for one in run if one.trigger == way)
    came = any(begin_ms < life.joined_at_ms <= step.completed_at_ms for life in lives)
    causes = {life.end_cause for life in lives if begin_ms <= (life.ended_at_ms or -1) <= step.completed_at_ms}
    return step.trigger == way and (not causes if way == COMES else not came and causes <= {"left"})


def _was_empty(at_ms: int, lives: Sequence[Life]) -> bool:
    """Whether everybody of before had gone."""
    before = (life for life in lives if life.joined_at_ms < at_ms)
    return all(life.ended_at_ms is not None and life.ended_at_ms <= at_ms for life in before)
