"""A static member that comes back while its group completes: answered with the generation that has just begun.

Up to 2.3 it is answered at once, within milliseconds of those who had waited, so that its answer looks like one of the
burst that ends the join phase. The leader's list tells them apart: it names the process before it, in the same seat.
Source: `GroupCoordinator.doJoinGroup`, case CompletingRebalance of a known static member, 2.3.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives
from kardia.observe.state.group import Group, Join, Rebalance
from kardia.tolerances import TWO_STAMPS_MS


def taken_since(current: Rebalance) -> list[tuple[str, Join]]:
    """JoinGroups of the burst that came after the join phase, oldest first, each with the id that it replaced; they are
    no part of the rebalance any more."""
    listed = current.listed or {}
    holders = {instance_id: member_id for member_id, instance_id in listed.items() if instance_id}
    came = [
        join
        for join in current.joins
        if join.instance_id in holders and not join.asked_id and join.member_id not in listed
    ]
    taken = []
    for join in sorted(came, key=lambda one: one.handled_at_ms):
        taken.append((holders[join.instance_id], join))
        holders[join.instance_id] = join.member_id
    current.joins = [join for join in current.joins if join not in came]
    return taken


def hand_over(facts: Facts, group: Group, current: Rebalance, taken: list[tuple[str, Join]]) -> None:
    """Who held the seat has ended, who took it is a member; its session runs on the time-out stored before."""
    replaced = {old_id for old_id, _ in taken}
    for old_id, join in taken:
        at = max(join.handled_at_ms, current.joined_at_ms)
        near = [one for _, one in taken if one.instance_id == join.instance_id and one is not join]
        # Of two processes within a stamp it is not known which came first.
        in_order = all(abs(one.handled_at_ms - join.handled_at_ms) > TWO_STAMPS_MS for one in near)
        doubts: Doubts = SURE if in_order else Doubt.STAMPS_TIED
        old, member = group.members.get(old_id), group.members.get(join.member_id)
        if current.listed is not None:
            current.listed.pop(old_id, None)
            current.listed[join.member_id] = join.instance_id
        if group.leader == old_id:
            group.leader = join.member_id
        if old is not None:
            lives.end(facts, group, old, at, "static_replaced", "", doubts)
        if member is None:
            continue  # replaced by another process of this burst
        if old is not None and old.session_ms >= 0 and member.session_renewed_at_ms <= at:
            member.session_renewed_at_ms = at + old.session_ms - member.session_ms
        group.instances[join.instance_id] = join.member_id
        member.joined_at_ms = at
        facts.emit_transition(group, at, join.member_id, "Absent", "Member", "static_replaced", SURE)
        if join.member_id not in replaced:
            facts.emit_member(group, member, at, doubts)
            facts.watch(group, member)
