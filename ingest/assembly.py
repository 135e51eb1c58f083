"""A collector assembled from settings: logs, offsets topic, admin API, positions and topic; logs that appear later are
taken up, all else is fixed. The loop that it runs is `ingest.collector`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Self

from prometheus_client import start_http_server

from ingest.admin.partition_ends import EndsSource
from ingest.admin.sampler import Sampler
from ingest.admin.session_config import SessionConfig
from ingest.collector import FLUSH_MS, Collector
from ingest.dialects import Dialect, is_numbered
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.errors import PositionsError
from ingest.metrics import Metrics
from ingest.offsets.committed import Committed
from ingest.offsets.source import OffsetsSource, partitions_of_offsets
from ingest.ports import Clock, Saves, Topic
from ingest.router import Directory
from ingest.settings import CollectSettings, ReadSettings, expanded
from ingest.stamps import zone_named
from ingest.tail.broker_log import LogStream
from ingest.tail.followable import Followable
from ingest.tail.notices import GATHER_S, Notices, gather_s
from ingest.tail.positions import Positions, Store
from ingest.tail.tailer import Tail
from ingest.wire.producer import KafkaTopic, ensure_topic
from ingest.wire.topic_id import UNKNOWN

IDLE_S = 0.1
"""Pause of a round that left nothing to read, where nobody tells of new lines: longer than `FLUSH_MS`, so that what a
round reads leaves with it. Twice as many rounds cost half more of a core beside 1,000 lines per second, and spare 25 ms
of a latency."""

FOLD_FROM_BYTES = 256 * 1024
"""Where so much of a log is read at once quiet requests are folded: it is behind, or writes two thousand lines per
second and more. Below it a stretch would be a request or two, and line by line costs half."""

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


@dataclass
class _Asked:
    """What is read from the observed cluster itself; None what the settings leave out."""

    records: OffsetsSource | None = None
    sessions: SessionConfig | None = None
    samples: Sampler | None = None
    ends: EndsSource | None = None

    @classmethod
    def of(
        cls,
        settings: ReadSettings,
        store: Store,
        positions: Positions,
        metrics: Metrics,
        client: dict[str, str],
        partitions: int,
        say: Callable[[str], None],
    ) -> Self:
        """Connect, with these settings of the client. `partitions`: of `__consumer_offsets`."""
        made, server = cls(), settings.bootstrap_server
        if server and settings.offsets:
            if settings.ends_every_s:
                committed = committed_of(store, positions, settings.lanes, say)
                made.ends = EndsSource(server, committed, settings.lanes, metrics, client, say, settings.ends_every_s)
            made.records = OffsetsSource(server, positions.offsets, metrics, client)
            made.sessions = SessionConfig(server, client, say)
        if server and settings.admin:
            made.samples = Sampler(server, client, say, settings.admin_every_s, partitions)
        return made

    def close(self) -> None:
        """End all connections."""
        for one in (self.samples, self.sessions, self.ends, self.records):
            if one is not None:
                one.close()


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
    check_logs(settings)  # before anything is made on a broker
    observed, events = settings.clients()
    ensure_topic(settings.topic_brokers, settings.topic, settings.lanes, events)
    topic = KafkaTopic(settings.topic_brokers, settings.topic, settings.cluster, events)
    watch = topic.watch(positions.topic_id)
    if positions.topic_id not in (UNKNOWN, watch.known):
        say(_made_again(settings))
    positions.topic_id = watch.known
    if settings.metrics_port:
        start_http_server(settings.metrics_port, addr="127.0.0.1", registry=metrics.registry)
    following = Following(settings, clock, topic, store, store, positions, metrics, observed, say)
    try:
        while not stopping():
            if not following.step():
                following.rest()
            if watch.changed():
                positions.topic_id = watch.known
                say(_made_again(settings))
        return following.stop()
    finally:
        following.close()


def check_logs(settings: ReadSettings) -> None:
    """Raise for a log that can be seen to be none."""
    followable = Followable(settings.log_pattern)
    for path in expanded((*settings.request_log, *settings.server_log)):
        followable.check(path)


class Following:
    """Everything that the settings name, followed: a collector, and the logs that appear later."""

    def __init__(
        self,
        settings: ReadSettings,
        clock: Clock,
        topic: Topic,
        saves: Saves,
        store: Store,
        positions: Positions,
        metrics: Metrics,
        observed: dict[str, str],
        say: Callable[[str], None],
        flush_ms: float = FLUSH_MS,
        idle_s: float = IDLE_S,
    ) -> None:
        """Begin where `positions` are, with what `store` has beside them; they are saved by `saves`. `observed`:
        settings of clients of the observed cluster. `idle_s`: pause between two looks where nobody tells of news."""
        self._settings, self._clock, self._say, self._positions = settings, clock, say, positions
        positions.cluster = settings.cluster
        self.directory = Directory()
        self.directory.merge(store.load_directory().entries)
        for note in store.notes:
            say(note)
        self._followable = Followable(settings.log_pattern)
        self._partitions = settings.partitions()
        if settings.bootstrap_server and not settings.offsets_partitions:
            self._partitions = partitions_of_offsets(settings.bootstrap_server, observed) or self._partitions
        self._asked = _Asked.of(settings, store, positions, metrics, observed, self._partitions, say)
        self._zone = zone_named(settings.log_timezone or "UTC")
        self._streams: list[LogStream] = []
        self._idle_s, self._notices = idle_s, Notices(idle_s)
        self._take_up()
        self.collector = Collector(
            clock,
            topic,
            self._streams,
            self.directory,
            saves,
            positions,
            metrics,
            self._asked.records,
            settings.lanes,
            say,
            self._asked.sessions,
            samples=self._asked.samples,
            beside_requests=bool(settings.request_log),
            ends=self._asked.ends,
            flush_ms=flush_ms,
        )
        self._scanned_s = self._stepped_s = clock.monotonic_s()
        self._gather_s = GATHER_S
        self._recent_bytes = 0.0

    def step(self) -> bool:
        """One round; True when there is more to read, False when the caller may sleep a little."""
        read = self.collector.step()
        since_s, self._stepped_s = self._stepped_s, self._clock.monotonic_s()
        # Of the last second, a little more of what came last: a round that finds nothing says nothing of the rate.
        self._recent_bytes *= exp(since_s - self._stepped_s)
        self._recent_bytes += self.collector.round_bytes
        self._gather_s = gather_s(self._recent_bytes)
        if self._notices.looked(found=self.collector.round_bytes > 0):
            self._say(
                f"nobody tells of lines that are written: the logs are looked at every {self._idle_s * 1000:.0f} ms"
            )
        if self._stepped_s - self._scanned_s >= RESCAN_S:
            self._scanned_s = self._stepped_s
            self._take_up()
        return read

    def rest(self) -> None:
        """Wait until there may be something to do."""
        self._notices.wait(self.collector.rest_s(max(self._idle_s, self._gather_s)), self._gather_s)

    def stop(self) -> bool:
        """True when everything that was read has been acknowledged and saved."""
        return self.collector.stop()

    def close(self) -> None:
        """End all connections."""
        self._asked.close()
        self._notices.close()

    def _take_up(self) -> None:
        followed = {(one.tail.path, one.dialect.stream) for one in self._streams}
        of_requests, of_servers = expanded(self._settings.request_log), expanded(self._settings.server_log)
        shared = {*of_requests} & {*of_servers}  # the output of a container holds both
        for paths, name, make in (
            (of_requests, "request", self._request_log),
            (of_servers, "server", self._server_log),
        ):
            for path in paths:
                if self._followable.takes(path, self._say) and (path, name) not in followed:
                    self._streams.append(self._stream(path, make(), shared=path in shared))
                    self._say(f"following {path}")
                    self._notices.hurry()
        self._notices.follow([*of_requests, *of_servers])

    def _stream(self, path: Path, dialect: Dialect, *, shared: bool) -> LogStream:
        settings = self._settings
        key = f"{path} ({dialect.stream})" if shared and dialect.stream == "server" else str(path)
        saved = self._positions.files.get(key, [])
        wait_s = settings.rotate_wait_s
        tail = Tail(path, saved, monotonic_s=self._clock.monotonic_s, rotate_wait_s=wait_s, shared=shared)
        broker = settings.broker or self._positions.brokers.get(key, "")
        if dialect.stream == "server" and settings.request_log and is_numbered(broker):
            broker = ""  # its name from a time without a request log, which knows the broker by its address
        return LogStream(tail, dialect, settings.lanes, self.directory, broker, key)

    def _request_log(self) -> RequestJson:
        return RequestJson(
            self._zone,
            self._partitions,
            fold=True,
            fold_from_bytes=FOLD_FROM_BYTES,
            log_pattern=self._settings.log_pattern,
        )

    def _server_log(self) -> ServerLog:
        return ServerLog(self._zone, self._partitions, self._settings.log_pattern)


def _made_again(settings: CollectSettings) -> str:
    return (
        f"the topic {settings.topic} was deleted and made again: what the one before had acknowledged, and the job had "
        f"not read, is lost ({settings.topic_brokers}). Expected: the topic that these positions were acknowledged by. "
        "Next: nothing, if that was wanted; the job reads the new one from its beginning and tells the gap"
    )


def committed_of(store: Store, positions: Positions, lanes: int, say: Callable[[str], None]) -> Committed:
    """Partitions that groups have commits for, as they were saved. Without them the offsets topic is read anew:
    what was sent before is recognised by its position."""
    committed, saved = Committed(lanes), store.load_committed()
    if saved is not None:
        committed.load(saved)
    elif positions.offsets:
        say("the offsets topic is read from its beginning, to see which partitions groups have commits for")
        positions.offsets = {}
    return committed
