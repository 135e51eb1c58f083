"""The data files of one table: which of them may hold rows that are asked for, and their footers, kept once read.

The log names each file's smallest and largest values, by which whole files are passed over unopened; the footer has
them for each piece of a file, by which Arrow passes over pieces. A data file never changes, so what was learned of it
holds until it is gone from the table. delta-rs can make an Arrow dataset of a table itself, at a cost for every file
and column of it at every question (65 ms at 48 files; this takes 3 ms once per version).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.table import MAX_SUPPORTED_READER_VERSION, SUPPORTED_READER_FEATURES
from pyarrow.fs import LocalFileSystem

PIECES_MAX = 5_000
"""Pieces of files whose footers are kept: about 15 kB each."""


class Bound(NamedTuple):
    """A condition on a number by which whole files are passed over; the rows are filtered all the same."""

    column: str
    comparison: str
    """One of `<`, `<=`, `>`, `>=`."""
    value: int


class Files:
    """Files of the Delta table in a directory. Not for several threads at once, but for what `chosen` has given."""

    def __init__(self, directory: Path) -> None:
        """Look at nothing yet."""
        self._directory = directory
        self._format = ds.ParquetFileFormat()
        self._system = LocalFileSystem()
        self._table: DeltaTable | None = None
        self._version = -1
        self._listed = pa.table({})
        self._schema = pa.schema([])
        self._kept: OrderedDict[str, ds.ParquetFileFragment] = OrderedDict()

    def chosen(self, table: DeltaTable, bounds: Sequence[Bound]) -> ds.FileSystemDataset:
        """The files that may hold rows within all bounds. DeltaError if the table needs a reader that can do more."""
        if table is not self._table or table.version() != self._version:
            self._list(table)
        there = None
        for bound in bounds:
            side = "min" if bound.comparison.startswith("<") else "max"
            name = f"{side}.{bound.column}"
            if name not in self._listed.column_names:
                continue
            compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[bound.comparison]
            may = pc.fill_null(compare(self._listed[name], bound.value), True)  # null: the log does not say
            there = may if there is None else pc.and_(there, may)
        paths = self._listed["path"] if there is None else self._listed["path"].filter(there)
        fragments = [self._fragment(unquote(path)) for path in paths.to_pylist()]
        return ds.FileSystemDataset(fragments, self._schema, self._format, self._system)

    def keep(self, read: Iterable[ds.Fragment]) -> None:
        """Remember the footers of the fragments that were just read, and no more than `PIECES_MAX` pieces of all."""
        for fragment in read:
            self._kept[fragment.path] = fragment
            self._kept.move_to_end(fragment.path)
        pieces = 0
        for path in reversed(list(self._kept)):
            pieces += self._kept[path].num_row_groups
            if pieces > PIECES_MAX:
                del self._kept[path]

    def _fragment(self, name: str) -> ds.ParquetFileFragment:
        path = str(self._directory / name)
        return self._kept.get(path) or self._format.make_fragment(path, self._system)

    def _list(self, table: DeltaTable) -> None:
        protocol = table.protocol()
        missing = set(protocol.reader_features or ()) - set(SUPPORTED_READER_FEATURES)
        if protocol.min_reader_version > MAX_SUPPORTED_READER_VERSION or missing:
            raise DeltaError(
                f"the table needs a reader of version {protocol.min_reader_version} with {sorted(missing)}"
            )
        self._listed = pa.table(table.get_add_actions(flatten=True))
        self._schema = pa.schema(table.schema().to_arrow())
        there = {str(self._directory / unquote(path)) for path in self._listed["path"].to_pylist()}
        for path in [path for path in self._kept if path not in there]:
            del self._kept[path]
        self._table, self._version = table, table.version()
