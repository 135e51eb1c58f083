"""One process put together: leases, state, lanes, what is followed, upkeep; the API has its own thread.

Order at start: logs (look like logs) or the topic (is there), leases (nobody else uses tables or state), state and
tables (belong together), tables (right shape), the rows that the last run left; only then anything is read. Each
refusal is a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Protocol

from ingest.assembly import Following, check_logs
from ingest.clients.settings import client_settings
from ingest.metrics import Metrics
from ingest.ports import Clock
from ingest.tail.positions import Store
from live import state
from live.ahead import Ahead
from live.engine import Engine
from live.files import BatchFiles
from live.metrics import LiveMetrics
from live.settings import LiveSettings
from live.topic import FromTopic, Where
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.leases.disk_lease import held
from spark_jobs.storage_errors import disk_named
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers import Reached, faults
from spark_jobs.writers.delta_rs import DeltaRsWriter

FLUSH_MS = 30
"""What was read is stepped so long after the step before: no topic is on the way, whose records should be large."""

UPKEEP_EVERY_S = 240.0
"""Time in which each table has its upkeep. Answers about the present read no file here, so it may be seldom."""

IDLE_S = 0.05
"""Pause of a round that left nothing to read, where nobody tells of new lines."""


class Around(NamedTuple):
    """What a process gives its lanes."""

    clock: Clock
    ahead: Ahead
    say: Callable[[str], None]
    collecting: Metrics
    metrics: LiveMetrics


class Source(Protocol):
    """Where events come from: logs and a cluster (`ingest.assembly.Following`), or a topic (`live.topic.FromTopic`)."""

    def step(self) -> bool:
        """One round; True when there is more at once."""

    def rest(self) -> None:
        """Wait until there may be something to do."""

    def stop(self) -> bool:
        """End in order; True when everything that was read is saved."""

    def close(self) -> None:
        """End all connections."""


class Running(NamedTuple):
    """What runs."""

    engine: Engine
    source: Source


@contextmanager
def started(settings: LiveSettings, around: Around, reached: Reached) -> Iterator[Running]:
    """Everything but the loop; at the end it is let go as it is."""
    settings.check()
    settings = state.with_lanes(settings)
    check_logs(settings)
    where = None
    if settings.from_topic:
        client = client_settings(settings.events_client_config)
        where = Where(settings.events_bootstrap_server, settings.from_topic, client)
    lanes = settings.lanes if where is None else where.lanes()
    folder = settings.folder
    with ExitStack() as stack:
        for directory, role in ((settings.tables, "writer of these tables"), (folder, "run on this state")):
            with disk_named(directory):
                stack.enter_context(held(directory, role))
        beside = Store(folder / "positions")
        stack.callback(beside.close)
        with disk_named(settings.tables):
            generation = state.opened(folder, settings.tables, settings.cluster, settings.from_topic, lanes)
            files = BatchFiles(folder / generation.name)
            state.check_tables(files, generation, settings.tables)
            writer = DeltaRsWriter(settings.tables, generation.app_id, reached)
            stack.callback(writer.close)
            writer.prepare()
            factory = ObserverFactory(settings.observer, settings.self_test)

            def begin(number: int) -> Lane:
                return Lane(factory, generation.app_id, number, lanes, cluster=settings.cluster)

            engine = Engine(
                begin,
                lanes,
                files,
                beside,
                settings.tables,
                writer,
                around.ahead,
                around.clock,
                generation.first_batch,
                around.metrics,
                reached,
            )
        stack.callback(engine.close)
        source: Source
        if where is not None:
            source = FromTopic(where, engine, around.clock, around.say)
        else:
            source = _following(settings, around, engine, beside)
        stack.callback(source.close)
        yield Running(engine, source)


def _following(settings: LiveSettings, around: Around, engine: Engine, beside: Store) -> Following:
    """A collector whose topic and whose positions are the engine."""
    following = Following(
        settings,
        around.clock,
        engine,
        engine,
        beside,
        engine.positions,
        around.collecting,
        client_settings(settings.client_config),
        around.say,
        FLUSH_MS,
        IDLE_S,
    )
    engine.follow(following.directory)
    return following


def run(settings: LiveSettings, around: Around, stopping: Callable[[], bool]) -> bool:
    """Follow, step and write until `stopping` says so. True when everything that was read is in the tables."""
    with started(settings, around, faults.from_environment(os.environ)) as (engine, source):
        maintenance = Maintenance(settings.tables, every_s=UPKEEP_EVERY_S, said=around.say, keep=settings.kept)
        maintenance.start()
        try:
            while not stopping():
                if not source.step():
                    source.rest()
            complete = source.stop()
            engine.await_tables()
        finally:
            maintenance.stop()
        return complete
