"""Batches whose quiet requests travel folded: who sent them, once, and their numbers in columns of whole numbers.

A folded batch says exactly the events of a plain one: `ingest.wire.decode_batch` gives them back one by one, in the
order of their positions, so that every reader recognises a repeat by its position, however the stretches were cut when
it was sent first. It must not know about Kafka clients, files or clocks.

Instants are doubles between 2004 and 2039 (2**40 to 2**41 ms), so that they are whole multiples of 2**-12 ms. What is
not (another year, a negative time) is sent as doubles.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kardia.events import Event, Kind
from kardia.stretches import ARRIVED, BYTES, DECIDED, END, HANDLED, LOGGED, START, WIDTH, Stretch

UNIT = 4096.0
"""Parts of a millisecond in which instants are written."""

QUIET = frozenset((int(Kind.HEARTBEAT), int(Kind.FETCH)))
"""Kinds that are folded."""

MAX_ROWS = 1 << 20
"""Requests of one batch: 512 KiB hold a hundredth of it; what claims more is no batch."""

_NUMBERS = 7
_ROW_BYTES = 8 * WIDTH
_AS_DOUBLES = 0
"""In place of the width of a column: all numbers of the batch follow as they are."""

Matrix = np.ndarray[Any, np.dtype[np.float64]]
Whole = np.ndarray[Any, np.dtype[np.int64]]


class Batch(NamedTuple):
    """What a record holds: single events and stretches of the same range of positions."""

    events: list[Event]
    stretches: list[Stretch]

    def unfolded(self) -> list[Event]:
        """All events, in the order of their positions if any were folded."""
        if not self.stretches:
            return self.events
        found = [*self.events, *(event for stretch in self.stretches for event in stretch.events())]
        return sorted(found, key=lambda event: (event.start, event.shard))

    def size(self) -> int:
        """How many events it says."""
        return len(self.events) + sum(map(len, self.stretches))

    def logged_to(self) -> float:
        """Highest stamp, -1 without any."""
        return max(
            *(max(stretch.column(LOGGED)) for stretch in self.stretches),
            *(event.logged_at_ms for event in self.events),
            *(-1.0, -1.0),
        )

    def reach(self) -> dict[str, tuple[float, float]]:
        """Lowest start and highest end of what each source logged."""
        reach: dict[str, tuple[float, float]] = {}
        for event in self.events:
            if event.kind < Kind.TICK:
                low, high = reach.get(event.source, (event.start, event.end))
                reach[event.source] = min(low, event.start), max(high, event.end)
        for stretch in self.stretches:
            first, last = stretch.numbers[START], stretch.numbers[END - WIDTH]
            low, high = reach.get(stretch.head.source, (first, last))
            reach[stretch.head.source] = min(low, first), max(high, last)
        return reach


class Body(msgspec.Struct):
    """A folded batch as it travels: a map, where a plain batch is an array."""

    events: list[Event]
    heads: list[Event]
    counts: list[int]
    """Requests of each stretch."""
    columns: list[tuple[int, bytes]]
    """(bytes of a number, numbers): starts, lengths, stamps, total times, times to the handling and from there to the
    decision, sizes. Starts and stamps are differences within a stretch."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Body)


def is_folded(data: bytes) -> bool:
    """Whether a batch is one of these, by its first byte: that of a map."""
    return data[:1] != b"" and data[0] & 0xF0 == 0x80


def encode(events: Sequence[Event], stretches: Sequence[Stretch]) -> bytes:
    """Bytes of a folded batch. Raises what the encoder raises for events that cannot be encoded."""
    heads = [stretch.head for stretch in stretches]
    counts = [len(stretch) for stretch in stretches]
    data = b"".join([stretch.numbers.tobytes() for stretch in stretches])
    return _encoder.encode(Body(list(events), heads, counts, _columns(data, counts)))


def _columns(data: bytes, counts: list[int]) -> list[tuple[int, bytes]]:
    rows: Matrix = np.frombuffer(data, np.float64).reshape(-1, WIDTH)
    instants = rows[:, LOGGED : DECIDED + 1] * UNIT
    whole = np.rint(instants).astype(np.int64)
    logged, arrived, handled, decided = whole.T
    starts, sizes = rows[:, START].astype(np.int64), rows[:, BYTES].astype(np.int64)
    columns = [
        *(_differences(starts, counts), rows[:, END].astype(np.int64) - starts, _zigzag(_differences(logged, counts))),
        *(logged - arrived, handled - arrived, decided - handled, sizes),
    ]
    if (whole != instants).any() or any(column.min() < 0 for column in columns):
        return [(_AS_DOUBLES, data)]
    return [_narrow(column) for column in columns]


def _differences(values: Whole, counts: list[int]) -> Whole:
    """From one value to the next within each stretch; the first as it is."""
    differences = np.diff(values, prepend=0)
    firsts = np.cumsum([0, *counts[:-1]])
    differences[firsts] = values[firsts]
    return differences


def _summed(differences: Whole, counts: list[int]) -> Whole:
    """What `_differences` was made of."""
    sums: Whole = np.cumsum(differences)
    firsts = np.cumsum([0, *counts[:-1]])
    before: Whole = np.repeat(sums[firsts] - differences[firsts], counts)
    return sums - before


def _zigzag(values: Whole) -> Whole:
    return (values << 1) ^ (values >> 63)


def _narrow(column: Whole) -> tuple[int, bytes]:
    highest = int(column.max())
    width = next(width for width in (1, 2, 4, 8) if highest < 1 << (8 * width - (width == 8)))
    return width, column.astype(f"<u{width}").tobytes()


def decode(data: bytes, are_possible: Callable[[Matrix], bool]) -> Batch:
    """A batch of these bytes, whose numbers must be possible. Raises `msgspec.DecodeError` or `ValueError`."""
    body = _decoder.decode(data)
    counts, total = body.counts, sum(body.counts)
    if len(body.heads) != len(counts) or min(counts, default=1) < 1 or total > MAX_ROWS:
        raise ValueError(f"{len(body.heads)} stretches of {counts[:10]} requests")
    if any(head.kind not in QUIET or head.error_code != 0 for head in body.heads):
        raise ValueError("stretches of requests that are not quiet")
    rows = _rows(body.columns, counts, total)
    if not are_possible(rows):
        raise ValueError("numbers that are no positions, or no instants of a log")
    ends = np.cumsum(counts, dtype=np.int64)
    goes_back = np.diff(rows[:, START]) <= 0
    goes_back[ends[:-1] - 1] = False  # from one stretch to the next
    if goes_back.any():
        raise ValueError("a stretch that is not in the order of its positions")
    numbers = array("d", rows.tobytes())
    cuts = [0, *(ends * WIDTH).tolist()]
    stretches = [
        Stretch(head, numbers[begin:end]) for head, begin, end in zip(body.heads, cuts[:-1], cuts[1:], strict=True)
    ]
    return Batch(body.events, stretches)


def _rows(columns: list[tuple[int, bytes]], counts: list[int], total: int) -> Matrix:
    if not total:
        return np.empty((0, WIDTH))
    if [width for width, _ in columns] == [_AS_DOUBLES]:
        return np.frombuffer(columns[0][1], np.float64).reshape(total, WIDTH)
    if len(columns) != _NUMBERS or any(
        width not in (1, 2, 4, 8) or len(data) != width * total for width, data in columns
    ):
        raise ValueError("columns of other lengths than the stretches")
    numbers = [np.frombuffer(data, f"<u{width}").astype(np.int64) for width, data in columns]
    starts, lengths, stamps, totals, until_handled, until_decided, sizes = numbers
    starts = _summed(starts, counts)
    logged = _summed((stamps >> 1) ^ -(stamps & 1), counts)
    arrived = logged - totals
    handled = arrived + until_handled
    rows = np.empty((total, WIDTH))
    rows[:, START] = starts
    rows[:, END] = starts + lengths
    rows[:, LOGGED] = logged / UNIT
    rows[:, ARRIVED] = arrived / UNIT
    rows[:, HANDLED] = handled / UNIT
    rows[:, DECIDED] = (handled + until_decided) / UNIT
    rows[:, BYTES] = sizes
    return rows


def parts(batch: Batch, number: int) -> list[Batch]:
    """A batch in so many of about the same size, or fewer, cut between lines: each holds what stands before a position
    and is not in the ones before. One that cannot be cut is the only one."""
    data = b"".join([stretch.numbers.tobytes() for stretch in batch.stretches])
    of_folded = np.frombuffer(data, np.float64)[START::WIDTH]
    of_events = np.array([event.start for event in batch.events], np.float64)
    starts = np.unique(np.concatenate((of_events, of_folded)))
    positions = starts[np.unique(np.arange(1, number) * len(starts) // number)]
    positions = positions[positions > starts[0]]
    found = [Batch([], []) for _ in range(len(positions) + 1)]
    for event, part in zip(batch.events, np.searchsorted(positions, of_events, "right").tolist(), strict=True):
        found[part].events.append(event)
    counts = [len(stretch) for stretch in batch.stretches]
    which = np.repeat(np.arange(len(counts)), counts)
    part_of = np.searchsorted(positions, of_folded, "right")
    cuts = [0, *(np.flatnonzero((np.diff(part_of) != 0) | (np.diff(which) != 0)) + 1).tolist(), len(which)]
    for begin, end in pairwise(cuts):
        head = batch.stretches[which[begin]].head
        numbers = array("d", data[begin * _ROW_BYTES : end * _ROW_BYTES])
        found[part_of[begin]].stretches.append(Stretch(head, numbers))
    return found
