"""Rules that runs of the simulated fleet (`tests.truth.fleet`) led to, each in the shortest history that shows it."""

from __future__ import annotations

import pytest

from kardia.events import Kind
from tests.observe.test_scenes import stable
from tests.support.scene import JAVA_CONNECTION, START, Known, Scene
from tests.support.stories import named


def sent_back(scene: Scene, at: float, member: str, since: float) -> None:
    """A SyncGroup that waited and is answered 27."""
    scene._event(Kind.SYNC, at, since=since, member_id=member, generation_id=scene.generation, error_code=27, detail={})


def group_rows(known: Known) -> list[tuple[int, str, str, str]]:
    """(at, from, to, cause) of the group."""
    return [
        (row["at_ms"] - int(START), row["from_state"], row["to_state"], row["cause"])
        for row in named("transitions", known.rows["transitions"])
        if row["entity"] == "group"
    ]


def test_a_leave_in_the_instant_of_a_join_burst_came_before_it_if_its_member_is_not_listed() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.heartbeat(9_000, "a", error=27)
    scene.leave(12_000, "b", reason="the consumer is being closed")
    scene.joined(12_000, 2, {"a": 9_100, "c": 8_000}, first=("c",))
    scene.synced(12_010, "a", "c")
    scene.tick(14_000)
    known = scene.known()
    assert known.ended() == {"b": (12_000, "left", "exact")}
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2]


def test_a_leave_in_the_instant_of_a_join_burst_came_after_it_if_its_member_is_listed() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.leave(12_000, "b", reason="the consumer is being closed")
    scene.joined(12_000, 2, {"a": 9_100, "b": 9_200, "c": 8_000}, first=("c",))
    scene.joined(12_500, 3, {"a": 12_100, "c": 12_200})
    scene.synced(12_510, "a", "c")
    scene.tick(14_000)
    known = scene.known()
    assert known.ended()["b"] == (12_000, "left", "exact")
    assert [row["trigger"] for row in known.rebalances()] == ["member_joined", "member_joined", "member_left"]


def test_a_group_whose_members_all_died_became_empty_before_somebody_came_back() -> None:
    """Generation 2 was made when the last session ran out; the newcomer's is 3."""
    scene = stable("a", "b")
    scene.heartbeat(5_000, "a")
    scene.heartbeat(6_000, "b")
    scene.joined(30_000, 3, {"n": 30_000}, first=("n",))
    scene.synced(30_010, "n")
    scene.tick(32_000)
    known = scene.known()
    assert known.ended() == {"a": (15_000, "session_expired", "exact"), "b": (16_000, "session_expired", "exact")}
    assert (16_000, "Empty") in known.states()


def test_of_several_silent_followers_the_one_that_is_not_sent_back_was_evicted() -> None:
    """A waiting SyncGroup protects; when the rebalance begins all that wait are answered 27 in one instant."""
    scene = Scene()
    scene.joined(
        3_000,
        1,
        {"a": 0.0, "b": 1.0, "c": 2.0},
        first=("a", "b", "c"),
        session_ms={"a": 30_000, "b": 10_000, "c": 10_000},
    )
    sent_back(scene, 13_001, "b", 3_100)
    scene.joined(13_200, 2, {"a": 13_100, "b": 13_150})
    scene.synced(13_210, "a", "b")
    scene.tick(16_000)
    known = scene.known()
    assert known.ended() == {"c": (13_001, "session_expired", "exact")}
    assert known.rebalances()[-1]["trigger_member_id"] == "c"
    assert known.rebalances()[-1]["caused_by_started_at_ms"] == known.rebalances()[0]["started_at_ms"]


def test_a_member_that_never_syncs_is_removed_when_the_rebalance_timeout_is_over() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=30_000, rebalance_ms=9_000)
    scene.synced(3_010, "a")
    scene.heartbeats(6_000, 12_000, "a")
    scene.heartbeat(12_500, "a", error=27)
    scene.joined(12_600, 2, {"a": 12_550})
    scene.synced(12_610, "a")
    scene.tick(15_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (12_000, "sync_timeout")
    assert known.rebalances()[-1]["trigger"] == "sync_timeout"


def test_nobody_rejoined_in_time_and_the_group_is_empty_when_the_rebalance_timeout_is_over() -> None:
    scene = Scene()
    scene.joined(
        3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms={"a": 6_000, "b": 30_000}, rebalance_ms=9_000
    )
    scene.synced(3_010, "a", "b")
    scene.tick(22_000)
    known = scene.known()
    assert known.ended()["a"][:2] == (9_010, "session_expired")
    assert known.ended()["b"][:2] == (18_010, "rebalance_timeout")
    assert known.states()[-1] == (18_010, "Empty")


def test_an_earlier_start_found_later_corrects_the_history_of_states() -> None:
    """A newcomer waited unseen since 14,000; first an eviction was seen, 2 s after."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(13_500, "a")
    scene.heartbeat(16_500, "a", error=27)
    scene.joined(17_000, 2, {"a": 16_900, "n": 14_000}, first=("n",))
    scene.synced(17_010, "a", "n")
    scene.tick(19_000)
    known = scene.known()
    assert (14_000, "Stable", "PreparingRebalance", "member_joined") in group_rows(known)


def test_a_confirmed_eviction_is_confirmed_in_the_transitions_too() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 16_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(17_000, "a", error=27)
    scene.joined(17_100, 2, {"a": 17_050})
    scene.synced(17_110, "a")
    scene.tick(20_000)
    rows = named("transitions", scene.known().rows["transitions"])
    ends = [row for row in rows if row["member_id"] == "b" and row["to_state"] == "Absent"]
    assert [row["at_ms"] - START for row in ends] == [16_000] * len(ends)
    assert ends[-1]["certainty"] == "exact"


def test_a_broker_that_refused_a_group_and_answers_again_has_loaded_it() -> None:
    """Sessions start anew at the load: the silent member's deadline moves, and the load is in the transitions."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(9_000, "a", error=16)
    scene.heartbeat(9_500, "a")
    for at in range(12_000, 24_000, 3_000):
        scene.heartbeat(at, "a", error=0 if at < 19_500 else 27)
    scene.tick(26_000)
    known = scene.known()
    assert (9_500, "Stable", "Stable", "coordinator_loaded") in group_rows(known)
    assert known.ended()["b"][:2] == (19_500, "session_expired")


def test_a_group_goes_on_in_the_log_of_the_broker_that_it_moved_to() -> None:
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    scene.tick(6_500)
    scene.source, scene.connection = "10.0.0.2:9092/request/one", JAVA_CONNECTION.replace("10.0.0.1", "10.0.0.2")
    for at in range(9_000, 24_000, 3_000):
        scene.heartbeat(at, "a", error=0 if at < 19_000 else 27)
    scene.tick(26_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (19_000, "session_expired")
    assert (9_000, "Stable", "Stable", "coordinator_loaded") in group_rows(known)


def test_what_a_rebalance_cost_is_counted_in_seconds_of_members() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.joined(15_000, 2, {"a": 9_100, "b": 14_900, "n": 8_000}, first=("n",))
    scene.synced(15_000, "a", "b", "n")
    scene.tick(17_000)
    assert scene.known().rebalances()[-1]["member_seconds_lost"] == 21


def test_what_is_handled_when_the_wait_for_a_join_burst_ends_is_not_forgotten() -> None:
    """The timer of that instant comes first, and takes up what was put aside until then."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"))
    scene.synced(3_004, "a", "b")
    scene.tick(5_000)
    known = scene.known()
    assert known.states()[-1] == (3_004, "Stable")
    assert [row["completed_at_ms"] for row in known.rebalances()] == [START + 3_004]


def never_synced(until: float) -> Scene:
    """The only member of generation 1 of 3,000 has 9 s to sync, a session of 30 s, and is not heard again."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0}, session_ms=30_000, rebalance_ms=9_000, first=("a",))
    scene.tick(until)
    return scene


def test_a_single_member_that_never_syncs_is_gone_when_nobody_can_have_joined_unseen() -> None:
    """A static newcomer may wait from before 12,000 on, unseen, for as long as it likes, but not for who is gone: the
    session of a is over at 33,000."""
    assert never_synced(32_900).known().ended() == {}
    assert never_synced(34_500).known().ended() == {"a": (12_000, "sync_timeout", "inferred")}
    assert never_synced(34_500).known().states()[-1] == (12_000, "Empty")


def test_who_joined_unseen_and_may_wait_longer_than_anybody_known_is_waited_for() -> None:
    """n, static, has 20 s: it joins at 10,000, before the time of a for SyncGroup is over at 12,000."""
    scene = never_synced(29_000)
    instances = {"n": "i-n"}
    scene.joined(30_000, 2, {"n": 10_000}, session_ms=30_000, rebalance_ms=20_000, first=("n",), instances=instances)
    scene.synced(30_010, "n")
    scene.tick(33_000)
    known = scene.known()
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2]
    assert known.ended()["a"][:2] == (30_000, "rebalance_timeout")


def test_who_joined_unseen_before_the_time_for_sync_was_over_has_saved_its_member() -> None:
    scene = never_synced(12_500)
    scene.joined(20_000, 2, {"a": 19_000, "n": 11_000}, session_ms=30_000, rebalance_ms=9_000, first=("n",))
    scene.synced(20_010, "a", "n")
    scene.tick(22_000)
    assert scene.known().ended() == {}


def replaced_before_it_synced(*heard: str) -> Scene:
    """b, static, is replaced in generation 1 before its old id has sent SyncGroup; the time for that is over at
    12,000. Nobody is heard after 9,000 but a stranger and who is `heard`, as in a Stable group."""
    scene = Scene()
    instances = {"b": "i-b"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, session_ms=30_000, rebalance_ms=9_000, instances=instances)
    scene.synced(3_010, "a")
    scene.replaced(6_000, "b2", "i-b", session_ms=30_000, rebalance_ms=9_000)
    scene.synced(6_010, "b2")
    scene.heartbeats(6_020, 9_100, "a", "b2")
    for at in range(9_500, 23_000, 500):
        scene.fetch(at, "stranger")
        for member in heard:
            scene.heartbeat(at, member)
    return scene


def test_an_old_id_that_never_synced_begins_a_rebalance_that_nobody_is_told_of() -> None:
    """Who is dynamic has the time to rejoin from then on, whatever is left of its session."""
    scene = replaced_before_it_synced()
    scene.tick(22_900)
    known = scene.known()
    assert known.states()[-1] == (12_000, "PreparingRebalance")
    assert known.ended()["a"] == (21_000, "rebalance_timeout", "provisional")
    assert "b2" not in known.ended()


def test_but_not_while_its_members_are_answered_as_in_a_stable_group() -> None:
    scene = replaced_before_it_synced("a", "b2")
    scene.tick(22_900)
    known = scene.known()
    assert known.states()[-1] == (3_010, "Stable")
    assert set(known.ended()) == {"b"}


def test_all_who_did_not_sync_in_time_go_together() -> None:
    scene = Scene()
    members = {"a": 0.0, "b": 0.0, "c": 0.0}
    scene.joined(3_000, 1, members, session_ms=30_000, rebalance_ms=9_000, first=tuple(members))
    scene.synced(3_010, "a")
    scene.heartbeats(6_000, 11_000, "a")
    scene.heartbeat(36_000, "a", error=27)
    scene.joined(36_100, 2, {"a": 36_050}, session_ms=30_000, rebalance_ms=9_000)
    scene.synced(36_110, "a")
    scene.tick(38_000)
    ended = scene.known().ended()
    assert {member: (at, cause) for member, (at, cause, _) in ended.items()} == {
        "b": (12_000, "sync_timeout"),
        "c": (12_000, "sync_timeout"),
    }
    assert all(certainty != "exact" for _, _, certainty in ended.values())


def test_two_timers_of_one_instant_are_not_told_apart() -> None:
    """b is not listed at 15,000: its session ended then, and so did the time to rejoin."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, session_ms=10_000, rebalance_ms=9_000, first=("a", "b"))
    scene.synced(3_010, "a", "b")
    scene.heartbeat(5_000, "a")
    scene.heartbeat(5_000, "b")
    scene.heartbeat(8_000, "a", error=27)
    scene.joined(15_000, 2, {"a": 8_100, "n": 6_000}, session_ms=10_000, rebalance_ms=9_000, first=("n",))
    scene.synced(15_010, "a", "n")
    scene.tick(17_000)
    assert scene.known().ended() == {"b": (15_000, "rebalance_timeout", "provisional")}


def test_a_commit_sent_before_a_leave_counts_before_it_although_its_stamp_says_otherwise() -> None:
    """One connection is served one request at a time; with the last commit of a close it was no poll timeout."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), rebalance_ms=9_000)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(4_000, 12_000, "a", "b", every=2_000)
    scene.commit(12_100.6, "a", 7)
    scene.leave(12_100.2, "a")
    scene.tick(12_500)
    assert scene.known().ended()["a"][1] == "left"


def test_a_group_deleted_right_after_it_became_empty_lost_its_members_before_that() -> None:
    """The record of the empty group waits a moment for what comes late; the deletion does not overtake it."""
    for by_request in (False, True):
        scene = stable("a", "b")
        scene.heartbeats(6_000, 9_001, "a", "b")
        scene.empty_record(19_000, 2)
        if by_request:
            scene._event(Kind.DELETE_GROUPS, 19_020)
        scene.deleted(19_021)
        scene.tick(20_000)
        known = scene.known()
        assert {cause for _, cause, _ in known.ended().values()} == {"session_expired"}
        assert [row["generation_after"] for row in known.rebalances()] == [1, 2]
        assert known.states()[-1][1] == "Dead"


def test_a_rebalance_is_complete_when_its_assignment_is_stored_and_the_group_stable() -> None:
    """The leader's SyncGroup was handled at 3,004 and answered at 3,011, when its record was written."""
    for coordinator in ("java", "scala"):
        scene = Scene(coordinator=coordinator)
        scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"))
        scene.synced(3_011, "a", "b", since=3_004)
        scene.tick(5_000)
        known = scene.known()
        assert [row["completed_at_ms"] for row in known.rebalances()] == [START + 3_011]
        assert known.states()[-1] == (3_011, "Stable")


def test_of_two_who_left_in_one_instant_neither_is_sure_to_have_begun_the_rebalance() -> None:
    """Their lines have one stamp, and durations cut to 1 µs: the order of the two is lost."""
    scene = stable("a", "b", "c")
    scene.heartbeats(6_000, 7_000, "a", "b", "c")
    scene.leave(9_000.2, "b", reason="the consumer is being closed")
    scene.leave(9_000.9, "c", reason="the consumer is being closed")
    scene.heartbeat(9_500, "a", error=27)
    scene.joined(9_600, 2, {"a": 9_600})
    scene.synced(9_610, "a")
    scene.tick(12_000)
    known = scene.known()
    assert [(row["trigger"], row["certainty"]) for row in known.rebalances()][-1] == ("member_left", "provisional")
    assert [known.ended()[member][1:] for member in ("b", "c")] == [("left", "exact")] * 2


def removed_while_waiting(scene: Scene, at: float, member: str, since: float, *, leave_first: bool) -> None:
    """An admin removes a member that waits in a JoinGroup: both are answered in one instant, in either order."""
    for leaves in (leave_first, not leave_first):
        if leaves:
            scene.leave(at, member, reason="member was removed by an admin", client="adminclient-1")
        else:
            detail = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
            scene._event(Kind.JOIN, at, since=since, member_id=member, error_code=25, detail=detail)


def test_a_member_that_waits_and_is_removed_was_not_evicted_at_its_deadline() -> None:
    """Nobody saw it wait: its deadline passed at 17,000, and it was a member until 25,000."""
    for leave_first in (True, False):
        scene = stable("a", "b")
        scene.heartbeats(6_000, 7_000, "a", "b")
        scene.heartbeat(7_000, "b", error=27)
        scene.heartbeats(7_500, 25_000, "a", error=27)
        removed_while_waiting(scene, 25_000, "b", 7_100, leave_first=leave_first)
        scene.tick(27_000)
        known = scene.known()
        assert known.ended() == {"b": (25_000, "removed_by_admin", "exact")}
        assert {row["end_cause"] for row in named("members", known.rows["members"])} == {None, "removed_by_admin"}


def test_somebody_new_that_is_removed_while_it_waits_was_a_member_and_began_the_rebalance() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 9_500, "a", "b")
    scene.member_id_required(9_600, "n")
    removed_while_waiting(scene, 10_000, "n", 9_605, leave_first=True)
    scene.heartbeat(10_100, "b", error=27)
    scene.joined(10_200, 2, {"a": 10_150, "b": 10_200})
    scene.synced(10_210, "a", "b")
    scene.tick(12_000)
    known = scene.known()
    assert known.ended() == {"n": (10_000, "removed_by_admin", "exact")}
    last = known.rebalances()[-1]
    assert (last["started_at_ms"], last["trigger"], last["trigger_member_id"]) == (START + 9_605, "member_joined", "n")


def test_a_static_member_that_has_not_synced_may_be_replaced_already() -> None:
    """Its next process waits in a JoinGroup, unseen; once it is heard again it is there."""
    scene, instances = Scene(), {"b": "i-b"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, instances=instances)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 12_001, "a", "b")
    scene.joined(12_500, 2, {"a": 12_100.0, "b": 12_400.0}, instances=instances)
    scene.fetch(13_600, "somebody")
    scene.tick(13_600)
    scene.synced(13_700, "a", "b")
    scene.heartbeats(13_750, 13_751, "a", "b")
    scene.fetch(15_800, "somebody")
    scene.tick(15_800)
    rows = named("health", scene.known_step_by_step().rows["health"])
    said = [(row["group_state"], row["certainty"]) for row in rows if row["member_id"] == "b"]
    assert said == [("CompletingRebalance", "provisional"), ("Stable", "inferred")]


@pytest.mark.parametrize(("other", "certainty"), [(False, "inferred"), (True, "provisional")])
def test_who_has_not_synced_beside_an_old_id_may_be_the_one_that_is_named(other: bool, certainty: str) -> None:
    """The coordinator removes all who have not synced in one instant; b, which is one of them, is replaced by then. c,
    which is another, comes again in the next generation."""
    scene, again = Scene(), {"c2": 65_070.0} if other else {}
    instances = {"b": "i-b", "c": "i-c"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0} | ({"c": 1.0} if other else {}), session_ms=90_000, instances=instances)
    scene.synced(3_010, "a")
    scene.replaced(6_000, "b2", "i-b", session_ms=90_000)
    scene.synced(6_010, "b2")
    scene.heartbeats(6_020, 61_000, "a", "b2")
    scene.fetch(64_500, "somebody")
    scene.tick(64_500)
    scene.heartbeats(65_020, 65_021, "a", "b2", error=27)
    members = {"a": 65_050.0, "b2": 65_060.0} | again
    instances = {"b2": "i-b", "c2": "i-c"}
    scene.joined(65_100, 2, members, session_ms=90_000, instances=instances, first=("c2",))
    scene.synced(65_110, *members)
    scene.tick(67_000)
    last = scene.known().rebalances()[-1]
    assert (last["trigger"], last["certainty"]) == ("sync_timeout", certainty)
