"""Rows of tables of a large fleet (log lines are in `bench.fleet`): 10,000 groups, 100,000 members, a day of history of
a few groups, and what a second adds. Rows are in the shapes of `kardia.tables`; the instants are given by the caller.

All members are well, sampled every 5 s as the observer does, except a few whose session is running out: they are in
every batch. In each live batch one group loses a member and rebalances. Groups have 2 to 18 members, 10 on average.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kardia.events import DEFAULT_LANES, shard_of
from kardia.tables import TABLES, Row
from spark_jobs.schemas import to_arrow

CLUSTER, BROKER = "bench", "b1:9092"
SIZES = (2, 4, 6, 8, 10, 10, 12, 14, 16, 18)
"""Members of the groups in turn."""

SAMPLE_EVERY_S = 5
"""How often the observer writes a member that is well."""

SESSION_MS, POLL_MS = 45_000, 300_000
"""Timeouts that the Java client asks for by default."""

TROUBLED_EVERY = 1_000
"""One member of so many is about to be evicted: its health is in every batch, and it is foretold."""

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
REBALANCE_EVERY_MS = 900_000
"""A group with history loses a member that often, and another one comes in its place."""

AT = TABLES["health"].names.index("at_ms")

Rows = dict[str, list[Row]]

_ZERO: dict[str, Any] = {"string": "", "long": 0, "int": 0, "double": 0.0, "bool": False}
_PATTERNS: dict[str, dict[str, Any]] = {
    name: {column.name: None if column.nullable else _ZERO[column.type] for column in table.columns}
    | {"cluster_id": CLUSTER, "certainty": "exact"}
    for name, table in TABLES.items()
}


def row(table: str, group_id: str, at_ms: int, **given: Any) -> Row:
    """A row of a table; what is not given is null, or zero where it must not be."""
    about = {"group_id": group_id, "shard": shard_of(group_id), "at_ms": at_ms, "known_at_ms": at_ms + 5}
    return tuple((_PATTERNS[table] | about | given).values())


class Crowd:
    """Groups and members; the same seed gives the same ones."""

    def __init__(self, groups: int, with_history: int, hours: int = 24, seed: int = 7) -> None:
        """Name everybody; some groups have a history of some hours."""
        self._random = random.Random(seed)
        self.past_ms = hours * HOUR_MS
        self.groups = [f"group-{number}" for number in range(groups)]
        self.with_history = self.groups[5 : 5 + with_history]
        """These have a past."""
        self.members = {
            group: [self._new_id(group) for _ in range(SIZES[number % len(SIZES)])]
            for number, group in enumerate(self.groups)
        }
        self.size = sum(map(len, self.members.values()))
        self._generation = dict.fromkeys(self.groups, 1)
        self._joined_ms: dict[str, int] = {}
        self._seq = dict.fromkeys(self.groups, 3)

    def _new_id(self, group: str) -> str:
        return f"app-{group}-{self._random.getrandbits(128):032x}"

    # --- the present ------------------------------------------------------------------------------------------------

    def present(self, at_ms: int) -> Rows:
        """Everybody as found at an instant: groups that have been stable for a day, members with their health."""
        rows: Rows = defaultdict(list)
        since_ms = at_ms - DAY_MS - HOUR_MS
        for group, members in self.members.items():
            if group not in self.with_history:
                self._formed(rows, group, since_ms)
            for number, member in enumerate(members):
                if group not in self.with_history:
                    rows["members"].append(self._life(group, member, since_ms))
                heard_ms = at_ms - (number * 977) % 3_000
                rows["health"].append(self._health(group, member, at_ms, heard_ms))
        for group, member in self._troubled():
            rows["predictions"].append(self.foretold(group, member, at_ms, at_ms + SESSION_MS // 4))
        return rows | {"progress": self.reached(at_ms)}

    def samples(self, at_ms: int) -> list[pa.Table]:
        """Health as the batches of `SAMPLE_EVERY_S` seconds bring it, each as of `at_ms`; `moved` brings it further."""
        found: list[list[Row]] = [[] for _ in range(SAMPLE_EVERY_S)]
        number = 0
        for group, members in self.members.items():
            for member in members:
                number += 1
                found[number % SAMPLE_EVERY_S].append(self._health(group, member, at_ms, at_ms - number % 3_000))
        for group, member in self._troubled():
            for rows in found:
                rows.append(self._health(group, member, at_ms, at_ms - SESSION_MS * 3 // 4, "imminent"))
        return [to_arrow(TABLES["health"], rows, -1) for rows in found]

    def second(self, at_ms: int, number: int) -> Rows:
        """What a live batch brings beside the samples: one group loses a member and rebalances."""
        rows: Rows = defaultdict(list)
        group = self.groups[-1 - number % max(1, len(self.groups) - len(self.with_history))]
        self._replace(rows, group, at_ms - 500)
        return rows | {"progress": self.reached(at_ms)}

    # --- the past ---------------------------------------------------------------------------------------------------

    def hours(self, until_ms: int) -> Iterator[Rows]:
        """The time before an instant, hour by hour: samples, rebalances and evictions of the groups with history."""
        began_ms = until_ms - self.past_ms
        for hour in range(self.past_ms // HOUR_MS):
            rows: Rows = defaultdict(list)
            from_ms = began_ms + hour * HOUR_MS
            for group in self.with_history:
                if hour == 0:
                    self._formed(rows, group, from_ms)
                    rows["members"] += [self._life(group, member, from_ms) for member in self.members[group]]
                for at_ms in range(from_ms, from_ms + HOUR_MS, SAMPLE_EVERY_S * 1_000):
                    if (at_ms - began_ms) % REBALANCE_EVERY_MS == REBALANCE_EVERY_MS // 2:
                        self._replace(rows, group, at_ms)
                    rows["health"] += [
                        self._health(group, member, at_ms + 1_000, at_ms) for member in self.members[group]
                    ]
            rows["health"].sort(key=itemgetter(AT))
            yield rows | {"progress": self.reached(from_ms + HOUR_MS)}

    # --- parts ------------------------------------------------------------------------------------------------------

    def _troubled(self) -> list[tuple[str, str]]:
        everybody = [(group, member) for group, members in self.members.items() for member in members]
        return everybody[TROUBLED_EVERY // 2 :: TROUBLED_EVERY]

    def _formed(self, rows: Rows, group: str, at_ms: int) -> None:
        for seq, (before, after, cause) in enumerate(
            (
                ("Empty", "PreparingRebalance", "member_joined"),
                ("PreparingRebalance", "CompletingRebalance", "joined"),
                ("CompletingRebalance", "Stable", "synced"),
            ),
            start=1,
        ):
            rows["transitions"].append(
                row(
                    *("transitions", group, at_ms),
                    seq=seq,
                    entity="group",
                    from_state=before,
                    to_state=after,
                    cause=cause,
                    generation_id=1,
                )
            )
        rows["rebalances"].append(self._rebalance(group, at_ms, 0, "member_joined", self.members[group][0]))

    def _replace(self, rows: Rows, group: str, at_ms: int) -> None:
        """A member is evicted, another comes, the group rebalances."""
        generation, members = self._generation[group], self.members[group]
        place = generation % len(members)
        gone, came = members[place], self._new_id(group)
        rows["members"] += [
            self._life(group, gone, self._joined_ms.pop(gone), at_ms),
            self._life(group, came, at_ms + 10),
        ]
        members[place] = came
        moves = (
            ("member", gone, "Present", "Absent", "session_expired"),
            ("group", None, "Stable", "PreparingRebalance", "session_expired"),
            ("member", came, "Absent", "Present", "member_joined"),
            ("group", None, "PreparingRebalance", "CompletingRebalance", "joined"),
            ("group", None, "CompletingRebalance", "Stable", "synced"),
        )
        for number, (entity, member, before, after, cause) in enumerate(moves):
            self._seq[group] += 1
            rows["transitions"].append(
                row(
                    *("transitions", group, at_ms + number * 10),
                    seq=self._seq[group],
                    entity=entity,
                    member_id=member,
                    from_state=before,
                    to_state=after,
                    cause=cause,
                    evidence="timer",
                    generation_id=generation + 1,
                )
            )
        rows["rebalances"].append(self._rebalance(group, at_ms, generation, "session_expired", gone))
        self._generation[group] = generation + 1

    def _life(self, group: str, member: str, joined_ms: int, ended_ms: int | None = None) -> Row:
        over: dict[str, Any] = {} if ended_ms is None else {"ended_at_ms": ended_ms, "end_cause": "session_expired"}
        if ended_ms is None:
            self._joined_ms[member] = joined_ms
        return row(
            *("members", group, joined_ms if ended_ms is None else ended_ms),
            member_id=member,
            protocol="classic",
            client_id=f"app-{group}",
            client_host="/10.1.2.3",
            client_software_name="apache-kafka-java",
            client_software_version="4.1.2",
            broker=BROKER,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=POLL_MS,
            joined_at_ms=joined_ms,
            **{"generation_first": self._generation[group], **over},
        )

    def _health(self, group: str, member: str, at_ms: int, heard_ms: int, status: str = "ok") -> Row:
        silent = f"silent for {at_ms - heard_ms} ms, session timeout {SESSION_MS} ms"
        return row(
            *("health", group, at_ms),
            member_id=member,
            client_id=f"app-{group}",
            group_state="Stable",
            generation_id=self._generation[group],
            session_timeout_ms=SESSION_MS,
            poll_interval_ms=POLL_MS,
            last_heard_at_ms=heard_ms,
            session_deadline_at_ms=heard_ms + SESSION_MS,
            last_poll_at_ms=heard_ms,
            poll_evidence="commit",
            poll_error_bound_ms=500,
            poll_deadline_at_ms=heard_ms + POLL_MS,
            status=status,
            reasons=[] if status == "ok" else [silent],
            pending_members=0,
            polling="polls",
        )

    def _rebalance(self, group: str, at_ms: int, generation: int, trigger: str, member: str) -> Row:
        size = len(self.members[group])
        waited = {"member_id": member, "client_id": f"app-{group}", "waited_ms": 400, "joined": True}
        return row(
            *("rebalances", group, at_ms),
            started_at_ms=at_ms,
            joined_at_ms=at_ms + 400,
            completed_at_ms=at_ms + 450,
            known_at_ms=at_ms + 455,
            trigger=trigger,
            trigger_member_id=member,
            generation_before=generation,
            generation_after=generation + 1,
            members_before=size,
            members_after=size,
            stragglers=[waited],
            leader_member_id=self.members[group][0],
            protocol_name="range",
            member_seconds_lost=4,
        )

    def foretold(self, group: str, member: str, at_ms: int, deadline_ms: int) -> Row:
        """That the session of a member runs out."""
        return row(
            *("predictions", group, at_ms),
            member_id=member,
            client_id=f"app-{group}",
            kind="session",
            predicted_at_ms=at_ms,
            deadline_at_ms=deadline_ms,
            outcome="open",
        )

    def calm(self) -> list[str]:
        """Groups in which nobody is in danger."""
        troubled = {group for group, _ in self._troubled()}
        return [group for group in self.groups if group not in troubled]

    def danger(self, group: str, at_ms: int) -> tuple[Row, Row]:
        """The session of the first member of a group runs out: its row of `health`, and of `predictions`."""
        member, heard_ms = self.members[group][0], at_ms - SESSION_MS * 3 // 4
        health = self._health(group, member, at_ms, heard_ms, "imminent")
        return health, self.foretold(group, member, at_ms, heard_ms + SESSION_MS)

    def reached(self, at_ms: int) -> list[Row]:
        """Rows of `progress`: everything is there up to an instant."""
        return [
            row(
                *("progress", "", at_ms),
                shard=-1,
                lane=lane,
                source=f"{BROKER}/request",
                complete_to_ms=at_ms,
                events=self.size // 2,
                lines=self.size // 2,
            )
            for lane in range(DEFAULT_LANES)
        ]


def moved(rows: pa.Table, by_ms: int, batch_id: int) -> pa.Table:
    """Rows with all their instants later, as another batch."""
    columns = [
        pc.add(column, by_ms)
        if name.endswith("at_ms")
        else pa.array([batch_id] * len(rows), pa.int64())
        if name == "batch_id"
        else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)
