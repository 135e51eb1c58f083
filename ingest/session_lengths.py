"""How long sessions of the newer protocols are, as evictions of any group show it: seen before lines go to lanes.

server.log says of whom a session has ended, and when; the request log of the same broker has its last heartbeat before.
The time between is the session timeout, a setting of the cluster as a rule. A lane has some groups only; what one of
them has shown is concluded here, where both logs are read, and told to every lane in a tick. Only where nothing stands
between the two: no silence of the log, no lost line, no heartbeat that waited for so long that two lengths fit. Two
evictions that contradict each other end it. Reads no clock. Source: `GroupMetadataManager.
scheduleConsumerGroupSessionTimeout`, and those of share and streams groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from kardia.events import Event, Kind
from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS
from kardia.observe.modern.session_length import DIFFERENT, seconds_between
from kardia.observe.sentences.epochs import is_session_end
from kardia.observe.state.group import NEVER
from kardia.stretches import ARRIVED, HANDLED, Stretch

LEAST_MS = 6_000.0
"""A shorter session is not seen: each pause of its members that long would have to be held."""

SHOWN_AFTER_MS = 1_000.0
"""So long after an eviction it is told, on the broker's clock: both logs have been read to there by then."""

PAUSES = 4
"""Pauses of a member that are held, the latest: server.log may be behind by that many."""

MAX_KEPT = 100_000
"""Members that are remembered of a broker, some 20 MB; who was met longest ago is forgotten first."""

_HEARTBEAT, _LINE = int(Kind.MODERN_HEARTBEAT), int(Kind.COORDINATOR_LINE)


class Beats(NamedTuple):
    """Heartbeats of one member in a part of a request log."""

    member_id: str
    protocol: str
    """Empty where no request of the part says it."""
    first_at_ms: float
    pauses: list[tuple[float, float, float]]
    """(Arrived, handled, the next handled) of each that was followed by none for `LEAST_MS`; the last by `inf`."""


class Evicted(NamedTuple):
    """Whose session has ended, by server.log."""

    at_ms: float
    member_id: str


class Sessions(NamedTuple):
    """What a part of a log tells of sessions."""

    beats: list[Beats]
    evicted: list[Evicted]


NOTHING = Sessions([], [])


def sessions_of(events: Iterable[Event], stretches: Iterable[Stretch]) -> Sessions:
    """What requests and sentences tell, and folded requests."""
    beats: dict[str, list[tuple[float, float]]] = {}
    protocols: dict[str, str] = {}
    evicted = []
    for event in events:
        if event.kind == _HEARTBEAT:
            detail = event.detail or {}
            if not event.error_code and event.member_id and int(detail.get("member_epoch", 1)) >= 0:
                beats.setdefault(event.member_id, []).append((event.handled_at_ms, event.arrived_at_ms))
                if detail.get("protocol"):
                    protocols[event.member_id] = str(detail["protocol"])
        elif event.kind == _LINE and is_session_end(event):
            evicted.append(Evicted(event.logged_at_ms, event.member_id))
    for stretch in stretches:
        if stretch.head.kind == _HEARTBEAT and not stretch.head.error_code:
            own = beats.setdefault(stretch.head.member_id, [])
            own.extend(zip(stretch.column(HANDLED), stretch.column(ARRIVED), strict=True))
    found = [_beats(member_id, protocols.get(member_id, ""), sorted(own)) for member_id, own in beats.items()]
    return Sessions(sorted(found), sorted(evicted)) if found or evicted else NOTHING


def _beats(member_id: str, protocol: str, beats: list[tuple[float, float]]) -> Beats:
    following = [*(handled for handled, _ in beats[1:]), inf]
    pauses = [
        (arrived, handled, then)
        for (handled, arrived), then in zip(beats, following, strict=True)
        if then - handled >= LEAST_MS
    ]
    return Beats(member_id, protocol, beats[0][0], pauses[-PAUSES:])


@dataclass(slots=True)
class _Member:
    protocol: str = ""
    pauses: list[tuple[float, float, float]] = field(default_factory=list)


@dataclass(slots=True)
class SessionLengths:
    """What the logs of one broker have shown up to here."""

    _members: dict[str, _Member] = field(default_factory=dict)
    _evicted: list[Evicted] = field(default_factory=list)
    """Those of which the request log is not read to `SHOWN_AFTER_MS` after."""
    _silences: list[tuple[float, float]] = field(default_factory=list)
    _since_ms: float = NEVER
    """Everything of the request log after this instant was read."""
    _read_to_ms: float = NEVER
    _shown: dict[str, int] = field(default_factory=dict)
    _news: list[tuple[str, int, float]] = field(default_factory=list)

    def take(self, sessions: Sessions, silences: Sequence[Sequence[float]] = (), read_to_ms: float = NEVER) -> None:
        """A further part of one of the logs; of a request log with its silences and the stamp of its last line."""
        for beats in sessions.beats:
            self._remember(beats)
        self._silences = [*self._silences, *((begin, end) for begin, end in silences)][-64:]
        self._evicted = [*self._evicted, *sessions.evicted][-MAX_KEPT:]
        self._read_to_ms = max(self._read_to_ms, read_to_ms)
        waiting, self._evicted = self._evicted, []
        for one in waiting:
            if one.at_ms + SHOWN_AFTER_MS <= self._read_to_ms:
                self._conclude(one)
            else:
                self._evicted.append(one)

    def lose(self, to_ms: float) -> None:
        """Lines up to an instant are lost: what was heard before it may not be the last."""
        self._since_ms = max(self._since_ms, to_ms)

    def signs(self) -> dict[str, list[list[object]]]:
        """What a tick says, and no tick before has said."""
        news, self._news = self._news, []
        return {"session_shown": [list(one) for one in news]} if news else {}

    def _remember(self, beats: Beats) -> None:
        member = self._members.get(beats.member_id)
        if member is None:
            member = self._members[beats.member_id] = _Member()
            if len(self._members) > MAX_KEPT:
                del self._members[next(iter(self._members))]
        member.protocol = beats.protocol or member.protocol
        if member.pauses and member.pauses[-1][2] == inf:
            arrived, handled, _ = member.pauses.pop()
            if beats.first_at_ms - handled >= LEAST_MS:
                member.pauses.append((arrived, handled, beats.first_at_ms))
        member.pauses = [*member.pauses, *beats.pauses][-PAUSES:]

    def _conclude(self, evicted: Evicted) -> None:
        member = self._members.get(evicted.member_id)
        if member is None or member.protocol not in PROTOCOLS_WITH_EPOCHS:
            return
        for arrived, handled, then in member.pauses:
            if handled <= evicted.at_ms < then:
                seconds_ms = seconds_between(arrived, handled, evicted.at_ms)
                if seconds_ms >= LEAST_MS and arrived > self._since_ms and not self._is_broken(arrived, evicted.at_ms):
                    self._show(member.protocol, seconds_ms, evicted.at_ms + SHOWN_AFTER_MS)

    def _show(self, protocol: str, seconds_ms: int, at_ms: float) -> None:
        known = self._shown.get(protocol)
        shown = seconds_ms if known in (None, seconds_ms) else DIFFERENT
        if shown != known:
            self._shown[protocol] = shown
            self._news.append((protocol, shown, at_ms))

    def _is_broken(self, begin: float, end: float) -> bool:
        return any(since < end and begin < to for since, to in self._silences)
