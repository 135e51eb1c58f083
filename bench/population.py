"""A large population of groups as its collector sends it: events of one broker, at a steady rate, without text lines.

Groups of ten form once; then every member heartbeats, fetches and commits in its turn (9, 9 and 2 of 20 events). Every
hour each group is rolled out once: its members are told (27), join and sync again, one group after the other, so that
there is always one under way. A `Shape` makes a part of it stand out. Lines are not made here: what it takes to read
them is measured by the stage `lines`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from ingest.archives.ranges import tick
from kardia.events import DEFAULT_LANES, Event, Kind, lane_of, shard_of

MEMBERS = 10
SOURCE = "127.0.0.1:9092/request/population"
LINE_BYTES = 1_000
ROLLED_OUT_EVERY_S = 3_600.0
PORTION_MS = 10.0
"""From one portion of the groups that form to the next."""

REJOINED_AFTER_MS = 300.0

_IN_TURN = (Kind.HEARTBEAT, Kind.FETCH) * 9 + (Kind.COMMIT,) * 2

HOT_SHARD = 0

Batch = dict[int, list[Event]]
"""Lane -> events."""


class Shape(NamedTuple):
    """What of a population is not as the rest."""

    hot_share: float = 0.0
    """Share of the groups, and so of the events, that are of one shard."""
    large: int = 0
    """Members of the first group; 0: as many as any has."""
    restless_every_s: float = 0.0
    """The first group is rolled out that often; 0: as any is."""

    def trouble_lane(self) -> int | None:
        """The lane of what stands out; None where nothing does."""
        if self.hot_share:
            return lane_of(HOT_SHARD)
        return lane_of(shard_of(_name(0))) if self.large or self.restless_every_s else None


CALM = Shape()


def _name(number: int) -> str:
    return f"payments-{number}"


def _names(groups: int, shape: Shape) -> list[str]:
    hot = (name for name in map(_name, count()) if shard_of(name) == HOT_SHARD)
    cold = (name for name in map(_name, count()) if not shape.hot_share or shard_of(name) != HOT_SHARD)
    many = round(groups * shape.hot_share)
    return [next(hot) for _ in range(many)] + [next(cold) for _ in range(groups - many)]


def _host(number: int, member: int) -> str:
    """Address of a member: of a large group each machine has some."""
    return f"10.{number >> 8 & 255}.{number & 255}.{member % 250 + 1}"


class Population:
    """See the head of the file; the same seed gives the same members in the same order."""

    def __init__(self, groups: int, rate: float, seed: int = 7, shape: Shape = CALM) -> None:
        """Name everybody. `rate`: events per second."""
        chance = random.Random(seed)
        self.rate = rate
        self.shape = shape
        sizes = [shape.large or MEMBERS] + [MEMBERS] * (groups - 1)
        self.session_ms = max(45_000, int(3 * 20 / 9 * sum(sizes) / rate * 1_000))
        """Three heartbeats fit into it."""
        self.groups: list[list[tuple[int, str, str, str, str, str]]] = []
        """Of each member: shard, group, member id, client.id, address, connection."""
        for number, name in enumerate(_names(groups, shape)):
            self.groups.append(
                [
                    (
                        *(shard_of(name), name, f"app-{number}-{one}-{chance.getrandbits(128):032x}"),
                        *(f"app-{number}-{one}", _host(number, one)),
                        f"127.0.0.1:9092-{_host(number, one)}:{20_000 + one}-{one}",
                    )
                    for one in range(sizes[number])
                ]
            )
        self.generations = [1] * groups
        self._order = [(number, member) for number, size in enumerate(sizes) for member in range(size)]
        chance.shuffle(self._order)
        self._sent = self._position = self._ticked = self._turn = 0
        self._rolled_out = self._restless_s = 0.0
        self._rejoining: list[tuple[float, int]] = []

    @property
    def members(self) -> int:
        """How many there are."""
        return len(self._order)

    def forming(self, at_ms: float, portion: int = 500) -> Iterator[Batch]:
        """All groups form, so many every `PORTION_MS`: what is of one instant is applied in one step."""
        for turn, begin in enumerate(range(0, len(self.groups), portion)):
            batch: Batch = {}
            at_ms += PORTION_MS if turn else 0.0
            for number in range(begin, min(begin + portion, len(self.groups))):
                self._join(batch, number, at_ms)
            self._close(batch, at_ms + 5)
            yield batch

    def stretch(self, from_ms: float, to_ms: float, more: list[Event] | None = None) -> tuple[Batch, int]:
        """(What is sent of the time between two instants, and a tick in each lane; how many events it is)."""
        batch: Batch = {}
        before = self._position
        count = int((to_ms - from_ms) / 1_000 * self.rate)
        self._rolled_out += (to_ms - from_ms) / 1_000 * len(self.groups) / ROLLED_OUT_EVERY_S
        while self._rolled_out >= 1:
            self._rolled_out -= 1
            self._turn += 1  # the first group, which a shape may set apart, comes last
            self._begin_rollout(batch, from_ms, self._turn % len(self.groups))
        self._restless_s += (to_ms - from_ms) / 1_000
        if 0 < self.shape.restless_every_s <= self._restless_s:
            self._restless_s = 0.0
            self._begin_rollout(batch, from_ms, 0)
        while self._rejoining and self._rejoining[0][0] <= to_ms:
            at_ms, number = self._rejoining.pop(0)
            self.generations[number] += 1
            self._join(batch, number, max(from_ms, at_ms))
        for one in range(count):
            place = self._order[self._sent % len(self._order)]
            number, member = place
            turn = _IN_TURN[(self._sent // len(self._order) + number * MEMBERS + member) % len(_IN_TURN)]
            self._sent += 1
            at_ms = from_ms + (to_ms - from_ms) * one / count
            detail: dict[str, Any] | None = None
            if turn == Kind.COMMIT:
                detail = {"offsets": [["orders", 0, self._sent, 0]]}
            elif turn == Kind.FETCH:
                detail = {"bytes": 110}
            self._add(batch, turn, at_ms, number, member, detail=detail)
        for event in more or ():
            self._place(batch, event)
        self._close(batch, to_ms)
        return batch, (self._position - before) // LINE_BYTES

    def probe(self, number: int, at_ms: float) -> Event:
        """A heartbeat of a member that nobody has heard of; its first row says when it was."""
        group = f"probe-{number}"
        return Event(
            *(int(Kind.HEARTBEAT), shard_of(group), SOURCE, 0, 0, at_ms, at_ms, at_ms, at_ms, group, group, "", group),
            *("10.255.0.1", f"127.0.0.1:9092-10.255.0.1:{number % 60_000}-0", "apache-kafka-java/4.1.2", 4, 0, 1),
        )

    def _begin_rollout(self, batch: Batch, at_ms: float, number: int) -> None:
        if any(number == other for _, other in self._rejoining):
            return
        for member in range(len(self.groups[number])):
            self._add(batch, Kind.HEARTBEAT, at_ms, number, member, error_code=27)
        self._rejoining.append((at_ms + REJOINED_AFTER_MS, number))

    def _join(self, batch: Batch, number: int, at_ms: float) -> None:
        names = [entry[2] for entry in self.groups[number]]
        generation = self.generations[number]
        for member in range(len(names)):
            detail = {
                "session_timeout_ms": self.session_ms,
                "rebalance_timeout_ms": 300_000,
                "protocol_type": "consumer",
                "protocols": [["range", "one"]],
                "reason": "",
                "assigned_member_id": names[member],
                "leader": names[0],
                "protocol_name": "range",
                "members": [] if member else [[name, ""] for name in names],
                "skip_assignment": False,
            }
            self._add(batch, Kind.JOIN, at_ms, number, member, detail=detail, generation=generation)
        for member in range(len(names)):
            assigned = [] if member else [[name, [["orders", [place]]]] for place, name in enumerate(names)]
            detail = {"protocol_name": "range", "assignments": assigned, "assignment": [["orders", [member]]]}
            self._add(batch, Kind.SYNC, at_ms + 4, number, member, detail=detail, generation=generation)

    def _add(
        self,
        batch: Batch,
        kind: Kind,
        at_ms: float,
        number: int,
        member: int,
        *,
        detail: dict[str, Any] | None = None,
        error_code: int = 0,
        generation: int = 0,
    ) -> None:
        shard, group, member_id, client_id, host, connection = self.groups[number][member]
        fetch = kind == Kind.FETCH
        event = Event(
            *(int(kind), shard, SOURCE, 0, 0, at_ms + 1, at_ms, at_ms + 0.5, at_ms + 0.7),
            *("" if fetch else group, "" if fetch else member_id, "", client_id, host),
            *(f"{connection}-f" if fetch else connection, "apache-kafka-java/4.1.2", 4, error_code),
            *(-1 if fetch else generation or self.generations[number], detail),
        )
        self._place(batch, event)

    def _place(self, batch: Batch, event: Event) -> None:
        start, self._position = self._position, self._position + LINE_BYTES
        batch.setdefault(lane_of(event.shard), []).append(event._replace(start=start, end=self._position))

    def _close(self, batch: Batch, at_ms: float) -> None:
        """A tick in every lane: all before it has been sent."""
        signs = {"last_line_at_ms": at_ms, "first_line_at_ms": at_ms}
        for lane in range(DEFAULT_LANES):
            events = batch.setdefault(lane, [])
            ticked = tick(SOURCE, self._ticked, self._position, at_ms + 1, len(events), len(events), {}, at_ms, signs)
            events.append(ticked)
        self._ticked = self._position
