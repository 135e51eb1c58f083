"""Which partitions groups have commits for, by the records of the offsets topic: whose ends are asked for, and where
they are sent.

Kept on disk beside the positions and saved before them, because a collector that starts again reads no record twice:
what a group committed once, and never again, is in no later record. Bounded. Reads no clock.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import msgspec

from kardia.events import Event, Kind, lane_of

MAX_COMMITS = 600_000
"""Groups' partitions that are followed, some 100 bytes each: six lanes of what the observer holds of each."""

MAX_PARTITIONS = 50_000
"""Partitions whose ends are asked for: a request of half a megabyte to each broker, a second of CPU here."""

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Names that a topic can have (Kafka `Topic.validate`); a record may hold anything."""

Partition = tuple[str, int]
"""Topic and partition."""


class SavedCommitted(msgspec.Struct):
    """What is kept on disk."""

    number: int = 0
    groups: list[tuple[str, int, list[tuple[str, list[int]]]]] = []
    """Group, shard, and its partitions by topic."""


class Committed:
    """The partitions. `heard` is for the collector's thread, the rest for any."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._groups: dict[str, tuple[int, dict[str, set[int]]]] = {}
        self._count = 0
        self._wanted: dict[Partition, dict[int, int]] = {}
        """Partition -> lane -> groups of that lane that have a commit on it."""
        self._lock = threading.Lock()
        self.changed = False
        """Since it was last saved."""
        self.refused = 0
        """Commits that were not taken up because there are `MAX_COMMITS`, or whose topic has no name of a topic."""

    def heard(self, event: Event) -> None:
        """Note a record of a commit, or its tombstone."""
        if event.kind != Kind.OFFSET_RECORD:
            return
        detail = event.detail or {}
        topic, partition = str(detail.get("topic", "")), int(detail.get("partition", -1))
        found = self._groups.get(event.group_id)
        known = found is not None and partition in found[1].get(topic, ())
        if known == (not detail.get("tombstone")):
            return  # nearly every commit: of a partition that is followed
        with self._lock:
            if known:
                self._drop(event.group_id, topic, partition)
            else:
                self._add(event.group_id, event.shard, topic, partition)

    def _add(self, group_id: str, shard: int, topic: str, partition: int) -> None:
        if self._count >= MAX_COMMITS or partition < 0 or not _TOPIC.fullmatch(topic):
            self.refused += 1
            return
        _, topics = self._groups.setdefault(group_id, (shard, {}))
        topics.setdefault(topic, set()).add(partition)
        lanes = self._wanted.setdefault((topic, partition), {})
        lane = lane_of(shard, self._lanes)
        lanes[lane] = lanes.get(lane, 0) + 1
        self._count += 1
        self.changed = True

    def _drop(self, group_id: str, topic: str, partition: int) -> None:
        shard, topics = self._groups[group_id]
        topics[topic].discard(partition)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            del self._groups[group_id]
        lane, place = lane_of(shard, self._lanes), (topic, partition)
        lanes = self._wanted[place]
        lanes[lane] -= 1
        if not lanes[lane]:
            del lanes[lane]
        if not lanes:
            del self._wanted[place]
        self._count -= 1
        self.changed = True

    def wanted(self) -> dict[Partition, tuple[int, ...]]:
        """Partitions whose ends are asked for, `MAX_PARTITIONS` at most, each with the lanes that want it."""
        with self._lock:
            some = list(self._wanted.items())[:MAX_PARTITIONS]
            return {place: tuple(lanes) for place, lanes in some}

    @property
    def unasked(self) -> int:
        """Partitions beyond `MAX_PARTITIONS`."""
        return max(0, len(self._wanted) - MAX_PARTITIONS)

    def saved(self) -> SavedCommitted:
        """Everything known, for saving."""
        with self._lock:
            self.changed = False
            return SavedCommitted(groups=list(self._plain()))

    def _plain(self) -> Iterator[tuple[str, int, list[tuple[str, list[int]]]]]:
        for group_id, (shard, topics) in self._groups.items():
            yield group_id, shard, [(topic, sorted(partitions)) for topic, partitions in topics.items()]

    def load(self, saved: SavedCommitted) -> None:
        """Take what was saved."""
        with self._lock:
            for group_id, shard, topics in saved.groups:
                for topic, partitions in topics:
                    for partition in partitions:
                        self._add(group_id, shard, topic, partition)
            self.changed = False
