"""Groups that are deleted, expire, move to another broker, or are only there for their offsets. Times in ms."""

from __future__ import annotations

import struct

import pytest

from kardia.coordinator.classic.group import StuckError, subscribed_topics
from kardia.coordinator.classic.operations import Commit
from tests.coordinator.context import BOTH, GROUP, Context, S, subscription

RETENTION = 1_000_000
CHECK = 600_000


@pytest.mark.parametrize("version", BOTH)
class TestDeletion:
    def test_of_an_unknown_group(self, version: str) -> None:
        assert Context(version).delete() == 69

    def test_of_a_group_with_members(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3)
        assert group.delete() == 68
        group.at(3_000)
        assert group.delete() == 68
        group.sync_all(1)
        assert group.delete() == 68

    def test_of_an_empty_group_with_a_pending_id(self, version: str) -> None:
        group = Context(version)
        group.join("A")
        assert group.delete() == 0
        assert group.gone
        # The id is not forgotten by a new group of the same name: it was never known to it.
        group.join("B")
        assert group.rejoin("A").error == 25
        assert group.view.pending == (("B", S),)

    def test_takes_the_offsets_and_the_record(self, version: str) -> None:
        group = Context(version).stable("A")
        group.commit("A", 1)
        group.leave("A")
        assert group.delete() == 0
        assert group.coordinator.committed_at_ms(GROUP) == {}
        assert group.coordinator.record(GROUP) is None
        assert group.move().gone


@pytest.mark.parametrize("version", BOTH)
class TestExpiry:
    def test_an_empty_group_without_offsets_dies_at_the_next_look(self, version: str) -> None:
        group = Context(version).stable("A")
        group.leave("A")
        group.at(CHECK - 1)
        assert group.state == "Empty"
        group.at(CHECK)
        assert group.gone
        assert group.happened("died") == [(CHECK, "")]

    def test_offsets_keep_an_empty_group_until_its_retention_is_over(self, version: str) -> None:
        group = Context(version, offsets_retention_ms=RETENTION).stable("A")
        group.commit("A", 1)
        for _ in range(100):
            group.sleep(5_000).heartbeat("A", 1)
        group.leave("A")
        emptied = group.now_ms
        assert CHECK < emptied + RETENTION < 3 * CHECK
        group.at(2 * CHECK)  # Past the retention of the commit itself, not of the time since it is Empty.
        assert group.state == "Empty"
        group.at(3 * CHECK)
        assert group.gone

    def test_offsets_of_a_simple_group_count_from_their_commit(self, version: str) -> None:
        group = Context(version, offsets_retention_ms=RETENTION)
        group.commit()
        group.at(CHECK)
        assert group.state == "Empty"
        group.commit(topic="bills")
        group.at(2 * CHECK)
        assert group.coordinator.committed_at_ms(GROUP) == {("bills", 0): CHECK}
        group.at(3 * CHECK)
        assert group.gone

    def test_offsets_of_topics_nobody_subscribes_to_expire_while_stable(self, version: str) -> None:
        group = Context(version, offsets_retention_ms=CHECK, group_max_session_timeout_ms=10_000_000)
        group.join("A", version=3, session=9_000_000, protocols=(("range", subscription("orders")),))
        group.at(3_000)
        group.sync_all(1)
        group.commit("A", 1, topic="orders")
        group.commit("A", 1, topic="bills")
        group.at(2 * CHECK)
        assert list(group.coordinator.committed_at_ms(GROUP)) == [("orders", 0)]

    def test_a_subscription_that_cannot_be_read_keeps_all(self, version: str) -> None:
        group = Context(version, offsets_retention_ms=CHECK, group_max_session_timeout_ms=10_000_000)
        group.join("A", version=3, session=9_000_000)
        group.at(3_000)
        group.sync_all(1)
        group.commit("A", 1, topic="bills")
        group.at(2 * CHECK)
        assert list(group.coordinator.committed_at_ms(GROUP)) == [("bills", 0)]

    def test_an_open_transaction_keeps_an_empty_group(self, version: str) -> None:
        group = Context(version)
        assert group.txn_commit() == 0
        group.at(10 * CHECK)
        assert group.state == "Empty"
        assert group.move().state == "Empty"


@pytest.mark.parametrize("version", BOTH)
def test_an_offset_with_a_retention_of_its_own_goes_by_it(version: str) -> None:
    """OffsetCommit 2 to 4. The offset of a group without members: kept for 1 s, and for as long as the broker keeps."""
    group = Context(version)
    commit = Commit(1, 4, GROUP, -1, "", None, "orders", 0, 7, retention_ms=1_000)
    group.send(commit)
    group.send(commit._replace(number=2, topic="bills", retention_ms=-1))
    group.sleep(600_000)
    assert list(group.coordinator.committed_at_ms(GROUP)) == [("bills", 0)]


@pytest.mark.parametrize("version", BOTH)
class TestMoves:
    def test_nobody_answers_but_16_until_the_load(self, version: str) -> None:
        group = Context(version).stable("A")
        group.unload()
        assert group.gone
        assert group.heartbeat("A", 1) == 16
        assert group.sync("A", 1).error == 16
        assert group.commit("A", 1) == 16
        assert group.txn_commit() == 16
        assert group.end_transaction() == 16
        assert group.delete_offsets("orders") == (16, [])
        assert group.delete() == 16
        assert group.rejoin("A").error == 16
        group.load()
        assert group.state == "Stable"

    def test_assignments_survive(self, version: str) -> None:
        group = Context(version).stable("A", "B").move()
        assert group.sync("B", 1).answer.assignment == b"B"

    def test_subscriptions_survive(self, version: str) -> None:
        group = Context(version).stable("A", "B").move()
        assert group.rejoin("B").answer.generation_id == 1
        leader = group.rejoin("A")
        group.rejoin("B")
        assert leader.answer.members == (("A", None, b"sub"), ("B", None, b"sub"))

    def test_no_timer_of_before_fires_after(self, version: str) -> None:
        group = Context(version).stable("A", rebalance=20_000)
        group.join("B", version=3, rebalance=20_000)
        group.unload()
        group.sleep(15_000).load()
        assert (group.view.join_deadline_at_ms, group.members) == (-1, ["A"])
        group.sleep(S - 1)
        assert group.members == ["A"]

    def test_a_second_load_and_a_second_unload_change_nothing(self, version: str) -> None:
        group = Context(version).stable("A")
        before = group.view
        group.sleep(100).load()
        assert group.view == before
        group.unload()
        group.unload()
        group.load()
        assert group.members == ["A"]

    def test_an_evicted_member_comes_back_when_nothing_was_written_since(self, version: str) -> None:
        group = Context(version).stable("A", "B")
        group.sleep(5_000).heartbeat("A", 1)
        group.sleep(5_000)
        assert group.members == ["A"]
        group.move()
        assert (group.members, group.generation, group.state) == (["A", "B"], 1, "Stable")


@pytest.mark.parametrize("version", BOTH)
class TestAtTheDoor:
    def test_group_ids_may_not_be_empty_but_for_commits(self, version: str) -> None:
        group = Context(version)
        assert group.join("A", group="").error == 24
        assert group.commit(group="") == 0

    def test_session_timeouts_have_bounds(self, version: str) -> None:
        group = Context(version, group_min_session_timeout_ms=6_000, group_max_session_timeout_ms=60_000)
        errors = [group.join(f"A{ms}", session=ms).error for ms in (5_999, 6_000, 60_000, 60_001)]
        assert errors == [26, 79, 79, 26]
        assert group.rejoin("A", session=5_999).answer.member_id == "A"

    def test_version_0_has_no_rebalance_timeout(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=0, session=20_000, rebalance=-1)
        assert group.member("A").rebalance_timeout_ms == 20_000

    def test_unknown_groups(self, version: str) -> None:
        group = Context(version)
        assert group.rejoin("A").error == 25
        assert group.sync("A", 1).error == 25
        assert group.heartbeat("A", 1) == 25
        assert group.leave("A", ("", "a")) == [25, 25]
        assert group.gone

    def test_protocols_must_fit(self, version: str) -> None:
        group = Context(version).stable("A")
        assert group.join("B", protocols=(("sticky", b""),)).error == 23
        assert group.join("B", protocol_type="connect").error == 23
        empty = Context(version)
        assert empty.join("A", protocols=()).error == 23
        assert empty.join("A", protocol_type="").error == 23

    def test_a_pending_id_may_not_bring_an_instance_id(self, version: str) -> None:
        group = Context(version)
        group.join("A")
        assert group.rejoin("A", instance="a").error == -1

    def test_who_is_fenced_and_who_is_unknown(self, version: str) -> None:
        group = Context(version).stable("A", instances=True)
        assert group.rejoin("B", instance="a").error == 82
        assert group.rejoin("A", instance="b").error == 25
        assert group.rejoin("B").error == 25
        assert group.commit("B", 1, instance="a") == 82
        assert group.sync("B", 1, instance="a").error == 82
        assert group.leave(("B", "a")) == [82]
        assert group.txn_commit("B", 1, instance="a") == 82


class TestSubscriptions:
    def test_are_read(self) -> None:
        assert subscribed_topics(subscription()) == set()
        assert subscribed_topics(subscription("orders", "bills")) == {"orders", "bills"}

    @pytest.mark.parametrize("size", range(6))
    def test_cut_short_are_none(self, size: int) -> None:
        assert subscribed_topics(subscription("orders", "bills")[:size]) is None

    def test_are_read_to_the_end_of_the_user_data(self) -> None:
        """As Kafka does: whatever the version, with what later versions add, with bytes that are no UTF-8."""
        orders = subscription("orders")
        assert subscribed_topics(b"\x00\x03" + orders[2:] + b"owned partitions and more") == {"orders"}
        assert subscribed_topics(b"\xff\xff" + orders[2:]) == {"orders"}
        assert subscribed_topics(orders.replace(b"or", b"\xff\xfe")) is not None
        assert [subscribed_topics(orders[:-cut]) for cut in (1, 4)] == [None, None]

    @pytest.mark.parametrize(
        "claims",
        [
            struct.pack(">hi", 0, -1),
            struct.pack(">hih", 0, 1, -1),
            struct.pack(">hi", 0, 2**31 - 1),
            subscription("orders", "bills")[:8],
            subscription("orders", "bills")[:12],
            subscription("orders")[:-4] + struct.pack(">i", 1),
        ],
    )
    def test_that_claim_more_than_they_have_stop_the_group(self, claims: bytes) -> None:
        with pytest.raises(StuckError):
            subscribed_topics(claims)
