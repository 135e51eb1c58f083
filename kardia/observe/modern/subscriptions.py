"""A member that asks for other topics than before: what its heartbeat shows where no record is read.

Other names are a new epoch at once; another regular expression makes one when it has been looked up, which nobody asks
for. An answer has the new epoch unless its member must give something up first, or, since 4.3, the target is computed
later (`assignment.interval.ms`). Sources: `GroupMetadataManager.hasMemberSubscriptionChanged`,
`maybeUpdateRegularExpressions`.
"""

from __future__ import annotations

from msgspec.structs import replace

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.observe.deadlines.handling import took_effect
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import ends, epochs, evidence, groups
from kardia.observe.state.group import Cause, Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember

_SUBSCRIBES = frozenset({"consumer", "share"})
"""Protocols whose heartbeats name topics; those of Kafka Streams have a topology."""


def changes(modern: ModernGroup, own: ModernMember, event: Event) -> bool:
    """Whether a heartbeat names other topics than its member was known to have. Notes another expression."""
    detail = event.detail or {}
    if modern.protocol not in _SUBSCRIBES or modern.by_records or own.topics is None:
        return False
    if str(detail.get("regex", own.regex)) != own.regex:
        modern.resolves = True
    return "topics" in detail and set(detail["topics"]) != set(own.topics)


def count(
    facts: Facts, group: Group, modern: ModernGroup, member: Member, event: Event, answered: int, stayed: Doubts
) -> None:
    """The change is an epoch: one that was shown already, or one more. `stayed`: what is in doubt about its member not
    having ended unseen, and joins anew with these topics."""
    if not _is_one(facts, group, member, event, answered):
        return
    at, by = took_effect(event, facts.coordinator)
    is_whole = group.gap_at_ms < 0 and group.unsure_to < 0  # else it may have been changed unseen before
    doubts: Doubts = stayed | (SURE if is_whole else Doubt.LINES_LOST)
    id_of, name, seat = member.member_id, member.client_id, member.instance_id
    why = Cause(at, "metadata_changed", id_of, name, seat, "", doubts, by)
    shown_before = [bump for bump in epochs.unexplained(group) if ends.fits(bump.cause, at, by)]
    if shown_before:
        if len(shown_before) > 1:
            why.doubts = Doubt.EPOCH_UNSURE
        epochs.explain(facts, group, shown_before[0], why)
        return
    last = modern.bumps[-1] if modern.bumps else None
    if last is not None and at < last.cause.at <= event.decided_at_ms and answered <= last.epoch == group.generation:
        epochs.begin_before(facts, group, last, why, answered)  # it was answered after what came next
        return
    if answered > group.generation + 1:
        evidence.hidden(facts, group, answered - 1, at, by)
    shown = answered > group.generation
    if not shown:
        why = replace(why, doubts=why.doubts | Doubt.EPOCH_COUNTED)
    epochs.raised(facts, group, group.generation + 1, why, len(groups.present(group)), shown=shown)


def _is_one(facts: Facts, group: Group, member: Member, event: Event, answered: int) -> bool:
    """Whether the answer leaves room for an epoch of its own. Who has nothing to give up is answered with it at once
    where targets are computed at once; without it the coordinator knew of the change."""
    own = member.modern
    if group.generation < 0 or own is None:
        return False
    waits = bool(own.revoking) or "assigned" in (event.detail or {})
    return answered > group.generation or waits or not evidence.has_targets_at_once(facts)
