"""Rows that are known and not in the tables yet: put by the thread that steps the lanes, seen by those that answer.

A row is here from the step that told it until its batch is in the tables and the view has it. Bounded by the size of
a batch: the next one waits until the one before is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from kardia.tables import Row

Rows = dict[str, list[Row]]
"""Rows by table, as the lanes tell them."""


class Told(NamedTuple):
    """What one step told."""

    number: int
    batch_id: int
    rows: Rows


class Ahead:
    """What is ahead of the tables."""

    def __init__(self) -> None:
        """Nothing is; nobody may look at the tables yet either."""
        self.wake: Callable[[], object] = lambda: None
        """Called after each step that told something, by the thread that steps."""
        self._lock = Lock()
        self._told: deque[Told] = deque()
        self._numbers = 0
        self._seen = 0
        self._unseen = 0
        self._written = -1
        self.is_ready = False
        """Whether what was left by the run before is in the tables."""

    def begin(self, written: int) -> None:
        """The tables hold everything up to a batch, and may be read."""
        self._written, self.is_ready = written, True
        self.wake()

    @property
    def written(self) -> int:
        """The last batch that is in the tables."""
        return self._written

    @property
    def number(self) -> int:
        """Of the last step that told something."""
        return self._numbers

    @property
    def unseen(self) -> int:
        """How many rows were told since the view took the last ones."""
        return self._unseen

    def put(self, batch_id: int, rows: Rows) -> None:
        """Rows of a step of a batch that is not in the tables."""
        with self._lock:
            self._numbers += 1
            self._told.append(Told(self._numbers, batch_id, rows))
            self._unseen += sum(map(len, rows.values()))
        self.wake()

    def wrote(self, batch_id: int) -> None:
        """A batch is in the tables."""
        with self._lock:
            self._written = batch_id
            self._drop()

    def after(self, number: int, batch_id: int) -> tuple[int, list[Told]]:
        """(The last step there is, what was told after a step, of batches after one that was read from the tables)."""
        with self._lock:
            self._unseen = 0
            return self._numbers, [told for told in self._told if told.number > number and told.batch_id > batch_id]

    def seen(self, number: int) -> None:
        """The view has everything up to a step."""
        with self._lock:
            self._seen = number
            self._drop()

    def of(self, name: str, up_to: int | None = None) -> tuple[int, list[Told]] | None:  # noqa: ARG002  all is of it
        """(First batch that may not be in the tables, what was told of it and after it); None: all is in them."""
        with self._lock:
            waiting = [told for told in self._told if told.batch_id > self._written]
        return (waiting[0].batch_id, [told for told in waiting if name in told.rows]) if waiting else None

    def _drop(self) -> None:
        while self._told and self._told[0].batch_id <= self._written and self._told[0].number <= self._seen:
            self._told.popleft()
