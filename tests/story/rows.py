"""Rows for pure tests: the columns that matter are given, the rest is legal; instants are ms after `T`."""

from __future__ import annotations

from typing import Any

from kardia.story import Material
from kardia.tables import TABLES
from tests.api.written import row_of

T = 1_760_000_000_000


def row(table: str, **given: Any) -> dict[str, Any]:
    """A row as a mapping by column name."""
    return dict(zip(TABLES[table].names, row_of(TABLES[table], group_id="orders", **given), strict=True))


def life(
    member_id: str, joined: int, ended: int | None = None, cause: str | None = None, **given: Any
) -> dict[str, Any]:
    """A membership; its client.id is its member id."""
    known = {
        "client_id": member_id,
        "client_host": "10.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "joined_at_ms": T + joined,
        "ended_at_ms": None if ended is None else T + ended,
        "end_cause": cause,
        "protocol": "classic",
    }
    return row("members", member_id=member_id, **(known | given))


def transition(seq: int, at: int, to_state: str, member_id: str | None = None, **given: Any) -> dict[str, Any]:
    """A change of the group, or of a member's membership."""
    known = {
        "entity": "group" if member_id is None else "member",
        "from_state": "Stable",
        "cause": "member_joined",
        "evidence": f"b1/request/abc@{seq * 100}",
        "generation_id": 3,
    }
    return row("transitions", seq=seq, at_ms=T + at, to_state=to_state, member_id=member_id, **(known | given))


def rebalance(started: int, completed: int | None, trigger: str, member_id: str, **given: Any) -> dict[str, Any]:
    """A rebalance of two members."""
    over = None if completed is None else T + completed
    known: dict[str, Any] = {
        "started_at_ms": T + started,
        "joined_at_ms": None if over is None else over - 10,
        "completed_at_ms": over,
        "known_at_ms": over or T + started,
        "trigger": trigger,
        "trigger_member_id": member_id,
        "trigger_client_id": member_id,
        "generation_before": 3,
        "generation_after": 4,
        "members_before": 2,
        "members_after": 2,
        "stragglers": [],
        "protocol_name": "range",
    }
    return row("rebalances", at_ms=T + started, **(known | given))


def wait(member_id: str, waited_ms: int, joined: bool = True, *, pending: bool = False) -> dict[str, Any]:
    """An entry of `stragglers`."""
    known = {"member_id": member_id, "client_id": member_id, "waited_ms": waited_ms}
    return {**known, "joined": joined, "pending": pending}


def prediction(member_id: str, kind: str, at: int, deadline: int, outcome: str, over: int | None) -> dict[str, Any]:
    """A prediction with its outcome."""
    true = outcome == "came_true" and over is not None
    return row(
        "predictions",
        member_id=member_id,
        client_id=member_id,
        kind=kind,
        predicted_at_ms=T + at,
        deadline_at_ms=T + deadline,
        outcome=outcome,
        outcome_at_ms=None if over is None else T + over,
        lead_ms=over - at if true and over is not None else None,
        error_ms=over - deadline if true and over is not None else None,
    )


def health(member_id: str, at: int, **given: Any) -> dict[str, Any]:
    """A health row: heard 1 s before of 10 s, polled 2 s before of 60 s."""
    known = {
        "client_id": member_id,
        "group_state": "Stable",
        "session_timeout_ms": 10_000,
        "last_heard_at_ms": T + at - 1_000,
        "session_deadline_at_ms": T + at + 9_000,
        "poll_interval_ms": 60_000,
        "last_poll_at_ms": T + at - 2_000,
        "poll_deadline_at_ms": T + at + 58_000,
        "poll_error_bound_ms": 500,
        "poll_evidence": "fetch",
        "status": "ok",
        "reasons": [],
    }
    return row("health", member_id=member_id, at_ms=T + at, **(known | given))


def material(**given: Any) -> Material:
    """Material of a group whose tables reach to an hour after T and are archived."""
    known: dict[str, Any] = {"complete_to_ms": T + 3_600_000}
    rows = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return Material("demo", "orders", **(known | rows))
