"""Batches whose quiet requests travel folded: who sent them, once, and their numbers in columns of whole numbers.

A folded batch says exactly the events of a plain one: `ingest.wire.batches.decode_batch` gives them back one by one, in
the order of their positions, so that every reader recognises a repeat by its position, however the requests were cut
when they were sent first. It must not know about Kafka clients, files or clocks.

Requests stand in the order of the log, in which most differences are small, and a column is written byte by byte: first
the lowest bytes of all its numbers, then the next, up to the highest that any of them needs. So the bytes that are
nearly always the same stand together, and compress to nothing.

Instants are doubles between 2004 and 2039 (2**40 to 2**41 ms), so that they are whole multiples of 2**-12 ms, and
stamps are whole milliseconds. What is not (another year, a negative time) is sent as doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ingest.quiet_requests import Numbers, Places, Rows
from kardia.events import Event, Kind
from kardia.stretches import ARRIVED, BYTES, DECIDED, END, HANDLED, LOGGED, START, WIDTH, Stretch

UNIT = 4096
"""Parts of a millisecond in which instants are written."""

QUIET = frozenset((int(Kind.HEARTBEAT), int(Kind.FETCH)))
"""Kinds that are folded."""

MAX_ROWS = 1 << 20
"""Requests of one batch: 512 KiB hold a hundredth of it; what claims more is no batch."""

_NUMBERS = 8
_START, _GROUP_ID = Event._fields.index("start"), Event._fields.index("group_id")
_NOWHERE = (0,) * (_GROUP_ID - _START)
_AS_DOUBLES = 0
"""In place of the bytes of a number: all numbers of the batch are as they are."""


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
        """Lowest start and highest end of what each source logged; a tick stands where it ends."""
        reach: dict[str, tuple[float, float]] = {}
        for event in self.events:
            if event.kind <= Kind.TICK:
                start = event.end if event.kind == Kind.TICK else event.start
                low, high = reach.get(event.source, (start, event.end))
                reach[event.source] = min(low, start), max(high, event.end)
        for stretch in self.stretches:
            first, last = stretch.numbers[START], stretch.numbers[END - WIDTH]
            low, high = reach.get(stretch.head.source, (first, last))
            reach[stretch.head.source] = min(low, first), max(high, last)
        return reach


class Outgoing(NamedTuple):
    """What is to become records: single events in the order of their positions, and quiet requests among them."""

    events: list[Event]
    rows: Rows


class Body(msgspec.Struct):
    """A folded batch as it travels: a map, where a plain batch is an array."""

    events: list[Event]
    heads: list[Event]
    """Who sent the requests, how. Events whose position and instants are 0 and that have no detail: these are among
    the numbers."""
    start: int
    """Position of the first request."""
    logged_at_ms: int
    columns: list[tuple[int, bytes]]
    """(bytes of a number, all numbers): the number of the head; from the end of the request before to the start;
    length; from the stamp before to this one, in ms; times to the handling, from there to the decision, from there to
    the stamp; sizes."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Body)


def is_folded(data: bytes) -> bool:
    """Whether a batch is one of these, by its first byte: that of a map."""
    return data[:1] != b"" and data[0] & 0xF0 == 0x80


# --- encode ----------------------------------------------------------------------------------------------------------


def encode(events: Sequence[Event], rows: Rows) -> bytes:
    """Bytes of a folded batch, which has at least one request. Raises what the encoder raises for events that cannot
    be encoded."""
    heads: list[Any] = [(*head[:_START], *_NOWHERE, *head[_GROUP_ID:-1]) for head in rows.heads]
    return _encoder.encode(Body(list(events), heads, *_columns(rows)))


def _columns(rows: Rows) -> tuple[int, int, list[tuple[int, bytes]]]:
    instants = rows.numbers[:, LOGGED : DECIDED + 1] * UNIT
    whole = np.rint(instants).astype(np.int64)
    logged, arrived, handled, decided = whole.T
    starts, ends, sizes = rows.numbers[:, (START, END, BYTES)].astype(np.int64).T
    stamps = logged // UNIT
    until_handled, until_decided = handled - arrived, decided - handled
    if (
        (whole != instants).any()
        or (stamps * UNIT != logged).any()
        or min(map(np.min, (until_handled, until_decided, sizes))) < 0
    ):
        return 0, 0, [_bytewise(rows.senders), (_AS_DOUBLES, rows.numbers.tobytes())]
    columns = (
        *(rows.senders, _zigzag(starts - np.concatenate((starts[:1], ends[:-1]))), ends - starts),
        *(_zigzag(np.diff(stamps, prepend=stamps[0])), until_handled, until_decided, _zigzag(logged - decided), sizes),
    )
    return int(starts[0]), int(stamps[0]), list(map(_bytewise, columns))


def _zigzag(values: Places) -> Places:
    return (values << 1) ^ (values >> 63)


def _bytewise(column: Places) -> tuple[int, bytes]:
    width = max(1, (int(column.max()).bit_length() + 7) // 8)
    each = column.astype("<i8").view(np.uint8).reshape(-1, 8)
    return width, each.T[:width].tobytes()


# --- decode ----------------------------------------------------------------------------------------------------------


def decode(data: bytes, are_possible: Callable[[Numbers], bool]) -> Batch:
    """A batch of these bytes, whose numbers must be possible. Raises `msgspec.DecodeError` or `ValueError`."""
    body = _decoder.decode(data)
    if not body.columns:
        raise ValueError("a folded batch without requests")
    senders = _column(body.columns[0], _count(body.columns[0]))
    if senders.max() >= len(body.heads) or np.bincount(senders).min() < 1:
        raise ValueError(f"requests of others than of {len(body.heads)} heads")
    if any(head.kind not in QUIET or head.error_code != 0 for head in body.heads):
        raise ValueError("requests that are not quiet")
    numbers = _numbers(body, len(senders))
    if not are_possible(numbers):
        raise ValueError("numbers that are no positions, or no instants of a log")
    starts = numbers[:, START]
    steps = np.diff(starts)
    if (steps < 0).any() or ((steps == 0).any() and len(set(zip(starts, senders, strict=True))) < len(senders)):
        raise ValueError("requests that are not in the order of their positions, or twice at one")
    return Batch(body.events, Rows(body.heads, senders, numbers).stretches())


def _count(column: tuple[int, bytes]) -> int:
    width, data = column
    count = len(data) // max(1, width)
    if not 1 <= count <= MAX_ROWS:
        raise ValueError(f"{count} requests")
    return count


def _column(column: tuple[int, bytes], count: int) -> Places:
    width, data = column
    if not 1 <= width <= 8 or len(data) != width * count:
        raise ValueError("columns of different lengths")
    each = np.zeros((count, 8), np.uint8)
    each[:, :width] = np.frombuffer(data, np.uint8).reshape(width, count).T
    values: Places = each.view("<i8")[:, 0]
    if values.min() < 0:
        raise ValueError("numbers of more than 63 bits")
    return values


def _numbers(body: Body, count: int) -> Numbers:
    if body.columns[1:] and body.columns[1][0] == _AS_DOUBLES:
        return np.frombuffer(body.columns[1][1], np.float64).reshape(count, WIDTH)
    if len(body.columns) != _NUMBERS:
        raise ValueError(f"{len(body.columns)} columns")
    _, gaps, lengths, stamps, until_handled, until_decided, until_logged, sizes = (
        _column(column, count) for column in body.columns
    )
    ends = body.start + np.cumsum(_zigzagged(gaps) + lengths)
    logged = (body.logged_at_ms + np.cumsum(_zigzagged(stamps))) * UNIT
    decided = logged - _zigzagged(until_logged)
    handled = decided - until_decided
    numbers = np.empty((count, WIDTH))
    numbers[:, START] = ends - lengths
    numbers[:, END] = ends
    for field, instants in ((LOGGED, logged), (ARRIVED, handled - until_handled), (HANDLED, handled)):
        numbers[:, field] = instants / UNIT
    numbers[:, DECIDED] = decided / UNIT
    numbers[:, BYTES] = sizes
    return numbers


def _zigzagged(values: Places) -> Places:
    return (values >> 1) ^ -(values & 1)


# --- cut -------------------------------------------------------------------------------------------------------------


def parts(outgoing: Outgoing, number: int) -> list[Outgoing]:
    """The same in so many records of about the same size, or fewer, cut between lines: each holds what stands before a
    position and is not in the ones before. What cannot be cut is the only one."""
    events, rows = outgoing
    of_events = np.array([event.start for event in events], np.float64)
    of_rows = rows.numbers[:, START]
    starts = np.sort(np.concatenate((of_events, of_rows)), kind="stable")
    positions = np.unique(starts[np.arange(1, number) * len(starts) // number])
    positions = positions[positions > starts[0]]
    cuts_of_events, cuts_of_rows = (
        [0, *np.searchsorted(of_kind, positions).tolist(), len(of_kind)] for of_kind in (of_events, of_rows)
    )
    return [
        Outgoing(events[from_event:to_event], rows.part(slice(from_row, to_row)))
        for from_event, to_event, from_row, to_row in zip(
            cuts_of_events, cuts_of_events[1:], cuts_of_rows, cuts_of_rows[1:], strict=False
        )
    ]
