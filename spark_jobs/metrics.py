"""Counters of the job for Prometheus. Labels are of fixed sets only (stages, programs); ids are never labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from spark_jobs.stage_times import STAGES
from spark_jobs.stream import Committed

LOOPBACK = "127.0.0.1"

PROGRAMS = ("driver", "jvm", "workers")
"""Of the job on this machine: this process, Spark, and the Python processes that Spark starts."""


SPARK_STEPS = (
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "addBatch",
    "commitOffsets",
    "triggerExecution",
)
"""Keys of `durationMs` in a query's progress that a batch of a Kafka source has."""


class Metrics:
    """All counters of one job, in a registry of its own."""

    def __init__(self) -> None:
        """Register them."""
        self.registry = CollectorRegistry()
        self.batches = Counter("kardia_stream_batches", "batches in the tables", registry=self.registry)
        self.rows = Counter("kardia_stream_rows", "rows written to the live tables", registry=self.registry)
        self.last_batch = Gauge("kardia_stream_last_batch", "highest batch in the tables", registry=self.registry)
        self.write_seconds = Gauge(
            "kardia_stream_write_seconds", "time the last batch took in the sink", registry=self.registry
        )

        self.foreign = Counter(
            "kardia_stream_foreign_records",
            "records refused because they are of another cluster",
            registry=self.registry,
        )

        self.not_applied = Counter(
            "kardia_stream_not_applied",
            "events and rows left out because they could not be applied; each is a defect to be reported",
            registry=self.registry,
        )

        self.files_forgotten = Counter(
            "kardia_stream_files_forgotten",
            "files of rotated logs whose positions are remembered no longer, by lane; a line of them that came again "
            "would count as new",
            registry=self.registry,
        )

        self.lanes_read = Counter(
            "kardia_stream_lanes_read",
            "lanes read back from the state, each once after a start; more come of workers that ended, and cost time",
            registry=self.registry,
        )

        self.marks_forgotten = Counter(
            "kardia_stream_archive_marks_forgotten",
            "marks of the archive that were dropped, the longest unmoved first; each costs one look into the table "
            "events if its source speaks again",
            registry=self.registry,
        )

        self.archive_behind = Gauge(
            "kardia_stream_archive_behind_records",
            "records of the topic that are in the live tables and not in the table events yet; it is written every two "
            "minutes, so some are always. One that only grows: the archive does not come to its end",
            registry=self.registry,
        )
        self.events = Counter(
            "kardia_stream_events", "events that the lanes took, repeats included", registry=self.registry
        )
        self.stage_seconds = Counter(
            "kardia_stream_stage_seconds",
            f"what each stage of the batches took, those of the workers added up over the lanes: {', '.join(STAGES)}",
            ["stage"],
            registry=self.registry,
        )
        self.stage_cpu_seconds = Counter(
            "kardia_stream_stage_cpu_seconds",
            "CPU of the same; divided by kardia_stream_events_total it is what an event costs there",
            ["stage"],
            registry=self.registry,
        )
        self.program_cpu_seconds = Gauge(
            "kardia_stream_program_cpu_seconds",
            f"CPU used since the start by each program of the job on this machine: {', '.join(PROGRAMS)}",
            ["program"],
            registry=self.registry,
        )
        self.spark_seconds = Gauge(
            "kardia_stream_spark_seconds",
            f"Spark's own durations of its last batch, by step: {', '.join(SPARK_STEPS)}; addBatch holds all "
            "stages and the rest after them",
            ["step"],
            registry=self.registry,
        )
        for stage in STAGES:
            self.stage_seconds.labels(stage)
            self.stage_cpu_seconds.labels(stage)

    def watch(self, jvm_pid: int | None) -> None:
        """Tell the CPU of the programs, looked up when somebody asks."""
        if jvm_pid is None:
            return
        for program in PROGRAMS:
            self.program_cpu_seconds.labels(program).set_function(_cpu_of(program, jvm_pid))

    def follow(self, durations: Callable[[], Mapping[str, float]]) -> None:
        """Tell Spark's own durations, step -> milliseconds, looked up when somebody asks."""
        for step in SPARK_STEPS:
            self.spark_seconds.labels(step).set_function(partial(_seconds_of, step, durations))

    def follow_archive(self, behind: Callable[[], int]) -> None:
        """Tell how far the archive is behind, looked up when somebody asks."""
        self.archive_behind.set_function(behind)

    def committed(self, batch: Committed) -> None:
        """Take note of a batch."""
        self.batches.inc()
        self.rows.inc(batch.rows)
        self.foreign.inc(batch.foreign)
        self.not_applied.inc(batch.not_applied)
        self.files_forgotten.inc(batch.files_forgotten)
        self.lanes_read.inc(batch.lanes_read)
        self.last_batch.set(batch.batch_id)
        self.write_seconds.set(batch.seconds)
        self.events.inc(batch.events)
        for stage, (wall_s, cpu_s) in batch.spent.items():
            self.stage_seconds.labels(stage).inc(wall_s)
            self.stage_cpu_seconds.labels(stage).inc(cpu_s)

    def serve(self, port: int) -> None:
        """Serve them on loopback from a thread."""
        start_http_server(port, LOOPBACK, registry=self.registry)


def _seconds_of(step: str, durations: Callable[[], Mapping[str, float]]) -> float:
    return durations().get(step, 0.0) / 1_000


def _cpu_of(program: str, jvm_pid: int) -> Callable[[], float]:
    def seconds() -> float:
        try:
            if program == "driver":
                return _seconds(psutil.Process())
            jvm = psutil.Process(jvm_pid)
            if program == "jvm":
                return _seconds(jvm)
            ended = jvm.cpu_times()
            return ended.children_user + ended.children_system + sum(map(_with_ended, jvm.children(recursive=True)))
        except psutil.Error:  # it is going, and so is the job
            return 0.0

    return seconds


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _with_ended(process: psutil.Process) -> float:
    """With the children that have ended."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)
