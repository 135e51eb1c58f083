"""Counters of the job for Prometheus. No labels: ids are never labels, and nothing else of a batch has a fixed set of
values."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from spark_jobs.stream import Committed

LOOPBACK = "127.0.0.1"


class Metrics:
    """All counters of one job, in a registry of its own."""

    def __init__(self) -> None:
        """Register them."""
        self.registry = CollectorRegistry()
        self.batches = Counter("kardia_stream_batches", "batches in the tables", registry=self.registry)
        self.rows = Counter("kardia_stream_rows", "rows written to the live tables", registry=self.registry)
        self.last_batch = Gauge("kardia_stream_last_batch", "highest batch in the tables", registry=self.registry)
        self.write_seconds = Gauge(
            "kardia_stream_write_seconds", "time the last batch took in the sink", registry=self.registry
        )

        self.foreign = Counter(
            "kardia_stream_foreign_records",
            "records refused because they are of another cluster",
            registry=self.registry,
        )

        self.not_applied = Counter(
            "kardia_stream_not_applied",
            "events and rows left out because they could not be applied; each is a defect to be reported",
            registry=self.registry,
        )

        self.files_forgotten = Counter(
            "kardia_stream_files_forgotten",
            "files of rotated logs whose positions are remembered no longer, by lane; a line of them that came again "
            "would count as new",
            registry=self.registry,
        )

        self.lanes_read = Counter(
            "kardia_stream_lanes_read",
            "lanes read back from the state, each once after a start; more come of workers that ended, and cost time",
            registry=self.registry,
        )

        self.marks_forgotten = Counter(
            "kardia_stream_archive_marks_forgotten",
            "marks of the archive that were dropped, the longest unmoved first; each costs one look into the table "
            "events if its source speaks again",
            registry=self.registry,
        )

    def committed(self, batch: Committed) -> None:
        """Take note of a batch."""
        self.batches.inc()
        self.rows.inc(batch.rows)
        self.foreign.inc(batch.foreign)
        self.not_applied.inc(batch.not_applied)
        self.files_forgotten.inc(batch.files_forgotten)
        self.lanes_read.inc(batch.lanes_read)
        self.last_batch.set(batch.batch_id)
        self.write_seconds.set(batch.seconds)

    def serve(self, port: int) -> None:
        """Serve them on loopback from a thread."""
        start_http_server(port, LOOPBACK, registry=self.registry)
