"""What a store holds of a lane: a base, and the journal of the batches since, as they came. Pure; `processor` calls it.

A lane is a function of the records that came and of how they came, so state is written by what came: a batch adds its
own records to the journal, whatever the lane holds. A lane that is read back decodes the base and steps through the
journal; the rows are in the tables already, and are dropped. When the journal has grown beyond the base, or something
could not be applied, a new base takes the place of both: so they cost about the same, and the way back is bounded.

A store is a key-value store of which everything written in one batch is there, or nothing. The mark says what of it is
meant, and its token, drawn for each batch, whether a lane that a process still holds is the one that the store has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from spark_jobs.checkpoint import state_codec
from spark_jobs.errors import NotAppliedError
from spark_jobs.lane import Lane, Record

MIN_BYTES = 4 << 20
"""A journal may hold that much, however small its base: 24,000 events or so, replayed in a quarter of a second."""

GROWN = 0.5
"""A journal is full when it holds that many times the bytes of its base. A member is about 885 bytes of a base, an
event 175 of a journal: two or three events for each member. With twice as much and more a start of 100,000 members took
up to 28 s instead of 15, most of them for the journals; bases that come so often cost a microsecond an event."""

MAX_BYTES = 384 << 20
"""The journals of all lanes together hold no more, however large the bases: 2.3 million events or so, which a start
steps through again."""

MAX_STEPS = 2_000
"""Batches of a journal: each costs a part of a millisecond in its replay, however little came in it."""

HARD = 2
"""A full journal waits for its turn until it is that many times as long; then it is replaced in any case."""

OF_RECORD = 32
"""Bytes of a record beside its value."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])


class Mark(NamedTuple):
    """What of a store is meant."""

    version: int
    token: bytes
    pieces: int
    """Pieces of the base; 0: there is none, the journal begins with the lane."""
    steps: int
    """Steps of the journal."""


class Store(Protocol):
    """Where one lane is kept."""

    def mark(self) -> Mark | None:
        """Give the mark; None if the lane is new."""

    def piece(self, number: int) -> bytes | None:
        """Give a piece of the base."""

    def step(self, number: int) -> bytes | None:
        """Give a step of the journal."""

    def put_base(self, pieces: Sequence[bytes]) -> None:
        """Put a base in the place of all pieces and steps there are."""

    def put_step(self, number: int, step: bytes) -> None:
        """Put a step at the end of the journal."""

    def put_mark(self, mark: Mark) -> None:
        """Put the mark."""


class InMemory:
    """A store that ends with its process, for measurements and tests. `written`: bytes that were put."""

    def __init__(self) -> None:
        """Hold nothing."""
        self.pieces: dict[int, bytes] = {}
        self.steps: dict[int, bytes] = {}
        self.said: Mark | None = None
        self.written = 0

    def mark(self) -> Mark | None:
        """Give the mark; None if the lane is new."""
        return self.said

    def piece(self, number: int) -> bytes | None:
        """Give a piece of the base."""
        return self.pieces.get(number)

    def step(self, number: int) -> bytes | None:
        """Give a step of the journal."""
        return self.steps.get(number)

    def put_base(self, pieces: Sequence[bytes]) -> None:
        """Put a base in the place of all pieces and steps there are."""
        self.pieces, self.steps = dict(enumerate(pieces)), {}
        self.written += sum(map(len, pieces))

    def put_step(self, number: int, step: bytes) -> None:
        """Put a step at the end of the journal."""
        self.steps[number] = step
        self.written += len(step)

    def put_mark(self, mark: Mark) -> None:
        """Put the mark."""
        self.said = mark


@dataclass(slots=True)
class Kept:
    """A lane, and how large what the store has of it is, in bytes before they are compressed."""

    lane: Lane
    pieces: int = 0
    base_bytes: int = 0
    steps: int = 0
    journal_bytes: int = 0

    def is_full(self, records: Sequence[Record], min_bytes: int, times: int = 1, *, steps: int = MAX_STEPS) -> bool:
        """Whether a step more makes the journal longer than it may be, or so many `times` as long."""
        most = max(min_bytes, min(MAX_BYTES // self.lane.lanes, int(GROWN * self.base_bytes)))
        return self.journal_bytes + size_of(records) > times * most or self.steps >= times * steps


def size_of(records: Sequence[Record]) -> int:
    """About the bytes of records in a journal."""
    return sum(len(record.value or b"") + OF_RECORD for record in records)


def write(
    store: Store,
    kept: Kept,
    records: Sequence[Record],
    token: bytes,
    min_bytes: int,
    *,
    turn: bool = True,
    steps: int = MAX_STEPS,
) -> bool:
    """Keep a lane that has just taken these records; whether a base was written. `turn`: whether a full journal may be
    replaced now; where several lanes are written one after the other, not all bases should be in one batch. `steps`:
    how many the journal may have."""
    full = kept.is_full(records, min_bytes, steps=steps) and (
        turn or kept.is_full(records, min_bytes, HARD, steps=steps)
    )
    anew = full or kept.lane.was_careful
    if anew:
        rebase(store, kept, token)
        return True
    store.put_step(kept.steps, state_codec.pack(_encoder.encode(records)))
    kept.steps += 1
    kept.journal_bytes += size_of(records)
    store.put_mark(Mark(state_codec.VERSION, token, kept.pieces, kept.steps))
    return False


def rebase(store: Store, kept: Kept, token: bytes) -> None:
    """Put a lane as it is in the place of all that the store has of it."""
    base = kept.lane.save()
    pieces = state_codec.pieces_of(base)
    store.put_base(pieces)
    kept.pieces, kept.base_bytes, kept.steps, kept.journal_bytes = len(pieces), len(base), 0, 0
    store.put_mark(Mark(state_codec.VERSION, token, kept.pieces, kept.steps))


def read(store: Store, begin: Callable[[], Lane]) -> Kept:
    """The lane as the store has it; `begin` makes one that has read nothing. Another version and damage are refused.

    No step of a journal raised when it was taken. Where one does now, the observer is another one, a later version with
    a defect: that step is taken with care, as a new batch would be.
    """
    kept, mark = Kept(begin()), store.mark()
    if mark is None:
        return kept
    where = f"lane {kept.lane.lane}"
    state_codec.check_version(mark.version, where)
    base = b""
    if mark.pieces:
        base = state_codec.base_of([_there(store.piece(at), at, where) for at in range(mark.pieces)], where)
        kept.lane.load(base)
    kept.pieces, kept.base_bytes, kept.steps = mark.pieces, len(base), mark.steps
    begun = 0
    for at in range(mark.steps):
        records = _step(store, at, where)
        kept.journal_bytes += size_of(records)
        try:
            kept.lane.step(records)
        except NotAppliedError:
            kept.lane = begin()
            if base:
                kept.lane.load(base)
            for earlier in range(begun, at):
                kept.lane.step(_step(store, earlier, where))
            before = kept.lane.save()
            kept.lane.step(records, lambda before=before: before)  # type: ignore[misc]
            base, begun = kept.lane.save(), at + 1
    return kept


def _step(store: Store, number: int, where: str) -> list[Record]:
    plain = state_codec.unpack(_there(store.step(number), number, where), where)
    try:
        return _decoder.decode(plain)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise state_codec.damaged(str(error), where) from error


def _there(found: bytes | None, number: int, where: str) -> bytes:
    if found is None:
        raise state_codec.damaged(f"part {number} is missing", where)
    return found
