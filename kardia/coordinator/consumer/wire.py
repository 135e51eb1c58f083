"""What members of the classic protocol put into JoinGroup and SyncGroup: subscriptions and assignments of consumers.

Reads and writes bytes, decides nothing. Subscriptions have versions 0 to 3: topics and user data; from 1 on owned
partitions, from 2 on a generation, from 3 on a rack. An assignment is the same in all of them. Follows
`ConsumerProtocol`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from kardia.coordinator.errors import NotModelledError

_OWNED, _GENERATION, _RACK = 1, 2, 3
"""Versions from which on a subscription has these."""

TopicPartition = tuple[str, int]
"""Topic name and number."""


class Subscription(NamedTuple):
    """Topics, owned partitions, and rack."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...]
    rack_id: str | None


class Assignment(NamedTuple):
    """Partitions, and what an assignor of the client has added for itself."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


class _Reader:
    """Reads on. Raises struct.error at the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(kind, self._data, self._at)
        self._at += struct.calcsize(kind)
        return int(value)

    def bytes(self, length: int) -> bytes:
        if self._at + length > len(self._data):
            raise struct.error(f"{length} bytes at {self._at}")
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str | None:
        length = self.number(">h")
        return None if length < 0 else self.bytes(length).decode()

    def partitions(self) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for _ in range(self.number(">i")):
            name = self.text() or ""
            found += [(name, self.number(">i")) for _ in range(self.number(">i"))]
        return found


def read_subscription(metadata: bytes) -> Subscription:
    """Raises NotModelledError for what is no subscription, or of a version to come."""
    try:
        return _subscription(metadata)
    except (struct.error, UnicodeDecodeError) as error:
        raise NotModelledError(f"metadata {metadata!r} is no subscription of a consumer: {error}") from error


def _subscription(metadata: bytes) -> Subscription:
    reader = _Reader(metadata)
    version = reader.number(">h")
    if not 0 <= version <= _RACK:
        raise NotModelledError(f"a subscription of version {version}; expected 0 to {_RACK}")
    topics = tuple(reader.text() or "" for _ in range(reader.number(">i")))
    reader.bytes(max(reader.number(">i"), 0))
    owned = reader.partitions() if version >= _OWNED else []
    if version >= _GENERATION:
        reader.number(">i")
    return Subscription(topics, tuple(owned), reader.text() if version >= _RACK else None)


def version_of(metadata: bytes) -> int:
    """The version of a subscription or an assignment."""
    return _Reader(metadata).number(">h")


def read_assignment(assignment: bytes) -> Assignment:
    """Raises ValueError where it ends too early, NotModelledError for a version that there is not."""
    reader = _Reader(assignment)
    try:
        version = reader.number(">h")
        if not 0 <= version <= _RACK:
            raise NotModelledError(f"an assignment of version {version}; expected 0 to {_RACK}")
        partitions = reader.partitions()
        return Assignment(tuple(partitions), reader.bytes(max(reader.number(">i"), 0)))
    except struct.error as error:
        raise ValueError(f"assignment {assignment!r}: {error}") from error


def write_assignment(version: int, partitions: Iterable[TopicPartition]) -> bytes:
    """An assignment without user data. Kafka writes topics in the order of a hash map; here they are sorted."""
    by_topic: dict[str, list[int]] = {}
    for name, number in sorted(partitions):
        by_topic.setdefault(name, []).append(number)
    found = struct.pack(">hi", version, len(by_topic))
    for name, numbers in by_topic.items():
        text = name.encode()
        found += struct.pack(f">h{len(text)}si{len(numbers)}i", len(text), text, len(numbers), *numbers)
    return found + b"\xff\xff\xff\xff"
