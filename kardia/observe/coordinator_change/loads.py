"""What a coordinator holds after it has loaded a group: its last record that was stored, and nothing that came since.

A record is stored with the leader's assignment, when a group becomes Empty, and when a static member is replaced in a
Stable group. A move in the middle of a rebalance therefore takes it back: the generation before it is Stable again,
whoever left meanwhile is a member again, and whoever joined is none. Sources: `storeGroup`, `loadGroup`,
`onGroupLoaded`.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts, stands
from kardia.events import Event, Kind
from kardia.kafka.releases import version_of
from kardia.kafka.states import GroupState
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger.rebalance_row import drop, withdraw
from kardia.observe.members import lives
from kardia.observe.state.entries import Stored
from kardia.observe.state.group import NEVER, Cause, Ended, Group
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import ABSENT_MS, AT_ONCE_MS, LATE_MS

_BY_SILENCE = frozenset({"session_expired", "rebalance_timeout", "sync_timeout"})
"""Ends that the coordinator's timers bring about."""

_BEGINS_SHARE_SESSIONS = (4, 1, 0)
"""First release that does: before, a member of a share group that is not heard after a load stays one for ever."""

NOT_STORED = "it joined in a rebalance that was not stored when the coordinator moved"


def note(group: Group) -> None:
    """The group as it is now is stored."""
    known = group.membership_complete
    group.stored = Stored(group.generation, group.leader, list(group.members)) if known else None


def begins_sessions(facts: Facts, group: Group) -> bool:
    """Whether a load begins the sessions of a group anew, of all its members."""
    is_share, version = group.modern is not None and group.modern.protocol == "share", facts.settings.kafka_version
    return not (is_share and version and version_of(version) < _BEGINS_SHARE_SESSIONS)


def note_empty(group: Group) -> None:
    """The group is stored as one without members."""
    group.stored = Stored(group.generation, "", [])


def note_replaced(group: Group, old_id: str, new_id: str) -> None:
    """A static member took its place again in a Stable group; that is stored."""
    if group.stored is not None:
        generation, leader, ids = group.stored
        ids = [new_id if one == old_id else one for one in ids]
        group.stored = Stored(generation, new_id if leader == old_id else leader, ids)


def restore(facts: Facts, group: Group, at: float) -> None:
    """A rebalance was under way when the coordinator changed: the group is again as it was stored."""
    if group.state not in (GroupState.PREPARING, GroupState.COMPLETING):
        return
    if group.stored is None:
        group.membership_complete = False  # who is a member of which generation is not known
        return
    if group.generation > group.stored.generation:
        group.taken_back = Stored(group.generation, group.leader, list(group.members))
    group.generation, group.leader, ids = group.stored
    for member in list(group.members.values()):
        if member.member_id not in ids:
            lives.end(facts, group, member, at, "unknown", NOT_STORED, Doubt.NOT_SEEN)
    for member_id in ids:
        over = group.ended.get(member_id)
        if member_id in group.members:
            continue
        if over is None:
            group.membership_complete = False
        else:
            bring_back(facts, group, over, at)
    if not group.members:
        facts.set_state(group, at, GroupState.EMPTY, "coordinator_loaded", Doubt.LOADED_AGAIN)


def is_lost(group: Group, begin: float, end: float) -> bool:
    """Whether a rebalance that was under way when its coordinator died, between two instants, is held still: nothing
    that was read since is of another one."""
    current = group.rebalance
    if current is None or group.modern is not None or group.stored is None:
        return False
    last = max(current.started_at_ms, current.rebalance_notified_at_ms, current.joined_at_ms)
    return group.state in (GroupState.PREPARING, GroupState.COMPLETING) and last <= begin < end


def was_stored(group: Group, event: Event) -> bool:
    """Whether a JoinGroup shows that a generation that a load took back had been stored: whoever was in it is answered
    at once, as in a Stable group. The last one to join a new generation of that number would be, too."""
    taken, waited_ms = group.taken_back, event.decided_at_ms - event.handled_at_ms
    if taken is None or not group.generation < event.generation_id == taken.generation or waited_ms > AT_ONCE_MS:
        return False
    return event.member_id in taken.member_ids and str((event.detail or {}).get("leader", "")) == taken.leader


def bring_back(facts: Facts, group: Group, over: Ended, at: float) -> None:
    """A member that had ended is one again: its end was not stored. A sure end stays, and one that it asked for, and
    another life begins."""
    if stands(over.doubts) or over.cause in LEAVE_CAUSES:
        over.member.joined_at_ms = at
        over.member.row_known = -1
    lives.reinstate(facts, group, over, at, "coordinator_loaded", Doubt.LOADED_AGAIN)


def bring_all_back(facts: Facts, group: Group, at: float, count: int) -> None:
    """A load was told, of `count` members, -1 where that is not said: whoever is stored, and had ended before it, is a
    member again, also by the coordinator's own words. An end shortens what is stored only with the next generation, or
    when nobody is left; and that is not stored either where a broker that stood still learns that it leads no more."""
    ids = _stored_ids(group, count)
    ended = [group.ended[one] for one in ids if one in group.ended and one not in group.members]
    back = [over for over in ended if over.ended_at_ms <= at]
    if not back or any(one not in group.members and one not in group.ended for one in ids):
        return
    if group.state == GroupState.EMPTY:
        _withdraw(facts, group)
        stored = group.stored
        if stored is not None:  # what was taken for the record of the group without members was not stored
            group.generation = stored.generation if stored.member_ids else stored.generation - 1
        group.deserted_at_ms = NEVER
        facts.set_state(group, at, GroupState.STABLE, "coordinator_loaded", Doubt.LOADED_AGAIN)
    for over in back:
        if _may_be_none(group, over) and over.doubts != SURE:
            lives.reinstate(facts, group, over, at, "coordinator_loaded", Doubt.LOADED_AGAIN)
        else:
            bring_back(facts, group, over, at)
    group.stored = Stored(group.generation, group.leader, ids)


def _stored_ids(group: Group, count: int) -> list[str]:
    """Whom a load has found, of so many as it says; nobody if what is held does not fit."""
    stored = group.stored
    if group.modern is not None or stored is None or count == 0:
        return []
    if len(stored.member_ids) == count or (count < 0 and group.state != GroupState.EMPTY):
        return stored.member_ids
    if stored.member_ids or count < 0:
        return []
    since = [over.member.member_id for over in group.ended.values() if over.ended_at_ms >= group.stable_at_ms]
    return [*since, *group.members] if len(since) + len(group.members) == count else []


def take_back(facts: Facts, group: Group, event: Event, at: float) -> bool:
    """Undo that a group became Empty, which silence alone had shown: an answer of the generation before, or of a join
    phase that ended with the generation that it would have taken, says that its coordinator had moved unseen, and that
    its sessions ran on. Returns whether it was so."""
    if group.state not in (GroupState.EMPTY, GroupState.DEAD) or group.stored is None:
        return False
    generation, leader, ids = group.stored
    detail = event.detail or {}
    named = str(detail.get("leader", "")) or event.member_id
    # Who takes a seat may be stored before it is answered: then the answer names who led before.
    goes_on = named in ids or detail.get("assigned_member_id") in ids or _takes_a_place_of(group, event, ids)
    goes_on = goes_on and event.generation_id == generation < group.generation
    if not goes_on and not _took_its_generation(group, event):
        return False
    facts.divergences += 1
    _withdraw(facts, group)
    group.generation, group.leader, group.rebalance = generation, leader, None
    group.unproven_at_ms = max(group.unproven_at_ms, at)
    for member_id in ids:
        over = group.ended.get(member_id)
        if over is not None and over.doubts != SURE:
            lives.reinstate(facts, group, over, at, "still a member", Doubt.LOADED_AGAIN)
    group.deserted_at_ms = NEVER
    # A JoinGroup may have waited in a rebalance that it began itself.
    since = at if goes_on else min(at, event.handled_at_ms)
    facts.set_state(
        group, since, GroupState.STABLE, "generation seen", Doubt.SEEN_LATER if goes_on else Doubt.MAY_WAIT_UNSEEN
    )
    return True


def _takes_a_place_of(group: Group, event: Event, ids: list[str]) -> bool:
    """Whether a static member comes under a new id for one of those who are stored. If that one led, it does now."""
    if event.member_id or not event.group_instance_id:
        return False
    ended = (group.ended.get(member_id) for member_id in ids)
    return any(over is not None and over.member.instance_id == event.group_instance_id for over in ended)


def _took_its_generation(group: Group, event: Event) -> bool:
    """Whether a join phase ended with the generation with which the group is said to have become Empty: it had not, or
    the next one would be higher. Not if an answer or a record shows that a member was gone."""
    if event.kind != Kind.JOIN or group.state != GroupState.EMPTY or event.generation_id != group.generation:
        return False
    if group.stored is None:
        return False
    ended = (group.ended.get(member_id) for member_id in group.stored.member_ids)
    by_silence = [over for over in ended if over is not None and over.doubts != SURE and not over.told]
    return group.generation == group.stored.generation + 1 and len(by_silence) == len(group.stored.member_ids)


def _withdraw(facts: Facts, group: Group) -> None:
    """The rebalance with which it became Empty was none: a further row takes its row back."""
    current = group.rebalance
    if current is not None and current.row_known >= 0 and not current.leader:
        current.cause = Cause(current.started_at_ms, "unknown", doubts=Doubt.NOT_SEEN)
        withdraw(facts, group, current)


def take_back_since(facts: Facts, group: Group, since: float, at: float) -> None:
    """The coordinator was restarted after the last line at `since`: what only silence had shown after it is taken back,
    because sessions ran anew from a load at `at` or before. Who is gone, by an answer, went at an instant that is not
    known."""
    back = [over for over in group.ended.values() if over.ended_at_ms > since and _may_be_none(group, over)]
    heard = has_answered_since(group, at) or _is_stored_empty(group)
    for over in back:
        if over.doubts == SURE or (heard and stands(over.doubts)):
            lives.correct(facts, group, over, over.ended_at_ms, over.cause, Doubt.LOAD_UNSEEN)
    if heard or not any(over.doubts != SURE for over in back):
        return
    facts.divergences += 1
    current = group.rebalance
    if group.state == GroupState.EMPTY and group.stored is not None:
        _withdraw(facts, group)
        group.generation, group.leader, _ = group.stored
    begun = current is not None and current.cause is not None and current.joined_at_ms < 0
    if group.modern is None and (group.state == GroupState.EMPTY or begun):
        drop(facts, group)
        group.deserted_at_ms = NEVER
        facts.set_state(group, at, GroupState.STABLE, "coordinator_loaded", Doubt.LOADED_AGAIN)
    for over in back:
        if over.doubts != SURE:
            lives.reinstate(facts, group, over, at, "coordinator_loaded", Doubt.LOADED_AGAIN)


def _is_stored_empty(group: Group) -> bool:
    return group.stored is not None and not group.stored.member_ids


def _may_be_none(group: Group, over: Ended) -> bool:
    """Whether an end rests on silence, and a load may bring the member back."""
    return over.cause in _BY_SILENCE and not over.told and not _is_stored_without(group, over)


def _is_stored_without(group: Group, over: Ended) -> bool:
    """Whether a generation without that member has been stored since it ended: no load brings it back."""
    if group.stored is None or over.ended_at_ms > group.stable_at_ms:
        return False
    return over.member.member_id not in group.stored.member_ids


def by_silence(facts: Facts, group: Group, at: float) -> Doubts:
    """What is in doubt about an end at `at` that only silence shows: where there are several brokers, another one may
    have led the group by then, and its sessions run from a load that nobody has seen. A broker that wrote nothing from
    soon after `at` on may have died before a late timer fired."""
    longest_ms = max((member.session_ms for member in group.members.values()), default=0)
    since = at - longest_ms
    if facts.may_have_restarted(group.broker, since, at):
        return Doubt.RESTART_UNJUDGED
    if facts.is_broken(group.broker, since, at):
        return Doubt.BROKER_SILENT
    if 0 <= facts.logged_to(group.broker) < at + LATE_MS:
        return Doubt.BROKER_SILENT
    if not facts.has_several_brokers() or (group.moved_at_ms < 0 and heard_at_ms(group) >= at):
        return Doubt.SILENCE
    return Doubt.OTHER_COORDINATOR


def note_heard(facts: Facts, group: Group, at: float) -> None:
    """The coordinator answers for the group: if nobody had asked for long, what was believed until now is not sure. Who
    waited in a join phase had asked, and was held by it until that ended."""
    current = group.rebalance
    last = max(heard_at_ms(group), current.joined_at_ms if current is not None else NEVER)
    if 0 <= last < at - ABSENT_MS and facts.has_several_brokers():
        group.unproven_at_ms = max(group.unproven_at_ms, at - 1.0)
    group.heard_at_ms = max(group.heard_at_ms, at)


def has_answered_since(group: Group, at: float) -> bool:
    """Whether the coordinator has answered for the group at an instant or later: of JoinGroups that waited the first
    answer says so, whenever they came."""
    current = group.rebalance
    lets_in = current is not None and not current.settled and current.joined_at_ms >= at
    return lets_in or heard_at_ms(group) >= at


def heard_at_ms(group: Group) -> float:
    """The last answer of the coordinator for the group."""
    return max(group.heard_at_ms, group.steady_at_ms)
