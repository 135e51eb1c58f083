"""The lanes of a running job, as its last batch left them: read by a child process, which has Spark, writes them, ends.

The state of the lanes is in Spark's store, which only Spark reads. A server that keeps a JVM for that, or the modules
of Spark, would pay for it in memory for as long as it lives; so a child reads, and gives each lane as the bytes of
`Lane.save`. Nothing of the job is written and no lease is taken: it goes on meanwhile. A batch whose state it has
cleaned away before it was read is tried again with the one that is the last then. The child ends with its parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

import kardia
from kardia.observe import ObserverSettings
from spark_jobs.checkpoint.checkpoint_directory import Checkpoint, Generation, load
from spark_jobs.errors import JobError, StateError, StoppedError
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory
from stores.locations import Folder, folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 5
"""Batches that are tried. The job keeps the state of twenty at least, and cleans up once a minute."""

LOOK_S = 0.1
"""How often a parent looks whether its child has ended."""

WITHIN_S = 600.0
"""A child that takes longer is ended: the state of 100,000 members is read in less than a minute."""


class Wanted(msgspec.Struct, frozen=True):
    """What a child is told."""

    checkpoint: str
    generation: str
    observer: ObserverSettings
    into: str


class Given(msgspec.Struct, frozen=True):
    """What it has done: the batch, by Spark's number."""

    number: int


class Refused(msgspec.Struct, frozen=True):
    """Why it could not, in the four parts of a `JobError`."""

    what: str
    where: str
    expected: str
    next_step: str


class Handed(NamedTuple):
    """Lanes, and the batch after which they were so, by Spark's number."""

    number: int
    lanes: list[Lane]


def handed(checkpoint: Checkpoint, observer: ObserverSettings, stopping: Callable[[], bool]) -> Handed | None:
    """The lanes after the last batch of a checkpoint; None if it is to stop. Raises a `JobError`."""
    with tempfile.TemporaryDirectory(prefix="kardia-follow-") as into:
        wanted = Wanted(str(checkpoint.directory), checkpoint.generation.name, observer, into)
        if not _read_by_child(wanted, stopping):
            return None
        number = msgspec.json.decode((Path(into) / "given").read_bytes(), type=Given).number
        agreement, factory = checkpoint.generation.agreement, ObserverFactory(observer)
        lanes = []
        for place in range(agreement.lanes):
            lane = Lane(factory, agreement.topic, place, agreement.lanes, cluster=agreement.cluster)
            lane.load((Path(into) / f"lane-{place}").read_bytes())
            lanes.append(lane)
        return Handed(number, lanes)


def _read_by_child(wanted: Wanted, stopping: Callable[[], bool]) -> bool:
    """Have a child read; False if it is to stop meanwhile."""
    root = str(Path(kardia.__file__).resolve().parent.parent)
    paths = [root, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
    said = Path(wanted.into) / "said"
    with said.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "live.handed"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        if child.stdin is None:
            raise AssertionError("a pipe was asked for")
        try:
            child.stdin.write(msgspec.json.encode(wanted) + b"\n")
            child.stdin.flush()  # and stays open: its end is the child's
            waited_s = 0.0
            while waited_s < WITHIN_S:
                try:
                    status = child.wait(LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    waited_s += LOOK_S
                if stopping():
                    return False
            else:
                status = -1
        except BrokenPipeError:
            status = child.wait()
        finally:
            with child.stdin:
                child.kill()
                child.wait()
    if status == 0:
        return True
    refused = Path(wanted.into) / "refused"
    if refused.exists():
        found = msgspec.json.decode(refused.read_bytes(), type=Refused)
        raise StoppedError(found.what, found.where, found.expected, found.next_step)
    last = (said.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
    raise StoppedError(
        f"the lanes of the job could not be read: {last[:300]}",
        wanted.checkpoint,
        "a process with Spark that reads the state of the last batch",
        "see whether Java and memory are there (1 GB for a moment); answers rest on the tables alone meanwhile",
    )


# --- the child -------------------------------------------------------------------------------------------------------


class _Pinned(Checkpoint):
    """A checkpoint at one of its batches, whatever the job commits meanwhile."""

    def __init__(self, directory: Folder, generation: Generation, number: int) -> None:
        super().__init__(directory, generation)
        self._number = number

    def committed(self) -> int | None:
        return self._number


def main() -> int:
    """Read what standard input asks for; the exit status."""
    wanted = msgspec.json.decode(sys.stdin.buffer.readline(), type=Wanted)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    into = Path(wanted.into)
    try:
        number = _read(wanted, into)
    except JobError as error:
        refused = Refused(error.what, error.where, error.expected, error.next_step)
        (into / "refused").write_bytes(msgspec.json.encode(refused))
        return 2
    (into / "given").write_bytes(msgspec.json.encode(Given(number)))
    return 0


def _end_with_the_parent() -> None:
    # Not by the object of standard input: whoever waits in it holds a lock that the end of the interpreter needs.
    while os.read(0, 1):
        pass
    os._exit(3)


def _read(wanted: Wanted, into: Path) -> int:
    """Write all lanes of the last batch; its number."""
    from spark_jobs import job, stream
    from spark_jobs.jvm import jars, java
    from spark_jobs.jvm.voice import Voice
    from spark_jobs.spark import s3a, scratch, session

    directory, factory = folder(wanted.checkpoint), ObserverFactory(wanted.observer)
    with scratch.scratch() as temporary:
        files = jars.ensure("spark")
        own = {"spark.sql.warehouse.dir": str(temporary / "spark-warehouse")}
        if not isinstance(directory, Path):
            files += jars.ensure(s3a.JARS)
            own |= s3a.settings()
        voice = Voice()
        with voice.lent():
            spark = session.start_session("kardia-follow", "local[1]", files, java.find().home, own, None, temporary)
        where = f"checkpoint {directory}"
        failures: tuple[type[Exception], ...] = (*job.of_others(), StateError)
        try:
            tried = -1
            for left in reversed(range(TRIES)):
                checkpoint = _last(directory, wanted.generation)
                tried, before = checkpoint.committed() or 0, tried
                try:
                    _write(spark, checkpoint, factory, into)
                except failures as error:
                    if left and tried != before:
                        continue
                    failure = error if isinstance(error, JobError) else None
                    raise stream.explain(failure, error, where, session.ended_by_itself(spark)) from error
                else:
                    return tried
            raise AssertionError("the last try returns or raises")
        finally:
            voice.hush()
            session.end_session(spark)


def _last(directory: Folder, name: str) -> Checkpoint:
    """The checkpoint at its last batch."""
    generation = load(directory)
    number = None if generation is None else Checkpoint(directory, generation).committed()
    if generation is None or generation.name != name or number is None:
        raise StoppedError(
            "the job has begun another generation meanwhile",
            str(directory),
            f"the generation {name}",
            "nothing: it is taken up when it has written its first batch",
        )
    return _Pinned(directory, generation, number)


def _write(spark: SparkSession, checkpoint: Checkpoint, factory: ObserverFactory, into: Path) -> None:
    from spark_jobs.checkpoint import change_lane_count

    for lane in change_lane_count.read_lanes(spark, checkpoint, factory):
        (into / f"lane-{lane.lane}").write_bytes(lane.save())


if __name__ == "__main__":
    sys.exit(main())
