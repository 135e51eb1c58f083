"""A job and a follower over the records of one recorded story, without a broker and without Spark.

The job is lanes that are stepped in batches, written by the product's writer as the batches of a generation, and a
checkpoint with Spark's files of offsets; the follower's lanes, what they tell and the store are those of the product.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from api.settings import ApiSettings
from ingest.wire.batches import CLUSTER_HEADER, FORMAT_HEADER
from kardia.tables import PROGRESS, Row
from live.followed import Followed
from live.followed_store import FollowedStore
from live.follower import Lanes
from spark_jobs.checkpoint import state_codec
from spark_jobs.checkpoint.checkpoint_directory import Agreement, Checkpoint, Generation, save
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.schemas import to_arrow, to_tables
from spark_jobs.writers.delta_rs import DeltaRsWriter
from tests.live.living import CLUSTER
from tests.live.test_same_rows import FACTORY, FACTS
from tests.live.test_topic import sent
from tests.spark_jobs.support import LANES

TOPIC = "kardia.events"
FIRST_BATCH = 7
"""Of the generation: Spark's numbers and those in the tables are not the same."""

Rows = dict[str, list[Row]]


def topic() -> list[list[Record]]:
    """Records of the story, by lane."""
    found: list[list[Record]] = [[] for _ in range(LANES)]
    for lane, value, headers in sent():
        said = dict(headers)
        record = Record(len(found[lane]), 1_000, said[FORMAT_HEADER], value, said[CLUSTER_HEADER])
        found[lane].append(record)
    return found


def new_lanes(factory: ObserverFactory = FACTORY) -> list[Lane]:
    return [Lane(factory, TOPIC, number, LANES, cluster=CLUSTER) for number in range(LANES)]


def facts(rows: Mapping[str, Sequence[Row]]) -> dict[str, Counter[str]]:
    """Rows as they are written, counted."""
    written = to_tables({name: list(rows.get(name, ())) for name in FACTS}, 0)
    return {
        name: Counter(map(repr, written[name].drop_columns(["batch_id"]).to_pylist())) if name in written else Counter()
        for name in FACTS
    }


class Job:
    """Writes batch after batch."""

    def __init__(self, home: Path) -> None:
        self.lanes, self.ends = new_lanes(), dict.fromkeys(range(LANES), 0)
        agreement = Agreement("live", CLUSTER, TOPIC, LANES)
        self.generation = Generation(1, "abcd", FIRST_BATCH, agreement, state_codec.VERSION, parts=1)
        self.tables, directory = home / "tables", home / "checkpoint" / "live"
        for folder in (self.tables, directory / "abcd" / "offsets", directory / "abcd" / "commits"):
            folder.mkdir(parents=True)
        save(directory, self.generation)
        self.checkpoint = Checkpoint(directory, self.generation)
        self.number = -1
        self.rows: Rows = {}
        """Of all batches."""
        self._writer = DeltaRsWriter(self.tables, self.generation.app_id)
        self._writer.prepare()

    @property
    def batch_id(self) -> int:
        return FIRST_BATCH + self.number

    def write(self, records: Mapping[int, Sequence[Record]]) -> None:
        """One batch: offsets, rows, commit, as Spark does it."""
        self.number += 1
        self.ends |= {lane: some[-1].offset + 1 for lane, some in records.items() if some}
        lines = ["v1", "{}", json.dumps({TOPIC: {str(lane): end for lane, end in self.ends.items()}})]
        spark = self.checkpoint.directory / self.generation.name
        assert isinstance(spark, Path)
        (spark / "offsets" / str(self.number)).write_text("\n".join(lines))
        rows: Rows = {}
        for lane, some in records.items():
            for name, told in self.lanes[lane].step(some).items():
                rows.setdefault(name, []).extend(told)
        tables = to_tables(rows, self.batch_id)
        tables.setdefault(PROGRESS.name, to_arrow(PROGRESS, (), self.batch_id))
        self._writer.write(self.batch_id, tables)
        (spark / "commits" / str(self.number)).write_text("v1\n{}")
        for name, told in rows.items():
            self.rows.setdefault(name, []).extend(told)

    def close(self) -> None:
        self._writer.close()


class Ahead:
    """A follower of a job, and the store that it feeds."""

    def __init__(self, job: Job, now_ms: int) -> None:
        """Take the lanes over as the job has them."""
        self.job, self.followed = job, Followed()
        self.lanes = Lanes(copied(job.lanes), self.followed, "")
        self.store = FollowedStore(ApiSettings(tables=job.tables), lambda: now_ms, self.followed)

    def look(self) -> None:
        """Learn how far the tables are."""
        self.lanes.ends = self.job.checkpoint.ends_of(self.job.number)
        self.followed.wrote(self.job.batch_id, self.lanes.ends)
        if not self.followed.is_ready and not self.lanes.is_behind():
            self.followed.begin()


def copied(lanes: Sequence[Lane]) -> list[Lane]:
    """Other lanes with the same state, by its bytes."""
    found = new_lanes()
    for lane, other in zip(lanes, found, strict=True):
        other.load(lane.save())
    return found
