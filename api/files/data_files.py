"""The data files of one table: which of them may hold rows that are asked for, and their footers, kept once read.

The log names each file's smallest and largest values, by which whole files are passed over unopened; the footer has
them for each row group of it. A data file never changes, so what was learned of it holds until it is gone from the
table. delta-rs can make an Arrow dataset of a table itself, at a cost for every file and column of it at every
question; here a version of the table is listed once. Writes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.table import MAX_SUPPORTED_READER_VERSION, SUPPORTED_READER_FEATURES

from api.files import counted
from api.files.folders import folder_of
from api.files.pieces import Span
from kardia.tables import BATCH
from stores.locations import Folder

ROW_GROUPS_MAX = 1_000
"""Row groups of files whose footers are kept: about 30 kB each, of a table of 27 columns."""


class Bound(NamedTuple):
    """A condition by which files and row groups are passed over; the rows are filtered all the same."""

    column: str
    comparison: str
    """One of `=`, `<`, `<=`, `>`, `>=`."""
    value: int | str


_MAY: dict[str, Callable[[Any, Any, Any], bool]] = {
    "=": lambda low, high, value: low <= value <= high,
    "<": lambda low, _, value: low < value,
    "<=": lambda low, _, value: low <= value,
    ">": lambda _, high, value: high > value,
    ">=": lambda _, high, value: high >= value,
}
"""Whether values from the lowest to the highest may be within a bound."""

_STATED: dict[str, tuple[tuple[str, Callable[[Any, Any], Any]], ...]] = {
    "=": (("min", pc.less_equal), ("max", pc.greater_equal)),
    "<": (("min", pc.less),),
    "<=": (("min", pc.less_equal),),
    ">": (("max", pc.greater),),
    ">=": (("max", pc.greater_equal),),
}
"""The same of what the log states of a file (`min`, `max`)."""

SHORT_ROWS = 256
"""Rows of a row group that is read at once, without a look into it before."""

TAIL_BYTES = 65_536
"""Arrow reads so much of the end of a file, or the file, to find its footer; more if the footer is longer."""


class DataFile:
    """One data file, and what its footer says of its row groups. The footer is read when it is needed."""

    def __init__(self, fragment: ds.ParquetFileFragment, size_bytes: int) -> None:
        """Open nothing yet."""
        self.path = str(fragment.path)
        self._fragment = fragment
        self._size_bytes = size_bytes
        self._footer: pq.FileMetaData | None = None
        self._limits: dict[str, list[tuple[Any, Any] | None]] = {}

    @property
    def count(self) -> int:
        """Number of row groups. FileNotFoundError if the file is gone."""
        return int(self.footer.num_row_groups)

    @property
    def footer(self) -> pq.FileMetaData:
        """What the end of the file says of it, read once. FileNotFoundError if the file is gone."""
        if self._footer is None:
            self._footer = self._fragment.metadata
            counted.footer(max(self._footer.serialized_size, min(self._size_bytes, TAIL_BYTES)))
        return self._footer

    def within(self, bounds: Sequence[Bound]) -> ds.ParquetFileFragment | None:
        """The file with those of its row groups that hold what is asked for, as far as can be told without reading all
        of their columns; None if there are none. FileNotFoundError if the file is gone."""
        there = self._may(bounds)
        for column, comparison, value in bounds:
            if comparison == "=":
                there = [place for place in there if self._has(place, column, value)]
        return self._fragment.subset(row_group_ids=there) if there else None

    def count_read(self, fragment: ds.ParquetFileFragment) -> None:
        """Count what of it `within` has given."""
        groups = [self.footer.row_group(one.id) for one in fragment.row_groups]
        counted.row_groups(len(groups), sum(map(_length, groups)))

    def spans(self, bounds: Sequence[Bound]) -> list[Span]:
        """Batches and rows of the row groups that may be within the bounds, by the footer."""
        limits = self._of(BATCH.name)
        stated = ((limits[place], self.footer.row_group(place).num_rows) for place in self._may(bounds))
        return [Span(*found, rows) for found, rows in stated if found is not None]

    def _may(self, bounds: Sequence[Bound]) -> list[int]:
        """Row groups of which the footer does not say that they are out of bounds."""
        there = list(range(self.count))
        for column, comparison, value in bounds:
            limits, may = self._of(column), _MAY[comparison]
            there = [place for place in there if (found := limits[place]) is None or may(*found, value)]
        return there

    def _has(self, place: int, column: str, value: int | str) -> bool:
        """Whether a row group has the value, as far as can be told by reading no more than the column. Rows of a group
        are side by side in files that are laid, and in what came at once; else one of all groups may be anywhere."""
        found = self._of(column)[place]
        group = self.footer.row_group(place)
        if group.num_rows <= SHORT_ROWS or (found is not None and found[0] == found[1]):
            return True
        counted.row_groups(0, sum(chunk.total_compressed_size for chunk in _chunks(group, column)))
        return bool(self._fragment.subset(row_group_ids=[place]).count_rows(filter=ds.field(column) == value))

    def _of(self, column: str) -> list[tuple[Any, Any] | None]:
        """Lowest and highest value of a column in each row group; None where the footer does not say."""
        limits = self._limits.get(column)
        if limits is None:
            footer = self.footer
            places = [place for place in range(footer.num_columns) if footer.schema.column(place).path == column]
            stated = [
                footer.row_group(group).column(places[0]).statistics if places else None for group in range(self.count)
            ]
            limits = [(one.min, one.max) if one is not None and one.has_min_max else None for one in stated]
            self._limits[column] = limits
        return limits


def _chunks(group: pq.RowGroupMetaData, name: str) -> list[pq.ColumnChunkMetaData]:
    chunks = map(group.column, range(group.num_columns))
    return [chunk for chunk in chunks if chunk.path_in_schema == name]


def _length(group: pq.RowGroupMetaData) -> int:
    """Bytes of a row group, whose columns lie one behind the other."""
    first, last = group.column(0), group.column(group.num_columns - 1)
    return int(_begin(last) + last.total_compressed_size - _begin(first))


def _begin(chunk: pq.ColumnChunkMetaData) -> int:
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


class Files:
    """Files of the Delta table in a folder. Not for several threads at once, but for what `chosen` has given."""

    def __init__(self, folder: Folder) -> None:
        """Look at nothing yet."""
        self._folder = folder_of(folder)
        self._format = ds.ParquetFileFormat()
        self._table: DeltaTable | None = None
        self._version = -1
        self._listed = pa.table({})
        self.schema = pa.schema([])
        """Columns of the table as of the last question."""
        self._kept: OrderedDict[str, DataFile] = OrderedDict()

    def chosen(self, table: DeltaTable, bounds: Sequence[Bound]) -> list[DataFile]:
        """The files that may hold rows within all bounds, by the log. DeltaError if the table needs a reader that can
        do more than this one."""
        if table is not self._table or table.version() != self._version:
            self._list(table)
        there = None
        for column, comparison, value in bounds:
            for end, compare in _STATED[comparison]:
                name = f"{end}.{column}"
                if name not in self._listed.column_names:
                    continue
                # Null: the log does not say. A text that it has cut short is a bound all the same.
                may = pc.fill_null(compare(self._listed[name], value), True)
                there = may if there is None else pc.and_(there, may)
        listed = self._listed if there is None else self._listed.filter(there)
        files = zip(listed["path"].to_pylist(), listed["size_bytes"].to_pylist(), strict=True)
        return [self._file(self._folder.path_of(unquote(path)), size_bytes) for path, size_bytes in files]

    def dataset(self, fragments: Sequence[ds.ParquetFileFragment]) -> ds.FileSystemDataset:
        """Files, or row groups of them, to scan."""
        return ds.FileSystemDataset(list(fragments), self.schema, self._format, self._folder.file_system)

    def keep(self, read: Iterable[DataFile]) -> None:
        """Remember the footers of the files that were just read, and of no more than `ROW_GROUPS_MAX` row groups."""
        for file in read:
            self._kept[file.path] = file
            self._kept.move_to_end(file.path)
        count = 0
        for path in reversed(list(self._kept)):
            count += self._kept[path].count
            if count > ROW_GROUPS_MAX:
                del self._kept[path]

    def forget(self) -> None:
        """Keep no footer: what is read next is new."""
        self._kept.clear()

    def _file(self, path: str, size_bytes: int) -> DataFile:
        fragment = self._format.make_fragment
        return self._kept.get(path) or DataFile(fragment(path, self._folder.file_system), size_bytes)

    def _list(self, table: DeltaTable) -> None:
        protocol = table.protocol()
        missing = set(protocol.reader_features or ()) - set(SUPPORTED_READER_FEATURES)
        if protocol.min_reader_version > MAX_SUPPORTED_READER_VERSION or missing:
            raise DeltaError(
                f"the table needs a reader of version {protocol.min_reader_version} with {sorted(missing)}"
            )
        self._listed = pa.table(table.get_add_actions(flatten=True))
        self.schema = pa.schema(table.schema().to_arrow())
        there = {self._folder.path_of(unquote(path)) for path in self._listed["path"].to_pylist()}
        for path in [path for path in self._kept if path not in there]:
            del self._kept[path]
        self._table, self._version = table, table.version()
