"""What the stages of a batch took comes from the lanes to the counters, added up, and is no row of a table."""

from __future__ import annotations

from itertools import count

from prometheus_client import CollectorRegistry

from spark_jobs.metrics import Metrics
from spark_jobs.outputs import EVENTS_TAKEN, encode_spent, encode_step, merge, take_counts, take_spent
from spark_jobs.stage_times import STAGES, Laps
from spark_jobs.stream import Committed


def _value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"kardia_stream_{name}", labels)


def test_lanes_add_up_and_nothing_is_left_for_the_tables() -> None:
    outputs = []
    for lane in range(3):
        made = [*encode_step({}, {EVENTS_TAKEN: 100}), encode_spent({"observe": [0.5, 0.25], "keep": [0.5, 0.0]})]
        outputs += [(lane, name, blob) for name, blob in made]
    rows = merge(outputs)
    counts, spent = take_counts(rows), take_spent(rows)
    assert rows == {}
    metrics = Metrics()
    metrics.committed(Committed(7, 0, 1.0, events=counts[EVENTS_TAKEN], spent=spent))
    assert _value(metrics.registry, "events_total") == 300
    assert _value(metrics.registry, "stage_seconds_total", stage="observe") == 1.5
    assert _value(metrics.registry, "stage_cpu_seconds_total", stage="observe") == 0.75
    assert _value(metrics.registry, "stage_seconds_total", stage="keep") == 1.5
    assert _value(metrics.registry, "stage_seconds_total", stage="write") == 0


def test_no_time_between_two_stages_is_left_out() -> None:
    laps = Laps(count(1.0).__next__)
    for stage in STAGES:
        laps.end(stage)
    assert [cpu_s for _, cpu_s in laps.spent.values()] == [1.0] * len(STAGES)
