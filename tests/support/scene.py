"""Histories in the words of the protocol: a scene makes the events that a broker's log would give, and asks about them.

Instants are milliseconds from the start of the scene. `at` is when the request was answered; a JoinGroup also says
since when it waited. `known()` feeds everything and returns what the tables say by then.
"""

from __future__ import annotations

from typing import Any

from kardia.events import ALL_SHARDS, Event, Kind, broker_of, shard_of
from kardia.observe import Observer, ObserverSettings
from kardia.observe.facts.groups_of_lane import OFFSETS_BROKER
from kardia.tables import Row
from tests.support.stories import named, standing

START = 1_800_000_000_000.0
SCALA_CONNECTION = "10.0.0.1:9092-10.0.0.9:4000-1"
JAVA_CONNECTION = "10.0.0.1:9092-10.0.0.9:4000-2-1"


SAME_IN_ANY_SPLIT = ("transitions", "rebalances", "members", "predictions", "rejected")
"""Tables that do not depend on how the events came; samples of health and progress do."""


class Scene:
    """One broker, one lane, its log from the first line on."""

    def __init__(
        self, group: str = "g", *, coordinator: str = "java", software: str = "apache-kafka-java/4.1.1"
    ) -> None:
        self.group = group
        self.software = software
        self.connection = JAVA_CONNECTION if coordinator == "java" else SCALA_CONNECTION
        self.source = "10.0.0.1:9092/request/one"
        self.events: list[Event] = []
        self.position = 0
        self.generation = 0
        self.ticked = 0
        self.release = ""
        """Oldest release whose text lines look like its JoinGroups; empty for JSON lines."""
        self.hosts: dict[str, str] = {}
        """client.id -> address, where it is not everybody's."""

    def at_broker(self, number: int) -> None:
        """What follows is asked of another broker, and stands in its log."""
        address = f"10.0.0.{number}:9092"
        self.source = f"{address}/request/one"
        self.connection = address + self.connection[self.connection.index("-") :]

    def connects(self, number: int) -> None:
        """What follows comes by another connection: `number` is the broker's own count of them."""
        self.connection = f"{self.connection.rsplit('-', 1)[0]}-{number}"

    def _event(self, kind: Kind, at: float, **values: Any) -> Event:
        waited_from = values.pop("since", None)
        arrived = START + (at if waited_from is None else waited_from)
        client = values.get("client_id", values.get("member_id", "") or "c")
        defaults: dict[str, Any] = {
            "group_id": self.group,
            "client_id": client,
            "client_host": self.hosts.get(client, "10.0.0.9"),
            "connection": self.connection,
            "software": self.software,
            "api_version": 5,
        }
        event = Event(
            int(kind),
            shard_of(self.group),
            self.source,
            self.position,
            self.position + 100,
            START + at,
            arrived,
            arrived,
            START + at,
            **{**defaults, **values},
        )
        self.position += 100
        self.events.append(event)
        return event

    # --- what clients do

    def member_id_required(self, at: float, handed_out: str, *, session_ms: int = 10_000) -> None:
        """A first JoinGroup, answered 79 with a new id."""
        self._event(
            Kind.JOIN,
            at,
            error_code=79,
            detail={"session_timeout_ms": session_ms, "rebalance_timeout_ms": 60_000, "assigned_member_id": handed_out},
        )

    def joined(
        self,
        at: float,
        generation: int,
        members: dict[str, float],
        *,
        leader: str = "",
        session_ms: int | dict[str, int] = 10_000,
        rebalance_ms: int | dict[str, int] = 60_000,
        first: tuple[str, ...] = (),
        instances: dict[str, str] | None = None,
        reason: str = "",
        assignor: str = "range",
        absent: tuple[str, ...] = (),
    ) -> None:
        """The join phase ends: `members` maps each to when its JoinGroup was handled; `first`: those new by id "".
        `absent`: static members that are listed without having joined."""
        self.generation = generation
        leader = leader or next(iter(members))
        instances = instances or {}
        listed = [[member, instances.get(member, "")] for member in (*members, *absent)]
        for member, since in members.items():
            session = session_ms if isinstance(session_ms, int) else session_ms[member]
            rebalance = rebalance_ms if isinstance(rebalance_ms, int) else rebalance_ms[member]
            self._event(
                Kind.JOIN,
                at,
                since=since,
                member_id="" if member in first else member,
                client_id=member,
                group_instance_id=instances.get(member, ""),
                generation_id=generation,
                detail={
                    "session_timeout_ms": session,
                    "rebalance_timeout_ms": rebalance,
                    "protocol_type": "consumer",
                    "assigned_member_id": member,
                    "leader": leader,
                    "protocol_name": assignor,
                    "members": listed if member == leader else [],
                    "reason": reason,
                    **({"release": self.release} if self.release else {}),
                },
            )

    def replaced(
        self, at: float, member: str, instance: str, *, session_ms: int = 10_000, rebalance_ms: int = 60_000
    ) -> None:
        """A static member comes back under a new id and is answered with the generation that is there."""
        detail = {
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": rebalance_ms,
            "protocol_type": "consumer",
            "assigned_member_id": member,
            "members": [],
            **({"release": self.release} if self.release else {}),
        }
        self._event(
            Kind.JOIN, at, client_id=member, group_instance_id=instance, generation_id=self.generation, detail=detail
        )

    def synced(
        self,
        at: float,
        leader: str,
        *followers: str,
        since: float | None = None,
        partitions: dict[str, int] | None = None,
    ) -> None:
        """The leader's assignment is stored and everybody who waits is answered; `partitions`: how many each gets."""
        entries = [[member, [["t", list(range(count))]]] for member, count in (partitions or {leader: 0}).items()]
        for member in (leader, *followers):
            self._event(
                Kind.SYNC,
                at,
                since=since if since is not None else at,
                member_id=member,
                generation_id=self.generation,
                detail={"assignments": entries if member == leader else []},
            )

    def heartbeat(
        self,
        at: float,
        member: str,
        *,
        error: int = 0,
        generation: int | None = None,
        since: float | None = None,
        connection: str = "",
        throttle_ms: float = 0.0,
        group: str = "",
    ) -> None:
        """A heartbeat and its answer; `since`: when it arrived, if the broker kept it waiting; `group`: another
        one than the scene's."""
        self._event(
            Kind.HEARTBEAT,
            at,
            since=at if since is None else since,
            member_id=member,
            error_code=error,
            generation_id=self.generation if generation is None else generation,
            group_id=group or self.group,
            connection=connection or self.connection,
            detail={"throttle_ms": throttle_ms} if throttle_ms else None,
        )

    def heartbeats(self, begin: float, end: float, *members: str, every: float = 3_000, error: int = 0) -> None:
        """Heartbeats of several members at a steady pace, `end` exclusive."""
        at = begin
        while at < end:
            for member in members:
                self.heartbeat(at, member, error=error)
            at += every

    def commit(self, at: float, member: str, offset: int, *, error: int = 0, since: float | None = None) -> None:
        """An OffsetCommit of one partition."""
        self._event(
            Kind.COMMIT,
            at,
            since=since if since is not None else at,
            member_id=member,
            error_code=error,
            generation_id=self.generation,
            detail={"offsets": [["t", 0, offset, error]]},
        )

    def fetch(self, at: float, client: str, *, data: int = 0) -> None:
        """A FETCH of a client."""
        self._event(Kind.FETCH, at, group_id="", client_id=client, detail={"bytes": data})

    def telemetry(self, at: float, member: str, last_poll_s: float | None, *, client: str = "") -> None:
        """Metrics that a client pushed; `client`: it is another one that says so."""
        detail: dict[str, Any] = {"bytes": 186, "compression": 4, "client_instance_id": "i"}
        if last_poll_s is not None:
            detail["last_poll_s"] = last_poll_s
        self._event(Kind.TELEMETRY, at, member_id=member, client_id=client or member, detail=detail)

    def leave(self, at: float, member: str, *, reason: str = "", instance: str = "", client: str | None = None) -> None:
        """A LeaveGroup with one entry, accepted."""
        self._event(
            Kind.LEAVE,
            at,
            client_id=client if client is not None else member,
            connection=self.connection if client is None else "10.0.0.1:9092-10.9.9.9:1-1-1",
            detail={"members": [[member, instance, reason, 0]]},
        )

    def empty_record(self, at: float, generation: int) -> None:
        """The GroupMetadata record of a group without members."""
        self._from_topic(Kind.GROUP_RECORD, at, {"generation": generation, "members": []}, generation)

    def group_record(self, at: float, generation: int, members: dict[str, int]) -> None:
        """The GroupMetadata record written with the leader's assignment: member id -> session timeout."""
        entries = [[member, "", member, "/10.0.0.9", session_ms, 60_000, []] for member, session_ms in members.items()]
        detail = {"generation": generation, "members": entries, "leader": next(iter(members))}
        self._from_topic(Kind.GROUP_RECORD, at, detail, generation)

    def deleted(self, at: float) -> None:
        """The group's tombstone."""
        self._from_topic(Kind.GROUP_RECORD, at, {"tombstone": True}, -1)

    def _from_topic(self, kind: Kind, at: float, detail: dict[str, Any], generation: int) -> None:
        self._event(
            kind, at, detail=detail, generation_id=generation, client_id="", client_host="", connection="", software=""
        )
        event = self.events[-1]
        self.events[-1] = event._replace(source=f"offsets-topic/offsets/{event.shard}")

    def loaded(self, at: float, *, known: float | None = None) -> None:
        """A line of server.log: the coordinator has loaded the group's partition; `known`: when it was read."""
        self._event(
            Kind.COORDINATOR_LINE,
            at,
            group_id="",
            client_id="",
            client_host="",
            connection="",
            software="",
            detail={"what": "partition_loaded", "reason": ""},
        )
        event = self.events[-1]
        source = event.source.replace("/request/", "/server/")
        self.events[-1] = event._replace(source=source, logged_at_ms=START + (at if known is None else known))

    def group_loaded(self, at: float, count: int) -> None:
        """A line of server.log: the coordinator has loaded the group, with so many members."""
        self._said(at, "group_loaded", -1, "")
        event = self.events[-1]
        self.events[-1] = event._replace(detail={"what": "group_loaded", "reason": f"{count} members"})

    def elected(self, at: float, epoch: int) -> None:
        """A line of server.log: the broker takes the group's partition, with an epoch of its leaders."""
        self._said(at, "partition_elected", epoch, "")
        self.events[-1] = self.events[-1]._replace(group_id="")

    def prepares(self, at: float, old_generation: int, reason: str, *named: str) -> None:
        """A line of server.log: the coordinator began to prepare a rebalance, why, and whom it names."""
        detail = {"what": "preparing_rebalance", "reason": reason, "members": list(named[1:])}
        who = {"client_id": "", "client_host": "", "connection": "", "software": ""}
        member = named[0] if named else ""
        self._event(Kind.COORDINATOR_LINE, at, member_id=member, generation_id=old_generation, detail=detail, **who)
        event = self.events[-1]
        self.events[-1] = event._replace(source=event.source.replace("/request/", "/server/"))

    def failed(self, at: float, member: str) -> None:
        """A line of server.log: a member has failed, its session timed out."""
        self._said(at, "member_failed", -1, member)

    def gives_back(self, at: float, taker: str, member: str) -> None:
        """A line of server.log: who took a seat could not be stored, and the member before has it again."""
        self._said(at, "static_reverted", -1, taker, member)

    def takes_seat(self, at: float, member: str) -> None:
        """A line of server.log: somebody took the seat of a member in a Stable group."""
        self._said(at, "static_replaced", -1, member)

    def emptied(self, at: float, generation: int) -> None:
        """A line of server.log: the group is empty, in this generation."""
        self._said(at, "group_empty", generation, "")

    def not_joined(self, at: float, *members: str) -> None:
        """A line of server.log: members that had not joined when the join phase ended."""
        self._said(at, "removed_not_joined", -1, *members)

    def skipped(self, at: float) -> None:
        """A line of server.log: a timer ran out of a group that the broker no longer holds."""
        self._said(at, "rebalance_skipped", -1, "")

    def _said(self, at: float, what: str, generation: int, member: str, *members: str) -> None:
        who = {"client_id": "", "client_host": "", "connection": "", "software": ""}
        detail = {"what": what, "reason": "", "members": list(members)}
        self._event(Kind.COORDINATOR_LINE, at, member_id=member, generation_id=generation, detail=detail, **who)
        event = self.events[-1]
        self.events[-1] = event._replace(source=event.source.replace("/request/", "/server/"))

    # --- what the collector says

    def tick(
        self,
        at: float,
        *,
        last_line: float | None = None,
        first_line: float | None = None,
        silences: list[list[float]] | None = None,
        sent: int | None = None,
        slow: list[list[float]] | None = None,
        lines: int = 0,
    ) -> None:
        """Everything up to `at` has been read; `sent`: events that the collector sent since the last tick; `slow`:
        windows in which the broker was; `lines`: those of the log since the last tick, of whatever kind."""
        detail: dict[str, Any] = {"lines": lines} if lines else {}
        if sent is not None:
            detail |= {"events": sent, "previous_end": self.ticked}
            self.ticked = self.position
        if last_line is not None:
            detail["last_line_at_ms"] = START + last_line
        if first_line is not None:
            detail["first_line_at_ms"] = START + first_line
        if silences:
            detail["silences"] = [[START + begin, START + end] for begin, end in silences]
        if slow:
            detail["slow"] = [[START + begin, *times] for begin, *times in slow]
        self._sign(Kind.TICK, at, detail)

    def gap(self, begin: float, end: float) -> None:
        """A part of the log is lost."""
        detail = {"from_ms": START + begin, "to_ms": START + end, "reason": "lost_lines"}
        self._sign(Kind.GAP, end, detail)

    def _sign(self, kind: Kind, at: float, detail: dict[str, Any]) -> None:
        instants = (START + at,) * 4
        self.events.append(
            Event(int(kind), ALL_SHARDS, self.source, self.position, self.position, *instants, detail=detail)
        )

    # --- what is known

    def known(self) -> Known:
        """Feed everything, and ask. However the events of one broker are cut into steps, the same must be said."""
        observer = Observer(ObserverSettings("test"))
        rows = observer.step(self.events)
        for table, more in observer.finish().items():
            rows[table].extend(more)
        if len({broker_of(event.source) for event in self.events} - {OFFSETS_BROKER}) == 1:
            live = self.known_step_by_step().rows
            for table in SAME_IN_ANY_SPLIT:
                assert live[table] == rows[table], table
        return Known(rows, observer)

    def known_step_by_step(self) -> Known:
        """The same, with one step for each tick, as events come live."""
        observer = Observer(ObserverSettings("test"))
        rows: dict[str, list[Row]] = {}
        begin = 0
        for place, event in enumerate(self.events, 1):
            if event.kind == Kind.TICK or place == len(self.events):
                for table, more in observer.step(self.events[begin:place]).items():
                    rows.setdefault(table, []).extend(more)
                begin = place
        for table, more in observer.finish().items():
            rows[table].extend(more)
        return Known(rows, observer)


class Known:
    """Answers about a scene; instants are again relative to its start."""

    def __init__(self, rows: dict[str, list[Row]], observer: Observer) -> None:
        self.rows = rows
        self.observer = observer

    def ended(self) -> dict[str, tuple[int, str, str]]:
        """Member -> (ended at, cause, certainty) of the lives that are over."""
        return {
            row["member_id"]: (row["ended_at_ms"] - int(START), row["end_cause"], row["certainty"])
            for row in standing("members", self.rows["members"])
            if row["ended_at_ms"] is not None
        }

    def faults(self) -> dict[str, tuple[str, str, dict[str, int]]]:
        """Member -> (fault, certainty, signs; instants relative) of the lives that somebody broke."""
        found = {}
        for row in standing("members", self.rows["members"]):
            if row["fault"] is not None:
                pairs = (sign.split("=") for sign in row["fault_signs"])
                signs = {key: int(value) - int(START) * key.endswith("_at_ms") for key, value in pairs}
                found[row["member_id"]] = (row["fault"], row["fault_certainty"], signs)
        return found

    def alive(self) -> set[str]:
        """Members that are members still."""
        rows = standing("members", self.rows["members"])
        return {row["member_id"] for row in rows if row["ended_at_ms"] is None}

    def rebalances(self) -> list[dict[str, Any]]:
        """Standing rebalances, oldest first."""
        return sorted(standing("rebalances", self.rows["rebalances"]), key=lambda row: row["started_at_ms"])

    def divergences(self) -> int:
        """How often something did not fit what was held."""
        told = sum(row["divergences"] for row in named("progress", self.rows["progress"]))
        return int(told) + self.observer.divergences

    def states(self) -> list[tuple[int, str]]:
        """(at, state) of the group."""
        return [
            (row["at_ms"] - int(START), row["to_state"])
            for row in named("transitions", self.rows["transitions"])
            if row["entity"] == "group"
        ]

    def predictions(self) -> list[tuple[str, str, str]]:
        """(member, kind, outcome) of the predictions."""
        return [
            (row["member_id"], row["kind"], row["outcome"]) for row in standing("predictions", self.rows["predictions"])
        ]
