"""Whether the application behind a member polls: tells a zombie from an idle but healthy consumer, where that is
possible.

Heartbeats come from a thread of their own and say nothing of it, but for kafkajs. What does depends on the library
(`kardia.kafka.libraries`). Where its silence may as well be that of an idle topic, of a consumer that has paused, or of
one that works off what it has, the answer is unknown. In a rebalance everybody has to show a poll: who rejoins only
inside poll, is told and goes on with its heartbeats does not (or sits in its own callback).
"""

from __future__ import annotations

from kardia.kafka.libraries import LIBRARIES
from kardia.kafka.states import GroupState
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tolerances import COMMITS_WITHIN_MS, MARGIN_MS, QUIET_MS

POLLS, STALLED, UNKNOWN = "polls", "stalled", "unknown"


def polled_since(member: Member) -> float:
    """The earliest that the last poll which its traffic shows may have been; NEVER if it shows none."""
    return member.polled_at_ms - member.poll_error_ms if member.polled_at_ms >= 0 else NEVER


def polling(group: Group, member: Member, now: float, *, alone: bool) -> str:
    """`polls`, `stalled` or `unknown` at an instant. `alone`: no other member has its client.id and address, so that a
    FETCH is its own."""
    library = LIBRARIES[member.library]
    heard = member.session_renewed_at_ms >= 0 and now - member.session_renewed_at_ms <= 2.0 * max(
        member.usual_gap_max_ms, 500.0
    )
    if member.unknown_since_at_ms >= 0 or not heard or not library.shows_between:
        return UNKNOWN
    if group.state == GroupState.PREPARING:
        return _told_and_still_there(member)
    if group.state == GroupState.STABLE and "heartbeat" in library.polled_by:
        return POLLS
    if group.state != GroupState.STABLE:
        return UNKNOWN
    settled = (
        now - group.stable_at_ms > QUIET_MS + MARGIN_MS
    )  # a rebalance stops everybody, and they begin at their pace
    pushed = _as_pushed(member, now)
    if pushed is not None:
        return pushed if pushed == POLLS or settled else UNKNOWN
    if group.held_in == group.generation and not group.held.get(member.member_id):
        return UNKNOWN  # it has no partition: nothing to read, and nothing to see
    if "fetch" in library.polled_by:
        return _inside_poll(member, now, alone and settled)
    return _beside(member, now, settled, alone)


def _told_and_still_there(member: Member) -> str:
    """Of a member that was told of the rebalance under way: does it heartbeat on, where the next poll would rejoin?"""
    library = LIBRARIES[member.library]
    rejoins_in_poll = "join" in library.polled_by and "heartbeat" not in library.polled_by
    told_long_ago = 0 <= member.rebalance_notified_at_ms < member.session_renewed_at_ms - QUIET_MS
    return STALLED if rejoins_in_poll and told_long_ago else UNKNOWN


def _inside_poll(member: Member, now: float, sure: bool) -> str:
    """Of a library that fetches inside poll. `sure`: it would show, if it did."""
    if now - polled_since(member) <= QUIET_MS:
        return POLLS
    # Who does not commit by itself may work off what it fetched, or have paused; who does would show a commit.
    commits = member.committed_at_ms >= 0 and member.polled_at_ms - member.committed_at_ms <= COMMITS_WITHIN_MS
    by_itself = commits and LIBRARIES[member.library].auto_commit_ms >= 0
    return STALLED if sure and by_itself and now - member.polled_at_ms > QUIET_MS else UNKNOWN


def _beside(member: Member, now: float, settled: bool, alone: bool) -> str:
    """Of a library that fetches in the background. `alone`: what is fetched is its own."""
    library = LIBRARIES[member.library]
    by_fetch = library.taken_within_ms >= 0 and alone
    if by_fetch and now - polled_since(member) <= QUIET_MS:
        return POLLS
    if (
        by_fetch
        and settled
        and now - max(member.fetched_at_ms, member.polled_at_ms) > QUIET_MS
        and any(member.brought.values())
    ):
        return STALLED  # what the last answer brought is not taken
    if not library.consumed_by_commit or member.committed_at_ms < 0:
        return UNKNOWN
    by_commit = member.poll_evidence == "commit"
    if now - member.committed_at_ms <= library.commit_trail_ms + MARGIN_MS:
        return POLLS if not by_commit or member.poll_error_ms <= library.commit_trail_ms else UNKNOWN
    if by_fetch:
        return UNKNOWN  # there may be nothing to take
    usual_ms = max(library.commit_trail_ms, member.poll_error_ms if by_commit else 0.0) + MARGIN_MS
    untaken = alone and member.data_since_commit_at_ms >= 0 and now - member.data_since_commit_at_ms > usual_ms
    return STALLED if untaken and settled and now - member.committed_at_ms > usual_ms else UNKNOWN


def _as_pushed(member: Member, now: float) -> str | None:
    """What its own telemetry says, if it is fresh: a measurement, whatever there was to take and to commit."""
    if member.pushed_at_ms < 0 or now - member.pushed_at_ms > QUIET_MS:
        return None
    if member.by_telemetry and now - member.last_poll_at_ms <= QUIET_MS:
        return POLLS
    # It counts from the begin of the poll, and one poll may wait for records as long as the application likes: what is
    # fetched meanwhile would show that.
    if (
        member.fetched_at_ms >= 0
        and member.pushed_ago_ms > QUIET_MS
        and polled_since(member) <= member.pushed_at_ms - member.pushed_ago_ms
    ):
        return STALLED
    return None
