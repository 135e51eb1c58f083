"""What answers 27 and 0 show, and that there are none: a rebalance whose begin was not seen is under way, or is not.

`rebalance` carries out what is found. Sources: `prepareRebalance`, `onExpirePendingSync`, the answers 27 and 0 of
`doHeartbeat` and their Java successors.
"""

from __future__ import annotations

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.doubts import SURE, Doubt, Doubts, certainty_of
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.deadlines import member_deadlines
from kardia.observe.deadlines.late import fired_from
from kardia.observe.deadlines.phases import how_ended, is_tied, sync_deadline, unsynced
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import causes
from kardia.observe.ledger.rebalance_row import drop
from kardia.observe.members import lives
from kardia.observe.rebalance.begin_and_settle import begin, end_member, settle
from kardia.observe.rebalance.watches import watch_sync_timer
from kardia.observe.state.group import NEVER, Cause, Group, Member, Rebalance
from kardia.tolerances import GRACE_MS, LATE_MS, TWO_STAMPS_MS


def on_told(facts: Facts, group: Group, member: Member | None, at: float) -> None:
    """An answer 27, or another sign: a rebalance is under way, and began before it. `member`: who is told."""
    current = group.rebalance
    if group.state == GroupState.PREPARING and current is not None:
        _told_of_the_present(group, current, at)
        return
    if current is not None and current.joined_at_ms >= 0 and at <= current.joined_at_ms + facts.settings.tolerance_ms:
        return  # logged a little out of order: it belongs to the join phase that just ended
    if group.state == GroupState.COMPLETING and current is not None and not current.settled:
        settle(facts, group, current)
        if group.rebalance is not current and group.rebalance is not None:
            group.rebalance.rebalance_notified_at_ms = at
            return  # somebody left right after the join phase, and began this one
    _begin_as_told(facts, group, member, at)
    if group.rebalance is not None and group.rebalance.rebalance_notified_at_ms < 0:
        group.rebalance.rebalance_notified_at_ms = at


def _told_of_the_present(group: Group, current: Rebalance, at: float) -> None:
    """The first answer that shows a rebalance which is known already; also one that had begun untold, by an old id."""
    if current.rebalance_notified_at_ms < 0:
        current.rebalance_notified_at_ms = at
        if current.cause is not None and _is_of_an_old_id(group, current.cause):
            current.cause.doubts, current.cause.by = _doubts_of_an_old_id(group), at


def _begin_as_told(facts: Facts, group: Group, member: Member | None, at: float) -> None:
    """A rebalance that was not seen to begin did so before `at`: by whom, as far as silence shows it."""
    since = group.steady_at_ms - LATE_MS
    silent = [
        one
        for one in group.members.values()
        if one is not member and 0 <= one.deadline <= at + TWO_STAMPS_MS and one.deadline >= since
    ]
    sync_over_at = sync_deadline(group)
    let_sync_pass = sync_over_at >= 0 and since <= sync_over_at <= at + TWO_STAMPS_MS and bool(unsynced(group))
    if group.state == GroupState.COMPLETING and (silent or let_sync_pass):
        # Whoever waited in SyncGroup was protected, and is sent back in this same instant: who is not was the cause.
        group.unsynced_at_ms = sync_over_at if let_sync_pass else NEVER
        begin(facts, group, None, at, len(group.members))
        facts.schedule(group, at + facts.settings.burst_ms, "silent", "")
    elif silent and _went_by_session(group, first := _first(silent)):
        _end_the_silent(facts, group, first, at)
    elif let_sync_pass and not group.pending and not _has_returned(group, sync_over_at):  # else they may wait, unseen
        _end_the_unsynced(facts, group, member, sync_over_at, at)
    elif (old_id := _never_synced(group)) and max(0, since) <= sync_over_at <= at:
        began_at = min(fired_from(group, sync_over_at), at)
        why = Cause(began_at, "sync_timeout", old_id, doubts=_doubts_of_an_old_id(group), by=at)
        begin(facts, group, why, at, -1)
    else:
        begin(facts, group, None, at, len(group.members))


def _end_the_silent(facts: Facts, group: Group, first: Member, at: float) -> None:
    """The session of a member was over by `at`, and with that the rebalance began."""
    tied = is_tied(group, first)
    doubts = member_deadlines.doubts_of_silence(group, first)
    # Who was handed an id may have joined before a timer that is late, and anybody where none is needed.
    needs_id = not group.release or behaviour_of(group.release).member_id_required
    if (group.pending or not needs_id) and at < first.deadline + LATE_MS:
        doubts |= Doubt.MAY_WAIT_UNSEEN
    if tied:
        doubts |= Doubt.TIMERS_TIED
    ran_out_at, known = facts.ran_out(group, first, first.session_renewed_at_ms, at)
    end_member(facts, group, first, ran_out_at, "session_expired", "", doubts | known, at)
    if tied:
        lives.rival(group, first.member_id)


def _end_the_unsynced(facts: Facts, group: Group, told: Member | None, sync_over_at: float, at: float) -> None:
    """The time for SyncGroup was over by `at`, and with that the rebalance began. Provisional, because somebody may
    have joined before that, unseen, and ended the wait. `told`: a member that is one still."""
    for one in unsynced(group):
        if one is not told:
            ended_at_ms = min(fired_from(group, sync_over_at), at)
            end_member(facts, group, one, ended_at_ms, "sync_timeout", "", Doubt.BEGIN_UNSEEN, at)


def _has_returned(group: Group, by: float) -> bool:
    """Whether a static client was told, since the group was last seen to be Stable and before an instant, that it is a
    member no more: it joins again at once, and needs no id for that, so that nobody sees it wait."""
    since = max(group.stable_at_ms, group.steady_at_ms - LATE_MS)
    ended = (over for over in group.ended.values() if over.member.instance_id)
    return any(max(since, over.ended_at_ms) < over.member.asked_at_ms <= by for over in ended)


def _never_synced(group: Group) -> str:
    """The old id of a static member that the coordinator still awaits a SyncGroup of; empty if there is none."""
    return "" if group.rebalance is None else group.rebalance.never_synced


def _went_by_session(group: Group, member: Member) -> bool:
    """Whether a member whose session is over is gone for that, not for its SyncGroup, whose time was over before."""
    return member_deadlines.surely_silent(group, member) and how_ended(group, member).cause == "session_expired"


def _first(silent: list[Member]) -> Member:
    return min(silent, key=lambda other: (other.deadline, other.member_id))


def note_never_synced(facts: Facts, group: Group, old: Member) -> None:
    """A static member took its place again before its old id had synced: when the time for SyncGroup is over, the
    coordinator begins a rebalance because of that id."""
    current = group.rebalance
    if current is not None and current.settled and old.synced_generation != group.generation:
        current.never_synced = old.member_id
        watch_sync_timer(facts, group)


def begin_untold(facts: Facts, group: Group, at: float, now: float) -> None:
    """The time for SyncGroup was over at `at`, and an old id had sent none: the coordinator began a rebalance that
    nobody was told of so far. Provisional, because somebody may have begun one unseen before. Where members are
    answered as in a Stable group still, the timer is late, and is looked at again a moment later."""
    current = group.rebalance
    if current is None or not current.never_synced or group.steady_at_ms > at + LATE_MS:
        return
    if group.steady_at_ms > at and now < group.steady_at_ms + GRACE_MS:
        again_at = group.steady_at_ms + GRACE_MS
        facts.schedule(group, again_at, "unsynced", str(group.generation))
        return
    why = Cause(fired_from(group, at), "sync_timeout", current.never_synced, doubts=Doubt.BEGIN_UNSEEN)
    begin(facts, group, why, NEVER, -1)


def _is_of_an_old_id(group: Group, cause: Cause) -> bool:
    """Whether a rebalance was begun by the SyncGroup that an id of a static member never sent, which is replaced."""
    over = group.ended.get(cause.member_id)
    replaced = over is None or over.cause == "static_replaced"
    return cause.trigger == "sync_timeout" and certainty_of(cause.doubts) == "provisional" and replaced


def _doubts_of_an_old_id(group: Group) -> Doubts:
    """Who has not sent SyncGroup either is removed in the same instant, and may as well be named for it."""
    return Doubt.STAMPS_TIED if unsynced(group) else Doubt.SILENCE


def on_pending_left(facts: Facts, group: Group, member_id: str, event: Event, at: float) -> None:
    """An id that was never used left. The Java coordinator rebalances for it as for a member."""
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        cause = Cause(at, "member_left", member_id, event.client_id, "", "its id was never used", Doubt.BY_RULE)
        begin(facts, group, cause, NEVER, len(group.members))


def on_contradicted(facts: Facts, group: Group, at: float) -> None:
    """A heartbeat of the old generation is answered 0 although a rebalance was thought to be under way."""
    current = group.rebalance
    tolerance = facts.settings.tolerance_ms
    if current is None or at <= max(current.started_at_ms, current.rebalance_notified_at_ms) + tolerance:
        return
    cause = current.cause
    if cause is not None and cause.trigger in causes.BY_LEAVE and cause.by is not None and at <= cause.by + tolerance:
        return  # it was begun while the request was handled, and maybe after this
    facts.divergences += 1
    over = group.ended.get(cause.member_id) if cause is not None else None
    by_silence = over is not None and over.doubts != SURE and over.cause != "unknown"  # that was an answer
    drop(facts, group)
    # One that was started again answers so while it still loads, whoever asks.
    doubted = facts.is_doubted(group.broker, max(current.started_at_ms, current.rebalance_notified_at_ms), at)
    doubts: Doubts = Doubt.RESTART_UNJUDGED if doubted else Doubt.SEEN_LATER
    facts.set_state(group, at, GroupState.STABLE, "no rebalance: answered as stable", doubts)
    group.steady_at_ms = at
    if over is None or not by_silence:
        return
    if over.member.renewed_unseen:
        # It was taken for a member again once before, and not heard of since: it was none, and went at some time.
        lives.correct(facts, group, over, over.ended_at_ms, "unknown", Doubt.NOT_SEEN)
    else:
        lives.reinstate(facts, group, over, at, doubts=doubts)
