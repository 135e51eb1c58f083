"""Consumers as the broker meets them: what a library sends when, and what a fault does to it.

Java and kafka-python join, sync, commit and fetch inside poll only; librdkafka and others do it in threads of their
own. Heartbeats are a thread's business everywhere. A library that knows `max.poll.interval.ms` gives its membership
up when it runs out: a dynamic member leaves, a static one falls silent. Durations in ms.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from kardia.coordinator.classic.operations import Answer, Commit, Heartbeat, Join, Leave, Leaving, Operation, Sync
from tests.truth.fleet.broker import Asked, Connection
from tests.truth.fleet.cluster import Cluster
from tests.truth.fleet.old_lines import is_text, most_versions
from tests.truth.fleet.world import World


@dataclass(frozen=True)
class Habits:
    """What a library does. Versions are those of JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT and FETCH."""

    name: str
    software: tuple[str, str]
    versions: tuple[int, int, int, int, int, int]
    inside_poll: bool
    leaves_when_poll_ends: bool
    gives_reasons: bool
    commits_only_progress: bool


LIBRARIES = (
    Habits("java", ("apache-kafka-java", "3.9.2"), (9, 5, 4, 5, 9, 17), True, True, True, False),
    Habits(
        "librdkafka",
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"),
        (5, 3, 3, 1, 9, 16),
        False,
        True,
        False,
        True,
    ),
    Habits("kafka-python", ("kafka-python", "3.0.12"), (7, 5, 4, 5, 7, 12), True, True, False, False),
    Habits("aiokafka", ("unknown", "unknown"), (5, 3, 1, 1, 2, 11), False, False, False, False),
    Habits("franz-go", ("kgo", "1.15.4"), (9, 5, 4, 5, 8, 15), False, False, True, True),
)


def spoken(habits: Habits, kafka_version: str) -> Habits:
    """What a library does with a broker of a release: it takes the highest versions that both know. Reasons came with
    versions that brokers before 2.8 do not know."""
    if not is_text(kafka_version):
        return habits
    join, sync, beat, leave, commit, fetch = map(min, habits.versions, most_versions(kafka_version))
    return replace(habits, versions=(join, sync, beat, leave, commit, fetch), gives_reasons=False)


@dataclass
class Settings:
    """What the application configured."""

    session_ms: int
    heartbeat_ms: int
    poll_interval_ms: int
    commit_ms: int = 5_000
    fetch_ms: int = 2_500
    batch_ms: int = 300
    """Longest work between two polls while the application is well."""
    network_ms: float = 0.5
    busy: bool = True
    """Whether there is data to consume."""


class Client:
    """One consumer: a process that can be started, stalled, frozen, killed and closed."""

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        group_id: str,
        name: str,
        habits: Habits,
        settings: Settings,
        instance: str,
    ) -> None:
        """`instance`: group.instance.id, empty for a dynamic member."""
        self.world, self.cluster, self.group_id, self.name = world, cluster, group_id, name
        self.habits, self.settings, self.instance = habits, settings, instance or None
        self.host = f"10.1.{world.random.randrange(250)}.{world.random.randrange(1, 250)}"
        self.client_id = name
        self.protocols: tuple[str, ...] = ("range",)
        self.beats_before_sync = False
        """Whether its thread of heartbeats begins with the answer to JoinGroup and not with that to SyncGroup."""
        self.life = 0
        self.state = "down"
        self.member_id = ""
        self.generation = -1
        self.told = False
        self.offset = 0
        self.subscription = 0
        self.stalled_to_ms = self.frozen_to_ms = self.cut_off_to_ms = 0.0
        self.polled_at_ms = self.heard_at_ms = 0.0
        self._ids = 0
        self._group: Connection | None = None
        self._data: Connection | None = None

    # --- faults and wishes

    def start(self) -> None:
        """A new process."""
        if self.state != "down" or self.life < 0:
            return
        if self.cluster.asleep:
            self.world.at(self.cluster.wakes_at_ms, self.start)
            return
        self._group = self._data = None
        self.state = "starting"
        self._find_coordinator()
        self._connect_data()
        self.member_id, self.generation, self.told = "", -1, False
        self.stalled_to_ms = self.frozen_to_ms = 0.0
        self.polled_at_ms = self.world.now_ms
        self._later(self.world.random.uniform(0, self.settings.commit_ms), self._commit_by_timer)
        self._join("")

    def kill(self) -> None:
        """SIGKILL: nothing more is sent, what was sent stays sent."""
        self.life += 1
        self.state = "down"

    def retire(self) -> None:
        """No process is ever started again."""
        self.kill()
        self.life = -1_000_000_000

    def freeze(self, for_ms: float) -> None:
        """SIGSTOP, and SIGCONT later."""
        self.frozen_to_ms = self.world.now_ms + for_ms

    def sleep(self, for_ms: float) -> None:
        """Its machine stands still; who was stopped beside is stopped still."""
        self.frozen_to_ms = max(self.frozen_to_ms, self.world.now_ms + for_ms)

    def stall(self, for_ms: float) -> None:
        """The application does not poll; the library's threads go on."""
        self.stalled_to_ms = max(self.stalled_to_ms, self.world.now_ms + for_ms)

    def close(self) -> None:
        """A clean end: a dynamic member commits and leaves, a static one only goes."""
        if self.state == "down" or self.frozen_to_ms > self.world.now_ms:
            return
        well = self._polls() and self.state in ("stable", "joining", "syncing")
        if well and self.member_id and self.instance is None:
            if self.state == "stable" and (self.settings.busy or not self.habits.commits_only_progress):
                self.offset += int(self.settings.busy)
                self._commit()
            self._leave("the consumer is being closed" if self.habits.gives_reasons else None, "left")
        self.kill()

    def change_subscription(self) -> None:
        """Other topics: the next poll joins again."""
        self.subscription += 1
        if self.state == "stable" and not self.told:
            self.told = True
            self._rejoin_at_poll()

    def cut_off(self, for_ms: float) -> None:
        """The network between it and all brokers is gone for a while, or its connections only: what it has asked for is
        handled, and answered to nobody."""
        self.cut_off_to_ms = self.world.now_ms + for_ms
        for connection in (self._group, self._data):
            if connection is not None:
                connection.deaf = True
                self._lost(connection)

    # --- connections

    def _find_coordinator(self) -> None:
        """Connect to the leader of the group's shard; while there is none, ask again."""
        broker = self.cluster.coordinator_of(self.group_id)
        if broker is None or self.cut_off_to_ms > self.world.now_ms:
            self._later(200.0, self._find_coordinator)
        else:
            self._group = broker.connect(self.client_id, self.habits.software, self.host, self._lost)

    def _connect_data(self) -> None:
        """Connect to a broker that leads what is consumed, whichever that is."""
        brokers = self.cluster.brokers
        broker = brokers[zlib.crc32(self.name.encode()) % len(brokers)]
        if not broker.up or self.cut_off_to_ms > self.world.now_ms:
            self._later(500.0, self._connect_data)
            return
        self._data = broker.connect(self.client_id, self.habits.software, self.host, self._lost)
        self._later(5.0, self._fetch)

    def _lost(self, connection: Connection) -> None:
        """A connection broke. What waited for an answer on it is asked again; a member goes on being one."""
        if self.state == "down":
            return
        if connection is self._data:
            self._data = None
            self._later(500.0, self._connect_data)
        elif connection is self._group:
            self._look_for_coordinator()
            if self.state in ("joining", "syncing"):
                self._rejoin("rebalance failed due to DisconnectException")

    def _look_for_coordinator(self) -> None:
        if self._group is not None:
            self._group = None
            self._later(self.world.random.uniform(20.0, 150.0), self._find_coordinator)

    def _rejoin(self, reason: str) -> None:
        self.state = "joining"
        self._later(100.0, lambda: self._join(reason))

    # --- time inside the process

    def _later(self, delay_ms: float, act: Callable[[], None]) -> None:
        life = self.life

        def due() -> None:
            if life != self.life:
                return
            if self.frozen_to_ms > self.world.now_ms:
                self.world.at(self.frozen_to_ms + 0.01, due)
            else:
                act()

        self.world.after(delay_ms, due)

    def _ask(
        self,
        connection: Connection | None,
        version: int,
        operation: Operation | None,
        hear: Callable[[Answer], None],
        **more: float,
    ) -> None:
        if connection is None or not connection.alive:
            return  # the library notices, and sends nothing before it has found the coordinator again
        life, delay_ms = self.life, self.settings.network_ms * self.world.random.uniform(0.5, 1.5)

        def heard(answer: Answer) -> None:
            if life == self.life and not connection.deaf:
                self._later(0.0, lambda: hear(answer))

        asked = Asked(connection, version, operation, heard, network_ms=delay_ms)
        asked.fetch_wait_ms, asked.fetched_bytes = more.get("wait_ms", 0.0), int(more.get("size", 0))
        connection.reaches_at_ms = max(self.world.now_ms + delay_ms, connection.reaches_at_ms)
        self.world.at(connection.reaches_at_ms, lambda: connection.broker.send(asked))

    def _when_polled(self, act: Callable[[], None]) -> None:
        """Do something inside the next poll: after the batch at hand, or when the stall is over."""
        wait_ms = self.world.random.uniform(0, self.settings.batch_ms)
        if not self.habits.inside_poll:
            wait_ms = 1.0
        elif self.stalled_to_ms > self.world.now_ms:
            wait_ms = self.stalled_to_ms - self.world.now_ms
        self._later(wait_ms, act)

    def _polls(self) -> bool:
        return self.stalled_to_ms <= self.world.now_ms

    # --- joining

    def _join(self, reason: str) -> None:
        self.state, self.told = "joining", False
        self.polled_at_ms = self.world.now_ms
        if self._group is None:
            self._later(50.0, lambda: self._join(reason) if self.state == "joining" else None)
            return
        self._ids += 1
        settings, called = self.settings, self.instance or self.client_id
        operation = Join(
            self.cluster.number(),
            self.habits.versions[0],
            self.group_id,
            self.member_id,
            self.instance,
            self.client_id,
            self.host,
            settings.session_ms,
            settings.poll_interval_ms,
            "consumer",
            tuple((name, self._metadata()) for name in self.protocols),
            reason if self.habits.gives_reasons else None,
            f"{called}-{self.life:08x}-{self._ids:04x}-4000-8000-00{self.world.random.getrandbits(40):010x}",
        )
        self._ask(self._group, self.habits.versions[0], operation, self._joined)

    def _metadata(self) -> bytes:
        """Its subscription: of no topic that anybody reads, as a classic coordinator only compares it."""
        return b"\0\3\0\0\0\1\0\1" + bytes([65 + self.subscription % 26])

    def _assigned(self, answer: Answer) -> tuple[tuple[str, bytes], ...]:
        """What the leader assigns."""
        return tuple((one, b"\0\1" + one.encode()) for one, _, _ in answer.members)

    def _take(self, answer: Answer) -> None:
        """What a member is assigned."""

    def _joined(self, answer: Answer) -> None:
        if self.state != "joining":
            return
        if answer.error_code == 79:
            self.member_id = answer.member_id
            self._join(f"need to re-join with the given member-id: {answer.member_id}")
        elif answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.state = "syncing"
            leads = bool(answer.members) and not answer.skip_assignment
            assignments = self._assigned(answer) if leads else ()
            name = answer.protocol_name
            self._when_polled(lambda: self._sync(name, assignments))
            if self.beats_before_sync:
                self._later(self.settings.heartbeat_ms, self._beat(self.generation, "syncing"))
        elif answer.error_code in (81, 82):
            self.kill()
        else:
            if answer.error_code in (25, 22):
                self.member_id = ""
            if answer.error_code in (15, 16):
                self._look_for_coordinator()
            self._later(100.0, lambda: self._join("rebalance failed") if self.state == "joining" else None)

    def _sync(self, protocol_name: str | None, assignments: tuple[tuple[str, bytes], ...]) -> None:
        if self.state != "syncing":
            return
        operation = Sync(
            self.cluster.number(),
            self.habits.versions[1],
            self.group_id,
            self.generation,
            self.member_id,
            self.instance,
            "consumer",
            protocol_name,
            assignments,
        )
        self._ask(self._group, self.habits.versions[1], operation, self._synced)

    def _synced(self, answer: Answer) -> None:
        if self.state != "syncing":
            return
        if answer.error_code == 0:
            self._take(answer)
            self.state, self.told = "stable", False
            self.polled_at_ms = self.world.now_ms
            self.heard_at_ms = self.world.now_ms
            self._later(self.settings.heartbeat_ms, self._beat(self.generation))
            self._later(250.0, self._watch_poll(self.generation))
        else:
            self._wrong(answer.error_code, "SyncGroup")

    def _wrong(self, error: int, api: str) -> None:
        """Any answer but 0 that a member gets: what to do is the same wherever it comes from."""
        if error == 82:
            self.kill()
            return
        if error in (25, 22):
            self.member_id = "" if error == 25 else self.member_id
            self.state = "joining"
            self._when_polled(lambda: self._join(f"encountered {error} from {api} response"))
        elif error == 27:
            if self.state == "stable" and not self.told:
                self.told = True
                self._rejoin_at_poll()
            elif self.state == "syncing":
                self.state = "joining"
                self._when_polled(lambda: self._join("group is already rebalancing"))
        elif error in (14, 15, 16):
            if error != 14:
                self._look_for_coordinator()
            if self.state == "syncing":
                self._rejoin("rebalance failed due to NotCoordinatorException")

    def _rejoin_at_poll(self) -> None:
        def rejoin() -> None:
            if self.state == "stable" and self.told:
                if self.habits.inside_poll and self.world.random.random() < 0.7:
                    self._commit()
                self._join("group is already rebalancing")

        self._when_polled(rejoin)

    # --- a member's life

    def _beat(self, generation: int, state: str = "stable") -> Callable[[], None]:
        def beat() -> None:
            if self.state != state or self.generation != generation:
                return
            operation = Heartbeat(
                self.cluster.number(),
                self.habits.versions[2],
                self.group_id,
                generation,
                self.member_id,
                self.instance,
            )
            self._ask(self._group, self.habits.versions[2], operation, self._beaten(generation))
            self._later(self.settings.heartbeat_ms * self.world.random.uniform(1.0, 1.02), beat)

        return beat

    def _beaten(self, generation: int) -> Callable[[Answer], None]:
        def beaten(answer: Answer) -> None:
            there = self.state == "stable" or (self.state == "syncing" and self.beats_before_sync)
            if there and self.generation == generation and answer.error_code != 0:
                self._wrong(answer.error_code, "Heartbeat")

        return beaten

    def _watch_poll(self, generation: int) -> Callable[[], None]:
        """The library's own timer of max.poll.interval.ms."""

        def look() -> None:
            if self.state != "stable" or self.generation != generation or not self.habits.leaves_when_poll_ends:
                return
            if self._polls() and not self.told:
                self.polled_at_ms = self.world.now_ms
            left_ms = self.polled_at_ms + self.settings.poll_interval_ms - self.world.now_ms
            if left_ms > 0:
                self._later(min(left_ms, 250.0), look)
                return
            back_ms = max(1.0, self.stalled_to_ms - self.world.now_ms)
            if self.instance is None:
                self._leave("consumer poll timeout has expired." if self.habits.gives_reasons else None, "poll_timeout")
                self.member_id = ""
            self.state, self.told, self.member_id = "gave up", False, ""
            self._later(back_ms, self._come_back)

        return look

    def _come_back(self) -> None:
        if self.state == "gave up":
            self._join("consumer pro-actively leaving the group")

    def _leave(self, reason: str | None, cause: str) -> None:
        version = self.habits.versions[3]
        leaving = Leaving(self.member_id, self.instance, reason)
        operation = Leave(self.cluster.number(), version, self.group_id, (leaving,))
        self.cluster.truths[self.group_id].causes[operation.number] = cause
        self._ask(self._group, version, operation, lambda _: None)

    def _commit_by_timer(self) -> None:
        allowed = self._polls() or not self.habits.inside_poll
        moved = self.settings.busy and self._polls()
        if self.state == "stable" and not self.told and allowed:
            self.offset += 10 if moved else 0
            if moved or not self.habits.commits_only_progress:
                self._commit()
        self._later(self.settings.commit_ms, self._commit_by_timer)

    def _commit(self) -> None:
        operation = Commit(
            self.cluster.number(),
            self.habits.versions[4],
            self.group_id,
            self.generation,
            self.member_id,
            self.instance,
            "orders",
            0,
            self.offset,
        )
        self._ask(self._group, self.habits.versions[4], operation, self._committed(self.generation))

    def _committed(self, generation: int) -> Callable[[Answer], None]:
        def committed(answer: Answer) -> None:
            if (
                answer.error_code in (14, 15, 16, 22, 25, 82)
                and self.state == "stable"
                and self.generation == generation
            ):
                self._wrong(answer.error_code, "OffsetCommit")

        return committed

    def _fetch(self) -> None:
        if self.habits.inside_poll and not self._polls():
            self._later(self.stalled_to_ms - self.world.now_ms, self._fetch)
        elif self._data is None:
            return  # begins again with the next connection
        elif self.state != "stable":
            self._later(250.0, self._fetch)
        else:
            size = 1_000 if self.settings.busy else 0
            wait_ms = self.settings.fetch_ms * self.world.random.uniform(0.9, 1.0)
            self._ask(
                self._data,
                self.habits.versions[5],
                None,
                lambda _: self._later(0.5, self._fetch),
                wait_ms=wait_ms,
                size=size,
            )
