"""Stretches of quiet requests that are held until the log of their broker is known to be complete up to them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import sub

from kardia.events import Event, Kind
from kardia.observe.deadlines.handling import AT_ONCE_MS
from kardia.stretches import DECIDED, HANDLED, WIDTH, Stretch


class Held:
    """Stretches that wait for the clock of their broker, as events of a queue do."""

    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        """Hold nothing."""
        self._by_broker: dict[str, list[Stretch]] = {}

    def add(self, broker: str, stretch: Stretch) -> bool:
        """Hold a stretch; refused if its requests took effect in another order than they were logged in, or heartbeats
        long before they were answered."""
        decided, handled = stretch.column(DECIDED).tolist(), stretch.column(HANDLED).tolist()
        if decided != sorted(decided):
            return False
        if stretch.head.kind == Kind.HEARTBEAT and max(map(sub, decided, handled)) > AT_ONCE_MS:
            return False
        self._by_broker.setdefault(broker, []).append(stretch)
        return True

    def first_at(self) -> float | None:
        """Earliest instant of what is held."""
        return min(
            (stretch.numbers[DECIDED] for stretches in self._by_broker.values() for stretch in stretches), default=None
        )

    def due(self, limits: Mapping[str, float]) -> list[tuple[str, Stretch]]:
        """Take what took effect up to the limit of its broker: (broker, stretch). The rest stays."""
        taken: list[tuple[str, Stretch]] = []
        for broker, limit in limits.items():
            rest: list[Stretch] = []
            for stretch in self._by_broker.get(broker, ()):
                decided = stretch.column(DECIDED)
                count = len(decided) if decided[-1] <= limit else bisect_right(decided, limit)
                if count == len(decided):
                    taken.append((broker, stretch))
                elif count == 0:
                    rest.append(stretch)
                else:
                    head, numbers = stretch.head, stretch.numbers
                    taken.append((broker, Stretch(head, numbers[: count * WIDTH])))
                    rest.append(Stretch(head, numbers[count * WIDTH :]))
            if rest:
                self._by_broker[broker] = rest
            else:
                self._by_broker.pop(broker, None)
        return taken

    def events(self) -> Iterator[tuple[str, Event]]:
        """Everything that is held, one by one: (broker, event)."""
        for broker, stretches in self._by_broker.items():
            for stretch in stretches:
                for event in stretch.events():
                    yield broker, event
