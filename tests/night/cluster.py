"""The brokers of a night, one or three, and the faults that hit them: one at a time, always one that coordinates a
group.

Where three live, another one takes the groups of a broker that is away. What each says in its server.log is true of a
group while it holds it: one that stood still expires everybody when it goes on, before it learns that it holds nothing.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo import server_log
from demo.broker import Broker, BrokerSettings
from demo.brokers import cluster
from demo.scenario import PARTITIONS, TOPIC
from demo.server_log import Fact
from kardia.events import shard_of
from tests.night.faults import REQUEST_LOG, SERVER_LOG
from tests.night.logs import CopyTruncate
from tests.night.losses import Emptied, emptied_of, stamps_in

ASKED_TIMEOUT_S = 5.0
"""For the coordinator of a group. Nobody may know it while leaders are elected; then it befalls any broker."""


class Cluster:
    """Brokers from start to stop."""

    def __init__(self, directory: Path, settings: BrokerSettings, count: int, seed: int, groups: Sequence[str]) -> None:
        self.brokers = [Broker(directory / "broker", settings)] if count == 1 else cluster(settings, directory, count)
        self._groups = groups
        self._chance = Random(f"coordinator {seed}")
        self._away: Broker | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._rotations = [CopyTruncate(directory / "emptied" / broker.directory.name) for broker in self.brokers]

    @property
    def bootstrap(self) -> str:
        """Addresses for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def request_logs(self) -> list[str]:
        """Where each writes its request log."""
        return [str(broker.request_log) for broker in self.brokers]

    def start(self) -> None:
        """Start all side by side: none is ready before most of them are. A process ends with the thread that started
        it, so the threads stay."""
        if len(self.brokers) == 1:
            self.brokers[0].start()
        else:
            self._threads = ThreadPoolExecutor(len(self.brokers))
            list(self._threads.map(Broker.start, self.brokers))
        self.brokers[0].create_topic(TOPIC, PARTITIONS)

    def stop(self) -> None:
        """End all at once: the last one would wait for those that are gone."""
        for broker in self.brokers:
            if broker.running:
                os.kill(broker.pid, signal.SIGCONT)
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            list(threads.map(Broker.stop, self.brokers))
        if self._threads is not None:
            self._threads.shutdown()

    def act(self, what: str) -> bool:
        """Kill, stop or freeze a coordinator, or let the one that is away go on; False where that makes no sense."""
        if what in ("start", "thaw"):
            broker = self._away
            if broker is None or broker.running != (what == "thaw"):
                return False
            self.well_again()
            return True
        if self._away is not None:
            return False
        self._away = broker = self._coordinator()
        if what == "freeze":
            os.kill(broker.pid, signal.SIGSTOP)
        else:
            (broker.kill if what == "kill" else broker.stop)()
        return True

    def well_again(self) -> None:
        """The one that is away comes back."""
        broker, self._away = self._away, None
        if broker is None:
            return
        if broker.running:
            os.kill(broker.pid, signal.SIGCONT)
        else:
            broker.start()

    def copy_and_empty(self, log: str, between_s: float) -> bool:
        """Rotate a log of some broker as logrotate's `copytruncate` does it; always possible."""
        broker, rotation = self._chance.choice([*zip(self.brokers, self._rotations, strict=True)])
        rotation.copy_and_empty(broker.request_log if log == REQUEST_LOG else broker.server_log, between_s)
        return True

    def make_again(self, topic: str) -> bool:
        """Delete a topic and create it, with as many partitions; False where a broker is away."""
        if self._away is not None:
            return False
        broker = self.brokers[0]
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        partitions = len(admin.list_topics(timeout=2 * ASKED_TIMEOUT_S).topics[topic].partitions)
        broker.delete_topic(topic)
        broker.create_topic(topic, partitions)
        return True

    def server_logs(self) -> list[str]:
        """Each broker's own log, whole; its lines are not in the order of time."""
        return [
            b"".join(rotation.pieces(broker.server_log)).decode(errors="replace")
            for broker, rotation in zip(self.brokers, self._rotations, strict=True)
        ]

    def request_lines(self) -> list[bytes]:
        """All that was ever in the request logs."""
        both = zip(self.brokers, self._rotations, strict=True)
        return [piece for broker, rotation in both for piece in rotation.pieces(broker.request_log)]

    def emptied(self, until_ms: int) -> list[Emptied]:
        """What each rotation by copy lost."""
        found = []
        for broker, rotation in zip(self.brokers, self._rotations, strict=True):
            for name, log in ((REQUEST_LOG, broker.request_log), (SERVER_LOG, broker.server_log)):
                stamps = [stamps_in(piece) for piece in rotation.pieces(log)]
                for copy, lost in rotation.lost(log):
                    found.append(emptied_of(name, copy.read_bytes(), lost, stamps, until_ms))
        return [one for one in found if one is not None]

    def requests_name(self, member_id: str) -> bool:
        """Whether a member id stands in a request log."""
        return any(member_id.encode() in piece for piece in self.request_lines())

    def _coordinator(self) -> Broker:
        """Who coordinates one of the groups."""
        group = self._chance.choice(self._groups)
        anyone = self._chance.choice(self.brokers)
        if len(self.brokers) == 1:
            return anyone
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        with suppress(KafkaException):
            described = admin.describe_consumer_groups([group], request_timeout=ASKED_TIMEOUT_S)
            port = described[group].result(2 * ASKED_TIMEOUT_S).coordinator.port
            return next(broker for broker in self.brokers if broker.port == port)
        return anyone


class Election(NamedTuple):
    """A broker takes a partition of `__consumer_offsets`. A later leader has a higher epoch; who has just started may
    take one by what it knew when it fell, and lead nothing."""

    at_ms: int
    partition: int
    epoch: int


_ELECTED = re.compile(
    r"^\[(?P<at>[^\]]{23})\] INFO \[GroupCoordinator [^\]]*\]:? "
    r"(?:Scheduling loading of metadata from __consumer_offsets-|Elected as the group coordinator for partition )"
    r"(?P<partition>\d+) (?:with|in) epoch (?P<epoch>\d+)",
    re.MULTILINE,
)
"""Of the Java coordinator (4.x) and of the Scala one."""


def elections(log: str) -> list[Election]:
    """What one broker's server.log says of the partitions that it took. Its stamps are UTC."""
    return [
        Election(
            round(datetime.strptime(f"{found['at']}+0000", "%Y-%m-%d %H:%M:%S,%f%z").timestamp() * 1_000),
            int(found["partition"]),
            int(found["epoch"]),
        )
        for found in _ELECTED.finditer(log)
    ]


def of_holders(logs: Sequence[Sequence[Fact]], elected: Sequence[Sequence[Election]] = ()) -> list[Fact]:
    """What the brokers say of groups that they hold, in the order of time; each log is one broker's, and so are the
    elections. Who loaded a group last holds it, unless another one had taken its partition with a higher epoch before;
    who tells of a group that nobody has loaded yet holds it."""
    told: list[tuple[Fact | Election, int]] = [(one, number) for number, some in enumerate(elected) for one in some]
    told += [(fact, number) for number, facts in enumerate(logs) for fact in facts]
    told.sort(key=lambda one: one[0].at_ms)
    epochs: dict[tuple[int, int], int] = {}
    highest: dict[int, int] = {}
    holder: dict[str, int] = {}
    kept = []
    for one, number in told:
        if isinstance(one, Election):
            epochs[number, one.partition] = one.epoch
            highest[one.partition] = max(one.epoch, highest.get(one.partition, 0))
            continue
        if one.what == server_log.LOADED:
            partition = shard_of(one.group_id)
            latest = highest.get(partition, 0)
            if epochs.get((number, partition), latest) < latest:
                continue
            holder[one.group_id] = number
        if holder.setdefault(one.group_id, number) == number:
            kept.append(one)
    return kept
