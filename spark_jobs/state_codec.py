"""Saved state of one lane as bytes: one version byte, then msgpack of plain values.

The version byte replaces Spark's schema evolution of state: another version is refused with a sentence that says what
to do; the topic and a new checkpoint give the same state again. Never pickle: state outlives the code that wrote it.
Reads no clock and knows nothing of Spark.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from spark_jobs.errors import StateError

VERSION = 7
"""Version of the bytes written now; those before lack what the observer has since learned to remember."""


class LaneState(NamedTuple):
    """Everything a lane remembers between two batches."""

    next_offset: int
    """Offset after the last record read, -1 before the first: a jump is a loss in the topic."""
    last_logged_at_ms: float
    """Latest instant any event of the lane was logged at: where a loss begins."""
    sources: dict[str, str]
    """The source of each broker that ticks last named, by broker: whom a loss concerns."""
    observer: Any
    """`Observer.snapshot()`: a tree of plain values."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LaneState)


def encode(state: LaneState) -> bytes:
    """Bytes of a state, version first."""
    return bytes((VERSION,)) + _encoder.encode(state)


def decode(data: bytes, where: str) -> LaneState:
    """State of bytes of this version; `where` names the lane in a refusal."""
    if not data or data[0] != VERSION:
        version = data[0] if data else "none"
        raise StateError(
            f"saved state has version {version}",
            where,
            f"version {VERSION}",
            "run the version of Kardia that wrote it, or rebuild: a new checkpoint and --new-generation read the topic "
            "from its beginning",
        )
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(
            f"saved state is damaged: {error}",
            where,
            f"the bytes version {VERSION} writes",
            "restore the checkpoint from a copy, or rebuild with a new checkpoint and --new-generation",
        ) from error
