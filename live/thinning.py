"""Rows of the steps of one batch as the tables get them: what was shown tick by tick, a few times a second. Pure.

`progress` counts from step to step and is added up; of the samples of a member's health those stay at which its status
changed, the first and the last one. Every other row is a fact and stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from kardia.tables import DISAGREEMENTS, PROGRESS
from spark_jobs.schemas import ARROW_SCHEMAS

_PLACE = ("cluster_id", "lane", "source")

_COUNTED = tuple(
    column.name
    for column in PROGRESS.columns
    if column.name in DISAGREEMENTS or (column.type == "long" and not column.name.endswith("_ms"))
)

_FARTHEST = ("at_ms", "known_at_ms", "complete_to_ms", "gap_to_ms")


def thinned(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows of a batch, thinned."""
    found = dict(tables)
    for name, thin in (("progress", added_up), ("health", without_repeats)):
        if name in found:
            found[name] = thin(found[name])
    return found


def added_up(rows: pa.Table) -> pa.Table:
    """One row for each lane and source: counts added, instants the farthest, a gap from its begin to its end."""
    schema = ARROW_SCHEMAS["progress"]
    how = {name: "last" for name in schema.names if name not in _PLACE}
    how |= dict.fromkeys(_COUNTED, "sum") | dict.fromkeys(_FARTHEST, "max") | {"gap_from_ms": "min"}
    grouped = rows.group_by(list(_PLACE), use_threads=False).aggregate(list(how.items()))
    renamed = {f"{name}_{function}": name for name, function in how.items()}
    named = grouped.rename_columns([renamed.get(name, name) for name in grouped.column_names])
    return named.select(schema.names).cast(schema)


def without_repeats(rows: pa.Table) -> pa.Table:
    """Samples of health without those that say what the one before says and are not a member's last."""
    names = ("cluster_id", "group_id", "member_id", "status", "certainty", "group_state")
    keys = list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))
    kept: set[int] = set()
    latest: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {}
    """Member -> its last row so far, and what that says."""
    for place, key in enumerate(keys):
        who, says = key[:3], key[3:]
        before = latest.get(who)
        if before is None or before[1] != says:
            kept.add(place)
        latest[who] = (place, says)
    kept |= {place for place, _ in latest.values()}
    return rows if len(kept) == len(keys) else rows.take(sorted(kept))
