"""What the coordinator's own line about the begin of a rebalance tells: of which one, when, and by whom.

Each was met beside real brokers (`tests/night`).
"""

from __future__ import annotations

import pytest

from tests.observe.test_scenes import stable
from tests.support.scene import START, Scene
from tests.support.stories import named

JOINS = "Adding new member {0} with group instance id None; client reason: not provided"
EXPIRES = "removing member {0} on heartbeat expiration"
LEAVES = "Removing member {0} on LeaveGroup; client reason: not provided"


def second(scene: Scene) -> dict[str, object]:
    """The row of the second rebalance, as it stands."""
    return [row for row in scene.known().rebalances() if row["generation_before"] == 1][-1]


def test_a_line_belongs_to_the_rebalance_of_its_generation() -> None:
    """Somebody leaves in the moment in which a join phase ends: the line of the next rebalance is read before the
    answers of the first one."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 18_000, "a", "b")
    scene.prepares(20_000, 1, JOINS.format("c"), "c")
    scene.prepares(21_001, 2, LEAVES.format("c"), "c")
    scene.joined(21_000, 2, {"c": 20_000, "d": 20_900}, first=("c", "d"), leader="a")
    scene.leave(21_002, "c")
    scene.joined(21_000, 2, {"a": 20_600}, absent=("b", "c", "d"))
    scene.tick(23_000)
    row = second(scene)
    assert (row["started_at_ms"], row["trigger"], row["trigger_member_id"]) == (START + 20_000, "member_joined", "c")


@pytest.mark.parametrize("first", ["c", "d"])
def test_of_two_that_join_in_one_moment_the_line_says_who_was_first(first: str) -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 18_000, "a", "b")
    scene.prepares(20_000, 1, JOINS.format(first), first)
    scene.joined(21_000, 2, {"a": 20_600, "b": 20_600, "c": 20_000, "d": 20_000.4}, first=("c", "d"))
    scene.synced(21_010, "a", "b", "c", "d")
    scene.tick(23_000)
    row = second(scene)
    assert (row["trigger_member_id"], row["certainty"]) == (first, "exact")


def test_who_joined_and_died_before_it_was_answered_is_named_by_the_line_alone() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 18_000, "a", "b")
    scene.member_id_required(19_990, "c")
    scene.prepares(20_000, 1, JOINS.format("c"), "c")
    scene.heartbeat(20_500, "a", error=27)
    scene.joined(26_000, 2, {"a": 20_600, "b": 20_700})
    scene.synced(26_010, "a", "b")
    scene.tick(28_000)
    row = second(scene)
    assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "c")
    assert (row["started_at_ms"], row["certainty"]) == (START + 20_000, "exact")


@pytest.mark.parametrize("who", ["b", "c"])
def test_of_sessions_that_end_in_one_instant_the_line_says_which_began_it(who: str) -> None:
    """A broker that stood still ends them all when it wakes."""
    scene = stable("a", "b", "c")
    scene.heartbeats(6_000, 16_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(6_000, "c")
    scene.prepares(16_000, 1, EXPIRES.format(who), who)
    scene.heartbeat(17_000, "a", error=27)
    scene.joined(17_100, 2, {"a": 17_050})
    scene.synced(17_110, "a")
    scene.tick(20_000)
    row = second(scene)
    assert (row["trigger"], row["trigger_member_id"]) == ("session_expired", who)
    assert row["certainty"] == "exact"


def test_a_client_cannot_choose_the_cause_by_its_own_reason() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 18_000, "a", "b")
    forged = JOINS.format("c") + " removing member a on heartbeat expiration"
    scene.prepares(20_000, 1, forged, "c")
    scene.joined(21_000, 2, {"a": 20_600, "b": 20_600, "c": 20_000}, first=("c",))
    scene.synced(21_010, "a", "b", "c")
    scene.tick(23_000)
    assert second(scene)["trigger"] == "member_joined"


def test_how_many_are_in_a_generation_is_not_sure_before_its_leader_is_answered() -> None:
    """Answers of a busy broker come one after the other, further apart than a burst is waited for."""
    scene = Scene()
    scene.member_id_required(990, "a")
    scene.prepares(1_000, 0, JOINS.format("a"), "a")
    scene.joined(2_000, 1, {"c": 1_100}, first=("c",), leader="a")
    scene.tick(2_200)
    scene.joined(2_000, 1, {"b": 1_050}, first=("b",), leader="a")
    scene.tick(2_400)
    scene.joined(2_000, 1, {"a": 1_000}, first=("a",), absent=("b", "c"))
    scene.synced(2_410, "a", "b", "c")
    scene.tick(4_000)
    told = named("rebalances", scene.known_step_by_step().rows["rebalances"])
    assert len(told) > 1
    assert all(row["certainty"] != "exact" or row["members_after"] == 3 for row in told)
    assert (told[-1]["certainty"], told[-1]["members_after"]) == ("exact", 3)
    assert told[-1]["trigger_member_id"] == "a"


UPDATES = "Updating metadata for static member {0} with instance id one; client reason: not provided"


@pytest.mark.parametrize("first", ["a2", "b2"])
def test_of_two_that_take_seats_in_one_moment_the_line_says_who_was_first(first: str) -> None:
    """Both came while the broker stood still, and the line is nearer to the other one's JoinGroup."""
    instances = {"a": "one", "b": "two", "c": "three", "a2": "one", "b2": "two"}
    scene = Scene()
    scene.joined(3_000, 1, {"c": 0.0, "a": 0.0, "b": 0.0}, first=("a", "b", "c"), instances=instances)
    scene.synced(3_010, "c", "a", "b")
    scene.heartbeats(6_000, 12_000, "a", "b", "c")
    joins = {"a2": 12_022.0, "b2": 12_089.0} if first == "a2" else {"a2": 12_035.0, "b2": 12_009.0}
    scene.prepares(12_064 if first == "a2" else 12_032, 1, UPDATES.format(first))
    scene.joined(12_277, 2, {"c": 12_277.0, **joins}, first=("a2", "b2"), instances=instances)
    scene.synced(12_290, "c", "a2", "b2")
    scene.tick(15_000)
    row = second(scene)
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == ("static_replaced", first, "exact")


def test_the_line_of_a_group_of_which_nothing_was_answered_yet_counts() -> None:
    """Of three that come to a new group the second is handled first by the coordinator's own thread. Their JoinGroups
    wait for 3 s, and nothing of the group was logged before."""
    scene = Scene()
    scene.prepares(10, 0, JOINS.format("b"), "b")
    scene.joined(3_000, 1, {"a": 0.0, "b": 5.0, "c": 6.0}, first=("a", "b", "c"))
    scene.synced(3_010, "a", "b", "c")
    scene.tick(4_000)
    row = scene.known().rebalances()[-1]
    assert (row["started_at_ms"] - START, row["trigger_member_id"], row["certainty"]) == (10, "b", "exact")


def test_a_single_member_that_never_synced_is_gone_when_the_coordinator_says_so() -> None:
    """Nobody is left to be answered, so that no request would ever show it."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0}, session_ms=30_000, rebalance_ms=9_000, first=("a",))
    scene.prepares(12_002, 1, "Removing [a] on pending sync request expiration", "a")
    scene.emptied(12_002, 2)
    scene.tick(13_500)
    known = scene.known()
    assert known.ended() == {"a": (12_002, "sync_timeout", "exact")}
    assert known.states()[-2:] == [(12_002, "PreparingRebalance"), (12_002, "Empty")]


@pytest.mark.parametrize("told", [True, False])
def test_a_rebalance_ends_by_its_record_where_no_answer_is_read(told: bool) -> None:
    """In a hole of a rotated request log, between the first answer 27 and the join phase of the next rebalance: the
    record of generation 2 ends the one, and what lies after it is another."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 18_000, "a", "b")
    if told:
        scene.prepares(20_000, 1, JOINS.format("c"), "c")
    scene.heartbeat(20_500, "a", error=27)
    scene.group_record(24_000, 2, {"a": 10_000, "b": 10_000, "c": 10_000})
    scene.prepares(30_000, 2, LEAVES.format("c"), "c")
    scene.joined(31_000, 3, {"a": 30_600, "b": 30_700})
    scene.synced(31_010, "a", "b")
    scene.tick(33_000)
    row, last = second(scene), scene.known().rebalances()[-1]
    assert (row["generation_after"], row["completed_at_ms"], row["members_after"]) == (2, START + 24_000, 3)
    assert row["certainty"] == ("exact" if told else "unknown")
    assert (row["started_at_ms"] == START + 20_000) == told
    assert (last["generation_before"], last["generation_after"]) == (2, 3)
    assert (last["started_at_ms"], last["trigger"]) == (START + 30_000, "member_left")


def test_a_record_of_a_later_generation_ends_nothing_that_was_seen_to_begin() -> None:
    """A hole over two rebalances: neither of their ends is that of the one which was begun."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 18_000, "a", "b")
    scene.heartbeat(20_500, "a", error=27)
    scene.group_record(24_000, 3, {"a": 10_000, "b": 10_000})
    scene.prepares(30_000, 3, JOINS.format("c"), "c")
    scene.joined(31_000, 4, {"a": 30_600, "b": 30_700, "c": 30_000}, first=("c",))
    scene.synced(31_010, "a", "b", "c")
    scene.tick(33_000)
    rows = [(row["generation_before"], row["generation_after"]) for row in scene.known().rebalances()]
    assert rows == [(0, 1), (3, 4)]
