"""The observer alone, in one process: requests applied per second, with quiet stretches folded and one by one; and the
coordinator model, which answers requests as a broker would."""

from __future__ import annotations

import gc
import time
from pathlib import Path

from bench.fleet import Fleet
from bench.lines import write_log
from bench.result import Result, Usage
from ingest.archives.ranges import parse_range, plan
from ingest.router import Directory
from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import Heartbeat, Join, Sync
from kardia.events import DEFAULT_LANES, Event, for_shard, lane_of
from kardia.observe import Observer, ObserverSettings
from kardia.stretches import Stretch

LINES = 600_000
HEARTBEATS = 200_000


def observer_stage(directory: Path, scale: float) -> list[Result]:
    """Apply the same log both ways, then let the model answer heartbeats."""
    log = directory / "kafka-request.log"
    write_log(log, int(LINES * scale), Fleet.for_rate())
    rates: dict[bool, tuple[float, float]] = {}
    for fold in (False, True):
        steps, requests = _steps(log, fold)
        gc.disable()  # as in the job: what a step makes has no cycles
        usage, started = Usage(), time.perf_counter()
        for lane, (events, stretches) in enumerate(steps):
            observer = Observer(ObserverSettings(cluster_id="bench"), lane)
            observer.step(events, stretches)
            observer.finish()
        rates[fold] = requests / (time.perf_counter() - started), usage.cpu_s() / requests * 1e6
        gc.enable()
    answers, each = _model(int(HEARTBEATS * scale))
    return [
        Result(
            *("observer", "requests applied, folded", rates[True][0], "events/s"),
            *(rates[False][0], "one by one", rates[True][1], None),
            {"CPU µs one by one": round(rates[False][1], 2)},
        ),
        Result("model", "heartbeats answered by the coordinator model", answers, "requests/s", cpu_us=each),
    ]


def _steps(log: Path, fold: bool) -> tuple[list[tuple[list[Event], list[Stretch]]], int]:
    """What each lane is given, and how many requests that are."""
    parsed = [parse_range(piece, fold=fold) for piece in plan([log])]
    directory = Directory()
    for piece in parsed:
        directory.merge(piece.directory)
    lanes: list[tuple[list[Event], list[Stretch]]] = [([], []) for _ in range(DEFAULT_LANES)]
    for piece in parsed:
        for lane, (events, stretches) in enumerate(zip(piece.events, piece.stretches, strict=True)):
            lanes[lane][0].extend(events)
            lanes[lane][1].extend(stretches)
        for client_id, host, unrouted in piece.unrouted:
            for shard in directory.shards_of((client_id, host)):
                lanes[lane_of(shard)][0].extend(for_shard(event, shard) for event in unrouted)
        for client_id, host, found in piece.unrouted_stretches:
            for shard in directory.shards_of((client_id, host)):
                lanes[lane_of(shard)][1].extend(stretch.for_shard(shard) for stretch in found)
    requests = sum(len(events) + sum(map(len, stretches)) for events, stretches in lanes)
    for lane, (events, _) in enumerate(lanes):
        events.sort(key=lambda event: event.start)
        events.extend(piece.ticks()[lane] for piece in parsed)
    return lanes, requests


def _model(heartbeats: int) -> tuple[float, float]:
    """Heartbeats of a group of three, a second apart: (answers per second, CPU µs each)."""
    coordinator = Coordinator(behaviour_of("4.1.2"))
    for number in range(3):
        join = Join(
            number, 3, "g", "", None, "c", "h", 45_000, 300_000, "consumer", (("range", b""),), None, f"m{number}"
        )
        coordinator.perform(join, 0)
    coordinator.advance(10_000)
    coordinator.perform(Sync(10, 5, "g", 1, "m0", None, None, None, ()), 10_000)
    usage, started = Usage(), time.perf_counter()
    for number in range(heartbeats):
        at_ms = 10_000 + number * 1_000
        coordinator.advance(at_ms)
        coordinator.perform(Heartbeat(number, 4, "g", 1, f"m{number % 3}", None), at_ms)
    return heartbeats / (time.perf_counter() - started), usage.cpu_s() / heartbeats * 1e6
