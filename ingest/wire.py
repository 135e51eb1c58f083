"""Batches of events as they travel through `kardia.events`: msgpack, one array per event, one batch per record.

A batch holds events of one lane. It must not know about Kafka clients, files or clocks. The order of the fields is
the order of `kardia.events.Event`; a reader of an older version refuses a batch whose header names a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ingest.errors import BatchError
from kardia.events import FORMAT_VERSION, Event

FORMAT_HEADER = "kardia-format"
CLUSTER_HEADER = "kardia-cluster"
FORMAT = f"msgpack/{FORMAT_VERSION}"

MAX_EVENTS = 1_000
"""Events of one record."""

MAX_BYTES = 512 * 1024
"""Bytes of one record: half of the smallest `max.message.bytes` in common use, so that a record always fits."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


def encode_batch(events: Sequence[Event]) -> bytes:
    """Bytes of one batch. Bounds are the business of `batches`."""
    return _encoder.encode(events)


def decode_batch(data: bytes) -> list[Event]:
    """Events of one batch; raises `BatchError` for anything that is not one."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BatchError(
            f"a record is not a batch of events: {error}",
            f"{len(data)} bytes beginning with {data[:16].hex()}",
            f"the format {FORMAT} that `encode_batch` writes",
            "check that only collectors of this version or older write to the topic; the record is skipped",
        ) from None


def check_format(header: bytes | None) -> None:
    """Refuse the format header of a newer or foreign writer."""
    name, _, version = (header or b"").decode("latin-1").partition("/")
    if name != "msgpack" or not version.isascii() or not version.isdigit() or int(version) > FORMAT_VERSION:
        raise BatchError(
            f"a record announces the format {header!r}",
            f"header {FORMAT_HEADER}",
            f"{FORMAT} or older",
            "update the readers of the topic before its collectors",
        )


def batches(events: Iterable[Event]) -> Iterator[tuple[bytes, int]]:
    """Split events into encoded batches within both bounds, in order: (bytes, number of events).

    A single event is bounded by its source (line length, record size), so one that alone exceeds `MAX_BYTES` is
    still sent, alone.
    """
    pending: list[Event] = []
    for event in events:
        pending.append(event)
        if len(pending) == MAX_EVENTS:
            yield from _halves(pending)
            pending = []
    if pending:
        yield from _halves(pending)


def _halves(events: list[Event]) -> Iterator[tuple[bytes, int]]:
    data = _encoder.encode(events)
    if len(data) <= MAX_BYTES or len(events) == 1:
        yield data, len(events)
        return
    middle = len(events) // 2
    yield from _halves(events[:middle])
    yield from _halves(events[middle:])
