"""Rows that a follower has stepped from the topic and that the job has not written yet; beside `ahead`, of one engine.

Two step the same records here, in cuts of their own: the job, whose batches end at offsets that its checkpoint has, and
the follower, record by record. So each row is kept with the offset behind the record that told it, and a batch of the
job covers those at which it ends or before. Of the last batches in the tables the ends are kept as well, and what they
cover: a question that has begun over the tables of one of them is answered from these tables to its end. Put by the
thread that steps the lanes, seen by those that answer. Bounded by whoever puts: `rows` says how many wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from kardia.tables import Row
from live.ahead import Told

BATCHES = 8
"""Batches of the job whose ends are kept in any case: some seconds of batches back to back, longer than a question
takes."""

BATCHES_MAX = 60
"""And at most, while they hold few rows: pages of one history are asked for one after the other, by people."""

KEPT_ROWS = 20_000
"""Rows that the tables have, up to which more than `BATCHES` are kept: some 20 MB."""

Ends = Mapping[int, int]
"""Lane -> offset behind the last record of a batch of the job."""


class Piece(NamedTuple):
    """What one record told."""

    number: int
    lane: int
    end: int
    """The offset behind it."""
    rows: Mapping[str, Sequence[Row]]

    def is_covered(self, ends: Ends) -> bool:
        """Whether a batch that ends there has it."""
        return self.end <= ends.get(self.lane, 0)

    @property
    def size(self) -> int:
        """Rows."""
        return sum(map(len, self.rows.values()))


class Followed:
    """What is ahead of the tables, and up to where these are."""

    def __init__(self) -> None:
        """Nothing is followed yet."""
        self.wake: Callable[[], object] = lambda: None
        """Called after each step, by the thread that steps."""
        self._lock = Lock()
        self._pieces: deque[Piece] = deque()
        self._ends: dict[int, Ends] = {}
        """Batch of the job -> its ends, the last that were seen in the tables."""
        self._numbers = self._seen = self._unseen = 0
        self._waits_from: int | None = None
        """Number of the first piece that no batch in the tables covers."""
        self._is_shown = False
        self.rows = 0
        """Rows that no batch in the tables covers."""
        self.is_ready = False
        """Whether everything that the tables have was stepped as well. Until then rows that they have need not be told;
        from then on all must be: the view takes no more of theirs."""
        self.run = 0
        """Grows whenever it is stopped: a view that was begun before is of no use any more."""

    # --- by the thread that steps ------------------------------------------------------------------------------------

    def told(self, lane: int, end: int, rows: Mapping[str, Sequence[Row]]) -> None:
        """Rows of a record that the tables do not have."""
        with self._lock:
            self._numbers += 1
            piece = Piece(self._numbers, lane, end, rows)
            self._pieces.append(piece)
            self._unseen += piece.size
            if not self._is_covered(piece):
                self.rows += piece.size
                self._waits_from = self._waits_from or piece.number

    def wrote(self, batch_id: int, ends: Ends) -> None:
        """A batch of the job is in all tables."""
        with self._lock:
            self._ends[batch_id] = ends
            waiting = [piece for piece in self._pieces if not piece.is_covered(ends)]
            self.rows = sum(piece.size for piece in waiting)
            self._waits_from = waiting[0].number if waiting else None
            self._drop()
            while len(self._ends) > BATCHES and (len(self._ends) > BATCHES_MAX or self._kept() > KEPT_ROWS):
                del self._ends[min(self._ends)]
                self._drop()
        self.wake()

    def begin(self) -> None:
        """Everything that the tables have was stepped, and from here on all is told: it may be shown. Of the batches
        before the last one rows were passed over."""
        with self._lock:
            for old in sorted(self._ends)[:-1]:
                del self._ends[old]
            self._drop()
            self.is_ready = True
        self.wake()

    def stop(self) -> None:
        """Nothing is ahead any more."""
        with self._lock:
            self.run += 1
            self.is_ready = self._is_shown = False
            self._pieces.clear()
            self._ends.clear()
            self._numbers = self._seen = self._unseen = self.rows = 0
            self._waits_from = None
        self.wake()

    # --- by those that answer ----------------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Of the last piece."""
        return self._numbers

    @property
    def unseen(self) -> int:
        """How many rows were told since the view took the last ones."""
        return self._unseen

    def knows(self, batch_id: int) -> bool:
        """Whether everything is here that was told after a batch of the job."""
        with self._lock:
            return batch_id in self._ends

    def label(self, number: int) -> int:
        """The batch that whoever has everything up to a piece rests on: the last one in the tables, or the one after it
        if not all of that is in them. Whether the job will write it in that one nobody knows yet."""
        with self._lock:
            return max(self._ends, default=-1) + self._waits(number)

    def waits(self, number: int) -> bool:
        """Whether something up to a piece is not in the tables."""
        with self._lock:
            return self._waits(number)

    def after(self, number: int, batch_id: int | None) -> tuple[int, list[Piece]]:
        """(The last piece there is, those after one; of these only what a batch of the job does not cover, if it is
        given)."""
        with self._lock:
            self._unseen = 0
            ends: Ends = {} if batch_id is None else self._ends.get(batch_id, {})
            return self._numbers, [
                piece for piece in self._pieces if piece.number > number and not piece.is_covered(ends)
            ]

    def seen(self, number: int) -> None:
        """The view has everything up to a piece."""
        with self._lock:
            self._seen, self._is_shown = number, True
            self._drop()

    def of(self, name: str, up_to: int | None) -> tuple[int, list[Told]] | None:
        """(First batch of which nothing is to be read from the table, rows in the place of it and of all after it);
        None: the table alone is to be read. `up_to`: the batch that the question rests on, if it does on one."""
        with self._lock:
            if not self._is_shown or not self._ends:
                return None
            last = max(self._ends)
            base = last if up_to is None else min(up_to - 1, last)
            if base not in self._ends:
                return None
            ends = self._ends[base]
            rows = [
                row
                for piece in self._pieces
                if name in piece.rows and not piece.is_covered(ends)
                for row in piece.rows[name]
            ]
        return (base + 1, [Told(0, base + 1, {name: rows})]) if rows else None

    def _kept(self) -> int:
        """Rows that the tables have."""
        return sum(piece.size for piece in self._pieces) - self.rows

    def _is_covered(self, piece: Piece) -> bool:
        return piece.is_covered(self._ends[max(self._ends)]) if self._ends else False

    def _waits(self, number: int) -> bool:
        return self._waits_from is not None and self._waits_from <= number

    def _drop(self) -> None:
        """What the view has, and every batch that is kept, is needed no longer."""
        if not self._ends or (self.is_ready and not self._is_shown):
            return
        ends = self._ends[min(self._ends)]
        seen = self._seen if self._is_shown else self._numbers
        self._pieces = deque(piece for piece in self._pieces if piece.number > seen or not piece.is_covered(ends))
