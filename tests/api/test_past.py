"""Time travel: what was so at an instant, what was known then, and what differs between two instants.

Goal: the past is told from rows alone, never from what came later. Method: one small story with a correction, asked at
each of its turns; and recorded stories, where the newest instant must equal the current view.
"""

from __future__ import annotations

from typing import Any

import pytest

from api.shapes import models, report_models
from tests.api.conftest import Api, Clock, Serve
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

GROUP = "/api/v1/clusters/demo/groups/orders"
BEGAN_MS = NOW_MS - 60_000


def story(tables: Tables) -> None:
    """`a` joins and stays; `b` falls silent, is said to have left at -20 s, and at -10 s known to be evicted at -21 s;
    `c` comes and goes in between; a rebalance from -21 s to -15 s."""
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=BEGAN_MS),
        member("orders", "a", known_at_ms=BEGAN_MS),
        member("orders", "b", known_at_ms=BEGAN_MS),
        health("orders", "a", at_ms=NOW_MS - 30_000),
        health("orders", "b", at_ms=NOW_MS - 30_000, session_deadline_at_ms=NOW_MS - 21_000, status="imminent"),
        prediction("orders", "b", "session", predicted_at_ms=NOW_MS - 26_000, deadline_at_ms=NOW_MS - 21_000),
        progress(NOW_MS - 22_000),
    )
    tables.batch(
        1,
        transition("orders", 2, "PreparingRebalance", at_ms=NOW_MS - 21_000, from_state="Stable", cause="member_left"),
        member("orders", "b", ended_at_ms=NOW_MS - 20_000, end_cause="left", certainty="provisional"),
        member("orders", "c", joined_at_ms=NOW_MS - 19_000, known_at_ms=NOW_MS - 19_000),
        progress(NOW_MS - 18_000),
    )
    tables.batch(
        2,
        transition("orders", 3, "Stable", at_ms=NOW_MS - 15_000, from_state="CompletingRebalance", generation_id=4),
        member("orders", "b", ended_at_ms=NOW_MS - 21_000, end_cause="session_expired", known_at_ms=NOW_MS - 10_000),
        member("orders", "c", joined_at_ms=NOW_MS - 19_000, ended_at_ms=NOW_MS - 12_000, end_cause="left"),
        rebalance(
            "orders",
            NOW_MS - 21_000,
            trigger="session_expired",
            trigger_member_id="b",
            joined_at_ms=NOW_MS - 16_000,
            completed_at_ms=NOW_MS - 15_000,
            known_at_ms=NOW_MS - 15_000,
            stragglers=[
                {"member_id": "a", "client_id": "app", "waited_ms": 5_000, "joined": True},
                {"member_id": "c", "client_id": "app", "waited_ms": 1_000, "joined": True},
            ],
        ),
        prediction(
            "orders",
            "b",
            "session",
            predicted_at_ms=NOW_MS - 26_000,
            deadline_at_ms=NOW_MS - 21_000,
            outcome="came_true",
            outcome_at_ms=NOW_MS - 21_000,
            known_at_ms=NOW_MS - 10_000,
        ),
        health("orders", "a", at_ms=NOW_MS - 1_000, session_timeout_ms=10_000),
        progress(NOW_MS - 400),
    )


@pytest.fixture
def api(tables: Tables, serve: Serve) -> Api:
    story(tables)
    found = serve()
    found.wait_for_batch(2)
    return found


def at(api: Api, before_now_ms: int, **params: Any) -> Any:
    found = api.get(GROUP, at=NOW_MS - before_now_ms, **params)
    models.GroupAnswer.model_validate(found, strict=True)
    return found["group"]


def members_at(api: Api, before_now_ms: int, **params: Any) -> dict[str, Any]:
    found = api.get(f"{GROUP}/members", at=NOW_MS - before_now_ms, **params)
    models.Members.model_validate(found, strict=True)
    return {row["member_id"]: row for row in found["members"]}


def test_each_turn_of_the_story_is_told_as_it_was(api: Api) -> None:
    assert (at(api, 60_001)["state"], at(api, 60_001)["members"]["total"]) == ("Unknown", 0)
    assert (at(api, 60_000)["state"], at(api, 60_000)["members"]["total"]) == ("Stable", 2)
    assert at(api, 21_001)["state"] == "Stable"
    assert at(api, 21_000)["state"] == "PreparingRebalance"
    assert at(api, 15_000)["state"] == "Stable"
    assert set(members_at(api, 21_001)) == {"a", "b"}
    assert set(members_at(api, 21_000)) == {"a"}
    assert set(members_at(api, 19_000)) == {"a", "c"}
    assert set(members_at(api, 12_000)) == {"a"}


def test_a_member_that_ended_later_is_shown_as_not_yet_ended(api: Api) -> None:
    silent = members_at(api, 24_000)["b"]
    assert (silent["status"], silent["ended_at_ms"], silent["end_cause"]) == ("imminent", None, None)
    assert silent["session"]["remaining_ms"] == 3_000
    assert [(one["kind"], one["outcome"]) for one in silent["predictions"]] == [("session", "open")]
    assert members_at(api, 27_000)["b"]["predictions"] == []


def test_a_rebalance_is_running_until_it_was_over_and_waits_for_whom_it_waited_for(api: Api) -> None:
    running = at(api, 18_000)["last_rebalance"]
    assert (running["running"], running["duration_ms"], running["generation_after"]) == (True, 3_000, None)
    assert [(one["member_id"], one["waited_ms"], one["joined"]) for one in running["stragglers"]] == [
        ("a", 3_000, False),
        ("c", 1_000, True),
    ]
    over = at(api, 15_000)["last_rebalance"]
    assert (over["running"], over["duration_ms"], over["generation_after"]) == (False, 6_000, 3)
    syncing = at(api, 15_500)["last_rebalance"]
    assert (syncing["running"], syncing["generation_after"]) == (True, 3)


def test_what_was_known_then_is_not_what_is_known_now(api: Api) -> None:
    """At -20.5 s `b` was evicted already; Kardia thought until -10 s that it left at -20 s."""
    assert set(members_at(api, 20_500)) == {"a"}
    assert set(members_at(api, 20_500, known_at=NOW_MS - 18_000)) == {"a", "b"}
    assert set(members_at(api, 20_000, known_at=NOW_MS - 18_000)) == {"a"}
    assert at(api, 18_000, known_at=NOW_MS - 16_000)["last_rebalance"] is None
    assert set(members_at(api, 20_500, known_at=NOW_MS - 22_000)) == {"a", "b"}
    assert at(api, 21_000, known_at=NOW_MS - 21_001)["state"] == "Stable"


def test_nothing_counts_down_beyond_what_was_known(api: Api) -> None:
    told = members_at(api, 1_000, known_at=NOW_MS - 22_000)["b"]
    assert told["session"]["deadline_at_ms"] == NOW_MS - 21_000
    assert told["session"]["remaining_ms"] is None


def test_known_at_alone_asks_about_that_instant(api: Api) -> None:
    found = api.get(GROUP, known_at=NOW_MS - 18_000)
    assert (found["at_ms"], found["known_at_ms"]) == (NOW_MS - 18_000, NOW_MS - 18_000)
    assert found["group"]["state"] == "PreparingRebalance"


def test_the_present_is_the_same_with_and_without_its_instant(api: Api, clock: Clock) -> None:
    clock.now_ms = NOW_MS - 400
    now, then = api.get(GROUP)["group"], api.get(GROUP, at=NOW_MS - 400)["group"]
    assert now == then
    assert api.get(f"{GROUP}/members")["members"] == api.get(f"{GROUP}/members", at=NOW_MS - 400)["members"]


FAR_MS = NOW_MS + 10 * 366 * 86_400_000


@pytest.mark.parametrize("after_ms", [NOW_MS - 399, NOW_MS, FAR_MS])
@pytest.mark.parametrize("what", ["", "/members", "/health"])
@pytest.mark.parametrize("name", ["at", "known_at"])
def test_nobody_is_told_what_is_so_at_an_instant_that_is_not_read_yet(
    api: Api, what: str, name: str, after_ms: int
) -> None:
    """A group that was Stable when all was last known was said to be Stable ten years from now."""
    reply = api.client.get(f"{GROUP}{what}", params={name: after_ms})
    assert reply.status_code == 422
    said = reply.json()
    assert (said["type"], said["parameter"]) == ("urn:kardia:problem:beyond_complete", name)
    assert (said["complete_as_of_ms"], said["complete_as_of"]) == (NOW_MS - 400, "2025-10-09T08:53:19.600Z")
    assert "Nothing is known beyond 2025-10-09T08:53:19.600Z" in said["detail"]
    api.get(f"{GROUP}{what}", **{name: NOW_MS - 400})


def test_a_difference_to_an_instant_that_is_not_read_yet_is_refused(api: Api) -> None:
    for times in (
        {"to": NOW_MS},
        {"from": NOW_MS - 399, "to": NOW_MS + 60_000},
        {"to": NOW_MS - 500, "known_at": NOW_MS},
    ):
        assert api.problem(f"{GROUP}/diff", **times) == (422, "beyond_complete")


def test_a_stretch_may_end_later_and_its_report_ends_where_all_is_known(api: Api) -> None:
    told = api.get(f"{GROUP}/incident", **{"from": NOW_MS - 30_000, "to": NOW_MS + 60_000})["timeline"]
    (state,) = [one for one in told if one["kind"] == "state"]
    assert state["at_ms"] == NOW_MS - 400
    assert told[-1]["text"].startswith("Nothing is known beyond")


def test_members_of_the_past_are_paged_as_of_the_first_page(tables: Tables, api: Api) -> None:
    first = api.get(f"{GROUP}/members", at=NOW_MS - 19_000, limit=1)
    tables.batch(3, member("orders", "d", joined_at_ms=NOW_MS - 30_000), progress(NOW_MS - 300))
    api.wait_for_batch(3)
    rest = api.get(f"{GROUP}/members", at=NOW_MS - 19_000, limit=9, cursor=first["next_cursor"])
    assert {row["member_id"] for row in first["members"] + rest["members"]} == {"a", "c"}
    assert rest["next_cursor"] is None
    assert api.problem(f"{GROUP}/members", cursor=first["next_cursor"]) == (400, "bad_cursor")


def diff(api: Api, **params: Any) -> Any:
    found = api.get(f"{GROUP}/diff", **params)
    report_models.Difference.model_validate(found, strict=True)
    return found


def test_a_difference_tells_who_came_who_went_and_who_only_passed(api: Api) -> None:
    found = diff(api, **{"from": NOW_MS - 25_000, "to": NOW_MS - 5_000})
    assert found["came"] == []
    assert [(row["member_id"], row["end_cause"]) for row in found["went"]] == [("b", "session_expired")]
    assert [row["member_id"] for row in found["came_and_went"]] == ["c"]
    assert [row["started_at_ms"] for row in found["rebalances"]] == [NOW_MS - 21_000]
    assert {one["name"]: (one["before"], one["after"]) for one in found["group"]["changed"]} == {
        "generation_id": (3, 4),
        "status": ("imminent", "ok"),
    }
    assert (found["group"]["members_before"], found["group"]["members_after"]) == (2, 1)


def test_a_difference_at_the_edges(api: Api) -> None:
    came = diff(api, **{"from": NOW_MS - 19_001, "to": NOW_MS - 19_000})
    assert [row["member_id"] for row in came["came"]] == ["c"]
    went = diff(api, **{"from": NOW_MS - 12_001, "to": NOW_MS - 12_000})
    assert [row["member_id"] for row in went["went"]] == ["c"]
    # `c` never had a health row, so the group was as unknown as it was.
    assert went["group"]["changed"] == [{"name": "status", "before": "unknown", "after": "ok"}]
    same = diff(api, **{"from": NOW_MS - 12_000, "to": NOW_MS - 12_000})
    assert not any(same[name] for name in ("came", "went", "came_and_went", "changed", "rebalances"))
    hour = diff(api)
    assert (hour["to_ms"], hour["from_ms"]) == (NOW_MS - 400, NOW_MS - 400 - 3_600_000)
    assert api.problem(f"{GROUP}/diff", **{"from": NOW_MS, "to": NOW_MS - 1}) == (422, "parameter_refused")


def test_a_difference_says_how_much_it_left_off(api: Api) -> None:
    found = diff(api, **{"from": NOW_MS - 61_000, "to": NOW_MS - 19_000, "limit": 1})
    assert (len(found["came"]), found["left_off"]["came"]) == (1, 1)
