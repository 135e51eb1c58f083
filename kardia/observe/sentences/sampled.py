"""What a sample of the admin API proves of a group: alone, or beside the sentences of server.log.

The coordinator is asked now and then how a group is; what is other than the time before changed at some time between
the two questions, and that is all that is known: every row says both instants. An answer was given at some time after
its question, so the change before it and the one after it may both lie between the two. Who is gone left or was
evicted, which is not told, even where another process has its seat. What sentences have told stands: beside them a
sample only names members. Whoever asks has another clock than the broker: an instant of a sentence less than
`CLOCKS_APART_MS` away may lie on either side of a sample.
Sources: `KafkaAdminClient.describeConsumerGroups`, `GroupMetadataManager.describeGroups`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from kardia.doubts import Doubt, Doubts
from kardia.events import CLOCKS_APART_MS, Event
from kardia.evidence_levels import GONE_REASON, TAKEN_REASON
from kardia.kafka.libraries import recognise
from kardia.kafka.states import GroupState
from kardia.observe.facts import forgetting
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.sentences import lines, naming
from kardia.observe.state.group import NEVER, Group, Member


def on_sample(facts: Facts, event: Event) -> None:
    """One answer about a group; its instants are those of the machine that asked."""
    detail = event.detail or {}
    group = naming.group_of(facts, event)
    since = _since(group, float(detail.get("since_ms", NEVER)), event.logged_at_ms)
    state = str(detail.get("state", GroupState.UNKNOWN))
    before, was_stable = dict(group.said.assigned), group.state == GroupState.STABLE
    was_classic = group.protocol == "classic"
    if not group.broker:
        group.protocol = str(detail.get("protocol") or group.protocol)
    if group.protocol != detail.get("protocol") and group.broker:
        return  # its sentences are about another group of that name, or it was converted
    entries = detail.get("members") or []
    _take_members(facts, group, entries, since, event, whole=bool(detail.get("whole", True)))
    if not group.broker:
        group.protocol_name = str(detail.get("assignor") or group.protocol_name)
        group.membership_complete = bool(detail.get("whole", True))
        if state != group.state:
            doubts: Doubts = Doubt.NOT_SEEN if state == GroupState.UNKNOWN else Doubt.SEEN_LATER
            begin = max(since if since >= 0 else _asked(event), group.loaded_at_ms)
            facts.set_state(group, begin, state, "sampled", doubts, event.logged_at_ms)
        elif was_stable and since >= 0 and was_classic and group.protocol == "classic" and _is_another(group, before):
            facts.tell_group(group, since, state, "rebalanced", Doubt.SEEN_LATER, event.logged_at_ms)
        if not group.members:
            forgetting.note_without_members(facts, group, event.logged_at_ms)
    group.said.sampled_at_ms = _asked(event)
    group.said.sampled_by = event.source


def on_first_round(facts: Facts, event: Event) -> None:
    """A sampler that has started has asked about every group that it is shown. One that only the sampler before it had
    told of was deleted meanwhile, or may not be described any more: nothing is known of it."""
    for group in facts.groups.values():
        told = group.told
        if told is None or told.sampled_at_ms < 0 or told.sampled_by == event.source:
            continue
        if not group.broker and group.modern is None and not facts.reads_records():
            lines.lose(facts, group, event.logged_at_ms, "not listed")
        told.assigned = {}


def _asked(event: Event) -> float:
    """When the question of an answer was asked."""
    return min(float((event.detail or {}).get("asked_ms", event.logged_at_ms)), event.logged_at_ms)


def _since(group: Group, told: float, answered: float) -> float:
    """When the group was last asked about before, by this sampler or the one before it; NEVER for the first time."""
    since = told if told >= 0 else group.said.sampled_at_ms
    return min(since, answered)


def _is_another(group: Group, before: dict[str, str]) -> bool:
    """Whether a classic group that was Stable twice has rebalanced in between: somebody came or went whose place nobody
    took, or somebody has other partitions. A static member that comes back in time needs no rebalance."""
    now = group.said.assigned
    if any(before[one] != now[one] for one in before.keys() & now.keys()):
        return True
    came = sorted(_place(group, one) for one in now.keys() - before.keys())
    gone = sorted(_place(group, one) for one in before.keys() - now.keys())
    return came != gone


def _place(group: Group, member_id: str) -> tuple[bool, str]:
    """Whom a static member may stand in for; a dynamic one has a place of its own."""
    over = group.ended.get(member_id)
    member = group.members.get(member_id) or (over.member if over is not None else None)
    if member is None or not member.instance_id:
        return False, member_id
    return True, member.instance_id


def _take_members(
    facts: Facts, group: Group, entries: list[list[Any]], since: float, event: Event, *, whole: bool
) -> None:
    """Who is a member by the sample, and who is none any more."""
    asked, answered = _asked(event), event.logged_at_ms
    listed = {entry[0] for entry in entries}
    instances = {entry[1] for entry in entries if entry[1]}
    for member in [one for one in group.members.values() if whole and one.member_id not in listed]:
        was_listed = member.member_id in group.said.assigned  # by the sample before, so it is gone since
        named_at = max(member.joined_at_ms, member.joined_by or NEVER)
        if group.broker and not was_listed and named_at >= asked - CLOCKS_APART_MS:
            continue  # a sentence named it, at a time that may be after the sample
        _end(facts, group, member, since, answered, replaced=member.instance_id in instances)
    for entry in entries:
        _take_entry(facts, group, entry, since, asked, answered)
    group.said.assigned = {entry[0]: _digest(entry[4]) for entry in entries}


def _end(facts: Facts, group: Group, member: Member, since: float, by: float, *, replaced: bool) -> None:
    """A member is gone: at some time since it was last seen."""
    begin = min(max(since, member.joined_at_ms), by)
    reason = TAKEN_REASON if replaced else GONE_REASON
    naming.end(facts, group, member.member_id, begin, "unknown", Doubt.NOT_SEEN, reason, by, told=False)


def _take_entry(facts: Facts, group: Group, entry: list[Any], since: float, asked: float, answered: float) -> None:
    """A member that a sample names. Whom a sentence has told to be gone comes back by a sentence only."""
    member_id, instance_id, client_id, host, _assigned = entry
    over = group.ended.get(member_id)
    is_new = member_id not in group.members
    # Of many that ended at once the first are forgotten; who was listed the time before had ended then.
    told_gone = over.told if over is not None else member_id in group.said.assigned
    if group.broker and is_new and told_gone:
        return
    if not is_new:
        member: Member | None = group.members[member_id]
    elif since >= 0:
        member = naming.name(facts, group, member_id, answered, "sampled", Doubt.SEEN_LATER, since)
    elif len(group.members) < naming.MAX_NAMED:
        # It was there when it was first asked about: of its joining nothing is known.
        member = group.members[member_id] = Member(
            member_id, max(asked, over.ended_at_ms if over is not None else asked)
        )
        member.joined_by = answered if answered > member.joined_at_ms else None
        facts.index(group, member)
    else:
        member = None
    if member is None:
        return
    before = (member.client_id, member.client_host, member.instance_id)
    facts.take_client(group, member, client_id, host)
    member.instance_id = instance_id or ""
    if member.instance_id:
        group.instances[member.instance_id] = member_id
    if not member.software:
        member.library = recognise("", client_id, group.protocol_type or "consumer")
    member.unknown_since_at_ms = NEVER
    if is_new or before != (member.client_id, member.client_host, member.instance_id):
        facts.emit_member(group, member, answered, Doubt.SEEN_LATER)


def _digest(assigned: list[Any]) -> str:
    """The same for the same partitions, whatever their order."""
    told = sorted((str(topic), sorted(map(int, partitions))) for topic, partitions in assigned)
    return blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
