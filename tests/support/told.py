"""Logs of brokers as a test tells them, sentence by sentence, and what the observer says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.dialects.server_log import ServerLog
from ingest.stamps import zone_named
from kardia.events import Event, Kind, shard_of
from kardia.instants import to_rfc3339
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from tests.support.restored import restored
from tests.support.scene import SAME_IN_ANY_SPLIT
from tests.support.stories import named, standing

SETTINGS = ObserverSettings("test")
START = 1_795_000_000_000
A, B, C = (f"{name}-00000000-0000-4000-8000-00000000000{number}" for number, name in enumerate("abc", 1))


class Told:
    """Logs of some brokers and records of the topic, with what the observer says of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._dialect = ServerLog(zone_named("UTC"))
        self._end = 0

    def say(self, at_ms: int, sentence: str, broker: int = 1) -> None:
        """A sentence of the coordinator in the server.log of a broker, about group `g` where it is about one."""
        stamp = str(to_rfc3339(START + at_ms)).replace("T", " ").replace(".", ",").removesuffix("Z")
        line = f"[{stamp}] INFO [GroupCoordinator {broker}]: {sentence} (kafka.coordinator.group.GroupCoordinator)"
        found = self._dialect.read(line.encode(), f"broker-{broker}/server/x", self._end, self._end + len(line))
        self._end += len(line)
        assert isinstance(found, Event), (sentence, found)
        self.events.append(found)

    def prepares(self, at_ms: int, generation: int, reason: str = "", broker: int = 1) -> None:
        """The begin of a rebalance."""
        if reason:
            words = f" in state PreparingRebalance with old generation {generation}"
            self.say(at_ms, f"Preparing to rebalance group g{words} (__consumer_offsets-1) (reason: {reason})", broker)
        else:  # 2.0
            self.say(at_ms, f"Preparing to rebalance group g with old generation {generation} (__consumer_offsets-1)")

    def joins(self, at_ms: int, generation: int, member: str = A, words: str = "not provided", broker: int = 1) -> None:
        """A rebalance that begins with somebody who joins."""
        reason = f"Adding new member {member} with group instance id None; client reason: {words}"
        self.prepares(at_ms, generation, reason, broker)

    def becomes(self, at_ms: int, generation: int, members: int, leader: str = A, broker: int = 1) -> None:
        """The end of a rebalance: a generation, and its assignment 10 ms later."""
        self.say(
            at_ms, f"Stabilized group g generation {generation} (__consumer_offsets-1) with {members} members", broker
        )
        counted = f"The group has {members} members, 0 of which are static."
        self.say(
            at_ms + 10,
            f"Assignment received from leader {leader} for group g for generation {generation}. {counted}",
            broker,
        )

    def fails(self, at_ms: int, member: str, broker: int = 1) -> None:
        """A session that is over."""
        self.say(at_ms, f"Member {member} in group g has failed, removing it from the group", broker)

    def expires(self, at_ms: int, member: str, generation: int) -> None:
        """The same with the rebalance that it begins."""
        self.fails(at_ms, member)
        self.prepares(at_ms, generation, f"removing member {member} on heartbeat expiration")

    def record(
        self,
        at_ms: int,
        generation: int,
        *members: str,
        tombstone: bool = False,
        instances: Mapping[str, str] | None = None,
    ) -> None:
        """A record of the group; its members have 10 s and 60 s, the first leads. `instances`: their static ids."""
        entries = [[one, (instances or {}).get(one, ""), one[0], "/10.0.0.9", 10_000, 60_000, []] for one in members]
        detail: dict[str, Any] = {"generation": generation, "members": entries, "leader": members[0] if members else ""}
        detail |= {"protocol_type": "consumer", "tombstone": tombstone}
        at, shard = float(START + at_ms), shard_of("g", 50)
        self._end += 1
        place = (f"offsets-topic/offsets/{shard}", self._end, self._end + 1, at, at, at, at)
        self.events.append(
            Event(int(Kind.GROUP_RECORD), shard, *place, group_id="g", generation_id=generation, detail=detail)
        )

    def takes(self, at_ms: int, broker: int, epoch: int, *, java: bool = False) -> None:
        """A broker takes the shard of `g`, and has loaded one member of generation 1 from it 50 ms later."""
        shard, count = shard_of("g", 50), "9ms where 1ms was spent in the scheduler."
        if java:
            self.say(
                at_ms, f"Scheduling loading of metadata from __consumer_offsets-{shard} with epoch {epoch}", broker
            )
            self.say(at_ms + 50, "Loaded classic group g with 1 members.", broker)
            words = f"Finished loading of metadata from __consumer_offsets-{shard} with epoch {epoch} in {count}"
        else:
            self.say(at_ms, f"Elected as the group coordinator for partition {shard} in epoch {epoch}", broker)
            self.say(at_ms + 50, "Loading group metadata for g with generation 1", broker)
            words = f"Finished loading offsets and group metadata from __consumer_offsets-{shard} in 9 milliseconds"
        self.say(at_ms + 51, words, broker)

    def gap(self, from_ms: int, to_ms: int, broker: int = 1) -> None:
        """Lines of a broker's server.log are lost."""
        at, detail = float(START + to_ms), {"from_ms": START + from_ms, "to_ms": START + to_ms, "reason": "lost_lines"}
        self._end += 1
        place = (f"broker-{broker}/server/x", self._end, self._end + 1, at, at, at, at)
        self.events.append(Event(int(Kind.GAP), -1, *place, detail=detail))

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """What stands after all of it; of `transitions` every row."""
        said = run([[*self.events, *ticks_of(self.events)]])
        self.observer_rows = said
        return {
            table: named(table, rows) if table == "transitions" else standing(table, rows)
            for table, rows in said.items()
            if table in SAME_IN_ANY_SPLIT
        }

    def ends(self) -> dict[str, tuple[int, str, str]]:
        """Member -> when it ended, why, and how sure that is."""
        rows = [row for row in self.rows()["members"] if row["ended_at_ms"] is not None]
        return {row["member_id"]: (row["ended_at_ms"] - START, row["end_cause"], row["certainty"]) for row in rows}

    def states(self) -> list[tuple[int, str, str]]:
        """States of the group, since when, and how sure each is."""
        rows = [row for row in self.rows()["transitions"] if row["entity"] == "group"]
        return [(row["at_ms"] - START, row["to_state"], row["certainty"]) for row in rows]


def run(steps: list[list[Event]], *, restarts: bool = False) -> dict[str, list[Row]]:
    """What an observer says of these steps; `restarts`: with its state written down and read back after each."""
    observer, rows = Observer(SETTINGS), dict[str, list[Row]]()
    for step in steps:
        for table, some in observer.step(step).items():
            rows.setdefault(table, []).extend(some)
        if restarts:
            observer = restored(observer)
    for table, some in observer.finish().items():
        rows.setdefault(table, []).extend(some)
    return rows


def ticks_of(events: list[Event]) -> list[Event]:
    """A tick of each log up to a second after the last event; of the topic where there is no log."""
    sources = sorted({event.source for event in events})
    logs = [source for source in sources if "/server/" in source] or sources[:1]
    at = max((event.logged_at_ms for event in events), default=0.0) + 1_000
    end = max((event.end for event in events), default=0)
    return [Event(int(Kind.TICK), -1, source, 0, end, at, at, at, at, detail={}) for source in logs]
