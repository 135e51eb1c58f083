"""What happens to a group that has epochs: members of its protocol with the faults of every group, and its own: a slow
revocation, a static member that goes for a moment, a topic that grows, an expression; and a migration under way.

A migration restarts one member after the other as a consumer of the consumer protocol, back again in some groups, and
faults go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.truth.fleet.clients import LIBRARIES as CLASSIC_LIBRARIES
from tests.truth.fleet.clients import Client, Settings
from tests.truth.fleet.epochs.clients import LIBRARIES, ConsumerClient, ShareClient, StreamsClient
from tests.truth.fleet.epochs.cluster import EpochCluster
from tests.truth.fleet.epochs.migrants import Migrant
from tests.truth.fleet.faults import GroupStory
from tests.truth.fleet.world import START_MS

MIGRANTS = tuple(one for one in CLASSIC_LIBRARIES if one.name in ("java", "librdkafka", "franz-go"))


class EpochStory(GroupStory):
    """One group of the consumer or the share protocol, or one that migrates."""

    cluster: EpochCluster

    def __init__(self, *of: Any) -> None:
        """As every group; a migration begins after a while."""
        self.speaks = "classic" if of[4].protocol == "migration" else of[4].protocol
        self._cooperative = of[0].random.random() < 0.5
        super().__init__(*of)
        if self.speaks != "classic":
            self.session_ms = self.cluster.session_ms
        if self.scenario.protocol == "migration":
            self.world.at(START_MS + self.world.random.uniform(10_000, 30_000), self._migrate)

    def _new_client(self) -> Client:
        number = len(self.clients)
        client = self._client(f"{self.group_id}-c{number}", self.speaks)
        self.clients.append(client)
        return client

    def _client(self, name: str, speaks: str) -> Client:
        chance = self.world.random
        interval_ms = self.poll_interval_ms if speaks == "classic" else chance.choice((8_000, 15_000, 25_000, 60_000))
        settings = Settings(
            self.session_ms,
            min(3_000, self.session_ms // 3),
            interval_ms,
            network_ms=chance.choice((0.3, 0.5, 2.0, 20.0)),
            busy=chance.random() < 0.7,
        )
        instance = f"{name}-i" if self.static and chance.random() < 0.8 and speaks != "share" else ""
        of = (self.world, self.cluster, self.group_id, name)
        if speaks == "classic":
            migrant = Migrant(*of, chance.choice(MIGRANTS), settings, instance)
            migrant.cooperative = self._cooperative
            migrant.protocols = ("cooperative-sticky",) if self._cooperative else ("range",)
            return migrant
        if speaks == "share":
            return ShareClient(*of, LIBRARIES[0], settings, "")
        if speaks == "streams":
            return StreamsClient(*of, LIBRARIES[0], settings, "")
        return ConsumerClient(*of, chance.choice(LIBRARIES), settings, instance)

    def _faults(self) -> list[Callable[[Client], None]]:
        faults = [*super()._faults(), self._reconnect, self._cut_off, self._resubscribe]
        if self.world.random.random() < 0.1:
            faults.append(self._grow)
        return faults

    def _grow(self, _client: Client) -> None:
        self._tell("grow", None)
        self.cluster.grow()

    # --- migration

    def _migrate(self) -> None:
        """The next member is restarted with the other protocol; when all have been, some groups go back."""
        chance = self.world.random
        to = "consumer" if self.speaks == "classic" else "classic"
        kind = ConsumerClient if to == "consumer" else Migrant
        left = [place for place, one in enumerate(self.clients) if not isinstance(one, kind)]
        if left:
            place = chance.choice(left)
            old = self.clients[place]
            self._tell(f"migrate to {to}", old)
            if chance.random() < 0.8:
                old.close()
            old.retire()
            new = self._client(old.name, to)
            if old.instance is not None:
                new.instance = old.instance
            self.clients[place] = new
            self.world.after(chance.uniform(100, 4_000), new.start)
            self.world.after(chance.uniform(1_000, 8_000), self._migrate)
            return
        self.speaks = to
        if chance.random() < 0.6:
            self.world.after(chance.uniform(8_000, 20_000), self._migrate)
