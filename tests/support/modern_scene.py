"""Histories of groups that have epochs, in the words of the protocol: heartbeats with their answers, and records.

As in `Scene`, instants are milliseconds from the start. A heartbeat takes effect when it is answered, unless `since`
says when it was handled. Partitions are numbers of one topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kardia.events import ALL_SHARDS, Event, Kind, broker_of
from kardia.observe import Observer, ObserverSettings
from kardia.observe.facts.groups_of_lane import OFFSETS_BROKER
from kardia.tables import Row
from tests.support.scene import SAME_IN_ANY_SPLIT, START, Known, Scene
from tests.support.stories import named

TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"

STABLE, UNREVOKED, UNRELEASED = 0, 1, 2

_NUMBERS = {
    "consumer": {"epoch": 3, "member": 5, "computed": 6, "target": 7, "current": 8},
    "share": {"epoch": 11, "member": 10, "computed": 12, "target": 13, "current": 14},
    "streams": {"epoch": 17, "member": 19, "computed": 20, "target": 21, "current": 22},
}


def _of(partitions: Iterable[int] | None) -> list[list[Any]] | None:
    return None if partitions is None else [[TOPIC, list(partitions)]] if partitions else []


class ModernScene(Scene):
    """One broker, one lane, one group of a newer protocol."""

    def __init__(
        self, *, protocol: str = "consumer", given_ms: int = 10_000, version: str = "", **options: Any
    ) -> None:
        """`given_ms`: session timeout by the configuration; -1: not known. `version`: release by the configuration."""
        super().__init__(**options)
        self.protocol = protocol
        self.settings = ObserverSettings(
            "test",
            version,
            consumer_session_ms=given_ms,
            share_session_ms=given_ms,
            streams_session_ms=given_ms,
        )

    # --- requests

    def beat(
        self,
        at: float,
        member: str,
        epoch: int,
        answered: int | None = None,
        *,
        owned: Iterable[int] | None = None,
        assigned: Iterable[int] | None = None,
        error: int = 0,
        instance: str = "",
        rebalance_ms: int = -1,
        topics: list[str] | None = None,
        interval_ms: int = 2_000,
        since: float | None = None,
        client: str = "",
        **detail: Any,
    ) -> None:
        """A heartbeat and its answer: `epoch` is the request's, `answered` the answer's, the same if not given."""
        said: dict[str, Any] = {
            "protocol": self.protocol,
            "member_epoch": epoch,
            "answered_epoch": epoch if answered is None else answered,
            "interval_ms": 0 if epoch < 0 else interval_ms,
            **detail,
        }
        lists = {"owned": _of(owned), "assigned": _of(assigned), "topics": topics}
        said |= {key: value for key, value in lists.items() if value is not None}
        if rebalance_ms > 0:
            said["rebalance_timeout_ms"] = rebalance_ms
        self._event(
            Kind.MODERN_HEARTBEAT,
            at,
            since=at if since is None else since,
            member_id=member,
            client_id=client or member,
            group_instance_id=instance,
            error_code=error,
            generation_id=int(said["answered_epoch"]),
            api_version=1,
            detail=said,
        )

    def beats(self, begin: float, end: float, epoch: int, *members: str, every: float = 2_000) -> None:
        """Heartbeats of members that are well, `end` exclusive."""
        at = begin
        while at < end:
            for member in members:
                self.beat(at, member, epoch)
            at += every

    def comes(
        self,
        at: float,
        member: str,
        answered: int,
        assigned: Iterable[int] = (),
        *,
        rebalance_ms: int = 8_000,
        **more: Any,
    ) -> None:
        """A member joins."""
        more = {"owned": (), "topics": ["t"]} | more
        self.beat(at, member, 0, answered, assigned=assigned, rebalance_ms=rebalance_ms, **more)

    def goes(self, at: float, member: str, epoch: int = -1, **more: Any) -> None:
        """A member leaves (-1), or leaves for a moment (-2)."""
        self.beat(at, member, epoch, topics=[], owned=(), **more)

    # --- records

    def record(self, at: float, what: str, member: str = "", **detail: Any) -> None:
        """A record of `__consumer_offsets`; without detail its tombstone."""
        tombstone = not detail
        instance = detail.pop("instance", "")
        said = {
            "record_type": _NUMBERS[self.protocol][what],
            "name": what,
            "protocol": self.protocol,
            "tombstone": tombstone,
            **{key: _of(value) if key in ("assigned", "revoking") else value for key, value in detail.items()},
        }
        self._from_topic(Kind.OTHER_RECORD, at, said, int(detail.get("epoch", -1)))
        event = self.events[-1]
        client = member if what == "member" and not tombstone else ""
        self.events[-1] = event._replace(
            member_id=member, group_instance_id=instance, client_id=client, client_host="10.0.0.9" if client else ""
        )

    def record_join(
        self, at: float, member: str, epoch: int, assigned: Iterable[int] = (), state: int = STABLE, **more: Any
    ) -> None:
        """The records of the operation in which a member joined."""
        more = {"rebalance_timeout_ms": 8_000, "topics": ["t"]} | more
        self.record(at, "member", member, **more)
        self.record(at, "epoch", epoch=epoch)
        self.record(at, "target", member, assigned=list(assigned))
        self.record(at, "computed", epoch=epoch)
        self.record(at, "current", member, epoch=epoch, state=state, assigned=list(assigned), revoking=[])

    def record_gone(self, at: float, member: str, epoch: int) -> None:
        """The records of the operation in which a member was taken out."""
        for what in ("current", "target", "member"):
            self.record(at, what, member)
        self.record(at, "epoch", epoch=epoch)

    def record_downgraded(self, at: float, generation: int, members: dict[str, int], *gone: str) -> None:
        """The records of the operation in which the last member of the consumer protocol goes, and the group becomes a
        classic one with these members: member id -> session timeout."""
        for what in ("current", "target", "member"):
            for one in (*members, *gone):
                self.record(at, what, one)
        self.record(at, "computed")
        self.record(at, "epoch")
        self.group_record(at, generation, members)

    def record_current(
        self, at: float, member: str, epoch: int, state: int, assigned: Iterable[int], revoking: Iterable[int] = ()
    ) -> None:
        """The record of what a member has come to."""
        self.record(at, "current", member, epoch=epoch, state=state, assigned=list(assigned), revoking=list(revoking))

    def records_read(self, to: float) -> None:
        """A collector tells up to when it has read all records."""
        self._from_collector(to, {})

    def configured(self, at: float, session_ms: int = -1, **of_groups: int) -> None:
        """A collector tells how the cluster is configured: `session_ms` of the protocol; of groups their own."""
        told = {
            "session_ms": {self.protocol: session_ms} if session_ms > 0 else {},
            "group_session_ms": {name: {self.protocol: ms} for name, ms in of_groups.items()},
        }
        self._from_collector(at, told)

    def _from_collector(self, at: float, told: dict[str, Any]) -> None:
        now = START + at
        self.position += 100
        place = (f"{OFFSETS_BROKER}/offsets/all", self.position - 100, self.position)
        self.events.append(Event(int(Kind.TICK), ALL_SHARDS, *place, now, now, now, now, detail=told))

    # --- what is known

    def known(self) -> Known:
        """Feed everything, and ask; cut at its ticks the same must be said."""
        whole = self._fed([self.events])
        if len({broker_of(event.source) for event in self.events} - {OFFSETS_BROKER}) != 1:
            return whole
        parts = self.known_live()
        for table in SAME_IN_ANY_SPLIT:
            assert parts.rows[table] == whole.rows[table], table
        return whole

    def known_live(self) -> Known:
        """What is known where it is read in pieces, cut at its ticks: requests wait for their records."""
        steps, begin = [], 0
        for place, event in enumerate(self.events, 1):
            if event.kind == Kind.TICK or place == len(self.events):
                steps.append(self.events[begin:place])
                begin = place
        return self._fed(steps)

    def _fed(self, steps: list[Any]) -> Known:
        observer = Observer(self.settings)
        rows: dict[str, list[Row]] = {}
        for step in steps:
            for table, some in observer.step(step).items():
                rows.setdefault(table, []).extend(some)
        for table, some in observer.finish().items():
            rows[table].extend(some)
        return Known(rows, observer)


def since_start(at_ms: int | None) -> int | None:
    """An instant of a row, from the start of the scene."""
    return None if at_ms is None else at_ms - int(START)


def pair(**options: Any) -> ModernScene:
    """Members a and b at epoch 2, settled: a has partition 0, b has 1. Last heard 4,100 and 4,200."""
    scene = ModernScene(**options)
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.comes(2_000, "b", 2)
    scene.beat(3_010, "a", 1, 1, assigned=(0,))
    scene.beat(3_050, "a", 1, 2, owned=(0,))
    scene.beat(4_000, "b", 2, 2, assigned=(1,))
    scene.beat(4_100, "b", 2, 2, owned=(1,))
    scene.beat(4_200, "a", 2)
    return scene


def health(known: Known, member: str) -> dict[str, Any]:
    """The last row of health of a member."""
    return [row for row in named("health", known.rows["health"]) if row["member_id"] == member][-1]


def rebalances(known: Known) -> list[tuple[int, int | None, str, str | None]]:
    """(epoch, completed at, trigger, member) of each, by its begin."""
    return [
        (row["generation_after"], since_start(row["completed_at_ms"]), row["trigger"], row["trigger_member_id"])
        for row in known.rebalances()
    ]


def both(given_ms: int = -1) -> ModernScene:
    """The same as `pair`, with its records."""
    scene = ModernScene(given_ms=given_ms)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.record_join(2_000, "b", 2, state=UNRELEASED)
    scene.comes(2_010, "b", 2, since=2_000)
    scene.record_current(3_000, "a", 1, UNREVOKED, (0,), (1,))
    scene.beat(3_010, "a", 1, 1, assigned=(0,), since=3_000)
    scene.record_current(3_050, "a", 2, STABLE, (0,))
    scene.beat(3_060, "a", 1, 2, owned=(0,), since=3_050)
    scene.record_current(4_000, "b", 2, STABLE, (1,))
    scene.beat(4_010, "b", 2, 2, assigned=(1,), since=4_000)
    scene.beat(4_100, "b", 2, owned=(1,))
    scene.beat(4_200, "a", 2)
    return scene
