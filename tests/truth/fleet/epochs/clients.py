"""Consumers of the consumer and the share protocol as the broker meets them: what Java's and librdkafka send when.

A thread of the library sends a heartbeat as often as the broker wants, and at once when there is news: what it owns
after it gave something up or took something in. What it must give up it gives up inside poll, after a while of the
application's; where that does not poll, not before it does. Recorded: a Java client leaves with -1 when its poll
interval is over and joins again under its id, one that is refused does so at once. Durations in ms.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Any

from kardia.coordinator.consumer.operations import Beat, Partition
from kardia.coordinator.share.operations import ShareBeat
from kardia.coordinator.streams.operations import StreamsBeat, Subtopology, Topology
from tests.truth.fleet.clients import Client, Habits, Settings
from tests.truth.fleet.epochs.cluster import EpochCluster
from tests.truth.fleet.world import World

JAVA = Habits("java", ("apache-kafka-java", "4.1.2"), (9, 5, 4, 5, 10, 17), True, True, True, False)
LIBRDKAFKA = Habits(
    "librdkafka", ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"), (5, 3, 3, 1, 9, 16), False, True, False, True
)
OLDER_LIBRDKAFKA = replace(LIBRDKAFKA, software=("confluent-kafka-python", "2.12.1-rdkafka-2.12.1"))
"""Leaves when its poll interval is over; from 2.15 on it falls silent, and leaves when it is polled again."""
LIBRARIES = (JAVA, JAVA, LIBRDKAFKA, OLDER_LIBRDKAFKA)

TOPOLOGY = Topology(0, (Subtopology("0", ("orders",)), Subtopology("1", ("refunds",))))
"""Of an application that reads two topics by themselves."""

JOIN, LEAVE, AWAY = 0, -1, -2

REFUSED = frozenset({25, 110, 82, 113})
"""It is no member, or not in the epoch it names: it gives everything up and joins again."""
NOT_THERE = frozenset({14, 15, 16})


class EpochClient(Client):
    """What clients of both protocols do: join, heartbeats, poll interval, leave."""

    cluster: EpochCluster
    commits = True

    def __init__(
        self,
        world: World,
        cluster: EpochCluster,
        group_id: str,
        name: str,
        habits: Habits,
        settings: Settings,
        instance: str,
    ) -> None:
        """As a classic client; its session is the broker's."""
        super().__init__(world, cluster, group_id, name, habits, settings, instance)
        self.topics: tuple[str, ...] = ("orders",)
        self.regex: str | None = None
        self.new_id_when_fenced = False
        """It begins with another member id after each refusal, as some libraries do."""
        self.revokes_ms = 50.0
        """How long its application needs to give something up."""
        self.owned: frozenset[Partition] = frozenset()
        self._due = 0
        self._asks = False
        self._news = True
        self._gives_up_to_ms = -1.0

    # --- joining

    def start(self) -> None:
        """A new process, with a new member id."""
        if self.state == "down" and self.life >= 0:
            self.owned, self._asks, self._gives_up_to_ms = frozenset(), False, -1.0
        super().start()

    def _join(self, reason: str) -> None:  # noqa: ARG002
        if self._group is None:
            self.state = "joining"
            self._later(50.0, lambda: self._join("") if self.state == "joining" else None)
            return
        if not self.member_id:
            self.member_id = urlsafe_b64encode(self.world.random.randbytes(16)).decode().rstrip("=")
        self.state, self.generation, self.owned = "joining", 0, frozenset()
        self._gives_up_to_ms = -1.0
        self._due += 1
        self._send(JOIN)

    def _rejoin(self, reason: str) -> None:  # noqa: ARG002
        """A connection was lost in the middle: it is asked again."""
        self._asks = False
        self._later(100.0, lambda: self._join("") if self.state == "joining" else None)

    def _lost(self, connection: Any) -> None:
        if connection is self._group:
            self._asks = False
        super()._lost(connection)

    # --- heartbeats

    def _send(self, epoch: int, *, full: bool = False) -> None:
        if self._asks and epoch >= 0:
            return
        self._asks = epoch >= 0 and self._group is not None and self._group.alive
        operation = self._operation(epoch, full=full)
        sent_in = self._due
        self._ask(self._group, 1, operation, lambda answer: self._answered(sent_in, epoch, answer))  # type: ignore[arg-type]

    def _operation(self, epoch: int, *, full: bool) -> Beat | ShareBeat | StreamsBeat:
        raise NotImplementedError

    def _tick(self, due: int) -> None:
        """The time of the next heartbeat has come."""
        if due != self._due or self.state != "stable":
            return
        self._send(self.generation)
        self._later(self.cluster.interval_ms * self.world.random.uniform(1.0, 1.02), lambda: self._tick(due))

    def _answered(self, sent_in: int, epoch: int, answer: Any) -> None:
        self._asks = False
        if epoch < 0 or sent_in != self._due or self.state not in ("joining", "stable"):
            return
        error = answer.error_code
        if error == 0:
            self._taken(answer)
        elif error in NOT_THERE:
            if error != 14:
                self._look_for_coordinator()
            if self.state == "joining":
                self._later(150.0, lambda: self._join("") if self.state == "joining" else None)
        elif error == 111:
            self._later(500.0, lambda: self._join("") if self.state == "joining" else None)
        elif error in REFUSED and self.instance is not None and error == 82:
            self.kill()
        elif error in REFUSED:
            if self.new_id_when_fenced:
                self.member_id = ""
            self.state = "joining"
            self.owned = frozenset()
            self._when_polled(lambda: self._join("") if self.state == "joining" else None)
        elif self.state == "joining":  # an upgrade of a group that prepares: asked again
            self._later(300.0, lambda: self._join("") if self.state == "joining" else None)

    def _taken(self, answer: Any) -> None:
        self.generation = answer.member_epoch
        if self.state == "joining":
            self.state = "stable"
            self.polled_at_ms = self.heard_at_ms = self.world.now_ms
            due = self._due
            self._later(self.cluster.interval_ms, lambda: self._tick(due))
            self._later(250.0, self._watch_poll(due))
        given = self._given(answer)
        if given is not None:
            self._take_in(frozenset(given))

    def _given(self, answer: Any) -> Any:
        """What an answer says that it may read; None if that is as before."""
        return answer.assignment

    def _take_in(self, assigned: frozenset[Partition]) -> None:
        """What it may read now: what is no more it gives up inside poll, then it says what it owns."""
        if assigned == self.owned and not self._news:
            return
        gives_up = bool(self.owned - assigned)
        wait_ms = self.world.random.uniform(1.0, 60.0 if not self.habits.inside_poll else 200.0)
        if gives_up:
            wait_ms += self.revokes_ms
        if self.stalled_to_ms > self.world.now_ms and (gives_up or self.habits.inside_poll):
            wait_ms += self.stalled_to_ms - self.world.now_ms
        due = self._due
        self._gives_up_to_ms = self.world.now_ms + wait_ms

        def done() -> None:
            if due == self._due and self.state == "stable":
                self.owned, self._news = assigned, True
                self._send(self.generation)

        self._later(wait_ms, done)

    # --- poll and end

    def _watch_poll(self, generation: int) -> Any:
        """The library's own timer of max.poll.interval.ms."""

        def look() -> None:
            if self.state != "stable" or generation != self._due:
                return
            if self._polls():
                self.polled_at_ms = self.world.now_ms
            left_ms = self.polled_at_ms + self.settings.poll_interval_ms - self.world.now_ms
            if left_ms > 0:
                self._later(min(left_ms, 250.0), look)
                return
            self.state = "gave up"
            if self.habits is not LIBRDKAFKA:
                self._depart("poll_timeout", LEAVE if self.instance is None else AWAY)
            self._due += 1
            self._later(max(1.0, self.stalled_to_ms - self.world.now_ms), self._come_back)

        return look

    def _come_back(self) -> None:
        if self.state == "gave up":
            if self.habits is LIBRDKAFKA:
                self._depart("poll_timeout", LEAVE if self.instance is None else AWAY)
            self._join("")

    def _depart(self, cause: str, epoch: int) -> None:
        operation = self._operation(epoch, full=cause == "left")
        self.cluster.truths[self.group_id].causes[operation.number] = cause
        self._ask(self._group, 1, operation, lambda _: None)  # type: ignore[arg-type]

    def close(self) -> None:
        """A clean end: a dynamic member leaves, a static one for a moment."""
        if self.state == "down" or self.frozen_to_ms > self.world.now_ms:
            return
        if self.state in ("stable", "joining") and self.member_id and self._polls():
            if self.state == "stable" and (self.settings.busy or not self.habits.commits_only_progress):
                self.offset += int(self.settings.busy)
                self._commit()
            self._depart("left", LEAVE if self.instance is None else AWAY)
        self.kill()

    def change_subscription(self) -> None:
        """Other topics, by name or by an expression."""
        self.subscription += 1
        kinds = (("orders",), ("orders", "refunds"), ("refunds",), ("orders", "nowhere"))
        self.topics = kinds[self.subscription % len(kinds)]
        if self.state == "stable":
            self._send(self.generation, full=True)

    def _commit(self) -> None:
        if self.commits:
            super()._commit()

    def _committed(self, generation: int) -> Any:  # noqa: ARG002
        """A commit that is refused is repeated in the next epoch; a heartbeat tells what to do."""
        return lambda _: None


class ConsumerClient(EpochClient):
    """A consumer of the consumer protocol."""

    def __init__(self, *of: Any) -> None:
        """As every client of a group with epochs."""
        super().__init__(*of)
        chance = self.world.random
        self.revokes_ms = chance.choice((5.0, 50.0, 400.0, 3_000.0))
        self.new_id_when_fenced = chance.random() < 0.2
        if chance.random() < 0.1:
            self.topics, self.regex = (), "orders.*"

    def _operation(self, epoch: int, *, full: bool) -> Beat:
        joins = epoch == JOIN
        java = self.habits.inside_poll
        everything = joins or (full and epoch >= 0)
        names: tuple[str, ...] | None = self.topics if everything else None
        regex = (self.regex or (None if java and joins else "")) if everything else None
        owned: tuple[Partition, ...] | None = ()
        if not joins:
            owned = tuple(sorted(self.owned)) if self._news else None
        if epoch < 0:  # Java gives everything up; and its subscription, if it closes
            owned = () if java else None
            names = () if java and full else None
        if epoch >= 0:
            self._news = False
        if epoch == JOIN:
            self._news = True
        if not java and regex is None and everything:
            regex = ""
        return Beat(
            self.cluster.number(),
            1,
            self.group_id,
            self.member_id,
            epoch,
            self.instance,
            None,
            self.settings.poll_interval_ms if joins else -1,
            names,
            regex,
            None,
            owned,
            self.client_id,
            self.host,
            "",
        )


class ShareClient(EpochClient):
    """A consumer of the share protocol: nothing is given up, nobody is static. It keeps its subscription when its poll
    interval is over, and gives it up when it closes."""

    commits = False

    def _operation(self, epoch: int, *, full: bool) -> ShareBeat:
        names: tuple[str, ...] | None = self.topics if epoch == JOIN or (full and epoch > 0) else None
        if epoch == LEAVE and full:
            names = ()
        return ShareBeat(
            self.cluster.number(), self.group_id, self.member_id, epoch, None, names, self.client_id, self.host
        )

    def _fetch(self) -> None:
        """ShareFetch is not played: it says nothing of the group."""


class StreamsClient(EpochClient):
    """A thread of Kafka Streams, one for each process. What it owns are tasks; its topology stays as it is."""

    commits = False  # commits of streams groups are not modelled

    def __init__(self, *of: Any) -> None:
        """As every client of a group with epochs."""
        super().__init__(*of)
        self.revokes_ms = self.world.random.choice((5.0, 50.0, 400.0, 3_000.0))
        self._process = ""

    def start(self) -> None:
        """A new process."""
        if self.state == "down":
            self._process = self.world.random.randbytes(8).hex()
        super().start()

    def change_subscription(self) -> None:
        """An application reads what its topology says."""

    def _given(self, answer: Any) -> Any:
        return answer.active

    def _operation(self, epoch: int, *, full: bool) -> StreamsBeat:  # noqa: ARG002
        joins = epoch == JOIN
        owned: tuple[Partition, ...] | None = ()
        if not joins:
            owned = tuple(sorted(self.owned)) if self._news and epoch >= 0 else None
        if epoch >= 0:
            self._news = joins
        rest = None if owned is None else ()
        return StreamsBeat(
            self.cluster.number(),
            0,
            self.group_id,
            self.member_id,
            epoch,
            None,
            None,
            self.settings.poll_interval_ms if joins else -1,
            TOPOLOGY if joins else None,
            owned,
            rest,
            rest,
            self._process if joins else None,
            None,
            () if joins else None,
            None,
            False,
            -1 if joins else 0,
            self.client_id,
            self.host,
        )
