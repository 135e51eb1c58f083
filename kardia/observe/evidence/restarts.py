"""A broker whose log was silent: it was restarted, it stood still, or it had nothing to log. What shows which.

A broker that is down evicts nobody, and one that comes back begins every session anew when it loads the group; one
that stood still (stopped, starved, its machine asleep) fires its timers late. So a deadline in or after a silence of
the whole log is none until the silence is judged, and never again a sure one. Signs of a restart: connections whose
numbers are lower than those before it (a broker counts them from its start), answers of a coordinator that loads, its
lines in server.log, or that everybody who is heard again has a new connection. A connection that goes on shows the
opposite. Sources: `SocketServer` (`nextConnectionIndex`), `onGroupLoaded`.

Whoever reads the log sees the connections of all clients, and tells in its ticks what they show
(`ingest.broker_processes`): the same to every lane. What a lane sees of its own groups counts for the time before that
was known only.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.events import Event, Kind
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import habits
from kardia.observe.state.entries import Silence, Unjudged
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.timers import expiry
from kardia.tolerances import GRACE_MS, JUDGED_WITHIN_MS, PRESUMED_AFTER_MS, TWO_STAMPS_MS

OF_SEVERAL = 2
"""A number lower by that or more shows a restart where several network threads count their connections each by itself
and the log does not say which: new connections go to them in turn. Where it says so, only those of one thread are
compared: on a starved broker the numbers of two were seen three apart."""


def judge(facts: Facts, event: Event, at: float) -> None:
    """See what a request says of the silence before it, if there is one that nothing has been told of yet."""
    pending = facts.unjudged[facts.broker]
    while pending and at > pending[0].end_at_ms + JUDGED_WITHIN_MS:
        del pending[0]
    # What waited for the broker is handled within the ms of its first line: the first of them has to judge.
    if not pending or at < pending[0].end_at_ms - facts.settings.tolerance_ms:
        return
    silence = pending[0]
    if facts.knows_process(facts.broker, silence.begin_at_ms):
        return  # it is told
    group, member = _sender(facts, event)
    if group is not None and member is not None:
        known = event.connection in (member.connection, member.heard_on)
        if known and max(member.joined_at_ms, member.connected_at_ms) <= silence.begin_at_ms:
            _same_process(facts, silence, member, at)
            return
        if silence.reconnected_at_ms < 0 and not known and member.joined_at_ms <= silence.begin_at_ms:
            silence = pending[0] = silence._replace(reconnected_at_ms=at)
    if 0 <= silence.reconnected_at_ms <= at - PRESUMED_AFTER_MS:
        restarted(facts, facts.broker, silence.begin_at_ms, silence.end_at_ms)


def note_same_process(facts: Facts, event: Event, at: float) -> None:
    """A connection from before a pause of the log goes on after it: the broker was not started again in it, nor in any
    other one between."""
    pause = facts.doubted[facts.broker]
    if at < pause.end_at_ms:
        return
    if facts.knows_process(facts.broker, pause.begin_at_ms):
        return  # it is told
    _, member = _sender(facts, event)
    goes_on = member is not None and event.connection in (member.connection, member.heard_on)
    since = max(member.joined_at_ms, member.connected_at_ms) if member is not None else at
    is_same = goes_on and since <= pause.begin_at_ms
    if is_same:
        facts.pauses[facts.broker] = [one for one in facts.pauses.get(facts.broker, ()) if one.begin_at_ms < since]
    if is_same or at > pause.end_at_ms + PRESUMED_AFTER_MS:
        del facts.doubted[facts.broker]


def note_connection(facts: Facts, event: Event, at: float) -> None:
    """A heartbeat of a member, or its JoinGroup, by another connection than the one before: a later one has a higher
    number, unless the broker has begun to count anew."""
    group = facts.groups.get(event.group_id)
    member = group.members.get(event.member_id) if group is not None and group.broker == facts.broker else None
    if member is None:
        return
    if event.connection in (member.connection, member.heard_on, member.heard_before_on):
        return  # the one before it goes on as well, until what waits on it is answered
    member.connected_at_ms = at
    last = member.connection if event.kind == Kind.JOIN else member.heard_on
    told = facts.knows_process(facts.broker, member.last_heard_at_ms)
    if last and not told and counts_anew(last, event.connection):
        restarted(facts, facts.broker, *_where(facts, member, event))


def on_told(facts: Facts, event: Event, at: float) -> None:
    """What a tick tells of the broker's process shows now: it was started again, or went on, between two instants."""
    what, begin, end, on_time = (event.detail or {})["process"]
    if what == "restarted":
        restarted(facts, facts.broker, begin, end)
        return
    broker = facts.broker
    kept = [one for one in facts.pauses.get(broker, ()) if one.begin_at_ms < begin or one.end_at_ms > end]
    facts.pauses[broker] = kept
    if facts.doubted.get(broker) not in (None, *kept):
        del facts.doubted[broker]
    for silence in [one for one in facts.unjudged.get(broker, ()) if one.silence == (begin, end)]:
        _went_on(facts, silence, at, on_time=bool(on_time))


def restarted(facts: Facts, broker: str, begin: float, end: float) -> None:
    """The broker was restarted between two instants: the last line before, and the first after it."""
    facts.restarted_at[broker] = max(end, facts.restarted_at.get(broker, NEVER))
    pending = facts.unjudged.get(broker, [])
    pending[:] = [silence for silence in pending if silence.begin_at_ms > begin]
    silences = facts.silences.setdefault(broker, [])
    if not any(since == begin for since, _ in silences):
        silences.append(Silence(begin, end))
    for group in list(facts.groups.values()):
        if group.broker == broker:
            new_coordinator.begun_anew(facts, group, begin, end)


def _sender(facts: Facts, event: Event) -> tuple[Group | None, Member | None]:
    """The member that a request is of: by its id, or, if it has none any more, by its client.id and address."""
    group = facts.groups.get(event.group_id)
    if group is None or group.broker != facts.broker:
        return None, None
    member = group.members.get(event.member_id)
    if member is None:
        over = group.ended.get(event.member_id)
        member = over.member if over is not None else None
    if member is None and not event.member_id:
        same = (one for one in group.members.values() if one.client_id == event.client_id)
        member = next((one for one in same if one.client_host == event.client_host), None)
    return group, member


def _same_process(facts: Facts, silence: Unjudged, member: Member, at: float) -> None:
    """A connection from before the silence goes on. Whether the broker stood still is another question: if nobody was
    late, it did not."""
    on_time = member.last_heard_at_ms >= 0 and at - member.last_heard_at_ms <= habits.ON_TIME * member.usual_gap_max_ms
    _went_on(facts, silence, at, on_time=on_time and not _most_were_due(facts, facts.broker, silence.silence))


def _went_on(facts: Facts, silence: Unjudged, at: float, *, on_time: bool) -> None:
    broker, (begin, end) = facts.broker, silence.silence
    facts.unjudged[broker].remove(silence)
    if on_time:
        facts.silences[broker] = [one for one in facts.silences.get(broker, ()) if one.begin_at_ms != begin]
        expiry.look_again(facts, broker, begin, at)
        return
    facts.outlived.setdefault(broker, []).append(silence.silence)
    # What had waited for it to go on is answered first.
    expiry.look_again(facts, broker, begin, max(at, end + GRACE_MS))


def _most_were_due(facts: Facts, broker: str, silence: Silence) -> bool:
    """Whether most of those who were well when a silence began should have been heard in it. One of few may have died
    in that moment."""
    begin, end = silence
    next_by = [
        member.last_heard_at_ms + habits.ON_TIME * member.usual_gap_max_ms
        for group in facts.groups.values()
        if group.broker == broker and group.state == GroupState.STABLE
        for member in group.members.values()
        if member.last_heard_at_ms >= 0 and member.usual_gap_max_ms > 0
    ]
    well = sum(at >= begin for at in next_by)
    return sum(begin <= at < end for at in next_by) > well / 2


def _where(facts: Facts, member: Member, event: Event) -> Silence:
    """Where a restart lay that shows now: in the last silence, if it was just now or the member was not heard since;
    else at any time since it was."""
    since, now = member.last_heard_at_ms, event.handled_at_ms
    reach = max(min(since, now - JUDGED_WITHIN_MS), facts.restarted_at.get(facts.broker, NEVER))
    found = [one for one in facts.silences.get(facts.broker, ()) if reach < one.end_at_ms <= now + TWO_STAMPS_MS]
    return found[-1] if found else Silence(since, now)


def counts_anew(before: str, now: str) -> bool:
    """Whether the number of a connection shows that the broker was restarted since an earlier one was accepted."""
    earlier, later = _parts(before), _parts(now)
    if earlier is None or later is None or earlier.broker != later.broker:
        return False
    if earlier.thread != later.thread:
        return False
    return later.number + (1 if later.thread else OF_SEVERAL) <= earlier.number


class _Connection(NamedTuple):
    """What the name of a connection tells: `local-remote-number`, from 4.0 on `local-remote-thread-number`."""

    broker: str
    thread: str
    """Network thread; empty where the name does not tell it."""
    number: int


def _parts(connection: str) -> _Connection | None:
    parts = connection.split("-")
    if len(parts) not in (3, 4) or not parts[-1].isdigit():
        return None
    return _Connection(parts[0], "".join(parts[2:-1]), int(parts[-1]))


def number_of(connection: str) -> int | None:
    """The broker's own count of a connection; None where its name does not tell it."""
    parts = _parts(connection)
    return None if parts is None else parts.number
