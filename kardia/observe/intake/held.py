"""Stretches of quiet requests that are held until the log of their broker is known to be complete up to them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import sub
from typing import Any

from kardia.events import Event, Kind
from kardia.observe.deadlines.handling import is_late
from kardia.stretches import ARRIVED, DECIDED, HANDLED, WIDTH, Stretch, sender_of

_HEARTBEAT = int(Kind.HEARTBEAT)


class Held:
    """Stretches that wait for the clock of their broker, as events of a queue do."""

    __slots__ = ("_by_broker", "_first_at", "_open")

    def __init__(self) -> None:
        """Hold nothing."""
        self._by_broker: dict[str, list[Stretch]] = {}
        self._first_at: float | None = None
        self._open: dict[tuple[Any, ...], Stretch] = {}
        """The last stretch of each sender that came since the clocks moved: what comes next makes it longer."""

    def add(self, broker: str, stretch: Stretch) -> bool:
        """Hold a stretch; refused if its requests took effect in another order than they were logged in, or heartbeats
        long before they were answered."""
        head, numbers = stretch.head, stretch.numbers
        decided = numbers[DECIDED::WIDTH].tolist()
        if decided != sorted(decided):
            return False
        if head.kind == _HEARTBEAT and _some_late(numbers, decided):
            return False
        sender = sender_of(head)
        before = self._open.get(sender)
        if before is not None and before.numbers[DECIDED - WIDTH] <= decided[0]:
            before.numbers.extend(numbers)
            return True
        own = self._open[sender] = Stretch(head, numbers[:])
        self._by_broker.setdefault(broker, []).append(own)
        self._note_first(decided[0])
        return True

    def _note_first(self, at: float) -> None:
        if self._first_at is None or at < self._first_at:
            self._first_at = at

    def first_at(self) -> float | None:
        """Earliest instant of what is held."""
        return self._first_at

    def due(self, limits: Mapping[str, float]) -> list[tuple[str, Stretch]]:
        """Take what took effect up to the limit of its broker: (broker, stretch). The rest stays."""
        self._open.clear()
        taken: list[tuple[str, Stretch]] = []
        for broker, limit in limits.items():
            rest: list[Stretch] = []
            for stretch in self._by_broker.get(broker, ()):
                numbers = stretch.numbers
                if numbers[DECIDED - WIDTH] <= limit:
                    taken.append((broker, stretch))
                elif numbers[DECIDED] > limit:
                    rest.append(stretch)
                else:
                    head, count = stretch.head, bisect_right(stretch.column(DECIDED), limit)
                    taken.append((broker, Stretch(head, numbers[: count * WIDTH])))
                    rest.append(Stretch(head, numbers[count * WIDTH :]))
            if rest:
                self._by_broker[broker] = rest
            else:
                self._by_broker.pop(broker, None)
        self._first_at = None
        for stretches in self._by_broker.values():
            self._note_first(min([stretch.numbers[DECIDED] for stretch in stretches]))
        return taken

    def events(self) -> Iterator[tuple[str, Event]]:
        """Everything that is held, one by one: (broker, event)."""
        for broker, stretches in self._by_broker.items():
            for stretch in stretches:
                for event in stretch.events():
                    yield broker, event


def _some_late(numbers: array[float], decided: list[float]) -> bool:
    """Whether one of the heartbeats was handled or answered late."""
    handled = numbers[HANDLED::WIDTH]
    taken_ms = max(map(sub, handled, numbers[ARRIVED::WIDTH]))
    return is_late(0.0, taken_ms, taken_ms + max(map(sub, decided, handled)))
