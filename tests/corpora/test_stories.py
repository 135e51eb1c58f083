"""Recorded stories against their truth: every eviction and leave, none invented, every rebalance with its cause, and
what can be seen of the stalls of applications.

From the request log and `__consumer_offsets` alone. An eviction's truth is the stamp of the coordinator's own line.
"""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from tests.support.stories import FIRST_LIGHT, NOISE_GROUPS, STORIES, Story, lanes_of, live, named, observe, standing

WITHIN_MS = 10
"""Promise of an eviction's instant, against the broker's own line."""

LEFT = ("left", "poll_timeout", "removed_by_admin")

TRIGGER_OF_REASON = (
    ("Adding new member", {"member_joined"}),
    ("on heartbeat expiration", {"session_expired"}),
    ("LeaveGroup", {"member_left", "poll_timeout", "removed_by_admin"}),
    ("re-joining group during Stable", {"leader_rejoined"}),
    ("Updating metadata for member", {"metadata_changed"}),
    ("static member", {"static_replaced"}),
)
"""The coordinator's words and the trigger classes that they mean."""


def members(name: str, *, server_log: bool = False) -> list[dict[str, Any]]:
    """Standing lives of a story without the noise. What is not modelled (the consumer protocol) is not judged."""
    rows = standing("members", observe(lanes_of(name, server_log))["members"])
    return [row for row in rows if row["group_id"] not in NOISE_GROUPS and row["protocol"] == "classic"]


def evictions(name: str) -> dict[tuple[str, str], int]:
    """(group, member id) -> when the coordinator's own line says that its session was over."""
    true = [item for item in Story(name).expect["evictions"] if item["why"] == "session timeout"]
    return {(item["group"], item["member_id"]): item["t"] for item in true}


def in_scope(expect: dict[str, Any], at_ms: int) -> bool:
    """Whether an instant lies in the part of the recording that is judged."""
    return bool(expect["start_ms"] <= at_ms <= expect["end_ms"])


@pytest.mark.parametrize("name", STORIES)
def test_every_eviction_is_found_and_none_invented(name: str) -> None:
    expect = Story(name).expect
    said = {
        (row["group_id"], row["member_id"]): row["ended_at_ms"]
        for row in members(name)
        if row["end_cause"] == "session_expired" and in_scope(expect, row["ended_at_ms"])
    }
    true = evictions(name)
    assert said.keys() == true.keys()
    errors = [abs(said[key] - at_ms) for key, at_ms in true.items()]
    assert all(error <= WITHIN_MS for error in errors), errors


def test_evictions_are_within_two_milliseconds_as_a_rule() -> None:
    errors = []
    for name in FIRST_LIGHT:
        said = {row["member_id"]: row["ended_at_ms"] for row in members(name) if row["end_cause"] == "session_expired"}
        errors += [abs(said[item["member_id"]] - item["t"]) for item in Story(name).expect["evictions"]]
    assert statistics.median(errors) <= 2


@pytest.mark.parametrize("name", STORIES)
def test_every_leave_is_found_and_none_invented(name: str) -> None:
    expect = Story(name).expect
    said = {
        (row["group_id"], row["member_id"]): row
        for row in members(name)
        if row["end_cause"] in LEFT and in_scope(expect, row["ended_at_ms"])
    }
    true = {(item["group"], item["member_id"]): item for item in expect["leaves"]}
    assert said.keys() == true.keys()
    for key, item in true.items():
        assert abs(said[key]["ended_at_ms"] - item["t"]) <= WITHIN_MS
        if item["why"] == "consumer poll timeout has expired.":
            assert (said[key]["end_cause"], said[key]["certainty"]) == ("poll_timeout", "exact")


@pytest.mark.parametrize("name", ["c04_mpi-3.9.2", "c04_mpi-4.1.2"])
def test_a_poll_timeout_without_a_reason_is_told_from_a_close(name: str) -> None:
    """librdkafka says no reason; its application stalled 14 s with a poll interval of 8 s."""
    causes = {row["client_id"]: row["end_cause"] for row in members(name) if row["end_cause"] in LEFT}
    assert causes == {"c04-a": "poll_timeout", "c04-b": "poll_timeout"}


def test_a_close_without_a_reason_is_not_called_a_poll_timeout() -> None:
    causes = [row["end_cause"] for row in members("c05_leave-3.9.2") if row["end_cause"] in LEFT]
    assert causes == ["left"] * 4


@pytest.mark.parametrize("name", STORIES)
def test_every_rebalance_has_its_start_cause_and_straggler(name: str) -> None:
    expect = Story(name).expect
    rows = standing("rebalances", observe(lanes_of(name))["rebalances"])
    said: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        if row["group_id"] not in NOISE_GROUPS and in_scope(expect, row["started_at_ms"]):
            said.setdefault((row["group_id"], row["generation_before"]), []).append(row)
    assert sum(len(group) for group in said.values()) == len(expect["rebalances"])
    for item in expect["rebalances"]:
        if item["kind"] != "classic":
            continue  # `test_modern_stories` looks at these
        (row,) = said[item["group"], item["from_gen"]]
        assert row["generation_after"] == item["to_gen"]
        assert row["members_after"] == item["members"]
        triggers = next(triggers for words, triggers in TRIGGER_OF_REASON if words in item["reason"])
        assert row["trigger"] in triggers, item["reason"]
        # A first JoinGroup of a broker just started waits for classes to load before it takes effect.
        assert abs(row["started_at_ms"] - item["t_start"]) <= (WITHIN_MS if item["from_gen"] else 3 * WITHIN_MS)
        if item["from_gen"] and len(item.get("joins", ())) > 1:
            assert row["stragglers"][0]["client_id"] == item["last_joiner"]
            assert abs(row["stragglers"][0]["waited_ms"] - item["last_joiner_after_ms"]) <= 3 * WITHIN_MS


@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_every_predicted_eviction_was_predicted_before_it_came(name: str) -> None:
    rows = observe(lanes_of(name))
    came = {
        row["member_id"]: row
        for row in standing("predictions", rows["predictions"])
        if row["kind"] == "session" and row["outcome"] == "came_true"
    }
    for item in Story(name).expect["evictions"]:
        assert came[item["member_id"]]["lead_ms"] > 0


@pytest.mark.parametrize("name", STORIES)
def test_the_coordinators_own_lines_make_it_exact(name: str) -> None:
    """With server.log the instant is the broker's own, to the millisecond."""
    rows = [row for row in members(name, server_log=True) if row["end_cause"] == "session_expired"]
    assert {(row["group_id"], row["member_id"]): row["ended_at_ms"] for row in rows} == evictions(name)
    assert {row["certainty"] for row in rows} <= {"exact"}


def test_without_the_offsets_topic_the_same_members_are_evicted() -> None:
    for name in ("c01_kill-3.9.2", "c06_static-3.9.2", "z01_timezone-4.1.2"):
        rows = standing("members", observe(lanes_of(name, offsets=False))["members"])
        said = {row["member_id"] for row in rows if row["end_cause"] == "session_expired"}
        assert said == {item["member_id"] for item in Story(name).expect["evictions"]}


def test_a_group_goes_on_in_another_brokers_log_when_its_coordinator_is_killed() -> None:
    """The killed broker evicts nobody. The first line of the next one comes when the group has rebalanced: then the id
    which librdkafka gave up is not on the list, and its session is known to have ended."""
    name = "m01_coordinator_kill-4.1.2"
    for server_log in (False, True):
        said = observe(lanes_of(name, server_log))
        lives = standing("members", said["members"])
        ended = {row["member_id"]: row["ended_at_ms"] for row in lives if row["end_cause"] == "session_expired"}
        rows = [row for row in standing("predictions", said["predictions"]) if row["kind"] == "session"]
        rows = [row for row in rows if row["group_id"] == "gm1"]
        # Who was heard before the kill only ended a session after the load, at a later deadline than was foretold.
        came = {row["member_id"] for row in rows if row["outcome"] == "came_true"}
        came |= {row["member_id"] for row in rows if row["outcome_at_ms"] == ended.get(row["member_id"], -1)}
        assert came == {member_id for group, member_id in evictions(name) if group == "gm1"}


@pytest.mark.parametrize("name", [name for name in FIRST_LIGHT if Story(name).expect["poll_stalls"]])
def test_no_poll_is_claimed_while_the_application_stalls(name: str) -> None:
    """And where the library shows its polls, the last one is known to the second while the stall lasts."""
    rows = named("health", live(name)["health"])
    libraries = {row["client_id"]: row["client_software_name"] for row in members(name)}
    for stall in Story(name).expect["poll_stalls"]:
        library = libraries[stall["client_id"]]
        if library == "sarama":
            continue  # one of its three partitions stalled: what was taken of the others was consumed indeed
        during = [
            row
            for row in rows
            if row["client_id"] == stall["client_id"] and stall["t"] + 1_000 <= row["at_ms"] < stall["until"]
        ]
        assert during, stall
        for row in during:
            claimed = row["last_poll_at_ms"] - row["poll_error_bound_ms"]
            assert claimed <= stall["last_poll_end"] + WITHIN_MS, row
            if (
                library is None
            ):  # aiokafka: it goes on fetching partitions that are idle, so its commits are what counts
                assert row["last_poll_at_ms"] - stall["last_poll_end"] <= 5_000, row
                assert row["poll_evidence"] == "commit"
            elif library != "confluent-kafka-python":
                assert abs(row["last_poll_at_ms"] - stall["last_poll_end"]) <= 1_000, row
                assert row["poll_evidence"] == "fetch"


@pytest.mark.parametrize("name", [name for name in FIRST_LIGHT if Story(name).expect["poll_stalls"]])
def test_a_zombie_is_called_stalled_only_while_it_stalls(name: str) -> None:
    """Nobody is called stalled who polls, and nobody is said to poll long into a stall."""
    rows = [row for row in named("health", live(name)["health"]) if row["group_id"] not in NOISE_GROUPS]
    stalls = Story(name).expect["poll_stalls"]
    for row in rows:
        mine = [stall for stall in stalls if stall["client_id"] == row["client_id"]]
        inside = [stall for stall in mine if stall["t"] <= row["at_ms"] <= stall["until"] + 1_000]
        if row["polling"] == "stalled":
            assert inside, row
        during = inside and row["at_ms"] < inside[0]["until"] and row["client_id"] != "c18-sa"
        if row["polling"] == "polls" and during:
            # A commit trails by up to 5 s, and that the next one fails to come is seen 5 s later.
            assert row["at_ms"] - inside[0]["t"] <= 2 * 5_500, row


def test_zombies_are_found_where_their_library_shows_it() -> None:
    """Java by its fetches and commits that stop, librdkafka by the commit that fails to come. c03-b is Java without
    commits of its own: it may work off what it fetched, or have paused."""
    rows = named("health", live("c03_zombie-3.9.2")["health"])
    assert {row["client_id"] for row in rows if row["polling"] == "stalled"} == {"c03-a", "c03-c"}
    (stall,) = (stall for stall in Story("c03_zombie-3.9.2").expect["poll_stalls"] if stall["client_id"] == "c03-b")
    during = [row for row in rows if row["client_id"] == "c03-b" and stall["t"] + 6_000 < row["at_ms"] < stall["until"]]
    assert {row["polling"] for row in during} == {"unknown"}


def test_the_zombies_of_other_libraries_are_found_where_data_is_left_untaken() -> None:
    rows = named("health", live("c18_libs-4.1.2")["health"])
    stalled = {row["client_id"] for row in rows if row["polling"] == "stalled"}
    assert stalled == {"c18-kp", "c18-ak", "c18-fr"}
