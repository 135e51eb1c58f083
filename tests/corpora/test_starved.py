"""Recorded stories of brokers killed, or stopped, on a starved machine, against the coordinator's own lines.

Handlers are up to seconds late there, so an instant that requests alone show is no promise; what is said for sure is.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from kardia.certainty import stands
from kardia.tables import EVICTION_CAUSES
from tests.support.stories import STARVED_BROKERS, Story, lanes_of, live, named, observe, standing

READINGS = ("at once", "live", "with server.log", "server.log alone")

LATE_MS = 25
"""So late a timer of a starved broker was seen to fire, where it did not stand still."""

WORDS = ("session timeout", "the member session expired")

UNSEEN = {"d04_broker_frozen-4.4.0": 1}
"""Evictions that no request shows: a static member came back before anybody was answered."""


@cache
def rows_of(name: str, reading: str) -> dict[str, list[Any]]:
    """Everything that was ever said."""
    if reading == "live":
        return live(name, offsets=False)
    server_log, requests = "server.log" in reading, reading != "server.log alone"
    return observe(lanes_of(name, server_log=server_log, requests=requests, offsets=False))


def true_ends(name: str) -> dict[tuple[str, str], list[int]]:
    """(group, member) -> when the coordinator's own line says that its session was over."""
    found: dict[tuple[str, str], list[int]] = {}
    for one in Story(name).expect["evictions"]:
        if one["why"] in WORDS:
            found.setdefault((one["group"], one["member_id"]), []).append(one["t"])
    return found


def judged(name: str, table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the part of the story in which the recording had not stopped its clients yet."""
    until_ms = Story(name).expect["end_ms"]
    at = "ended_at_ms" if table == "members" else "at_ms"
    return [row for row in rows if row[at] is not None and row[at] <= until_ms and row["group_id"] != "warmup"]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", STARVED_BROKERS)
def test_no_eviction_is_invented_and_what_was_said_for_sure_is_true(name: str, reading: str) -> None:
    true = true_ends(name)
    for row in judged(name, "members", named("members", rows_of(name, reading)["members"])):
        if row["end_cause"] in EVICTION_CAUSES and stands(row["certainty"]):
            ends = true.get((row["group_id"], row["member_id"]), ())
            latest_ms = row["ended_at_ms"] + (row["at_bound_ms"] or 0) + LATE_MS
            assert any(row["ended_at_ms"] - LATE_MS <= at_ms <= latest_ms for at_ms in ends), row
    for row in judged(name, "members", standing("members", rows_of(name, reading)["members"])):
        if row["end_cause"] in EVICTION_CAUSES:
            assert (row["group_id"], row["member_id"]) in true, row


@pytest.mark.parametrize("reading", ["with server.log", "server.log alone"])
@pytest.mark.parametrize("name", STARVED_BROKERS)
def test_with_server_log_every_eviction_stands_at_its_instant(name: str, reading: str) -> None:
    rows = judged(name, "members", standing("members", rows_of(name, reading)["members"]))
    said = {(row["group_id"], row["member_id"], row["ended_at_ms"]) for row in rows if row["certainty"] == "exact"}
    assert {(*who, at_ms) for who, ends in true_ends(name).items() for at_ms in ends} <= said


@pytest.mark.parametrize("reading", ["at once", "live"])
@pytest.mark.parametrize("name", STARVED_BROKERS)
def test_whoever_was_evicted_is_gone_by_requests_alone(name: str, reading: str) -> None:
    rows = judged(name, "members", standing("members", rows_of(name, reading)["members"]))
    ended = {(row["group_id"], row["member_id"]) for row in rows}
    assert len(true_ends(name).keys() - ended) <= UNSEEN.get(name, 0)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", STARVED_BROKERS)
def test_no_prediction_came_true_by_a_dead_broker(name: str, reading: str) -> None:
    begin, end = down(name)
    for row in standing("predictions", rows_of(name, reading).get("predictions", [])):
        if row["outcome"] == "came_true" and row["kind"] == "session" and row["group_id"] in of_one_broker(name):
            assert not begin + LATE_MS <= row["outcome_at_ms"] < end, row


def down(name: str) -> tuple[int, int]:
    """From when to when the only broker was dead; (0, 0) where there are others, or it stood still."""
    begin, end = Story(name).expect.get("down", (0, 0))
    return begin, end


def of_one_broker(name: str) -> set[str]:
    """Groups that no other broker can have led meanwhile."""
    return {group for group, _ in true_ends(name)} if "down" in Story(name).expect else set()


def test_a_broker_that_was_dead_for_50_s_evicted_two_members_after_its_load() -> None:
    """By the request log alone: they came back without their ids, in a group whose lane shows nothing else."""
    name = "n01_broker_kill-3.9.2"
    for reading in ("at once", "live"):
        rows = judged(name, "members", standing("members", rows_of(name, reading)["members"]))
        ended = {row["client_id"]: row["ended_at_ms"] for row in rows if row["end_cause"] == "session_expired"}
        true = {one["client_id"]: one["t"] for one in Story(name).expect["evictions"]}
        assert ended.keys() == {"lib-1", "lib-2"}
        assert all(abs(ended[client] - true[client]) <= LATE_MS for client in ended)


@pytest.mark.parametrize("reading", ["at once", "live"])
def test_who_is_on_the_leaders_list_before_its_own_answer_is_read_has_joined(reading: str) -> None:
    """The lines of one burst stand 191 ms apart: the leader's answer names a new member whose own comes later. That it
    is held by then does not make its first JoinGroup one of a member with other metadata, nor its id an unused one."""
    rows = rows_of("d01_busy_s202-3.9.2", reading)["rebalances"]
    (found,) = (
        one for one in standing("rebalances", rows) if one["group_id"] == "busy-05" and one["generation_before"] == 1
    )
    assert (found["trigger"], found["trigger_client_id"], found["certainty"]) == ("member_joined", "d05-1", "exact")
    assert not any(one["pending"] for one in found["stragglers"])
