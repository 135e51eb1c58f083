"""Which row stands: of all rows with the same key the one with the highest `known_at_ms`, then the later batch.

Rows are never changed in place (`kardia.tables`), so this rule is all there is to a correction. The same class serves
the live view, where closed things are forgotten in the end, and a read of the files, where nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kardia.table_types import Table


def is_withdrawn(row: Any) -> bool:
    """Whether a row takes back what was said before: there is nothing of that key."""
    return bool(getattr(row, "withdrawn", None))


IS_CLOSED: dict[str, Callable[[Any], bool]] = {
    "members": lambda row: row.ended_at_ms is not None,
    "rebalances": lambda row: row.completed_at_ms is not None or is_withdrawn(row),
    "predictions": lambda row: row.outcome != "open",
}
"""When nothing more is expected of a life, a rebalance or a prediction; a correction may still come."""


class Standing:
    """The standing rows of one table. `closed_max` bounds how many closed ones are remembered; None keeps all."""

    def __init__(self, table: Table, closed_max: int | None = None) -> None:
        self._names = table.key
        self._is_closed = IS_CLOSED[table.name]
        self._closed_max = closed_max
        self._open: dict[tuple[Any, ...], Any] = {}
        self._closed: dict[tuple[Any, ...], Any] = {}

    def fold(self, row: Any) -> tuple[bool, Any]:
        """Take a row in. Returns whether it stands now, and the row that stood before it, or None."""
        key = tuple(getattr(row, name) for name in self._names)
        before = self._open.get(key) or self._closed.get(key)
        if before is not None and (before.known_at_ms, before.batch_id) > (row.known_at_ms, row.batch_id):
            return False, before
        if self._is_closed(row):
            self._open.pop(key, None)
            self._closed.pop(key, None)
            self._closed[key] = row
            if self._closed_max is not None and len(self._closed) > self._closed_max:
                del self._closed[next(iter(self._closed))]
        else:
            self._closed.pop(key, None)
            self._open[key] = row
        return True, before

    def rows(self) -> Iterator[Any]:
        """All standing rows, open ones first; none of what was taken back."""
        yield from self._open.values()
        yield from (row for row in self._closed.values() if not is_withdrawn(row))
