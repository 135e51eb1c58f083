"""Counters of one process for Prometheus, beside those of its collector, API and notifier; and those of a follower. No
label is an id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
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


STOPS = ("behind", "job", "generation", "topic", "tables", "refused")
"""Why a follower stops, a closed list: it is too far behind the tables; the job writes nothing; the job has begun a
generation; the topic lost records or was made again; the tables cannot be read; anything else, said in its log."""


class FollowMetrics:
    """Series of `kardia serve --follow-topic`, in a registry of its own."""

    def __init__(self) -> None:
        """Register them."""
        self.registry = CollectorRegistry()
        self.is_ahead = Gauge(
            "kardia_follow_ahead",
            "1 while answers rest on the topic, ahead of the tables; 0: on the tables alone.",
            registry=self.registry,
        )
        self.rows = Gauge("kardia_follow_rows", "Rows held that the job has not written yet.", registry=self.registry)
        self.records = Counter("kardia_follow_records", "Records stepped.", registry=self.registry)
        self.begins = Counter(
            "kardia_follow_begins", "Times the lanes were taken over from the job.", registry=self.registry
        )
        self.stops = Counter(
            "kardia_follow_stops", "Times it stopped following, by reason.", ("reason",), registry=self.registry
        )
        for reason in STOPS:
            self.stops.labels(reason)


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
