"""Portions of a replay as a streaming source for Spark: offset = number of a portion, one record per lane and portion.

A record is what the topic would have carried: a batch of events of one lane, ticks included; after the last portion
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
from ingest.wire.batches import FORMAT, encode_batch
from spark_jobs.lane import FINISH
from spark_jobs.replay.feeding import Feed
from spark_jobs.replay.portions import Portion

NAME = "kardia-files"
SCHEMA = "lane int, offset bigint, at_ms bigint, format binary, value binary, cluster binary"

_clients: tuple[str, int, Directory] = ("", -1, Directory())
"""Of this worker: the directory of its run, the portion up to which the clients are known, and they. A lane or a
portion later only what came since is read; without it the first portions were opened again for each lane of each later
one."""

_portions = msgspec.msgpack.Decoder(Portion)
_encoder = msgspec.msgpack.Encoder()


def save_portion(directory: Path, portion: Portion) -> None:
    """Write a portion where the readers find it."""
    (directory / f"portion-{portion.number}").write_bytes(_encoder.encode(portion))


def load_portion(directory: Path, number: int) -> Portion:
    """Read a portion."""
    return _portions.decode((directory / f"portion-{number}").read_bytes())


class PortionPartition(InputPartition):
    """One lane of one portion."""

    def __init__(self, portion: int, lane: int) -> None:
        """Name both."""
        super().__init__((portion, lane))
        self.portion = portion
        self.lane = lane


class FilesReader(DataSourceStreamReader):
    """Gives one portion per batch."""

    def __init__(self, directory: str, portions: int, lanes: int) -> None:
        """Take where the portions are and how many."""
        self._directory = directory
        self._portions = portions
        self._lanes = lanes

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  the name is Spark's
        """Begin with portion 0."""
        return {"portion": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        """Go on by one portion, to the last."""
        return {"portion": min(start["portion"] + 1, self._portions)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Give every lane of the portions in a batch."""
        return [
            PortionPartition(portion, lane)
            for portion in range(start["portion"], end["portion"])
            for lane in range(self._lanes)
        ]

    def read(self, partition: Any) -> Iterator[tuple[int, int, int, bytes, bytes, None]]:
        """Give the records of one lane of one portion."""
        directory = Path(self._directory)
        portion = load_portion(directory, partition.portion)
        clients = clients_up_to(directory, portion)
        feed = Feed([partition.lane], self._lanes)
        for piece in portion.pieces:
            feed.add(piece, clients)
        feed.end(portion.streams)
        value = encode_batch(feed.events[partition.lane])
        yield partition.lane, portion.number, 0, FORMAT.encode(), value, None
        if portion.last:
            yield partition.lane, portion.number + 1, 0, FINISH, b"", None

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to forget: the directory goes with the run."""


def clients_up_to(directory: Path, portion: Portion) -> Directory:
    """Everything learned up to and with a portion. No more than that: a repeat must route as the first time."""
    global _clients
    run, upto, clients = _clients
    if run != str(directory) or upto > portion.number:
        upto, clients = -1, Directory()
    for number in range(upto + 1, portion.number):
        clients.merge(load_portion(directory, number).learned)
    if upto < portion.number:
        clients.merge(portion.learned)
    _clients = (str(directory), portion.number, clients)
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
        return FilesReader(self.options["directory"], int(self.options["portions"]), int(self.options["lanes"]))
