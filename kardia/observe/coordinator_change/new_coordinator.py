"""A coordinator that moves, loads or comes back: what that does to deadlines, and what shows it.

When a coordinator loads a group every session starts anew; when that was is seen only within bounds, by answers before
and after. A move is one of the whole shard. Signs: NOT_COORDINATOR and its like, an answer from another broker, and
what shows that the broker itself was restarted (`restarts`). Source: `onGroupLoaded`.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import CLOCKS_APART_MS, Event, Kind
from kardia.kafka.states import COORDINATOR_MOVED, ErrorCode, GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.facts import forgetting
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger.rebalance_row import drop
from kardia.observe.members import who_broke
from kardia.observe.state.entries import Elected
from kardia.observe.state.group import NEVER, NO_SESSION, Group, Member
from kardia.tolerances import AWAKE_MS, ELECTION_STANDS_MS, LOADS_WITHIN_MS, NOT_REPLICATED_AFTER_MS


def note_elected(facts: Facts, event: Event, at: float) -> None:
    """A broker says that it takes a shard, and with which epoch of a leader. One that has just started or woke goes by
    what it knew when it fell, loads, and learns moments later that another one leads: its epoch is lower. Sources:
    `GroupCoordinator.onElection`, `CoordinatorRuntime.scheduleLoadOperation`."""
    shard, epoch = str(event.shard), event.generation_id
    known = facts.elected.get(shard)
    if known is None or epoch >= known.epoch or at - known.at_ms > ELECTION_STANDS_MS:
        facts.elected[shard] = Elected(epoch, at, [], facts.broker)
    elif facts.broker not in known.behind:
        known.behind.append(facts.broker)


def is_behind(facts: Facts, shard: int) -> bool:
    """Whether the broker that speaks took this shard with a lower epoch than another one had."""
    known = facts.elected.get(str(shard))
    return known is not None and facts.broker in known.behind


def held_or_new(facts: Facts, event: Event) -> Group:
    """The group an event is about, made when it is new, or when what was held of that name is over."""
    group = facts.groups.get(event.group_id)
    if group is not None and forgetting.is_over(facts, event.group_id, event.handled_at_ms):
        forgetting.forget(facts, event.group_id)
        group = None
    if group is None:
        group = facts.groups[event.group_id] = Group(event.group_id, event.shard)
        group.gap_at_ms = facts.blind_to.get(facts.broker, NEVER)
        group.seq = forgetting.first_seq(facts, event.handled_at_ms)
        forgetting.note_without_members(facts, group, event.handled_at_ms)
    return group


def group_of(facts: Facts, event: Event) -> Group:
    """The same; notes when another broker answers for it."""
    group = held_or_new(facts, event)
    if event.error_code in COORDINATOR_MOVED:
        return group
    if facts.broker:
        loads.note_heard(facts, group, event.handled_at_ms)
    if group.broker != facts.broker and facts.broker:
        _switch(facts, group, event)
    elif group.moved_at_ms >= 0 and _goes_on(group, event):
        group.moved_at_ms = NEVER
        note_answer(group, event)
    elif group.moved_at_ms >= 0 and event.handled_at_ms > group.moved_at_ms:
        reload(facts, group, event.handled_at_ms, doubts_of_answer(event))
        note_answer(group, event)
    elif group.loading_since_at_ms >= 0:
        note_answer(group, event)
    return group


def _goes_on(group: Group, event: Event) -> bool:
    """Whether what the group is doing goes on, so that it was loaded before that began: a JoinGroup is let in that had
    come before the instant at which the coordinator is another one at the latest, as no request outlives its
    coordinator; or a generation is answered that is not stored yet, as none outlives it either."""
    if event.error_code != ErrorCode.NONE:
        return False
    if event.kind == Kind.JOIN:
        return event.handled_at_ms <= group.moved_at_ms < event.decided_at_ms
    knows = event.kind == Kind.SYNC and event.generation_id == group.generation
    return knows and group.state == GroupState.COMPLETING


def is_from_before(facts: Facts, event: Event) -> bool:
    """Whether a request was answered by an earlier coordinator: long before the present one was last heard, just after
    it woke from a silence in which another one has loaded the group, or just after another one was elected.

    A host that went down has lines that are read when it is back, and a broker that stood still answers what waits for
    it before it learns that it leads nothing any more: believed, it would be the coordinator again.
    """
    group = facts.groups.get(event.group_id)
    if group is None or not is_overtaken(facts, group):
        return False
    at = event.handled_at_ms
    if at < loads.heard_at_ms(group) - CLOCKS_APART_MS:
        return True
    elected = facts.elected.get(str(group.shard))
    if elected is not None and elected.broker != facts.broker and 0 <= event.decided_at_ms - elected.at_ms <= AWAKE_MS:
        return True  # of what it still answers then nothing can be stored
    silences = facts.silences.get(facts.broker, ())
    return any(begin < group.loaded_at_ms < end and begin < at < end + AWAKE_MS for begin, end in silences)


def _switch(facts: Facts, group: Group, event: Event) -> None:
    first, left = not group.broker, group.broker
    facts.tell_unread(group, event.handled_at_ms)
    facts.take_over(group)
    if first:
        for member in group.members.values():
            facts.watch(group, member)
    else:
        give_up_neighbours(facts, group, event.handled_at_ms, left)
        reload(facts, group, event.handled_at_ms, doubts_of_answer(event))
        note_answer(group, event)


def on_load_line(facts: Facts, group: Group, at: float, count: int = -1) -> None:
    """The coordinator's own line: it has loaded the group, with so many members, -1 where that is not said. Read late,
    it may be about what has gone on since."""
    if at >= loads.heard_at_ms(group) - CLOCKS_APART_MS:
        _led_by_another(facts, group, at)
    pending = facts.unjudged.get(group.broker)
    if pending:
        pending[:] = [silence for silence in pending if silence.begin_at_ms >= at]
    begin = max((begin for begin, _ in facts.silences.get(group.broker, ()) if begin < at), default=at)
    group.broke_at_ms = max(group.broke_at_ms, begin)
    loads.take_back_since(facts, group, begin, at)
    loads.bring_all_back(facts, group, at, count)
    if loads.heard_at_ms(group) > at:
        group.loaded_at_ms = max(group.loaded_at_ms, at)
        for member in group.members.values():
            if 0 <= member.session_renewed_at_ms < at:
                _arm(facts, group, member, at)
    else:
        reload(facts, group, at, SURE)


def _led_by_another(facts: Facts, group: Group, at: float) -> None:
    """A broker says that it has loaded a group that another one led: from here on its clock counts."""
    if group.broker and facts.broker and group.broker != facts.broker:
        facts.tell_unread(group, at)
        facts.take_over(group)
        for member in group.members.values():
            facts.watch(group, member)


def is_overtaken(facts: Facts, group: Group) -> bool:
    """Whether a line of server.log is of a coordinator that another one has replaced. A broker that stood still expires
    everybody when it wakes, before it learns that it leads nothing any more; nobody is evicted by that."""
    return bool(group.broker and facts.broker) and group.broker != facts.broker


def reload(facts: Facts, group: Group, at: float, doubts: Doubts) -> None:
    """A coordinator loaded the group: every session timer starts again, joins and waiting requests are lost."""
    group.loaded_at_ms = at
    group.moved_at_ms = NEVER
    if group.modern is not None:
        _reload_epochs(facts, group, at, doubts)
        return
    loads.restore(facts, group, at)
    if group.rebalance is not None and (not group.rebalance.settled or group.rebalance.assigned_at_ms < 0):
        drop(facts, group)
    if group.members and group.state == GroupState.STABLE and group.told_state == GroupState.STABLE:
        facts.tell_group(group, at, GroupState.STABLE, "coordinator_loaded", doubts)
    elif group.members:
        facts.set_state(group, at, GroupState.STABLE, "coordinator_loaded", doubts)
    group.pending.clear()
    for member in group.members.values():
        if member.session_renewed_at_ms < at:
            member.begin_anew(at)
        member.overdue = False
        member.rebalance_notified_at_ms = NEVER
        facts.watch(group, member)


def _reload_epochs(facts: Facts, group: Group, at: float, doubts: Doubts) -> None:
    """The same of a group that has epochs, all of which are stored: what was answered is so still. Sessions begin anew,
    and so does the time to give partitions up. Source: `GroupMetadataManager.onLoaded`."""
    if group.modern is not None:
        for member_id in group.modern.unstored:  # what was not replicated may be lost
            if member_id in group.members:
                group.members[member_id].unknown_since_at_ms = at
        group.modern.unstored.clear()
    if group.members and group.told_state == group.state:
        facts.tell_group(group, at, str(group.told_state), "coordinator_loaded", doubts)
    elif group.members:
        facts.set_state(group, at, group.state, "coordinator_loaded", doubts)
    begins_sessions = loads.begins_sessions(facts, group)
    for member in group.members.values():
        if member.session_renewed_at_ms < at:
            member.begin_anew(at)
            member.session_ms = member.session_ms if begins_sessions else NO_SESSION
        member.overdue = False
        own = member.modern
        if own is not None:
            own.rejoin_since_at_ms = own.sync_since_at_ms = NEVER
            if own.revoke_since_at_ms >= 0:
                own.revoke_since_at_ms, own.revoke_by = at, NEVER
        facts.watch(group, member)


def moved(facts: Facts, group: Group, event: Event, at: float) -> None:
    """This broker does not lead the group: nothing about the member follows; what it said last stands. A broker
    that loads it leads it, so the one before does not."""
    if was_served(event):
        _note_served(facts, group, event)
        return
    if group.broker == facts.broker or (group.broker and event.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        give_up_neighbours(facts, group, at, group.broker)
        give_up(facts, group, at)


_BY_HEARTBEAT = (Kind.HEARTBEAT, Kind.MODERN_HEARTBEAT)
_RENEWING = (*_BY_HEARTBEAT, Kind.COMMIT)


def was_served(event: Event) -> bool:
    """Whether the coordinator did what was asked, and could not store it in time: it leads the group."""
    waited_ms = event.decided_at_ms - event.handled_at_ms
    return event.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE and waited_ms >= NOT_REPLICATED_AFTER_MS


def _note_served(facts: Facts, group: Group, event: Event) -> None:
    """What the coordinator answered to its member is not known: it was renewed, unless it was refused."""
    member, at = group.members.get(event.member_id), event.handled_at_ms
    if member is not None and event.kind in _BY_HEARTBEAT:
        who_broke.heard(member, event)  # by a connection that it has, whatever it is answered on
    if member is None or event.kind not in _RENEWING or not 0 <= member.session_renewed_at_ms < at:
        return
    _arm(facts, group, member, at)
    member.doubtful_at_ms = at
    if member.modern is not None:
        member.modern.heard_from_ms, member.modern.unstored_at_ms = event.arrived_at_ms, at


def give_up(facts: Facts, group: Group, at: float) -> None:
    """The coordinator is another one since some instant before `at`: no session ends earlier than if it began then."""
    group.loaded_at_ms = group.moved_at_ms = max(group.loaded_at_ms, at)
    for member in group.members.values():
        if 0 <= member.session_renewed_at_ms < at:
            _arm(facts, group, member, at)


def give_up_neighbours(facts: Facts, group: Group, at: float, left: str) -> None:
    """The other groups of a shard move with the first of which that is seen."""
    if group.moved_at_ms >= 0:
        return  # said before
    for other in facts.groups.values():
        if other.shard == group.shard and other is not group and other.broker == left and other.moved_at_ms < 0:
            give_up(facts, other, at)


def note_answer(group: Group, event: Event) -> None:
    """An answer of a new coordinator: while it loads it answers heartbeats with 0 and SyncGroups with 27, unseen."""
    at = event.decided_at_ms
    if not _says_nothing(event) or 0 <= group.loading_since_at_ms <= at - LOADS_WITHIN_MS:
        group.loading_since_at_ms, group.loaded_by = NEVER, at
        return
    if group.loading_since_at_ms < 0:
        group.loading_since_at_ms = at
    group.unproven_at_ms = max(group.unproven_at_ms, at)


def doubts_of_answer(event: Event) -> Doubts:
    """What is in doubt about the group being Stable, by an answer of a new coordinator: while it loads it answers
    heartbeats the same, and others are answered so in a rebalance as well, which may have begun since the load."""
    return Doubt.SEEN_LATER if event.kind == Kind.SYNC and event.error_code == ErrorCode.NONE else Doubt.LOAD_UNSEEN


def _says_nothing(event: Event) -> bool:
    """Whether a coordinator that still loads would answer the same."""
    if event.kind == Kind.SYNC:
        return event.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    return event.kind == Kind.HEARTBEAT and event.error_code == ErrorCode.NONE


def begun_anew(facts: Facts, group: Group, begin: float, end: float) -> None:
    """The broker of a group was restarted: the last line before that stands at `begin`, the first after it at `end`.

    What was said of instants since then is taken back. The load lies somewhere between, or a little later; `end` is
    taken for it, and everything that follows from that is provisional.
    """
    group.broke_at_ms = begin
    for member in (*group.members.values(), *(over.member for over in group.ended.values())):
        # None of them lives any more, and their numbers are given again. One that is said to have ended may be back.
        member.connection = member.heard_on = member.heard_before_on = ""
    loads.take_back_since(facts, group, begin, end)
    if loads.has_answered_since(group, end):
        if loads.is_lost(group, begin, end):
            # Ids that were handed out since are all that it has answered which stays.
            handed_out = {one: held for one, held in group.pending.items() if held.handed_out_at_ms >= end}
            reload(facts, group, end - 1.0, Doubt.LOAD_UNSEEN)
            group.pending.update(handed_out)
        # It has answered since, but what it answered may have been heartbeats, before it had loaded the group.
        group.loaded_at_ms = max(group.loaded_at_ms, end - 1.0)
        group.unproven_at_ms = max(group.unproven_at_ms, loads.heard_at_ms(group))
        if group.loading_since_at_ms < 0:
            group.loading_since_at_ms = end
        for member in group.members.values():
            if 0 <= member.session_renewed_at_ms < end:
                _arm(facts, group, member, end)
    else:
        give_up(facts, group, end - 1.0)  # the line that ended the silence may be an answer


def _arm(facts: Facts, group: Group, member: Member, at: float) -> None:
    member.begin_anew(at)
    member.overdue = False
    if member.session_prediction_at_ms >= 0:
        facts.close_prediction(group, member, "session", "unknown", at)
    facts.watch(group, member)
