"""Events folded one by one, as the law wants them that compares folded with unfolded: `ingest` folds whole blocks."""

from __future__ import annotations

from array import array

from kardia.events import Event, Kind
from kardia.stretches import Stretch

_HEARTBEAT, _FETCH = int(Kind.HEARTBEAT), int(Kind.FETCH)


class Folder:
    """Folds the events of one source, or of several; `take` gives the stretches and begins anew."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        """Begin with nothing."""
        self._open: dict[tuple[object, ...], Stretch] = {}

    def fold(self, event: Event) -> bool:
        """Take an event if it is one of those that can be folded."""
        kind, detail = event[0], event[19]
        if event[17] != 0 or (kind != _FETCH and (kind != _HEARTBEAT or detail is not None)):
            return False
        key = (kind, *event[1:3], *event[9:17], event[18])
        size = 0 if detail is None else detail.get("bytes", 0)
        stretch = self._open.get(key)
        if stretch is None:
            stretch = self._open[key] = Stretch(event, array("d"))
        stretch.numbers.extend((*event[3:9], size))
        return True

    def take(self) -> list[Stretch]:
        """Stretches in the order of their first requests."""
        taken = list(self._open.values())
        self._open = {}
        return taken
