"""Saved state of one lane as bytes: one version byte, then msgpack of plain values; stored compressed, in pieces.

The version byte replaces Spark's schema evolution of state: what a release since `OLDEST` has written is read
by this one. Fields that have come since have a default, which a shorter array or a missing name leaves them with; what
takes more than that is a step of `STEPS`. A later version is refused with a sentence. Never pickle: state outlives the
code that wrote it. Reads no clock and knows nothing of Spark.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from spark_jobs.checkpoint import state_migrations
from spark_jobs.errors import DamagedError, StateError

VERSION = 27
"""Version of the bytes written now; a release raises it once if its state has a field more than the one before."""

OLDEST = 26
"""Oldest version that is read."""

PIECE_BYTES = 4 << 20
"""A base is stored in pieces of at most that many bytes: each is one message between Spark and its Python worker."""

_SIZE = struct.Struct("<I")
_ZSTD = pa.Codec("zstd", compression_level=1)
"""About 3 ns a byte in, 1 ns out; state and events shrink to a tenth or less, because their ids repeat."""


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


STEPS: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {26: state_migrations.to_27}
"""Version -> what makes a snapshot of the observer of the next version of one of that. None where what has come since
has defaults."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LaneState)


def encode(state: LaneState) -> bytes:
    """Bytes of a state, version first."""
    return bytes((VERSION,)) + _encoder.encode(state)


def decode(data: bytes, where: str) -> LaneState:
    """State of bytes of this version or of one before; `where` names the lane in a refusal."""
    version = check_version(data[0] if data else None, where)
    try:
        state = _decoder.decode(memoryview(data)[1:])
        for before in range(version, VERSION):
            if before in STEPS:
                state = state._replace(observer=STEPS[before](state.observer))
    except (msgspec.DecodeError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(str(error), where) from error
    return state


def check_version(version: int | None, where: str) -> int:
    """The version of saved state, where it can be read; `where` names in a refusal what holds it."""
    if version is not None and OLDEST <= version <= VERSION:
        return version
    is_later = version is not None and version > VERSION
    raise StateError(
        f"saved state has version {'none' if version is None else version}"
        f"{': a later Kardia has written it' if is_later else ''}",
        where,
        f"version {OLDEST} to {VERSION}",
        "start the later Kardia again; or restore tables and checkpoint from the copy made before the upgrade; or "
        "begin both anew, a new checkpoint and --new-generation into new tables"
        if is_later
        else "upgrade by way of a release that reads it; or rebuild: a new checkpoint and --new-generation read the "
        "topic from its beginning",
    )


def pieces_of(base: bytes) -> list[bytes]:
    """A base as it is stored: compressed, in pieces of at most `PIECE_BYTES`."""
    packed = pack(base)
    return [packed[start : start + PIECE_BYTES] for start in range(0, len(packed), PIECE_BYTES)]


def base_of(pieces: Sequence[bytes], where: str) -> bytes:
    """The base that was stored in these pieces."""
    return unpack(b"".join(pieces), where)


def pack(plain: bytes) -> bytes:
    """Compressed, as everything is that is stored."""
    return _SIZE.pack(len(plain)) + bytes(_ZSTD.compress(plain, asbytes=True))


def unpack(data: bytes, where: str) -> bytes:
    """What `pack` was given; `where` names the lane in a refusal."""
    try:
        (size,) = _SIZE.unpack_from(data)
        return bytes(_ZSTD.decompress(memoryview(data)[_SIZE.size :], decompressed_size=size, asbytes=True))
    except (struct.error, OSError, ValueError) as error:
        raise damaged(str(error), where) from error


def damaged(why: str, where: str) -> DamagedError:
    """The refusal of bytes that are not what was written."""
    return DamagedError(
        f"saved state is damaged: {why}",
        where,
        f"the bytes version {VERSION} writes",
        "start again: the lane is built again from what the topic still has; or restore the checkpoint from a copy, or "
        "rebuild with a new checkpoint and --new-generation",
    )
