"""What a member's traffic says about its application: when it last polled, and when its poll interval will run out.

An inference, and it says so: each piece of evidence has a kind and a bound on its error, by client library
(`kardia.model.libraries`). A request that a library sends only inside poll proves a poll at its arrival. A commit of
advanced offsets proves consumption a little earlier. A FETCH that some libraries send only when what they fetched
before has been taken proves that it was. Telemetry that the client pushes says it outright. Everything else proves
nothing.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.model.libraries import LIBRARIES
from kardia.observe.facts import Facts
from kardia.observe.group import NEVER, TELEMETRY_ERROR_MS, Group, Member

MAX_CONNECTIONS = 64
"""Connections of a member whose last answer is held, the oldest goes first: a client has one or two to each broker."""


def on_request(observer: Facts, group: Group, member: Member, kind: str, arrived_at: float) -> None:
    """Take a JOIN or SYNC as evidence where the library sends it only inside poll."""
    if kind in LIBRARIES[member.library].polled_by:
        polled(observer, group, member, kind, arrived_at, 0.0)


def on_fetch(observer: Facts, group: Group, member: Member, event: Event) -> None:
    """Take a FETCH: evidence at its arrival for some libraries; its answer tells whether there was data to consume."""
    arrived_at = event.arrived_at_ms
    if arrived_at > member.fetched_at:
        member.fetched_at = arrived_at
    if "fetch" in LIBRARIES[member.library].polled_by:
        if arrived_at > member.polled_at:
            if member.timer_at >= 0 and member.poll_prediction_at < 0 and member.poll_evidence == "fetch":
                member.polled_at = arrived_at  # the usual case: nothing else changes
            else:
                polled(observer, group, member, "fetch", arrived_at, 0.0)
        return
    detail = event.detail
    brought = detail is not None and detail.get("bytes", 0) > 0
    if LIBRARIES[member.library].taken_within_ms >= 0:
        on_taken(observer, group, member, event.connection, event.arrived_at_ms, brought)
    if brought and member.data_since_commit_at < 0 and event.decided_at_ms > member.committed_at:
        member.data_since_commit_at = event.decided_at_ms
        observer.watch(group, member)


def on_taken(observer: Facts, group: Group, member: Member, connection: str, arrived_at: float, brought: bool) -> None:
    """A FETCH of a library that sends none before the last answer's records have been taken; `brought`: its own answer
    had records."""
    if member.brought.pop(connection, False):
        within_ms = float(LIBRARIES[member.library].taken_within_ms)
        polled(observer, group, member, "fetch", arrived_at, within_ms)
    member.brought[connection] = brought
    if len(member.brought) > MAX_CONNECTIONS:
        del member.brought[next(iter(member.brought))]


def on_commit(observer: Facts, group: Group, member: Member, event: Event) -> None:
    """Take an OffsetCommit: inside poll for some libraries, trailing evidence of consumption for others."""
    library = LIBRARIES[member.library]
    detail = event.detail
    mark = -1
    if detail:
        mark = sum(entry[2] for entry in detail.get("offsets", ()) if entry[2] > 0)
    advanced = mark != member.commit_mark
    arrived_at = event.arrived_at_ms
    member.last_commit_at = max(member.last_commit_at, arrived_at)
    if "commit" in library.polled_by:
        polled(observer, group, member, "commit", arrived_at, 0.0)
    elif library.consumed_by_commit and advanced:
        trail = float(library.commit_trail_ms)
        if member.committed_at >= 0:
            trail = min(trail, arrived_at - member.committed_at)
        if member.poll_evidence != "fetch" or arrived_at - trail > member.polled_at:  # else nothing new in it
            polled(observer, group, member, "commit", arrived_at, trail)
    if advanced:
        member.commit_mark = mark
        member.committed_at = max(member.committed_at, arrived_at)
        member.data_since_commit_at = NEVER


def polled(observer: Facts, group: Group, member: Member, evidence: str, at: float, error_ms: float) -> None:
    """Note that the application polled at `at` or up to `error_ms` before."""
    if at <= member.polled_at:
        return
    surer = error_ms < member.poll_error_ms
    member.polled_at = at
    member.poll_evidence = evidence
    member.poll_error_ms = error_ms
    if member.poll_prediction_at >= 0:
        observer.close_prediction(group, member, "poll", "averted", at)
    if surer or member.timer_at < 0:
        observer.watch(group, member)


def on_telemetry(observer: Facts, group: Group, member: Member, arrived_at: float, ago_ms: float) -> None:
    """The client itself says how long ago it polled, in whole seconds, so that one poll is told a little differently
    each time: another one is meant only by what lies clearly after it."""
    before, at = member.last_poll_at, arrived_at - ago_ms
    if arrived_at > member.pushed_at:
        member.pushed_at, member.pushed_ago_ms = arrived_at, ago_ms
    if member.pushed_poll_at < 0 or at - TELEMETRY_ERROR_MS > member.pushed_poll_at:
        member.pushed_poll_at = at
    if member.last_poll_at > before:
        if member.poll_prediction_at >= 0:
            observer.close_prediction(group, member, "poll", "averted", member.last_poll_at)
        observer.watch(group, member)
