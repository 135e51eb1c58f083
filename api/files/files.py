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
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.table import MAX_SUPPORTED_READER_VERSION, SUPPORTED_READER_FEATURES

from api.files.folders import folder_of
from api.files.pieces import Span
from kardia.locations import Folder
from kardia.tables import BATCH

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


class DataFile:
    """One data file, and what its footer says of its row groups. The footer is read when it is needed."""

    def __init__(self, fragment: ds.ParquetFileFragment) -> None:
        """Open nothing yet."""
        self.path = str(fragment.path)
        self._fragment = fragment
        self._limits: dict[str, list[tuple[Any, Any] | None]] = {}

    @property
    def count(self) -> int:
        """Number of row groups. FileNotFoundError if the file is gone."""
        return int(self._fragment.num_row_groups)

    def within(self, bounds: Sequence[Bound]) -> ds.ParquetFileFragment | None:
        """The file with those of its row groups that hold what is asked for, as far as can be told without reading all
        of their columns; None if there are none. FileNotFoundError if the file is gone."""
        there = self._may(bounds)
        for column, comparison, value in bounds:
            if comparison == "=":
                # Rows of a group are side by side in a batch, but upkeep puts batches together in any order.
                there = [
                    place for place in there if self._row_group(place).count_rows(filter=ds.field(column) == value)
                ]
        return self._fragment.subset(row_group_ids=there) if there else None

    def spans(self, bounds: Sequence[Bound]) -> list[Span]:
        """Batches and rows of the row groups that may be within the bounds, by the footer."""
        limits, footer = self._of(BATCH.name), self._fragment.metadata
        stated = ((limits[place], footer.row_group(place).num_rows) for place in self._may(bounds))
        return [Span(*found, rows) for found, rows in stated if found is not None]

    def _may(self, bounds: Sequence[Bound]) -> list[int]:
        """Row groups of which the footer does not say that they are out of bounds."""
        there = list(range(self.count))
        for column, comparison, value in bounds:
            limits, may = self._of(column), _MAY[comparison]
            there = [place for place in there if (found := limits[place]) is None or may(*found, value)]
        return there

    def _row_group(self, place: int) -> ds.ParquetFileFragment:
        return self._fragment.subset(row_group_ids=[place])

    def _of(self, column: str) -> list[tuple[Any, Any] | None]:
        """Lowest and highest value of a column in each row group; None where the footer does not say."""
        limits = self._limits.get(column)
        if limits is None:
            footer = self._fragment.metadata
            places = [place for place in range(footer.num_columns) if footer.schema.column(place).path == column]
            stated = [
                footer.row_group(group).column(places[0]).statistics if places else None for group in range(self.count)
            ]
            limits = [(one.min, one.max) if one is not None and one.has_min_max else None for one in stated]
            self._limits[column] = limits
        return limits


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
        for bound in bounds:
            name = f"{'min' if bound.comparison.startswith('<') else 'max'}.{bound.column}"
            if bound.comparison == "=" or name not in self._listed.column_names:
                continue  # the log cuts long strings
            compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[bound.comparison]
            may = pc.fill_null(compare(self._listed[name], bound.value), True)  # null: the log does not say
            there = may if there is None else pc.and_(there, may)
        paths = self._listed["path"] if there is None else self._listed["path"].filter(there)
        return [self._file(self._folder.path_of(unquote(path))) for path in paths.to_pylist()]

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

    def _file(self, path: str) -> DataFile:
        return self._kept.get(path) or DataFile(self._format.make_fragment(path, self._folder.file_system))

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
