"""The brokers of a night, one or three, and the faults that hit them: one at a time, always one that coordinates a
group.

Where three live, another one takes the groups of a broker that is away. What each says in its server.log is true of a
group while it holds it: one that stood still expires everybody when it goes on, before it learns that it holds nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo import server_log
from demo.broker import Broker, BrokerSettings
from demo.brokers import cluster
from demo.scenario import PARTITIONS, TOPIC
from demo.server_log import Fact

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

    def server_logs(self) -> list[str]:
        """Each broker's own log, whole."""
        return [broker.server_log_text() for broker in self.brokers]

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


def of_holders(logs: Sequence[Sequence[Fact]]) -> list[Fact]:
    """What the brokers say of groups that they hold, in the order of time; each log is one broker's. Who loaded a group
    last holds it; who tells of one that nobody has loaded yet does."""
    told = sorted(((fact, number) for number, facts in enumerate(logs) for fact in facts), key=lambda one: one[0].at_ms)
    holder: dict[str, int] = {}
    kept = []
    for fact, number in told:
        if fact.what == server_log.LOADED:
            holder[fact.group_id] = number
        if holder.setdefault(fact.group_id, number) == number:
            kept.append(fact)
    return kept
