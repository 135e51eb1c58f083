"""Counters of the notifier. Targets are numbered in the order of the settings: addresses may hold secrets."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class NotifyMetrics:
    """What was told, what was not, and how long it took."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        of_target = ("target",)
        self.notices = Counter("kardia_notify_notices", "Notices made.", ("alert", "what"), registry=self.registry)
        self.delivered = Counter(
            "kardia_notify_delivered", "Notices that a target took.", (*of_target, "what"), registry=self.registry
        )
        self.failures = Counter(
            "kardia_notify_failures", "Attempts that failed and are repeated.", of_target, registry=self.registry
        )
        self.dropped = Counter(
            "kardia_notify_dropped",
            "Notices given up: full (the outbox was), refused (the answer will not change), alerts (too many).",
            (*of_target, "reason"),
            registry=self.registry,
        )
        self.waiting = Gauge(
            "kardia_notify_waiting", "Notices that wait for a target.", of_target, registry=self.registry
        )
        self.looks = Counter("kardia_notify_looks", "Looks at the tables that found them.", registry=self.registry)
        self.raised = Gauge("kardia_notify_raised_alerts", "Alerts that are raised.", registry=self.registry)
        self.seconds = Histogram(
            "kardia_notify_delivery_seconds",
            "From the look that found it to the answer of the target.",
            of_target,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0),
            registry=self.registry,
        )
        self.failing_since = Gauge(
            "kardia_notify_failing_since_timestamp_seconds",
            "Since when an alert waits that the target was told and did not take; 0 if none does.",
            of_target,
            registry=self.registry,
        )

    def begin(self, target: str) -> None:
        """Have the series of a target from the beginning: an increase from nothing is none to Prometheus."""
        self.failing_since.labels(target)
        self.failures.labels(target)
        for reason in ("full", "refused"):
            self.dropped.labels(target, reason)
