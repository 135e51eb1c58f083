"""Batches on disk: one file holds all that a batch changes, so that it exists as a whole or not at all.

    STATE/.kardia.lock      lease of the run that uses it
    STATE/generation.json   what it is of (`live.state`)
    STATE/NAME/batch-N      positions, what the lanes took, and the rows for the tables, of batch N of generation NAME
    STATE/positions/        what is kept beside: the router's directory as a whole, and the partitions with commits

Steps of a batch; killed between any two, the next start finds the batch before, or this one:

    1. lanes are stepped, rows are shown; nothing is on disk
    2. the file is written durably: from here on the batch is, and its positions are where reading goes on
    3. the tables get the rows, `progress` last, under the number of the batch (`spark_jobs.writers`)
    4. files that no lane needs any more, because each has a newer base, are removed

A file is written when the tables have the rows of the one before. So a start reads all files, gives the tables the
rows of the last one once more (they take each batch once), and steps the lanes from their bases through what they took
since. A file begins with its digest. Reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import pyarrow as pa

from ingest.tail.positions import Positions
from spark_jobs.checkpoint import state_codec
from spark_jobs.checkpoint.journal import InMemory, Mark
from spark_jobs.errors import StateError
from stores.durable import replace_file

MAGIC = b"kardia-live"
VERSION = 1
PREFIX = "batch-"


class Puts(msgspec.Struct, array_like=True):
    """What a batch put into the store of one lane (`spark_jobs.checkpoint.journal`)."""

    mark: Mark
    base: list[bytes] | None
    """Pieces of a base that took the place of all before it; None: there was none."""
    steps: list[bytes]
    """Steps of the journal after it, or after those of the batches before."""


class Batch(msgspec.Struct, array_like=True):
    """One batch."""

    number: int
    told_before: int
    """The last batch before it that has rows of `progress`, which the tables must have; -1: none has."""
    positions: Positions
    lanes: dict[int, Puts]
    tables: dict[str, bytes]
    """Rows by table, as an Arrow stream."""
    clients: list[tuple[str, str, list[int]]]
    """Who speaks for which shards (`ingest.router`), as far as it was learned in the batch."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Batch)


class LaneStore(InMemory):
    """What is kept of one lane, compressed, in memory and in the files; knows what no file has yet."""

    def __init__(self) -> None:
        """Hold nothing."""
        super().__init__()
        self._base: list[bytes] | None = None
        self._steps: list[bytes] = []
        self.needs_from: int | None = None
        """The first batch whose file is needed; None: none is."""

    def put_base(self, pieces: Sequence[bytes]) -> None:
        """Put a base in the place of all pieces and steps there are."""
        super().put_base(pieces)
        self._base, self._steps = list(pieces), []

    def put_step(self, number: int, step: bytes) -> None:
        """Put a step at the end of the journal."""
        super().put_step(number, step)
        self._steps.append(step)

    def unsaved(self) -> Puts | None:
        """What no file has yet; None if that is nothing."""
        if self.said is None or (self._base is None and not self._steps):
            return None
        return Puts(self.said, self._base, self._steps)

    def saved(self, puts: Puts, batch: int) -> None:
        """The file of a batch has all that was put."""
        self._base, self._steps = None, []
        self._note(puts, batch)

    def load(self, puts: Puts, batch: int) -> None:
        """Take in what a file has."""
        if puts.base is not None:
            super().put_base(puts.base)
        for step in puts.steps:
            super().put_step(len(self.steps), step)
        self.said = puts.mark
        self._note(puts, batch)

    def _note(self, puts: Puts, batch: int) -> None:
        if puts.base is not None or self.needs_from is None:
            self.needs_from = batch


class BatchFiles:
    """The files of one generation."""

    def __init__(self, folder: Path) -> None:
        """Make the folder."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def numbers(self) -> list[int]:
        """Numbers of the batches there are, in order."""
        names = (path.name.removeprefix(PREFIX) for path in self.folder.glob(f"{PREFIX}*"))
        return sorted(int(name) for name in names if name.isdigit())

    def read(self, number: int) -> Batch:
        """A batch; a StateError if its file is damaged."""
        path = self._path(number)
        header, _, body = path.read_bytes().partition(b"\n")
        if header != _header(body):
            raise damaged("its digest is of something else", path)
        try:
            return _decoder.decode(body)
        except msgspec.DecodeError as error:
            raise damaged(str(error), path) from error

    def read_all(self) -> Iterator[Batch]:
        """All batches in order; a StateError if one between them is missing."""
        numbers = self.numbers()
        for place, number in enumerate(numbers):
            if number != numbers[0] + place:
                raise damaged("it is missing", self._path(numbers[0] + place))
            yield self.read(number)

    def write(self, batch: Batch) -> int:
        """Step 2; how many bytes. `OSError` if the disk does not take it: the batch is not."""
        body = _encoder.encode(batch)
        replace_file(self._path(batch.number), _header(body) + b"\n" + body, mode=0o600)
        return len(body)

    def forget(self, before: int) -> None:
        """Step 4: remove the files of batches before one."""
        for number in self.numbers():
            if number < before:
                self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{PREFIX}{number}"


def _header(body: bytes) -> bytes:
    return b"%s %d %s" % (MAGIC, VERSION, sha256(body).hexdigest().encode("ascii"))


def damaged(why: str, path: Path) -> StateError:
    """The refusal of a file that is not what was written."""
    return StateError(
        f"a batch cannot be read: {why}",
        str(path),
        f"the file as Kardia wrote it, version {VERSION} with state of version {state_codec.VERSION}",
        "restore the whole folder of the tables from a copy; or move it away and begin anew: the logs are read from "
        "their beginning",
    )


def packed(tables: Mapping[str, pa.Table]) -> dict[str, bytes]:
    """Rows by table as bytes."""
    return {name: _stream_of(rows) for name, rows in tables.items()}


def _stream_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def unpacked(tables: Mapping[str, bytes]) -> dict[str, pa.Table]:
    """What `packed` was given."""
    return {name: pa.ipc.open_stream(data).read_all() for name, data in tables.items()}
