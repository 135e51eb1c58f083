"""What happens to the brokers of a run: moves of shards, a death and a return, an admin who deletes what is over."""

from __future__ import annotations

import random
from functools import partial

from kardia.coordinator.classic.operations import DeleteGroups
from tests.truth.fleet.broker import Asked, Broker, Connection
from tests.truth.fleet.cluster import Cluster
from tests.truth.fleet.faults import GroupStory
from tests.truth.fleet.scenarios import Scenario
from tests.truth.fleet.world import START_MS

MOVE_EVERY_MS = 4_000.0
"""Between two moves of shards, on average. Each moves one shard, so a group is moved about once in two minutes."""


def plan(cluster: Cluster, stories: dict[str, GroupStory], scenario: Scenario, seed: int, end_ms: float) -> None:
    """Plan the upheavals of a run. Their chance is their own."""
    chance = random.Random(f"upheavals {seed}")
    if scenario.moves:
        _plan_moves(cluster, chance, end_ms)
    if scenario.restarts:
        at_ms = START_MS + chance.uniform(20_000, 45_000)
        down_ms, load_ms = chance.uniform(4_000, 15_000), chance.uniform(50, 3_000)
        broker, failover_ms = chance.choice(cluster.brokers), chance.uniform(300, 9_000)
        cluster.world.at(at_ms, lambda: cluster.crash(broker, down_ms, load_ms, failover_ms))
    if scenario.outages:
        _plan_outages(cluster, stories, chance, end_ms)
    if scenario.stops:
        _plan_stops(cluster, chance, end_ms)
    if scenario.stalls:
        _plan_stalls(cluster, stories, chance, end_ms)
    if scenario.starved:
        _plan_starvation(cluster, chance, end_ms)
    if scenario.asleep:
        _plan_sleeps(cluster, stories, chance, end_ms)
    if scenario.records and scenario.protocol not in ("share", "streams"):
        for name, story in stories.items():
            if chance.random() < 0.2:
                _plan_deletion(cluster, name, story, end_ms - chance.uniform(10_000, 20_000))


def _plan_moves(cluster: Cluster, chance: random.Random, end_ms: float) -> None:
    at_ms = START_MS + 15_000.0
    shards = sorted(cluster.shards)
    while (at_ms := at_ms + chance.expovariate(len(shards) / 35 / MOVE_EVERY_MS)) < end_ms - 5_000:
        shard, to = chance.choice(shards), chance.choice(cluster.brokers)
        elected_ms, load_ms = chance.uniform(0, 50), chance.choice((5.0, 40.0, 400.0, 2_500.0))
        cluster.world.at(at_ms, partial(cluster.move, shard, to, elected_ms, load_ms))


def _plan_outages(cluster: Cluster, stories: dict[str, GroupStory], chance: random.Random, end_ms: float) -> None:
    """The broker dies, and is started at once, soon or late; consumers on the same machine die with it."""
    at_ms = START_MS + chance.uniform(15_000, 25_000)
    while at_ms < end_ms - 30_000:
        down_ms, load_ms = chance.choice((1_200.0, 2_500.0, 8_000.0, 40_000.0)), chance.uniform(50, 1_500)
        cluster.world.at(at_ms, partial(cluster.crash, cluster.brokers[0], down_ms, load_ms, 0.0))
        clients = [client for story in stories.values() for client in story.clients]
        for client in chance.sample(clients, len(clients) // 3):
            cluster.world.at(at_ms + chance.uniform(-500, 500), client.kill)
            if chance.random() < 0.7:
                cluster.world.at(at_ms + down_ms + chance.uniform(0, 25_000), client.start)
        at_ms += down_ms + chance.uniform(8_000, 25_000)


def _plan_stops(cluster: Cluster, chance: random.Random, end_ms: float) -> None:
    """The process of a broker stands still again and again, for less than a heartbeat or longer than a session."""
    at_ms = START_MS + chance.uniform(15_000, 25_000)
    while at_ms < end_ms - 15_000:
        for_ms = chance.choice((400.0, 1_500.0, 4_000.0, 9_000.0, 20_000.0))
        cluster.world.at(at_ms, partial(chance.choice(cluster.brokers).stop, for_ms))
        at_ms += for_ms + chance.uniform(8_000, 20_000)


def _plan_starvation(cluster: Cluster, chance: random.Random, end_ms: float) -> None:
    """Neighbours take the processor of a broker again and again."""
    at_ms = START_MS + chance.uniform(1_000, 10_000)
    while at_ms < end_ms - 5_000:
        for_ms = chance.choice((500.0, 2_000.0, 8_000.0))
        cluster.world.at(at_ms, partial(chance.choice(cluster.brokers).starve, for_ms))
        at_ms += for_ms + chance.uniform(2_000, 12_000)


def _plan_stalls(cluster: Cluster, stories: dict[str, GroupStory], chance: random.Random, end_ms: float) -> None:
    """A replica in sync stands still again and again, so that nothing can be stored, for less than the time limit of a
    record or for longer; some consumers are started anew meanwhile."""
    at_ms = START_MS + chance.uniform(15_000, 25_000)
    clients = [client for story in stories.values() for client in story.clients]
    while at_ms < end_ms - 15_000:
        for_ms = chance.choice((700.0, 2_000.0, 4_000.0, 5_500.0, 9_500.0))
        cluster.world.at(at_ms, partial(cluster.stall, chance.choice(cluster.brokers), for_ms))
        for client in chance.sample(clients, len(clients) // 4):
            killed_at_ms = at_ms + chance.uniform(-2_000, for_ms)
            cluster.world.at(killed_at_ms, client.kill)
            cluster.world.at(killed_at_ms + chance.uniform(200, 4_000), client.start)
        at_ms += for_ms + chance.uniform(8_000, 20_000)


def _plan_sleeps(cluster: Cluster, stories: dict[str, GroupStory], chance: random.Random, end_ms: float) -> None:
    """The whole machine stands still, brokers, clients and collector, and wakes at once. Clocks go on meanwhile, as
    under SIGSTOP: whoever's session is over by then is expired late."""

    def sleep(for_ms: float) -> None:
        cluster.sleep(for_ms)
        for story in stories.values():
            for client in story.clients:
                client.sleep(for_ms)

    at_ms = START_MS + chance.uniform(15_000, 25_000)
    while at_ms < end_ms - 15_000:
        for_ms = chance.choice((2_000.0, 6_000.0, 14_000.0, 40_000.0))
        cluster.world.at(at_ms, partial(sleep, for_ms))
        at_ms += for_ms + chance.uniform(8_000, 20_000)


def ask_beside(cluster: Cluster, broker: Broker) -> None:
    """A client without a group fetches from a broker, so that the log of one that is well is never silent."""
    chance = random.Random(f"beside {broker.address}")
    connection: list[Connection] = []

    def ask() -> None:
        if cluster.asleep:
            cluster.world.at(cluster.wakes_at_ms, ask)
            return
        if broker.up:
            if not connection or not connection[0].alive:
                software = ("apache-kafka-java", "4.1.2")
                connection[:] = [broker.connect("neighbour", software, "10.8.8.8", _nothing)]
            broker.send(Asked(connection[0], 17, None, lambda _: None, chance.uniform(5, 200), 0))
        cluster.world.after(chance.uniform(250, 400), ask)

    cluster.world.after(chance.uniform(0, 400), ask)


def _plan_deletion(cluster: Cluster, group_id: str, story: GroupStory, at_ms: float) -> None:
    """An admin deletes the group when all its consumers have gone; before, he is told 68."""

    def retire() -> None:
        story.to_ms = cluster.world.now_ms
        for client in story.clients:
            client.close()
            client.retire()

    def delete() -> None:
        broker = cluster.coordinator_of(group_id)
        if broker is not None:
            connection = broker.connect("adminclient-1", ("apache-kafka-java", "4.1.2"), "10.9.9.9", _nothing)
            operation = DeleteGroups(cluster.number(), (group_id,))
            version = 2 if cluster.text is None else cluster.text.delete_groups
            broker.send(Asked(connection, version, operation, lambda _: None))

    cluster.world.at(at_ms, retire)
    cluster.world.at(at_ms + 3_000, delete)
    cluster.world.at(at_ms + 8_000, delete)


def _nothing(_connection: Connection) -> None:
    """An admin client does not care for its connection."""
