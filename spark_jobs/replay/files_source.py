"""Windows of a replay as a streaming source for Spark: offset = number of a window, one record per lane and window.

A record is what the topic would have carried: a batch of events of one lane, ticks included; after the last window
comes the FINISH record. So the live query reads archived files without knowing it. The reader runs in Spark's workers
and reads spilled pieces, which therefore must lie where every worker can read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from ingest.router import Directory
from ingest.wire import FORMAT, encode_batch
from spark_jobs.lane import FINISH
from spark_jobs.replay.feeding import Feed
from spark_jobs.replay.windows import Window

NAME = "kardia-files"
SCHEMA = "lane int, offset bigint, at_ms bigint, format binary, value binary, cluster binary"

_clients: tuple[str, int, Directory] = ("", -1, Directory())
"""Of this worker: the directory of its run, the window up to which the clients are known, and they. A lane or a window
later only what came since is read; without it the first windows were opened again for each lane of each later one."""

_windows = msgspec.msgpack.Decoder(Window)
_encoder = msgspec.msgpack.Encoder()


def save_window(directory: Path, window: Window) -> None:
    """Write a window where the readers find it."""
    (directory / f"window-{window.number}").write_bytes(_encoder.encode(window))


def load_window(directory: Path, number: int) -> Window:
    """Read a window."""
    return _windows.decode((directory / f"window-{number}").read_bytes())


class WindowPartition(InputPartition):
    """One lane of one window."""

    def __init__(self, window: int, lane: int) -> None:
        """Name both."""
        super().__init__((window, lane))
        self.window = window
        self.lane = lane


class FilesReader(DataSourceStreamReader):
    """Gives one window per batch."""

    def __init__(self, directory: str, windows: int, lanes: int) -> None:
        """Take where the windows are and how many."""
        self._directory = directory
        self._windows = windows
        self._lanes = lanes

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  the name is Spark's
        """Begin with window 0."""
        return {"window": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        """Go on by one window, to the last."""
        return {"window": min(start["window"] + 1, self._windows)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Give every lane of the windows in a batch."""
        return [
            WindowPartition(window, lane)
            for window in range(start["window"], end["window"])
            for lane in range(self._lanes)
        ]

    def read(self, partition: Any) -> Iterator[tuple[int, int, int, bytes, bytes, None]]:
        """Give the records of one lane of one window."""
        directory = Path(self._directory)
        window = load_window(directory, partition.window)
        clients = clients_up_to(directory, window)
        feed = Feed([partition.lane], self._lanes)
        for piece in window.pieces:
            feed.add(piece, clients)
        feed.end(window.readings)
        value = encode_batch(feed.events[partition.lane])
        yield partition.lane, window.number, 0, FORMAT.encode(), value, None
        if window.last:
            yield partition.lane, window.number + 1, 0, FINISH, b"", None

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to forget: the directory goes with the run."""


def clients_up_to(directory: Path, window: Window) -> Directory:
    """Everything learned up to and with a window. No more than that: a repeat must route as the first time."""
    global _clients
    run, upto, clients = _clients
    if run != str(directory) or upto > window.number:
        upto, clients = -1, Directory()
    for number in range(upto + 1, window.number):
        clients.merge(load_window(directory, number).learned)
    if upto < window.number:
        clients.merge(window.learned)
    _clients = (str(directory), window.number, clients)
    return clients


class FilesSource(DataSource):
    """The source as Spark registers it."""

    @classmethod
    def name(cls) -> str:
        """Name for `format`."""
        return NAME

    def schema(self) -> str:
        """Columns of `processor.INPUT_COLUMNS`."""
        return SCHEMA

    def streamReader(self, schema: Any) -> FilesReader:  # noqa: N802, ARG002  Spark passes `schema` by keyword
        """Make the reader its options describe."""
        return FilesReader(self.options["directory"], int(self.options["windows"]), int(self.options["lanes"]))
