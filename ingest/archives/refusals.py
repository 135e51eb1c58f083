"""Entries that a wrapper damaged: kept in a file of their own while logs are unwrapped, read back as rejected lines.

The file is a stream `archive` of a replay beside the logs, so that what was refused is counted and listed as any other
line. Positions are those of the entry in the file that was given.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ingest.archives.envelopes import Placed, Refusal
from ingest.dialects import Listener, Reading, excerpt, rejection

STREAM = "archive"


class Refused(msgspec.Struct, array_like=True, frozen=True):
    """One line of the file."""

    reason: str
    expected: str
    excerpt: str
    start: int
    end: int
    at_ms: float | None
    """Stamp of the last line before it, None if there was none."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Refused).decode


class RefusedFile(NamedTuple):
    """What was refused of one file."""

    path: str
    incarnation: str
    """Digest of the given file's first line, as of any log."""


def line_of(refusal: Refusal, placed: Placed, at_ms: float | None) -> bytes:
    """A refusal as a line of the file."""
    refused = Refused(refusal.reason, refusal.expected, excerpt(placed.head), placed.start, placed.end, at_ms)
    return _encode(refused) + b"\n"


class RefusedLines:
    """Dialect of the file."""

    stream = STREAM
    quiet = None
    slow = None

    def read(self, line: bytes, source: str, start: int, end: int) -> Reading:  # noqa: ARG002  as of every dialect
        """The rejection as it was made."""
        if not line.strip():
            return "blank"
        kept = _decode(line)
        return rejection(kept.reason, kept.expected, kept.excerpt.encode(), source, kept.start, kept.end, kept.at_ms)

    def stamp_ms(self, line: bytes) -> float | None:
        """Stamp of the last line before it."""
        return _decode(line).at_ms if line.strip() else None

    def broker_of(self, line: bytes) -> Listener | None:
        """It belongs to no broker."""
