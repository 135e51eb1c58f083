"""Whether a group waits because of another: the real job while one part of the fleet stands out.

The same fleet four times: calm; with nine tenths of its traffic in one shard; with a group that rebalances every
second; with a group of 10,000 members that rebalances every ten seconds. What is measured is the latency of all
others, from the instant of an event to its row (`bench.size`): those of other lanes, and beside it those that share the
lane of what stands out. It is to be at most half more than in the calm fleet.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from bench.population import CALM, Shape
from bench.result import Result
from bench.size import RATE, SECONDS, WARM_S, Load, Measured, measure, percentile

GROUPS = 1_000
HALF_MORE = 1.5
LARGE = 10_000

SHAPES = {
    "calm": CALM,
    "90 % of the traffic in one shard": Shape(hot_share=0.9),
    "a group that rebalances every second": Shape(restless_every_s=1.0),
    "a group of 10,000 members that rebalances every 10 s": Shape(large=LARGE, restless_every_s=10.0),
}


def uneven_stage(directory: Path, scale: float) -> list[Result]:
    """All shapes; below a scale of 1 fewer groups, members, events and seconds."""
    share = min(1.0, scale)
    groups = max(20, int(GROUPS * share))
    results: list[Result] = []
    calm: Measured | None = None
    for number, (name, shape) in enumerate(SHAPES.items()):
        scaled = shape._replace(large=int(shape.large * share))
        load = Load(groups, RATE * share, scaled)
        one = measure(directory / str(number), load, max(8.0, SECONDS * share), WARM_S * share)
        calm = calm or one
        results.append(_told(name, one, calm))
    return results


def _told(name: str, one: Measured, calm: Measured) -> Result:
    more: dict[str, float | str] = {
        "p50 ms": round(percentile(one, 50)),
        "p99 ms": round(percentile(one, 99)),
        "probes": len(one.latencies_ms),
        "members": f"{one.members:,}",
        "events/s": round(one.rate),
        "batch ms": round(one.batch_ms),
        "cores": round(one.cores, 2),
    }
    if one.beside_ms:
        more["in its lane, p50 ms"] = round(statistics.median(one.beside_ms))
        more["in its lane, longest ms"] = round(max(one.beside_ms))
    p95 = percentile(one, 95)
    target = None if one is calm else HALF_MORE * percentile(calm, 95)
    before = None if one is calm else percentile(calm, 95)
    return Result(
        "uneven", f"{name}: the others, p95", p95, "ms", before, "calm" if before else "", one.cpu_us, target, more
    )
