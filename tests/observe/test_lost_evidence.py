"""Lines that are lost and logs that begin late: what is unknown then, since when, and until what shows it again."""

from __future__ import annotations

from tests.observe.test_moves import health
from tests.observe.test_scenes import stable
from tests.support.scene import Scene


def test_a_gap_makes_a_stable_group_unknown_until_it_is_heard_again() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.gap(10_000, 14_000)
    scene.heartbeats(15_000, 19_000, "a", "b")
    scene.tick(20_000)
    known = scene.known()
    assert known.states()[-2:] == [(10_000, "Unknown"), (15_000, "Stable")]
    assert known.ended() == {}


def test_what_was_heard_inside_a_gap_is_no_last_word() -> None:
    """Of 10,000 to 14,000 some lines are there and some are not: b's heartbeat of 12,000 need not be its last."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.heartbeat(12_000, "b")
    scene.gap(10_000, 14_000)
    scene.heartbeats(15_000, 26_000, "a")
    scene.tick(26_000)
    known = scene.known()
    assert known.ended() == {}
    assert [(row["status"], row["certainty"]) for row in health(known, "b")][-1] == ("unknown", "unknown")
    assert health(known, "b")[-1]["reasons"][0].startswith("the log has a gap since")


def test_lines_lost_on_the_way_are_a_gap_from_the_tick_before() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.tick(10_000, sent=len(scene.events))
    scene.heartbeat(12_000, "a")
    scene.tick(14_000, sent=2)
    scene.heartbeats(15_000, 26_000, "a")
    scene.tick(26_000)
    known = scene.known()
    assert known.ended() == {}
    assert health(known, "b")[-1]["status"] == "unknown"


def test_who_was_not_seen_to_sync_in_a_gap_is_not_said_to_have_missed_it() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), rebalance_ms=8_000)
    scene.gap(3_005, 4_000)
    scene.heartbeats(5_000, 11_000, "a", "b")
    scene.heartbeat(11_500, "a", error=27)
    scene.joined(11_700, 2, {"a": 11_600, "b": 11_650, "n": 11_400}, first=("n",))
    scene.synced(11_710, "a", "b", "n")
    scene.tick(14_000)
    assert scene.known().ended() == {}


def test_a_member_known_from_a_record_only_is_unknown_and_nothing_is_said_of_its_end() -> None:
    """The record names x with its timeout; it was never heard since the log began."""
    scene = Scene()
    scene.group_record(1_000, 3, {"a": 10_000, "x": 10_000})
    scene.generation = 3
    scene.heartbeats(5_000, 30_000, "a")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {}
    (row,) = health(known, "x")
    assert (row["status"], row["certainty"], row["session_deadline_at_ms"]) == ("unknown", "unknown", None)


def test_a_member_known_from_a_record_only_that_is_gone_was_so_by_the_end_of_the_join_phase() -> None:
    scene = Scene()
    scene.group_record(1_000, 3, {"a": 10_000, "x": 10_000})
    scene.generation = 3
    scene.heartbeats(5_000, 12_000, "a")
    scene.heartbeat(12_500, "a", error=27)
    scene.joined(12_700, 4, {"a": 12_600})
    scene.synced(12_710, "a")
    scene.tick(15_000)
    assert scene.known().ended() == {"x": (12_700, "unknown", "unknown")}


def test_a_rebalance_seen_from_the_middle_of_a_life_follows_the_generation_before_it() -> None:
    """Somebody whom the log does not name may have gone first: what is seen first is provisional."""
    scene = Scene()
    scene.generation = 6
    scene.heartbeat(5_000, "a", error=27)
    scene.joined(5_200, 7, {"a": 5_100, "b": 5_150})
    scene.synced(5_210, "a", "b")
    scene.tick(7_000)
    (row,) = scene.known().rebalances()
    assert (row["generation_before"], row["generation_after"]) == (6, 7)
    assert row["certainty"] in ("provisional", "unknown")


def test_the_end_of_a_static_member_is_provisional_while_a_restart_may_wait_unseen() -> None:
    """b's restart waits in a JoinGroup since 15,000, so it was replaced; its session seemed to end at 16,000."""
    scene = Scene()
    instances = {"a": "ia", "b": "ib"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), instances=instances)
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 14_000, "a", every=2_000)
    scene.heartbeat(17_000, "a", error=27)
    scene.tick(17_500)
    assert scene.known().ended()["b"] == (16_000, "session_expired", "provisional")
