"""Recorded stories of a broker that was killed and started again, or stood still (`recording`), against server.log.

Two members are killed with the broker, the others live through it. One outage is short, one is long, and once the whole
machine slept.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from kardia.certainty import stands
from tests.support.stories import Story, lanes_of, live, named, observe, standing

WITHIN_MS = 12

OUTAGES = tuple(
    f"{what}-{version}"
    for what in ("d01_kill_long", "d02_kill_short", "d03_stand_still", "d04_asleep")
    for version in ("3.9.2", "4.4.0")
)

OF_THREE = ("d05_three_stand_still-3.9.2", "d05_three_stand_still-4.4.0")
"""Another of three brokers leads the groups while their coordinator stands still. When it wakes it expires everybody,
in words of its own, before it learns that it leads nothing any more (`overtaken` in expect.json)."""

READINGS = ("at once", "live", "with server.log")


@cache
def rows_of(name: str, reading: str) -> dict[str, list[Any]]:
    """Everything that was ever said, from the request log without the offsets topic or with server.log as well."""
    if reading == "live":
        return live(name)
    return observe(lanes_of(name, server_log=reading == "with server.log", offsets=False))


def true_ends(name: str) -> dict[str, list[int]]:
    """Member -> instants of its evictions."""
    found: dict[str, list[int]] = {}
    for one in Story(name).expect["evictions"]:
        found.setdefault(one["member_id"], []).append(one["t"])
    return found


def down(name: str) -> tuple[int, int]:
    """From when to when the broker was dead or stopped."""
    lines = [json.loads(line) for line in (Story(name).folder / "truth.jsonl").read_text().splitlines()]
    begin, end = [one["t"] for one in lines if one["member"] == "broker"]
    return begin, end


def judged(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the part of the story in which the consumers were not yet stopped by the recording itself."""
    return [row for row in rows if row["at_ms"] <= Story(name).expect["end_ms"] and row["group_id"] != "dump"]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", [*OUTAGES, *OF_THREE])
def test_what_was_ever_said_for_sure_of_an_eviction_stands_in_server_log(name: str, reading: str) -> None:
    true = true_ends(name)
    for row in judged(name, named("members", rows_of(name, reading)["members"])):
        if row["end_cause"] == "session_expired" and stands(row["certainty"]):
            near = [at_ms for at_ms in true.get(row["member_id"], ()) if abs(at_ms - row["ended_at_ms"]) <= WITHIN_MS]
            assert near, (row["member_id"], row["ended_at_ms"], row["certainty"], true)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", [*OUTAGES, *OF_THREE])
def test_what_was_ever_said_for_sure_of_the_begin_of_a_rebalance_stands_in_server_log(name: str, reading: str) -> None:
    failed = [(one["member_id"], one["t"]) for one in Story(name).expect["evictions"]]
    true = []
    for one in Story(name).expect["rebalances"]:
        # A broker that has just woken takes its time from the line about the member to the one about the rebalance.
        causes = [at_ms for who, at_ms in failed if who in one["reason"] and at_ms <= one["t_start"] < at_ms + 100]
        true.append((one["group"], min([one["t_start"], *causes]), one["t_start"]))
    for row in judged(name, named("rebalances", rows_of(name, reading)["rebalances"])):
        if stands(row["certainty"]):
            near = [(first, last) for group, first, last in true if group == row["group_id"]]
            # A first JoinGroup of a broker just started waits for classes to load before it takes effect.
            within_ms = WITHIN_MS if row["generation_before"] else 20 * WITHIN_MS
            at_ms, by_ms = row["started_at_ms"], row["started_at_ms"] + (row["at_bound_ms"] or 0)
            assert any(first - within_ms <= by_ms and at_ms <= last + within_ms for first, last in near), row


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", OUTAGES)
def test_a_dead_broker_evicts_nobody_and_whoever_it_evicted_later_is_found(name: str, reading: str) -> None:
    begin, end = down(name)
    ended = [
        row
        for row in judged(name, standing("members", rows_of(name, reading)["members"]))
        if row["end_cause"] == "session_expired"
    ]
    assert {row["member_id"] for row in ended} == true_ends(name).keys()
    assert [row["ended_at_ms"] for row in ended if begin <= row["ended_at_ms"] < end] == []


@pytest.mark.parametrize("name", [*OUTAGES, *OF_THREE])
def test_with_server_log_every_eviction_stands_at_its_instant(name: str) -> None:
    rows = judged(name, standing("members", rows_of(name, "with server.log")["members"]))
    said = [(row["member_id"], row["ended_at_ms"]) for row in rows if row["end_cause"] == "session_expired"]
    true = [(one["member_id"], one["t"]) for one in Story(name).expect["evictions"]]
    assert set(true) <= set(said)


@pytest.mark.parametrize("name", [name for name in OUTAGES if name[:3] in ("d01", "d02")])
def test_while_a_broker_is_dead_the_live_answer_says_what_it_waits_for(name: str) -> None:
    begin, end = down(name)
    late = [
        row
        for row in named("health", rows_of(name, "live")["health"])
        if begin + 12_000 < row["at_ms"] < end and row["group_id"] != "dump"
    ]
    if name.startswith("d01"):
        assert {row["status"] for row in late} == {"overdue"}
    assert all("has logged nothing since" in row["reasons"][0] for row in late)


@pytest.mark.parametrize("name", OF_THREE)
def test_a_coordinator_that_was_replaced_while_it_stood_still_evicts_nobody(name: str) -> None:
    overtaken = Story(name).expect["overtaken"]
    assert overtaken
    said = judged(name, named("members", rows_of(name, "with server.log")["members"]))
    ended = {(row["member_id"], row["ended_at_ms"]) for row in said if row["ended_at_ms"]}
    assert not ended & {(one.get("member_id"), one.get("t")) for one in overtaken}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", OUTAGES)
def test_no_prediction_came_true_by_an_end_that_never_was(name: str, reading: str) -> None:
    true = true_ends(name)
    begin, end = down(name)
    for row in judged(name, standing("predictions", rows_of(name, reading)["predictions"])):
        if row["outcome"] == "came_true":
            assert row["member_id"] in true
            assert not begin <= row["outcome_at_ms"] < end
