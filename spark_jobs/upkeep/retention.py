"""Retention by age: which rows of a table go, and the one commit that lets them go (`kardia.retention_setting` says how
long).

    (1) the newest instant of each cluster, from `progress`; never later than the clock that is given: a line of a
        broker whose clock is a year ahead must not empty the tables
    (2) rows known before that instant less the age are taken out, by cluster, in one commit
    (3) of tables in `STANDING` the rows that still say what is so now are put back in the same commit; rows of
        `progress` are put back as their sums

The commit carries the cutoff as a Delta transaction of the application `kardia-kept/CLUSTER`, so that a reader can ask
from when on a table is whole (`kept_from`). An append that comes meanwhile with rows that old makes it fail
(delta-rs looks at what was added), and it is tried again: nothing is deleted that was not looked at.
Files that hold no row of that age are not opened; of the others nearly all go as they are. It reads no clock.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from kardia.retention_setting import FOREVER_MS, STANDING, Keep
from kardia.tables import DISAGREEMENTS, PROGRESS, TABLES
from spark_jobs.schemas import ARROW_SCHEMAS
from spark_jobs.writers.tables import SMALL_ROW_GROUPS, is_there, open_table
from stores.datasets import dataset_of
from stores.locations import Folder
from stores.read_again import surviving

KEPT = "kardia-kept/"
"""Application of the transactions that say from when on a table is whole, with the name of the cluster."""

CLUSTERS_MAX = 50
"""Clusters of one pass; the others have their turn an hour later, when these have nothing to let go."""

MEMORY = "512MB"
"""Of the database that finds the rows that stand; beyond it uses a file."""

COUNTS = tuple(
    column.name
    for column in PROGRESS.columns
    if column.name in DISAGREEMENTS or (column.type == "long" and not column.name.endswith("_ms"))
)
"""Columns of `progress` that are added up."""

STANDS = {
    "members": "ended_at_ms IS NULL",
    "rebalances": "withdrawn IS NOT TRUE AND (completed_at_ms IS NULL OR members_after > 0)",
    "predictions": "outcome = 'open'",
    "transitions": "entity = 'group' AND to_state NOT IN ('Empty', 'Dead', 'Absent')",
}
"""Of the latest row of a key: whether it says what is so now. A group without members is forgotten like what it did."""

_GROUP = ("cluster_id", "group_id")
KEYS = {name: TABLES[name].key for name in STANDING} | {"transitions": _GROUP, "rebalances": _GROUP}
"""Of whose rows the latest is looked at: of a group its last state, and its last rebalance."""

ORDERS = dict.fromkeys(STANDING, "known_at_ms") | {"transitions": "seq", "rebalances": "started_at_ms"}

Cutoffs = dict[str, int]
"""By cluster: rows known before that instant go."""


def newest(tables: Folder, now_ms: int) -> dict[str, int]:
    """By cluster: how far its logs have been read, not later than now."""
    if not is_there(tables, PROGRESS.name):
        return {}

    def look() -> list[tuple[str, int]]:
        with _database() as found:
            found.register("rows", dataset_of(open_table(tables, PROGRESS.name)))
            return found.execute("SELECT cluster_id, max(complete_to_ms) FROM rows GROUP BY ALL").fetchall()

    return {cluster: min(at_ms, now_ms) for cluster, at_ms in surviving(look)}


def cutoffs(name: str, keep: Keep, reached: Mapping[str, int]) -> Cutoffs:
    """From when on rows of a table are kept."""
    age_ms = keep.of(name)
    return {} if age_ms >= FOREVER_MS else {cluster: at_ms - age_ms for cluster, at_ms in reached.items()}


def kept_from(table: DeltaTable, cluster: str) -> int | None:
    """From when on a table has all rows of a cluster; None: nothing was ever let go."""
    version: int | None = table.transaction_version(KEPT + cluster)
    return version


def let_go(table: DeltaTable, name: str, before: Cutoffs) -> int:
    """Steps 2 and 3; how many rows are fewer. A CommitFailedError if rows of that age came meanwhile."""
    due = _due(table, before)
    if not due:
        return 0
    old = _older(due)
    # A newer cutoff stands: the one of another pass, or of a setting that has kept less.
    marks = [
        Transaction(KEPT + cluster, at) for cluster, at in due.items() if at > (kept_from(table, cluster) or at - 1)
    ]
    properties = CommitProperties(app_transactions=marks)
    put_back = _put_back(table, name, due, old)
    if put_back is None:
        return 0
    before_count = _rows_in(table)
    # Not `delete`: what that leaves of a file has texts of another kind (string_view), which readers do not compare.
    write_deltalake(
        table,
        put_back,
        mode="overwrite",
        predicate=old,
        writer_properties=SMALL_ROW_GROUPS,
        commit_properties=properties,
    )
    table.update_incremental()
    return before_count - _rows_in(table)


def _put_back(table: DeltaTable, name: str, due: Cutoffs, old: str) -> pa.Table | None:
    """Rows that take the place of the old ones; None if those are no more than that."""
    if name not in KEYS and name != PROGRESS.name:
        return ARROW_SCHEMAS[name].empty_table()
    with _database() as found:
        found.register("all_rows", dataset_of(table))
        found.execute(f"CREATE TEMP VIEW old AS SELECT * FROM all_rows WHERE {old}")  # noqa: S608 - quoted
        [[count]] = found.execute("SELECT count(*) FROM old").fetchall()
        put_back = found.sql(_sums() if name == PROGRESS.name else _standing(name, due)).to_arrow_table()
    if len(put_back) >= count:
        return None
    return put_back.select(ARROW_SCHEMAS[name].names).cast(ARROW_SCHEMAS[name])


def _rows_in(table: DeltaTable) -> int:
    listed = pa.table(table.get_add_actions(flatten=True))
    return sum(listed["num_records"].to_pylist()) if len(listed) else 0


def _due(table: DeltaTable, before: Cutoffs) -> Cutoffs:
    """Clusters that may have rows to let go, by what the log says of its files; without opening one."""
    listed = pa.table(table.get_add_actions(flatten=True))
    if not {"min.known_at_ms", "min.cluster_id", "max.cluster_id"} <= set(listed.column_names):
        return dict(list(before.items())[:CLUSTERS_MAX]) if len(listed) else {}
    files = [listed[name].to_pylist() for name in ("min.cluster_id", "max.cluster_id", "min.known_at_ms")]
    found = {
        cluster: at
        for cluster, at in before.items()
        if any(
            oldest is None or (oldest < at and (low is None or low <= cluster) and (high is None or cluster <= high))
            for low, high, oldest in zip(*files, strict=True)
        )
    }
    return dict(list(found.items())[:CLUSTERS_MAX])


def _older(before: Cutoffs, of: str = "") -> str:
    """Condition on a row, of the table itself or of `of.`."""
    return " OR ".join(
        f"({of}cluster_id = {_quoted(cluster)} AND {of}known_at_ms < {at})" for cluster, at in before.items()
    )


def _standing(name: str, before: Cutoffs) -> str:
    """Old rows that no later row of their key has replaced and that say what is so now."""
    key, order = KEYS[name], ORDERS[name]
    only = "entity = 'group'" if name == "transitions" else "true"
    same = " AND ".join(f"newer.{column} = last.{column}" for column in key)
    return f"""
        SELECT * FROM (
            SELECT * FROM old WHERE {only} QUALIFY row_number() OVER (
                PARTITION BY {", ".join(key)} ORDER BY {order} DESC, known_at_ms DESC, batch_id DESC
            ) = 1
        ) AS last
        WHERE {STANDS[name]} AND NOT EXISTS (
            SELECT 1 FROM all_rows AS newer
            WHERE {only} AND NOT ({_older(before, "newer.")}) AND {same} AND newer.{order} >= last.{order}
        )
    """  # noqa: S608 - names are ours, clusters are quoted


def _sums() -> str:
    """Rows of `progress` added up: for each lane and source those up to its latest gap, and those after it, so that
    readers find the same counts, the same reach, and the same instant of the latest gap."""
    kept = []
    for column in PROGRESS.columns:
        if column.name in ("cluster_id", "lane", "source"):
            kept.append(column.name)
        elif column.name in COUNTS:
            kept.append(f"CAST(sum({column.name}) AS BIGINT) AS {column.name}")
        elif column.name in ("at_ms", "known_at_ms", "complete_to_ms"):
            kept.append(f"max({column.name}) AS {column.name}")
        else:
            kept.append(f"arg_max({column.name}, batch_id) AS {column.name}")
    return f"""
        WITH marked AS (
            SELECT *, complete_to_ms > coalesce(max(CASE WHEN gaps > 0 THEN complete_to_ms END)
                OVER (PARTITION BY cluster_id, lane, source), -1) AS since_gap
            FROM old
        )
        SELECT {", ".join(kept)}, max(batch_id) AS batch_id FROM marked GROUP BY cluster_id, lane, source, since_gap
    """  # noqa: S608 - names are ours


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _database() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute(f"SET memory_limit = '{MEMORY}'; SET threads = 1")
    return found
