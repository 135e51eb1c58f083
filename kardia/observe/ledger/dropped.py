"""Which timer ended a member that is missing when a join phase ends: numbered cases, the first that fits decides.

Three may have: of the time for SyncGroup before, of its session, of the phase. None fires before its deadline, and of
two whose deadlines are near each other either may have been the first (`late`). Arithmetic only.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.doubts import SURE, Doubt, Doubts
from kardia.observe.deadlines.late import near
from kardia.observe.deadlines.missing import Missing
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import NEVER, Group, Member, Rebalance
from kardia.tolerances import AT_ONCE_MS, LATE_MS, TWO_STAMPS_MS


class Dropped(NamedTuple):
    """A member that is missing when the join phase ends: gone at `at` or up to `by` (see `Ended.by`), and why."""

    member: Member
    at: float
    by: float | None
    cause: str
    doubts: Doubts


class Timers(NamedTuple):
    """When the timers of a missing member were due."""

    armed_at: float
    """From when its session ran."""
    session_at: float
    phase_at: float
    """The end of its time to rejoin; NEVER where that is not known, or does not count for it."""
    phase_ms: int
    """How long the phase may last."""
    ended_at: float
    """When the join phase ended."""
    unasked: bool
    """Whether no JoinGroup was handled about when the phase ended."""

    @property
    def by_session(self) -> bool:
        """Whether its session was over when the phase ended."""
        return self.session_at <= self.ended_at + TWO_STAMPS_MS

    @property
    def by_phase(self) -> bool:
        """Whether its time to rejoin was over then."""
        return 0 <= self.phase_at <= self.ended_at + TWO_STAMPS_MS


def how_dropped(facts: Facts, group: Group, current: Rebalance, missing: Missing, member: Member) -> Dropped:
    """Which timer ended a member that is missing when the join phase ends."""
    ended_at, armed = current.joined_at_ms, member.renewed_before_join_at_ms
    # 1. The coordinator's own line says that it did not join in time.
    said = group.said.end_of(member.member_id, "rebalance_timeout", ended_at, LATE_MS)
    if said is not None:
        return Dropped(member, said.at_ms, None, said.cause, SURE)
    # 2. From when its session ran is not known.
    if member.unknown_since_at_ms >= 0 or armed < 0 or member.session_ms < 0:
        return Dropped(member, ended_at, None, "unknown", Doubt.NOT_SEEN)
    began, first = missing.began(member)
    # 3. The time for SyncGroup of the generation before was over first.
    if _let_sync_pass(current, member, armed + member.session_ms, began):
        woke_at = facts.woke_at(group.broker, current.sync_over_at_ms)
        return _by_sync(current, missing, member, armed + member.session_ms, began, woke_at)
    timers = _timers(facts, current, missing, member, began, missing.longest_ms(began, first))
    # 4. Both other timers were due, so near each other that either may have been the first.
    both_due = (timers.session_at, timers.phase_at)
    if timers.by_session and timers.by_phase and (near(*both_due) or facts.were_late_together(group.broker, *both_due)):
        return _by_either(member, timers)
    # 5. Its session ran from a load that came soon after the last line, maybe: it was over before the others joined.
    if _ran_since_load(group, member, timers) and not timers.unasked:
        over_at = min(at for at in (began, ended_at) if at >= 0)
        over_from = max(facts.over_from(group, member, armed), group.steady_at_ms)
        return Dropped(member, min(over_from, over_at), ended_at, "session_expired", Doubt.LOAD_UNSEEN)
    # 6. Its session ran anew since its broker was down or stood still, or its timer was late. Nobody joined at this
    # instant: the phase ended by it.
    broken = facts.is_broken(group.broker, armed, timers.session_at, seen=True)
    if timers.by_session and timers.unasked and broken:
        return Dropped(member, ended_at, None, "session_expired", Doubt.BROKER_SILENT)
    # 7. One timer was due, or one well before the other.
    if timers.by_session or timers.by_phase:
        return _by_the_first(facts, group, current, member, timers, _doubts(group, missing, member, timers))
    # 8. None was.
    return _by_what_is_near(facts, group, member, timers)


def _timers(
    facts: Facts, current: Rebalance, missing: Missing, member: Member, began: float, longest_ms: int
) -> Timers:
    """When the two timers of a member that had sent SyncGroup were due."""
    armed, ended_at = member.renewed_before_join_at_ms, current.joined_at_ms
    has_its_time = began >= 0 and longest_ms > 0 and not member.instance_id
    return Timers(
        armed,
        armed + member.session_ms,
        began + longest_ms if has_its_time else NEVER,
        longest_ms,
        ended_at,
        ended_at - missing.last_asked_at > facts.settings.tolerance_ms,
    )


def _let_sync_pass(current: Rebalance, member: Member, session_at: float, began: float) -> bool:
    """Whether a member had not sent SyncGroup when the time for it was over, which was before anything else."""
    over_at = current.sync_over_at_ms
    if not member.seen_joining or member.synced_generation == current.generation_before:
        return False
    if member.rebalance_notified_at_ms >= 0 or member.joined_at_ms > over_at:
        return False  # the last: it took its place again in the Stable group
    return 0 <= over_at <= min(current.joined_at_ms, session_at) and (began < 0 or began >= over_at - TWO_STAMPS_MS)


def _by_sync(
    current: Rebalance, missing: Missing, member: Member, session_at: float, began: float, woke_at: float
) -> Dropped:
    """Ended by the time for SyncGroup. `woke_at`: when a broker went on that stood still as it was over."""
    over_at = max(current.sync_over_at_ms, woke_at)
    by = began if began >= over_at else current.joined_at_ms
    rivalled = near(over_at, session_at) or missing.joined_before_sync_was_over
    doubts: Doubts = Doubt.TIMERS_TIED if rivalled or began <= over_at + TWO_STAMPS_MS else Doubt.SILENCE
    return Dropped(member, over_at, by, "sync_timeout", doubts)


def _by_either(member: Member, timers: Timers) -> Dropped:
    """Ended by its session or by the end of the phase, whichever timer was less late."""
    if timers.session_at + TWO_STAMPS_MS < timers.phase_at:
        session_at = min(timers.session_at, timers.ended_at)
        return Dropped(member, session_at, timers.ended_at, "session_expired", Doubt.TIMERS_TIED)
    to_the_ms = abs(timers.ended_at - timers.session_at) <= TWO_STAMPS_MS < timers.session_at - timers.phase_at
    if timers.unasked and to_the_ms:  # that a late timer fires in the very instant of another deadline is rare
        return Dropped(member, timers.ended_at, None, "session_expired", Doubt.TIMERS_TIED)
    return Dropped(member, timers.ended_at, None, "rebalance_timeout", Doubt.TIMERS_TIED)


def _by_the_first(
    facts: Facts, group: Group, current: Rebalance, member: Member, timers: Timers, at_least: Doubts
) -> Dropped:
    """Ended by the timer that was due first. `at_least`: what is in doubt about the timers themselves."""
    ended_at = timers.ended_at
    if timers.by_session and (not timers.by_phase or timers.session_at < timers.phase_at):
        at, doubts = facts.ran_out(group, member, timers.armed_at, ended_at)
        return Dropped(member, at, ended_at, "session_expired", at_least | doubts)
    in_time = ended_at - timers.phase_at <= LATE_MS + _width(current)
    return Dropped(member, ended_at, None, "rebalance_timeout", at_least if in_time else at_least | Doubt.SEEN_LATER)


def _ran_since_load(group: Group, member: Member, timers: Timers) -> bool:
    """Whether a session may run from a load after a restart, and have been over when the phase ended."""
    return timers.armed_at <= group.unsure_to and 0 <= group.broke_at_ms <= timers.ended_at - member.session_ms


def _doubts(group: Group, missing: Missing, member: Member, timers: Timers) -> Doubts:
    """What is in doubt about the timers themselves: from when the session ran, and since when the phase."""
    armed, session_at = timers.armed_at, timers.session_at
    if armed <= group.unsure_to:
        return Doubt.LOAD_UNSEEN
    if armed <= group.gap_at_ms:
        return Doubt.LINES_LOST
    if member.is_unsure(armed):
        return Doubt.RENEWAL_UNSURE
    if missing.taken_over(member, session_at):
        return Doubt.SEAT_MAY_BE_TAKEN
    return Doubt.BEGIN_UNSEEN if missing.may_have_begun_before(member, session_at - timers.phase_ms) else SURE


def _by_what_is_near(facts: Facts, group: Group, member: Member, timers: Timers) -> Dropped:
    """No timer was due, by the instants that were seen: one of them is off, or the phase began before it was seen."""
    ended_at, armed = timers.ended_at, timers.armed_at
    if timers.unasked and timers.session_at <= ended_at + AT_ONCE_MS:
        # A heartbeat runs from when it was taken, which may be that long before its answer.
        known = armed > max(group.unsure_to, group.gap_at_ms) and not member.is_unsure(armed)
        return Dropped(member, ended_at, None, "session_expired", Doubt.SEEN_LATER if known else Doubt.LOAD_UNSEEN)
    if timers.phase_at >= 0 and ended_at >= timers.phase_at - 0.5 * timers.phase_ms and armed > group.unsure_to:
        return Dropped(member, ended_at, None, "rebalance_timeout", Doubt.SEEN_LATER)
    if timers.session_at <= ended_at + facts.settings.tolerance_ms:
        # Stamps of a busy broker come late: its last renewal was earlier than they say.
        known = armed > max(group.unsure_to, group.gap_at_ms) and not member.is_unsure(armed)
        return Dropped(member, ended_at, None, "session_expired", Doubt.HANDLED_SLOWLY if known else Doubt.LOAD_UNSEEN)
    if armed <= group.unsure_to and timers.unasked:
        # Sessions ran from the load, which is only known to lie before the first answer of the new coordinator. Nobody
        # joined at this instant, so the phase ended because this member's session did.
        return Dropped(member, ended_at, None, "session_expired", Doubt.LOAD_UNSEEN)
    return Dropped(member, ended_at, None, "unknown", Doubt.NOT_SEEN)


def _width(current: Rebalance) -> float:
    """How much later than `started_at_ms` the rebalance may have begun."""
    cause = current.cause
    if cause is None or cause.by is None:
        return 0.0
    return max(0.0, (cause.by if cause.by >= 0 else cause.at + LATE_MS) - cause.at)
