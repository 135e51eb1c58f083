"""One run: groups, their faults, the brokers' logs, the topic, the truth. A function of version, seed, groups and
scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kardia.coordinator.classic.settings import CoordinatorSettings
from tests.truth.fleet import upheavals
from tests.truth.fleet.cluster import Cluster
from tests.truth.fleet.epochs.cluster import EpochCluster
from tests.truth.fleet.epochs.stories import EpochStory
from tests.truth.fleet.faults import GroupStory
from tests.truth.fleet.lines import Line
from tests.truth.fleet.odd import MAX_SIZE
from tests.truth.fleet.offsets_topic import TopicRecord
from tests.truth.fleet.sampling import Asker, Asks
from tests.truth.fleet.scenarios import PLAIN, Scenario
from tests.truth.fleet.truth import Truth
from tests.truth.fleet.world import START_MS, World


@dataclass
class Run:
    """What a run leaves behind."""

    version: str
    seed: int
    scenario: Scenario
    logs: list[list[Line]]
    """Of each broker, in the order of the file."""
    server_logs: list[list[Line]]
    """`server.log` of each broker."""
    records: list[TopicRecord]
    """In the order in which a reader of the topic gets them."""
    truths: dict[str, Truth]
    stories: dict[str, GroupStory]
    ended_at_ms: float
    sleeps: list[tuple[float, float]] = field(default_factory=list)
    """From when to when the machine stood still."""
    session_ms: int = -1
    """Session timeout of members of the newer protocols."""
    askers: dict[str, Asker] = field(default_factory=dict)
    """Who sampled the admin API, by what `play` was given."""


def play(
    version: str, seed: int, groups: int, scenario: Scenario = PLAIN, askers: Mapping[str, Asks] | None = None
) -> Run:
    """Let `groups` groups live, or so many fewer as the scenario says. `askers` beside them change nothing."""
    world = World(seed)
    names = [f"g{number}" for number in range(max(groups // scenario.fewer, 1))]
    delay_ms = world.random.choice((0, 500, 3_000))
    most = MAX_SIZE if scenario.odd else CoordinatorSettings().group_max_size
    kind: type[GroupStory] = GroupStory
    session_ms = -1
    cluster: Cluster
    if scenario.protocol:
        kind, speaks = EpochStory, "consumer" if scenario.protocol == "migration" else scenario.protocol
        cluster = with_epochs = EpochCluster(world, version, names, scenario.brokers, seed, speaks)
        session_ms = with_epochs.session_ms
    else:
        cluster = Cluster(world, version, names, delay_ms, scenario.brokers, seed, most)
    for broker in cluster.brokers:
        broker.log.most_late_ms = 70.0 if scenario.disorder else 12.0
    end_ms = START_MS + scenario.lasts_ms
    stories = {name: kind(world, cluster, name, end_ms - 8_000, scenario, place) for place, name in enumerate(names)}
    if not scenario.quiet:
        for broker in cluster.brokers:
            upheavals.ask_beside(cluster, broker)
    upheavals.plan(cluster, stories, scenario, seed, end_ms)
    for truth in cluster.truths.values():
        truth.starved = scenario.starved
    asked = {name: Asker(cluster, one, seed, end_ms) for name, one in (askers or {}).items()}
    world.run(end_ms)
    cluster.close()
    logs = [broker.log.lines(end_ms) for broker in cluster.brokers]
    server_logs = [broker.server_log.lines(end_ms) for broker in cluster.brokers]
    records = sorted(cluster.topic.records, key=lambda one: (one.read_at_ms, one.partition, one.offset))
    sleeps = cluster.sleeps
    return Run(
        version,
        seed,
        scenario,
        logs,
        server_logs,
        records,
        cluster.truths,
        stories,
        end_ms,
        sleeps,
        session_ms,
        asked,
    )
