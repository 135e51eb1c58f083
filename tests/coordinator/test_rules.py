"""Fifteen rules of the coordinator that are often misread, one test or more for each. Times in ms."""

from __future__ import annotations

import pytest

from tests.coordinator.context import BOTH, GROUP, JAVA, OTHER, RANGE, SCALA, Context, D, S

BOTH_PROTOCOLS = (("range", b"sub"), ("sticky", b"sub"))


class TestRule1WhatArmsASession:
    """Join completion, an answered waiting SyncGroup (27 too), Heartbeat, OffsetCommit, replacement, load."""

    @pytest.mark.parametrize("version", BOTH)
    def test_a_completed_join_phase_arms_everybody_also_an_absent_static_member(self, version: str) -> None:
        group = Context(version).stable("A", "B", instances=True, rebalance=2_000)
        group.sleep(100).rejoin("A", instance="a", rebalance=2_000)
        group.sleep(2_000)
        assert group.generation == 2
        assert [group.deadline(one) for one in ("A", "B")] == [group.now_ms + S] * 2

    @pytest.mark.parametrize("version", BOTH)
    def test_a_heartbeat_arms_in_every_state_that_has_members(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3)
        group.at(D)
        assert (group.sleep(10).heartbeat("A", 1), group.deadline("A")) == (0, group.now_ms + S)
        group.sync_all(1)
        assert (group.sleep(10).heartbeat("A", 1), group.deadline("A")) == (0, group.now_ms + S)
        group.join("B", version=3)
        assert (group.sleep(10).heartbeat("A", 1), group.deadline("A")) == (27, group.now_ms + S)

    @pytest.mark.parametrize("version", BOTH)
    def test_a_commit_arms_while_stable_or_preparing_and_not_while_completing(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3)
        group.at(D)
        assert (group.sleep(10).commit("A", 1), group.deadline("A")) == (27, D + S)
        group.sync_all(1)
        assert (group.sleep(10).commit("A", 1), group.deadline("A")) == (0, group.now_ms + S)
        group.join("B", version=3)
        assert (group.sleep(10).commit("A", 1), group.deadline("A")) == (0, group.now_ms + S)

    @pytest.mark.parametrize("version", BOTH)
    def test_a_rejoin_never_arms(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        before = group.deadline("B")
        assert group.sleep(1_000).rejoin("B").error == 0
        assert group.deadline("B") == before

    @pytest.mark.parametrize("version", BOTH)
    def test_neither_a_transactional_commit_nor_a_refusal_arms(self, version: str) -> None:
        group = Context(version).stable("A")
        before = group.deadline("A")
        group.sleep(1_000)
        assert group.txn_commit("A", 1) == 0
        assert group.heartbeat("A", 7) == 22
        assert group.commit("A", 7) == 22
        if version != "2.8.2":  # Before 3.0 an instance id that nobody holds is ignored.
            assert group.heartbeat("A", 1, instance="nobody's") == 25
        assert group.sync("A", 7).error == 22
        assert group.deadline("A") == before

    @pytest.mark.parametrize("version", BOTH)
    def test_a_load_arms_everybody(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        group.sleep(5_000).move()
        assert [group.deadline(one) for one in ("A", "B")] == [group.now_ms + S] * 2


class TestRule2ACommitCountsFromItsArrival:
    @pytest.mark.parametrize("version", BOTH)
    def test_also_when_nothing_of_it_is_stored(self, version: str) -> None:
        group = Context(version).stable("A")
        assert group.sleep(1_000).commit("A", 1, too_large=True) == 12
        assert group.deadline("A") == group.now_ms + S
        assert group.coordinator.committed_at_ms(GROUP) == {}


class TestRule3WaitingProtectsOnlyAtTheInstantOfExpiry:
    @pytest.mark.parametrize("version", BOTH)
    def test_a_rejoin_one_ms_before_the_deadline_survives_it(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        deadline = group.deadline("A")
        group.at(deadline - 5).heartbeat("B", 1)
        group.at(deadline - 1).rejoin("A")
        group.at(deadline + 1_000)
        assert group.member("A").waits_for_join
        assert group.deadline("A") == -1

    @pytest.mark.parametrize("version", BOTH)
    def test_at_the_deadline_the_order_decides(self, version: str) -> None:
        request_first = Context(version).stable("A")
        request_first.just_before(request_first.deadline("A")).heartbeat("A", 1)
        request_first.at(request_first.now_ms)
        assert request_first.members == ["A"]
        timer_first = Context(version).stable("A")
        assert timer_first.at(timer_first.deadline("A")).heartbeat("A", 1) == 25

    @pytest.mark.parametrize("version", BOTH)
    def test_a_new_member_is_removed_after_five_minutes_though_it_waits(self, version: str) -> None:
        group = Context(version).stable("A", rebalance=900_000)
        new = group.join("B", version=3, rebalance=900_000)
        start = group.now_ms
        for at_ms in range(start + 5_000, start + 300_000, 5_000):
            group.at(at_ms).heartbeat("A", 1)
        group.at(start + 299_999)
        assert new.waits
        group.at(start + 300_000)
        assert (new.error, group.members) == (25, ["A"])
        assert group.happened("join_timeout") == [(start + 300_000, "B")]


class TestRule4AReplacedStaticMember:
    @pytest.mark.parametrize("version", BOTH)
    def test_starts_with_the_old_session_timeout(self, version: str) -> None:
        group = Context(version).stable("A", instances=True)
        group.sleep(1_000).join("A2", instance="a", session=60_000)
        assert group.deadline("A2") == group.now_ms + S
        group.heartbeat("A2", 1, "a")
        longer = version != "2.8.2"  # Before 3.3.2 the timeouts of the first JoinGroup stay for good.
        assert group.deadline("A2") == group.now_ms + (60_000 if longer else S)

    @pytest.mark.parametrize("version", BOTH)
    def test_leaves_its_old_id_among_those_that_have_not_synced(self, version: str) -> None:
        group = Context(version).stable("L", instances=True, rebalance=20_000)
        group.join("F", instance="f", rebalance=20_000)
        group.rejoin("L", instance="l", rebalance=20_000)
        group.sync("L", 2, {})
        group.join("F2", instance="f", rebalance=20_000)
        group.sync("F2", 2, instance="f")
        assert (group.state, group.view.pending_sync) == ("Stable", ("F",))

    @pytest.mark.parametrize("version", BOTH)
    def test_answers_the_syncgroup_of_its_old_id_82(self, version: str) -> None:
        group = Context(version)
        group.join("L", version=3)
        group.join("F", instance="f")
        waiting = group.at(2 * D).sync("F", 1, instance="f")
        group.sleep(10).join("F2", instance="f")
        assert (waiting.error, waiting.answer.at_ms) == (82, 2 * D + 10)


class TestRule5PendingIdsBlock:
    @pytest.mark.parametrize("version", BOTH)
    def test_until_they_are_used(self, version: str) -> None:
        group = Context(version).stable("A")
        group.join("B")
        first = group.rejoin("A")
        assert first.waits
        group.sleep(50).rejoin("B")
        assert (first.answer.generation_id, group.members) == (2, ["A", "B"])

    @pytest.mark.parametrize("version", BOTH)
    def test_until_they_leave(self, version: str) -> None:
        group = Context(version).stable("A")
        group.join("B")
        first = group.rejoin("A")
        assert group.sleep(50).leave("B") == [0]
        assert first.answer.generation_id == 2

    @pytest.mark.parametrize("version", BOTH)
    def test_but_not_a_rebalance_timeout_nor_the_initial_delay(self, version: str) -> None:
        group = Context(version)
        first = group.join("A", version=3)
        group.join("ghost", session=600_000)
        group.at(D)
        assert first.answer.generation_id == 1
        assert group.view.pending == (("ghost", 600_000),)


class TestRule6TheTimersOfAPhaseAreFixed:
    @pytest.mark.parametrize("version", BOTH)
    def test_a_later_joiner_does_not_move_the_rebalance_timeout(self, version: str) -> None:
        group = Context(version).stable("A", rebalance=5_000)
        start = group.now_ms
        group.join("B", version=3, rebalance=7_000)
        assert group.view.join_deadline_at_ms == start + 7_000
        group.sleep(100).join("C", version=3, rebalance=100_000)
        assert group.view.join_deadline_at_ms == start + 7_000

    @pytest.mark.parametrize("version", BOTH)
    def test_static_members_survive_the_rebalance_timeout_but_not_the_sync_timeout(self, version: str) -> None:
        group = Context(version).stable("A", "B", instances=True, session=60_000, rebalance=5_000)
        group.sleep(10).rejoin("A", instance="a", session=60_000, rebalance=5_000)
        group.sleep(5_000)
        completed = group.now_ms
        assert (group.generation, group.members, group.view.sync_deadline_at_ms) == (2, ["A", "B"], completed + 5_000)
        group.sync("A", 2, {}, instance="a")
        group.at(completed + 5_000)
        assert (group.members, group.happened("sync_timeout")) == (["A"], [(completed + 5_000, "B")])

    @pytest.mark.parametrize("version", ["3.9.2", *JAVA])
    @pytest.mark.parametrize("asked_ms", [-1, 0])
    def test_no_time_is_the_least_a_rebalance_can_be_given(self, version: str, asked_ms: int) -> None:
        group = Context(version).stable("A")
        group.sleep(100).rejoin("A", rebalance=asked_ms)
        assert (group.state, group.view.sync_deadline_at_ms) == ("CompletingRebalance", group.now_ms)
        group.sleep(0)
        assert (group.state, group.generation, group.members) == ("Empty", 3, [])


class TestRule7TheRecordComesBeforeStable:
    @pytest.mark.parametrize("version", BOTH)
    def test_and_carries_the_instant_the_join_phase_completed(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3)
        group.at(D + 500).sync("A", 1, {"A": b"partitions"})
        record = group.coordinator.record(GROUP)
        assert record is not None
        assert (record.written_at_ms, record.state_since_at_ms, record.generation_id) == (D + 500, D, 1)
        assert [(one.member_id, one.subscription, one.assignment) for one in record.members] == [
            ("A", b"sub", b"partitions")
        ]

    @pytest.mark.parametrize("version", BOTH)
    def test_nothing_is_written_when_a_join_phase_completes_with_members(self, version: str) -> None:
        group = Context(version).stable("A")
        before = group.coordinator.record(GROUP)
        group.sleep(10).rejoin("A")
        assert (group.generation, group.coordinator.record(GROUP)) == (2, before)


class TestRule8Generations:
    @pytest.mark.parametrize("version", BOTH)
    def test_grow_when_a_group_becomes_empty_and_begin_anew_after_it_died(self, version: str) -> None:
        group = Context(version).stable("A")
        group.leave("A")
        assert (group.state, group.generation) == ("Empty", 2)
        group.at(600_000)
        assert group.gone
        group.stable("B")
        assert group.generation == 1


class TestRule9TheExtensionOfTheInitialDelay:
    @pytest.mark.parametrize("version", BOTH)
    def test_the_flag_survives_a_completion(self, version: str) -> None:
        """Set in the last window, which nothing can follow, it buys the next start from Empty a delay of its own."""
        group = Context(version)
        for at_ms, name in ((0, "A"), (2_000, "B"), (4_000, "C")):
            group.at(at_ms).join(name, version=3, rebalance=5_000)
        group.at(5_000)
        assert (group.state, group.generation) == ("CompletingRebalance", 1)
        group.leave("A", "B", "C")
        alone = group.at(20_000).join("E", version=3)
        group.at(20_000 + D)
        assert alone.waits
        group.at(20_000 + 2 * D)
        assert alone.answer.generation_id == 3

    @pytest.mark.parametrize("version", BOTH)
    def test_an_answer_79_alone_buys_nothing(self, version: str) -> None:
        group = Context(version)
        first = group.join("A", version=3)
        group.at(1_000).join("B")
        group.at(D)
        assert first.answer.generation_id == 1


class TestRule10LeavingPendingIds:
    @pytest.mark.parametrize("version", BOTH)
    def test_rebalance_a_stable_group_in_java_only(self, version: str) -> None:
        group = Context(version).stable("A")
        group.join("B")
        group.leave("B")
        assert group.state == ("PreparingRebalance" if version in JAVA else "Stable")


class TestRule11AHeartbeatToABrokerThatDoesNotLead:
    @pytest.mark.parametrize("version", BOTH)
    def test_does_nothing(self, version: str) -> None:
        group = Context(version).stable("A")
        group.unload()
        assert group.sleep(100).heartbeat("A", 1) == 16
        group.sleep(100).load()
        assert group.deadline("A") == group.now_ms + S


class TestRule12AfterAFailover:
    @pytest.mark.parametrize("version", BOTH)
    def test_the_last_written_generation_stands_and_is_stable(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        group.rejoin("A")
        rejoined = group.rejoin("B")
        assert (rejoined.answer.generation_id, group.state) == (2, "CompletingRebalance")
        group.move()
        assert (group.state, group.generation, group.view.leader) == ("Stable", 1, "A")
        assert group.heartbeat("A", 2) == 22
        assert group.view.sync_deadline_at_ms == -1

    @pytest.mark.parametrize("version", BOTH)
    def test_a_follower_with_two_protocols_differs_from_what_was_written(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3, protocols=BOTH_PROTOCOLS)
        group.join("B", version=3, protocols=BOTH_PROTOCOLS)
        group.at(6_000)
        group.sync_all(1)
        assert group.rejoin("B", protocols=BOTH_PROTOCOLS).error == 0
        group.move()
        assert group.rejoin("B", protocols=BOTH_PROTOCOLS).waits
        assert group.state == "PreparingRebalance"

    @pytest.mark.parametrize("version", BOTH)
    def test_who_waits_is_answered_16_and_pending_ids_are_lost(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        joining = group.rejoin("A")
        group.join("C")
        group.move()
        assert (joining.error, joining.answer.member_id) == (16, "A")
        assert group.rejoin("C").error == 25
        syncing = Context(version)
        syncing.join("A", version=3)
        syncing.join("B", version=3)
        waiting = syncing.at(6_000).sync("B", 1)
        syncing.unload()
        assert waiting.error == 16


class TestRule13AFullGroup:
    @pytest.mark.parametrize("version", BOTH)
    def test_rejects_even_a_restarting_static_member(self, version: str) -> None:
        group = Context(version, group_max_size=1).stable("A", instances=True)
        again = group.join("A2", instance="a")
        assert (again.error, again.answer.member_id, group.members) == (81, "", ["A"])

    @pytest.mark.parametrize("version", BOTH)
    def test_keeps_who_waits_already(self, version: str) -> None:
        group = Context(version, group_max_size=1)
        older = group.join("A", version=3)
        newer = group.rejoin("A")
        group.at(D)
        assert (older.waits, newer.answer.generation_id) == (True, 1)


class TestRule14UnchangedMeansTheSameBytesInTheSameOrder:
    @pytest.mark.parametrize("version", BOTH)
    @pytest.mark.parametrize(
        ("protocols", "same"),
        [(BOTH_PROTOCOLS, True), (BOTH_PROTOCOLS[::-1], False), (RANGE, False), (OTHER, False)],
    )
    def test_for_a_follower(self, version: str, protocols: tuple[tuple[str, bytes], ...], same: bool) -> None:
        group = Context(version)
        group.join("A", version=3, protocols=BOTH_PROTOCOLS)
        group.join("B", version=3, protocols=BOTH_PROTOCOLS)
        group.at(6_000)
        group.sync_all(1)
        assert group.rejoin("B", protocols=protocols).waits != same


class TestRule15WhatWaitsAndWhatNeverEnds:
    @pytest.mark.parametrize("version", BOTH)
    def test_an_older_join_of_the_same_member_is_never_answered(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        older = group.rejoin("A")
        newer = group.sleep(10).rejoin("A")
        group.sleep(10).rejoin("B")
        assert (newer.answer.generation_id, older.waits) == (2, True)

    @pytest.mark.parametrize("version", BOTH)
    def test_the_waiting_sync_of_a_removed_member_is_never_answered(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3)
        group.join("B", version=3)
        waiting = group.at(6_000).sync("B", 1)
        assert group.leave("B") == [0]
        assert waiting.waits

    @pytest.mark.parametrize("version", SCALA)
    def test_one_batch_of_leaves_answers_the_later_entries_syncs_in_scala(self, version: str) -> None:
        group = Context(version)
        for name in ("A", "B", "C"):
            group.join(name, version=3)
        group.at(6_000)
        second, third = group.sync("B", 1), group.sync("C", 1)
        assert group.leave("B", "C") == [0, 0]
        assert (second.waits, third.error) == (True, 27)

    @pytest.mark.parametrize("version", JAVA)
    def test_one_batch_of_leaves_answers_none_of_its_syncs_in_java(self, version: str) -> None:
        group = Context(version)
        for name in ("A", "B", "C"):
            group.join(name, version=3)
        group.at(6_000)
        second, third = group.sync("B", 1), group.sync("C", 1)
        assert group.leave("B", "C") == [0, 0]
        assert (second.waits, third.waits) == (True, True)
