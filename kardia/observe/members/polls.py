"""What a member's traffic says about its application: when it last polled, and when its poll interval will run out.

An inference, and it says so: each piece of evidence has a kind and a bound on its error, by client library
(`kardia.kafka.libraries`). A request that a library sends only inside poll proves a poll at its arrival. A commit of
advanced offsets proves consumption a little earlier. A FETCH that some libraries send only when what they fetched
before has been taken proves that it was. Telemetry that the client pushes says it outright. Everything else proves
nothing.

The last poll is held as an interval: it came at `polled_at_ms` or up to `poll_error_ms` before. What may be a poll and
may be none (a commit that the application asked for, a FETCH that others may have sent) moves its end, not its begin.
"""

from __future__ import annotations

from math import inf

from kardia.events import Event
from kardia.kafka.libraries import AUTO_COMMIT_EARLY_MS, AUTO_COMMIT_LATE_MS, LIBRARIES
from kardia.observe.clients.application import polled_since
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tolerances import LEAVE_DELAY_MS, TELEMETRY_ERROR_MS

MAX_CONNECTIONS = 64
"""Connections of a member whose last answer is held, the oldest goes first: a client has one or two to each broker."""


def on_request(facts: Facts, group: Group, member: Member, kind: str, arrived_at_ms: float) -> None:
    """Take a JOIN or SYNC as evidence where the library sends it only inside poll."""
    if kind in LIBRARIES[member.library].polled_by:
        polled(facts, group, member, kind, arrived_at_ms, 0.0)


def on_fetch(facts: Facts, group: Group, member: Member, event: Event) -> None:
    """Take a FETCH: evidence at its arrival for some libraries; its answer tells whether there was data to consume."""
    arrived_at_ms = event.arrived_at_ms
    if arrived_at_ms > member.fetched_at_ms:
        member.fetched_at_ms = arrived_at_ms
    if "fetch" in LIBRARIES[member.library].polled_by:
        usual = member.poll_evidence == "fetch" and member.poll_error_ms == 0.0 and member.polled_at_ms < arrived_at_ms
        if usual and member.timer_at_ms >= 0 and member.poll_prediction_at_ms < 0 and facts.is_alone(group, member):
            member.polled_at_ms = arrived_at_ms  # nothing else changes
        else:
            polled(facts, group, member, "fetch", arrived_at_ms, 0.0)
        return
    detail = event.detail
    brought = detail is not None and detail.get("bytes", 0) > 0
    if LIBRARIES[member.library].taken_within_ms >= 0:
        on_taken(facts, group, member, event.connection, event.arrived_at_ms, brought)
    if brought and member.data_since_commit_at_ms < 0 and event.decided_at_ms > member.committed_at_ms:
        member.data_since_commit_at_ms = event.decided_at_ms
        facts.watch(group, member)


def on_taken(facts: Facts, group: Group, member: Member, connection: str, arrived_at_ms: float, brought: bool) -> None:
    """A FETCH of a library that sends none before the last answer's records have been taken; `brought`: its own answer
    had records."""
    library = LIBRARIES[member.library]
    if member.brought.pop(connection, False):
        only_one = group.held_in == group.generation and group.held.get(member.member_id) == 1
        if only_one or not library.taken_by_partition:  # else it may be for those of which nothing waits to be taken
            polled(facts, group, member, "fetch", arrived_at_ms, float(library.taken_within_ms))
    member.brought[connection] = brought
    if len(member.brought) > MAX_CONNECTIONS:
        del member.brought[next(iter(member.brought))]


def on_commit(facts: Facts, group: Group, member: Member, event: Event) -> None:
    """Take an OffsetCommit: inside poll for some libraries, trailing evidence of consumption for others."""
    library = LIBRARIES[member.library]
    detail = event.detail
    mark = -1
    if detail:
        mark = 0
        for entry in detail.get("offsets", ()):
            if entry[2] > 0:
                mark += entry[2]
    advanced = mark != member.commit_mark
    arrived_at_ms = event.arrived_at_ms
    by_itself = library.auto_commit_ms >= 0 and is_automatic(group, member, arrived_at_ms)
    member.last_commit_at_ms = max(member.last_commit_at_ms, arrived_at_ms)
    if library.auto_commit_ms >= 0:
        # Asked for by the application it proves no poll, but it is accepted of a member that has not given up.
        asked_ms = member.rebalance_ms + LEAVE_DELAY_MS if member.rebalance_ms > 0 else inf
        polled(facts, group, member, "commit", arrived_at_ms, 0.0 if by_itself else asked_ms)
        if by_itself:
            member.committed_at_ms = max(member.committed_at_ms, arrived_at_ms)
        return
    if "commit" in library.polled_by:
        polled(facts, group, member, "commit", arrived_at_ms, 0.0)
    elif library.consumed_by_commit and advanced:
        trail = _trail_ms(member, arrived_at_ms)
        if arrived_at_ms - trail > (member.polled_at_ms if member.poll_evidence == "fetch" else polled_since(member)):
            polled(facts, group, member, "commit", arrived_at_ms, trail)
    if advanced:
        member.commit_mark = mark
        member.committed_at_ms = max(member.committed_at_ms, arrived_at_ms)
        member.data_since_commit_at_ms = NEVER


def is_automatic(group: Group, member: Member, arrived_at_ms: float) -> bool:
    """Whether a commit comes when the client makes one by itself: its interval after the last, or after the assignment,
    from which it counts anew."""
    interval = LIBRARIES[member.library].auto_commit_ms
    gap = arrived_at_ms - max(member.last_commit_at_ms, group.stable_at_ms)
    return interval >= 0 and interval - AUTO_COMMIT_EARLY_MS <= gap <= interval + AUTO_COMMIT_LATE_MS


def _trail_ms(member: Member, arrived_at_ms: float) -> float:
    """How long before a commit what it commits may have been consumed: since the commit before, and by the default
    interval, unless records that came earlier than that show that this client takes longer."""
    trail = float(LIBRARIES[member.library].commit_trail_ms)
    if member.data_since_commit_at_ms >= 0:
        trail = max(trail, arrived_at_ms - member.data_since_commit_at_ms)
    return trail if member.committed_at_ms < 0 else min(trail, arrived_at_ms - member.committed_at_ms)


def polled(facts: Facts, group: Group, member: Member, evidence: str, at: float, error_ms: float) -> None:
    """Note that the application polled at `at` or up to `error_ms` before; infinite: at some time before, if at all.

    What is known already stays: it may narrow the interval, as a FETCH does that is told after a later commit.
    """
    if evidence == "fetch":
        if _is_shared(facts, group, member):
            error_ms = inf  # it may be another's
    elif member.polled_at_ms < 0 <= at < member.fetched_at_ms and _is_shared(facts, group, member):
        # so it says the same in whatever order they come
        evidence, at, error_ms = "fetch", member.fetched_at_ms, error_ms + round(member.fetched_at_ms - at, 3)
    before_ms = at - polled_since(member) if member.polled_at_ms >= 0 else inf
    if at <= member.polled_at_ms:
        if error_ms < before_ms:
            member.poll_error_ms = min(member.poll_error_ms, round(member.polled_at_ms - at + error_ms, 3))
        return
    error_ms = min(error_ms, round(before_ms, 3))
    if error_ms == inf:
        return
    surer = error_ms < member.poll_error_ms
    member.polled_at_ms = at
    member.poll_evidence = evidence
    member.poll_error_ms = error_ms
    if member.poll_prediction_at_ms >= 0:
        facts.close_prediction(group, member, "poll", "averted", at)
    if surer or member.timer_at_ms < 0:
        facts.watch(group, member)


def _is_shared(facts: Facts, group: Group, member: Member) -> bool:
    """Whether a FETCH that shows a poll may be another member's."""
    return "fetch" in LIBRARIES[member.library].polled_by and not facts.is_alone(group, member)


def on_telemetry(facts: Facts, group: Group, member: Member, arrived_at_ms: float, ago_ms: float) -> None:
    """The client itself says how long ago it polled, in whole seconds, so that one poll is told a little differently
    each time: another one is meant only by what lies clearly after it."""
    before, at = member.last_poll_at_ms, arrived_at_ms - ago_ms
    if arrived_at_ms > member.pushed_at_ms:
        member.pushed_at_ms, member.pushed_ago_ms = arrived_at_ms, ago_ms
    if member.pushed_poll_at_ms < 0 or at - TELEMETRY_ERROR_MS > member.pushed_poll_at_ms:
        member.pushed_poll_at_ms = at
    if member.last_poll_at_ms > before:
        if member.poll_prediction_at_ms >= 0:
            facts.close_prediction(group, member, "poll", "averted", member.last_poll_at_ms)
        facts.watch(group, member)
