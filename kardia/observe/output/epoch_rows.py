"""Rows of `rebalances` about groups that have epochs: puts values into the columns; decides nothing."""

from __future__ import annotations

from typing import Any

from kardia.doubts import Doubts, certainty_of
from kardia.observe.output.rows import bound, in_doubt, instant, known
from kardia.observe.state.group import NEVER, Cause, Group
from kardia.observe.state.modern import Bump
from kardia.tables import Row


def epoch_row(
    cluster: str,
    group: Group,
    bump: Bump,
    cause: Cause,
    known_at_ms: int,
    doubts: Doubts,
    straggler_ms: float,
    over: bool,
    withdrawn: bool,
    computed_at_ms: float,
) -> Row:
    """Row of `rebalances`: `generation_before` and `generation_after` are group epochs. `cause`: what is told to have
    begun it. `over`: every partition has an owner again. `computed_at_ms`: when the target was computed, NEVER where
    that is not known."""
    complete = bump.completed_at_ms >= 0
    return (
        cluster,
        group.group_id,
        group.shard,
        instant(bump.started_at_ms),
        known_at_ms,
        certainty_of(doubts),
        instant(bump.started_at_ms),
        known(computed_at_ms),
        known(bump.completed_at_ms),
        cause.trigger,
        cause.member_id or None,
        cause.client_id or None,
        cause.instance_id or None,
        cause.reason or None,
        bump.epoch_before,
        bump.epoch,
        bump.members_before if bump.members_before >= 0 else None,
        bump.members_after if complete else None,
        stragglers(bump, straggler_ms),
        None,
        None,
        None,
        _lost_s(bump),
        int(bump.stopped_ms / 1000 + 0.5) if over and bump.stopped_ms >= 0 else None,
        None,
        bound(bump.started_at_ms, cause.by),
        bound(bump.completed_at_ms, bump.completed_by) if complete else None,
        withdrawn or None,
        group.protocol,
        bump.moved if over and bump.moved >= 0 else None,
        None,
        in_doubt(doubts),
    )


def stragglers(bump: Bump, straggler_ms: float) -> list[dict[str, Any]]:
    """Who was waited for longer than `straggler_ms`, the longest first, and what each had to give up before."""
    waited = [
        {
            "member_id": one.member_id,
            "client_id": one.client_id or None,
            "waited_ms": int(one.at_ms - max(one.since_ms, bump.started_at_ms) + 0.5),
            "joined": joined,
            "pending": False,
            "partitions": one.held_back,
        }
        for joined, some in ((True, bump.reached), (False, bump.dropped))
        for one in some
        if one.at_ms - max(one.since_ms, bump.started_at_ms) > straggler_ms
    ]
    return sorted(waited, key=lambda one: (-one["waited_ms"], one["member_id"]))


def _lost_s(bump: Bump) -> int | None:
    """Member-seconds are lost where all stop; here nobody does."""
    return None if bump.completed_at_ms == NEVER else 0
