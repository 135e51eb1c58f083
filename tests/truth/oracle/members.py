"""What Kafka's classes hold of a member; both coordinators name it the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardia.coordinator.classic.operations import MemberView


def member_view(member: Any, instances: dict[str, str | None], deadline: Callable[[str], int]) -> MemberView:
    """View of a member. `instances` remembers static ids by member id; `deadline` gives the instant of its session
    timer, which a member that waits may have without effect, unless its first join waits."""
    member_id = str(member.memberId())
    if member_id not in instances:
        instance_id = member.groupInstanceId()
        # A member that 2.3 to 2.7 have loaded has an instance id that is nothing.
        held = None if instance_id.isEmpty() else instance_id.get()
        instances[member_id] = None if held is None else str(held)
    waits_for_join = bool(member.isAwaitingJoin())
    waits_for_sync = bool(member.isAwaitingSync())
    is_new = bool(member.isNew())
    counts = is_new or not (waits_for_join or waits_for_sync)
    return MemberView(
        member_id,
        instances[member_id],
        int(member.sessionTimeoutMs()),
        int(member.rebalanceTimeoutMs()),
        waits_for_join,
        waits_for_sync,
        is_new,
        deadline(member_id) if counts else -1,
    )
