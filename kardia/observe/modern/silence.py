"""What silence means in groups with epochs: sessions that run out, partitions that are not given up, joins that do not
come.

Where the records of the group are read they say who is gone, and silence alone ends nobody: it says `overdue`. So it
does where nothing says how long a session is. A heartbeat is answered at once, so that a member which is silent is not
waiting where it cannot be seen.
"""

from __future__ import annotations

from kardia.doubts import Doubt, Doubts
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines import member_deadlines
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import ends, groups
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tolerances import GRACE_MS, STAMP_MS

PREDICTED_SHARE = 0.5
"""When that share of a rebalance timeout is over it is foretold."""


def on_member_timer(facts: Facts, group: Group, member: Member, now: float) -> None:
    """A member's timer is due: predict, evict, or look again later."""
    member.timer_at_ms = NEVER
    own, modern = member.modern, group.modern
    if own is None or modern is None or own.gone_at_ms >= 0:
        return
    deadline = member.deadline
    known = group.is_session_known(member)
    if deadline >= 0 and not member.overdue:
        if member_deadlines.session_over(member, now):
            shown_at = facts.silence_shown_at(group.broker, member, now)
            if now < shown_at + GRACE_MS:
                facts.watch(group, member, not_before=shown_at + GRACE_MS)
                return
            _on_session_over(facts, group, member, deadline, known)
            if member.member_id not in group.members:
                return
        elif member.session_prediction_at_ms < 0 and now >= member_deadlines.predict_session_at(facts.settings, member):
            member.session_prediction_at_ms = now
            member.session_prediction_deadline_at_ms = NEVER if member.is_session_assumed else deadline
            if now < member_deadlines.imminent_at(facts.settings, member):
                facts.emit_prediction(group, member, "session", "open", NEVER)
        imminent = now >= member_deadlines.imminent_at(facts.settings, member)
        if member.session_prediction_at_ms >= 0 and not member.imminent and imminent:
            member.imminent = True
            facts.emit_prediction(group, member, "session", "open", NEVER)
    poll_at = member_deadlines.predict_poll_at(facts.settings, member)
    if 0 <= poll_at <= now:
        member.poll_prediction_at_ms = now
        member.poll_prediction_deadline_at_ms = member.last_poll_at_ms + member.rebalance_ms
        facts.emit_prediction(group, member, "poll", "open", NEVER)
    facts.watch(group, member)


def _on_session_over(facts: Facts, group: Group, member: Member, deadline: float, known: bool) -> None:
    """The session deadline has passed unheard."""
    modern = group.modern
    if modern is None:
        return
    shows_nothing = not known or modern.by_records or group.may_be_classic
    restarted = facts.may_have_restarted(group.broker, member.session_renewed_at_ms, deadline)
    shows_nothing = shows_nothing or (restarted and not loads.begins_sessions(facts, group))
    if shows_nothing or facts.silent_at(group.broker, deadline) or group.moved_at_ms >= 0:
        member.overdue = True
        facts.samples.note(group.group_id, member.member_id)
        return
    doubts: Doubts = Doubt.SILENCE | loads.by_silence(facts, group, deadline)
    own = groups.own_of(member)
    if member.renewed_unseen:
        doubts |= Doubt.RENEWAL_UNSURE
    if 0 <= member.session_renewed_at_ms <= group.unsure_to:
        doubts |= Doubt.LOAD_UNSEEN
    if modern.may_hold_back(own, member.session_renewed_at_ms):
        doubts |= Doubt.TIMER_PASSED_UNSEEN
    if modern.session_from != "given":
        doubts |= Doubt.SESSION_GUESSED
    # Of two timers that one heartbeat set, that of its partitions was set first, and fires first.
    at_once = [one for one in ends.timers(group, member) if abs(one.at_ms - deadline) < STAMP_MS]
    gave_nothing_up = any(one.cause == "rebalance_timeout" for one in at_once)
    cause = "rebalance_timeout" if gave_nothing_up else "session_expired"
    ends.remove_counted(facts, group, member, deadline, cause, "", doubts, NEVER)


def watch_phases(facts: Facts, group: Group, member: Member) -> None:
    """Have a member looked at when it has had its time to give up partitions, to rejoin or to sync."""
    own = member.modern
    if own is None or not group.broker:
        return
    begun = [at for at in (own.revoke_since_at_ms, own.rejoin_since_at_ms, own.sync_since_at_ms) if at >= 0]
    if not begun or member.rebalance_ms <= 0:
        if member.rebalance_prediction_at_ms >= 0:
            facts.close_prediction(group, member, "rebalance", "averted", facts.known)
        return
    for since in begun:
        if since > own.watched_at_ms:
            own.watched_at_ms = since
            facts.schedule(group, since + PREDICTED_SHARE * member.rebalance_ms, "phase", member.member_id)
            facts.schedule(group, since + member.rebalance_ms + GRACE_MS, "phase", member.member_id)


def on_phase_timer(facts: Facts, group: Group, member_id: str, now: float) -> None:
    """A member has had its time, or half of it."""
    member = group.members.get(member_id)
    own, modern = (member.modern, group.modern) if member is not None else (None, None)
    if member is None or own is None or modern is None or own.gone_at_ms >= 0:
        return
    due = [one for one in ends.timers(group, member) if one.cause != "session_expired"]
    if not due:
        return
    first = due[0]
    if now < first.at_ms:
        if member.rebalance_prediction_at_ms < 0 and now >= first.at_ms - PREDICTED_SHARE * member.rebalance_ms - 1.0:
            member.rebalance_prediction_at_ms = now
            member.rebalance_prediction_deadline_at_ms = first.at_ms
            facts.emit_prediction(group, member, "rebalance", "open", NEVER)
        return
    if now < first.at_ms + GRACE_MS or modern.by_records:
        return
    if facts.silent_at(group.broker, first.at_ms) or group.moved_at_ms >= 0 or group.may_be_classic:
        return
    doubts: Doubts = Doubt.SILENCE | loads.by_silence(facts, group, first.at_ms)
    if first.at_ms - member.rebalance_ms <= group.unsure_to:
        doubts |= Doubt.LOAD_UNSEEN
    if first.at_ms - member.rebalance_ms <= group.gap_at_ms:
        doubts |= Doubt.LINES_LOST
    if ends.may_have_run_out(group, member, first.at_ms):
        doubts |= Doubt.TIMER_PASSED_UNSEEN
    ends.remove_counted(facts, group, member, first.at_ms, first.cause, "", doubts, NEVER)
