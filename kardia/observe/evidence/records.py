"""What records of `__consumer_offsets` and the coordinator's lines in server.log add to the requests.

A GroupMetadata record is written when the leader's assignment is stored, when a group becomes empty and when a static
member is replaced; it holds timeouts and addresses of members that joined before the log began. A coordinator line
says exactly when a member failed or a rebalance began. Both are optional: without them the same conclusions are drawn
from requests and timers, a little less certain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.kafka.libraries import recognise
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads, new_coordinator
from kardia.observe.deadlines import phases
from kardia.observe.evidence import disagreements, unknown_to_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import causes, costs
from kardia.observe.members import lives
from kardia.observe.rebalance import begin_and_settle, emptied, generations
from kardia.observe.state.entries import BeginLine, SaidEnd, Stored
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import LATE_MS, LOADS_WITHIN_MS, TWO_STAMPS_MS

MAX_BEGIN_LINES = 4
"""Lines about the begin of a rebalance that are kept of a group: the answers of one may be read after the line of the
next, which began in the same moment."""


def on_group_record(facts: Facts, event: Event, at: float) -> None:
    """GroupMetadata: learn members of a group not seen yet, confirm what is held, notice an empty group."""
    detail = event.detail or {}
    group = new_coordinator.group_of(facts, event)
    if detail.get("tombstone"):
        on_deleted(facts, group, at)
        return
    generation = int(detail.get("generation", event.generation_id))
    group.protocol_type = str(detail.get("protocol_type") or group.protocol_type)
    entries = detail.get("members") or []
    if not entries:
        _on_empty_record(facts, group, event, generation, at)
        return
    if not group.broker:
        _forget_unlisted(facts, group, entries, at)
    unknown = group.state == GroupState.UNKNOWN or generation > group.generation or not group.broker
    for entry in entries:
        if unknown or entry[0] in group.members:
            take_entry(facts, group, entry, generation, at)
    leader = str(detail.get("leader") or group.leader)
    group.stored = Stored(generation, leader, [entry[0] for entry in entries])
    if unknown:
        generations.on_generation_stored(facts, group, group.stored, float(detail.get("state_at_ms", NEVER)), at)
        group.generation, group.leader = generation, leader
        group.protocol_name = str(detail.get("protocol_name") or group.protocol_name)
        group.membership_complete = True
        costs.take_assignment(group, [(entry[0], entry[6]) for entry in entries])
        if group.state in (GroupState.UNKNOWN, GroupState.EMPTY, GroupState.DEAD):
            facts.set_state(group, at, GroupState.STABLE, "group record", Doubt.SEEN_LATER)


def take_entry(facts: Facts, group: Group, entry: list[Any], generation: int, at: float) -> None:
    """A member that a record names: timeouts and addresses of one that is held, or one that was not seen yet."""
    member_id, instance_id, client_id, host, session_ms, rebalance_ms, _assignment = entry
    member = group.members.get(member_id)
    if member is None:
        if member_id in group.ended:
            return
        member = Member(member_id, at, instance_id=instance_id or "", generation_first=generation)
        member.client_id, member.client_host = client_id, host.lstrip("/")
        member.library = recognise("", client_id, group.protocol_type)
        group.members[member_id] = member
        if member.instance_id:
            group.instances[member.instance_id] = member_id
        facts.index(group, member)
    before = (member.session_ms, member.rebalance_ms, member.client_id)
    member.session_ms, member.rebalance_ms = int(session_ms), int(rebalance_ms)
    if not member.client_id:
        facts.take_client(group, member, client_id, host.lstrip("/"))
    if before != (member.session_ms, member.rebalance_ms, member.client_id):
        facts.emit_member(group, member, at, SURE if member.seen_joining else Doubt.THERE_BEFORE)
        if member.session_renewed_at_ms >= 0:
            facts.watch(group, member)


def _forget_unlisted(facts: Facts, group: Group, entries: list[list[Any]], at: float) -> None:
    """Where no request has been seen yet, or nothing is known of the state, the records are all there is: whoever one
    does not name was gone by then."""
    listed, instances = {entry[0] for entry in entries}, {entry[1] for entry in entries if entry[1]}
    for member in list(group.members.values()):
        if member.member_id in listed:
            continue
        if member.instance_id in instances:
            lives.end(facts, group, member, at, "static_replaced", "", Doubt.BY_ELIMINATION)
        else:
            lives.end(facts, group, member, at, "unknown", "", Doubt.NOT_SEEN)


def _on_empty_record(facts: Facts, group: Group, event: Event, generation: int, at: float) -> None:
    """The record of a group without members: it became empty at this instant, the last ones are gone."""
    if generation == 0 and group.generation <= 0:
        group.membership_complete = (
            True  # the Java coordinator writes it when a group is first heard of: nobody was there before
        )
        return
    if group.state == GroupState.DEAD:
        return  # of before it was deleted: the answer to that was read first
    if group.state == GroupState.UNKNOWN:  # as after a gap: whoever is held from before is gone by now
        group.generation = generation
        group.membership_complete = True
        _forget_unlisted(facts, group, [], at)
        facts.set_state(group, at, GroupState.EMPTY, "group record", SURE)
        return
    if generation <= group.generation or group.state == GroupState.EMPTY:
        if generation == group.generation and group.state == GroupState.EMPTY:
            _confirm_last(facts, group, at)
        return
    group.empty_at_ms, group.empty_by, group.empty_in = at, f"{event.source}@{event.start}", generation
    if group.broker:
        facts.schedule(group, at + facts.settings.settle_ms, "empty", str(generation))
    else:
        conclude_empty(facts, group, generation)


def conclude_empty(facts: Facts, group: Group, generation: int) -> None:
    """A moment after the record: the requests and deadlines of the last members have been applied, if there are any."""
    if group.empty_in != generation:
        return  # concluded before: the group was deleted meanwhile
    group.empty_in = -1
    facts.evidence = group.deserted_by if group.deserted_at_ms >= 0 else group.empty_by
    if group.generation >= generation:
        if group.generation == generation and group.state == GroupState.EMPTY:
            _confirm_last(facts, group, group.empty_at_ms)
        return
    at, tolerance = group.empty_at_ms, facts.settings.tolerance_ms
    group.membership_complete = True
    group.pending.clear()
    _end_as_said(facts, group, at)
    ends = phases.all_ends(group)
    # It became Empty when the last of these timers fired. If that was well before, while nothing was logged, the broker
    # may have been started again, and the sessions have begun anew.
    last_at = max((end.at_ms for end in ends), default=at)
    begun_anew = 0 <= last_at < at - LATE_MS and facts.is_quiet_at(group.broker, last_at)
    for end in ends:
        member, why = group.members[end.member_id], end.cause
        since_load = why == "session_expired" and 0 <= member.session_renewed_at_ms <= group.unsure_to
        if since_load or begun_anew:
            begin_and_settle.end_member(facts, group, member, at, why, "", Doubt.LOAD_UNSEEN, at)
        elif 0 <= end.at_ms <= at + tolerance:
            doubts: Doubts = Doubt.TIMERS_TIED if end.tied else SURE if why == "session_expired" else Doubt.SILENCE
            begin_and_settle.end_member(facts, group, member, min(end.at_ms, at), why, "", doubts, at)
            if end.tied:
                lives.rival(group, end.member_id)
        else:
            begin_and_settle.end_member(facts, group, member, at, "unknown", "", Doubt.NOT_SEEN)
    if group.state != GroupState.EMPTY:
        emptied.becomes_empty(facts, group, at, at)
    group.generation = generation


def _end_as_said(facts: Facts, group: Group, at: float) -> None:
    """End the members of which the coordinator's own line has said then that they did not join in time."""
    for member_id, said in list(group.said.ends.items()):
        member = group.members.get(member_id)
        if member is not None and said.cause and abs(said.at_ms - at) <= LATE_MS:
            del group.said.ends[member_id]
            begin_and_settle.end_member(facts, group, member, said.at_ms, said.cause, "", said.doubts)


def on_deleted(facts: Facts, group: Group, at: float, by: float | None = None) -> None:
    """The group is gone, at `at` or up to `by` (see `Ended.by`); what the record of its becoming Empty says of its last
    members comes first."""
    if group.empty_in >= 0:
        conclude_empty(facts, group, group.empty_in)
    unknown_to_coordinator.on_deleted(facts, group, at, by)


def _confirm_last(facts: Facts, group: Group, at: float) -> None:
    """The group became Empty at `at`. Whose timer was due well before did not end by it: its session had begun anew."""
    for over in group.ended.values():
        if at <= over.ended_at_ms + LATE_MS:
            lives.confirm(facts, group, over, at)


def on_offset_record(_observer: Facts, _event: Event, _at: float) -> None:
    """An offset commit record: the request itself says more; nothing is drawn from it."""


def on_coordinator_line(facts: Facts, event: Event, at: float) -> None:
    """A line of server.log: the coordinator's own words, exact to its stamp."""
    what = str((event.detail or {}).get("what"))
    if not event.group_id:
        if what == "partition_loaded":
            _on_partition_loaded(facts, event, at)
        return
    group = facts.groups.get(event.group_id)
    if group is None and what == "preparing_rebalance":
        group = new_coordinator.group_of(
            facts, event
        )  # its first JoinGroups wait, and are logged when they are answered
    if group is None:
        return
    overtaken = new_coordinator.is_overtaken(facts, group)
    handler = (_BY_LINE_OF_ONE_REPLACED if overtaken else _BY_LINE).get(what)
    if handler is not None:
        handler(facts, group, event, at)


def _on_failed_elsewhere(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A coordinator that another one has replaced expires a member of a group which it leads no more."""
    disagreements.tell(facts, group, disagreements.of_coordinator(group, event.member_id), event, at)


def _on_assignment(facts: Facts, group: Group, event: Event, at: float) -> None:
    """The leader's assignment for a generation has come: that is the one which the group has."""
    disagreements.tell(facts, group, disagreements.of_generation(group, event.generation_id), event, at)


def _on_seat_taken(facts: Facts, group: Group, event: Event, at: float) -> None:
    """Another process has the seat of a member, whose session is over with that. Who it is its answer says, which may
    wait for seconds until it is stored; that of whoever has the seat began anew. Read after the answer, it says that
    nobody else had the seat before."""
    member_id = event.member_id
    member, over = group.members.get(member_id), group.ended.get(member_id)
    if over is not None and over.cause in ("static_replaced", "session_expired"):
        if not over.told and over.doubts != SURE and abs(over.ended_at_ms - at) <= LATE_MS:
            lives.correct(facts, group, over, at, "static_replaced", SURE)
        return
    if member is None or group.state != GroupState.STABLE:
        return
    group.said.note_end(member_id, SaidEnd("static_replaced", at, SURE))
    if member.session_renewed_at_ms >= at:
        return
    if member.session_prediction_at_ms >= 0:
        facts.close_prediction(group, member, "session", "averted", at)
    lives.begin_in_doubt(facts, group, member, at)


def _on_partition_loaded(facts: Facts, event: Event, at: float) -> None:
    """All groups of a shard were loaded; of those that a line of their own has told of, that one counts."""
    for group in list(facts.groups.values()):
        if group.shard == event.shard and not group.load_told_at_ms >= at - LOADS_WITHIN_MS:
            group.begin_lines = [line for line in group.begin_lines if line.began_at_ms > at]  # a load undoes the rest
            new_coordinator.on_load_line(facts, group, at)


def _on_group_loaded(facts: Facts, group: Group, event: Event, at: float) -> None:
    group.begin_lines.clear()  # a rebalance that was under way is none any more
    group.load_told_at_ms = at
    if group.state == GroupState.EMPTY and (event.generation_id == group.generation or _count(event) == 0):
        loads.note_empty(group)  # what ended before was stored, and stays
    new_coordinator.on_load_line(facts, group, at, _count(event))


def _on_preparing(facts: Facts, group: Group, event: Event, at: float) -> None:
    detail = event.detail or {}
    named = [event.member_id, *map(str, detail.get("members") or ())] if event.member_id else []
    reason = str(detail.get("reason", ""))
    group.begin_lines.append(BeginLine(event.generation_id, at, reason, named))
    del group.begin_lines[:-MAX_BEGIN_LINES]
    if causes.says_unsynced(reason) and event.generation_id == group.generation:
        _on_unsynced(facts, group, named, at)
    emptied.on_line(facts, group)


def _on_group_empty(facts: Facts, group: Group, event: Event, at: float) -> None:
    if not group.members and group.state == GroupState.PREPARING:
        emptied.becomes_empty(facts, group, at)
    if group.state == GroupState.EMPTY and event.generation_id == group.generation:
        loads.note_empty(group)


def _count(event: Event) -> int:
    """With how many members the group was loaded; only the Java coordinator says it, -1 for the others."""
    number = str((event.detail or {}).get("reason", "")).partition(" ")[0]
    return int(number) if number.isdecimal() else -1


def _on_unsynced(facts: Facts, group: Group, named: list[str], at: float) -> None:
    """The time for SyncGroup is over, and these have not sent one. A single member is answered nothing any more."""
    if group.state not in (GroupState.COMPLETING, GroupState.STABLE):
        return
    unsynced = phases.unsynced(group)
    for member in [one for one in unsynced if one.member_id in named]:
        begin_and_settle.end_member(facts, group, member, at, "sync_timeout", "", SURE)


def _on_failed(facts: Facts, group: Group, event: Event, at: float) -> None:
    member_id = event.member_id
    disagreements.tell(facts, group, disagreements.of_eviction(facts, group, member_id, at), event, at)
    member = group.members.get(member_id)
    if member is not None:
        current = group.rebalance
        if current is not None and current.joined_at_ms >= 0 and abs(at - current.joined_at_ms) <= TWO_STAMPS_MS:
            # The end of a join phase renews every session: it failed before that, in the same ms, and began nothing.
            lives.end(facts, group, member, at, "session_expired", "", SURE)
        else:
            begin_and_settle.end_member(facts, group, member, at, "session_expired", "", SURE)
        if member_id in group.ended:
            group.ended[member_id].told = True
        return
    over = group.ended.get(member_id)
    if over is None:
        _on_unheard_failed(facts, group, member_id, at)
        return
    if over.cause in LEAVE_CAUSES and over.ended_at_ms < group.loaded_at_ms <= at:
        # It left in a rebalance that was not stored when the coordinator changed, whose begin was not read.
        loads.bring_back(facts, group, over, group.loaded_at_ms)
        begin_and_settle.end_member(facts, group, over.member, at, "session_expired", "", SURE)
        group.ended[member_id].told = True
        return
    # That another process was seen in its seat does not end a member for good: the coordinator may take it back.
    by_what = over.cause in ("session_expired", "unknown", "static_replaced")
    if by_what and not (over.doubts == SURE and over.by is None):
        over.told = True
        lives.correct(facts, group, over, at, "session_expired", SURE)


def _on_not_joined(facts: Facts, group: Group, event: Event, at: float) -> None:
    """The join phase ended without these, and dropped them: which of their timers it was is said."""
    end = SaidEnd("rebalance_timeout", at, SURE)
    for member_id in (event.member_id, *map(str, (event.detail or {}).get("members") or ())):
        over = group.ended.get(member_id)
        if member_id in group.members:
            group.said.note_end(member_id, end)
        elif over is not None and over.cause in _BY_A_TIMER and over.doubts != SURE:
            over.told = True
            lives.correct(facts, group, over, at, end.cause, SURE)
            begin_and_settle.note_removed(facts, group, over.member, at)


_BY_A_TIMER = ("session_expired", "rebalance_timeout", "unknown")


def _on_unheard_failed(facts: Facts, group: Group, member_id: str, at: float) -> None:
    """Nothing else names this member. Of a group whose members are all known it can be only one whose first JoinGroup
    was never answered; of others it may have been there before anything of the group was read."""
    if len(group.ended) >= lives.MAX_ENDED:
        return  # it may be one that ended before and is held no longer
    cause = "join_timeout" if group.membership_complete else "session_expired"
    doubts: Doubts = SURE if group.membership_complete else Doubt.MEMBERS_UNKNOWN
    lives.end(facts, group, Member(member_id, at), at, cause, "", doubts)


_BY_LINE: dict[str, Callable[[Facts, Group, Event, float], None]] = {
    "group_loaded": _on_group_loaded,
    "member_failed": _on_failed,
    "assignment_received": _on_assignment,
    "preparing_rebalance": _on_preparing,
    "group_empty": _on_group_empty,
    "removed_not_joined": _on_not_joined,
    "static_reverted": lives.give_back,
    "static_replaced": _on_seat_taken,
}
"""What each line says of a group that its broker leads."""

_BY_LINE_OF_ONE_REPLACED: dict[str, Callable[[Facts, Group, Event, float], None]] = {
    "group_loaded": _on_group_loaded,
    "member_failed": _on_failed_elsewhere,
}
"""What a line says of a group that another broker leads by now, as far as is known: who loads it may lead it since."""
