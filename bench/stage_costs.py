"""What the stages of the job's batches cost between two moments, read where an operator reads it: at `--metrics-port`.

Told per event, as JSON in the column `more`: CPU of each stage and of each program, in microseconds.
"""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

_PREFIX = "kardia_stream_"
_LABELS = {"stage_seconds_total": "stage", "stage_cpu_seconds_total": "stage", "program_cpu_seconds": "program"}


@dataclass(frozen=True)
class Counts:
    """Of a job, since its start."""

    batches: float
    events: float
    rows: float
    by: dict[str, dict[str, float]]
    """Series -> its label's value -> seconds."""
    spark: dict[str, float]
    """Spark's own durations of its last batch, in seconds."""


def counts(port: int) -> Counts:
    """Ask the job."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    plain: dict[str, float] = {}
    by: dict[str, dict[str, float]] = {series: {} for series in _LABELS}
    spark: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix(_PREFIX)
            if name in _LABELS:
                by[name][sample.labels[_LABELS[name]]] = sample.value
            elif name == "spark_seconds":
                spark[sample.labels["step"]] = sample.value
            elif not sample.labels:
                plain[name] = sample.value
    return Counts(plain["batches_total"], plain["events_total"], plain["rows_total"], by, spark)


def between(before: Counts, after: Counts) -> dict[str, Any]:
    """What an event cost, in microseconds of CPU, by stage and by program; of a batch its milliseconds by stage."""
    events, batches = max(1.0, after.events - before.events), max(1.0, after.batches - before.batches)

    def grown(series: str, each: float, digits: int) -> dict[str, float]:
        ends = after.by[series]
        return {name: round((ends[name] - before.by[series].get(name, 0.0)) / each, digits) for name in ends}

    return {
        "CPU µs an event, by program": grown("program_cpu_seconds", events / 1e6, 2),
        "CPU µs an event, by stage": grown("stage_cpu_seconds_total", events / 1e6, 2),
        "ms a batch, by stage": grown("stage_seconds_total", batches / 1e3, 1),
        "ms of the last batch, by Spark": {name: round(value * 1e3) for name, value in after.spark.items()},
        "events a batch": round(events / batches),
        "rows a batch": round((after.rows - before.rows) / batches),
    }
