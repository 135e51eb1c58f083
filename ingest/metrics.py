"""Counters of a collector for Prometheus. Labels come from closed lists, never from ids."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from kardia.events import REJECT_REASONS


class Metrics:
    """All counters of one collector, in a registry of its own."""

    def __init__(self) -> None:
        """Register them."""
        self.registry = CollectorRegistry()
        self.lines = self._counter("lines", "lines read")
        self.bytes_read = self._counter("read_bytes", "bytes of lines read")
        self.events = self._counter("events", "events sent, copies of a FETCH counted each", "kind")
        self.ignored = self._counter("ignored_lines", "lines that give no event", "reason")
        self.rejected = self._counter("rejected_lines", "lines that could not be understood", "reason")
        self.gaps = self._counter("gaps", "times lines may have been lost", "reason")
        self.sent = self._counter("sent_records", "records sent to the topic")
        self.sent_bytes = self._counter("sent_bytes", "bytes sent to the topic, before compression")
        self.nul_bytes = self._counter("skipped_nul_bytes", "NUL bytes skipped in logs")
        self.rounds = self._counter("rounds", "rounds of its loop, several a second; one that makes none is stuck")
        self.paused = self._counter("paused_rounds", "rounds without reading because the topic was behind")
        self.slept = self._counter("slept", "times the process was not run for longer than ten seconds")
        self.save_failures = self._counter("save_failures", "times the positions could not be saved")
        self.unknown_records = self._counter("unknown_offsets_records", "records of a kind that is not known")
        self.offsets_errors = self._counter(
            "offsets_errors",
            "errors while reading the offsets topic; after each, ten seconds of it are not said to be complete",
        )
        self.ends_asked = self._counter("ends_looks", "looks at the ends of partitions")
        self.ends_errors = self._counter("ends_errors", "looks at the ends of partitions that nobody answered")
        self.ends_unread = Gauge(
            "kardia_collector_ends_unread_partitions",
            "partitions with commits whose end the last look did not get",
            registry=self.registry,
        )
        for reason in REJECT_REASONS:
            self.rejected.labels(reason)  # a series that begins at 1 hides its first line from `increase()`
        self.lag_bytes = Gauge(
            "kardia_collector_lag_bytes",
            "bytes in the log that have not been read",
            ("stream", "number"),
            registry=self.registry,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"kardia_collector_{name}", text, labels, registry=self.registry)
