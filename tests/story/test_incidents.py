"""All groups at once: what each went through in short sentences; an archive's list says it in columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kardia.story import incidents
from tests.story.conftest import kardia


def one(**given: Any) -> dict[str, Any]:
    """A group of which nothing is told but what is given."""
    return {
        "group_id": "g",
        "evictions": 0,
        "ends": {},
        "evicted": [],
        "rebalances": 0,
        "refusals": 0,
        "longest": None,
    } | given


def test_a_group_is_told_in_counts_then_whom_it_lost_then_its_longest_rebalance() -> None:
    lost = {"member_id": "billing-1-6f6050d6-6cb7-4e60-a4ff-3b2a8b8f8b36", "client_id": "billing-1"}
    told = incidents.told(
        one(
            evictions=2,
            ends={"session_expired": 2, "left": 1},
            evicted=[lost | {"ended_at_ms": 1_000, "end_cause": "session_expired", "certainty": "inferred"}],
            rebalances=2,
            rebalancing_ms=14_100,
            longest={
                "started_at_ms": 2_000,
                "duration_ms": 11_900,
                "waited_for": lost["member_id"],
                "waited_for_client_id": "billing-1",
                "waited_ms": 11_854,
            },
        )
    )
    assert told == [
        "2 members evicted, 1 left, 2 rebalances, 14.1 s in all.",
        "1970-01-01T00:00:01.000Z billing-1 (6f6050d6): session timeout [inferred].",
        "1 eviction before these.",
        "The longest rebalance began 1970-01-01T00:00:02.000Z and took 11.9 s, "
        "waiting for billing-1 (6f6050d6, 11.9 s).",
    ]


def test_that_nothing_happened_is_an_answer() -> None:
    freshness = {"complete_as_of_ms": 5_000}
    answer = {"freshness": freshness, "from_ms": 0, "to_ms": None, "groups_known": 3, "incidents": [], "left_off": 0}
    assert incidents.title(answer) == (
        "From 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:05.000Z: no group lost a member or rebalanced, of 3 groups."
    )


def test_last_night_is_told_without_a_group(tables: Path) -> None:
    """By both verbs that tell what happened; and an archive's list of groups has it in columns."""
    for verb in ("incident", "why"):
        said = kardia(verb, "--tables", tables, "--cluster", "c04")
        assert said.code == 0, said.err
        assert "2 of 2 groups lost members or rebalanced, the worst first." in said.out
        assert "poll timeout." in said.out
        assert f"Next: kardia why g04 --tables {tables}" in said.out
    assert (
        kardia("incident", "--tables", tables, "--cluster", "c04", "--json").json()["incidents"][0]["group_id"] == "g04"
    )
    listed = kardia("groups", "--tables", tables, "--cluster", "c04").out
    assert "EVICTED" in listed
    assert "was ok" not in listed
    assert "this is the state then." in listed
