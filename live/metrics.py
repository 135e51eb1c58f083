"""Counters of one process for Prometheus, beside those of its collector, API and notifier. No label is an id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.registry import Collector


class LiveMetrics:
    """All counters of the lanes and of the tables, in a registry of its own."""

    def __init__(self) -> None:
        """Register them."""
        self.registry = CollectorRegistry()
        self.batches = self._counter("batches", "batches written")
        self.rows = self._counter("rows", "rows written into the tables")
        self.batch_bytes = self._counter("batch_bytes", "bytes of batches written beside the tables: state and rows")
        self.steps = self._counter("steps", "times the lanes were stepped")
        self.not_applied = self._counter("not_applied", "events and rows left out because of a defect of Kardia")

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"kardia_live_{name}", text, registry=self.registry)


class Others(Collector):
    """The series of other registries, as one more of an application's own."""

    def __init__(self, registries: Iterable[CollectorRegistry]) -> None:
        """Name them."""
        self._registries = tuple(registries)

    def describe(self) -> Iterator[Metric]:
        """Their names; what they count costs nothing to collect."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Give all."""
        for registry in self._registries:
            yield from registry.collect()
