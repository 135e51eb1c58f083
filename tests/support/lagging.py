"""Lag from end to end in one process: a real broker's offsets topic and ends, the collector's loop, an observer for
each lane, real tables. No Spark and no topic of events: what is sent is taken from the collector's hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cli.asking.answers import TableAnswers
from cli.asking.questions import Questions
from ingest.admin.partition_ends import EndsSource
from ingest.assembly import SystemClock, committed_of
from ingest.collector import Collector
from ingest.metrics import Metrics
from ingest.offsets.source import OffsetsSource
from ingest.router import Directory
from ingest.tail.positions import Store
from ingest.wire.batches import decode_batch
from kardia.observe import Observer, ObserverSettings
from kardia.tables import LAG, Row
from tests.api.written import Tables

LANES = 2
CLUSTER = "real"
PATIENCE_S = 90.0


class Hand:
    """A topic that hands everything to the observers at once."""

    in_flight = 0

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []

    def send(self, lane: int, data: bytes, acknowledged: Callable[[], None]) -> None:
        self.sent.append((lane, data))
        acknowledged()

    def poll(self, timeout_s: float) -> None:
        """Nothing waits."""


class Watching:
    """A collector that may be started again, and what its events become."""

    def __init__(self, bootstrap: str, directory: Path, every_s: float = 0.3) -> None:
        self.bootstrap, self.every_s = bootstrap, every_s
        self.directory = directory
        self.hand = Hand()
        self.said: list[str] = []
        settings = ObserverSettings(CLUSTER, lag_rows_per_s=10_000)
        self.observers = [Observer(settings, lane) for lane in range(LANES)]
        self.rows: list[Row] = []
        self.tables = Tables(directory / "tables")
        self.tables.create()
        self.batch = 0
        self._asked = ExitStack()
        self.start()

    def start(self) -> None:
        self.store = Store(self.directory / "positions")
        positions, metrics = self.store.load(), Metrics()
        committed = committed_of(self.store, positions, LANES, self.said.append)
        quiet = {"log_level": "0"}
        self.ends = EndsSource(self.bootstrap, committed, LANES, metrics, quiet, self.said.append, every_s=self.every_s)
        self.records = OffsetsSource(self.bootstrap, positions.offsets, metrics, quiet)
        self.collector = Collector(
            SystemClock(),
            self.hand,
            [],
            Directory(),
            self.store,
            positions,
            metrics,
            self.records,
            LANES,
            self.said.append,
            None,
            ends=self.ends,
        )

    def stop(self) -> None:
        self._asked.close()
        self.collector.stop()
        self.ends.close()
        self.records.close()
        self.store.close()

    def step(self) -> None:
        """One round of the collector, and of the job."""
        self.collector.step()
        found: dict[str, list[Row]] = {}
        for lane, data in self.hand.sent:
            for name, rows in self.observers[lane].step(decode_batch(data)).items():
                found.setdefault(name, []).extend(rows)
        self.hand.sent.clear()
        self.rows += found.get("lag", [])
        if any(found.values()):
            self.tables.batch(self.batch, *((name, row) for name, rows in found.items() for row in rows))
            self.batch += 1

    def latest(self, group: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Latest row of each partition of a group."""
        rows = (dict(zip(LAG.names, row, strict=True)) for row in self.rows)
        return {(row["topic"], row["partition"]): row for row in rows if row["group_id"] == group}

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Go on until something holds."""
        end_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end_s, (what, self.said)
            self.step()
            time.sleep(0.02)

    def ask(self) -> Questions:
        """The command line's questions to the tables, open until the collector stops."""
        return Questions(self._asked.enter_context(TableAnswers(self.tables.root)), None)
