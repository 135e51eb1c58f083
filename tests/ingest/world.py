"""A collector in a small world: real files, real positions, and a topic in memory that can hold answers back or lose
them. A crash drops everything that is not on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ingest.collector import Collector
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.metrics import Metrics
from ingest.router import Directory
from ingest.stamps import zone_named
from ingest.tail.broker_log import LogStream
from ingest.tail.positions import Store
from ingest.tail.tailer import Tail
from ingest.wire.batches import decode_batch
from kardia.events import Event, Kind, event_id
from tests.ingest.lines import START_MS, line

LANES = 3


class ManualClock:
    """Both clocks, moved by hand."""

    def __init__(self, begin_at_ms: float = START_MS + 1_000_000) -> None:
        self.now_s = 1_000.0
        self.slept_ms = 0.0
        """What the wall clock went on while the monotonic one stood still."""
        self._begin_at_ms = begin_at_ms

    def wall_ms(self) -> float:
        return self._begin_at_ms + self.slept_ms + (self.now_s - 1_000.0) * 1000

    def monotonic_s(self) -> float:
        return self.now_s


class MemoryTopic:
    """Keeps records; acknowledges them when `answering` is set, loses the answers of a process that died."""

    def __init__(self) -> None:
        self.records: list[tuple[int, bytes]] = []
        self.answering = True
        self._waiting: list[Callable[[], None]] = []

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def send(self, lane: int, data: bytes, acknowledged: Callable[[], None]) -> None:
        self.records.append((lane, data))
        self._waiting.append(acknowledged)

    def poll(self, timeout_s: float) -> None:  # noqa: ARG002
        if self.answering:
            waiting, self._waiting = self._waiting, []
            for acknowledged in waiting:
                acknowledged()

    def lose_answers(self) -> None:
        """The process that waits for them is gone."""
        self._waiting = []

    def events(self, lane: int | None = None) -> list[Event]:
        """Everything sent, in order."""
        return [event for at, data in self.records if lane in (None, at) for event in decode_batch(data)]


class World:
    """Files, topic, clock, and the collector that is alive at present."""

    def __init__(
        self,
        directory: Path,
        *,
        server: bool = False,
        requests: bool = True,
        lanes: int = LANES,
        clock: ManualClock | None = None,
        fold: bool = False,
        name: str = "kafka-request.log",
        wrap: Callable[[bytes], bytes] = lambda line: line + b"\n",
        shared: bool = False,
    ) -> None:
        """`wrap`: how a line is written into the log. `shared`: both logs stand in one file."""
        self.path = directory / name
        self.server_path = self.path if shared else directory / "server.log"
        self._wrap, self._shared = wrap, shared
        self.lanes = lanes
        self.clock = clock or ManualClock()
        self.topic = MemoryTopic()
        self.number = 0
        self.written: list[bytes] = []
        self.said: list[str] = []
        self._positions = directory / "positions"
        self._server, self._requests = server, requests
        self._fold = fold
        self._renames = 0
        self.path.touch()
        self.file = self.path.open("ab", buffering=0)
        self.collector = self._start()

    def _start(self) -> Collector:
        self._store = store = Store(self._positions)
        positions = store.load()
        directory = Directory()
        directory.merge(store.load_directory().entries)
        zone = zone_named("UTC")
        streams: list[LogStream] = []
        if self._requests:
            streams.append(self._stream(self.path, RequestJson(zone, fold=self._fold), directory, store))
        if self._server:
            streams.append(self._stream(self.server_path, ServerLog(zone), directory, store))
        return Collector(
            self.clock,
            self.topic,
            streams,
            directory,
            store,
            positions,
            Metrics(),
            lanes=self.lanes,
            warn=self.said.append,
            beside_requests=self._requests,
        )

    def _stream(self, path: Path, dialect: RequestJson | ServerLog, directory: Directory, store: Store) -> LogStream:
        positions = store.load()
        key = f"{path} (server)" if self._shared and dialect.stream == "server" else str(path)
        saved, monotonic_s = positions.files.get(key, []), self.clock.monotonic_s
        tail = Tail(path, saved, monotonic_s=monotonic_s, rotate_wait_s=1.0, shared=self._shared)
        return LogStream(tail, dialect, self.lanes, directory, positions.brokers.get(key, ""), key)

    def write(self, count: int = 1) -> None:
        """Append heartbeats of different groups."""
        for _ in range(count):
            self.number += 1
            group = f"g-{self.number % 7}"
            request = {"groupId": group, "generationId": 1, "memberId": f"m-{self.number}", "groupInstanceId": None}
            data = line(self.number, request=request)
            self.written.append(data)
            self.file.write(self._wrap(data))

    def rename(self) -> None:
        self._renames += 1
        self.path.rename(self.path.with_name(f"{self.path.name}.{self._renames:06d}"))
        self.file.close()
        self.file = self.path.open("ab", buffering=0)

    def truncate(self) -> None:
        os.truncate(self.path, 0)

    def step(self, rounds: int = 1, each_s: float = 0.2) -> None:
        for _ in range(rounds):
            self.collector.step()
            self.clock.now_s += each_s

    def crash(self) -> None:
        """Nothing is flushed, saved or said; the operating system takes the files and the lock back."""
        for stream in self.collector.streams:
            stream.tail.close()
        self._store.close()
        self.topic.lose_answers()
        self.collector = self._start()

    def drain(self) -> None:
        self.topic.answering = True
        self.step(12)
        self.clock.now_s += 2
        self.step(4)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.topic.answering = True
        self.collector.stop(1.0)
        self._store.close()
        self.file.close()

    def members(self) -> list[str]:
        """Members of the heartbeats in the topic, each id once, in the order of sending."""
        by_id: dict[str, Event] = {}
        for event in self.topic.events():
            if event.kind == Kind.HEARTBEAT:
                known = by_id.setdefault(event_id(event), event)
                assert known == event
        return [event.member_id for event in by_id.values()]

    def expected(self) -> list[str]:
        return [f"m-{number}" for number in range(1, self.number + 1)]
