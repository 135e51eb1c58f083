"""What a member of the classic protocol says in the metadata of its JoinGroup: the subscription of Kafka's consumers.

Versions 0 to 3: topics and user data; from 1 on owned partitions, from 2 on a generation, from 3 on a rack.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kardia.coordinator.consumer.errors import NotModelledError

_OWNED, _GENERATION, _RACK = 1, 2, 3
"""Versions from which on a subscription has these."""


class Subscription(NamedTuple):
    """Topics, owned partitions by topic name, and rack."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, int], ...]
    rack_id: str | None


def read_subscription(metadata: bytes) -> Subscription:
    """Raises NotModelledError for what is no subscription, or of a version to come."""
    try:
        return _read(metadata)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise NotModelledError(f"metadata {metadata!r} is no subscription of a consumer: {error}") from error


def _read(metadata: bytes) -> Subscription:
    (version,) = struct.unpack_from(">h", metadata)
    if not 0 <= version <= _RACK:
        raise NotModelledError(f"a subscription of version {version}; expected 0 to {_RACK}")
    at = 2

    def number(kind: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(kind, metadata, at)
        at += struct.calcsize(kind)
        return int(value)

    def text() -> str | None:
        nonlocal at
        length = number(">h")
        if length < 0:
            return None
        if at + length > len(metadata):
            raise struct.error(f"a text of {length} bytes at {at}")
        value = metadata[at : at + length].decode()
        at += length
        return value

    topics = tuple(text() or "" for _ in range(number(">i")))
    user_data_bytes = number(">i")
    at += max(user_data_bytes, 0)
    owned: list[tuple[str, int]] = []
    if version >= _OWNED:
        for _ in range(number(">i")):
            name = text() or ""
            owned += [(name, number(">i")) for _ in range(number(">i"))]
    if version >= _GENERATION:
        number(">i")
    return Subscription(topics, tuple(owned), text() if version >= _RACK else None)
