"""Draws what members of the classic protocol do in a consumer group: join, sync, heartbeat, join again, leave."""

from __future__ import annotations

import base64
import random
import struct
import uuid
from collections.abc import Callable, Iterable, Sequence

from kardia.coordinator.classic.operations import Heartbeat, Join, Leave, Leaving, Sync
from kardia.coordinator.consumer.operations import ConsumerMemberView, ConsumerView, OfClassicMember, Partition, Topic

_SESSIONS_MS = (6_000, 6_000, 10_000, 30_000)
_REBALANCES_MS = (500, 3_000, 10_000, 60_000)
_TOPICS: tuple[tuple[str, ...], ...] = (("orders",), ("orders",), ("orders", "refunds"), ("nowhere",), ())
_PROTOCOLS = (("range",), ("range",), ("range", "sticky"), ("sticky", "range"))
_ODD_PROTOCOLS: tuple[tuple[str, ...], ...] = ((), ("other",))
_INSTANCES = ("i1", "i2", "i3")


def made_up(member_id: str) -> str:
    """The id that Kafka makes of the same bits as this UUID; "" where it would make up another one."""
    made = base64.urlsafe_b64encode(uuid.UUID(member_id).bytes).decode().rstrip("=")
    return "" if "-" in made else made


def _text(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else struct.pack(">h", len(value)) + value.encode()


def subscription(version: int, topics: Sequence[str], owned: Iterable[tuple[str, int]], rack: str | None) -> bytes:
    """Metadata of a JoinGroup."""
    found = struct.pack(">hi", version, len(topics)) + b"".join(_text(one) for one in topics) + b"\xff\xff\xff\xff"
    if version >= 1:
        by_topic: dict[str, list[int]] = {}
        for name, number in owned:
            by_topic.setdefault(name, []).append(number)
        found += struct.pack(">i", len(by_topic))
        for name, numbers in by_topic.items():
            found += _text(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    if version >= 2:
        found += struct.pack(">i", 1)
    return found + (_text(rack) if version >= 3 else b"")


class ClassicArtist:
    """Draws one operation at a time. `next_number` and `new_id` are those of the artist of the history."""

    def __init__(self, rng: random.Random, next_number: Callable[[], int], new_id: Callable[[], str]) -> None:
        """`rng` decides everything."""
        self._rng = rng
        self._next = next_number
        self._new_id = new_id
        self._given = ""
        """An id that was handed out with answer 79, if all went well."""

    def draw(self, group_id: str, view: ConsumerView, topics: Sequence[Topic], sensible: bool) -> OfClassicMember:
        """The next operation to a group with members."""
        rng = self._rng
        classics = [one for one in view.members if one.classic is not None]
        last = [one for one in view.members if one.classic is None]
        if len(last) == 1 and last[0].instance_id is not None and rng.random() < 0.3:
            # That one comes back with JoinGroup, mostly as somebody else with the same subscription.
            return self._join(group_id, last[0], topics, comes_back=True)
        if not classics or (len(classics) < 3 and rng.random() < 0.2):
            return self._join(group_id, None, topics)
        member = rng.choice(classics)
        if not sensible and rng.random() < 0.5:
            return self._anything(group_id, view, rng.choice(view.members), topics)
        if member.join_deadline_at_ms >= 0 and rng.random() < 0.6:
            return self._join(group_id, member, topics)
        if member.sync_deadline_at_ms >= 0 and rng.random() < 0.5:
            return self._sync(group_id, member, member.epoch)
        if rng.random() < 0.12:
            return self._join(group_id, member, topics)
        if rng.random() < 0.05:
            return self._leave(group_id, view)
        return Heartbeat(self._next(), 4, group_id, member.epoch, member.member_id, member.instance_id)

    def _anything(
        self, group_id: str, view: ConsumerView, member: ConsumerMemberView, topics: Sequence[Topic]
    ) -> OfClassicMember:
        rng = self._rng
        chance = rng.random()
        epoch = member.epoch + rng.choice((-1, 0, 0, 1))
        if chance < 0.3:
            instance_id = rng.choice((member.instance_id, member.instance_id, None, "i9", *_INSTANCES))
            member_id = rng.choice((member.member_id, member.member_id, "nobody", ""))
            return Heartbeat(self._next(), 4, group_id, epoch, member_id, instance_id)
        if chance < 0.5:
            return self._sync(group_id, member, epoch)
        if chance < 0.7:
            return self._leave(group_id, view)
        return self._join(group_id, member if rng.random() < 0.6 else None, topics)

    def _join(
        self, group_id: str, member: ConsumerMemberView | None, topics: Sequence[Topic], comes_back: bool = False
    ) -> Join:
        rng = self._rng
        member_id, instance_id, new_id = "", None, ""
        if member is not None:
            member_id, instance_id = member.member_id, member.instance_id
            if instance_id is not None and rng.random() < (0.8 if comes_back else 0.3):
                member_id = ""
            if rng.random() < 0.05:
                instance_id = rng.choice(_INSTANCES)
        elif rng.random() < 0.25:
            instance_id = rng.choice(_INSTANCES)
        elif self._given and rng.random() < 0.6:
            member_id, self._given = self._given, ""
        if not member_id:
            new_id = made_up(self._new_id())
            if new_id:
                self._given = new_id
            else:
                member_id = self._new_id()
        names = rng.choice(_PROTOCOLS) if rng.random() < 0.96 else rng.choice(_ODD_PROTOCOLS)
        metadata = self._metadata(member, topics)
        session_ms = rng.choice(_SESSIONS_MS) if rng.random() < 0.97 else rng.choice((5_999, 1_800_001))
        host = f"/10.0.0.{rng.randrange(1, 3)}"
        kind = "consumer" if rng.random() < 0.98 else "connect"
        return Join(
            self._next(),
            rng.choice((0, 3, 5, 9, 9)) if instance_id is None else 9,
            group_id,
            member_id,
            instance_id,
            f"c{rng.randrange(1, 3)}",
            host,
            session_ms,
            rng.choice(_REBALANCES_MS),
            kind,
            tuple((name, metadata) for name in names),
            None,
            new_id,
        )

    def _metadata(self, member: ConsumerMemberView | None, topics: Sequence[Topic]) -> bytes:
        rng = self._rng
        names = {topic.topic_id: topic.name for topic in topics}
        wanted = rng.choice(_TOPICS)
        owned: list[Partition] = []
        if member is not None:
            if rng.random() < 0.85:
                wanted = member.names
            owned = [one for one, _ in member.assigned]
            owned += [one for one, _ in member.pending if rng.random() < 0.3]
            if rng.random() < 0.15:
                owned = [one for one in owned if rng.random() < 0.5]
        version = rng.choice((0, 1, 2, 3, 3))
        rack = rng.choice((None, None, "r1", "r2"))
        return subscription(version, wanted, [(names.get(one, "gone"), number) for one, number in owned], rack)

    def _sync(self, group_id: str, member: ConsumerMemberView, epoch: int) -> Sync:
        rng = self._rng
        kind = name = None
        if rng.random() < 0.7:
            kind, name = "consumer", member.classic[1][0] if member.classic is not None else "range"
            if rng.random() < 0.06:
                kind = "connect"
            if rng.random() < 0.06:
                name = "other"
        instance_id = member.instance_id if rng.random() < 0.95 else rng.choice((*_INSTANCES, None))
        return Sync(self._next(), 5, group_id, epoch, member.member_id, instance_id, kind, name, ())

    def _leave(self, group_id: str, view: ConsumerView) -> Leave:
        rng = self._rng
        entries = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            one = rng.choice(view.members)
            member_id, instance_id = one.member_id, one.instance_id
            if instance_id is not None and rng.random() < 0.3:
                member_id = ""
            if rng.random() < 0.15:
                member_id = "nobody"
            if rng.random() < 0.1:
                instance_id = rng.choice((*_INSTANCES, None))
            entries.append(Leaving(member_id, instance_id, None))
        if len(entries) == 1 and entries[0].group_instance_id is None and rng.random() < 0.3:
            return Leave(self._next(), 1, group_id, tuple(entries))
        return Leave(self._next(), 5, group_id, tuple(entries))
