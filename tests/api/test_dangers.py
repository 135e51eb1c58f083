"""Who is next across all groups, and rebalances under way: order, what is left out, and what is not known."""

from __future__ import annotations

from typing import Any

from api.shapes import report_models
from tests.api.conftest import Api, Serve
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

CLUSTER = "/api/v1/clusters/demo"


def told(api: Api, what: str, **params: Any) -> Any:
    shape: Any = {"next-evictions": report_models.NextEvictions, "open-rebalances": report_models.OpenRebalances}[what]
    found = api.get(f"{CLUSTER}/{what}", **params)
    shape.model_validate(found, strict=True)
    return found


def test_deadlines_of_all_groups_stand_in_one_order(tables: Tables, serve: Serve, clock: Any) -> None:
    tables.create()
    tables.batch(
        0,
        *(member(group, group + "-1") for group in ("a", "b", "c", "d")),
        health("a", "a-1", session_deadline_at_ms=NOW_MS + 5_000, poll_deadline_at_ms=NOW_MS + 1_000),
        health("b", "b-1", session_deadline_at_ms=NOW_MS - 100, poll_deadline_at_ms=None, status="overdue"),
        health("c", "c-1", session_deadline_at_ms=NOW_MS - 9_000, status="unknown", certainty="unknown"),
        health("d", "d-1", session_deadline_at_ms=NOW_MS + 2_000, poll_deadline_at_ms=None),
        prediction("d", "d-1", "session", deadline_at_ms=NOW_MS + 2_000),
        prediction("d", "d-1", "rebalance", deadline_at_ms=NOW_MS + 1_500),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    found = told(api, "next-evictions")
    assert [(one["member_id"], one["kind"], one["remaining_ms"]) for one in found["next_evictions"]] == [
        ("b-1", "session", -100),
        ("a-1", "poll", 1_000),
        ("d-1", "rebalance", 1_500),
        ("d-1", "session", 2_000),
        ("a-1", "session", 5_000),
    ]
    assert [one["predicted"] for one in found["next_evictions"]] == [False, False, True, True, False]
    assert [one["certainty"] for one in found["next_evictions"][:2]] == ["exact", "inferred"]
    assert found["unknown_members"] == 1
    assert len(told(api, "next-evictions", limit=2)["next_evictions"]) == 2
    # A member that is heard again loses its place, and one that ends is gone.
    tables.batch(
        1,
        health("a", "a-1", at_ms=NOW_MS + 1, session_deadline_at_ms=NOW_MS + 9_000),
        member("b", "b-1", ended_at_ms=NOW_MS - 100, known_at_ms=NOW_MS + 1, end_cause="session_expired"),
        prediction("d", "d-1", "rebalance", outcome="averted", known_at_ms=NOW_MS + 1),
        progress(NOW_MS + 1),
    )
    api.wait_for_batch(1)
    after = told(api, "next-evictions")["next_evictions"]
    assert [(one["member_id"], one["kind"]) for one in after] == [
        ("d-1", "session"),
        ("a-1", "session"),
        ("a-1", "poll"),
    ]
    clock.now_ms = NOW_MS + 100_000
    stale = told(api, "next-evictions")["next_evictions"]
    assert {one["remaining_ms"] for one in stale} == {None}


def test_a_rebalance_under_way_says_whom_it_waits_for_and_until_when(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0,
        member("orders", "a", rebalance_timeout_ms=60_000),
        member("orders", "b", rebalance_timeout_ms=30_000),
        member("audit", "c"),
        transition("calm", 1, "Stable"),
        rebalance("calm", NOW_MS - 9_000),
        transition("orders", 1, "PreparingRebalance", at_ms=NOW_MS - 2_000, certainty="provisional"),
        transition("audit", 1, "CompletingRebalance", at_ms=NOW_MS - 5_000),
        rebalance(
            "audit",
            NOW_MS - 6_000,
            completed_at_ms=None,
            trigger="member_left",
            stragglers=[
                {"member_id": "c", "client_id": "app", "waited_ms": 900, "joined": False},
                {"member_id": "d", "client_id": "app", "waited_ms": 800, "joined": True},
            ],
        ),
        prediction("orders", "b", "rebalance"),
        prediction("orders", "a", "session"),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    found = told(api, "open-rebalances")
    audit, orders = found["open_rebalances"]
    assert (audit["group_id"], audit["since_at_ms"], audit["trigger"]) == ("audit", NOW_MS - 6_000, "member_left")
    assert [one["member_id"] for one in audit["waits_for"]] == ["c"]
    assert audit["ends_at_latest_at_ms"] is None, "the rebalance timeout of c is not known"
    assert (orders["state"], orders["trigger"], orders["lasting_ms"]) == ("PreparingRebalance", None, 2_000)
    assert [(one["member_id"], one["shown_by"]) for one in orders["waits_for"]] == [
        ("b", "heartbeats without rejoining")
    ]
    assert orders["ends_at_latest_at_ms"] == NOW_MS - 2_000 + 60_000
    assert orders["waits_for"][0]["until_at_ms"] == NOW_MS + 3_000
    assert told(api, "open-rebalances", limit=1)["left_off"] == 1


def test_a_rebalance_that_only_members_were_told_of_lasts_since_the_first_of_them_was(
    tables: Tables, serve: Serve
) -> None:
    """Not since the row of health that shows it first, which comes seconds later."""
    waits = {"group_state": "PreparingRebalance", "awaited_since_at_ms": NOW_MS - 9_000}
    tables.create()
    tables.batch(
        0,
        member("orders", "a"),
        member("orders", "b"),
        transition("orders", 1, "Stable", at_ms=NOW_MS - 60_000, known_at_ms=NOW_MS - 60_000),
        health("orders", "b", **waits),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    (orders,) = told(api, "open-rebalances")["open_rebalances"]
    assert (orders["state"], orders["since_at_ms"], orders["lasting_ms"]) == (
        "PreparingRebalance",
        NOW_MS - 9_000,
        9_000,
    )


def test_an_id_that_nobody_uses_is_waited_for_as_well(tables: Tables, serve: Serve) -> None:
    """And a member that was told and does not come, from its health row, before any prediction is due."""
    since, until = NOW_MS - 9_000, NOW_MS + 26_000
    unused = [{"member_id": "app-77", "client_id": "app", "since_at_ms": since, "until_at_ms": until}]
    waits = {"group_state": "PreparingRebalance", "awaited_since_at_ms": NOW_MS - 2_000}
    tables.create()
    tables.batch(
        0,
        member("orders", "a"),
        member("orders", "b"),
        transition("orders", 1, "PreparingRebalance", at_ms=NOW_MS - 2_000),
        health("orders", "a", pending=unused, pending_members=1, group_state="PreparingRebalance"),
        health("orders", "b", pending=unused, pending_members=1, awaited_until_at_ms=NOW_MS + 58_000, **waits),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    (found,) = told(api, "open-rebalances")["open_rebalances"]
    assert [(one["member_id"], one["pending"], one["until_at_ms"]) for one in found["waits_for"]] == [
        ("app-77", True, until),
        ("b", False, NOW_MS + 58_000),
    ]
    group = api.get(f"{CLUSTER}/groups/orders")["group"]
    assert group["pending"] == unused
