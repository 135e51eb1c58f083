"""What dashboards show of the present: whom a group waits for, what is left, and that a present nobody knows is not
shown as it was."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import Api, Clock, Serve
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

CLUSTER = "/api/v1/boards/clusters/demo"
GROUP = f"{CLUSTER}/groups/orders"
PREPARING = {"group_state": "PreparingRebalance", "certainty": "provisional"}


def waiting(tables: Tables) -> None:
    """A waits in its JoinGroup, B goes on with its heartbeats and does not come."""
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 60_000),
        rebalance("orders", NOW_MS - 61_000),
        *(member("orders", one, client_id=f"client-{one}") for one in "ab"),
        health("orders", "a", client_id="client-a", status="overdue", session_deadline_at_ms=NOW_MS - 500, **PREPARING),
        health(
            "orders",
            "b",
            client_id="client-b",
            awaited_since_at_ms=NOW_MS - 12_000,
            awaited_until_at_ms=NOW_MS + 48_000,
            **PREPARING,
        ),
        progress(NOW_MS),
    )


def served(serve: Serve) -> Api:
    api = serve()
    api.wait_for_batch(0)
    return api


def test_a_board_says_whom_the_group_waits_for_and_who_waits(tables: Tables, serve: Serve) -> None:
    waiting(tables)
    found = served(serve).get(GROUP)
    (awaited,) = found["waits_for"]
    assert (awaited["client_id"], awaited["left_ms"]) == ("client-b", 48_000)
    assert {one["client_id"]: one["status"] for one in found["members"]} == {
        "client-a": "unseen",
        "client-b": "awaited",
    }
    assert [one["session_left"] for one in found["members"]] == ["≥ 9.0 s", "not known"]
    group = found["group"]
    assert (group["state"], group["status"], group["in_danger"]) == ("PreparingRebalance", "awaited", 1)


def test_nothing_is_shown_of_a_present_that_nobody_knows(tables: Tables, serve: Serve, clock: Clock) -> None:
    waiting(tables)
    api = served(serve)
    clock.now_ms += 60_000
    found, all_groups = api.get(GROUP), api.get(CLUSTER)
    assert found["group"]["state"] == "Unknown"
    assert found["waits_for"] == all_groups["rebalances"] == []
    for one in (*found["members"], *all_groups["next"], *all_groups["groups"], api.get(f"{GROUP}/members/a")["member"]):
        assert one["status"] == "unknown"
        counts = [name for name in one if name.endswith("left_ms") or name in ("in_danger", "overdue", "imminent")]
        assert counts
        assert {one[name] for name in counts} == {None}


def test_a_deadline_that_the_feed_has_not_reached_is_not_over(tables: Tables, serve: Serve, clock: Clock) -> None:
    """The tables reach to three seconds ago, the deadline was 0.6 s ago: a heartbeat in between would not be there."""
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        *(member("orders", one) for one in "abc"),
        health("orders", "a", at_ms=NOW_MS - 3_000, session_deadline_at_ms=NOW_MS - 603),
        health("orders", "b", at_ms=NOW_MS - 3_000, session_deadline_at_ms=NOW_MS - 3_100, status="overdue"),
        health("orders", "c", at_ms=NOW_MS - 3_000, session_deadline_at_ms=NOW_MS + 2_000),
        progress(NOW_MS - 3_000),
    )
    found = {one["member_id"]: one for one in served(serve).get(GROUP)["members"]}
    assert {name: one["session_left_ms"] for name, one in found.items()} == {"a": None, "b": -3_100, "c": 2_000}
    assert {name: one["session_left"] for name, one in found.items()} == {
        "a": "not known",
        "b": "due 3.1 s ago",
        "c": "≥ 2.0 s",
    }


def test_of_a_member_that_is_gone_the_end_is_known(tables: Tables, serve: Serve, clock: Clock) -> None:
    tables.create()
    gone = member("orders", "a", ended_at_ms=NOW_MS - 5_000, end_cause="session_expired")
    tables.batch(0, transition("orders", 1, "Empty"), gone, progress(NOW_MS))
    api = served(serve)
    for _ in ("fresh", "stale"):
        found: dict[str, Any] = api.get(f"{GROUP}/members/a")["member"]
        assert (found["status"], found["session_left"], found["end_cause"]) == ("ended", "ended", "session_expired")
        clock.now_ms += 60_000


def test_what_is_predicted_is_a_word(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a"),
        health("orders", "a"),
        prediction("orders", "a", "session"),
        progress(NOW_MS),
    )
    found = served(serve).get(CLUSTER)["next"]
    assert {one["kind"]: one["predicted"] for one in found} == {"session": "yes", "poll": "no"}


def test_a_state_that_a_silent_broker_told_is_not_known(tables: Tables, serve: Serve) -> None:
    """The feed of the cluster is fresh; the broker of this group has logged nothing since before a session was over. A
    broker that lives would have evicted."""
    tables.create()
    over_ms = NOW_MS - 2_500
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 30_000),
        *(member("orders", one) for one in "ab"),
        health("orders", "a", status="overdue", certainty="provisional", session_deadline_at_ms=over_ms),
        health("orders", "b", status="imminent", certainty="provisional", session_deadline_at_ms=NOW_MS + 300),
        progress(NOW_MS),
    )
    api = served(serve)
    told = ("state", "state_since_at_ms", "state_certainty", "status", "in_danger")
    group = api.get(GROUP)["group"]
    assert [group[name] for name in told] == ["Unknown", over_ms, "unknown", "overdue", 2]
    lanes = api.get("/api/v1/clusters/demo/groups/orders/lanes")
    assert [(one["at_ms"], one["state"]) for one in lanes["states"]][-2:] == [
        (NOW_MS - 30_000, "Stable"),
        (over_ms, "Unknown"),
    ]
    assert "unknown" not in {one["status"] for one in lanes["samples"]}
    later_ms = NOW_MS + 1_000
    tables.batch(
        1,
        *(health("orders", one, at_ms=later_ms, last_heard_at_ms=NOW_MS + 500) for one in "ab"),
        progress(later_ms),
    )
    api.wait_for_batch(1)
    group = api.get(GROUP)["group"]
    assert [group[name] for name in told[:3]] == ["Stable", NOW_MS - 30_000, "exact"]
