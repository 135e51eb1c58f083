"""How cost grows with who is held: the real job on 1,000, 10,000 and 100,000 groups of ten at one rate of events.

Per size: all groups form; then a process sends their traffic at a steady rate while the job reads along. Latency is
from the instant of an event (of a member that was never heard of) to its row in a table as another process reads it,
the collector's 100 ms and that process's look every 20 ms included. Then the job is killed, and the clock runs from its
start anew to the first batch that it commits. `--scale 10` takes all three sizes, 1 the first two, 0.1 the first.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pyarrow.parquet as pq
from confluent_kafka import Producer
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from bench.lanes import Alone, alone, told
from bench.population import CALM, Batch, Population, Shape
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb
from bench.stage_costs import between, counts
from demo.broker import Broker
from demo.ports import free_ports
from ingest.wire.batches import CLUSTER_HEADER, FORMAT, FORMAT_HEADER, batches
from kardia.events import DEFAULT_LANES, lane_of, shard_of

GROUPS = (1_000, 10_000, 100_000)
RATE = 20_000.0
"""Events per second."""

SEND_EVERY_S = 0.1
"""As often as a collector that follows a log."""

WARM_S = 30.0
SECONDS = 60.0
PROBE_EVERY_S = 0.37
LOOK_EVERY_S = 0.02
READY_WITHIN_S = 600.0
CAUGHT_UP_MS = 3_000.0
TOPIC = "kardia.events"
CLUSTER = "bench"
P95_MS = 1_200.0
"""Required at 10,000 groups."""

RESTART_S = {1_000: 20.0, 10_000: 20.0, 100_000: 60.0}

HEADERS: list[tuple[str, str | bytes | None]] = [(FORMAT_HEADER, FORMAT.encode()), (CLUSTER_HEADER, CLUSTER.encode())]


class Load(NamedTuple):
    """What is sent."""

    groups: int
    rate: float
    """Events per second."""
    shape: Shape = CALM


@dataclass
class Measured:
    """One size."""

    members: int
    rate: float
    latencies_ms: list[float]
    beside_ms: list[float]
    """Of those that share their lane with what stands out (`Shape`)."""
    batch_ms: float
    cpu_us: float
    cores: float
    memory: dict[str, float]
    checkpoint_mb: float
    written_mb_s: float
    tables_mb_s: float
    restart_s: float
    stages: dict[str, Any]
    """Where the time of the batches went (`bench.stage_costs`)."""


def _sent(bootstrap: str, load: Load, formed: Any, ended: Any, count: Any) -> None:
    """The process that sends: all groups form, then their traffic until `ended`."""
    population = Population(load.groups, load.rate, shape=load.shape)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 5, "log_level": 0})
    for batch in population.forming(time.time() * 1_000):
        send(producer, batch)
    producer.flush(300)
    formed.set()
    probes, probe_at = 0, 0.0
    last_ms = time.time() * 1_000
    while not ended.is_set():
        time.sleep(max(0.0, last_ms / 1_000 + SEND_EVERY_S - time.time()))
        now_ms = time.time() * 1_000
        more = []
        if now_ms >= probe_at:
            more, probes, probe_at = [population.probe(probes, now_ms)], probes + 1, now_ms + PROBE_EVERY_S * 1_000
        batch, events = population.stretch(last_ms, now_ms, more)
        send(producer, batch)
        count.value += events
        last_ms = now_ms
    producer.flush(60)


def send(producer: Producer, batch: Batch) -> None:
    """Events of each lane into the topic, as a collector sends them."""
    for lane, events in batch.items():
        for value, _ in batches(events):
            while True:
                try:
                    producer.produce(TOPIC, value, key=str(lane).encode(), partition=lane, headers=HEADERS)
                    break
                except BufferError:
                    producer.poll(0.1)
    producer.poll(0)


class Watch:
    """Rows of probes as they come into the table `members`."""

    def __init__(self, tables: Path, trouble_lane: int | None = None) -> None:
        """Nothing has come. Probes of `trouble_lane` are kept apart."""
        self._trouble_lane = trouble_lane
        self.beside_ms: list[float] = []
        self._path = tables / "members"
        self._table: DeltaTable | None = None
        self._known: set[str] = set()
        self._probes: set[str] = set()

    def look(self) -> list[float]:
        """Latencies of the probes that have come since the last look, in milliseconds."""
        try:
            if self._table is None:
                self._table = DeltaTable(str(self._path))
            else:
                self._table.update_incremental()
            files = set(self._table.file_uris())
        except (TableNotFoundError, OSError):
            return []
        fresh, self._known = files - self._known, files
        found: list[float] = []
        for file in fresh:
            try:
                rows = pq.read_table(
                    file.removeprefix("file://"), columns=["group_id", "joined_at_ms"], partitioning=None
                )
            except FileNotFoundError:  # compacted meanwhile
                continue
            now_ms = time.time() * 1_000
            for group, at_ms in zip(rows["group_id"].to_pylist(), rows["joined_at_ms"].to_pylist(), strict=True):
                if group.startswith("probe-") and group not in self._probes:
                    self._probes.add(group)
                    beside = lane_of(shard_of(group)) == self._trouble_lane
                    (self.beside_ms if beside else found).append(now_ms - at_ms)
        return found


def _latencies(watch: Watch, job: Any, until: Any) -> list[float]:
    """Of all probes that come until `until` says so."""
    found: list[float] = []
    while not until(found):
        if job.poll() is not None:
            raise RuntimeError("the job has ended (size stage). Expected: a job that follows. Next: see its stream.log")
        found += watch.look()
        time.sleep(LOOK_EVERY_S)
    return found


def _last_commit(checkpoint: Path) -> int:
    return max((int(path.name) for path in checkpoint.glob("live/*/commits/[0-9]*") if path.name.isdigit()), default=-1)


def _size_mb(directory: Path) -> float:
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):  # it goes while it is looked at
            total += path.stat().st_size if path.is_file() else 0
    return total / 1e6


def _written(pid: int) -> int:
    """Bytes that a process and those below it have written to disk."""
    total = 0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error, AttributeError):
            total += one.io_counters().write_bytes
    return total


def _kill(pid: int) -> None:
    process = psutil.Process(pid)
    for one in (*process.children(recursive=True), process):
        with contextlib.suppress(psutil.Error):
            one.kill()


@contextlib.contextmanager
def _sender(bootstrap: str, load: Load) -> Iterator[tuple[Any, Any]]:
    """(Set when all groups have formed; events sent since) of a process that sends."""
    context = multiprocessing.get_context("spawn")
    formed, ended, count = context.Event(), context.Event(), context.Value("q", 0)
    process = context.Process(target=_sent, args=(bootstrap, load, formed, ended, count), daemon=True)
    process.start()
    try:
        yield formed, count
    finally:
        ended.set()
        process.join(30)
        if process.is_alive():
            process.kill()


def measure(directory: Path, load: Load, seconds: float, warm_s: float, *, again: bool = True) -> Measured:
    """One size, from nothing. `again`: whether the job is started anew after it was killed, and that is measured."""
    tables, checkpoint = directory / "tables", directory / "checkpoint"
    with Broker(directory / "broker") as broker:
        broker.create_topic(TOPIC, DEFAULT_LANES)
        command = (
            *("stream", "--bootstrap-server", broker.bootstrap, "--cluster", CLUSTER, "--no-archive"),
            *("--tables", str(tables), "--checkpoint", str(checkpoint)),
        )
        (port,) = free_ports(1)
        with _sender(broker.bootstrap, load) as (formed, count):
            formed.wait(READY_WITHIN_S)
            watch = Watch(tables, load.shape.trouble_lane())
            with role(directory / "stream.log", *command, "--metrics-port", str(port)) as job:
                end_s = time.monotonic() + READY_WITHIN_S
                _latencies(watch, job, lambda found: min(found, default=1e9) < CAUGHT_UP_MS or _over(end_s))
                warm_end_s = time.monotonic() + warm_s
                _latencies(watch, job, lambda _: _over(warm_end_s))
                cpu, sent, began_s = cpu_seconds(job.pid), count.value, time.monotonic()
                batches_before, written, tables_mb = _last_commit(checkpoint), _written(job.pid), _size_mb(tables)
                watch.beside_ms.clear()
                counted = counts(port)
                latencies = _latencies(watch, job, lambda _: _over(began_s + seconds))
                passed_s = time.monotonic() - began_s
                events = max(1, count.value - sent)
                used_s = cpu_seconds(job.pid) - cpu
                done = max(1, _last_commit(checkpoint) - batches_before)
                written_mb_s = (_written(job.pid) - written) / 1e6 / passed_s
                stages = between(counted, counts(port))
                memory = memory_mb(job.pid)
                checkpoint_mb, tables_mb_s = _size_mb(checkpoint), (_size_mb(tables) - tables_mb) / passed_s
                _kill(job.pid)
            restart_s = _started_anew(directory, command, checkpoint) if again else 0.0
    if len(latencies) < 2:
        raise RuntimeError(
            f"{len(latencies)} probes came within {seconds:.0f} s (size stage, {load.groups} groups). Expected: one "
            f"every {PROBE_EVERY_S} s. Next: a lower rate for this machine"
        )
    return Measured(
        (load.groups - 1) * 10 + (load.shape.large or 10),
        events / passed_s,
        latencies,
        watch.beside_ms,
        passed_s / done * 1_000,
        used_s / events * 1e6,
        used_s / passed_s,
        memory,
        checkpoint_mb,
        written_mb_s,
        tables_mb_s,
        restart_s,
        stages,
    )


def _started_anew(directory: Path, command: Sequence[str], checkpoint: Path) -> float:
    """Seconds from the start of the job to the first batch that it commits."""
    last, began_s = _last_commit(checkpoint), time.monotonic()
    with role(directory / "again.log", *command) as job:
        while _last_commit(checkpoint) <= last and not _over(began_s + READY_WITHIN_S):
            time.sleep(LOOK_EVERY_S)
        seconds = time.monotonic() - began_s
        _kill(job.pid)
    return seconds


def _over(end_s: float) -> bool:
    return time.monotonic() >= end_s


def size_stage(directory: Path, scale: float) -> list[Result]:
    """Every size up to `scale`, and the slopes between the smallest and the largest."""
    sizes = [groups for groups in GROUPS if groups <= scale * GROUPS[1]] or [max(10, int(scale * GROUPS[1]))]
    share = min(1.0, scale)
    found: list[tuple[Alone, Measured]] = []
    results: list[Result] = []
    for groups in sizes:
        rate = RATE * min(1.0, groups / GROUPS[0])
        lanes = alone(groups, rate)
        one = measure(directory / str(groups), Load(groups, rate), max(8.0, SECONDS * share), WARM_S * share)
        found.append((lanes, one))
        results += [told(lanes), *_told(groups, one)]
    for (lanes_before, first), (lanes, last) in itertools.pairwise(found):
        thousands = (last.members - first.members) / 1_000
        slope = (last.batch_ms - first.batch_ms) / thousands
        more = {
            "lanes alone, CPU ms": round((lanes.batch_ms - lanes_before.batch_ms) / thousands, 3),
            "p95 ms": round((percentile(last.latencies_ms, 95) - percentile(first.latencies_ms, 95)) / thousands, 2),
            "CPU µs of an event": round((last.cpu_us - first.cpu_us) / thousands, 3),
            "MB": round((sum(last.memory.values()) - sum(first.memory.values())) / thousands, 2),
        }
        what = f"slope, {first.members:,} to {last.members:,} members: a batch, per 1,000 members"
        results.append(Result("size", what, slope, "ms", more=more))
    return results


def percentile(latencies_ms: list[float], percent: int) -> float:
    """The percentile of so many latencies."""
    return statistics.quantiles(latencies_ms, n=100, method="inclusive")[percent - 1]


def _told(groups: int, one: Measured) -> list[Result]:
    named = f"{groups:,} groups of 10"
    day = 86_400 / 1_000
    more = {
        "p50 ms": round(percentile(one.latencies_ms, 50)),
        "p99 ms": round(percentile(one.latencies_ms, 99)),
        "probes": len(one.latencies_ms),
        "events/s": round(one.rate),
        "batch ms": round(one.batch_ms),
        "cores": round(one.cores, 2),
    }
    kept = {
        "checkpoint MB": round(one.checkpoint_mb),
        "written MB/s": round(one.written_mb_s, 1),
        "tables GB a day, before upkeep": round(one.tables_mb_s * day, 1),
        **{f"{name} MB": round(size) for name, size in sorted(one.memory.items())},
    }
    return [
        Result(
            "size", f"{named}: event to row, p95", percentile(one.latencies_ms, 95), "ms", None, "", one.cpu_us,
            P95_MS if groups == GROUPS[1] else None, more,
        ),
        Result("size", f"{named}: CPU of the job, an event", one.cpu_us, "µs", more=one.stages),
        Result("size", f"{named}: memory of the job", sum(one.memory.values()), "MB", more=kept),
        Result("size", f"{named}: killed, to the first new batch", one.restart_s, "s", target=RESTART_S.get(groups)),
    ]  # fmt: skip
