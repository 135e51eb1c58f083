"""Looks at the tables while a night lasts, as the notifier does: what stood in them, and when the feed was fresh.

What was told can be judged by that only: a row that says when it was written does not say when it could be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from demo.tables import Follower, Record
from demo.told import STALE_AFTER_MS, Danger, Span, dangers
from tests.night.told import SETTLED_MS

EVERY_MS = 1_000

MISSED_MS = 5_000
"""Where nothing was looked at for so long, nothing is known of the time between."""


class Looking:
    """Dangers and fresh times, by the instants at which they were seen."""

    def __init__(self, tables: Path) -> None:
        self._follower = Follower(tables, ["predictions"])
        self._rows: list[Record] = []
        self._known: set[tuple[Any, ...]] = set()
        """Rows that were seen; after a compaction they come again."""
        self._seen_at_ms: dict[int, int] = {}
        """Batch -> when it was first seen."""
        self._spans: list[Span] = []
        self._looked_at_ms = 0
        self._asleep_at_ms = 0
        self._stale = True

    def look(self, now_ms: int, notifier_awake: Callable[[], bool]) -> None:
        """Look, if it is time."""
        if now_ms - self._looked_at_ms < EVERY_MS:
            return
        for row in self._follower.look()["predictions"]:
            values = tuple(row.values())
            if values not in self._known:
                self._known.add(values)
                self._rows.append(row)
                self._seen_at_ms.setdefault(row["batch_id"], now_ms)
        self.note(now_ms, now_ms - self._follower.complete_to_ms, notifier_awake=notifier_awake())

    def note(self, now_ms: int, behind_ms: int, *, notifier_awake: bool) -> None:
        """The feed is so far behind. Once it is stale, it is fresh again when its age is half of the bound."""
        before_ms, self._looked_at_ms = self._looked_at_ms, now_ms
        if not notifier_awake:
            self._asleep_at_ms = now_ms
        # The notifier may have found it stale in a time that nobody looked at here.
        was_stale = self._stale or now_ms - before_ms >= MISSED_MS
        self._stale = behind_ms > (STALE_AFTER_MS / 2 if was_stale else STALE_AFTER_MS)
        if self._stale or now_ms - self._asleep_at_ms < SETTLED_MS:
            return
        if self._spans and self._spans[-1][1] == before_ms and now_ms - before_ms < MISSED_MS:
            self._spans[-1] = (self._spans[-1][0], now_ms)
        else:
            self._spans.append((now_ms, now_ms))

    @property
    def awake(self) -> Sequence[Span]:
        """When the feed was fresh and the notifier there."""
        return [span for span in self._spans if span[0] < span[1]]

    def dangers(self) -> list[Danger]:
        """What was worth an alert, and how long it was to be seen."""
        return dangers(self._rows, self._seen_at_ms)
