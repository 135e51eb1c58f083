"""What a replay found, counted from the tables it wrote: the standing rows, as any reader sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb

from ingest.archives.found import Archives
from kardia.tables import TABLES
from spark_jobs.writers.tables import is_there, open_table
from stores.datasets import dataset_of
from stores.locations import Folder
from stores.read_again import surviving


class Refused(NamedTuple):
    """Lines that were rejected for one reason."""

    reason: str
    lines: int
    expected: str
    """What would have been understood in place of the first of them."""
    excerpt: str
    """How the first of them begins."""


@dataclass
class Summary:
    """Counts for a person."""

    lines: int = 0
    events: int = 0
    rejected: int = 0
    ignored: int = 0
    not_applied: int = 0
    """Events that were left out, because the observer raised at them."""
    unattributed: int = 0
    portions: int = 0
    span_ms: tuple[float, float] | None = field(default=None, compare=False)
    """Stamps of the first and the last line that were read, epoch ms; None where the engine does not say."""
    groups: int = 0
    members: int = 0
    rebalances: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    """Memberships that ended, by cause."""
    archives: Archives = field(default_factory=Archives)
    """What the files were."""
    refused: list[Refused] = field(default_factory=list)
    """Lines that were rejected, by reason, the most first."""
    disagreements: dict[str, int] = field(default_factory=dict)
    """Lines of server.log that say otherwise than the requests, by kind."""


def standing_sql(table: str) -> str:
    """Query for the standing rows of a table registered under its own name."""
    key = ", ".join(TABLES[table].key)
    taken_back = " AND NOT coalesce(withdrawn, false)" if "withdrawn" in TABLES[table].names else ""
    return (
        f"SELECT * FROM {table} "  # noqa: S608  names come from kardia.tables
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY known_at_ms DESC, batch_id DESC) = 1{taken_back}"
    )


def count_tables(summary: Summary, directory: Folder, first_batch: int) -> Summary:
    """Add what the tables say since a batch."""
    return surviving(lambda: _count(summary, directory, first_batch))


def _count(summary: Summary, directory: Folder, first_batch: int) -> Summary:
    with duckdb.connect() as connection:
        for name in ("members", "rebalances", "disagreements", "rejected"):
            if not is_there(directory, name):
                return summary
            connection.register(f"all_{name}", dataset_of(open_table(directory, name)))
            connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM all_{name} WHERE batch_id >= {int(first_batch)}"  # noqa: S608
            )
            connection.execute(f"CREATE TABLE standing_{name} AS {standing_sql(name)}")
        summary.ends = dict(
            connection.execute(
                "SELECT end_cause, count(*) FROM standing_members WHERE ended_at_ms IS NOT NULL "
                "GROUP BY 1 ORDER BY 2 DESC, 1"
            ).fetchall()
        )
        summary.members = _one(connection, "SELECT count(*) FROM standing_members")
        summary.rebalances = _one(connection, "SELECT count(*) FROM standing_rebalances")
        summary.groups = _one(
            connection,
            "SELECT count(*) FROM (SELECT cluster_id, group_id FROM standing_members "
            "UNION SELECT cluster_id, group_id FROM standing_rebalances)",
        )
        found = connection.execute(
            'SELECT reason, count(*), arg_min(expected, "start"), arg_min(excerpt, "start") '
            "FROM standing_rejected GROUP BY 1 ORDER BY 2 DESC, 1"
        ).fetchall()
        summary.refused = [Refused(*row) for row in found]
        summary.disagreements = dict(
            connection.execute(
                "SELECT kind, count(*) FROM standing_disagreements GROUP BY 1 ORDER BY 2 DESC, 1"
            ).fetchall()
        )
    return summary


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    found = connection.execute(query).fetchone()
    return int(found[0]) if found else 0
