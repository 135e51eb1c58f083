"""Delta tables as datasets that a query may read beside other threads.

DuckDB asks a dataset for a reader. pyarrow's own `Scanner.to_reader` starts the scan without letting go of the
interpreter; where files are opened by Python, as delta-rs has it, a thread that opens the next one waits for the
interpreter with a lock that the scan waits for: the whole process stands still for good. A test of upkeep did so once;
`tests/stores/test_datasets.py` holds a scan to letting go of it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable


class _Scan:
    """A scan that is begun, and read, without the interpreter."""

    def __init__(self, scanner: ds.Scanner) -> None:
        self._scanner = scanner

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, a batch at a time."""
        return pa.RecordBatchReader.from_batches(self._scanner.projected_schema, self._scanner.to_batches())


class Scanned(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types for it
    """A dataset of files, for `DuckDBPyConnection.register`."""

    def scanner(self, **options: Any) -> Any:
        """As DuckDB asks for it: columns and a filter."""
        return _Scan(super().scanner(**options))


def scanned(dataset: ds.FileSystemDataset) -> Scanned:
    """The same files."""
    return Scanned(list(dataset.get_fragments()), dataset.schema, dataset.format, dataset.filesystem)


def dataset_of(table: DeltaTable) -> Scanned:
    """The rows of a table."""
    return scanned(table.to_pyarrow_dataset())
