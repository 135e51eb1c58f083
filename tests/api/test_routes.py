"""Every route over one small story: what it answers, in the shape it promises, and how fresh it says it is."""

from __future__ import annotations

from typing import Any

import pytest

from api.shapes import board_models, lag_models, models, report_models
from kardia.tables import DISAGREEMENTS
from tests.api.conftest import Api, Serve
from tests.api.written import (
    NOW_MS,
    Tables,
    disagreement,
    health,
    lag,
    looked,
    member,
    prediction,
    progress,
    rebalance,
    rejected,
    transition,
)

GROUP = "/api/v1/clusters/demo/groups/orders"


def story(tables: Tables) -> None:
    """Group `orders`: two members present, one about to be evicted, one evicted before, one left; one rebalance."""
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 50_000),
        member("orders", "gone", ended_at_ms=NOW_MS - 30_000, end_cause="session_expired", end_reason="silent"),
        member("orders", "left", ended_at_ms=NOW_MS - 20_000, end_cause="left"),
        member("orders", "well"),
        member("orders", "weak"),
        health("orders", "well", at_ms=NOW_MS - 2_000),
        rebalance("orders", NOW_MS - 30_000, trigger="session_expired", trigger_member_id="gone"),
        progress(NOW_MS - 5_000),
    )
    tables.batch(
        1,
        transition("orders", 2, "PreparingRebalance", at_ms=NOW_MS - 1_500, from_state="Stable", cause="member_joined"),
        transition("orders", 3, "joined", at_ms=NOW_MS - 1_400, entity="member", member_id="weak", from_state="none"),
        rebalance(
            "orders",
            NOW_MS - 1_500,
            generation_before=3,
            completed_at_ms=None,
            joined_at_ms=None,
            generation_after=None,
        ),
        health(
            "orders",
            "weak",
            group_state="PreparingRebalance",
            at_ms=NOW_MS - 500,
            last_heard_at_ms=NOW_MS - 7_500,
            session_deadline_at_ms=NOW_MS + 2_500,
            status="imminent",
            reasons=["silent for 7.0 s of 10.0 s"],
        ),
        prediction("orders", "weak", "session", deadline_at_ms=NOW_MS + 2_500),
        rejected(4_096),
        *(disagreement("orders", kind, place * 100, member_id="gone") for place, kind in enumerate(DISAGREEMENTS)),
        lag("orders", 0, 7),
        looked(NOW_MS - 400),
        progress(NOW_MS - 400),
    )


@pytest.fixture
def api(tables: Tables, serve: Serve) -> Api:
    story(tables)
    found = serve()
    found.wait_for_batch(1)
    return found


SHAPES: dict[str, Any] = {
    "/api/v1/clusters": models.Clusters,
    "/api/v1/clusters/demo": models.ClusterAnswer,
    "/api/v1/clusters/demo/rejected": models.Rejected,
    "/api/v1/clusters/demo/disagreements": models.Disagreements,
    f"{GROUP}/disagreements": models.Disagreements,
    "/api/v1/clusters/demo/surprises": models.Surprises,
    f"{GROUP}/surprises": models.Surprises,
    "/api/v1/clusters/demo/groups": models.Groups,
    GROUP: models.GroupAnswer,
    f"{GROUP}/members": models.Members,
    f"{GROUP}/members/weak": models.MemberAnswer,
    f"{GROUP}/members/gone": models.MemberAnswer,
    f"{GROUP}/rebalances": models.Rebalances,
    f"{GROUP}/history": models.History,
    f"{GROUP}/evictions": models.Evictions,
    f"{GROUP}/predictions": models.Predictions,
    f"{GROUP}/health": models.HealthAt,
    f"{GROUP}/pulse": models.Pulse,
    f"{GROUP}/lanes": report_models.Lanes,
    f"{GROUP}/points": report_models.Points,
    "/api/v1/boards/clusters/demo": board_models.ClusterBoard,
    "/api/v1/boards/clusters/demo/groups/orders": board_models.GroupBoard,
    "/api/v1/boards/clusters/demo/groups/orders/members/weak": board_models.MemberBoard,
    "/api/v1/boards/clusters/demo/groups/orders/members/gone": board_models.MemberBoard,
    f"{GROUP}/incident": report_models.Incident,
    f"{GROUP}/why": report_models.Why,
    "/api/v1/clusters/demo/incidents": report_models.Incidents,
    f"{GROUP}/diff": report_models.Difference,
    "/api/v1/clusters/demo/next-evictions": report_models.NextEvictions,
    "/api/v1/clusters/demo/open-rebalances": report_models.OpenRebalances,
    "/api/v1/clusters/demo/lag": lag_models.LagOfCluster,
    f"{GROUP}/lag": lag_models.LagOfGroup,
    f"{GROUP}/lag/history": lag_models.LagHistory,
    "/readyz": models.Readiness,
}


def test_every_answer_has_the_shape_it_promises_and_says_how_fresh_it_is(api: Api) -> None:
    for path, shape in SHAPES.items():
        found = shape.model_validate(api.get(path), strict=True)
        assert found.freshness.complete_as_of_ms == NOW_MS - 400, path
        assert found.freshness.complete_as_of == "2025-10-09T08:53:19.600Z", path
        assert (found.freshness.age_ms, found.freshness.stale, found.freshness.batch_id) == (400, False, 1), path
    models.Version.model_validate(api.get("/version"))


def test_shapes_cover_every_route_with_data(api: Api) -> None:
    paths = set(api.get("/openapi.json")["paths"])
    covered = {
        path.replace("/demo", "/{cluster}")
        .replace("/orders", "/{group}")
        .replace("/weak", "/{member}")
        .replace("/gone", "/{member}")
        for path in SHAPES
    }
    assert {path for path in paths - covered if not path.startswith("/v3/")} == {
        "/livez",
        "/healthz",
        "/version",
        "/metrics",
    }


def test_series_can_be_asked_for_by_name(api: Api) -> None:
    text = api.client.get("/metrics", params={"name[]": ["kardia_build_info", "kardia_batch_id"]}).text
    assert {line.split("{")[0].split()[0] for line in text.splitlines() if line[:1] != "#"} == {
        "kardia_build_info",
        "kardia_batch_id",
    }


def test_a_group_shows_state_statuses_headroom_and_what_comes_next(api: Api) -> None:
    group = api.get(GROUP)["group"]
    assert (group["state"], group["state_since_at_ms"], group["status"]) == (
        "PreparingRebalance",
        NOW_MS - 1_500,
        "imminent",
    )
    counts = {"total": 2, "ok": 1, "late": 0, "imminent": 1, "overdue": 0, "unknown": 0, "awaited": 0, "unseen": 0}
    assert group["members"] == counts
    assert group["protocols"] == ["classic"]
    assert group["session_headroom_min_ratio"] == 0.3
    assert group["next_session_deadline"]["member_id"] == "weak"
    assert group["next_session_deadline"]["remaining_ms"] == 2_500
    assert group["last_rebalance"]["running"]
    assert group["last_rebalance"]["duration_ms"] == 1_500


def test_a_member_shows_both_countdowns_and_what_they_rest_on(api: Api) -> None:
    found = api.get(f"{GROUP}/members/weak")["member"]
    assert found["status"] == "imminent"
    assert found["reasons"] == ["silent for 7.0 s of 10.0 s"]
    assert found["session"]["remaining_ms"] == 2_500
    assert found["session"]["timeout_ms"] == 10_000
    assert found["poll"]["evidence"] == "fetch"
    assert found["poll"]["error_bound_ms"] == 500
    assert [(p["kind"], p["remaining_ms"]) for p in found["predictions"]] == [("session", 2_500)]


def test_countdowns_stop_when_the_feed_is_stale(api: Api, clock: Any) -> None:
    clock.now_ms = NOW_MS + 10_000
    found = api.get(f"{GROUP}/members/weak")
    assert found["freshness"]["stale"]
    assert found["member"]["session"]["remaining_ms"] is None
    assert found["member"]["session"]["deadline_at_ms"] == NOW_MS + 2_500
    clock.now_ms = NOW_MS + 9_600  # exactly the bound: 10,000 ms old
    assert api.get(f"{GROUP}/members/weak")["member"]["session"]["remaining_ms"] == -7_100


def test_a_member_that_is_gone_is_found_with_its_end(api: Api) -> None:
    found = api.get(f"{GROUP}/members/gone")["member"]
    assert (found["status"], found["end_cause"], found["session"]) == ("ended", "session_expired", None)


def test_evictions_are_what_was_taken_away_and_not_who_left(api: Api) -> None:
    assert [row["member_id"] for row in api.get(f"{GROUP}/evictions")["evictions"]] == ["gone"]
    assert [row["member_id"] for row in api.get(f"{GROUP}/evictions", cause="left")["evictions"]] == ["left"]
    both = api.get(f"{GROUP}/evictions", cause=["left", "session_expired"])["evictions"]
    assert [row["member_id"] for row in both] == ["left", "gone"]
    assert api.get(f"{GROUP}/evictions", **{"from": NOW_MS - 29_999})["evictions"] == []
    assert len(api.get(f"{GROUP}/evictions", **{"from": NOW_MS - 30_000})["evictions"]) == 1
    assert api.get(f"{GROUP}/evictions", to=NOW_MS - 30_000)["evictions"] == []


def test_history_takes_instants_in_both_forms(api: Api) -> None:
    seqs = [row["seq"] for row in api.get(f"{GROUP}/history")["transitions"]]
    assert seqs == [3, 2, 1]
    for given in (NOW_MS - 1_500, "2025-10-09T08:53:18.5Z", "2025-10-09T10:53:18.500+02:00"):
        found = api.get(f"{GROUP}/history", order="oldest", **{"from": given})["transitions"]
        assert [row["seq"] for row in found] == [2, 3], given
    assert [row["seq"] for row in api.get(f"{GROUP}/history", entity="group")["transitions"]] == [2, 1]


def test_every_href_leads_to_the_object_that_carries_it(api: Api) -> None:
    def hrefs(found: Any) -> list[str]:
        if isinstance(found, dict):
            own = [found["href"]] if "href" in found else []
            own += list(found.get("links", {}).values())
            return own + [href for inner in found.values() for href in hrefs(inner)]
        if isinstance(found, list):
            return [href for inner in found for href in hrefs(inner)]
        return []

    seen = {href for path in SHAPES for href in hrefs(api.get(path))}
    assert len(seen) > 8
    for href in seen:
        api.get(href)


def test_groups_are_searched_filtered_and_the_worst_comes_first(tables: Tables, api: Api) -> None:
    tables.batch(
        2,
        transition("audit", 1, "Stable"),
        member("audit", "a"),
        health("audit", "a", last_heard_at_ms=NOW_MS - 9_500, session_deadline_at_ms=NOW_MS + 500),
        transition("empty", 1, "Empty"),
        progress(NOW_MS - 300),
    )
    api.wait_for_batch(2)
    path = "/api/v1/clusters/demo/groups"

    def names(**params: Any) -> list[str]:
        return [group["group_id"] for group in api.get(path, **params)["groups"]]

    assert names() == ["audit", "empty", "orders"]
    assert names(sort="worst") == ["orders", "audit", "empty"]
    assert names(sort="margin") == ["audit", "orders", "empty"]
    assert names(state="Stable") == ["audit"]
    assert names(search="RD") == ["orders"]
    first = api.get(path, sort="worst", limit=2)
    assert names(sort="worst", limit=2, cursor=first["next_cursor"]) == ["empty"]


def test_nothing_is_served_before_the_tables_are_there(tables: Tables, serve: Serve) -> None:
    api = serve()
    assert api.client.get("/livez").status_code == 200
    for path in SHAPES:
        reply = api.client.get(path)
        assert reply.status_code == 503, path
        assert "retry-after" in reply.headers
    assert "members" in api.client.get("/api/v1/clusters").json()["tables"]
    assert "health" in api.client.get("/readyz").json()["waiting_for"]
    story(tables)
    api.wait_for_batch(1)
    assert api.client.get("/readyz").status_code == 200
