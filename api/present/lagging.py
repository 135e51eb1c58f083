"""Lag as it stands: of each group the latest row of each partition, and how far lag is known. Reads no clock.

Kept apart from groups and members: there are groups that commit and have no members, and rows of lag of groups whose
members are forgotten. A view that is shown does not change; a next one shares what a batch did not touch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

LAGS_MAX = 300_000
"""Partitions of groups that are held, some 400 bytes each; beyond it those of groups that changed longest ago go."""

OVER = ("gone", "forgotten")
"""States after which nothing is held of a partition."""

Partition = tuple[str, int]


class LagView:
    """Lag of one group."""

    __slots__ = ("_verdicts", "group_id", "rows", "shard")

    def __init__(self, group_id: str, shard: int, rows: dict[Partition, Any]) -> None:
        self.group_id, self.shard = group_id, shard
        self.rows = rows
        """Latest row by topic and partition."""
        self._verdicts: Counter[str | None] | None = None

    @property
    def verdicts(self) -> Counter[str | None]:
        """How many partitions have which verdict; None: lag is not known. Counted once: it is asked of all groups many
        times a second, and a view that is shown does not change."""
        if self._verdicts is None:
            self._verdicts = Counter(None if row.lag is None else row.verdict for row in self.rows.values())
        return self._verdicts


class Lags:
    """Lag of all groups of one cluster."""

    def __init__(self) -> None:
        self.groups: dict[str, LagView] = {}
        """The group changed longest ago first."""
        self._looked_ms: dict[int, int] = {}
        self._as_of_ms: dict[int, int] = {}
        self.count = 0
        self.forgotten = 0

    def copied_on_write(self) -> Lags:
        """The same, for a next batch to be folded into."""
        other = Lags()
        other.groups = self.groups.copy()
        other._looked_ms, other._as_of_ms = self._looked_ms.copy(), self._as_of_ms.copy()
        other.count, other.forgotten = self.count, self.forgotten
        return other

    @property
    def looked_ms(self) -> int | None:
        """The last look at the ends, in each lane; None where there was none."""
        return min(self._looked_ms.values(), default=None)

    @property
    def as_of_ms(self) -> int | None:
        """Up to then everything that changed is in the rows: the last look, or before it where a lane had more to write
        than it may."""
        return min(self._as_of_ms.values(), default=None)

    def fold(self, rows: Iterable[Any]) -> None:
        """Take rows in; of one partition in the order in which they were known."""
        own: set[str] = set()
        for row in rows:
            if row.state == "looked":
                lane = row.partition
                self._looked_ms[lane] = max(row.known_at_ms, self._looked_ms.get(lane, 0))
                self._as_of_ms[lane] = max(row.at_ms, self._as_of_ms.get(lane, 0))
                continue
            view = self.groups.pop(row.group_id, None)
            if view is None:
                view = LagView(row.group_id, row.shard, {})
            elif row.group_id not in own:
                view = LagView(row.group_id, row.shard, view.rows.copy())
            own.add(row.group_id)
            self._take(view, row)
            if view.rows:
                self.groups[row.group_id] = view
        while self.count > LAGS_MAX and len(self.groups) > 1:
            dropped = self.groups.pop(next(iter(self.groups)))
            self.count -= len(dropped.rows)
            self.forgotten += len(dropped.rows)

    def _take(self, view: LagView, row: Any) -> None:
        place = (row.topic, row.partition)
        before = view.rows.get(place)
        if before is not None and before.known_at_ms > row.known_at_ms:
            return
        if row.state not in OVER:
            view.rows[place] = row
            self.count += before is None
        elif before is not None:
            del view.rows[place]
            self.count -= 1
