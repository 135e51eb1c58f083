"""What all groups went through: counted from standing rows, within the stretch, the worst first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Api, Serve
from tests.api.written import NOW_MS, Tables, member, progress, rebalance, transition

PATH = "/api/v1/clusters/demo/incidents"


@pytest.fixture
def api(tables: Tables, serve: Serve) -> Api:
    """`bad` lost two members, one of which is taken back; `slow` waited for one; `calm` was only met."""
    tables.create()
    tables.batch(
        0,
        *(transition(group, 1, "Stable") for group in ("bad", "slow", "calm", "shut")),
        transition("shut", 2, "Absent", cause="fenced", entity="member", member_id="x", at_ms=NOW_MS - 1_000),
        member("calm", "c"),
        member("slow", "s", client_id="slow-1"),
        member("bad", "a", ended_at_ms=NOW_MS - 5_000, end_cause="session_expired"),
        member("bad", "b", ended_at_ms=NOW_MS - 4_000, end_cause="poll_timeout", known_at_ms=NOW_MS - 4_000),
        member("bad", "w", ended_at_ms=NOW_MS - 3_000, end_cause="left"),
        rebalance("bad", NOW_MS - 4_000, completed_at_ms=NOW_MS - 3_900),
        rebalance(
            "slow",
            NOW_MS - 9_000,
            completed_at_ms=NOW_MS - 2_000,
            known_at_ms=NOW_MS - 2_000,
            stragglers=[{"member_id": "s", "waited_ms": 6_900}],
        ),
        progress(NOW_MS - 400),
    )
    tables.batch(1, member("bad", "b", known_at_ms=NOW_MS - 100), progress(NOW_MS - 300))
    found = serve()
    found.wait_for_batch(1)
    return found


def told(api: Api, **parameters: Any) -> dict[str, dict[str, Any]]:
    return {one["group_id"]: one for one in api.get(PATH, **parameters)["incidents"]}


def test_the_worst_group_is_first_and_what_was_corrected_does_not_count(api: Api) -> None:
    answer = api.get(PATH)
    assert [one["group_id"] for one in answer["incidents"]] == ["bad", "shut", "slow"]
    assert (answer["groups_known"], answer["left_off"]) == (4, 0)
    bad, shut, slow = answer["incidents"]
    assert (shut["refusals"], shut["rebalances"], shut["rebalancing_ms"]) == (1, 0, None)
    assert (bad["evictions"], bad["ends"], bad["rebalances"]) == (1, {"session_expired": 1, "left": 1}, 1)
    assert [one["member_id"] for one in bad["evicted"]] == ["a"]
    assert (slow["rebalancing_ms"], slow["longest"]["waited_for_client_id"]) == (7_000, "slow-1")


def test_a_stretch_has_what_ended_or_lasted_in_it(api: Api) -> None:
    late = told(api, **{"from": NOW_MS - 3_500})
    assert set(late) == {"bad", "slow", "shut"}, "a rebalance that lasts into it counts"
    assert (late["bad"]["evictions"], late["bad"]["rebalances"]) == (0, 0)
    assert set(told(api, to=NOW_MS - 4_500)) == {"bad", "slow"}
    assert told(api, to=NOW_MS - 4_500)["bad"]["rebalances"] == 0


def test_what_is_beyond_the_limit_is_counted(api: Api) -> None:
    answer = api.get(PATH, limit=1)
    assert [one["group_id"] for one in answer["incidents"]] == ["bad"]
    assert answer["left_off"] == 2
