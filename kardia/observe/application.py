"""Whether the application behind a member polls: the zombie told from the idle but healthy consumer, where that can be.

Heartbeats come from a thread of their own and say nothing of it. What does depends on the library
(`kardia.model.libraries`). Where its silence may as well be that of an idle topic, the answer is unknown.
"""

from __future__ import annotations

from kardia.model.libraries import AUTO_COMMIT_INTERVAL_MS, LIBRARIES
from kardia.model.states import GroupState
from kardia.observe.group import Group, Member

POLLS, STALLED, UNKNOWN = "polls", "stalled", "unknown"

QUIET_MS = AUTO_COMMIT_INTERVAL_MS + 500
"""Longest silence of a consumer that polls and commits by itself: the interval between commits and one long poll."""

COMMITS_WITHIN_MS = 2 * AUTO_COMMIT_INTERVAL_MS
"""A member whose last commit was that close to its last sign of a poll commits as it goes."""

MARGIN_MS = 1_000
"""A commit that is due takes that long at most to be seen; the application needs time for what it was given."""


def polling(group: Group, member: Member, now: float, *, alone: bool) -> str:
    """`polls`, `stalled` or `unknown` at an instant. `alone`: no other member has its client.id and address, so that a
    FETCH is its own."""
    library = LIBRARIES[member.library]
    heard = member.armed_at >= 0 and now - member.armed_at <= 2.0 * max(member.habit_ms, 500.0)
    if group.state != GroupState.STABLE or member.unknown_since >= 0 or not heard or member.last_poll_at < 0:
        return UNKNOWN
    settled = now - group.stable_at > QUIET_MS + MARGIN_MS  # a rebalance stops everybody, and they begin at their pace
    pushed = _as_pushed(member, now)
    if pushed is not None:
        return pushed if pushed == POLLS or settled else UNKNOWN
    if group.held_in == group.generation and not group.held.get(member.member_id):
        return UNKNOWN  # it has no partition: nothing to read, and nothing to see
    silent_ms = now - member.polled_at
    if "fetch" in library.polled_by:
        if silent_ms <= QUIET_MS:
            return POLLS if alone or member.poll_evidence != "fetch" else UNKNOWN
        # Who never commits may work off what it fetched, or have paused; who commits as it goes would show a commit.
        commits = member.last_commit_at >= 0 and member.polled_at - member.last_commit_at <= COMMITS_WITHIN_MS
        return STALLED if alone and commits and settled else UNKNOWN
    if library.taken_within_ms >= 0 and alone:
        if silent_ms <= QUIET_MS:
            return POLLS
        return STALLED if settled and any(member.brought.values()) else UNKNOWN  # else there is nothing to take
    if not library.consumed_by_commit or member.last_commit_at < 0:
        return UNKNOWN
    within_ms = library.commit_trail_ms + MARGIN_MS
    if now - member.committed_at <= within_ms:
        return POLLS
    untaken = alone and member.data_since_commit_at >= 0 and now - member.data_since_commit_at > within_ms
    return STALLED if untaken and settled else UNKNOWN


def _as_pushed(member: Member, now: float) -> str | None:
    """What its own telemetry says, if it is fresh: a measurement, whatever there was to take and to commit."""
    if member.pushed_at < 0 or now - member.pushed_at > QUIET_MS:
        return None
    if member.by_telemetry and now - member.last_poll_at <= QUIET_MS:
        return POLLS
    if member.pushed_ago_ms > QUIET_MS and member.polled_at <= member.pushed_at - member.pushed_ago_ms:
        return STALLED
    return None
