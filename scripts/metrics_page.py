"""Renders the page of all series that Kardia gives to Prometheus from the programs' own registries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api.metrics import RequestMetrics, TableMetrics
from api.notify.metrics import NotifyMetrics
from api.settings import ApiSettings
from api.store import Store
from ingest.metrics import Metrics as CollectorMetrics
from kardia.reference import GENERATED, grid
from live.metrics import FollowMetrics, LiveMetrics
from spark_jobs.metrics import Metrics as JobMetrics

SUFFIXES = {"counter": "_total"}
"""What Prometheus's text puts behind a name, by type."""


def metrics_page() -> str:
    """Every series by the program that gives it."""
    return "".join(
        [
            GENERATED,
            "# Metrics\n\n",
            "Series by program. Names follow Prometheus: base units, `_total` for counters, `_timestamp_seconds` for "
            "instants; a state is one series of 0 or 1 per value.\n\n"
            "No label is a member id. Group labels are bounded by `KARDIA_SERVE_METRICS_GROUPS_MAX` "
            "(`kardia_groups_without_series` counts the others), and series of members exist only where "
            "`KARDIA_SERVE_METRICS_MEMBERS_MAX` asks for some.\n",
            *(f"\n## {name}\n\n{_table(registry)}" for name, registry in registries()),
        ]
    )


def registries() -> Iterable[tuple[str, CollectorRegistry]]:
    """Where each program's series are, and what makes it give them."""
    settings = ApiSettings(tables=Path("nowhere"), metrics_members_max=1)
    serve = CollectorRegistry(auto_describe=False)
    serve.register(TableMetrics(Store(settings, lambda: 0)))
    ProcessCollector(namespace="kardia_serve", registry=serve)
    RequestMetrics(serve)
    yield "`kardia serve`, at `/metrics`", serve
    yield "`kardia serve --follow-topic`, at `/metrics`, beside those", FollowMetrics().registry
    yield "`kardia notify`, at `--metrics-port`", NotifyMetrics().registry
    yield "`kardia collect`, at `--metrics-port`", CollectorMetrics().registry
    yield "`kardia stream`, at `--metrics-port`", JobMetrics().registry
    yield "`kardia live`, at `/metrics`, beside those of `serve`, `collect` and `notify`", LiveMetrics().registry


def _table(registry: CollectorRegistry) -> str:
    rows = []
    for collector in list(registry._collector_to_names):
        for family in collector.collect():
            labels = ", ".join(f"`{label}`" for label in _labels(collector, family))
            name = family.name + SUFFIXES.get(family.type, "")
            rows.append((f"`{name}`", family.type, labels, family.documentation.rstrip(".")))
    return grid(("series", "type", "labels", "meaning"), sorted(rows))


def _labels(collector: Collector, family: Metric) -> tuple[str, ...]:
    """Names of the labels of a family, which a family without a sample keeps to itself."""
    of = collector if isinstance(collector, Counter | Gauge | Histogram) else family
    return tuple(getattr(of, "_labelnames", ()))
