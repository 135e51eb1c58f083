"""Draws random histories that reach the corners: each next move is drawn from what the group looks like now.

About half of the moves bring the group on (a member joins, rejoins, syncs, heartbeats); the others are anything that a
client, an administrator or the cluster may do, with ids, generations and protocols that are right, stale, fenced or
made up. Instants are drawn around the deadlines of the group: 1 ms before, at (timer or request first), 1 ms after.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence

from kardia.coordinator.classic.operations import (
    Commit,
    DeleteGroups,
    Heartbeat,
    Join,
    Leave,
    Leaving,
    OffsetDelete,
    Operation,
    Sync,
    TxnCommit,
    TxnEnd,
    View,
)
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.operations import Load, Unload
from tests.truth.lockstep import Move

STARTED_AT_MS = 1_000_000

_SMALL = CoordinatorSettings(
    initial_rebalance_delay_ms=3_000,
    offsets_retention_ms=60_000,
    offsets_retention_check_interval_ms=20_000,
    started_at_ms=STARTED_AT_MS,
)
SETTINGS = (
    _SMALL,
    _SMALL._replace(initial_rebalance_delay_ms=0),
    _SMALL._replace(group_max_size=3, initial_rebalance_delay_ms=0),
    _SMALL._replace(group_max_size=2, initial_rebalance_delay_ms=500),
    _SMALL._replace(group_max_size=2, initial_rebalance_delay_ms=0),
    _SMALL._replace(initial_rebalance_delay_ms=12_000),
    _SMALL._replace(offsets_retention_check_interval_ms=600_000),
    _SMALL._replace(offsets_retention_check_interval_ms=600_000, initial_rebalance_delay_ms=0),
)
"""What brokers are configured with; a history has one of them."""

SESSIONS_MS = (6_000, 10_000, 10_000, 10_001, 30_000, 45_000)
REBALANCES_MS = (500, 5_000, 10_000, 10_000, 60_000, 300_000, 300_000)
_OUT_OF_BOUNDS_MS = (-1, 0, 5_999, 1_800_001, 2**31 - 1)
_EXTREME_SESSIONS_MS = (6_000, 6_001, 299_999, 300_000, 300_001, 600_000, 1_799_999, 1_800_000)
"""The bounds, and what lies around and beyond the five minutes of a new member."""
_EXTREME_REBALANCES_MS = (-1, 0, 0, 1, 1_800_000, 2**31 - 1)
_STATIC_REBALANCE_MS_MIN = 500
_FAR_MS = 7_200_000
"""Deadlines that lie further ahead are not waited for: what is done every so often would be all that happens."""
_RETENTIONS_MS = (-1, -1, 0, 1, 20_000, 60_000, 10**12)


def subscription(*topics: str) -> bytes:
    """A consumer's subscription, version 0, without user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


_ORDERS, _BOTH = subscription("orders"), subscription("orders", "refunds")
PROTOCOLS: tuple[tuple[tuple[str, bytes], ...], ...] = (
    (("range", _ORDERS),),
    (("range", _ORDERS),),
    (("range", _BOTH),),
    (("range", _ORDERS), ("sticky", _ORDERS)),
    (("sticky", _ORDERS), ("range", _ORDERS)),
    (("sticky", _ORDERS), ("range", _BOTH), ("uniform", _ORDERS)),
)
_ODD_PROTOCOLS: tuple[tuple[tuple[str, bytes], ...], ...] = ((), (("uniform", _ORDERS),))
_COOPERATIVE = b"\x00\x01" + _ORDERS[2:] + b"\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x01\x00\x00\x00\x00"
_NEWEST = b"\x00\x03" + _COOPERATIVE[2:] + b"\x00\x00\x00\x05" + b"\x00\x04rack"
METADATA: dict[str, bytes] = {
    "cooperative": _COOPERATIVE,
    "with generation and rack": _NEWEST,
    "of a version to come": b"\x7f\xff" + _NEWEST[2:] + b"and more",
    "of version -1": b"\xff\xff" + _ORDERS[2:],
    "with user data": _ORDERS[:-4] + b"\x00\x00\x00\x02ab",
    "without topics": subscription(),
    "a topic twice": subscription("orders", "orders"),
    "no UTF-8": b"\x00\x00\x00\x00\x00\x01\x00\x02\xff\xfe\xff\xff\xff\xff",
    "empty": b"",
    "half a version": b"\x00",
    "a version": b"\x00\x00",
    "half a count": b"\x00\x00\x00\x00",
    "a topic too few": b"\x00\x00\x00\x00\x00\x03\x00\x01a",
    "no user data": _ORDERS[:-4],
    "half user data": _ORDERS[:-2],
}
"""Subscriptions of every kind that clients send, and such as cannot be read to their end."""

_PRODUCERS = (7, 8)
_TOPICS = ("orders", "orders", "refunds", "other")


class Artist:
    """Draws the moves of one history. Equal seeds and equal views give equal moves."""

    def __init__(self, rng: random.Random, settings: CoordinatorSettings) -> None:
        """`rng` decides everything."""
        self._rng = rng
        self._number = 0
        self._loaded = True
        self.groups = ["g", "h"] if rng.random() < 0.15 else ["g"]
        self._instances = [f"i{number}" for number in range(1, rng.choice((2, 3, 4)))]
        self._statics = rng.choice((0.0, 0.3, 0.6))
        self._clients = [f"c{number}" for number in range(1, rng.choice((2, 3, 5)) + 1)]
        self._seen: list[str] = ["nobody"]
        self._protocols: dict[str, tuple[tuple[str, bytes], ...]] = {}
        self._cooperation = rng.choice((0.5, 0.75, 0.9))
        self._bounded = settings.group_max_size < 10
        # Where offsets are looked at rarely, so that long waits do not consist of that.
        may_wait = settings.offsets_retention_check_interval_ms >= 600_000
        self._extreme = 0.4 if may_wait and rng.random() < 0.6 else 0.0
        """How often a JoinGroup has time-outs and metadata at the edge of what there is."""
        self._crossed = False
        """Whether the operation being drawn shall name an instance id that is not its own."""
        self._version = rng.choice((None, None, 0, 3, 5, 9, 9))
        """Join version of all clients, or any."""

    def move(self, now_ms: int, look: Callable[[str], View | None], loaded: bool) -> Move:
        """The next move. `look` shows a group as it is before time passes."""
        rng = self._rng
        self._loaded = loaded
        if loaded and rng.random() < 0.02:
            return Move(now_ms, False, Unload(self._next()))
        shown = look(self.groups[0])
        if loaded and shown is not None and shown.state == "Stable" and len(shown.members) > 1 and rng.random() < 0.04:
            return Move(now_ms, False, Unload(self._next()))
        if not loaded and rng.random() < 0.35:
            return Move(now_ms + rng.choice((0, 1, 50, 7_000)), True, self._load())
        group_id = rng.choice(self.groups)
        view = look(group_id)
        at_ms, timers_first = self._instant(now_ms, view)
        if rng.random() < 0.06:
            return Move(at_ms, True, None)
        if rng.random() < 0.01:
            group_id = ""
            view = look(group_id)
        # Something may fire on the way: the move is drawn for what is known now, as a client would.
        if rng.random() < self._cooperation:
            if view is not None and _only_time_is_missing(view, now_ms) and rng.random() < 0.6:
                return Move(view.join_deadline_at_ms, True, None)
            return Move(at_ms, timers_first, self._sensible(group_id, view))
        return Move(at_ms, timers_first, self._anything(group_id, view))

    def _load(self) -> Load:
        """By a broker with the same settings, or with another group.max.size: what was full may be over it."""
        most = self._rng.choice((1, 1, 2, 3)) if self._rng.random() < (0.5 if self._bounded else 0.2) else None
        return Load(self._next(), most)

    # -- instants -------------------------------------------------------------------------------------------------

    def _instant(self, now_ms: int, view: View | None) -> tuple[int, bool]:
        rng = self._rng
        chance = rng.random()
        if chance < 0.35:
            return now_ms + rng.choice((0, 0, 1, 2)), rng.random() < 0.5
        if chance < 0.72 or view is None:
            return now_ms + rng.randrange(1, 900), True
        deadlines = [member.session_deadline_at_ms for member in view.members]
        deadlines += [deadline_at_ms for _, deadline_at_ms in view.pending]
        deadlines += [view.join_deadline_at_ms, view.sync_deadline_at_ms] * 2
        ahead = sorted(one for one in deadlines if now_ms < one <= now_ms + _FAR_MS)
        if not ahead or chance > 0.985:
            return now_ms + rng.choice((3_000, 20_000, 65_000)), True
        deadline_at_ms = ahead[0] if rng.random() < 0.8 else rng.choice(ahead)
        return max(now_ms, deadline_at_ms + rng.choice((-1, 0, 0, 1))), rng.random() < 0.5

    # -- operations -----------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _sensible(self, group_id: str, view: View | None) -> Operation:
        """What brings the group on."""
        rng = self._rng
        if view is None or (not view.members and not view.pending):
            return self._join(group_id, view, "")
        if view.pending and rng.random() < (0.25 if view.state == "Stable" else 0.5):
            return self._join(group_id, view, rng.choice(view.pending)[0])
        if view.state == "PreparingRebalance":
            missing = [member for member in view.members if not member.waits_for_join]
            if missing and rng.random() < 0.85:
                member = rng.choice(missing)
                if member.group_instance_id is not None and rng.random() < 0.4:
                    return self._join(group_id, view, "", member.group_instance_id)
                return self._join(group_id, view, member.member_id, member.group_instance_id)
            return self._join(group_id, view, "")
        if view.state == "CompletingRebalance" and rng.random() < 0.85:
            missing_ids = [one for one in view.pending_sync if any(one == member.member_id for member in view.members)]
            if view.leader in missing_ids and rng.random() < 0.4:
                missing_ids = [view.leader]
            return self._sync(group_id, view, rng.choice(missing_ids) if missing_ids else self._id(view))
        if view.state == "Stable" and view.pending_sync and rng.random() < 0.5:
            return self._sync(group_id, view, rng.choice(view.pending_sync))
        statics = [member for member in view.members if member.group_instance_id is not None]
        if statics and rng.random() < 0.2:
            return self._join(group_id, view, "", rng.choice(statics).group_instance_id)
        if len(view.members) < 3 and rng.random() < 0.3:
            return self._join(group_id, view, "")
        return self._heartbeat(group_id, view) if rng.random() < 0.6 else self._commit(group_id, view)

    def _anything(self, group_id: str, view: View | None) -> Operation:
        rng = self._rng
        # A stable group is hard to reach and easily lost: there, what keeps it is drawn more often.
        calm = view is not None and view.state == "Stable"
        draws: Sequence[tuple[int, Callable[[str, View | None], Operation]]] = (
            (
                18 if calm else 32,
                lambda group, seen: self._join(group, seen, self._id(seen) if rng.random() < 0.6 else ""),
            ),
            (16, lambda group, seen: self._sync(group, seen, self._id(seen))),
            (16, self._heartbeat),
            (11 if calm else 13, self._leave),
            (18 if calm else 13, self._commit),
            (15 if calm else 11, self._txn_commit),
            # To a broker that does not lead the partition the log says no; the coordinator hears nothing.
            (8 if self._loaded else 0, lambda *_: self._txn_end()),
            (5, lambda group, _: self._offset_delete(group)),
            (3, lambda group, _: self._delete_groups(group)),
        )
        chosen = rng.choices([draw for _, draw in draws], [weight for weight, _ in draws])[0]
        self._crossed = rng.random() < (0.3 if calm else 0.2)
        drawn = chosen(group_id, view)
        self._crossed = False
        return drawn

    def _id(self, view: View | None) -> str:
        """Mostly a member, else a pending id, one of the past, or none of the kind."""
        rng = self._rng
        chance = rng.random()
        if view is not None:
            if view.pending and chance < (0.5 if self._crossed else 0.25):
                return rng.choice(view.pending)[0]
            if view.members and chance < 0.85:
                return rng.choice(view.members).member_id
        return rng.choice(self._seen[-12:]) if chance < 0.95 else ""

    def _instance(self, view: View | None, member_id: str) -> str | None:
        """The instance id that goes with a member id, or now and then another."""
        rng = self._rng
        own = next((m.group_instance_id for m in view.members if m.member_id == member_id), None) if view else None
        if not self._crossed and rng.random() < 0.9:
            return own
        held = [m.group_instance_id for m in view.members if m.group_instance_id is not None] if view else []
        if held and rng.random() < 0.8:
            return rng.choice(held)
        return rng.choice([*self._instances, None, "i9"])

    def _generation(self, view: View | None) -> int:
        current = view.generation_id if view is not None else 0
        return self._rng.choice((current,) * 9 + (current - 1, current + 1, -1))

    def _join(self, group_id: str, view: View | None, member_id: str, instance_id: str | None = None) -> Join:
        rng = self._rng
        number = self._next()
        version = self._version if self._version is not None and rng.random() < 0.9 else rng.randrange(10)
        if not member_id and instance_id is None and rng.random() < self._statics:
            instance_id = rng.choice(self._instances)
        elif member_id and instance_id is None:
            instance_id = self._instance(view, member_id)
        if instance_id is not None:
            version = max(version, 5)
        client_id = rng.choice(self._clients)
        new_id = f"{instance_id or client_id}-{uuid.UUID(int=rng.getrandbits(128), version=4)}"
        protocols = self._protocols.get(member_id or instance_id or "")
        if protocols is None or rng.random() < 0.3:
            protocols = rng.choice(PROTOCOLS) if rng.random() < 0.9 else rng.choice(_ODD_PROTOCOLS)
        for one in (member_id or instance_id, new_id, instance_id):
            if one:
                self._protocols[one] = protocols
        if not member_id:
            self._seen.append(new_id)
        session_ms = rng.choice(SESSIONS_MS) if rng.random() < 0.93 else rng.choice(_OUT_OF_BOUNDS_MS)
        rebalance_ms = rng.choice(REBALANCES_MS)
        if rng.random() < self._extreme:
            session_ms = rng.choice(_EXTREME_SESSIONS_MS)
        if rng.random() < self._extreme:
            rebalance_ms = rng.choice(_EXTREME_REBALANCES_MS)
            if instance_id is not None:
                # With 0, Kafka fires its timer again and again in one instant while no static member rejoins.
                rebalance_ms = max(rebalance_ms, _STATIC_REBALANCE_MS_MIN)
        if protocols and rng.random() < self._extreme:
            protocols = tuple((name, rng.choice(list(METADATA.values()))) for name, _ in protocols)
        kind = "consumer" if rng.random() < 0.97 else rng.choice(("connect", ""))
        host = f"/10.0.0.{rng.randrange(1, 4)}"
        reason = rng.choice((None, None, "", "why not")) if version >= 8 else None
        return Join(
            number,
            version,
            group_id,
            member_id,
            instance_id,
            client_id,
            host,
            session_ms,
            rebalance_ms,
            kind,
            protocols,
            reason,
            new_id,
        )

    def _sync(self, group_id: str, view: View | None, member_id: str) -> Sync:
        rng = self._rng
        version = rng.randrange(6)
        instance_id = self._instance(view, member_id)
        if instance_id is not None:
            version = max(version, 3)
        kind = name = None
        if version >= 5:
            kind = (view and view.protocol_type) or "consumer"
            name = (view and view.protocol_name) or "range"
            if rng.random() < 0.05:
                kind = "connect"
            if rng.random() < 0.05:
                name = "other"
        assignments: tuple[tuple[str, bytes], ...] = ()
        leads = view is not None and view.leader == member_id
        if view is not None and (leads or rng.random() < 0.05):
            named = [member.member_id for member in view.members if rng.random() < 0.95]
            if rng.random() < 0.05:
                named.append("nobody")
            assignments = tuple((one, one[-4:].encode()) for one in named)
        generation_id = self._generation(view)
        return Sync(self._next(), version, group_id, generation_id, member_id, instance_id, kind, name, assignments)

    def _heartbeat(self, group_id: str, view: View | None) -> Heartbeat:
        member_id = self._id(view)
        instance_id = self._instance(view, member_id)
        version = 3 if instance_id is not None else self._rng.randrange(5)
        return Heartbeat(self._next(), version, group_id, self._generation(view), member_id, instance_id)

    def _leave(self, group_id: str, view: View | None) -> Leave:
        rng = self._rng
        version = 3 if self._crossed else rng.randrange(6)
        if view is not None and view.pending and rng.random() < 0.3:
            return Leave(self._next(), 3, group_id, (Leaving(rng.choice(view.pending)[0], None, None),))
        if version < 3:
            return Leave(self._next(), version, group_id, (Leaving(self._id(view), None, None),))
        entries = []
        for _ in range(1 if self._crossed else rng.choice((0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4))):
            member_id = self._id(view)
            instance_id = self._instance(view, member_id)
            if not self._crossed and rng.random() < 0.3:
                member_id, instance_id = "", rng.choice([*self._instances, "i9", None])
            entries.append(Leaving(member_id, instance_id, rng.choice((None, "", "bye")) if version >= 5 else None))
        return Leave(self._next(), version, group_id, tuple(entries))

    def _commit(self, group_id: str, view: View | None) -> Commit:
        rng = self._rng
        number, version = self._next(), rng.randrange(1, 11)
        topic, partition, offset = rng.choice(_TOPICS), rng.randrange(2), number
        too_large = rng.random() < 0.1
        generation_id, member_id, instance_id = -1, "", None
        if rng.random() >= 0.12:
            member_id = self._id(view)
            instance_id = self._instance(view, member_id)
            if instance_id is not None:
                version = max(version, 7)
            generation_id = self._generation(view)
        retention_ms = rng.choice(_RETENTIONS_MS) if 2 <= version <= 4 else -1
        return Commit(
            number,
            version,
            group_id,
            generation_id,
            member_id,
            instance_id,
            topic,
            partition,
            offset,
            too_large,
            retention_ms,
        )

    def _txn_commit(self, group_id: str, view: View | None) -> TxnCommit:
        rng = self._rng
        number = self._next()
        producer_id, topic, partition = rng.choice(_PRODUCERS), rng.choice(_TOPICS), rng.randrange(2)
        if rng.random() < 0.25:
            return TxnCommit(number, rng.randrange(4), group_id, producer_id, 0, -1, "", None, topic, partition, number)
        member_id = self._id(view)
        instance_id = self._instance(view, member_id)
        generation_id = self._generation(view)
        return TxnCommit(
            number,
            rng.randrange(3, 6),
            group_id,
            producer_id,
            0,
            generation_id,
            member_id,
            instance_id,
            topic,
            partition,
            number,
        )

    def _txn_end(self) -> TxnEnd:
        return TxnEnd(self._next(), self._rng.choice(_PRODUCERS), self._rng.random() < 0.6)

    def _offset_delete(self, group_id: str) -> OffsetDelete:
        rng = self._rng
        every = [(topic, partition) for topic in sorted({*_TOPICS}) for partition in range(2)]
        chosen = rng.sample(every, rng.choice((0, 1, 1, 2, 3, 6)))
        return OffsetDelete(self._next(), group_id, tuple(chosen))

    def _delete_groups(self, group_id: str) -> DeleteGroups:
        """Of one group, or of several, some of which there never was."""
        rng = self._rng
        others = [one for one in ("g", "h", "nobody's") if one != group_id and rng.random() < 0.5]
        return DeleteGroups(self._next(), (group_id, *(others if rng.random() < 0.6 else ())))


def _only_time_is_missing(view: View, now_ms: int) -> bool:
    """Whether a join phase has every member and waits for its initial delay, or for a pending id."""
    return now_ms <= view.join_deadline_at_ms <= now_ms + _FAR_MS and all(one.waits_for_join for one in view.members)
