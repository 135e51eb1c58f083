"""An epoch that nobody asked for: what began it where nothing else can have.

By requests alone a new epoch shows in an answer, and what made it does not. It was a topic that was created, deleted or
given more partitions, if nobody came, went or asked for other topics, and no member can have been gone: the
coordinator looks at the topics of a group with the next heartbeat. Sources: `consumerGroupHeartbeat`,
`shareGroupHeartbeat` and `streamsGroupHeartbeat` of `GroupMetadataManager`.
"""

from __future__ import annotations

from msgspec.structs import replace

from kardia.doubts import Doubt
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import groups
from kardia.observe.state.group import NEVER, Cause, Group
from kardia.observe.state.modern import Bump


def cause_of(facts: Facts, group: Group, bump: Bump) -> Cause:
    """What is told to have begun a rebalance. By elimination it is never more than provisional: who came by a
    connection that broke was in no line."""
    cause = bump.cause
    if cause.trigger != "unknown" or not _is_of_topics(facts, group, bump):
        return cause
    return replace(cause, trigger="topic_metadata", doubts=Doubt.BY_ELIMINATION)


def _is_of_topics(facts: Facts, group: Group, bump: Bump) -> bool:
    cause, modern = bump.cause, group.modern
    if modern is None or modern.by_records or modern.mixed or modern.resolves or not group.membership_complete:
        return False
    if bump.epoch - bump.epoch_before != 1 or bump.spare > 0 or cause.at < 0 or cause.by is None:
        return False
    if facts.is_blind(cause.at, cause.by) or max(group.gap_at_ms, group.unsure_to, group.moved_at_ms) >= 0:
        return False
    members = group.members.values()
    if any(member.modern is None or member.modern.regex for member in members):
        return False
    if any(cause.at <= member.joined_at_ms <= cause.by for member in members):
        return False
    if any(cause.at <= over.ended_at_ms <= cause.by or over.by == NEVER for over in group.ended.values()):
        return False
    return not any(groups.may_be_gone(group, member, cause.by) for member in members)
