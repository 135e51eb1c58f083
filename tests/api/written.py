"""Real Delta tables for the tests, written with the job's own schemas and one batch per commit, `progress` last.

A row is given by the columns that matter; every other column gets a legal value. Knows nothing of the API.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalake import DeltaTable, write_deltalake

from kardia.table_types import Table
from kardia.tables import LIVE_TABLES, TABLES
from spark_jobs.schemas import ARROW_SCHEMAS, to_arrow

NOW_MS = 1_760_000_000_000
"""The wall clock of the tests."""

CLUSTER = "demo"
_ZERO: dict[str, Any] = {"string": "", "long": 0, "int": 0, "double": 0.0, "bool": False}


def row_of(table: Table, **given: Any) -> tuple[Any, ...]:
    """A row of a table; unknown names are an error of the test."""
    assert set(given) <= set(table.names), set(given) - set(table.names)
    defaults = {"cluster_id": CLUSTER, "certainty": "exact", "at_ms": NOW_MS, "known_at_ms": given.get("at_ms", NOW_MS)}
    return tuple(
        given.get(column.name, defaults.get(column.name, None if column.nullable else _ZERO[column.type]))
        for column in table.columns
    )


def member(group_id: str, member_id: str, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """A life; joined a minute ago and present unless told otherwise."""
    known = {"joined_at_ms": NOW_MS - 60_000, "protocol": "classic", "session_timeout_ms": 10_000, "client_id": "app"}
    if given.get("ended_at_ms") is not None:
        known["known_at_ms"] = given["ended_at_ms"]
    return "members", row_of(TABLES["members"], group_id=group_id, member_id=member_id, **(known | given))


def health(group_id: str, member_id: str, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """A health row: heard a second ago of ten, polled two seconds ago of sixty."""
    at_ms = given.get("at_ms", NOW_MS)
    known = {
        "group_state": "Stable",
        "generation_id": 3,
        "session_timeout_ms": 10_000,
        "last_heard_at_ms": at_ms - 1_000,
        "session_deadline_at_ms": at_ms + 9_000,
        "poll_interval_ms": 60_000,
        "last_poll_at_ms": at_ms - 2_000,
        "poll_deadline_at_ms": at_ms + 58_000,
        "poll_error_bound_ms": 500,
        "poll_evidence": "fetch",
        "status": "ok",
        "client_id": "app",
        "reasons": [],
    }
    return "health", row_of(TABLES["health"], group_id=group_id, member_id=member_id, **(known | given))


def transition(group_id: str, seq: int, to_state: str, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """A change of a group's state."""
    known = {
        "entity": "group",
        "from_state": "Unknown",
        "cause": "member_joined",
        "evidence": "join",
        "generation_id": 3,
    }
    return "transitions", row_of(
        TABLES["transitions"], group_id=group_id, seq=seq, to_state=to_state, **(known | given)
    )


def rebalance(group_id: str, started_at_ms: int, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """A rebalance that is over after half a second unless told otherwise."""
    known = {
        "joined_at_ms": started_at_ms + 400,
        "completed_at_ms": started_at_ms + 500,
        "known_at_ms": started_at_ms + 500,
        "trigger": "member_joined",
        "generation_before": 2,
        "generation_after": 3,
        "at_ms": started_at_ms,
        "stragglers": [],
    }
    row = row_of(TABLES["rebalances"], group_id=group_id, started_at_ms=started_at_ms, **(known | given))
    return "rebalances", row


def prediction(group_id: str, member_id: str, kind: str, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """An open prediction for three seconds from now."""
    known = {"predicted_at_ms": NOW_MS - 1_000, "deadline_at_ms": NOW_MS + 3_000, "outcome": "open"}
    row = row_of(TABLES["predictions"], group_id=group_id, member_id=member_id, kind=kind, **(known | given))
    return "predictions", row


def progress(
    complete_to_ms: int, lane: int = 0, source: str = "b1/request", **given: Any
) -> tuple[str, tuple[Any, ...]]:
    """How far a source has been read in a lane."""
    known = {"shard": -1, "events": 10, "lines": 20}
    row = row_of(TABLES["progress"], lane=lane, source=source, complete_to_ms=complete_to_ms, **(known | given))
    return "progress", row


def rejected(start: int, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """A line that could not be understood, at a position of a log; a hundred bytes long unless told otherwise."""
    known = {
        "source": "b1/request/0a1b2c3d4e5f6071",
        "end": start + 100,
        "shard": -1,
        "reason": "bad_json",
        "expected": "a whole JSON object",
        "excerpt": f"line at {start}",
    }
    return "rejected", row_of(TABLES["rejected"], start=start, **(known | given))


def disagreement(group_id: str, kind: str, start: int, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """A line of server.log, at a position, that says otherwise than the requests."""
    of_session = {"told": "session_expired", "concluded": "left", "concluded_at_ms": NOW_MS - 2_000}
    of_kind = {
        "another_generation": {"told": "4", "concluded": "3"},
        "another_coordinator": {"told": "session_expired", "concluded": "b2"},
    }.get(kind, of_session)
    known = {
        "kind": kind,
        "concluded_certainty": "exact",
        "source": "b1/server/0a1b2c3d4e5f6071",
        "start": start,
        "end": start + 100,
    }
    row = row_of(TABLES["disagreements"], group_id=group_id, **(known | of_kind | given))
    return "disagreements", row


def surprise(group_id: str, start: int, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """An answer, at a position of the request log, that is not as the model predicts."""
    known = {
        "surprise_class": "own_mistake",
        "member_id": "a",
        "request": "Heartbeat",
        "predicted": "25 UNKNOWN_MEMBER_ID",
        "seen": "0 NONE",
        "tried": ["order"],
        "because": "nothing shows yet whose mistake it is",
        "kafka_version": "3.9.2",
        "source": "b1/request/0a1b2c3d4e5f6071",
        "start": start,
    }
    return "surprises", row_of(TABLES["surprises"], group_id=group_id, **(known | given))


def lag(group_id: str, partition: int, behind: int | None, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """Lag of a partition of the topic `orders`, in records, as a look of now saw it; it has waited for ten seconds."""
    at_ms = given.get("at_ms", NOW_MS)
    known: dict[str, Any] = {
        "topic": "orders",
        "partition": partition,
        "state": "known" if behind is not None else "no_end",
        "committed_offset": 100,
        "committed_at_ms": at_ms - 5_000,
        "start_offset": 0,
        "end_offset": None if behind is None else 100 + behind,
        "lag": behind,
        "window_from_ms": at_ms - 50_000,
        "window_commits": 10,
        "window_produced": None if behind is None else 50 + behind,
        "window_read": 50,
        "verdict": None if behind is None else "OK",
        "looked_at_ms": at_ms,
    }
    if behind:
        known |= {"behind_from_ms": at_ms - 12_000, "behind_at_ms": at_ms - 10_000, "behind_to_ms": at_ms - 8_000}
    return "lag", row_of(TABLES["lag"], group_id=group_id, **(known | given))


def looked(at_ms: int = NOW_MS, lane: int = 0, **given: Any) -> tuple[str, tuple[Any, ...]]:
    """The ends of partitions were looked at."""
    about = {"group_id": "", "shard": -1, "topic": "", "partition": lane, "state": "looked", "at_ms": at_ms}
    row = row_of(TABLES["lag"], **(about | given))
    return "lag", row


class Tables:
    """A table directory under construction."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, *names: str) -> None:
        """Make tables without rows; all live ones unless named."""
        for name in names or LIVE_TABLES:
            DeltaTable.create(self.root / name, ARROW_SCHEMAS[name])

    def batch(self, batch_id: int, *rows: tuple[str, tuple[Any, ...]], only: tuple[str, ...] | None = None) -> None:
        """Write one batch, one commit per table, `progress` last; `only` leaves it half done, as a crash would."""
        by_table: dict[str, list[tuple[Any, ...]]] = {}
        for name, row in rows:
            by_table.setdefault(name, []).append(row)
        for name in sorted(by_table, key=lambda name: name == "progress"):
            if only is None or name in only:
                write_deltalake(self.root / name, to_arrow(TABLES[name], by_table[name], batch_id), mode="append")

    def compact(self, name: str) -> None:
        """Rewrite all files of a table into one and take the old ones away at once."""
        table = DeltaTable(self.root / name)
        table.optimize.compact()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def clean(self, name: str, only: int | None = None) -> None:
        """Checkpoint the log of a table and take every entry before the newest away, or one of them."""
        table = DeltaTable(self.root / name)
        table.create_checkpoint()
        for entry in (self.root / name / "_delta_log").glob("*.json"):
            if entry.stem.isdigit() and int(entry.stem) < table.version() and only in (None, int(entry.stem)):
                entry.unlink()
