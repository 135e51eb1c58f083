"""The table of releases: its shape, and one scene for each row, on both sides of the release that brought it."""

from __future__ import annotations

import pytest

from kardia.coordinator.classic.behaviour import SWITCHES, Behaviour, behaviour_of
from kardia.kafka.releases import version_of
from kardia.kafka.sessions import Coordinator
from tests.coordinator.context import EVERY, GROUP, OTHER, Context, D, S


class TestTheTable:
    def test_has_a_row_for_every_flag_and_no_other(self) -> None:
        flags = [name for name in Behaviour._fields if name not in {"kafka_version", "coordinator"}]
        assert flags == list(SWITCHES)

    @pytest.mark.parametrize("name", sorted(SWITCHES))
    def test_every_row_distinguishes_releases_and_says_where_it_is_from(self, name: str) -> None:
        switch = SWITCHES[name]
        assert len({switch.holds(version_of(version)) for version in EVERY}) == 2
        assert switch.meaning
        assert switch.source
        assert all(span.first < span.end for span in switch.spans)

    def test_reads_releases(self) -> None:
        assert (version_of("3.9.2"), version_of("4.1"), version_of("3.9.0-rc1")) == ((3, 9, 2), (4, 1, 0), (3, 9, 0))
        assert behaviour_of("3.9.2").coordinator is Coordinator.SCALA
        assert behaviour_of("4.0.0").coordinator is Coordinator.JAVA

    @pytest.mark.parametrize("text", ["", "trunk", "3.x", "3.9.2.1"])
    def test_refuses_what_is_no_release(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"expected numbers with dots such as 3\.9\.2"):
            version_of(text)

    def test_refuses_what_is_too_old(self) -> None:
        with pytest.raises(ValueError, match=r"expected 2\.0 or later"):
            behaviour_of("1.1.1")


def both(before: str, after: str) -> pytest.MarkDecorator:
    """The release before a row and the first with it."""
    return pytest.mark.parametrize(("version", "new"), [(before, False), (after, True)])


@both("2.1.0", "2.1.1")
def test_a_new_member_has_five_minutes(version: str, new: bool) -> None:
    group = Context(version).stable("A", rebalance=900_000)
    joining = group.join("B", version=3, rebalance=900_000)
    assert group.deadline("B") == (group.now_ms + 300_000 if new else -1)
    group.leave("B")
    assert joining.waits != new  # Removed while it waits: answered 25, before never.


@both("2.1.1", "2.2.0")
def test_member_ids_are_required(version: str, new: bool) -> None:
    group = Context(version)
    joining = group.join("A", version=4)
    assert (group.view.pending != ()) == new
    assert joining.waits != new


@both("2.1.1", "2.2.0")
def test_groups_have_a_size(version: str, new: bool) -> None:
    group = Context(version, group_max_size=1).stable("A")
    joining = group.join("B", version=3)
    assert joining.waits != new


@both("2.2.2", "2.3.0")
def test_instance_ids_mean_something(version: str, new: bool) -> None:
    group = Context(version)
    group.join("A", version=3, instance="a")
    group.at(D)
    group.sync_all(1)
    assert group.member("A").group_instance_id == ("a" if new else None)
    assert group.join("A2", version=3, instance="a").waits != new


@both("2.2.2", "2.3.0")
def test_a_heartbeat_while_completing_is_checked(version: str, new: bool) -> None:
    group = Context(version)
    group.join("A", version=3)
    assert group.at(D).heartbeat("A", 7) == (22 if new else 27)


@both("2.3.1", "2.4.0")
def test_a_commit_while_completing_is_checked(version: str, new: bool) -> None:
    group = Context(version)
    group.join("A", version=3)
    assert group.at(D).commit("stranger", 1) == (25 if new else 27)
    assert group.commit("A", 7) == (22 if new else 27)


@both("2.4.1", "2.5.0")
def test_a_static_member_replaced_while_completing(version: str, new: bool) -> None:
    group = Context(version)
    group.join("A", instance="a", version=5)
    again = group.at(D).join("A2", instance="a", version=5)
    if new:
        # Alone, it is the whole next generation at once.
        assert (again.answer.generation_id, group.state) == (2, "CompletingRebalance")
    else:
        assert (again.answer.generation_id, again.answer.leader, group.state) == (1, "A", "CompletingRebalance")


@both("2.4.1", "2.5.0")
def test_a_new_member_that_is_replaced_can_expire_by_its_session(version: str, new: bool) -> None:
    group = Context(version, initial_rebalance_delay_ms=20_000)
    group.join("A", instance="a", version=5)
    again = group.at(1_000).join("A2", instance="a", version=5)
    group.at(1_000 + S)
    assert again.waits != new


@both("2.4.1", "2.5.0")
def test_a_transactional_commit_is_checked(version: str, new: bool) -> None:
    group = Context(version).stable("A")
    assert group.txn_commit("A", 7) == (22 if new else 0)
    assert group.txn_commit("stranger", 1) == (25 if new else 0)


@both("2.4.1", "2.5.0")
def test_a_sync_that_names_another_protocol_is_refused(version: str, new: bool) -> None:
    group = Context(version).stable("A")
    assert group.sync("A", 1, protocol_name="sticky").error == (23 if new else 0)


@both("2.5.1", "2.6.0")
def test_the_size_of_a_group_counts_pending_ids_that_join(version: str, new: bool) -> None:
    group = Context(version, group_max_size=1)
    group.join("A")
    group.join("B")
    group.rejoin("A")
    assert group.rejoin("B").waits != new


@both("2.6.0", "2.6.1")
def test_a_heartbeat_while_completing_arms(version: str, new: bool) -> None:
    group = Context(version)
    group.join("A", version=3)
    group.at(D + 1_000)
    assert group.heartbeat("A", 1) == (0 if new else 27)
    assert group.deadline("A") == D + S + (1_000 if new else 0)


@both("2.6.0", "2.6.1")
def test_a_static_member_replaced_while_stable_is_recorded(version: str, new: bool) -> None:
    group = Context(version).stable("A", instances=True)
    again = group.join("A2", instance="a", version=5)
    assert (again.answer.generation_id, again.answer.leader) == (1, "A")
    record = group.coordinator.record(GROUP)
    assert record is not None
    assert [one.member_id for one in record.members] == ["A2" if new else "A"]


@both("2.6.0", "2.6.1")
def test_a_static_member_replaced_with_another_protocol_rebalances(version: str, new: bool) -> None:
    group = Context(version)
    two = (("range", b"r"), ("sticky", b"s"))
    group.join("A", instance="a", version=5, protocols=two)
    group.at(D)
    group.sync_all(1)
    group.join("A2", instance="a", version=5, protocols=two[::-1])
    assert (group.state, group.generation) == (("CompletingRebalance", 2) if new else ("Stable", 1))


@both("2.6.0", "2.6.1")
def test_the_instant_of_the_last_change_is_loaded(version: str, new: bool) -> None:
    """Offsets of an Empty group count from that instant, or from their own commit when it is lost."""
    group = Context(version, offsets_retention_ms=1_000_000)
    group.stable("A")
    group.commit("A", 1)
    for _ in range(100):
        group.sleep(5_000).heartbeat("A", 1)
    group.leave("A")
    group.move()
    group.at(1_200_000)
    assert group.gone != new


@both("2.8.0", "2.8.1")
def test_members_that_never_sync_are_removed(version: str, new: bool) -> None:
    group = Context(version).stable("A", rebalance=5_000)
    group.sleep(10).rejoin("A", rebalance=5_000)
    assert (group.view.sync_deadline_at_ms >= 0) == new
    group.sleep(5_000)
    assert (group.members == []) == new


@pytest.mark.parametrize(("version", "rebalances"), [("2.8.1", False), ("2.8.2", False), ("3.0.0", True)])
def test_a_replaced_id_at_the_sync_timeout(version: str, rebalances: bool) -> None:
    group = Context(version).stable("L", rebalance=5_000)
    group.join("F", instance="f", version=5, rebalance=5_000)
    group.rejoin("L", rebalance=5_000)
    group.sync("L", 2, {})
    group.join("F2", instance="f", version=5, rebalance=5_000)
    group.sync("F2", 2, instance="f")
    group.sleep(5_000)
    assert group.members == ["F2", "L"]
    assert group.state == ("PreparingRebalance" if rebalances else "Stable")


@both("2.7.2", "2.8.0")
def test_a_rejection_forgets_the_instance_id_no_longer(version: str, new: bool) -> None:
    group = Context(version, group_max_size=1).stable("A", instances=True)
    assert group.join("A2", instance="a", version=5).error == 81
    assert group.leave(("", "a")) == [0 if new else 25]


@both("2.8.2", "3.0.0")
def test_an_instance_id_that_nobody_holds_is_refused(version: str, new: bool) -> None:
    group = Context(version).stable("A")
    expected = 25 if new else 0
    assert group.heartbeat("A", 1, instance="x") == expected
    assert group.commit("A", 1, instance="x") == expected
    assert group.sync("A", 1, instance="x").error == expected
    assert group.leave(("A", "x")) == [expected]


@both("2.8.2", "3.0.0")
def test_a_pending_id_leaves_under_an_instance_id(version: str, new: bool) -> None:
    group = Context(version).stable("A", "B", instances=True)
    group.join("C")
    if new:
        assert group.leave(("A", "a"), ("C", "x"), ("B", "b")) == [0, 0, 0]
        assert group.members == []
    else:
        with pytest.raises(AssertionError):  # The request fails as a whole, but who was named first has left.
            group.leave(("A", "a"), ("C", "x"), ("B", "b"))
        assert (group.members, group.view.pending != ()) == (["B"], True)
        assert group.leave(("C", "b")) == [82]


@pytest.mark.parametrize(("version", "error"), [("2.8.2", 0), ("3.0.0", 25), ("3.2.3", 25), ("3.3.0", 0), ("4.1.2", 0)])
def test_a_commit_without_generation_to_an_empty_group(version: str, error: int) -> None:
    group = Context(version)
    group.commit()
    assert group.commit(instance="x") == error


@both("3.1.1", "3.2.0")
def test_a_replaced_leader_is_told_to_skip_the_assignment(version: str, new: bool) -> None:
    group = Context(version).stable("A", instances=True)
    again = group.join("A2", instance="a", version=9)
    assert (again.answer.skip_assignment, again.answer.leader) == (new, "A2" if new else "A")
    assert (again.answer.members != ()) == new


@both("3.3.1", "3.3.2")
def test_a_rejoin_stores_its_timeouts(version: str, new: bool) -> None:
    group = Context(version).stable("A")
    group.rejoin("A", session=20_000, rebalance=40_000)
    member = group.member("A")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == ((20_000, 40_000) if new else (S, 300_000))


class TestScalaAndJava:
    """What 4.0 changed, beyond what the scenarios show."""

    @both("3.9.2", "4.0.0")
    def test_an_expiry_ends_the_initial_delay(self, version: str, new: bool) -> None:
        group = Context(version)
        first = group.join("A", version=3)
        group.join("ghost", session=1_000)
        group.at(1_000)
        assert first.waits != new

    @both("3.9.2", "4.0.0")
    def test_a_new_group_is_recorded_at_once(self, version: str, new: bool) -> None:
        group = Context(version)
        group.join("A")
        record = group.coordinator.record(GROUP)
        assert (record is not None) == new
        group.move()
        assert group.gone != new

    @both("3.9.2", "4.0.0")
    def test_session_bounds_are_checked_by_any_broker(self, version: str, new: bool) -> None:
        group = Context(version)
        group.unload()
        assert group.join("A", session=10_000_000).error == (26 if new else 16)

    @both("3.9.2", "4.0.0")
    def test_an_answer_16_names_the_member_in_scala_only(self, version: str, new: bool) -> None:
        group = Context(version)
        group.unload()
        refused = group.rejoin("A")
        assert (refused.error, refused.answer.member_id) == (16, "" if new else "A")

    @both("3.9.2", "4.0.0")
    def test_a_commit_to_an_unknown_group(self, version: str, new: bool) -> None:
        group = Context(version)
        assert group.commit("A", 3, version=9) == (69 if new else 22)
        assert group.commit("A", 3, version=8) == 22
        assert group.gone

    @both("3.9.2", "4.0.0")
    def test_a_transactional_commit_to_an_unknown_group(self, version: str, new: bool) -> None:
        group = Context(version)
        assert group.txn_commit("A", 3) == (22 if new else 25)
        assert group.gone == new

    @both("3.9.2", "4.0.0")
    def test_a_sync_that_names_a_protocol_while_there_is_none(self, version: str, new: bool) -> None:
        group = Context(version)
        group.join("A", version=3)
        assert group.sync("A", 0, protocol_name="range").error == (27 if new else 23)

    @both("3.9.2", "4.0.0")
    def test_the_search_for_expired_offsets_starts_with_the_load(self, version: str, new: bool) -> None:
        group = Context(version).at(100_000).move()
        group.join("A", session=1)
        group.at(600_000)
        assert group.gone != new
        group.at(700_000)
        assert group.gone

    @pytest.mark.parametrize("version", ["2.2.2", "3.9.2", "4.0.0"])
    def test_an_overfull_group_is_loaded_into_a_rebalance(self, version: str) -> None:
        group = Context(version, group_max_size=2).stable("A", "B")
        group.reconfigure(group_max_size=1)
        group.move()
        assert (group.state, group.generation) == ("PreparingRebalance", 1)
        assert [group.deadline(one) for one in ("A", "B")] == [group.now_ms + S] * 2

    @both("3.9.2", "4.0.0")
    def test_no_rebalance_timeout_comes_back_as_the_session_timeout(self, version: str, new: bool) -> None:
        group = Context(version).stable("A")
        group.commit("A", 1)
        group.rejoin("A", rebalance=-1)
        group.sync("A", 2, {"A": b"a"})
        assert group.member("A").rebalance_timeout_ms == -1
        assert group.move().member("A").rebalance_timeout_ms == (S if new else -1)

    @both("3.9.2", "4.0.0")
    def test_deleting_a_group_removes_its_open_transactions(self, version: str, new: bool) -> None:
        group = Context(version)
        assert group.txn_commit() == 0
        assert group.delete() == 0
        group.move()
        assert group.gone == new

    @both("3.9.2", "4.0.0")
    def test_deleting_an_offset_reaches_open_transactions(self, version: str, new: bool) -> None:
        """In Scala's memory only, and there the transaction still keeps the group."""
        group = Context(version, offsets_retention_ms=600_000)
        group.commit()
        group.txn_commit()
        assert group.delete_offsets("orders") == (0, [0])
        group.at(600_000)
        assert group.gone == new
        group.end_transaction()
        assert group.coordinator.committed_at_ms(GROUP) == {}
        assert group.move().coordinator.committed_at_ms(GROUP) == ({} if new else {("orders", 0): 0})

    @both("3.9.2", "4.0.0")
    def test_an_open_transaction_keeps_what_was_committed_for_its_partition(self, version: str, new: bool) -> None:
        group = Context(version, offsets_retention_ms=600_000)
        group.commit()
        group.commit(topic="bills")
        group.txn_commit()
        group.at(600_000)
        assert group.coordinator.committed_at_ms(GROUP) == ({("orders", 0): 0} if new else {})
        group.end_transaction(commits=False)
        group.at(1_200_000)
        assert group.gone

    @both("3.9.2", "4.0.0")
    def test_an_offset_in_the_log_brings_its_group_back(self, version: str, new: bool) -> None:
        group = Context(version)
        group.txn_commit()
        group.end_transaction(commits=False)
        assert group.state == "Empty"
        assert group.move().gone != new
        group.delete()
        assert group.move().gone

    @both("4.0.0", "3.9.2")
    def test_deleting_the_last_offset_of_an_empty_group(self, version: str, new: bool) -> None:
        group = Context(version)
        group.commit()
        group.delete_offsets("orders")
        assert group.gone == new
        group.at(600_000)
        assert group.gone


@pytest.mark.parametrize("version", EVERY)
def test_every_release_runs_a_group_from_start_to_end(version: str) -> None:
    group = Context(version).stable("A", "B")
    assert group.heartbeat("B", 1) == 0
    assert group.rejoin("B", protocols=OTHER).waits
    assert group.heartbeat("A", 1) == 27
    group.sleep(1_000).rejoin("A")
    assert (group.generation, group.state) == (2, "CompletingRebalance")
    group.sync_all(2)
    group.sleep(S)
    assert (group.state, group.members) == ("Empty", [])
    assert group.delete() == 0
    assert group.gone
