"""All groups of a log: events in, in whatever steps; each group's requests to its follower in the order of effect.

A JoinGroup takes effect when it is handled, and its line comes when it is answered, up to a rebalance timeout later. So
the requests of a group wait until nothing can come before them any more: until `advance` says so, or, where it says how
far the log is read, as soon as an answer shows that nobody waits. Requests that only renew sessions wait a moment; a
group of which nothing else is seen costs a look at each stretch of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from kardia.events import SILENCE_MS, Event, Kind, broker_of, stream_of
from kardia.follow.broker import Broker
from kardia.follow.clues import FOLLOWED, MOVED, Lost, Moved, clue_of, sent_away
from kardia.follow.ends import End
from kardia.follow.follower import Follower
from kardia.follow.surprises import Counts, Surprise, SurpriseClass
from kardia.follow.tolerances import GROUPS_MAX, HELD_MAX, HELD_MS, KNOWN_MAX, ORDER_MS, SURPRISES_MAX, WRITTEN_MS
from kardia.stretches import HANDLED, WIDTH, Stretch

_RENEWING = frozenset({int(Kind.HEARTBEAT), int(Kind.COMMIT)})
_TICK, _GAP, _MODERN = int(Kind.TICK), int(Kind.GAP), int(Kind.MODERN_HEARTBEAT)
_SYNC, _HEARTBEAT = int(Kind.SYNC), int(Kind.HEARTBEAT)

SILENT_BEFORE_MS = 10_000
"""A coordinator that is not there so shortly after its log was silent was gone when that began: it loads its groups."""

CONNECTIONS_MAX = 50_000
"""Connections whose last request is remembered; the one that was opened first goes."""

OF_BROKERS_MAX = 64
"""Starts of brokers and gaps that are remembered for groups of which nothing was taken yet."""


class Held(NamedTuple):
    """What waits for its place among the requests of a group."""

    at_ms: float
    source: str
    start: int
    item: Event | Moved | Lost
    is_of_broker: bool = False
    """It is about every group that the broker of `source` leads at that instant."""


_PLACE = itemgetter(0, 1, 2)


Renewals = tuple[Event, float, int, Stretch | None]
"""Requests answered 0 of one member that renew its session: the head, when the last took effect, how many, and the
stretch where they are folded."""


class Following:
    """The groups of one cluster, of brokers of one release."""

    def __init__(
        self, kafka_version: str, *, begins: bool = True, keeps_ends: bool = False, bounded: bool = False
    ) -> None:
        """`begins`: the log may have all of its groups' lives. `bounded`: it goes on for ever; no more groups and
        requests are kept than there is room for, and a group that cannot be followed is left out, not raised."""
        self.broker = Broker(kafka_version)
        self.followers: dict[str, Follower] = {}
        self.surprises: list[Surprise] = []
        self.left_out: set[str] = set()
        """Groups with epochs, or that had them once: they answer classic requests by other rules. Where it is
        bounded, also those that could not be followed."""
        self.ends: list[End] = []
        """Who went and why, of windows that are over; kept where asked for."""
        self.possible: list[End] = []
        """Who may have gone: the log would be the same if not."""
        self._begins, self._keeps_ends, self._bounded = begins, keeps_ends, bounded
        self._is_full = False
        """No room was found for one more group, since the last comparison."""
        self._gone = Counts()
        """Of groups that are followed no longer."""
        self._held: dict[str, list[Held]] = {}
        self._of_brokers: deque[Held] = deque(maxlen=OF_BROKERS_MAX)
        """The last that were for all groups: one whose first request is taken later may have been there before."""
        self._quiet: deque[Renewals] = deque()
        """What may have something before it yet."""
        self._nobody_waits: dict[str, float] = {}
        """Group -> the last instant at which an answer shows that no JoinGroup and no SyncGroup waits."""
        self._synced: dict[str, int] = {}
        """Group -> generation of which a SyncGroup was answered."""
        self._restarts: set[tuple[str, float]] = set()
        self._number = 0
        self._connections: dict[str, float] = {}
        """When the last request of each took effect."""
        self._last_lines: dict[str, float] = {}
        """Stream -> stamp of the last line that a tick told of."""
        self._sources: dict[str, str] = {}

    @property
    def held(self) -> int:
        """How many requests wait."""
        return sum(map(len, self._held.values()))

    def take(self, events: Iterable[Event]) -> None:
        """Take events, in any order; nothing is compared before `advance`."""
        for event in events:
            if event.kind in _RENEWING and event.error_code == 0:
                self._quiet.append((event, self._effect_at(event), 1, None))
            elif event.kind in FOLLOWED:
                self._hold(event, self._effect_at(event))
            elif event.kind == _TICK:
                self._hear_of_silence(event)
                for from_ms, *_ in ((event.detail or {}).get("processes") or {}).get("restarts") or ():
                    if (event.source, from_ms) not in self._restarts:
                        self._restarts.add((event.source, from_ms))
                        moved = Moved(int(from_ms) + 1, int(from_ms), event.source, "the broker was started again")
                        self._hold_for_all(Held(from_ms + 1, event.source, -1, moved, is_of_broker=True))
            elif event.kind == _MODERN:
                self.left_out.add(event.group_id)
                if self._bounded:
                    self.forget(event.group_id)
            elif event.kind == _GAP:
                detail = event.detail or {}
                from_ms, to_ms = int(detail.get("from_ms", -1)), int(detail.get("to_ms", event.handled_at_ms))
                lost = Lost(to_ms, from_ms, "lines of the log are lost")
                self._hold_for_all(Held(event.handled_at_ms, event.source, event.start, lost, is_of_broker=True))

    def take_folded(self, stretches: Iterable[Stretch]) -> None:
        """Take requests that were folded: of these only heartbeats are of a member."""
        self._quiet += [
            (one.head, one.numbers[HANDLED - WIDTH], len(one.numbers) // WIDTH, one)
            for one in stretches
            if one.head.kind == _HEARTBEAT
        ]

    def _hold(self, event: Event, at_ms: float) -> None:
        group_id = event.group_id
        if not group_id or (group_id in self.left_out and group_id not in self.followers):
            return
        if group_id not in self._held:
            known = group_id in self.followers
            self._held[group_id] = [] if known else [held for held in self._of_brokers if held.at_ms > at_ms]
        queue = self._held[group_id]
        queue.append(Held(at_ms, event.source, event.start, event))
        if sent_away(event):
            moved_at_ms = int(event.decided_at_ms)
            moved = Moved(moved_at_ms, moved_at_ms, event.source, "the coordinator moved")
            queue.append(Held(event.decided_at_ms, event.source, event.start, moved))
        elif event.error_code != 0:
            return
        elif event.kind == _SYNC:
            self._synced[group_id] = event.generation_id
        elif event.kind == _HEARTBEAT:
            self._note_calm(event, event.handled_at_ms)

    def _note_calm(self, head: Event, at_ms: float) -> None:
        """A heartbeat was answered 0 in a generation that is assigned: a group that prepares a rebalance answers 27,
        and one that waits for its leader's assignment has answered no SyncGroup of that generation."""
        if self._synced.get(head.group_id) == head.generation_id:
            self._nobody_waits[head.group_id] = max(at_ms, self._nobody_waits.get(head.group_id, at_ms))

    def _hold_for_all(self, held: Held) -> None:
        self._of_brokers.append(held)
        for group_id in self.followers.keys() | self._held.keys():
            self._held.setdefault(group_id, []).append(held)

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
        """Compare all requests that took effect up to an instant: all of these have been taken."""
        self._hear_folded(lambda _: to_ms)
        self._put_known(lambda *_: to_ms)

    def follow(self, read_to: Mapping[str, float]) -> None:
        """Compare what nothing can come before any more. `read_to`: broker -> all lines that it had written up to then
        have been taken. A group in which an answer shows that nobody waits is compared so far."""

        def known_ms(group_id: str, queue: list[Held]) -> float:
            read_ms = max(read_to.get(broker_of(held.source), -1.0) for held in queue)
            nobody_waits_ms = self._nobody_waits.get(group_id, -1.0)
            return max(read_ms - HELD_MS, min(read_ms - WRITTEN_MS, nobody_waits_ms))

        self._is_full = False
        self._hear_folded(lambda broker: read_to.get(broker, -1.0) - WRITTEN_MS)
        self._put_known(known_ms)
        if self._bounded:
            self._bound()

    def _bound(self) -> None:
        """Keep no more than there is room for."""
        if self.held > HELD_MAX:
            self._leave_out(max(self._held, key=lambda one: len(self._held[one])))
        while len(self.left_out) > KNOWN_MAX:
            self.left_out.pop()
        for known in (self._synced, self._nobody_waits):
            if len(known) > KNOWN_MAX:
                for group_id in [one for one in known if one not in self.followers]:
                    del known[group_id]

    def _put_known(self, known_ms: Callable[[str, list[Held]], float]) -> None:
        ready: list[tuple[Held, str]] = []
        for group_id, queue in list(self._held.items()):
            queue.sort(key=_PLACE)
            known = bisect_right(queue, known_ms(group_id, queue), key=itemgetter(0))
            ready += [(held, group_id) for held in queue[:known]]
            if known < len(queue):
                self._held[group_id] = queue[known:]
            else:
                del self._held[group_id]
        ready.sort(key=lambda one: _PLACE(one[0]))
        for held, group_id in ready:
            self._put(group_id, held)

    def _hear_folded(self, known_ms: Callable[[str], float]) -> None:
        """Renewals that nothing can come before; of a group of which something waits they wait with it."""
        waiting, self._quiet = self._quiet, deque()
        known: dict[str, float] = {}
        for renewals in waiting:
            head, last_ms, _, folded = renewals
            if head.source not in known:
                known[head.source] = known_ms(broker_of(head.source))
            if last_ms > known[head.source]:
                self._quiet.append(renewals)
                continue
            follower = self.followers.get(head.group_id)
            if follower is None and (self._is_full or not head.group_id):
                continue
            follower = follower or self._follower(head.group_id)
            if follower is None:
                continue
            if head.group_id in self._held or not self._heard(follower, renewals):
                for event in (head,) if folded is None else folded.events():
                    self._hold(event, last_ms if folded is None else event.handled_at_ms)
            elif head.kind == _HEARTBEAT:
                self._note_calm(head, last_ms)

    def _heard(self, follower: Follower, renewals: Renewals) -> bool:
        """Whether they were taken for what they are; also of a group that cannot be followed."""
        try:
            return follower.hear(*renewals[:3])
        except Exception as error:
            self._failed(follower.group_id, error)
            return True

    def finish(self) -> None:
        """No more comes."""
        self.advance(float("inf"))
        for group_id, follower in list(self.followers.items()):
            try:
                follower.finish()
            except Exception as error:
                self._failed(group_id, error)
            self._collect(follower)

    def counts(self) -> Counts:
        """Of all groups together."""
        whole = Counts()
        whole.add(self._gone)
        for follower in self.followers.values():
            whole.add(follower.counts)
            whole.answers += follower.heard
        return whole

    # --- groups that come and go

    def _follower(self, group_id: str) -> Follower | None:
        follower = self.followers.get(group_id)
        if follower is None and group_id not in self.left_out:
            if self._bounded and len(self.followers) >= GROUPS_MAX and not self._is_full:
                self._is_full = not self._make_room()
            if not self._bounded or len(self.followers) < GROUPS_MAX:
                follower = Follower(group_id, self.broker, begins=self._begins, tells_ends=self._keeps_ends)
                self.followers[group_id] = follower
        return follower

    def _make_room(self) -> bool:
        """Follow no longer a group that has nobody, or of which nothing is known; whether there is one."""
        for group_id, follower in self.followers.items():
            if not follower.has_members() and group_id not in self._held:
                self.forget(group_id)
                return True
        return False

    def forget(self, group_id: str) -> None:
        """Follow a group no longer; if more of it comes it begins in the middle."""
        follower = self.followers.pop(group_id, None)
        if follower is not None:
            self._gone.add(follower.counts)
            self._gone.answers += follower.heard
        for known in (self._held, self._nobody_waits, self._synced, self._sources):
            known.pop(group_id, None)

    def _leave_out(self, group_id: str) -> None:
        self.forget(group_id)
        self.left_out.add(group_id)

    def _failed(self, group_id: str, error: Exception) -> None:
        """A group that cannot be followed is ours to explain; the others go on."""
        if not self._bounded:
            raise error
        at_ms = int(self.followers[group_id].anchored_at_ms)
        seen = f"{type(error).__name__}: {str(error)[:200]}"
        own = SurpriseClass.OWN_MISTAKE
        self.surprises.append(Surprise(group_id, "", at_ms, "", "", seen, (), own, "the follower failed"))
        self._leave_out(group_id)

    # --- one event

    def _put(self, group_id: str, held: Held) -> None:
        item, led_by = held.item, broker_of(self._sources.get(group_id, held.source))
        if held.is_of_broker and led_by != broker_of(held.source):
            return
        follower = self._follower(group_id)
        if follower is None:
            return
        try:
            if isinstance(item, Event):
                self._ask(follower, item)
            else:
                follower.take(item)
        except Exception as error:
            self._failed(group_id, error)
            return
        if follower.surprises or follower.ends:
            self._collect(follower)
            if self._bounded and follower.counts.surprising.total() >= SURPRISES_MAX:
                self._leave_out(group_id)

    def _ask(self, follower: Follower, event: Event) -> None:
        group_id = follower.group_id
        if event.kind in _RENEWING and event.error_code == 0 and follower.hear(event, event.handled_at_ms):
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
            self.possible += follower.possible
        follower.surprises, follower.ends, follower.possible = [], [], []
