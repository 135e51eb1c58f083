"""A collector put together from settings: logs that appear later are taken up, all else is fixed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client import start_http_server

from ingest.collector import Collector
from ingest.dialects import Dialect
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.errors import PositionsError
from ingest.metrics import Metrics
from ingest.offsets_source import OffsetsSource, partitions_of_offsets
from ingest.ports import Clock
from ingest.positions import Store
from ingest.producer import KafkaTopic, ensure_topic
from ingest.router import Directory
from ingest.settings import CollectSettings, expanded
from ingest.stamps import zone_named
from ingest.stream import LogStream
from ingest.tail import Tail

IDLE_S = 0.02
"""Pause of a round that read nothing. Acknowledgements end it early."""

RESCAN_S = 5.0
"""How often patterns are looked at for logs that have appeared."""


class SystemClock:
    """The clocks of this host."""

    def wall_ms(self) -> float:
        """Epoch milliseconds."""
        return time.time() * 1000

    def monotonic_s(self) -> float:
        """Seconds since some start."""
        return time.monotonic()


def run(settings: CollectSettings, clock: Clock, stopping: Callable[[], bool], say: Callable[[str], None]) -> bool:
    """Collect until `stopping` says so. True when everything that was read has been acknowledged and saved."""
    settings.check()
    metrics = Metrics()
    store = Store(settings.positions)
    try:
        return _run(settings, clock, stopping, say, metrics, store)
    finally:
        store.close()


def _run(
    settings: CollectSettings,
    clock: Clock,
    stopping: Callable[[], bool],
    say: Callable[[str], None],
    metrics: Metrics,
    store: Store,
) -> bool:
    positions = store.load()
    if positions.cluster not in ("", settings.cluster):
        raise PositionsError(
            f"these positions belong to the cluster {positions.cluster!r}",
            str(settings.positions),
            f"positions of {settings.cluster!r}",
            "give each cluster its own --positions directory",
        )
    positions.cluster = settings.cluster
    directory = Directory()
    directory.merge(store.load_directory().entries)
    for note in store.notes:
        say(note)
    observed, events = settings.clients()
    ensure_topic(settings.topic_brokers, settings.topic, settings.lanes, events)
    topic = KafkaTopic(settings.topic_brokers, settings.topic, settings.cluster, events)
    records: OffsetsSource | None = None
    partitions = settings.partitions()
    if settings.bootstrap_server:
        if not settings.offsets_partitions:
            partitions = partitions_of_offsets(settings.bootstrap_server, observed) or partitions
        if settings.offsets:
            records = OffsetsSource(settings.bootstrap_server, positions.offsets, metrics, observed)
    if settings.metrics_port:
        start_http_server(settings.metrics_port, addr="127.0.0.1", registry=metrics.registry)
    zone = zone_named(settings.log_timezone or "UTC")

    def stream(path: Path, dialect: Dialect) -> LogStream:
        saved = positions.files.get(str(path), [])
        tail = Tail(path, saved, monotonic_s=clock.monotonic_s, rotate_wait_s=settings.rotate_wait_s)
        broker = settings.broker or positions.brokers.get(str(path), "")
        return LogStream(tail, dialect, settings.lanes, directory, broker)

    streams: list[LogStream] = []

    def take_up() -> None:
        followed = {one.tail.path for one in streams}
        for patterns, make in ((settings.request_log, RequestJson), (settings.server_log, ServerLog)):
            for path in expanded(patterns):
                if path not in followed:
                    streams.append(stream(path, make(zone, partitions)))
                    say(f"following {path}")

    take_up()
    collector = Collector(
        clock, topic, streams, directory, store, positions, metrics, records, settings.lanes, warn=say
    )
    scanned_s = clock.monotonic_s()
    try:
        while not stopping():
            if not collector.step():
                topic.poll(IDLE_S)
            if clock.monotonic_s() - scanned_s >= RESCAN_S:
                scanned_s = clock.monotonic_s()
                take_up()
        return collector.stop()
    finally:
        if records is not None:
            records.close()
