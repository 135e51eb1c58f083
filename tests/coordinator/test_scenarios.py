"""Seventeen short histories of the classic protocol, each in the Kafka versions for which it holds. Times in ms."""

from __future__ import annotations

import pytest

from tests.coordinator.context import BOTH, GROUP, JAVA, OTHER, SCALA, Context, D, R, S


@pytest.mark.parametrize("version", BOTH)
def test_v1_one_member_from_its_first_request_to_its_eviction(version: str) -> None:
    group = Context(version)
    asked = group.join("A")
    assert (asked.error, asked.answer.member_id, group.state) == (79, "A", "Empty")
    joined = group.at(5).rejoin("A")
    assert (joined.waits, group.state) == (True, "PreparingRebalance")
    group.at(3_004)
    assert joined.waits
    group.at(3_005)
    assert (joined.answer.generation_id, joined.answer.leader, group.state) == (1, "A", "CompletingRebalance")
    synced = group.at(3_010).sync("A", 1, {"A": b"partitions"})
    assert (synced.answer.assignment, group.state) == (b"partitions", "Stable")
    assert group.at(6_010).heartbeat("A", 1) == 0
    group.at(16_009)
    assert (group.members, group.deadline("A")) == (["A"], 16_010)
    group.at(16_010)
    assert (group.state, group.generation, group.members) == ("Empty", 2, [])
    record = group.coordinator.record(GROUP)
    assert record is not None
    assert (record.written_at_ms, record.generation_id, record.members) == (16_010, 2, ())


@pytest.mark.parametrize("version", BOTH)
def test_v2_a_second_member_joins(version: str) -> None:
    group = Context(version).stable("A")
    start = group.now_ms
    assert group.at(start + 100).join("B").error == 79
    assert group.state == "Stable"
    second = group.at(start + 110).rejoin("B")
    assert (second.waits, group.state) == (True, "PreparingRebalance")
    assert group.at(start + 500).heartbeat("A", 1) == 27
    first = group.at(start + 800).rejoin("A")
    for request in (first, second):
        assert (request.answer.at_ms, request.answer.generation_id, request.answer.leader) == (start + 800, 2, "A")
    assert [member_id for member_id, _, _ in first.answer.members] == ["A", "B"]
    assert second.answer.members == ()
    waiting = group.at(start + 810).sync("B", 2)
    assert waiting.waits
    group.at(start + 820).sync("A", 2, {"A": b"a", "B": b"b"})
    assert (waiting.answer.assignment, waiting.answer.at_ms, group.state) == (b"b", start + 820, "Stable")


@pytest.mark.parametrize("version", BOTH)
def test_v3_a_follower_that_rejoins_unchanged_and_a_leader_that_rejoins(version: str) -> None:
    group = Context(version).stable("A", "B")
    unchanged = group.sleep(10).rejoin("B")
    assert (unchanged.error, unchanged.answer.generation_id, unchanged.answer.members) == (0, 1, ())
    assert group.state == "Stable"
    assert group.rejoin("A").waits
    assert group.state == "PreparingRebalance"


@pytest.mark.parametrize("version", BOTH)
def test_v4_a_ghost_holds_a_rebalance_up(version: str) -> None:
    group = Context(version).stable("A")
    start = group.now_ms
    group.at(start + 100).join("ghost", session=6_000)
    rejoined = group.at(start + 200).rejoin("A")
    group.at(start + 6_099)
    assert (rejoined.waits, group.view.pending) == (True, (("ghost", start + 6_100),))
    group.at(start + 6_100)
    assert (rejoined.answer.generation_id, rejoined.answer.at_ms) == (2, start + 6_100)
    assert group.happened("pending_expired") == [(start + 6_100, "ghost")]


@pytest.mark.parametrize("version", BOTH)
def test_a_rebalance_that_only_a_pending_id_holds_up_ends_in_the_instant_it_begins(version: str) -> None:
    """Its timer has no delay, as there is no member to ask for one: no time need pass, but the request comes first."""
    group = Context(version).stable("A")
    assert group.join("B").error == 79
    assert group.leave("A") == [0]
    assert (group.state, group.generation, group.view.join_deadline_at_ms) == ("PreparingRebalance", 1, group.now_ms)
    group.sleep(0)
    assert (group.state, group.generation, group.view.join_deadline_at_ms) == ("Empty", 2, -1)
    assert group.rejoin("B").waits


@pytest.mark.parametrize("version", BOTH)
def test_v5_a_pending_id_leaves_a_stable_group(version: str) -> None:
    group = Context(version).stable("A")
    group.join("B")
    assert group.sleep(10).leave("B") == [0]
    assert group.view.pending == ()
    assert group.state == ("Stable" if version in SCALA else "PreparingRebalance")


@pytest.mark.parametrize("version", BOTH)
def test_v6_a_member_that_heartbeats_and_never_syncs(version: str) -> None:
    group = Context(version).stable("A", rebalance=20_000)
    group.sleep(10).rejoin("A", rebalance=20_000)
    completed = group.now_ms
    assert (group.state, group.generation) == ("CompletingRebalance", 2)
    for _ in range(6):
        assert group.sleep(3_000).heartbeat("A", 2) == 0
    group.at(completed + 19_999)
    assert group.members == ["A"]
    group.at(completed + 20_000)
    assert (group.state, group.generation) == ("Empty", 3)
    assert group.happened("sync_timeout") == [(completed + 20_000, "A")]


@pytest.mark.parametrize("version", BOTH)
def test_v7_a_second_sync_while_stable(version: str) -> None:
    group = Context(version).stable("A")
    synced = group.now_ms
    assert group.sleep(4_000).sync("A", 1).error == 0
    assert group.deadline("A") == synced + S + (4_000 if version in SCALA else 0)


@pytest.mark.parametrize("version", BOTH)
def test_v8_the_initial_delay_is_extended_up_to_the_rebalance_timeout(version: str) -> None:
    group = Context(version)
    requests = []
    for at_ms, name in ((0, "A"), (2_000, "B"), (5_000, "C"), (8_000, "E"), (9_500, "F")):
        requests.append(group.at(at_ms).join(name, version=3, rebalance=10_000))
    group.at(9_999)
    assert all(request.waits for request in requests)
    group.at(10_000)
    assert {request.answer.generation_id for request in requests} == {1}


@pytest.mark.parametrize("version", BOTH)
def test_v8_two_joins_buy_two_delays(version: str) -> None:
    group = Context(version)
    group.join("A", version=3, rebalance=10_000)
    last = group.at(2_000).join("B", version=3, rebalance=10_000)
    group.at(5_999)
    assert last.waits
    group.at(6_000)
    assert last.answer.generation_id == 1


@pytest.mark.parametrize("version", BOTH)
def test_v8_a_restart_out_of_empty_is_extended_in_java_only(version: str) -> None:
    group = Context(version).stable("A", rebalance=10_000)
    group.leave("A")
    assert (group.state, group.generation) == ("Empty", 2)
    group.at(20_000).join("B", version=3, rebalance=10_000)
    last = group.at(21_000).join("C", version=3, rebalance=10_000)
    group.at(23_000)
    assert last.waits == (version in JAVA)
    group.at(26_000)
    assert last.answer.at_ms == (26_000 if version in JAVA else 23_000)


@pytest.mark.parametrize("version", ["3.9.2", *JAVA])
def test_v9_a_static_member_restarts_with_a_longer_session(version: str) -> None:
    group = Context(version)
    group.join("A", instance="a")
    group.at(D)
    group.sync("A", 1, {"A": b"a"})
    again = group.at(9_000).join("A2", instance="a", session=45_000)
    assert (again.error, again.answer.generation_id, again.answer.skip_assignment) == (0, 1, True)
    assert again.answer.leader == "A2"
    assert group.heartbeat("A", 1, "a") == 82
    assert group.deadline("A2") == 19_000
    assert group.member("A2").session_timeout_ms == 45_000
    group.at(19_000)
    assert group.state == "Empty"


@pytest.mark.parametrize("version", ["3.9.2", *JAVA])
def test_v10_static_members_hold_a_group_that_nobody_rejoins(version: str) -> None:
    group = Context(version).stable("L", "F", instances=True, session=1_000, rebalance=500)
    start = group.now_ms
    first = group.join("X", version=3, session=20_000, rebalance=500)
    group.at(start + 500)
    assert (first.answer.generation_id, first.answer.leader) == (2, "X")
    assert group.members == ["F", "L", "X"]
    # The dynamic member stays silent, a static one leaves: when the time is over nobody has rejoined.
    assert group.leave("F") == [0]
    assert (group.state, group.view.join_deadline_at_ms) == ("PreparingRebalance", start + 1_000)
    group.at(start + 1_000)
    assert (group.state, group.generation, group.members) == ("PreparingRebalance", 2, ["L"])
    assert group.happened("nobody_rejoined") == [(start + 1_000, "")]
    back = group.join("L2", instance="l", session=1_000, rebalance=500)
    assert (back.answer.generation_id, back.answer.leader) == (3, "L2")


@pytest.mark.parametrize("version", ["3.9.2", *JAVA])
def test_v11_a_replaced_id_left_among_those_that_have_not_synced(version: str) -> None:
    group = Context(version).stable("L", rebalance=20_000)
    follower = group.join("F", instance="f", rebalance=20_000)
    group.sleep(20).rejoin("L", rebalance=20_000)
    completed = group.now_ms
    assert follower.answer.generation_id == 2
    group.sync("L", 2, {"L": b"l", "F": b"f"})
    group.at(completed + 5_000)
    group.heartbeat("L", 2)
    assert group.join("F2", instance="f", rebalance=20_000).answer.generation_id == 2
    assert group.sync("F2", 2, instance="f").error == 0
    assert group.view.pending_sync == ("F",)
    for at_ms in (10_000, 15_000, 19_999):
        group.at(completed + at_ms)
        assert (group.heartbeat("L", 2), group.heartbeat("F2", 2, "f")) == (0, 0)
    group.at(completed + 20_000)
    assert (group.state, group.members) == ("PreparingRebalance", ["F2", "L"])


@pytest.mark.parametrize("version", BOTH)
def test_v12_a_batch_of_leaves_by_instance_id(version: str) -> None:
    group = Context(version).stable("A", "B", instances=True)
    assert group.leave(("", "a"), ("", "b"), ("", "c")) == [0, 0, 25]
    assert (group.state, group.generation) == ("Empty", 2)


@pytest.mark.parametrize("version", BOTH)
def test_v13_the_last_rejoiner_is_rejected_in_an_overfull_group(version: str) -> None:
    group = Context(version, group_max_size=2).stable("A", "B")
    group.reconfigure(group_max_size=1)
    first = group.sleep(10).rejoin("A")
    rejected = group.sleep(10).rejoin("B")
    assert (rejected.error, rejected.answer.member_id, group.members) == (81, "", ["A"])
    assert first.waits == (version in JAVA)


@pytest.mark.parametrize("version", BOTH)
def test_v14_who_waited_in_sync_starts_anew_when_a_rebalance_comes(version: str) -> None:
    group = Context(version)
    group.join("A", version=3)
    group.join("B", version=3)
    group.at(6_000)
    completed = group.now_ms
    waiting = group.sleep(1_000).sync("B", 1)
    group.sleep(3_000).join("C", version=3)
    assert (waiting.error, waiting.answer.at_ms) == (27, completed + 4_000)
    assert (group.deadline("B"), group.deadline("A")) == (completed + 14_000, completed + 10_000)


@pytest.mark.parametrize("version", JAVA)
def test_v15_five_minutes_of_a_new_member_against_a_rebalance_timeout_of_five_minutes(version: str) -> None:
    group = Context(version).stable("A")
    start = group.now_ms
    new = group.join("B", version=3)
    for at_ms in range(start + 3_000, start + R, 3_000):
        assert group.at(at_ms).heartbeat("A", 1) == 27
    group.at(start + R)
    # Both timers end now; the new member's was armed first.
    assert (new.error, new.answer.member_id, group.state, group.generation) == (25, "", "Empty", 2)


@pytest.mark.parametrize("version", BOTH)
def test_v16_an_offset_commit_counts(version: str) -> None:
    group = Context(version).stable("A")
    assert group.sleep(5_000).commit("A", 1) == 0
    committed = group.now_ms
    group.at(committed + S - 1)
    assert group.members == ["A"]
    group.at(committed + S)
    assert group.state == "Empty"


@pytest.mark.parametrize("version", BOTH)
def test_v17_a_static_member_restarts_in_its_first_join(version: str) -> None:
    group = Context(version, initial_rebalance_delay_ms=20_000)
    fenced = group.join("A", instance="a")
    again = group.at(1_000).join("A2", instance="a")
    assert (fenced.error, fenced.answer.member_id) == (82, "A")
    group.at(11_000)
    if version in SCALA:
        assert (again.error, again.answer.member_id) == (25, "")
    else:
        assert again.waits
        group.at(20_000)
        assert again.answer.generation_id == 1


@pytest.mark.parametrize("version", BOTH)
def test_a_changed_subscription_of_a_follower_starts_a_rebalance(version: str) -> None:
    group = Context(version).stable("A", "B")
    assert group.rejoin("B", protocols=OTHER).waits
    assert group.state == "PreparingRebalance"


@pytest.mark.parametrize("version", ["2.7.2", "3.9.2", *JAVA])
def test_static_members_that_ask_for_no_time_to_rejoin_do_not_stop_time(version: str) -> None:
    group = Context(version)
    group.join("L", version=5, instance="l", session=10_000, rebalance=0)
    group.join("F", version=5, instance="f", session=10_000, rebalance=500)
    while group.state != "CompletingRebalance":
        group.sleep(group.settings.initial_rebalance_delay_ms)
    group.sync_all(1)
    start = group.now_ms
    group.leave("F")
    group.at(start + 50)
    assert (group.state, group.members) == ("PreparingRebalance", ["L"])
    assert len(group.happened("nobody_rejoined")) > 1
    group.at(start + 10_000)
    assert [member_id for _, member_id in group.happened("session_expired")] == ["L"]
