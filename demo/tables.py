"""What Kardia says: rows of the Delta tables, trusted as far as `progress` covers them, and the rows that stand.

Reads only. A row stands for its life, rebalance or prediction if it has the highest `known_at_ms`; ties are settled by
the batch, then by the order of writing (`kardia.tables`). `Tables` reads whole tables, `Follower` what is new in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kardia.tables import TABLES
from stores.read_again import surviving

Record = dict[str, Any]


class Tables:
    """The tables of one directory; each read brings what is committed now."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def rows(self, name: str, columns: list[str] | None = None) -> list[Record]:
        """All rows of a table in the order of their batches, those beyond `progress` left out."""
        covered = max((row["batch_id"] for row in self._read("progress", ["batch_id"])), default=-1)
        wanted = None if columns is None else [*columns, "batch_id"]
        rows = [row for row in self._read(name, wanted) if row["batch_id"] <= covered]
        return sorted(rows, key=lambda row: int(row["batch_id"]))

    def standing(self, name: str) -> list[Record]:
        """One row for each thing a table speaks about."""
        return standing(self.rows(name), TABLES[name].key)

    def complete_to_ms(self) -> int:
        """Instant up to which every lane has everything that the request logs said; -1 before the first."""
        latest: dict[tuple[int, str], int] = {}
        for row in self.rows("progress", ["lane", "source", "complete_to_ms"]):
            if row["source"].endswith("/request"):
                at = (row["lane"], row["source"])
                latest[at] = max(latest.get(at, -1), row["complete_to_ms"])
        return min(latest.values(), default=-1)

    def _read(self, name: str, columns: list[str] | None) -> list[Record]:
        def look() -> list[Record]:
            table = DeltaTable(str(self.directory / name))
            rows: list[Record] = table.to_pyarrow_table(columns=columns).to_pylist()
            return rows

        try:
            return surviving(look)
        except TableNotFoundError:
            return []


class Follower:
    """New rows of some tables since the last look, cheap enough to be asked several times a second.

    Only files that were added since are read. After a compaction rows come again: good for what stands, not for news.
    """

    def __init__(self, directory: Path, names: Iterable[str]) -> None:
        self._directory = directory
        self._names = tuple(names)
        self._tables: dict[str, DeltaTable] = {}
        self._files: dict[str, set[str]] = {}
        self._waiting: dict[str, list[Record]] = {name: [] for name in self._names}
        self._covered = -1
        self._complete_to_ms: dict[tuple[int, str], int] = {}

    @property
    def complete_to_ms(self) -> int:
        """Instant up to which every lane had everything that any source said, at the last look; -1 before the first."""
        return min(self._complete_to_ms.values(), default=-1)

    def look(self) -> dict[str, list[Record]]:
        """Rows by table that have come and that `progress` covers by now."""
        for name in self._names:
            self._waiting[name] += self._added(name)
        # After the others: what `progress` covers is then complete in what has been read above.
        for row in self._added("progress"):
            self._covered = max(self._covered, row["batch_id"])
            at = (row["lane"], row["source"])
            self._complete_to_ms[at] = max(self._complete_to_ms.get(at, -1), row["complete_to_ms"])
        news: dict[str, list[Record]] = {}
        for name in self._names:
            rows = self._waiting[name]
            news[name] = sorted((r for r in rows if r["batch_id"] <= self._covered), key=lambda r: int(r["batch_id"]))
            self._waiting[name] = [row for row in rows if row["batch_id"] > self._covered]
        return news

    def _added(self, name: str) -> list[Record]:
        try:
            files = surviving(lambda: self._files_of(name), lambda: self._forget(name))
        except TableNotFoundError:
            return []
        fresh = sorted(files - self._files.get(name, set()))
        self._files[name] = files
        rows: list[Record] = []
        for file in fresh:
            try:
                rows += _parquet(file)
            except FileNotFoundError:  # compacted and vacuumed meanwhile; its rows are in a file that comes
                continue
        return rows

    def _files_of(self, name: str) -> set[str]:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = DeltaTable(str(self._directory / name))
        else:
            table.update_incremental()
        return set(table.file_uris())

    def _forget(self, name: str) -> None:
        self._tables.pop(name, None)


def _parquet(file: str) -> list[Record]:
    read: pa.Table = pq.read_table(file.removeprefix("file://"), partitioning=None)
    rows: list[Record] = read.to_pylist()
    return rows


def standing(rows: Iterable[Record], key: tuple[str, ...]) -> list[Record]:
    """Of rows in the order of writing, the one that stands for each key."""
    stand: dict[tuple[Any, ...], Record] = {}
    for row in rows:
        merge(stand, row, key)
    return list(stand.values())


def merge(stand: dict[tuple[Any, ...], Record], row: Record, key: tuple[str, ...]) -> bool:
    """Put a row into the rows that stand, if it stands; whether it says something else than the one before."""
    at = tuple(row[column] for column in key)
    known = stand.get(at)
    if known is not None and (row["known_at_ms"], row["batch_id"]) < (known["known_at_ms"], known["batch_id"]):
        return False
    stand[at] = row
    return known is None or any(row[name] != known[name] for name in row if name not in ("known_at_ms", "batch_id"))
