"""Incident reports: a story names what the broker did; from hostile ids nothing but text comes out."""

from __future__ import annotations

import re
from typing import Any

from api.shapes import report_models
from tests.api.conftest import Api, Serve
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

GROUP = "/api/v1/clusters/demo/groups/orders"
HOSTILE = "```\n# owned\n<script>@everyone</script> [x](http://y) \x1b[31m"


def story(tables: Tables) -> None:
    """One eviction that started a rebalance, one hostile member that stays, one rebalance before the range."""
    tables.create()
    stragglers = [{"member_id": HOSTILE, "client_id": HOSTILE, "waited_ms": 400, "joined": True}]
    tables.batch(
        0,
        member("orders", "a", ended_at_ms=NOW_MS - 30_000, end_cause="session_expired", client_host="10.0.0.7"),
        member("orders", HOSTILE, client_id=HOSTILE, client_host=HOSTILE, session_timeout_ms=45_000),
        member("orders", "early", joined_at_ms=NOW_MS - 99_000, ended_at_ms=NOW_MS - 95_000, end_cause="left"),
        rebalance("orders", NOW_MS - 95_000, generation_before=1),
        rebalance(
            "orders",
            NOW_MS - 30_000,
            trigger="session_expired",
            trigger_member_id="a",
            stragglers=stragglers,
            reason=HOSTILE,
        ),
        transition("orders", 1, "Stable", at_ms=NOW_MS - 60_000),
        transition("orders", 2, "PreparingRebalance", at_ms=NOW_MS - 30_000, cause="session_expired"),
        transition("orders", 3, "Stable", at_ms=NOW_MS - 29_500),
        prediction(
            "orders",
            "a",
            "session",
            predicted_at_ms=NOW_MS - 35_000,
            deadline_at_ms=NOW_MS - 30_000,
            outcome="came_true",
            outcome_at_ms=NOW_MS - 30_000,
            lead_ms=5_000,
            error_ms=0,
        ),
        health("orders", HOSTILE, at_ms=NOW_MS - 2_000, client_id=HOSTILE),
        health("orders", "a", at_ms=NOW_MS - 31_000),
        progress(NOW_MS),
    )


def report(api: Api, **params: Any) -> Any:
    found = api.get(f"{GROUP}/incident", **params)
    report_models.Incident.model_validate(found, strict=True)
    return found


def test_a_report_tells_what_happened_and_what_was_in_force(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    found = report(api, **{"from": NOW_MS - 60_000, "to": NOW_MS})
    assert [row["member_id"] for row in found["evictions"]] == ["a"]
    assert [row["started_at_ms"] for row in found["rebalances"]] == [NOW_MS - 30_000]
    assert found["causes"] == {"triggers": {"session_expired": 1}, "ends": {"session_expired": 1}}
    assert [(row["kind"], row["outcome"]) for row in found["predictions"]] == [("session", "came_true")]
    assert {row["member_id"]: row["session_timeout_ms"] for row in found["settings"]} == {"a": 10_000, HOSTILE: 45_000}
    assert [row["member_id"] for row in found["deadlines"]] == [HOSTILE], "a was no member any more"
    assert [one["rule"] for one in found["lint"]] == ["different_session_timeouts"]
    told = [one for one in found["timeline"] if one["kind"] == "ended"]
    assert [(one["at_ms"], one["member_ids"]) for one in told] == [(NOW_MS - 30_000, ["a"])]
    assert "evicted" in told[0]["text"]


def test_a_report_is_cut_to_its_range_and_says_what_it_left_off(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    before = report(api, **{"from": NOW_MS - 100_000, "to": NOW_MS - 30_000})
    assert before["evictions"] == []
    assert before["causes"]["ends"] == {"left": 1}
    edge = report(api, **{"from": NOW_MS - 30_000, "to": NOW_MS - 29_999})
    assert [row["member_id"] for row in edge["evictions"]] == ["a"]
    cut = report(api, limit=1, **{"from": NOW_MS - 100_000, "to": NOW_MS})
    assert [row["started_at_ms"] for row in cut["rebalances"]] == [NOW_MS - 30_000]
    assert cut["left_off"]["rebalances"] == 1
    unborn = report(api, **{"from": NOW_MS - 60_000, "to": NOW_MS, "known_at": NOW_MS - 40_000})
    assert (unborn["evictions"], unborn["predictions"]) == ([], [])


def test_markdown_comes_by_parameter_or_by_accept_and_holds_strangers_in_fences(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    times = {"from": NOW_MS - 60_000, "to": NOW_MS}
    by_parameter = api.client.get(f"{GROUP}/incident", params=times | {"format": "markdown"})
    by_accept = api.client.get(f"{GROUP}/incident", params=times, headers={"Accept": "text/markdown"})
    assert by_parameter.headers["content-type"] == by_accept.headers["content-type"] == "text/markdown; charset=utf-8"
    assert by_parameter.text == by_accept.text
    text = by_parameter.text
    assert "session_expired" in text
    assert "10.0.0.7" in text
    assert "\x1b" not in text
    outside, fence = [], ""
    for line in text.splitlines():
        if not fence:
            opened = re.fullmatch(r"(`{3,})text", line)
            fence = opened[1] if opened else ""
            outside += [] if opened else [line]
        elif line == fence:
            fence = ""
    assert fence == "", "every fence is closed"
    assert len(fence_lengths(text)) > 4
    assert not any(word in line for line in outside for word in ("owned", "script", "everyone", "http"))
    assert api.problem(f"{GROUP}/incident", format="pdf") == (422, "parameter_refused")


def fence_lengths(text: str) -> list[int]:
    return [len(fence) for fence in re.findall(r"^(`{3,})text$", text, re.MULTILINE)]
