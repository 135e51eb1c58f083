"""What each sentence of the coordinator does to a group whose requests are not read: one function per kind of sentence.

Instants are the stamps of the lines, exact to 1 ms. A coordinator that loads a group holds what was stored last: what
was under way is undone. A broker that stood still goes on in words of its own until it learns that another one leads:
after a load that was told, only the broker that said so is believed. What a cut or lost log hides is `unknown`.
Sources: `GroupCoordinator.scala`, `GroupMetadataManager.java`, as in `ingest/dialects/server_log.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event, Kind
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.evidence import unknown_to_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import costs
from kardia.observe.ledger.causes import CAUSE_TO_TRIGGER
from kardia.observe.ledger.rebalance_row import emit, follows_from, remember
from kardia.observe.members import lives
from kardia.observe.sentences import fenced, holes, loading, naming, reasons
from kardia.observe.state.entries import BeginLine, Kept, Waited
from kardia.observe.state.group import NEVER, Cause, Group, Rebalance
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import LOADS_WITHIN_MS, SENTENCES_APART_MS

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000.0
"""`NewMemberJoinTimeoutMs`: a member whose first JoinGroup waits is failed after that, in the same words as one whose
session is over; before that it is the session."""


_COUNT = re.compile(r"(?P<count>\d+) members?")


def on_line(facts: Facts, event: Event, at: float) -> None:
    """A sentence about a group, or about a partition of `__consumer_offsets`."""
    what = str((event.detail or {}).get("what"))
    if what == "instance_fenced":
        fenced.on_line(facts, event, at)
        return
    if what == "member_loaded":
        loading.note(facts, event)
        return
    if not event.group_id:
        _on_partition(facts, event, at, what)
        return
    handler = _BY_SENTENCE.get(what)
    if handler is None:
        return
    group = naming.group_of(facts, event)
    if group.protocol != "classic" or not is_believed(facts, group, at, what):
        return
    handler(facts, group, event, at)
    group.said.shown_at_ms = max(group.said.shown_at_ms, at)
    if what in _OF_A_STATE:
        group.said.state_at_ms = max(group.said.state_at_ms, at)


def is_believed(facts: Facts, group: Group, at: float, what: str) -> bool:
    """Whether the broker that says it leads the group, as far as is known. One that has not said that it loaded it may
    have done so before its log begins, unless another one has since."""
    if group.broker == facts.broker:
        return True
    facts.tell_unread(group, at)
    if what != "group_loaded":
        if group.load_told_at_ms >= 0 or what == "group_unloaded":
            return False
        lose(facts, group, at, "coordinator moved")
    group.broker = facts.broker
    return True


def lose(facts: Facts, group: Group, at: float, why: str) -> None:
    """From here on nothing is known of it before something is said again; what was under way is not told further."""
    group.rebalance, group.said.kept, group.membership_complete = None, None, False
    group.load_told_at_ms = NEVER
    group.loaded_at_ms = max(group.loaded_at_ms, at)
    costs.forget_assignment(group)
    for member in group.members.values():
        member.unknown_since_at_ms = at
    if group.state != GroupState.UNKNOWN:
        facts.set_state(group, at, GroupState.UNKNOWN, why, Doubt.NOT_SEEN)


def take_over(facts: Facts, group: Group, end: Event, at: float) -> None:
    """Its requests are read up to `end`, the sentences of its broker further. Nobody is heard any more: no session is
    known, and none ends by itself. A group of which nothing was under way is as it was until a sentence says otherwise;
    a rebalance that a sentence has begun, and no answer has shown, goes on by the sentences.
    """
    for member in group.members.values():
        for kind in ("session", "poll", "rebalance"):
            if getattr(member, f"{kind}_prediction_at_ms") >= 0:
                facts.close_prediction(group, member, kind, "unknown", at)
        member.session_renewed_at_ms = member.heard_at_ms = member.unknown_since_at_ms = NEVER
        member.polled_at_ms = member.pushed_poll_at_ms = NEVER
        member.overdue = False
    current, steady = group.rebalance, group.state in (GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD)
    began = next((one for one in reversed(group.begin_lines) if one.generation_before == group.generation), None)
    told = current is not None and current.row_known >= 0 and current.assigned_at_ms < 0
    if current is not None and told and current.joined_at_ms < 0 <= current.started_at_ms:
        current.unrequested = current.settled = True
        facts.set_state(group, current.started_at_ms, GroupState.PREPARING, "log_ends", Doubt.SEEN_LATER)
    elif current is not None and (told or (current.joined_at_ms >= 0) != (current.assigned_at_ms >= 0)):
        lose(facts, group, at, "log_ends")
        return
    elif began is not None:
        _on_preparing(facts, group, _sentence(began, group, end), began.began_at_ms)
    elif steady:
        group.rebalance = None
        group.said.kept = Kept(group.generation, group.state != GroupState.STABLE)
    else:
        lose(facts, group, at, "log_ends")
        return
    group.said.shown_at_ms = group.said.state_at_ms = at


def _sentence(began: BeginLine, group: Group, end: Event) -> Event:
    """A sentence about the begin of a rebalance, as it was read."""
    member_id, *members = began.named or [""]
    return end._replace(
        kind=int(Kind.COORDINATOR_LINE),
        shard=group.shard,
        group_id=group.group_id,
        member_id=member_id,
        generation_id=began.generation_before,
        detail={"what": "preparing_rebalance", "reason": began.reason, "members": members},
    )


# --- a rebalance


def _on_preparing(facts: Facts, group: Group, event: Event, at: float) -> None:
    before = event.generation_id
    holes.note(facts, group, before, at)
    if group.rebalance is not None and group.state == GroupState.PREPARING and group.generation == before:
        _undone(group, at)
    cause = reasons.cause_of(group, event, at)
    _confirm_admin(facts, group, cause)
    known = group.membership_complete or group.state in (GroupState.EMPTY, GroupState.DEAD)
    unsynced = reasons.unsynced(group, event) if cause.trigger == "sync_timeout" else []
    # Up to 3.9 the sentence about a leave comes after this one: then who left is among the members still. That about a
    # session that is over comes before it: who is a member still has lost it to a hole.
    holes.end_evicted(facts, group, cause)
    gone_by_it = len(unsynced) or int(cause.trigger in _BEGUN_BY_AN_END and cause.member_id not in group.members)
    for member_id in unsynced:
        doubts: Doubts = SURE if member_id in group.members else Doubt.ORDER_OF_LINES
        naming.end(facts, group, member_id, at, "sync_timeout", doubts)
    holes.prove(facts, group, cause.member_id)
    remember(group)
    group.rebalance = Rebalance(
        before,
        at,
        cause,
        told_from=group.told_state,
        unrequested=True,
        settled=True,
        members_before=len(group.members) + gone_by_it if known else -1,
    )
    group.rebalance.caused_by = follows_from(group, group.rebalance)
    group.generation = before
    if cause.trigger in _BY_A_MEMBER and cause.member_id:
        naming.first_named(facts, group, cause.member_id, at, generation=before)
    if cause.trigger == "member_joined" and cause.member_id:
        member = naming.name(facts, group, cause.member_id, at, "member_joined", SURE)
        if member is not None and member.joined_at_ms == at:
            member.client_id, member.instance_id = cause.client_id, cause.instance_id
            if cause.instance_id:
                group.instances[cause.instance_id] = member.member_id
            facts.index(group, member)
            facts.emit_member(group, member, at, SURE)
    facts.set_state(group, at, GroupState.PREPARING, cause.trigger, cause.doubts)
    emit(facts, group, group.rebalance)


def _undone(group: Group, at: float) -> None:
    """A rebalance begins anew from the generation that it began from: a load that was not read has undone it, and of
    who had not been in a generation it is not known whether that was stored."""
    group.membership_complete = False
    for member in group.members.values():
        if member.generation_first < 0:
            member.unknown_since_at_ms = at


_BY_A_MEMBER = frozenset({"leader_rejoined", "metadata_changed"})
"""Triggers that are a JoinGroup of somebody who is a member already."""

_BEGUN_BY_AN_END = frozenset(CAUSE_TO_TRIGGER.values())


def _confirm_admin(facts: Facts, group: Group, cause: Cause) -> None:
    """An admin named static ids alone: then the sentence about the member's leave, just before, says no more."""
    over = group.ended.get(cause.member_id)
    if over is not None and cause.trigger == "removed_by_admin" and over.cause == "left":
        lives.correct(facts, group, over, over.ended_at_ms, "removed_by_admin", Doubt.ORDER_OF_LINES)


def _on_stabilized(facts: Facts, group: Group, event: Event, at: float) -> None:
    current, generation = group.rebalance, event.generation_id
    if current is None or group.state != GroupState.PREPARING or generation != current.generation_before + 1:
        holes.note(facts, group, generation - 1, at)
        current = unseen(facts, group, generation, at)
    holes.end_left(facts, group, current)
    _note_last_leave(group, at)
    current.joined_at_ms, current.generation_after = at, generation
    current.size = _count(event)
    group.generation, group.membership_complete = generation, False
    _let_in(facts, group, generation)
    holes.count(facts, group, current, at)
    facts.set_state(group, at, GroupState.COMPLETING, "join phase completed", SURE)
    emit(facts, group, current)


def _let_in(facts: Facts, group: Group, generation: int) -> None:
    """Who joined since the generation before is in this one."""
    for member in group.members.values():
        if member.generation_first < 0:
            member.generation_first = generation
            doubts: Doubts = SURE if member.unknown_since_at_ms < 0 else Doubt.LINES_LOST
            facts.emit_member(group, member, member.joined_at_ms, doubts)


def _on_assigned(facts: Facts, group: Group, event: Event, at: float) -> None:
    current, generation = group.rebalance, event.generation_id
    if current is None or current.generation_after != generation:
        if current is None or group.state != GroupState.PREPARING or generation != current.generation_before + 1:
            holes.note(facts, group, generation - 1, at)
            current = unseen(facts, group, generation, at)
        current.generation_after = group.generation = generation
        current.size = _count(event)
        _let_in(facts, group, generation)
    if event.member_id:
        current.leader = group.leader = event.member_id
        naming.first_named(facts, group, event.member_id, at, generation)
        holes.prove(facts, group, event.member_id)
        holes.count(facts, group, current, at)
    # It is Stable when what was received is stored, which no line says: some ms later, on a slow disk 100.
    become_stable(facts, group, current, at, Doubt.BY_RULE)
    emit(facts, group, current)


def become_stable(facts: Facts, group: Group, current: Rebalance, at: float, doubts: Doubts) -> None:
    """The leader's assignment is stored at `at`."""
    current.assigned_at_ms = group.stable_at_ms = at
    group.said.kept = Kept(current.generation_after, False)
    facts.set_state(group, at, GroupState.STABLE, "assignment stored", doubts)


def _on_empty(facts: Facts, group: Group, event: Event, at: float) -> None:
    generation = event.generation_id
    if group.state == GroupState.EMPTY and group.generation == generation:
        return
    current = group.rebalance
    if current is None or group.state != GroupState.PREPARING or generation != current.generation_before + 1:
        holes.note(facts, group, generation - 1, at)
        current = unseen(facts, group, generation, at)
    holes.end_left(facts, group, current)
    become_empty(facts, group, current, generation, at)


def become_empty(
    facts: Facts, group: Group, current: Rebalance, generation: int, at: float, doubts: Doubts = SURE
) -> None:
    """The join phase of a rebalance ends with nobody left. `doubts`: about the instant."""
    naming.end_others(facts, group, (), at)
    current.joined_at_ms = current.assigned_at_ms = at
    current.generation_after, current.leader, current.size = generation, "", 0
    group.generation, group.leader, group.said.kept = generation, "", Kept(generation, True)
    group.membership_complete = True
    group.instances.clear()
    costs.forget_assignment(group)
    facts.set_state(group, at, GroupState.EMPTY, "no members left", doubts)
    emit(facts, group, current)


def unseen(facts: Facts, group: Group, generation: int, at: float) -> Rebalance:
    """A rebalance of which only the end is told: it began between what was said last and then."""
    if group.generation >= 0 and generation != group.generation + 1:
        facts.divergences += 1
    since = holes.last_state_at(group, at)
    began = since if since >= 0 else at
    remember(group)
    cause = Cause(began, "unknown", doubts=Doubt.NOT_SEEN, by=at if since >= 0 else None, named=True)
    group.rebalance = Rebalance(
        generation - 1, began, cause, told_from=group.told_state, unrequested=True, settled=True, began_unseen=since < 0
    )
    if group.state != GroupState.UNKNOWN:
        facts.set_state(group, at, GroupState.UNKNOWN, "not seen to begin", Doubt.NOT_SEEN)
    return group.rebalance


# --- members


def _on_added(facts: Facts, group: Group, event: Event, at: float) -> None:
    is_new = event.member_id not in group.members
    member = naming.name(facts, group, event.member_id, at, "member_joined", SURE)
    if is_new and member is not None:
        member.instance_id = event.group_instance_id
        if member.instance_id:
            group.instances[member.instance_id] = member.member_id
        else:
            member.client_id = reasons.client_id_of(event.member_id)
        facts.index(group, member)
        facts.emit_member(group, member, at, SURE)


def _on_failed(facts: Facts, group: Group, event: Event, at: float) -> None:
    member, current = group.members.get(event.member_id), group.rebalance
    doubts: Doubts = SURE
    if current is not None and group.state == GroupState.PREPARING and (member is None or member.generation_first < 0):
        waited_ms = at - (current.started_at_ms if member is None else member.joined_at_ms)
        doubts = SURE if waited_ms < NEW_MEMBER_JOIN_TIMEOUT_MS else Doubt.TIMERS_TIED
    if member is None or member.generation_first >= 0:  # whoever is new waits itself
        _note_waited(group, event.member_id, "" if member is None else member.client_id, at)
    naming.end(facts, group, event.member_id, at, "session_expired", doubts)


def _note_waited(group: Group, member_id: str, client_id: str, at: float) -> None:
    """A rebalance waited for a member of the generation before until that was gone: the session of who has joined again
    does not end, and who leaves as a join phase ends had not joined again."""
    current = group.rebalance
    if current is None or group.state != GroupState.PREPARING or current.cause is None:
        return
    is_known = not current.began_unseen and current.cause.by is None  # since when it waited
    if is_known and member_id != current.cause.member_id and at > current.started_at_ms:
        current.removed.append(Waited(member_id, client_id, int(at - current.started_at_ms)))


def _note_last_leave(group: Group, at: float) -> None:
    """With the leave of the last one that had not joined again a join phase is over in the same operation."""
    last = next(reversed(group.ended.values()), None)
    if last is None or last.cause not in LEAVE_CAUSES or not at - SENTENCES_APART_MS <= last.ended_at_ms <= at:
        return
    if last.member.generation_first >= 0:
        _note_waited(group, last.member.member_id, last.member.client_id, last.ended_at_ms)


def _on_left(facts: Facts, group: Group, event: Event, at: float) -> None:
    cause, doubts, words = reasons.why_it_left(str((event.detail or {}).get("reason", "")))
    if group.state == GroupState.EMPTY and group.rebalance is not None and group.rebalance.joined_at_ms >= 0:
        at = min(at, group.rebalance.joined_at_ms)  # up to 3.9 it is said after what it led to: nobody was left
    naming.end(facts, group, event.member_id, at, cause, doubts, words, line=event)


def _on_replaced(facts: Facts, group: Group, event: Event, at: float) -> None:
    """The new id is not told, or not read: it is known when something names it."""
    group.membership_complete = False
    naming.end(facts, group, event.member_id, at, "static_replaced", SURE)


def _on_not_joined(facts: Facts, group: Group, event: Event, at: float) -> None:
    current = group.rebalance
    for member_id in (event.member_id, *map(str, (event.detail or {}).get("members") or ())):
        if not member_id:
            continue
        member = group.members.get(member_id)
        if current is not None and group.state == GroupState.PREPARING and current.cause is not None:
            waited_ms = int(at - current.started_at_ms)
            current.removed.append(Waited(member_id, "" if member is None else member.client_id, waited_ms))
        naming.end(facts, group, member_id, at, "rebalance_timeout", SURE)


# --- the group as a whole


def _on_dead(facts: Facts, group: Group, _event: Event, at: float) -> None:
    unknown_to_coordinator.on_deleted(facts, group, at)
    group.said.kept = Kept(0, True)


def _on_loaded(facts: Facts, group: Group, event: Event, at: float) -> None:
    generation, count, kept = event.generation_id, _count(event), group.said.kept
    named = loading.take(facts, group, generation)
    if generation < 0 and kept is not None:
        generation = kept.generation
    state, doubts = _loaded_as(group, generation, count)
    if state == GroupState.UNKNOWN and named:
        state, doubts = GroupState.STABLE, Doubt.SEEN_LATER
    group.rebalance = None
    group.generation = generation
    group.loaded_at_ms = group.load_told_at_ms = at
    group.said.kept = (
        None if generation < 0 or state == GroupState.UNKNOWN else Kept(generation, state == GroupState.EMPTY)
    )
    if group.stored is not None and group.stored.generation == generation:
        naming.restore(facts, group, group.stored, at)
    elif state == GroupState.EMPTY:
        naming.end_others(facts, group, (), at)
    else:
        members = group.members.values()
        staying = {one.member_id for one in members if 0 <= one.generation_first <= generation}
        naming.end_others(facts, group, staying, at)
        group.membership_complete = False
        for entry in named:
            naming.take_entry(facts, group, entry, generation, at, why="coordinator_loaded", doubts=Doubt.LOADED_AGAIN)
    for member in group.members.values():
        member.unknown_since_at_ms = NEVER
    if state == group.told_state:
        facts.tell_group(group, at, state, "coordinator_loaded", doubts)
    else:
        facts.set_state(group, at, state, "coordinator_loaded", doubts)


def _loaded_as(group: Group, generation: int, count: int) -> tuple[str, Doubts]:
    """State of a group after a load: Stable with members, Empty without (`loadGroup`, `ClassicGroup`)."""
    if count >= 0:
        return (GroupState.STABLE if count else GroupState.EMPTY), SURE
    if group.stored is not None and group.stored.generation == generation:
        return (GroupState.STABLE if group.stored.member_ids else GroupState.EMPTY), SURE
    if group.said.kept is not None and group.said.kept.generation == generation:
        return (GroupState.EMPTY if group.said.kept.is_empty else GroupState.STABLE), Doubt.SEEN_LATER
    return GroupState.UNKNOWN, Doubt.NOT_SEEN


def _on_unloaded(facts: Facts, group: Group, _event: Event, at: float) -> None:
    """Its broker shuts down, or another one leads it since: which of the two no sentence about the group tells."""
    _leave(facts, group, at, "coordinator_unloaded")


def _leave(facts: Facts, group: Group, at: float, why: str) -> None:
    kept = group.said.kept
    lose(facts, group, at, why)
    group.said.kept = kept  # whoever loads it finds that


def _on_partition(facts: Facts, event: Event, at: float, what: str) -> None:
    """A whole shard: each group of it that is loaded has a sentence of its own, just before or after."""
    if what == "partition_loaded":
        loading.forget(facts, event.shard)
    for group in list(facts.groups.values()):
        if group.shard != event.shard:
            continue
        if group.modern is not None and what == "partition_loaded":
            new_coordinator.on_load_line(facts, group, at)
        if group.protocol != "classic" or (group.broker and facts.reads_requests(group.broker, at)):
            continue
        if what == "partition_unloaded" and group.broker == facts.broker:
            if group.state != GroupState.UNKNOWN:
                _on_unloaded(facts, group, event, at)
        elif what == "partition_loaded" and group.load_told_at_ms < at - LOADS_WITHIN_MS:
            if group.broker != facts.broker:
                facts.tell_unread(group, at)
            _leave(facts, group, at, "coordinator_loaded" if group.broker == facts.broker else "coordinator moved")
            group.broker = facts.broker


def _count(event: Event) -> int:
    """Members that a sentence counts; -1 where it does not."""
    found = _COUNT.match(str((event.detail or {}).get("reason", "")))
    return int(found["count"]) if found else -1


_BY_SENTENCE: dict[str, Callable[[Facts, Group, Event, float], None]] = {
    "preparing_rebalance": _on_preparing,
    "stabilized": _on_stabilized,
    "assignment_received": _on_assigned,
    "group_empty": _on_empty,
    "member_added": _on_added,
    "member_failed": _on_failed,
    "member_left": _on_left,
    "static_replaced": _on_replaced,
    "static_reverted": lives.give_back,
    "removed_not_joined": _on_not_joined,
    "group_dead": _on_dead,
    "group_loaded": _on_loaded,
    "group_unloaded": _on_unloaded,
}
"""What each sentence does. `pending_member_removed` is about an id that nobody joined with; `other` is for people."""

_OF_A_STATE = frozenset(
    {"preparing_rebalance", "stabilized", "assignment_received", "group_empty", "group_dead", "group_loaded"}
)
"""Sentences that say in which state the group is."""
