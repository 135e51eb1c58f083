"""What one target has not acknowledged yet, bounded, in a fair order. Of one alert only the latest refresh waits.

What was raised or resolved goes first, in its order; then refreshes of alerts that this target has not heard of yet,
because their raise was dropped; then all others. When it is full, refreshes give way, first the oldest of what was told
before; else what comes is dropped. So in a storm beyond the bound each round of refreshes tells others, until all were
told. What is dropped is counted by what it was; a resolve is repaired by the end that every message to Alertmanager
carries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, islice

from api.notify.lifecycle import ALERTS_MAX, Key, Notice


class Outbox:
    """Notices that wait. Every call but `notices` costs the same, however many wait, beside what `first` leaves out."""

    def __init__(self, notices: Iterable[Notice], limit: int) -> None:
        """`notices`: those of the last run, in their order."""
        self._limit = limit
        self._urgent: dict[str, Notice] = {}
        """Raised and resolved, by id."""
        self._untold: dict[Key, Notice] = {}
        self._again: dict[Key, Notice] = {}
        """Refreshes, of alerts that the target has heard nothing of, and of others."""
        self._told: dict[Key, None] = {}
        """Alerts that the target has heard of, the latest last."""
        self.dropped: dict[str, int] = {}
        for notice in notices:
            self.put(notice)

    def __len__(self) -> int:
        return len(self._urgent) + len(self._untold) + len(self._again)

    @property
    def notices(self) -> list[Notice]:
        """All that wait, in the order in which they are sent."""
        return list(self._in_order())

    def put(self, notice: Notice) -> None:
        """Take a notice in."""
        key = notice.finding.key
        self._untold.pop(key, None)
        self._again.pop(key, None)
        if len(self) >= self._limit:
            if self._again:
                self._drop(self._again.pop(next(iter(self._again))))
            elif self._untold and notice.what != "refreshed":
                self._drop(self._untold.popitem()[1])
            else:
                self._drop(notice)
                return
        if notice.what != "refreshed":
            self._urgent[notice.id] = notice
        elif key in self._told:
            self._again[key] = notice
        else:
            self._untold[key] = notice

    def first(self, count: int, but: Collection[Key] = ()) -> list[Notice]:
        """The next notices to send, but for some alerts."""
        return list(islice((notice for notice in self._in_order() if notice.finding.key not in but), count))

    def done(self, sent: Iterable[Notice]) -> None:
        """Take out what has been delivered, or refused for good."""
        for notice in sent:
            key = notice.finding.key
            self._urgent.pop(notice.id, None)
            for waiting in (self._untold, self._again):
                if (other := waiting.get(key)) is not None and other.id == notice.id:
                    del waiting[key]
            self._told.pop(key, None)
            if notice.what != "resolved":
                self._told[key] = None
                if len(self._told) > ALERTS_MAX:
                    del self._told[next(iter(self._told))]

    def _in_order(self) -> Iterable[Notice]:
        return chain(self._urgent.values(), self._untold.values(), self._again.values())

    def _drop(self, notice: Notice) -> None:
        self.dropped[notice.what] = self.dropped.get(notice.what, 0) + 1
