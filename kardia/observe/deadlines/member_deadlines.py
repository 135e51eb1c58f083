"""When something about a member becomes due: its session, a prediction. Arithmetic only; decides and remembers nothing.

A session ends one session timeout after its last renewal. Its end is predicted in two steps: early, when a heartbeat
is missing by the member's own habit, and surely, when half of the timeout has passed in silence.
"""

from __future__ import annotations

from math import inf

from kardia.doubts import Doubt, Doubts
from kardia.kafka.libraries import LIBRARIES
from kardia.kafka.states import GroupState
from kardia.observe.deadlines import phases
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.state.settings import ObserverSettings
from kardia.tolerances import GRACE_MS, LATE_MS, LEAVE_DELAY_MS

UNHEARD_BEATS = 2.5
"""Who misses so many of the heartbeats that its broker wants is in danger, where nothing says how long its session is.
A session is longer than one interval in any case, and 9 of them by default (45 s and 5 s)."""


def next_due(settings: ObserverSettings, member: Member) -> float:
    """Instant of the next thing to look at for a member; NEVER when there is none."""
    due = NEVER
    deadline = member.deadline
    if deadline >= 0 and not member.overdue:
        due = deadline + GRACE_MS
        if member.session_prediction_at_ms < 0:
            due = min(due, predict_session_at(settings, member))
        elif not member.imminent:
            due = min(due, imminent_at(settings, member))
    poll_at = predict_poll_at(settings, member)
    if poll_at >= 0 and (due < 0 or poll_at < due):
        due = poll_at
    return due


def session_over(member: Member, now: float) -> bool:
    """Whether the session deadline of a member has passed, and a moment more."""
    deadline = member.deadline
    return 0 <= deadline <= now - GRACE_MS and not member.overdue


def predict_session_at(settings: ObserverSettings, member: Member) -> float:
    """When silence is long enough to predict a session timeout: a heartbeat is missing, and a good part has passed."""
    if member.is_session_assumed:
        return _missed_at(settings, member)
    silence = max(
        settings.prediction_early_share * member.session_ms, settings.prediction_missed * member.usual_gap_max_ms
    )
    return min(member.session_renewed_at_ms + silence, imminent_at(settings, member))


def imminent_at(settings: ObserverSettings, member: Member) -> float:
    """When a session timeout is imminent: half of it has passed in silence, and more than the member's habit; never
    where nothing says how long it is."""
    if member.is_session_assumed:
        return inf
    silence = max(settings.prediction_share * member.session_ms, settings.prediction_habit * member.usual_gap_max_ms)
    return member.session_renewed_at_ms + min(silence, settings.prediction_share_max * member.session_ms)


def by_habit(settings: ObserverSettings, member: Member) -> bool:
    """Whether the habit of a member decides when it is predicted, so that it may be earlier after a renewal."""
    if member.is_session_assumed:
        return True
    return settings.prediction_missed * member.usual_gap_max_ms > settings.prediction_early_share * member.session_ms


def _missed_at(settings: ObserverSettings, member: Member) -> float:
    """When a member has missed its heartbeats; infinity where nothing says how often they are wanted."""
    own = member.modern
    if own is None or own.interval_ms <= 0:
        return inf
    silence = max(UNHEARD_BEATS * own.interval_ms, settings.prediction_missed * member.usual_gap_max_ms)
    return member.session_renewed_at_ms + silence


def predict_poll_at(settings: ObserverSettings, member: Member) -> float:
    """When a poll timeout of this member is to be predicted if nothing more is seen; NEVER when it cannot be told, as
    of one that was not heard since a gap: it may have polled in that.

    For a library whose commits trail, silence means something only while there is data that it does not commit.
    """
    library = LIBRARIES[member.library]
    if not library.poll_interval or member.rebalance_ms <= 0 or member.poll_prediction_at_ms >= 0:
        return NEVER
    polled_at_ms = member.last_poll_at_ms
    if polled_at_ms < 0 or member.unknown_since_at_ms >= 0 or member.polls_in_secret or polls_unseen(member):
        return NEVER
    since_join = member.poll_evidence in ("join", "sync") and not member.by_telemetry
    if "fetch" in library.polled_by and since_join and member.fetched_at_ms < polled_at_ms:
        return NEVER  # nothing came since: it has no partition, or its fetches are not logged
    at = polled_at_ms + settings.prediction_share * member.rebalance_ms
    if "fetch" not in library.polled_by:
        if member.data_since_commit_at_ms < 0:
            return NEVER
        # The next commit is due one interval after the last; only when it fails to come the silence says something.
        at = max(at, polled_at_ms + 1.1 * member.poll_error_ms, member.data_since_commit_at_ms + 1_000.0)
    return at


def polls_unseen(member: Member) -> bool:
    """Whether it is a member longer than its poll interval allows without a poll, so that it has polled since the last
    sign of one: an idle topic, a pause and a prefetched batch show none."""
    if not LIBRARIES[member.library].poll_interval or member.rebalance_ms <= 0 or member.last_poll_at_ms < 0:
        return False
    return member.session_renewed_at_ms > member.last_poll_at_ms + member.rebalance_ms + LEAVE_DELAY_MS


def waits_as_told(group: Group, member: Member) -> bool:
    """Whether server.log has told that it joins in the rebalance under way: its JoinGroup waits, and no session of it
    runs meanwhile."""
    current = group.rebalance
    if group.state != GroupState.PREPARING or current is None or current.joined_at_ms >= 0:
        return False
    return any(one.member_id == member.member_id for one in current.joining)


def believed_silent(group: Group, member: Member) -> bool:
    """Whether silence is unusual: not for a member that was told of a rebalance and is now waiting to be let in, nor
    for one that waits for the leader's assignment. The leader itself waits for nobody."""
    if group.state == GroupState.COMPLETING:
        return member.member_id == group.leader or len(group.members) == 1
    if waits_as_told(group, member):
        return False
    return not (group.state == GroupState.PREPARING and member.rebalance_notified_at_ms >= 0 and len(group.members) > 1)


def surely_silent(group: Group, member: Member) -> bool:
    """Whether a silent member cannot be waiting in a JoinGroup that is not seen yet: it is alone, or others were
    answered as in a Stable group when its next heartbeat was overdue. What it asked for without a renewal broke its
    silence as well: a SyncGroup in a Stable group from 4.0 on, a commit that was refused or of a transaction."""
    if group.state == GroupState.PREPARING:
        return False
    return len(group.members) == 1 or silent_among_others(group, member)


def silent_among_others(group: Group, member: Member) -> bool:
    """Whether others were answered as in a Stable group when the next heartbeat of a member was overdue."""
    usual_ms = member.usual_gap_max_ms or member.session_ms / 3
    silent_since = max(member.session_renewed_at_ms, member.asked_at_ms)
    return group.steady_at_ms >= silent_since + usual_ms


def awaited_in_vain(group: Group, leader: Member, deadline: float) -> bool:
    """Whether a silent leader cannot be waiting in a JoinGroup that has begun a rebalance unseen: somebody else was
    answered as in a Completing group when the leader should have been heard, and not after it was evicted. Where the
    others wait in SyncGroup, which shows nothing, they are sent back in the instant of its eviction, and that shows it.
    If it is its own SyncGroup that waits, to be stored, it is no more evicted than the others are answered."""
    others = (other.session_renewed_at_ms for other in group.members.values() if other is not leader)
    usual_ms = leader.usual_gap_max_ms or leader.session_ms / 3
    silent_since = max(leader.session_renewed_at_ms, leader.asked_at_ms)
    return silent_since + usual_ms <= max(others, default=NEVER) <= deadline + LATE_MS


def doubts_of_silence(group: Group, member: Member) -> Doubts:
    """What is in doubt where silence is all that shows that a session ended at its deadline. After a move sessions run
    from the load, which is known within bounds only; a static member may have been replaced by a JoinGroup that waits
    unseen, which does not end by its session then. So may one that never sent its SyncGroup and was let be as others
    were answered: it comes again by a JoinGroup and not by a heartbeat."""
    doubts: Doubts = Doubt.SILENCE
    if len(group.members) > 1 and member.instance_id:
        doubts |= Doubt.SEAT_MAY_BE_TAKEN
    elif len(group.members) > 1 and _may_join_again(group, member):
        doubts |= Doubt.MAY_WAIT_UNSEEN
    if member.renewed_unseen:
        doubts |= Doubt.RENEWAL_UNSURE
    if 0 <= member.session_renewed_at_ms <= group.unsure_to:
        doubts |= Doubt.LOAD_UNSEEN
    return doubts


def _may_join_again(group: Group, member: Member) -> bool:
    """Whether a member that has been silent since it was let in had not synced while others were answered as in a
    Stable group, in a generation whose begin was seen."""
    unsynced = member.seen_joining and phases.is_unsynced(group, member)
    return unsynced and group.state == GroupState.STABLE and phases.sync_deadline(group) >= 0


def may_be_waiting(group: Group, member: Member, now: float) -> bool:
    """Whether a member may sit in a JoinGroup that is not answered yet, which hides its polls and its heartbeats."""
    if group.state == GroupState.STABLE:
        return False
    heard_lately = now - member.session_renewed_at_ms <= 2.0 * max(member.usual_gap_max_ms, 500.0)
    return not (group.state == GroupState.PREPARING and member.rebalance_notified_at_ms >= 0 and heard_lately)
