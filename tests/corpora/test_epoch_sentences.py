"""Recorded consumer, share and streams groups by the sentences of server.log: alone, beside the offsets topic, and
beside the requests. What is found is held against `expect.json`, which was made from what the broker and the drivers
said; of the instants and causes the broker's own lines are the truth.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from kardia.tables import LEAVE_CAUSES
from tests.support.stories import CORPORA, MODERN_STORIES, lanes_of, observe, standing

RUNGS = {
    "server.log": {"server_log": True, "offsets": False, "requests": False},
    "records, server.log": {"server_log": True, "offsets": True, "requests": False},
    "requests, server.log": {"server_log": True, "offsets": False, "requests": True},
    "all": {"server_log": True, "offsets": True, "requests": True},
}
NEAR_MS = 10
CAUSES = (("session expired", "session_expired"), ("failed to transition", "rebalance_timeout"))


@cache
def rows_of(name: str, rung: str) -> dict[str, list[dict[str, Any]]]:
    rows = observe(lanes_of(name, **RUNGS[rung]))
    return {table: standing(table, rows[table]) for table in ("members", "rebalances", "disagreements")}


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CORPORA / name / "expect.json").read_text())
    return found


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("name", MODERN_STORIES)
def test_the_line_of_an_eviction_says_its_cause_and_instant(name: str, rung: str) -> None:
    said = expected(name)
    by_time = [one for one in said["evictions"] if not one.get("not_an_eviction_by_time")]
    rows = [row for row in rows_of(name, rung)["members"] if row["ended_at_ms"] is not None]
    for one in by_time:
        cause = next(cause for words, cause in CAUSES if words in one["why"])
        mine = [row for row in rows if row["member_id"] == one["member_id"]]
        near = [row for row in mine if abs(row["ended_at_ms"] - one["t"]) <= NEAR_MS]
        assert [(row["end_cause"], row["certainty"]) for row in near] == [(cause, "exact")], (one, mine)
    evicted = {
        row["member_id"] for row in rows if row["end_cause"] not in (*LEAVE_CAUSES, "static_replaced", "unknown")
    }
    assert evicted <= {one["member_id"] for one in by_time}, "nobody else was evicted"


@pytest.mark.parametrize("rung", ["requests, server.log", "all"])
@pytest.mark.parametrize("name", MODERN_STORIES)
def test_what_the_lines_say_is_what_the_requests_say(name: str, rung: str) -> None:
    assert rows_of(name, rung)["disagreements"] == []


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_the_lines_alone_tell_each_epoch_that_they_name_and_what_began_it(name: str) -> None:
    """A fencing makes an epoch of which no line tells in share and streams groups."""
    told = {
        (row["group_id"], row["generation_after"]): row
        for row in rows_of(name, "server.log")["rebalances"]
        if row["protocol"] != "classic"
    }
    both = {(row["group_id"], row["generation_after"]): row for row in rows_of(name, "all")["rebalances"]}
    assert told
    for key, row in told.items():
        known = both.get(key)
        assert known is not None, (key, sorted(both))
        assert abs(row["started_at_ms"] - known["started_at_ms"]) <= 200, (
            "a broker that has just started takes its time"
        )
        assert row["trigger"] in ("unknown", known["trigger"]), (key, row["trigger"], known["trigger"])
        assert row["completed_at_ms"] is None


def test_a_record_without_a_cause_has_that_of_the_line() -> None:
    """Records alone say that somebody is gone; the line says why, whichever of the two is read first."""
    alone = standing("members", observe(lanes_of("k01_kill-4.1.2", requests=False))["members"])
    assert {row["end_cause"] for row in alone if row["group_id"] == "h01"} == {None, "unknown"}
    both = rows_of("k01_kill-4.1.2", "records, server.log")["members"]
    assert sorted(row["end_cause"] or "" for row in both if row["group_id"] == "h01").count("session_expired") == 2
