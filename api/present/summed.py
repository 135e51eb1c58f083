"""The ledger added up in columns: what `Reach` is given of a history that it only has to sum up.

`progress` has a row a second for each lane and source until upkeep adds them up, after an hour: of three brokers
150,000, which as values of Python were most of the memory of a `kardia notify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from api.present.freshness import LEDGER
from kardia.tables import BATCH, DISAGREEMENTS, SELF_TEST

_PLACE = ("cluster_id", "lane", "source")
_MET_GAPS = "met_gaps"
_LATEST = ("complete_to_ms", BATCH.name)


def added_up(chunks: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Rows of `progress` as a few: for each lane and source one of the rows that met gaps and one of all others, with
    the sums of the counts and the farthest instant. `Reach` finds in them what it finds in all."""
    found: pa.Table | None = None
    for chunk in chunks:
        met = pc.greater(pc.fill_null(chunk["gaps"], 0), 0)
        sums = _grouped(chunk.append_column(_MET_GAPS, met))
        found = sums if found is None else _grouped(pa.concat_tables([found, sums]))
    if found is not None:
        yield found


def _grouped(rows: pa.Table) -> pa.Table:
    """One row for each place, with the same names."""
    added = [name for name in (*LEDGER, *DISAGREEMENTS, *SELF_TEST) if name in rows.column_names]
    how = dict.fromkeys(added, "sum") | dict.fromkeys(_LATEST, "max")
    grouped = rows.group_by([*_PLACE, _MET_GAPS], use_threads=False).aggregate(list(how.items()))
    return grouped.rename_columns({f"{name}_{function}": name for name, function in how.items()})
