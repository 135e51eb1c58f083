"""All groups of a log: events in, in whatever steps; each group's requests to its follower in the order of effect."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

from kardia.coordinator.happenings import Happening
from kardia.events import SILENCE_MS, Event, Kind, broker_of, stream_of
from kardia.follow.broker import Broker
from kardia.follow.clues import FOLLOWED, MOVED, Lost, Moved, clue_of, sent_away
from kardia.follow.follower import Follower
from kardia.follow.surprises import Counts, Surprise
from kardia.follow.tolerances import ORDER_MS

_RENEWING = frozenset({int(Kind.HEARTBEAT), int(Kind.COMMIT)})
_TICK, _GAP, _MODERN = int(Kind.TICK), int(Kind.GAP), int(Kind.MODERN_HEARTBEAT)

SILENT_BEFORE_MS = 10_000
"""A coordinator that is not there so shortly after its log was silent was gone when that began: it loads its groups."""

CONNECTIONS_MAX = 50_000
"""Connections whose last request is remembered; the one that was opened first goes."""


class Following:
    """The groups of one cluster, of brokers of one release."""

    def __init__(self, kafka_version: str, *, begins: bool = True, keeps_ends: bool = False) -> None:
        """`begins`: the log may have all of its groups' lives."""
        self.broker = Broker(kafka_version)
        self.followers: dict[str, Follower] = {}
        self.surprises: list[Surprise] = []
        self.left_out: set[str] = set()
        """Groups with epochs, or that had them once: they answer classic requests by other rules."""
        self.ends: list[Happening] = []
        """Who went and why, as the model says, of windows that are over; kept where asked for."""
        self._begins, self._keeps_ends = begins, keeps_ends
        self._held: list[tuple[float, str, int, Event | Moved]] = []
        self._restarts: set[tuple[str, float]] = set()
        self._number = 0
        self._connections: dict[str, float] = {}
        """When the last request of each took effect."""
        self._last_lines: dict[str, float] = {}
        """Stream -> stamp of the last line that a tick told of."""
        self._sources: dict[str, str] = {}

    def take(self, events: Iterable[Event]) -> None:
        """Take events, in any order; nothing is compared before `advance`."""
        held = self._held
        for event in events:
            if event.kind in FOLLOWED:
                held.append((self._effect_at(event), event.source, event.start, event))
                if sent_away(event):
                    at_ms = int(event.decided_at_ms)
                    moved = Moved(at_ms, at_ms, event.source, "the coordinator moved")
                    held.append((event.decided_at_ms, event.group_id, event.start, moved))
            elif event.kind == _TICK:
                self._hear_of_silence(event)
                for from_ms, *_ in ((event.detail or {}).get("processes") or {}).get("restarts") or ():
                    if (event.source, from_ms) not in self._restarts:
                        self._restarts.add((event.source, from_ms))
                        moved = Moved(int(from_ms) + 1, int(from_ms), event.source, "the broker was started again")
                        held.append((from_ms + 1, event.source, -1, moved))
            elif event.kind == _MODERN:
                self.left_out.add(event.group_id)
            elif event.kind == _GAP:
                held.append((event.handled_at_ms, event.source, event.start, event))

    def _hear_of_silence(self, event: Event) -> None:
        """What a tick tells of stretches in which its log had no line."""
        detail = event.detail or {}
        for from_ms, to_ms in detail.get("silences") or ():
            self.broker.was_silent(from_ms, to_ms)
        first_ms, stream = detail.get("first_line_at_ms", 0.0), stream_of(event.source)
        last_ms = self._last_lines.get(stream, first_ms)
        if first_ms - last_ms >= SILENCE_MS:
            self.broker.was_silent(last_ms, first_ms)
        self._last_lines[stream] = max(last_ms, detail.get("last_line_at_ms", 0.0))

    def _effect_at(self, event: Event) -> float:
        """When it was handled; not before what its connection sent before, whatever the stamps say."""
        connection, at_ms = event.connection, event.handled_at_ms
        before_ms = self._connections.get(connection, at_ms)
        if before_ms > at_ms and before_ms - at_ms <= ORDER_MS:
            at_ms = before_ms
        self._connections[connection] = at_ms
        if len(self._connections) > CONNECTIONS_MAX:
            del self._connections[next(iter(self._connections))]
        return at_ms

    def advance(self, to_ms: float) -> None:
        """All requests that took effect up to an instant have been taken: compare them."""
        self._held.sort(key=lambda one: one[:3])
        known = bisect_right(self._held, to_ms, key=itemgetter(0))
        ready, self._held = self._held[:known], self._held[known:]
        for _, where, _, event in ready:
            self._put(event, where)

    def finish(self) -> None:
        """No more comes."""
        self.advance(float("inf"))
        for follower in self.followers.values():
            follower.finish()
            self._collect(follower)

    def counts(self) -> Counts:
        """Of all groups together."""
        whole = Counts()
        for follower in self.followers.values():
            whole.add(follower.counts)
        return whole

    # --- one event

    def _put(self, event: Event | Moved, where: str) -> None:
        if isinstance(event, Moved):
            for group_id, follower in self.followers.items():
                of_broker = where == event.source and broker_of(self._sources.get(group_id, "")) == broker_of(where)
                if group_id == where or of_broker:
                    follower.take(event)
            return
        if event.kind == _GAP:
            detail = event.detail or {}
            from_ms, to_ms = int(detail.get("from_ms", -1)), int(detail.get("to_ms", event.handled_at_ms))
            for group_id, follower in self.followers.items():
                if broker_of(self._sources.get(group_id, event.source)) == broker_of(event.source):
                    follower.take(Lost(to_ms, from_ms, "lines of the log are lost"))
            return
        group_id = event.group_id
        if not group_id or (group_id in self.left_out and group_id not in self.followers):
            return
        if group_id not in self.followers:
            self.followers[group_id] = Follower(group_id, self.broker, begins=self._begins)
        follower = self.followers[group_id]
        if event.kind in _RENEWING and event.error_code == 0 and follower.hear(event):
            return
        self._number += 1
        before = self._sources.get(group_id, event.source)
        if event.error_code in MOVED and not sent_away(event):
            self._moved(follower, event, "the coordinator moved, or loads")
        elif broker_of(before) != broker_of(event.source):
            self._moved(follower, event, "another broker has become the coordinator")
        self._sources[group_id] = event.source
        clue = clue_of(event, self._number)
        if clue is not None:
            follower.take(clue)
        if follower.surprises or follower.ends:
            self._collect(follower)

    def _moved(self, follower: Follower, event: Event, why: str) -> None:
        """It has at the latest now; where the log was silent just before, when that began."""
        at_ms = int(event.handled_at_ms)
        silent = self.broker.silent(at_ms - SILENT_BEFORE_MS, at_ms + ORDER_MS)
        from_ms = silent[-1][0] + 1 if silent else at_ms
        follower.take(Moved(at_ms, from_ms, event.source, why))

    def _collect(self, follower: Follower) -> None:
        self.surprises += follower.surprises
        if self._keeps_ends:
            self.ends += follower.ends
        follower.surprises, follower.ends = [], []
