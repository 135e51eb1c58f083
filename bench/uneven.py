"""Whether a group waits because of another: the real job while one part of the fleet stands out.

The same fleet five times: calm; with nine tenths of its traffic in one shard; with a group that rebalances every
second; with a group of 10,000 members that rebalances every ten seconds; calm again. What is measured is the latency of
all others, from the instant of an event to its row (`bench.size`): those of other lanes, and beside it those that share
the lane of what stands out. It is to be at most half more than in the calm fleet, both of whose runs count together;
how far they are apart says what the machine did meanwhile.

    kardia bench --only uneven
    python -m bench.uneven [--scale 1]      # the lanes alone: CPU of a batch, without broker, Spark and tables
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from bench.lanes import alone
from bench.population import CALM, Shape
from bench.result import Result, machine, show
from bench.size import RATE, SECONDS, WARM_S, Load, Measured, measure, percentile

GROUPS = 1_000
LEAST_S = 20.0
"""Seconds of a run, however small the scale: two rebalances of the large group, fifty probes."""

HALF_MORE = 1.5
LARGE = 10_000

SHAPES = {
    "calm": CALM,
    "90 % of the traffic in one shard": Shape(hot_share=0.9),
    "a group that rebalances every second": Shape(restless_every_s=1.0),
    "a group of 10,000 members that rebalances every 10 s": Shape(large=LARGE, restless_every_s=10.0),
    "calm again": CALM,
}


def uneven_stage(directory: Path, scale: float) -> list[Result]:
    """All shapes; below a scale of 1 fewer groups, members, events and seconds."""
    share = min(1.0, scale)
    found: dict[str, Measured] = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        seconds, warm_s = max(LEAST_S, SECONDS * share), max(LEAST_S / 2, WARM_S * share)
        found[name] = measure(directory / str(number), _load(shape, share), seconds, warm_s, again=False)
    calm = [found[name].latencies_ms for name, shape in SHAPES.items() if shape is CALM]
    calm_ms = percentile([latency for run in calm for latency in run], 95)
    told = [_told(name, one, None if SHAPES[name] is CALM else calm_ms) for name, one in found.items()]
    return [*lanes_alone(scale), *told]


def _load(shape: Shape, share: float) -> Load:
    return Load(max(20, int(GROUPS * share)), RATE * share, shape._replace(large=int(shape.large * share)))


def lanes_alone(scale: float) -> list[Result]:
    """What a batch of half a second costs the six lanes, in one process."""
    results: list[Result] = []
    for name, shape in SHAPES.items():
        one = alone(*_load(shape, min(1.0, scale)))
        calm_ms = results[0].value if results and shape is not CALM else None
        more = {"the most expensive, ms": round(one.highest_ms), "members": f"{one.members:,}"}
        what = f"{name}: six lanes alone, CPU of a batch"
        results.append(Result("uneven", what, one.batch_ms, "ms", calm_ms, "calm", one.event_us, None, more))
    return results


def _told(name: str, one: Measured, calm_ms: float | None) -> Result:
    p95_ms = percentile(one.latencies_ms, 95)
    more: dict[str, float | str] = {
        "p50 ms": round(percentile(one.latencies_ms, 50)),
        "p99 ms": round(percentile(one.latencies_ms, 99)),
        "probes": len(one.latencies_ms),
        "members": f"{one.members:,}",
        "events/s": round(one.rate),
        "batch ms": round(one.batch_ms),
        "cores": round(one.cores, 2),
    }
    if calm_ms is not None:
        more["of the calm p95"] = round(p95_ms / calm_ms, 2)
    if one.beside_ms:
        more["in its lane, p50 ms"] = round(statistics.median(one.beside_ms))
        more["in its lane, longest ms"] = round(max(one.beside_ms))
    more |= one.stages
    target = None if calm_ms is None else HALF_MORE * calm_ms
    what = f"{name}: the others, p95"
    return Result("uneven", what, p95_ms, "ms", calm_ms, "calm" if calm_ms else "", one.cpu_us, target, more)


def main() -> None:
    """Measure the lanes alone and show it."""
    parser = argparse.ArgumentParser(description="Lanes alone, while a part of the fleet stands out.")
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    around = machine()
    show(lanes_alone(scale), around, None)


if __name__ == "__main__":
    main()
