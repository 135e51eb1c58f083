"""Draws what happens to classic groups that may become consumer groups, and were such before.

As for classic groups, with subscriptions and assignments that a consumer group can be made of, or almost; and with
heartbeats of the consumer protocol, which convert the group.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from kardia.coordinator.classic.operations import Commit, DeleteGroups, Heartbeat, Join, Leave, Sync, View
from kardia.coordinator.consumer.operations import ConsumerOperation, Topic
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.wire import write_assignment
from tests.truth.consumer.draw_classic import subscription
from tests.truth.draw import Artist

_TOPICS: tuple[tuple[str, ...], ...] = (("orders",), ("orders",), ("orders", "refunds"), ("nowhere",), ())


class GroupArtist(Artist):
    """Draws one operation at a time, for a classic group or none. `next_number` is that of the artist of the history,
    `seen` the ids that it knows."""

    def __init__(
        self, rng: random.Random, settings: ConsumerSettings, next_number: Callable[[], int], seen: list[str]
    ) -> None:
        """`rng` decides everything."""
        super().__init__(rng, settings.of_classic_groups())
        self._next_number = next_number
        self._seen = seen
        self._extreme = 0.0
        self._metadata: dict[str, bytes] = {}
        self._topics: Sequence[Topic] = ()

    def draw(self, group_id: str, view: View | None, topics: Sequence[Topic], sensible: bool) -> ConsumerOperation:
        """The next operation of the classic protocol."""
        self._topics = topics
        drawn = self._sensible(group_id, view) if sensible else self._anything(group_id, view)
        if isinstance(drawn, Join | Sync | Heartbeat | Leave | Commit | DeleteGroups):
            return drawn
        return self._heartbeat(group_id, view)  # Transactions and OffsetDelete are for classic groups alone.

    def when(self, now_ms: int, view: View) -> tuple[int, bool]:
        """An instant, near a deadline of the group or soon."""
        return self._instant(now_ms, view)

    def _next(self) -> int:
        return self._next_number()

    def _join(self, group_id: str, view: View | None, member_id: str, instance_id: str | None = None) -> Join:
        rng = self._rng
        drawn = super()._join(group_id, view, member_id, instance_id)
        who = drawn.member_id or drawn.group_instance_id or drawn.new_id
        metadata = self._metadata.get(who)
        if metadata is None or rng.random() < 0.2:
            owned = [("orders", 0)] if rng.random() < 0.3 else []
            metadata = subscription(rng.choice((0, 1, 2, 3)), rng.choice(_TOPICS), owned, rng.choice((None, "r1")))
        for one in (who, drawn.new_id):
            self._metadata[one] = metadata
        return drawn._replace(protocols=tuple((name, metadata) for name, _ in drawn.protocols))

    def _commit(self, group_id: str, view: View | None) -> Commit:
        drawn = super()._commit(group_id, view)
        # A partition that does not exist the broker refuses without asking the coordinator.
        most = next((topic.partitions for topic in self._topics if topic.name == drawn.topic), 4)
        return drawn._replace(partition=drawn.partition % most)

    def _sync(self, group_id: str, view: View | None, member_id: str) -> Sync:
        rng = self._rng
        drawn = super()._sync(group_id, view, member_id)
        named = [one for one, _ in drawn.assignments]
        if not named:
            return drawn
        given: dict[str, list[tuple[str, int]]] = {one: [] for one in named}
        for topic in self._topics:
            for number in range(topic.partitions):
                given[rng.choice(named)].append((topic.name, number))
        if rng.random() < 0.04:
            given[rng.choice(named)].append(("orders", 0))
        if rng.random() < 0.1:
            given[rng.choice(named)].append(("gone", 3))
        version = rng.choice((0, 1, 3))
        assignments = [(one, write_assignment(version, set(partitions))) for one, partitions in given.items()]
        if rng.random() < 0.06:
            one, assignment = assignments[-1]
            odd = rng.choice((b"", b"\x00", assignment[:-4] + b"\x00\x00\x00\x02ab"))
            assignments[-1] = (one, odd)
        return drawn._replace(assignments=tuple(assignments))
