"""When to look at a group again in a phase of a rebalance: timers of ours that come after those of the broker.

Scheduling only: the instants are from `phases`, what is concluded when they come is in `timeouts`.
"""

from __future__ import annotations

from kardia.kafka.states import GroupState
from kardia.observe.deadlines.phases import is_deserted, longest_ms, longest_unseen_ms, sync_deadline
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import NEVER, Group, Member, Rebalance
from kardia.tolerances import GRACE_MS


def in_burst(facts: Facts, group: Group, at: float) -> bool:
    """Whether the answers of a join burst may still be coming in."""
    current = group.rebalance
    return (
        current is not None
        and not current.settled
        and current.joined_at_ms >= 0
        and at < current.joined_at_ms + facts.settings.burst_ms  # at that instant its timer has fired already
    )


def watch_deserted(facts: Facts, group: Group, at: float) -> None:
    """Look again a moment after the last member ended or was due: if anybody waits in a JoinGroup, it is answered now,
    because nobody is left to wait for. No answer shows that nobody waits, and that the group is Empty since."""
    if not is_deserted(group, NEVER):
        return
    ended = (over.ended_at_ms for over in group.ended.values())
    latest = (member.over_from(group.latest_deadline(member)) for member in group.members.values())
    last_at = max([at, *latest, *ended])
    if is_deserted(group, last_at):  # whoever is handed an id after that comes to an Empty group
        group.deserted_at_ms = last_at
        group.deserted_by = facts.evidence_text()
        facts.schedule(group, last_at + GRACE_MS, "deserted", str(group.generation))


def watch_overdue(facts: Facts, group: Group, member: Member) -> None:
    """Look again when a JoinGroup in which an overdue member of a Stable group may wait would have been answered."""
    if group.state == GroupState.STABLE and longest_ms(group) > 0:
        due = member.deadline + longest_unseen_ms(group) + GRACE_MS
        facts.schedule(group, due, "overdue", member.member_id)


def watch_sync_timer(facts: Facts, group: Group) -> None:
    """Look again when the time for SyncGroup was over, where a single member may let it pass, and when a JoinGroup in
    which somebody may have waited unseen, since before that, would have been answered. Where an old id has not synced,
    nobody has to be waited for: the coordinator begins a rebalance then."""
    at, current = sync_deadline(group), group.rebalance
    if at >= 0 and current is not None and current.never_synced:
        facts.schedule(group, at + GRACE_MS, "unsynced", str(group.generation))
    elif at >= 0 and len(group.members) == 1:
        facts.schedule(group, at + longest_unseen_ms(group) + GRACE_MS, "unsynced", str(group.generation))


def watch_join_timer(facts: Facts, group: Group, current: Rebalance) -> None:
    """Look again when the rebalance timeout is over: JoinGroups that wait are answered then; no answer shows that none
    waited."""
    if current.started_at_ms >= 0 and longest_ms(group) > 0:
        due = current.started_at_ms + longest_unseen_ms(group) + GRACE_MS
        facts.schedule(group, due, "drop", str(current.generation_before))
