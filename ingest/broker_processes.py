"""Which process of a broker wrote a request log: seen by the connections of all its clients, before lines go to lanes.

A broker counts its connections from its start, and none outlives it. So a connection from before a silence that goes on
shows the same process, as do numbers that go on rising; a client that comes back with a lower number shows another one,
as does that everybody who comes back has a new connection. A lane has the clients of some groups only; what is true of
the broker is concluded here, of all of them, and told to every lane in its ticks. Reads no clock. Sources:
`SocketServer` (`nextConnectionIndex`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ingest.quiet_requests import Rows
from kardia.events import SILENCE_MS, Event, Kind
from kardia.kafka.states import ErrorCode
from kardia.observe.evidence.restarts import counts_anew, number_of
from kardia.observe.intake.instants import effect_at
from kardia.observe.members.habits import FORGETS, ON_TIME
from kardia.observe.state.group import NEVER
from kardia.stretches import DECIDED, Stretch
from kardia.tolerances import APART_MS, JUDGED_WITHIN_MS, PRESUMED_AFTER_MS, STARTS_WITHIN_MS

_BY_ONE_CONNECTION = frozenset({int(Kind.JOIN), int(Kind.HEARTBEAT), int(Kind.MODERN_HEARTBEAT)})
_OF_MEMBERS = _BY_ONE_CONNECTION | {int(kind) for kind in (Kind.SYNC, Kind.COMMIT, Kind.TXN_COMMIT)}
_JOIN, _SYNC = int(Kind.JOIN), int(Kind.SYNC)

SAME_INSTANT_MS = 25.0
"""What waited for a broker to go on is handled within that of its first line (`ObserverSettings.tolerance_ms`)."""

RISING_FROM = 16
"""A broker that has counted so many connections is not young: one that is started anew begins at 0, and of those who
come back somebody has a low number. Nothing is concluded from it where a member came back by a new connection, as all
do after a start: then it only stands against a start."""

MAX_KEPT = 100_000
"""Members, and connections, that are remembered of a broker, some 20 MB; who was met longest ago is forgotten first."""


def of_groups(rows: Rows) -> list[Stretch]:
    """The folded requests that name a group."""
    names = np.array([bool(head.group_id) for head in rows.heads], bool)
    return rows.part(np.flatnonzero(names[rows.senders])).stretches() if names.any() else []


class Heard(NamedTuple):
    """One member, or a client that joins without an id, by one connection, between two silences of the log."""

    first_at_ms: float
    last_at_ms: float
    arrived_at_ms: float
    """When the first of its requests came; it may have been answered long after."""
    gap_ms: float
    """The longest time between two of its requests."""
    connection: str
    member_id: str
    client: str
    """client.id and address."""
    given_id: str
    """The id that a JoinGroup without one was answered with."""
    by_one_connection: bool
    """Whether one of the requests is of a kind that a client sends by one connection as long as that lasts."""
    steady: bool
    """Whether the last answer was one of a Stable group."""


class Summary(NamedTuple):
    """What a part of a request log tells of its broker's process."""

    heard: list[Heard]
    queued_at: list[float]
    """When requests arrived that stood long in the queue, `APART_MS` apart."""
    asked_at_ms: float
    """The first request about a group; NEVER without one."""


NOTHING = Summary([], [], NEVER)


def summary_of(events: Iterable[Event], stretches: Iterable[Stretch], silences: Sequence[Sequence[float]]) -> Summary:
    """What requests tell, and folded ones; `silences` of the same part."""
    cuts = [(begin + end) / 2 for begin, end in silences]
    heard: dict[tuple[int, str, str], Heard] = {}
    queued: list[float] = []
    asked_at_ms = NEVER
    for event in events:
        if event.detail and "queued_ms" in event.detail:
            queued.append(event.arrived_at_ms)
        if not event.connection or not event.group_id:
            continue
        at = effect_at(event)
        asked_at_ms = at if asked_at_ms < 0 else min(at, asked_at_ms)
        if event.kind in _OF_MEMBERS:
            _add(heard, _of_event(event, at), bisect_left(cuts, at))
    for stretch in stretches:
        head = stretch.head
        if head.group_id and head.kind in _OF_MEMBERS:
            for instants in _cut(sorted(stretch.column(DECIDED)), cuts):
                gap_ms = max((two - one for one, two in pairwise(instants)), default=0.0)
                one = _of_event(head, instants[0])._replace(
                    last_at_ms=instants[-1], arrived_at_ms=instants[0], gap_ms=gap_ms
                )
                asked_at_ms = instants[0] if asked_at_ms < 0 else min(instants[0], asked_at_ms)
                _add(heard, one, bisect_left(cuts, instants[0]))
    return Summary(sorted(heard.values()), _apart(sorted(queued)), asked_at_ms)


def _of_event(event: Event, at: float) -> Heard:
    detail = event.detail or {}
    given = "" if event.member_id else str(detail.get("assigned_member_id", ""))
    return Heard(
        at,
        at,
        min(event.arrived_at_ms, at),
        0.0,
        event.connection,
        event.member_id,
        f"{event.client_id}@{event.client_host}",
        given,
        event.kind in _BY_ONE_CONNECTION,
        event.kind != _JOIN and event.error_code != ErrorCode.REBALANCE_IN_PROGRESS,
    )


def _add(heard: dict[tuple[int, str, str], Heard], one: Heard, cut: int) -> None:
    key = (cut, one.connection, one.member_id or one.client)
    known = heard.get(key)
    if known is not None:
        first, last = (known, one) if known.first_at_ms <= one.first_at_ms else (one, known)
        one = last._replace(
            first_at_ms=first.first_at_ms,
            arrived_at_ms=min(first.arrived_at_ms, last.arrived_at_ms),
            last_at_ms=max(first.last_at_ms, last.last_at_ms),
            gap_ms=max(first.gap_ms, last.gap_ms, last.first_at_ms - first.last_at_ms),
            given_id=last.given_id or first.given_id,
            by_one_connection=first.by_one_connection or last.by_one_connection,
        )
    heard[key] = one


def _cut(instants: list[float], cuts: list[float]) -> Iterable[list[float]]:
    begin = 0
    for cut in cuts:
        end = bisect_left(instants, cut, begin)
        if end > begin:
            yield instants[begin:end]
        begin = end
    if begin < len(instants):
        yield instants[begin:]


def _apart(instants: list[float]) -> list[float]:
    kept: list[float] = []
    for at in instants:
        if not kept or at - kept[-1] >= APART_MS:
            kept.append(at)
    return kept


@dataclass(slots=True)
class _Member:
    first_at_ms: float
    last_at_ms: float
    habit_ms: float = 0.0
    """Its longest usual silence (`kardia.observe.members.habits`)."""
    connections: tuple[str, ...] = ()
    """The last three, the latest first; of the process that goes on."""
    steady: bool = False


@dataclass(slots=True)
class _Open:
    """A silence, or a shorter pause, of which nothing shows yet whether the broker was started again in it."""

    begin_at_ms: float
    end_at_ms: float
    is_silence: bool
    highest: int | None = None
    """The highest number of a connection before it; None while nobody has been heard since."""
    reconnected_at_ms: float = NEVER
    lowest_new: int = -1
    """The lowest number of those that were new since; -1: there was none."""


@dataclass(slots=True)
class Processes:
    """What is known of the process of one broker, by its request log up to here."""

    known_from_ms: float = NEVER
    _asked_at_ms: float = NEVER
    _connections: dict[str, float] = field(default_factory=dict)
    """Connection of this process -> when it was heard first."""
    _highest: int = -1
    _members: dict[str, _Member] = field(default_factory=dict)
    _of_client: dict[str, str] = field(default_factory=dict)
    """client.id and address -> the id of its only member; empty where there are several."""
    _open: list[_Open] = field(default_factory=list)
    _silences: list[tuple[float, float]] = field(default_factory=list)
    """Those that a habit or a restart may still be about."""
    _restarted_at_ms: float = NEVER
    _queued_at_ms: float = NEVER
    _restarts: list[list[float]] = field(default_factory=list)
    _went_on: list[list[float]] = field(default_factory=list)
    _queued: list[float] = field(default_factory=list)

    def take(
        self,
        summary: Summary,
        silences: Sequence[Sequence[float]] = (),
        last_line_at_ms: float | None = None,
        first_line_at_ms: float | None = None,
    ) -> None:
        """A further part of the log, with its silences, and the last line before it with the first of it: if they lie
        apart, a broker may have been started between them."""
        for begin, end in silences:
            self._open_silence(begin, end)
        if last_line_at_ms and first_line_at_ms is not None:
            apart_ms = first_line_at_ms - last_line_at_ms
            if apart_ms >= SILENCE_MS and [last_line_at_ms, first_line_at_ms] not in map(list, silences):
                self._open_silence(last_line_at_ms, first_line_at_ms)
            elif STARTS_WITHIN_MS <= apart_ms < SILENCE_MS:
                self._open.append(_Open(last_line_at_ms, first_line_at_ms, is_silence=False))
        self._open.sort(key=lambda one: one.end_at_ms)
        for heard in summary.heard:
            self._take(heard)
            self._presume(heard.first_at_ms)
        self._presume(max((heard.last_at_ms for heard in summary.heard), default=NEVER))
        if self._asked_at_ms < 0:
            self._asked_at_ms = summary.asked_at_ms
        for at in summary.queued_at:
            if at - self._queued_at_ms >= APART_MS:
                self._queued.append(at)
                self._queued_at_ms = at

    def _open_silence(self, begin: float, end: float) -> None:
        self._open.append(_Open(begin, end, is_silence=True))
        self._silences.append((begin, end))

    def signs(self) -> dict[str, Any]:
        """What a tick of this part of the log says, and no tick before has said."""
        told: dict[str, Any] = {"processes": {"known_from_ms": self.known_from_ms}}
        if self._restarts:
            told["processes"]["restarts"] = self._restarts
        if self._went_on:
            told["processes"]["went_on"] = self._went_on
        told["queued_at"] = self._queued
        if self._asked_at_ms >= 0:
            told["asked_from_ms"] = self._asked_at_ms
        self._restarts, self._went_on, self._queued = [], [], []
        return told if self.known_from_ms >= 0 else {}

    # --- one that is heard

    def _take(self, heard: Heard) -> None:
        at, connection = heard.first_at_ms, heard.connection
        for one in self._open:
            if one.highest is None and at >= one.end_at_ms - SAME_INSTANT_MS:
                one.highest = self._highest
        if self.known_from_ms < 0:
            self.known_from_ms = at
        member = self._members.get(heard.member_id or self._of_client.get(heard.client, ""))
        since = self._connections.get(connection)
        if member is not None:
            self._judge(heard, member, since)
            if heard.member_id and heard.by_one_connection and heard.arrived_at_ms > member.last_at_ms:
                self._compare(member, connection, at)
        if since is None:
            self._note_new(connection, at)
        self._remember(heard)

    def _judge(self, heard: Heard, member: _Member, since: float | None) -> None:
        """What a member that was heard shows of the silences before."""
        at = heard.first_at_ms
        for one in list(self._open):
            if at > one.end_at_ms + JUDGED_WITHIN_MS:
                self._open.remove(one)
            elif at < one.end_at_ms - SAME_INSTANT_MS:
                continue
            elif since is not None and since <= one.begin_at_ms:
                self._goes_on(one, since, at, on_time=at - member.last_at_ms <= ON_TIME * member.habit_ms)
            elif since is None and one.reconnected_at_ms < 0 and member.first_at_ms <= one.begin_at_ms:
                one.reconnected_at_ms = at

    def _goes_on(self, one: _Open, since: float, at: float, *, on_time: bool) -> None:
        """The process that ran `since` then goes on."""
        if one.is_silence:
            on_time = on_time and not self._most_were_due(one)
            self._went_on.append([one.begin_at_ms, one.end_at_ms, at, float(on_time)])
        else:
            self._went_on.append([since, one.end_at_ms, at, 0.0])
        self._open.remove(one)

    def _most_were_due(self, one: _Open) -> bool:
        """Whether most of those who were well when a silence began should have been heard in it: one of few may have
        died in that moment."""
        begin, end = one.begin_at_ms, one.end_at_ms
        next_by = [
            member.last_at_ms + ON_TIME * member.habit_ms
            for member in self._members.values()
            if member.steady and member.habit_ms > 0
        ]
        well = sum(at >= begin for at in next_by)
        return sum(begin <= at < end for at in next_by) > well / 2

    def _note_new(self, connection: str, at: float) -> None:
        self._connections[connection] = at
        if len(self._connections) > MAX_KEPT:
            del self._connections[next(iter(self._connections))]
        number = number_of(connection)
        if number is None:
            return
        for one in self._open:
            if at >= one.end_at_ms - SAME_INSTANT_MS:
                one.lowest_new = number if one.lowest_new < 0 else min(number, one.lowest_new)
        self._highest = max(number, self._highest)

    def _compare(self, member: _Member, connection: str, at: float) -> None:
        """A later connection of a member has a higher number, unless the broker has begun to count anew. One that
        gave up waiting for an answer has several at once, and what it asked by the first may be answered last."""
        if connection in member.connections or not member.connections:
            return
        if not counts_anew(member.connections[0], connection):
            return
        reach = max(min(member.last_at_ms, at - JUDGED_WITHIN_MS), self._restarted_at_ms)
        where = [one for one in self._silences if reach < one[1] <= at + SAME_INSTANT_MS]
        self._restarted(*(where[-1] if where else (member.last_at_ms, at)), at)

    def _presume(self, now: float) -> None:
        """What shows by `now` because nothing else has been heard."""
        for one in list(self._open):
            if one not in self._open:
                continue  # a restart in a later one has settled it
            rises = one.highest is not None and RISING_FROM <= one.highest <= one.lowest_new
            back_at_ms = one.reconnected_at_ms
            if one.is_silence and not rises and 0 <= back_at_ms <= now - PRESUMED_AFTER_MS:
                self._restarted(one.begin_at_ms, one.end_at_ms, back_at_ms + PRESUMED_AFTER_MS)
            elif rises and back_at_ms < 0 and one.end_at_ms <= now - PRESUMED_AFTER_MS:
                self._goes_on(one, one.begin_at_ms, one.end_at_ms + PRESUMED_AFTER_MS, on_time=False)

    def _restarted(self, begin: float, end: float, at: float) -> None:
        self._restarts.append([begin, end, at])
        self._restarted_at_ms = end
        self._open = [one for one in self._open if one.begin_at_ms > begin]
        # None of the others lives any more, and their numbers are given again.
        self._connections = {name: since for name, since in self._connections.items() if since >= end}
        self._highest = max((number_of(name) or 0 for name in self._connections), default=-1)
        for member in self._members.values():
            member.connections = tuple(name for name in member.connections if name in self._connections)

    def _remember(self, heard: Heard) -> None:
        member_id = heard.member_id or heard.given_id
        if not member_id:
            return
        member = self._members.get(member_id)
        if member is None:
            member = self._members[member_id] = _Member(heard.first_at_ms, heard.first_at_ms)
            known = self._of_client.get(heard.client)
            self._of_client[heard.client] = member_id if known is None or not self._lives(known, heard) else ""
            for kept in (self._members, self._of_client):
                if len(kept) > MAX_KEPT:
                    del kept[next(iter(kept))]
        last_at_ms, at = member.last_at_ms, heard.first_at_ms
        for gap_ms in (at - last_at_ms, heard.gap_ms):
            usual = not member.habit_ms or gap_ms <= ON_TIME * member.habit_ms
            usual = usual or not self._was_silent(last_at_ms, heard.last_at_ms)
            if gap_ms > 0 and usual:
                member.habit_ms = max(member.habit_ms * FORGETS, gap_ms)
        member.last_at_ms = max(last_at_ms, heard.last_at_ms)
        member.steady = heard.steady
        if heard.by_one_connection and heard.connection not in member.connections:
            member.connections = (heard.connection, *member.connections[:2])

    def _lives(self, member_id: str, heard: Heard) -> bool:
        """Whether the member that a client was known by is another one than who joins now without an id: it was heard
        by another connection, of this process."""
        before = self._members.get(member_id)
        return before is not None and bool(before.connections) and heard.connection not in before.connections

    def _was_silent(self, begin: float, end: float) -> bool:
        self._silences = [one for one in self._silences if one[1] >= self.known_from_ms][-64:]
        return any(since < end and begin < to for since, to in self._silences)
