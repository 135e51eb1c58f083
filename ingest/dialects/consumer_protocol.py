"""Assignments of classic groups, from the bytes that consumers pass through SyncGroup and records; not KIP-848.

The broker does not look into these bytes, so they may be anything (Connect, Streams with user data, a hostile
client). Decoding is bounded and tolerant: bytes that are not exactly a ConsumerProtocolAssignment give an empty list.
Layout: `ConsumerProtocolAssignment.json` of Kafka, versions 0 to 3 (same bytes): int16 version, array of (string
topic, array of int32), nullable bytes user data.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from functools import lru_cache
from hashlib import blake2b
from struct import error as StructError  # noqa: N812
from struct import unpack_from

Assignment = list[list[object]]
"""`[[topic, [partition, ...]], ...]`, as in `kardia.events.DETAILS`."""

MAX_PARTITIONS = 100_000
"""Partitions decoded of one assignment; more is not an assignment but an attempt to make us work."""

MAX_VERSION = 31
"""Highest version believed. Kafka is at 3 and promises that later versions only append."""


@lru_cache(maxsize=512)
def _decoded(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    try:
        data = a2b_base64(text.encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeEncodeError, ValueError):
        return ()
    return _read(data)


def _read(data: bytes) -> tuple[tuple[str, tuple[int, ...]], ...]:
    topics: list[tuple[str, tuple[int, ...]]] = []
    try:
        version, count = unpack_from(">hi", data, 0)
        at = 6
        if not 0 <= version <= MAX_VERSION or not 0 <= count <= len(data):
            return ()
        room = MAX_PARTITIONS
        for _ in range(count):
            (length,) = unpack_from(">h", data, at)
            at += 2
            if length < 0 or at + length > len(data):
                return ()
            topic = data[at : at + length].decode("utf-8")
            at += length
            (partitions,) = unpack_from(">i", data, at)
            at += 4
            room -= partitions
            if partitions < 0 or room < 0:
                return ()
            topics.append((topic, unpack_from(f">{partitions}i", data, at)))
            at += 4 * partitions
        (user_data,) = unpack_from(">i", data, at)
        at += 4 + max(user_data, 0)
    except (StructError, UnicodeDecodeError):
        return ()
    # Version 0 to 3 end here; a later one may append. Other protocols' bytes do not end exactly at this place.
    if at > len(data) or (at < len(data) and version <= 3):
        return ()
    return tuple(topics)


def assignment_of_base64(text: str) -> Assignment:
    """Assignment from the base64 of a log line."""
    return [[topic, list(partitions)] for topic, partitions in _decoded(text)] if text else []


def assignment_of_bytes(data: bytes | None) -> Assignment:
    """Assignment from the bytes of a record."""
    return [[topic, list(partitions)] for topic, partitions in _read(data)] if data else []


@lru_cache(maxsize=512)
def fingerprint(text: str) -> str:
    """Short digest of a protocol's metadata: equal digest, equal bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
