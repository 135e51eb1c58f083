"""Batches of events as they travel through `kardia.events`: msgpack, one array per event, one batch per record.

A batch holds events of one lane, some of them folded where many are quiet (`ingest.wire.folded_batch`). It must not
know about Kafka clients, files or clocks. The order of the fields is that of `kardia.events.Event`; a reader of an
older version refuses a batch whose header names a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from ingest.errors import BatchError
from ingest.quiet_requests import Numbers
from ingest.wire import folded_batch
from ingest.wire.folded_batch import Batch, Outgoing, is_folded
from kardia.events import ALL_SHARDS, FORMAT_VERSION, Event, Kind
from kardia.stretches import ARRIVED, BYTES, DECIDED, END, HANDLED, LOGGED, START

FORMAT_HEADER = "kardia-format"
CLUSTER_HEADER = "kardia-cluster"
FORMAT = "msgpack/1"
"""Of a plain batch, which readers of all versions know."""
FOLDED = f"msgpack/{FORMAT_VERSION}"
"""Of a folded one."""


def format_of(data: bytes) -> str:
    """Format of a batch, for its header."""
    return FOLDED if is_folded(data) else FORMAT


MAX_EVENTS = 1_000
"""Events of one record; the copies of its last line may be more (`ingest.router.MAX_SHARDS`)."""

MAX_BYTES = 512 * 1024
"""Bytes of one record: half of the smallest `max.message.bytes` in common use, so that a record always fits."""

MAX_FOLDED_EVENTS = 3_000
"""Events of one folded record: a job bounds its batches by records, and a folded event takes less memory than a third
of one that is not."""

FOLDS = 2
"""Events are sent folded where that makes so many times fewer of them at least."""

MAX_POSITION = 2**43
"""Highest position: a file of 8 TiB, a partition of 8.8 million million records. With the shard it is one number."""

MAX_AT_MS = 7_258_118_400_000.0
"""Highest instant: the year 2200, beyond which no stamp is believed either (`ingest.stamps`)."""

MAX_PARTITIONS = 2**20
"""Partitions of the offsets topic: a million; Kafka's default is 50."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


_ENCODING_ERRORS = (OverflowError, TypeError, ValueError, RecursionError, msgspec.EncodeError)


def encode_batch(events: Sequence[Event]) -> bytes:
    """Bytes of one batch. Bounds are the business of `batches`.

    An event that cannot be encoded (a number beyond 64 bits, half of a surrogate pair) is a REJECTED one in its place:
    whoever reads on from its position would meet it again and again.
    """
    try:
        return _encoder.encode(events)
    except _ENCODING_ERRORS:
        return _encoder.encode([_encodable(event) for event in events])


def _encodable(event: Event) -> Event:
    try:
        _encoder.encode(event)
    except _ENCODING_ERRORS as error:
        detail = {
            "reason": "not_an_event",
            "excerpt": repr(event.group_id)[:200],
            "expected": f"numbers of 64 bits and text that UTF-8 has: {error}"[:400],
        }
        at = float(event.logged_at_ms)
        start, end = event.start, event.end
        return Event(int(Kind.REJECTED), ALL_SHARDS, event.source, start, end, at, at, at, at, detail=detail)
    return event


def decode_batch(data: bytes) -> list[Event]:
    """Events of one batch, folded or not, one by one; raises `BatchError` for anything that is not one."""
    return decode_folded(data).unfolded()


def decode_folded(data: bytes) -> Batch:
    """What a batch holds, with stretches where it is folded; raises `BatchError` for anything that is not one."""
    try:
        batch = folded_batch.decode(data, _are_possible) if is_folded(data) else Batch(_decoder.decode(data), [])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as error:
        raise _no_batch(data, str(error)) from None
    for _, shard, _, start, end, logged_at, arrived_at, handled_at, decided_at, *_ in batch.events:
        if not (0 <= start <= end <= MAX_POSITION and ALL_SHARDS <= shard < MAX_PARTITIONS):
            raise _no_batch(data, f"bytes {start} to {end} for shard {shard} are no position")
        # A clock that went beyond would never come back. No number, and infinities that cancel out, compare as false.
        if not (-1 <= logged_at <= MAX_AT_MS and -MAX_AT_MS < arrived_at + handled_at + decided_at < 4 * MAX_AT_MS):
            raise _no_batch(data, f"{logged_at}, {arrived_at}, {handled_at}, {decided_at} are no instants of a log")
    if any(not 0 <= stretch.head.shard < MAX_PARTITIONS for stretch in batch.stretches):
        raise _no_batch(data, "requests of no shard")
    return batch


def _are_possible(rows: Numbers) -> bool:
    """The same of the numbers of folded requests."""
    starts, ends, logged = rows[:, START], rows[:, END], rows[:, LOGGED]
    others = rows[:, ARRIVED] + rows[:, HANDLED] + rows[:, DECIDED]
    positions = (starts >= 0) & (starts <= ends) & (ends <= MAX_POSITION)
    instants = (logged >= -1) & (logged <= MAX_AT_MS) & (others > -MAX_AT_MS) & (others < 4 * MAX_AT_MS)
    return bool((positions & instants & (rows[:, BYTES] >= 0)).all())


def _no_batch(data: bytes, why: str) -> BatchError:
    return BatchError(
        f"a record is not a batch of events: {why}",
        f"{len(data)} bytes beginning with {data[:16].hex()}",
        f"the format {FORMAT} that `encode_batch` writes",
        "check that only collectors of this version or older write to the topic; the record is skipped",
    )


def check_format(header: bytes | None) -> None:
    """Refuse the format header of a newer or foreign writer, and of one from between two releases."""
    name, _, version = (header or b"").decode("latin-1").partition("/")
    if (name, version) == ("msgpack", "2"):
        raise BatchError(
            f"a record announces the format {header!r}, which folded requests in another way and was in no release",
            f"header {FORMAT_HEADER}",
            f"{FORMAT} or {FOLDED}",
            "let the job of that time read what its collectors have sent before it is updated; the record is skipped",
        )
    if name != "msgpack" or not version.isascii() or not version.isdigit() or int(version) > FORMAT_VERSION:
        raise BatchError(
            f"a record announces the format {header!r}",
            f"header {FORMAT_HEADER}",
            f"{FORMAT} or older",
            "update the readers of the topic before its collectors",
        )


def batches(events: Iterable[Event]) -> Iterator[tuple[bytes, int]]:
    """Split events into encoded batches within both bounds, in order: (bytes, number of events).

    The copies of one line (a FETCH goes to every shard of its client) stay together: between two records a reader may
    be stopped, and it goes on behind the position it has come to. A single event is bounded by its source (line length,
    record size), so one line that alone exceeds `MAX_BYTES` is still sent, alone.
    """
    pending: list[Event] = []
    for event in events:
        if len(pending) >= MAX_EVENTS and not _same_line(pending[-1], event):
            yield from _halves(pending)
            pending = []
        pending.append(event)
    if pending:
        yield from _halves(pending)


def folded_batches(outgoing: Outgoing) -> Iterator[tuple[bytes, int]]:
    """The same of events and of quiet requests among them, all of one range of positions: each record holds all there
    is up to a position, so that a reader that stopped between two goes on behind the first."""
    events, rows = outgoing
    total = len(events) + len(rows.senders)
    if total < FOLDS * (len(events) + len(rows.heads)):
        yield from batches(sorted([*events, *rows.events()], key=attrgetter("start", "shard")))
        return
    number = -(-total // MAX_FOLDED_EVENTS)
    for part in folded_batch.parts(outgoing, number) if number > 1 else [outgoing]:
        yield from _folded_halves(part)


def _folded_halves(outgoing: Outgoing) -> Iterator[tuple[bytes, int]]:
    events, rows = outgoing
    if not len(rows.senders):
        yield from batches(events)
        return
    try:
        data = folded_batch.encode(events, rows)
    except _ENCODING_ERRORS:
        data = folded_batch.encode([_encodable(event) for event in events], rows)
    halves = folded_batch.parts(outgoing, 2) if len(data) > MAX_BYTES else []
    if len(halves) < 2:
        yield data, len(events) + len(rows.senders)
        return
    for half in halves:
        yield from _folded_halves(half)


def _same_line(event: Event, other: Event) -> bool:
    return event.start == other.start and event.source == other.source


def _halves(events: list[Event]) -> Iterator[tuple[bytes, int]]:
    data = encode_batch(events)
    middle = _cut(events) if len(data) > MAX_BYTES else 0
    if middle == 0:
        yield data, len(events)
        return
    yield from _halves(events[:middle])
    yield from _halves(events[middle:])


def _cut(events: list[Event]) -> int:
    """Where to cut: between two lines, as near to the middle as there is such a place; 0 if there is none."""
    middle = len(events) // 2
    places = (at for at in range(1, len(events)) if not _same_line(events[at - 1], events[at]))
    return min(places, key=lambda at: abs(at - middle), default=0)
