"""Members whose tombstone a record was: gone at its instant, and it is found out why, by a leave or by silence.

A record does not say why. A leave that would say it is awaited for a moment; without one the session may have ended.
"""

from __future__ import annotations

from kardia.doubts import Doubt, Doubts
from kardia.kafka.states import ModernState
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import ends, epochs, session_length
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tolerances import AT_ONCE_MS, BUSY_MS, EARLY_MS, LEAVE_SHOWN_WITHIN_MS, REMOVED_AFTER_MS


def conclude_removed(facts: Facts, group: Group, member_id: str, due: float) -> None:
    """No leave came that would say why a member is gone. Where its requests are seen, and it was silent before, that
    was the end of its session, whose length is known now."""
    member = group.members.get(member_id)
    if member is None or member.modern is None or member.modern.gone_at_ms < 0:
        return
    at, own = member.modern.gone_at_ms, member.modern
    if due < at + REMOVED_AFTER_MS and group.broker:
        return
    silent_ms = at - member.session_renewed_at_ms
    if _may_have_left(group, member, at):
        finish(facts, group, member, "unknown", "", Doubt.NOT_SEEN)
        return
    seen = group.broker and member.session_renewed_at_ms >= 0 and member.unknown_since_at_ms < 0 and not own.classic
    seen = seen and group.modern is not None and group.modern.session_from not in ("given", "seen")
    seen = seen and own.interval_ms > 0 and member.session_renewed_at_ms > max(group.unsure_to, group.gap_at_ms)
    if seen and facts.logged_to(group.broker) < at and due < at + LEAVE_SHOWN_WITHIN_MS:
        facts.schedule(group, due + REMOVED_AFTER_MS, "removed", member_id)  # no line since: a leave may have one yet
        return
    seen = seen and facts.logged_to(group.broker) >= at
    left_none = group.broker and at > max(group.unsure_to, group.gap_at_ms) and facts.logged_to(group.broker) >= at
    if seen and silent_ms > 2 * own.interval_ms:
        session_length.learn(facts, group, member, at)
        due_at_ms = member.session_renewed_at_ms + group.modern.session_ms if group.modern is not None else at
        since = due_at_ms if AT_ONCE_MS < at - due_at_ms <= BUSY_MS else at
        finish(facts, group, member, "session_expired", "", Doubt.SILENCE, since)
    elif left_none and _no_other_timer(member) and at - member.last_heard_at_ms > 2 * own.interval_ms:
        finish(facts, group, member, "session_expired", "", Doubt.SILENCE)
    else:
        finish(facts, group, member, "unknown", "", Doubt.NOT_SEEN)


def _may_have_left(group: Group, member: Member, at: float) -> bool:
    """Whether its session cannot have ended yet; or what was written for its last heartbeat was not stored in time, so
    that a leave may be answered seconds after its record."""
    renewed_at_ms, own = member.session_renewed_at_ms, member.modern
    if renewed_at_ms < 0 or own is None:
        return False
    began_at_ms = own.heard_from_ms if member.doubtful_at_ms == renewed_at_ms else renewed_at_ms
    known = group.modern is None or group.modern.session_from != "logged"  # a group may have its own
    known = known and group.is_session_known(member)
    too_early = known and at < began_at_ms + member.session_ms - EARLY_MS
    return too_early or own.unstored_at_ms == renewed_at_ms


def _no_other_timer(member: Member) -> bool:
    """Whether a member that did not leave can have ended by its session alone: it had nothing to give up, and speaks
    the protocol in which nobody has to rejoin or to sync."""
    own = member.modern
    return own is not None and not own.classic and own.interval_ms > 0 and own.revoke_since_at_ms < 0


def finish(
    facts: Facts,
    group: Group,
    member: Member,
    cause: str,
    reason: str,
    doubts: Doubts,
    since: float = NEVER,
) -> None:
    """It is known why a member is gone that a record says is gone: the new group epoch was that. `since`: the earliest
    that it may have been, where its timer or the operation took its time."""
    own = member.modern
    if own is None:
        return
    at = own.gone_at_ms
    ended_at_ms, by = (since, at) if 0 <= since < at else (at, None)
    why = ends.remove(facts, group, member, ended_at_ms, cause, reason, doubts, by, told=True)
    for bump in group.modern.bumps if group.modern is not None else ():
        if bump.cause.member_id == member.member_id and bump.cause.trigger == "unknown" and bump.started_at_ms == at:
            epochs.explain(facts, group, bump, why)
    epochs.conclude(facts, group, at)
    if at > group.gap_at_ms or group.state != ModernState.UNKNOWN:  # what a gap has hidden since it does not show
        epochs.update_state(facts, group, at, why.trigger)
