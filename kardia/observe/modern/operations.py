"""What the records of one operation of the coordinator show: they share a time stamp, which is its very instant.

Records are gathered until the next event of the group, or a moment, and then understood as a whole: a member's
tombstone alone does not say whether it was fenced, replaced, or moved with its group to the classic protocol. Order
within an operation: conversion, replacement, member, group epoch, target assignment, assignment of the member. Sources:
`GroupCoordinatorRecordHelpers`, `GroupMetadataManager`.
"""

from __future__ import annotations

from msgspec.structs import replace

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event, Kind
from kardia.kafka.libraries import recognise_modern
from kardia.kafka.sessions import Coordinator
from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS, ErrorCode, MemberState
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.deadlines.handling import took_effect
from kardia.observe.evidence import records, unknown_to_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import owners
from kardia.observe.modern import conversions, ends, epochs, groups, leaves, removed, session_length, sessions, silence
from kardia.observe.modern.record_types import (
    COMPUTED,
    CURRENT,
    EPOCH,
    EXPRESSION,
    MEMBER,
    STATES,
    TARGET,
    is_tombstone,
    type_of,
)
from kardia.observe.requests.member_requests import renew
from kardia.observe.state.entries import Kept
from kardia.observe.state.group import NEVER, Cause, Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember
from kardia.observe.state.partitions import count, taken
from kardia.tolerances import (
    AT_ONCE_MS,
    CLASSES_WITHIN_MS,
    CLOSED_AFTER_MS,
    GOES_ON_MS,
    REMOVED_AFTER_MS,
    SAID_WITHIN_MS,
    STAMP_MS,
)

MAX_RECORDS = 50_000
"""Records of one operation that are gathered: three for each of ten thousand members, and more."""


def on_record(facts: Facts, event: Event, at: float) -> None:
    """A record of a group of the newer protocols: gather it."""
    if event.group_id and (event.detail or {}).get("protocol") in PROTOCOLS_WITH_EPOCHS:
        _gather(facts, new_coordinator.group_of(facts, event), event, at)


def on_group_record(facts: Facts, event: Event, at: float) -> None:
    """A GroupMetadata record: that of a classic group, unless it may be one of a group that changes its protocol."""
    if may_convert(facts, event):
        _gather(facts, new_coordinator.group_of(facts, event), event, at)
    else:
        records.on_group_record(facts, event, at)


def may_convert(facts: Facts, event: Event) -> bool:
    """Whether a GroupMetadata record may be one of a group that changes its protocol: the tombstone of any is, as one
    that is Empty is replaced by a group of the other protocol as well."""
    group = facts.groups.get(event.group_id)
    if group is None:
        return False
    tombstone = bool((event.detail or {}).get("tombstone"))
    converts = tombstone and facts.coordinator is Coordinator.JAVA
    return group.modern is not None or bool(group.operation) or converts


def is_over(group: Group, event: Event) -> bool:
    """Whether an event shows that the operation that is being gathered is over: a later record of the group, or a
    request to it, which is understood by what the operation has made of its members."""
    if not group.operation:
        return False
    is_record = event.kind in (Kind.OTHER_RECORD, Kind.GROUP_RECORD)
    return not is_record or event.logged_at_ms != group.operation[0].logged_at_ms


def _may_go_on(facts: Facts, group: Group) -> bool:
    """Whether more records of the operation may come, where somebody says up to when all have been read."""
    return 0 <= facts.records_to < group.operation[0].logged_at_ms


def _is_cut(group: Group) -> bool:
    """Whether the rest of an operation is missing: a group that has members still is not deleted, so that its tombstone
    is followed by the records of the group of another protocol that it becomes."""
    records_of_it = group.operation
    if group.modern is None:
        taken_away = len(records_of_it) == 1 and records_of_it[0].kind == Kind.GROUP_RECORD
    else:
        tombstones = (one for one in records_of_it if is_tombstone(one))
        classic = any(one.kind == Kind.GROUP_RECORD for one in records_of_it)
        taken_away = not classic and any(type_of(one) in EPOCH for one in tombstones)
    at = records_of_it[0].logged_at_ms
    return taken_away and any(one.deadline > at and not one.renewed_unseen for one in group.members.values())


def _gather(facts: Facts, group: Group, event: Event, at: float) -> None:
    if not group.operation:
        facts.schedule_by_records(group, at + CLOSED_AFTER_MS, "operation", str(int(at)))
    group.operation.append(event)
    if len(group.operation) >= MAX_RECORDS:
        close(facts, group)


def on_timer(facts: Facts, group: Group, key: str, due: float) -> None:
    """Nothing more has come for a moment: that is all, if all records of its time have been read."""
    if not group.operation or key != str(int(group.operation[0].logged_at_ms)):
        return
    if _may_go_on(facts, group) and due < group.operation[0].logged_at_ms + GOES_ON_MS:
        facts.schedule_by_records(group, due + CLOSED_AFTER_MS, "operation", key)
    else:
        close(facts, group)


def close(facts: Facts, group: Group, by: Event | None = None) -> None:
    """Understand what was gathered. `by`: the event that shows that the operation is over, maybe the answer of the
    request that caused it."""
    if _is_cut(group):
        group.operation, facts.divergences = [], facts.divergences + 1
        return
    operation, group.operation = group.operation, []
    answers = [one for one in (by, _next_waiting(group, operation[0].logged_at_ms)) if one is not None and _may_do(one)]
    by = min(answers, key=lambda one: one.decided_at_ms, default=None)
    evidence, broker = facts.evidence, facts.broker
    facts.evidence, facts.broker = operation[-1], ""
    _Operation(facts, group, operation, by).understand()
    for event in group.deferred:  # of a member that is known by this record only
        sessions.renew_at_once(facts, group, event)
    facts.evidence, facts.broker = evidence, broker


def _next_waiting(group: Group, at: float) -> Event | None:
    """The answer that came next, if it is read already and waits for what was written at `at` (`waiting`)."""
    near = (event for event in group.deferred if at <= event.decided_at_ms <= at + CLOSED_AFTER_MS)
    return next((event for event in near if _may_do(event)), None)


def _may_do(answer: Event) -> bool:
    """Whether the request of an answer may have written records: one that is refused writes none, nor does a JoinGroup
    that waited and is sent back by somebody else's request."""
    return answer.error_code == ErrorCode.NONE


class _Operation:
    """The records of one operation, one after the other."""

    def __init__(self, facts: Facts, group: Group, gathered: list[Event], by: Event | None) -> None:
        self._facts, self._group, self._records = facts, group, gathered
        self._at = gathered[0].logged_at_ms
        self._by = by
        self._leaves = leaves.by_request(facts, group, by)
        self._gone: dict[str, Member] = {}
        self._named: set[str] = set()
        """Who is taken out since the last epoch, of the members that are held and of those that have ended."""
        self._seats_in_doubt: set[str] = set()
        """Instance ids of which it is not known whether somebody had them still when a member came with them."""
        self._born: list[Member] = []
        self._changed: list[Member] = []
        self._members_before = len(groups.present(group))
        self._what = "records"
        self._converts, self._joined, self._upgraded = False, False, False
        self._said: dict[str, leaves.Why] = {}
        """Who is gone by what a sentence of server.log says."""
        self._stamps = self._said_stamps()
        self._began, self._began_by = self._begin()

    def _said_stamps(self) -> dict[str, float]:
        """Stamps of sentences about this operation, which stand before its records: by epoch, and by conversion."""
        said, at = self._group.said.began, self._at
        keys = [str((event.detail or {}).get("epoch", -1)) for event in self._records if type_of(event) in EPOCH]
        found = {key: said.pop(key) for key in (*keys, "upgraded", "downgraded") if key in said and said[key] <= at}
        near = {key: stamp for key, stamp in found.items() if at - stamp <= SAID_WITHIN_MS}
        return {key: stamp if at - stamp > AT_ONCE_MS else at for key, stamp in near.items()}

    def _begin(self) -> tuple[float, float | None]:
        """When the operation began: at its time stamp, which is taken when it is decided what to write. In the first
        operations of its kind a broker loads classes before that (24 to 190 ms were recorded), and a busy one may stand
        still (46 ms): then between the request and the stamp, the second of the pair, or when its first sentence was
        said."""
        at, by = self._at, self._by
        if self._stamps:
            return min(self._stamps.values()), None
        begun_at_ms = took_effect(by, self._facts.coordinator)[0] if by is not None else at
        if by is None or not begun_at_ms <= at <= by.decided_at_ms:
            return at, None
        converts = len({event.kind for event in self._records}) > 1
        # One that waited for a thread, and took effect at the stamp, has waited for nothing else.
        waited = at - by.handled_at_ms > AT_ONCE_MS or by.handled_at_ms > at + STAMP_MS
        waited = waited and AT_ONCE_MS < at - begun_at_ms <= CLASSES_WITHIN_MS
        return (begun_at_ms, at) if waited and self._is_by(by, converts=converts) else (at, None)

    def _is_by(self, answer: Event, *, converts: bool) -> bool:
        """Whether a request may have done this: a conversion names every member, and a target does, whoever asked. A
        group becomes a classic one by a leave or by a seat that is taken, if it is not by a timer."""
        if converts and any(one.kind == Kind.GROUP_RECORD and not is_tombstone(one) for one in self._records):
            takes_a_seat = answer.kind == Kind.JOIN and bool(answer.group_instance_id)
            return takes_a_seat or bool(self._leaves)
        if converts and not (answer.kind == Kind.MODERN_HEARTBEAT and _joins(answer)):
            return False
        own = (one for one in self._records if type_of(one) in MEMBER or type_of(one) in CURRENT)
        asked = {answer.member_id, (answer.detail or {}).get("assigned_member_id", "")} - {""}
        return any(one.member_id in asked for one in own)

    def _first_doubts(self) -> Doubts:
        """What is in doubt about the instant of a first operation: records alone do not show how long before them it
        began."""
        shown = self._stamps or self._facts.reads_requests(self._group.broker, self._at)
        return SURE if shown else Doubt.SEEN_LATER

    def understand(self) -> None:
        """Say what happened."""
        group, said = self._group, self._group.said
        had_epochs = group.modern is not None
        self._say()
        # What was said of it as a classic group is over, and what is said of it as one later begins here.
        if group.modern is not None:
            said.kept = None
        elif had_epochs:
            said.kept = Kept(max(group.generation, 0), not group.members)
        said.shown_at_ms = max(said.shown_at_ms, self._at)
        said.state_at_ms = max(said.state_at_ms, self._at)
        if group.membership_complete:
            said.listed_at_ms = max(said.listed_at_ms, self._at)

    def _say(self) -> None:
        classic = [event for event in self._records if event.kind == Kind.GROUP_RECORD]
        others = [event for event in self._records if event.kind != Kind.GROUP_RECORD]
        if not others:
            self._say_of_classic_group(classic)
        elif not classic or is_tombstone(classic[-1]):
            self._say_of_group_with_epochs(classic, others)
        elif self._group.modern is not None or self._group.rebalance is None:  # else its JoinGroup was answered before
            self._say_downgrade(classic[-1], others)

    def _say_of_classic_group(self, classic: list[Event]) -> None:
        facts, group, at = self._facts, self._group, self._at
        for event in classic:
            if is_tombstone(event) and not facts.reads_requests(group.broker, at):
                unknown_to_coordinator.on_tombstone(facts, group, at)
            else:
                records.on_group_record(facts, event, at)

    def _say_downgrade(self, record: Event, others: list[Event]) -> None:
        """The group has become a classic one, of which `record` is."""
        facts, group = self._facts, self._group
        for event in others:
            self._take(event)
        gone_now = list(self._gone.values())
        known = {member.member_id: self._why_gone(member) for member in gone_now}
        for member in [one for one in group.members.values() if groups.is_gone(one)]:
            removed.finish(facts, group, member, "unknown", "", Doubt.NOT_SEEN)  # a classic group has no such members
        conversions.downgrade(facts, group, record, self._began, self._began_by, gone_now, known, self._by)

    def _say_upgrade(self, others: list[Event]) -> None:
        """A classic group with members has become a consumer group."""
        facts, group, at = self._facts, self._group, self._at
        seated = self._seated(others)
        unlisted = self._unlisted(others) - seated.keys()
        for member_id in sorted(unlisted):
            unknown_to_coordinator.on_gone(facts, group, member_id, at)
        conversions.upgrade(facts, group, self._began, self._first_doubts(), self._began_by)
        self._converts = self._upgraded = True
        self._gone |= seated
        for member_id in sorted(unlisted & group.members.keys()):
            member = group.members[member_id]
            heard = facts.reads_requests(group.broker, at)
            since = at if heard else max(member.joined_at_ms, group.said.listed_at_ms)
            ends.remove(facts, group, member, min(since, at), "unknown", "", Doubt.NOT_SEEN, at, told=True)

    def _say_of_group_with_epochs(self, classic: list[Event], others: list[Event]) -> None:
        """What is left is a group that has epochs, or its tombstone; `classic`: that of the classic group before."""
        facts, group, at = self._facts, self._group, self._at
        protocol = str((others[0].detail or {}).get("protocol"))
        if classic and group.members and group.modern is None:
            self._say_upgrade(others)
        doubts: Doubts = SURE if classic else Doubt.SEEN_LATER
        conversions.upgrade_empty(facts, group, protocol, self._began, doubts, self._began_by)
        modern = groups.enter(facts, group, protocol, at)
        modern.by_records, modern.record_at_ms = True, at
        for event in others:
            self._take(event)
        self._remove_gone(None)
        if any(type_of(event) in EPOCH and is_tombstone(event) for event in others):
            records.on_deleted(facts, group, at)
            groups.leave(group)
            return
        epochs.conclude(facts, group, at)
        epochs.update_state(facts, group, at, self._what)

    def _seated(self, others: list[Event]) -> dict[str, Member]:
        """The member of a classic group whose seat the request took that converts it, and whom it does not name. Where
        its session may have been over, it may have been gone before."""
        found: dict[str, Member] = {}
        members, listed = self._group.members, {event.member_id for event in others}
        for event in others:
            takes = type_of(event) in MEMBER and event.group_instance_id and event.member_id not in members
            old = members.get(self._group.instances.get(event.group_instance_id, "")) if takes else None
            if old is None or old.member_id in listed:
                continue
            if old.deadline > self._at and not old.renewed_unseen:
                found[old.member_id] = old
            else:
                self._seats_in_doubt.add(event.group_instance_id)
        return found

    def _unlisted(self, others: list[Event]) -> set[str]:
        """Members of a classic group that its conversion does not name: they were gone by then. It names all before it
        writes the epoch; none where that has not been read."""
        epochs_at = [place for place, event in enumerate(others) if type_of(event) in EPOCH]
        named = {event.member_id for event in others[: epochs_at[0]]} if epochs_at else set(self._group.members)
        return set(self._group.members) - named

    def _take(self, event: Event) -> None:
        kind, modern = type_of(event), self._group.modern
        if modern is None:
            return
        if kind in MEMBER:
            self._on_member(event)
        elif is_tombstone(event):
            return
        elif kind in EPOCH:
            self._on_epoch(event, modern)
        elif kind in COMPUTED:
            epochs.computed(self._group, int((event.detail or {}).get("epoch", -1)), self._at)
            self._what = "assignment" if self._what == "records" else self._what
        elif kind in TARGET:
            own = self._own(event)
            if own is not None:
                own.target = taken((event.detail or {}).get("assigned"))
                owners.note_names(modern, own, own.target)
        elif kind in CURRENT:
            self._on_current(event, modern)

    def _own(self, event: Event) -> ModernMember | None:
        member = self._group.members.get(event.member_id)
        return member.modern if member is not None else None

    def _on_member(self, event: Event) -> None:
        """What a member is, or that it is none any more."""
        facts, group, at, detail = self._facts, self._group, self._at, event.detail or {}
        member = group.members.get(event.member_id)
        if is_tombstone(event):
            self._named.add(event.member_id)
            if member is not None:
                self._gone[member.member_id] = member
            return
        returned = self._gone.pop(event.member_id, None)
        if member is not None and groups.is_gone(member):  # it joins again before it is known why it was gone
            removed.conclude_removed(
                facts, group, member.member_id, groups.own_of(member).gone_at_ms + REMOVED_AFTER_MS
            )
            member = group.members.get(event.member_id)
        if member is None:
            member = self._new_member(event)
        elif returned is not None and member.modern is not None:
            groups.came_back(facts, group, member, member.modern, at)
        own = groups.own_of(member)
        topics, regex = detail.get("topics"), str(detail.get("regex") or "")
        if own.topics is not None and (own.topics, own.regex) != (topics, regex):
            self._changed.append(member)
        before = groups.told(member)
        owners.note_topics(own, topics, regex)
        own.rack = str(detail.get("rack") or "")
        own.classic = "classic_session_ms" in detail
        if own.classic:
            member.session_ms = int(detail["classic_session_ms"])
        else:
            session_length.arm(group, member)
        if int(detail.get("rebalance_timeout_ms", -1)) > 0:
            member.rebalance_ms = int(detail["rebalance_timeout_ms"])
        if not member.client_id:
            facts.take_client(group, member, event.client_id, event.client_host)
        if member.library == "unknown":
            member.library = recognise_modern(member.software, member.client_id)
        if member.row_known < 0 or before != groups.told(member):
            facts.emit_member(group, member, member.joined_at_ms, SURE)

    def _new_member(self, event: Event) -> Member:
        """A member that was not there: somebody who joined, or a static one in the place of another."""
        facts, group, at = self._facts, self._group, self._at
        instance = event.group_instance_id
        old = next((one for one in self._gone.values() if instance and one.instance_id == instance), None)
        # Who is named with the classic protocol as its group is converted had joined that before, unseen.
        unseen = self._upgraded and "classic_session_ms" in (event.detail or {})
        doubts: Doubts = Doubt.BY_RULE if unseen and old is not None else SURE
        began, by = self._began, self._began_by
        if unseen and old is not None:
            began, by = min(max(old.last_heard_at_ms, old.joined_at_ms), at), at
        if old is not None:
            del self._gone[old.member_id]
            since, until = (began, by) if unseen else (at, None)
            ends.remove(facts, group, old, since, "static_replaced", "", doubts, until, told=True)
        member = groups.add(
            facts, group, event.member_id, at, instance, event.client_id, event.client_host, is_new=True
        )
        member.seen_joining = True
        self._joined = self._joined or "classic_session_ms" not in (event.detail or {})
        member.joined_at_ms, member.joined_by = began, by
        if group.generation < 0:
            groups.own_of(member).only_topic = ""  # of a topic that was compacted: it may have had another before
        if old is None:
            self._born.append(member)
        else:
            groups.inherit(old, member)
            if (
                old.modern is not None and old.modern.classic and self._upgraded
            ):  # what it had subscribed to is not known
                self._changed.append(member)
                self._seats_in_doubt.add(instance)
        cause = "member_joined" if old is None else "static_replaced"
        facts.emit_transition(group, began, member.member_id, "Absent", "Member", cause, doubts, by)
        return member

    def _on_epoch(self, event: Event, modern: ModernGroup) -> None:
        """The group has a new epoch: what came before in this operation is why."""
        facts, group = self._facts, self._group
        epoch = int((event.detail or {}).get("epoch", -1))
        is_first = group.generation < 0
        if is_first and epoch <= groups.FIRST_EPOCH_MAX and len(group.members) == len(self._born):
            group.membership_complete = True
            modern.assignment_epoch = 0
        modern.epoch_sure = True
        if self._converts:  # its last generation, which need not have been stored, if nobody has joined before it
            self._converts, group.generation = False, max(epoch - self._joined, group.generation)
            modern.assignment_epoch = group.generation
        if epoch <= group.generation:  # that of a group that was converted: who is named so far was in it before
            instead = self._take_from_an_end(epoch)
            if instead is not None:
                self._remove_gone(instead)
            self._named.clear()
            self._born, self._changed, self._members_before = [], [], len(groups.present(group))
            return
        if epoch > group.generation + 1 and not is_first:
            facts.divergences += 1
        cause = self._cause(epoch)
        cause.at = self._stamps.get(str(epoch), cause.at)
        if is_first:
            cause.doubts |= self._first_doubts()
        epochs.raised(facts, group, epoch, cause, self._members_before, shown=True)
        if str(epoch) in self._stamps:
            modern.first = None  # no request shows its begin better
        self._what = cause.trigger
        self._remove_gone(cause)
        self._named.clear()
        self._born, self._changed = [], []
        self._members_before = len(groups.present(group))

    def _take_from_an_end(self, epoch: int) -> Cause | None:
        """An epoch was counted for an end, and this operation has made it without that: before it, or it is the end of
        a leave whose handling took long, or one of several of an instant. Then that has made a later one. Returns what
        made it, if it is that."""
        group, modern = self._group, self._group.modern
        later = [one for one in (modern.bumps if modern is not None else ()) if one.epoch >= epoch]
        if not later or later[0].epoch != epoch or later[0].cause.member_id in self._named:
            return None
        why, before = later[0].cause, later[-1].members_before
        tied = abs(why.at - self._at) <= STAMP_MS and bool(self._named or self._born or self._changed)
        slow = why.by is not None and why.at <= self._at <= why.by
        left = group.ended.get(why.member_id)
        is_earlier = self._at < why.at - STAMP_MS and why.trigger != "unknown"
        if not is_earlier and (left is None or not left.told or not (tied or slow)):
            return None
        told = [one.cause for one in later]
        cause = next((one for one in told if one.member_id in self._named), None) or self._cause(epoch)
        after = [replace(one, at=max(one.at, self._at)) for one in told if one is not cause]
        for bump, its_own in zip(later, [cause, *after], strict=False):
            epochs.explain(self._facts, group, bump, its_own)
        if len(after) == len(later):
            last = [cause, *after][-2]
            less = last.trigger in ends.ONE_LESS or last.member_id in self._named
            before += (last.trigger == "member_joined") - less
            epochs.raised(self._facts, group, group.generation + 1, after[-1], before)
        return cause

    def _cause(self, epoch: int) -> Cause:
        """Why the group has a new epoch; a member that is gone is judged when it is taken out."""
        at, by, group = self._began, self._began_by, self._group
        for member in self._gone.values():
            cause, doubts = self._why_gone(member)
            return ends.cause_of(member, at, cause, "", doubts, by)
        for some, trigger in ((self._born, "member_joined"), (self._changed, "metadata_changed")):
            for member in some:
                id_of, name, seat = member.member_id, member.client_id, member.instance_id
                doubts = Doubt.BY_ELIMINATION if seat in self._seats_in_doubt else SURE
                return Cause(at, trigger, id_of, name, seat, "", doubts, by)
        resolved = self._resolved()
        if resolved is not None:
            id_of, name, seat = resolved.member_id, resolved.client_id, resolved.instance_id
            return Cause(at, "member_joined", id_of, name, seat, "", Doubt.BY_RULE, by)
        left = ends.left_to_classic(group, self._at)
        if left is not None:
            return left
        doubts = Doubt.BY_RULE if group.generation in (-1, epoch - 1) else Doubt.BY_ELIMINATION
        return Cause(at, "topic_metadata" if group.generation >= 0 else "unknown", doubts=doubts)

    def _resolved(self) -> Member | None:
        """Who joined by a regular expression since the last epoch, if anybody did: its join made none, and what the
        expression means has been looked up now."""
        if all(type_of(event) != EXPRESSION or is_tombstone(event) for event in self._records):
            return None
        joined = [one for one in self._group.members.values() if one.generation_first == self._group.generation]
        by_regex = [one for one in joined if one.seen_joining and one.modern and one.modern.regex]
        return max(by_regex, key=lambda one: one.joined_at_ms, default=None)

    def _why_gone(self, member: Member) -> tuple[str, Doubts]:
        said = self._group.said.ends.pop(member.member_id, None)
        if said is not None and abs(said.at_ms - self._at) <= SAID_WITHIN_MS:
            if said.cause:
                self._said[member.member_id] = said.cause, said.doubts
            if self._at - said.at_ms > AT_ONCE_MS:  # what it brought about has a sentence of its own, somewhat later
                self._began, self._began_by = said.at_ms, self._stamps.get("downgraded")
        if member.member_id in self._leaves:
            return self._leaves[member.member_id]
        return self._said.get(member.member_id) or ends.why_at(self._facts, self._group, member, self._at)

    def _remove_gone(self, cause: Cause | None) -> None:
        """Take out who is gone, as far as it is known why; of the others a leave may still tell."""
        facts, group, at = self._facts, self._group, self._at
        for member in list(self._gone.values()):
            why, doubts = self._why_gone(member)
            if why == "unknown" and group.broker:
                own = groups.own_of(member)
                own.gone_at_ms = at
                epochs.ended(group, member, at)
                facts.schedule(group, at + REMOVED_AFTER_MS, "removed", member.member_id)
            else:
                by_itself = member.member_id in self._said or member.member_id in self._leaves
                by = self._began_by if member.member_id in self._leaves else None
                ended_at_ms = self._began if by_itself else at
                doubts = Doubt.NOT_SEEN if why == "unknown" else doubts
                ends.remove(facts, group, member, ended_at_ms, why, "", doubts, by, told=True)
                if cause is not None and cause.member_id == member.member_id:
                    cause.doubts = doubts
        self._gone.clear()

    def _on_current(self, event: Event, modern: ModernGroup) -> None:
        """The epoch of a member, what it may read and what it must give up: written for its own heartbeat."""
        facts, group, at, detail = self._facts, self._group, self._at, event.detail or {}
        member = group.members.get(event.member_id)
        if member is None or member.member_id in self._gone:
            return
        own, epoch = groups.own_of(member), int(detail.get("epoch", -1))
        if epoch == groups.AWAY:
            epochs.went_away(facts, group, member, own, at)
            self._what = "static_left"
            return
        own.state = STATES[modern.protocol].get(int(detail.get("state", -1)), MemberState.UNKNOWN)
        if "assigned" in detail:
            revoking = taken(detail.get("revoking")) or {}
            if own.state == MemberState.UNREVOKED:
                own.held_back = max(own.held_back, count(revoking))
            owners.assign(group, member, taken(detail["assigned"]), revoking, at)
        elif modern.protocol == "streams" and not facts.reads_requests(group.broker, at):
            own.assigned = None  # its tasks are in no record that is read
        own.revoke_since_at_ms = at if own.state == MemberState.UNREVOKED else NEVER
        own.revoke_by = None
        epochs.came_to(group, member, own, epoch, at)
        silence.watch_phases(facts, group, member)
        facts.say_again(group, member)
        # It ends an operation: an epoch that comes after it in the same instant is one of something else.
        self._born, self._changed, self._members_before = [], [], len(groups.present(group))
        if self._what == "records":
            self._what = "member reconciled"
        if epoch > 0 and own.away_since_at_ms < 0:
            renew(facts, group, member, at)


def _joins(answer: Event) -> bool:
    return int((answer.detail or {}).get("member_epoch", -1)) == groups.JOINS
