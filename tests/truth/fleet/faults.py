"""What happens to the consumers of a group: the story of one group, drawn from a seed.

Members start within seconds of each other; then faults come every few seconds, to any member, often before the last
one is over. Every fault here is one that people meet.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.truth.fleet import odd
from tests.truth.fleet.clients import LIBRARIES, Client, Habits, Settings, spoken
from tests.truth.fleet.cluster import Cluster
from tests.truth.fleet.scenarios import Scenario
from tests.truth.fleet.world import START_MS, World

SETTLED_MS = 12_000.0
"""From the start of a group to its first fault."""


class GroupStory:
    """One group: its clients and what happens to them until `to_ms`."""

    def __init__(
        self, world: World, cluster: Cluster, group_id: str, to_ms: float, scenario: Scenario, place: int
    ) -> None:
        """Draw the members and plan the first fault. `place`: which of the run's groups it is."""
        self.world, self.cluster, self.group_id, self.to_ms = world, cluster, group_id, to_ms
        self.scenario = scenario
        chance = world.random
        self.session_ms = chance.choice((6_000, 6_000, 10_000, 10_000, 30_000))
        self.poll_interval_ms = chance.choice((9_000, 15_000, 25_000, 60_000, 300_000))
        self.every_ms = chance.choice((6_000.0, 12_000.0, 25_000.0))
        self.static = chance.random() < 0.35
        self.clients: list[Client] = []
        self.told: list[tuple[float, str, str]] = []
        """(instant, fault, client): for a reader of a failing run."""
        begin_ms = chance.uniform(0, 3_000)
        size = chance.choice((1, 2, 3, 3, 4, 6))
        if scenario.sizes:
            size = scenario.sizes[place % len(scenario.sizes)]
            self.poll_interval_ms = max(self.poll_interval_ms, 25_000)
        for _ in range(size):
            client = self._new_client()
            world.at(START_MS + begin_ms + chance.expovariate(1 / 800), client.start)
        world.at(START_MS + SETTLED_MS + chance.uniform(0, 5_000), self._next)

    def _new_client(self) -> Client:
        chance = self.world.random
        number = len(self.clients)
        name = f"{self.group_id}-c{number}"
        libraries: tuple[Habits, ...] = LIBRARIES
        if self.scenario.odd:
            libraries += odd.LIBRARIES if self.cluster.java else (*odd.LIBRARIES, *odd.OLD_LIBRARIES)
        habits = spoken(chance.choice(libraries), self.cluster.version)
        heartbeat_ms = min(3_000, self.session_ms // 3) if chance.random() < 0.8 else 1_000
        settings = Settings(
            self.session_ms if chance.random() < 0.9 else 15_000,
            heartbeat_ms,
            self.poll_interval_ms if habits.leaves_when_poll_ends else 20_000,
            network_ms=chance.choice((0.3, 0.5, 2.0, 20.0)),
            busy=chance.random() < 0.7,
        )
        instance = f"{name}-i" if self.static and chance.random() < 0.8 else ""
        if habits.versions[0] < odd.STATIC_FROM:
            instance = ""
        client = Client(self.world, self.cluster, self.group_id, name, habits, settings, instance)
        if self.scenario.odd:
            odd.make(client, self.clients, chance)
        self.clients.append(client)
        return client

    def _next(self) -> None:
        """One fault, and the next one planned."""
        chance = self.world.random
        if self.cluster.asleep:
            self.world.at(self.cluster.wakes_at_ms, self._next)
            return
        if self.world.now_ms > self.to_ms:
            return
        chance.choice(self._faults())(chance.choice(self.clients))
        self.world.after(1_500 + chance.expovariate(1 / self.every_ms), self._next)

    def _faults(self) -> list[Callable[[Client], None]]:
        """What may befall a client or, beside it, its group; the more often it is named the more likely."""
        faults = [
            self._stall,
            self._stall,
            self._kill,
            self._kill,
            self._freeze,
            self._freeze,
            self._restart,
            self._close,
            self._start,
            self._start,
            self._resubscribe,
            self._kill_several,
        ]
        if self.scenario.reloads:
            faults.append(self._reload)
        if self.scenario.odd:
            faults += [self._reconnect, self._cut_off, self._remove]
        return faults

    def _tell(self, fault: str, client: Client | None) -> None:
        self.told.append((self.world.now_ms, fault, client.name if client else ""))

    # --- the faults

    def _stall(self, client: Client) -> None:
        share = self.world.random.choice((0.1, 0.4, 0.8, 1.3, 2.0))
        self._tell("stall", client)
        client.stall(min(share * self.poll_interval_ms, 60_000))

    def _kill(self, client: Client) -> None:
        self._tell("kill", client)
        client.kill()
        if self.world.random.random() < 0.6:
            self.world.after(self.world.random.uniform(500, 2.5 * self.session_ms), client.start)

    def _kill_several(self, _client: Client) -> None:
        for client in self.clients:
            if self.world.random.random() < 0.5:
                self._kill(client)

    def _freeze(self, client: Client) -> None:
        self._tell("freeze", client)
        client.freeze(self.session_ms * self.world.random.choice((0.3, 0.7, 0.95, 1.2, 2.5)))

    def _restart(self, client: Client) -> None:
        self._tell("restart", client)
        client.close()
        self.world.after(self.world.random.uniform(200, 1.5 * self.session_ms), client.start)

    def _close(self, client: Client) -> None:
        self._tell("close", client)
        client.close()

    def _start(self, _client: Client) -> None:
        down = [client for client in self.clients if client.state == "down"]
        if len(self.clients) - len(down) >= 8:
            return
        client = self.world.random.choice(down) if down and self.world.random.random() < 0.5 else self._new_client()
        self._tell("start", client)
        client.start()

    def _resubscribe(self, client: Client) -> None:
        self._tell("resubscribe", client)
        client.change_subscription()

    def _reconnect(self, client: Client) -> None:
        self._tell("reconnect", client)
        client.cut_off(0.0)

    def _cut_off(self, client: Client) -> None:
        self._tell("cut off", client)
        client.cut_off(self.session_ms * self.world.random.choice((0.2, 0.5, 1.3)))

    def _remove(self, client: Client) -> None:
        if odd.remove(self.cluster, client):
            self._tell("remove", client)

    def _reload(self, _client: Client) -> None:
        self._tell("reload", None)
        self.cluster.reload(self.group_id, self.world.random.uniform(20, 400))
