"""Files of rotated logs that a lane forgets are counted, from the observer to the counters of the job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ingest.wire.batches import FORMAT, encode_batch
from kardia.events import Event, Kind, shard_of
from kardia.observe import ObserverSettings
from kardia.observe.intake.each_once import MAX_SOURCES
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.metrics import Metrics
from spark_jobs.outputs import FILES_FORGOTTEN, encode_step
from spark_jobs.stream import Sink
from spark_jobs.writers.delta_rs import DeltaRsWriter
from tests.spark_jobs.archiving import Archiving
from tests.spark_jobs.support import CLUSTER

LANES = 1
AT_MS = 1_795_000_000_000.0


def heartbeat(number: int) -> Event:
    """A heartbeat in a file of its own."""
    at = AT_MS + number
    source = f"b/request/{number:06}"
    return Event(
        int(Kind.HEARTBEAT), shard_of("g"), source, 0, 100, at, at, at, at, group_id="g", member_id="a", error_code=0
    )


class Outputs:
    """What the stateful operator gives: a frame that can be taken as Arrow."""

    def __init__(self, outputs: list[tuple[int, str, bytes]]) -> None:
        self._outputs = outputs

    def toArrow(self) -> pa.Table:  # noqa: N802  the name is Spark's
        lanes, tables, blobs = zip(*self._outputs, strict=True) if self._outputs else ((), (), ())
        return pa.table({"lane": pa.array(lanes, pa.int32()), "table": list(tables), "blob": list(blobs)})


@pytest.mark.parametrize("poison", [False, True], ids=["plain", "with an event that cannot be applied"])
def test_the_job_counts_the_files_that_its_lanes_forget(tmp_path: Path, poison: bool) -> None:
    metrics, lane = Metrics(), Lane(ObserverFactory(ObserverSettings(CLUSTER)), "kardia.events", 0, LANES)
    writer = DeltaRsWriter(tmp_path, "app")
    writer.prepare()
    sink = Sink(writer, 0, metrics.committed)
    seen = []
    for batch, numbers in enumerate([range(MAX_SOURCES), range(MAX_SOURCES, MAX_SOURCES + 3), range(2)]):
        events = [heartbeat(number) for number in numbers]
        if poison:
            broken = events[0]._replace(kind=int(Kind.LEAVE), start=200, end=300, detail={"members": [[]]})
            at = events[-1].logged_at_ms + 60_000
            tick = Event(int(Kind.TICK), -1, events[-1].source, 300, 300, at, at, at, at)
            events += [broken, tick]
        before = lane.save() if batch else b""
        rows = lane.step(
            [Record(batch, 0, FORMAT.encode(), encode_batch(events))],
            lambda before=before: before,  # type: ignore[misc]
        )
        outputs = [(0, name, blob) for name, blob in encode_step(rows, {FILES_FORGOTTEN: lane.model.files_forgotten})]
        sink(Outputs(outputs), batch)  # type: ignore[arg-type]
        seen.append(metrics.registry.get_sample_value("kardia_stream_files_forgotten_total"))
    writer.close()
    assert seen == [0, 3, 5]  # the first two were forgotten, and are new ones for the lane
    assert bool(metrics.registry.get_sample_value("kardia_stream_not_applied_total")) == poison
    assert not [entry for entry in tmp_path.iterdir() if entry.name == "files_forgotten"]  # it is no table


def test_the_archive_counts_the_marks_that_it_drops(tmp_path: Path) -> None:
    archive = Archiving(tmp_path, LANES)
    records = [(0, encode_batch([heartbeat(number) for number in numbers])) for numbers in (range(1_000), range(1_003))]
    archive.run(records, 1)
    assert archive.forgotten == 0
    archive.run(records, 1)
    assert archive.forgotten == 3
    archive.run([*records, records[0]], 1)
    assert len(archive.ids()) == len(set(archive.ids())) == 1_003
