"""The other engine of a story that is told by two: a collector with its topic, and lanes in batches as of the job.

Collector, positions, lanes, journals and tables are those of the product; a topic that keeps its records in memory
stands for the broker, and a store per lane for that of Spark. `test_moved.py` has both in earnest.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest.assembly import Following
from ingest.metrics import Metrics
from ingest.ports import Topic
from ingest.tail.positions import Store
from ingest.wire.batches import format_of
from kardia.tables import Row
from live import left, moves
from live.settings import LiveSettings
from spark_jobs import stream
from spark_jobs.checkpoint import change_lane_count, checkpoint_directory, initial_lanes, journal
from spark_jobs.checkpoint.checkpoint_directory import Checkpoint
from spark_jobs.checkpoint.journal import InMemory
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.leases import table_owner
from spark_jobs.schemas import to_tables
from spark_jobs.writers import Reached, nothing_happens
from spark_jobs.writers.delta_rs import DeltaRsWriter
from tests.live.living import CLUSTER, STEP_MS, Living

TOPIC = "kardia.events"

ROUNDS_OF_A_BATCH = 13


class KeptTopic:
    """Keeps records, acknowledges each at the next look."""

    def __init__(self, lanes: int, begins_at: int) -> None:
        """`begins_at`: the offset of the first record, of each partition another one."""
        self.first = {lane: begins_at * (lane + 1) for lane in range(lanes)}
        self.records: dict[int, list[bytes]] = {lane: [] for lane in range(lanes)}
        self._waiting: list[Callable[[], None]] = []

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def ends(self) -> dict[int, int]:
        return {lane: self.first[lane] + len(records) for lane, records in self.records.items()}

    def send(self, lane: int, data: bytes, acknowledged: Callable[[], None]) -> None:
        self.records[lane].append(data)
        self._waiting.append(acknowledged)

    def poll(self, timeout_s: float) -> None:  # noqa: ARG002
        waiting, self._waiting = self._waiting, []
        for acknowledged in waiting:
            acknowledged()

    def unread(self, lane: int, offset: int) -> list[Record]:
        first = self.first[lane]
        return [
            Record(first + place, 0, format_of(data).encode(), data)
            for place, data in enumerate(self.records[lane])
            if first + place >= offset
        ]


class Outgrown:
    """Tables of a `Living`, moved to the job and back."""

    def __init__(self, living: Living, factory: ObserverFactory, begins_at: int = 0, lanes: int | None = None) -> None:
        """`lanes`: of the topic; those of the process if there are to be as many."""
        self.living, self.factory = living, factory
        self.settings: LiveSettings = living.settings
        self.home = living.settings.tables.parent
        self.lanes = lanes or self.settings.lanes
        self.kept_topic = KeptTopic(self.lanes, begins_at)
        self.stores: dict[int, InMemory] = {}
        self.batch = -1

    @property
    def topic(self) -> Topic:
        """Where the collector sends to."""
        return self.kept_topic

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint"

    def to_spark(self, reached: Reached = nothing_happens) -> None:
        """What `live.mover` does, but for the broker."""
        tables, folder = self.settings.tables, self.settings.folder
        with _opened(folder / "positions") as beside, _opened(self.home / "positions") as collector:
            found = left.read(folder, beside, tables, CLUSTER, self.factory, reached)
            if self.lanes != len(found.lanes):
                found = found._replace(
                    lanes=change_lane_count.in_number(found.lanes, self.lanes, self.factory, TOPIC, CLUSTER)
                )
            topic = moves.Topic(TOPIC, "id", self.kept_topic.ends)
            moves.to_spark(found, topic, self.checkpoint, collector, tables, reached)
        self.stores, self.batch = {}, self._generation().generation.first_batch - 1

    def to_local(self, reached: Reached = nothing_happens) -> None:
        """The same back, of a topic that the job has read to its end."""
        self.job()
        tables, folder = self.settings.tables, self.settings.folder
        with _opened(folder / "positions") as beside, _opened(self.home / "positions") as collector:
            kept = moves.collected(collector)
            found = left.Left(self._generation().generation, self.batch, self._lanes(), kept)
            moves.to_local(found, folder, beside, tables, reached)
        self.living.settings = self.settings.model_copy(update={"lanes": self.lanes})

    def collect(self, rounds: int = 1 << 60, *, killed: bool = False, beyond: int = 0) -> None:
        """A collector and the job follow while the logs grow, and so many rounds `beyond` their end; stopped in order,
        or killed."""
        living = self.living
        with _opened(self.home / "positions") as store:
            observed: dict[str, str] = {}
            following = Following(
                *(
                    self.settings.model_copy(update={"lanes": self.lanes}),
                    living.clock,
                    self.topic,
                    store,
                    store,
                    store.load(),
                    Metrics(),
                    observed,
                ),
                living.said.append,
            )
            for number in range(rounds):
                more = living.growing.grow(living.clock.wall_ms())
                following.step()
                living.clock.now_s += STEP_MS / 1000
                if number % ROUNDS_OF_A_BATCH == 0:
                    self.job()
                if not more:
                    break
            for _ in range(beyond):
                following.step()
                living.clock.now_s += STEP_MS / 1000
            if not killed:
                assert following.collector.stop()
            following.close()
        self.job()

    def job(self) -> None:
        """A batch of the job: what is in the topic, into lanes that are read back, into the tables."""
        table_owner.check(self.settings.tables, table_owner.SPARK)
        found: dict[str, list[Row]] = {}
        for number in range(self.lanes):
            store = self.stores.setdefault(number, InMemory())
            kept = journal.read(store, lambda number=number: self._begun(number))  # type: ignore[misc]
            records = self.kept_topic.unread(number, max(0, kept.lane.next_offset))
            if records:
                for name, rows in kept.lane.step(records).items():
                    found.setdefault(name, []).extend(rows)
                journal.write(store, kept, records, secrets.token_bytes(16), journal.MIN_BYTES)
        self.batch += 1
        writer = DeltaRsWriter(self.settings.tables, self._generation().generation.app_id)
        writer.prepare()
        writer.write(self.batch, to_tables(found, self.batch))
        writer.close()

    def _lanes(self) -> list[Lane]:
        return [
            journal.read(self.stores.get(number, InMemory()), lambda number=number: self._begun(number)).lane  # type: ignore[misc]
            for number in range(self.lanes)
        ]

    def _generation(self) -> Checkpoint:
        directory = self.checkpoint / stream.NAME
        generation = checkpoint_directory.load(directory)
        assert generation is not None
        return Checkpoint(directory, generation)

    def _begun(self, number: int) -> Lane:
        lane = Lane(self.factory, TOPIC, number, self.lanes, cluster=CLUSTER)
        of = self._generation().seeds
        assert of is not None
        lane.load(initial_lanes.read(of, number))
        return lane


@contextmanager
def _opened(directory: Path) -> Iterator[Store]:
    store = Store(directory)
    try:
        yield store
    finally:
        store.close()
