"""Damaged lines through everything that reads them: nothing raises, every line is counted, work and memory are bounded.

Goal: whatever stands in a log or a capture, each line is an event, ignored or rejected; no event of one raises in the
observer (so the guard is off here), every row fits its table, and a line costs a bounded time and memory. Method: real
lines, damaged by a seed (`tests/support/mutations.py`), a thousand at a time, as a replay reads them (folded) and as
the live job does (records of a topic, state as bytes between two batches). `KARDIA_MUTATION_SEED` plays one batch
again.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.archives.ranges import plan, tick
from ingest.blocks import Gathered, read_block
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.router import Directory
from ingest.stamps import zone_named
from ingest.wire.batches import batches
from kardia.events import DEFAULT_LANES, Kind
from kardia.observe import ObserverSettings
from kardia.observe.careful import REASON
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.outputs import encode_rows, merge
from spark_jobs.replay.inputs import captured_pieces
from spark_jobs.replay.portions import Portions
from spark_jobs.replay.worker import Worker
from spark_jobs.schemas import to_tables
from tests.support.mutations import damaged

LINES = 1_000
"""Lines of a batch of each kind of log."""

CPU_MS_PER_LINE = 5.0
"""A line of a request log costs 0.02 ms, one of several kB of damage a few; the bound is for the machine of a test."""

CPU_MS = 3_000.0
MEMORY_BYTES = 160 << 20
MEMORY_PER_BYTE = 60

FACTORY = ObserverFactory(ObserverSettings("c", sample_within_ms=5_000))
ALL_LANES = list(range(DEFAULT_LANES))


class Bounds:
    """CPU time and memory of a batch."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def __enter__(self) -> Bounds:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
        self._resident = _status("VmRSS")
        self._began_s = time.process_time()
        return self

    def check(self, lines: int, size: int) -> None:
        spent_ms = (time.process_time() - self._began_s) * 1000
        taken = _status("VmHWM") - self._resident
        assert spent_ms <= CPU_MS + CPU_MS_PER_LINE * lines, f"{self._seed}: {spent_ms:.0f} ms for {lines} lines"
        assert taken <= MEMORY_BYTES + MEMORY_PER_BYTE * size, f"{self._seed}: {taken >> 20} MiB for {size} bytes"

    def __exit__(self, *_: object) -> None:
        pass


def _status(name: str) -> int:
    """A number of /proc/self/status, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def replayed(directory: Path, seed: str) -> int:
    """A batch of every kind as files of a replay, in this process: pieces, portions, lanes, tables."""
    given: dict[str, list[bytes]] = {}
    changed = 0
    for kind in ("request", "server", "offsets"):
        given[kind], count = damaged(kind, seed, LINES if kind == "request" else LINES // 4)
        changed += count
    paths = {kind: directory / f"{kind}.log" for kind in given}
    size = 0
    for kind, lines in given.items():
        size += paths[kind].write_bytes(b"\n".join(lines) + b"\n")
    with Bounds(seed) as bounds:
        worker = Worker(FACTORY, directory, "w", ALL_LANES, DEFAULT_LANES)
        portions = Portions()
        portions.add(*captured_pieces([paths["offsets"]], [], DEFAULT_LANES, directory))
        for one in plan([paths["request"]], [paths["server"]]):
            parsed = worker.parse(one)
            for piece in parsed.pieces:
                assert piece.events + sum(piece.ignored.values()) >= piece.lines, (seed, one.path)
            portions.add(parsed.pieces, parsed.learned)
        for portion in portions.ready([]):
            tables = to_tables(merge(worker.step(portion).outputs), portion.number)
            if "rejected" in tables:
                assert REASON not in tables["rejected"]["reason"].to_pylist(), seed
        bounds.check(sum(map(len, given.values())), size)
    for path in directory.iterdir():
        path.unlink()
    return changed


class Live:
    """Lanes that go on from batch to batch, as the job's do: what one damaged line left behind, the next one meets."""

    def __init__(self) -> None:
        self._lanes = {lane: Lane(FACTORY, "t", lane, DEFAULT_LANES) for lane in ALL_LANES}
        self._number = 0

    def take(self, seed: str) -> int:
        self._number += 1
        lines, changed = damaged("request", seed, LINES)
        said, more = damaged("server", seed, LINES // 4)
        with Bounds(seed) as bounds:
            directory = Directory()
            lanes: list[list[tuple[bytes, int]]] = [[] for _ in ALL_LANES]
            for kind, given in (("request", lines), ("server", said)):
                zone = zone_named("UTC")
                dialect = RequestJson(zone) if kind == "request" else ServerLog(zone)
                source, gathered = f"b/{kind}/{self._number}", Gathered(DEFAULT_LANES, directory)
                block = b"\n".join(given) + b"\n"
                read_block(dialect, block, source, 0, gathered)
                assert gathered.lines == block.count(b"\n")
                for client, waiting in gathered.unrouted.items():
                    for shard in directory.shards_of(client):
                        gathered.events[shard % DEFAULT_LANES] += [event._replace(shard=shard) for event in waiting]
                at_ms = gathered.last_at_ms or 0.0
                for lane, events in enumerate(gathered.events):
                    events.sort(key=lambda event: (event.start, event.shard))
                    own = [event for event in events if event.kind != Kind.TICK]
                    ticked = tick(source, 0, len(block), at_ms, len(own), gathered.lines, {}, at_ms, gathered.signs())
                    lanes[lane] += batches([*own, ticked])
            for number, records in enumerate(lanes):
                model = self._lanes[number]
                first = max(model.next_offset, 0)
                rows = model.step(Record(first + at, 0, b"msgpack/1", data) for at, (data, _) in enumerate(records))
                blob = model.save()
                self._lanes[number] = Lane(FACTORY, "t", number, DEFAULT_LANES)
                self._lanes[number].load(blob)
                encoded = [(number, name, encode_rows(found)) for name, found in rows.items() if found]
                tables = to_tables(merge(encoded), self._number)
                if "rejected" in tables:
                    assert REASON not in tables["rejected"]["reason"].to_pylist(), seed
            bounds.check(LINES * 5 // 4, sum(map(len, lines)) + sum(map(len, said)))
        return changed + more


def seeds(base: str, lines: int) -> Iterator[str]:
    """Seeds until so many lines have been damaged; one alone if it is asked for."""
    asked = os.environ.get("KARDIA_MUTATION_SEED")
    if asked:
        yield asked
        return
    number = 0
    while number * LINES // 3 < lines:
        yield f"{base}-{number}"
        number += 1


def run(directory: Path, base: str, lines: int) -> int:
    live, done = Live(), 0
    for number, seed in enumerate(seeds(base, lines)):
        try:
            done += live.take(seed) if number % 2 else replayed(directory, seed)
        except Exception as error:
            raise AssertionError(f"KARDIA_MUTATION_SEED={seed}: {type(error).__name__}: {error}") from error
        if number % 16 == 15:
            live = Live()
    return done


def test_text_lines_of_old_brokers_are_damaged_as_well() -> None:
    """A third of the batches is made of them."""
    seeds_of_a_run = list(seeds("same", 4_000))
    text = [
        seed for seed in seeds_of_a_run if any(b"RequestHeader(" in line for line in damaged("request", seed, 50)[0])
    ]
    assert len(text) >= len(seeds_of_a_run) // 4


def test_damaged_lines_stop_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "same", 4_000) >= 3_000


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(8))
def test_half_a_million_damaged_lines_stop_nothing(tmp_path: Path, part: int) -> None:
    base = f"{secrets.randbelow(2**32)}-{part}"
    run(tmp_path, base, 500_000 // 4)
