"""Which groups the view in memory holds no longer: those without members, after a time, and the oldest beyond a bound.

Their rows stay in the tables, and a group that comes back is held again from its next row on. The times are those of
the observer (`kardia.observe.facts.forgetting`), so that the present shows what the job still knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from api.present.current import ClusterView, GroupView
from kardia.kafka.states import GroupState
from kardia.observe.facts.forgetting import DELETED_MS, EMPTY_MS


def note(cluster: ClusterView, groups: Iterable[GroupView]) -> None:
    """Groups that a batch has changed: who has no members now waits to be forgotten, who has some does not."""
    for group in groups:
        cluster.without_members.pop(group.group_id, None)
        if not group.lives:
            cluster.without_members[group.group_id] = None


def forget(cluster: ClusterView, without_members_max: int) -> list[str]:
    """Drop groups from a view that is in the making, and name them. One batch in twenty drops many, so that each costs
    little."""
    now_ms, waiting = cluster.reach.newest_ms, cluster.without_members
    over: list[str] = []
    if len(waiting) > without_members_max:
        over = list(waiting)[: len(waiting) - without_members_max + without_members_max // 20]
    else:
        for group_id in waiting:
            if now_ms is None or not _is_over(cluster.groups[group_id], now_ms):
                break
            over.append(group_id)
    for group_id in over:
        del waiting[group_id], cluster.groups[group_id]
    if over:
        cluster.by_name = [entry for entry in cluster.by_name if entry[1] in cluster.groups]
        cluster.forgotten += len(over)
    return over


def _is_over(group: GroupView, now_ms: int) -> bool:
    if group.state is None:
        return False
    held_ms = DELETED_MS if group.state_name == GroupState.DEAD else EMPTY_MS
    return bool(now_ms >= group.state.at_ms + held_ms)
