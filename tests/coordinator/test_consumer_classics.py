"""Members of the classic protocol in a consumer group: told by 27, timed by their JoinGroup and SyncGroup.

Goal and method as in `test_consumer_rules`.
"""

from __future__ import annotations

import pytest

from kardia.coordinator.classic.operations import Answer, Commit, Heartbeat, Join, Leave, Leaving, Sync
from kardia.coordinator.consumer.operations import SyncAnswer
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.wire import read_subscription
from kardia.coordinator.errors import NotModelledError
from tests.coordinator.consumer_context import Consumers, orders

STAYS = ConsumerSettings(group_consumer_migration_policy="upgrade", group_consumer_assignment_interval_ms=0)
"""The group never becomes a classic one."""
WITHOUT_OWNED = b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"
OWNS_ALL = (
    b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x01\x00\x06orders"
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
)


class Mixed(Consumers):
    """A group with the member m of the consumer protocol, to which c of the classic protocol may come."""

    def __init__(self, version: str, settings: ConsumerSettings = STAYS) -> None:
        """m has all of orders."""
        super().__init__(version, settings)
        self.join(0.0, "m")

    def classic_join(self, at_s: float, rebalance_ms: int, metadata: bytes = WITHOUT_OWNED, version: int = 9) -> Answer:
        """c joins, with a session of 10 s."""
        protocols = (("range", metadata),)
        answer = self.do(
            at_s, Join(1, version, "g", "c", None, "k", "/h", 10_000, rebalance_ms, "consumer", protocols, None, "")
        )
        assert isinstance(answer, Answer)
        return answer

    def sync(self, at_s: float, generation: int) -> SyncAnswer:
        """c syncs."""
        answer = self.do(at_s, Sync(2, 5, "g", generation, "c", None, "consumer", "range", ()))
        assert isinstance(answer, SyncAnswer)
        return answer

    def heartbeat(self, at_s: float, generation: int) -> int:
        """c heartbeats; returns the error code."""
        answer = self.do(at_s, Heartbeat(3, 4, "g", generation, "c", None))
        return int(answer.error_code)


def test_a_join_group_is_answered_at_once_with_the_epoch() -> None:
    group = Mixed("4.1.2")
    answer = group.classic_join(1.0, 60_000)
    assert (answer.error_code, answer.generation_id, answer.leader, answer.members) == (0, 2, "", ())
    assert group.sync(1.1, 2) == SyncAnswer(2, 1_100, 0, ())
    assert group.heartbeat(1.2, 2) == 0


def test_what_the_others_gave_up_is_told_by_27_and_given_at_the_next_join() -> None:
    group = Mixed("4.1.2")
    group.classic_join(1.0, 60_000)
    group.sync(1.1, 2)
    group.beat(2.0, "m", 1)
    assert group.heartbeat(2.1, 2) == 0
    group.beat(3.0, "m", 1, owned=orders(0, 1))
    assert group.heartbeat(3.1, 2) == 27
    group.classic_join(3.2, 60_000)
    assert group.sync(3.3, 2).assignment == (("orders", 2), ("orders", 3))


def test_who_is_told_27_has_its_rebalance_timeout_from_the_first_time_to_join_again() -> None:
    group = Mixed("4.1.2")
    group.classic_join(0.1, 60_000)
    group.sync(0.2, 2)
    group.join(0.5, "n")
    assert group.heartbeat(1.0, 2) == 27
    for at_s in range(4, 61, 3):
        assert group.heartbeat(at_s, 2) == 27
        for name in ("m", "n"):
            group.beat(at_s, name, group.member(name).epoch, owned=())
    group.wait(60.999)
    assert "c" in group.ids()
    group.wait(61.0)
    assert "c" not in group.ids()


def test_who_joined_and_does_not_sync_is_fenced() -> None:
    group = Mixed("4.1.2")
    group.classic_join(2.04, 20_000)
    for at_s in (8, 14, 20):
        assert group.heartbeat(at_s, 2) == 0
    group.wait(22.039)
    assert "c" in group.ids()
    group.wait(22.04)
    assert "c" not in group.ids()


@pytest.mark.parametrize(("version", "code"), [("4.2.1", 27), ("4.3.1", 0)])
def test_a_later_epoch_without_a_target(version: str, code: int) -> None:
    group = Mixed(version)
    generation = group.classic_join(1.0, 60_000).generation_id
    group.beat(2.0, "m", group.member("m").epoch, owned=orders(0, 1))
    group.classic_join(3.0, 60_000)
    group.sync(3.1, generation)
    group.beat(4.0, "m", -1)
    assert (group.view.state, group.heartbeat(4.1, generation)) == ("Assigning", code)


def test_a_classic_member_has_no_rebalance_timer_until_a_load_gives_it_one() -> None:
    mixed = Mixed("4.1.2")
    mixed.classic_join(1.0, 10_000)
    mixed.sync(1.1, 2)
    mixed.beat(2.0, "m", -1)
    mixed.classic_join(3.0, 10_000)
    mixed.sync(3.1, 3)
    mixed.join(4.0, "n")
    mixed.classic_join(5.0, 10_000, OWNS_ALL)
    member = mixed.member("c")
    assert (member.state, member.rebalance_deadline_at_ms) == ("UNREVOKED_PARTITIONS", -1)
    mixed.reload(6.0)
    member = mixed.member("c")
    assert (member.session_deadline_at_ms, member.rebalance_deadline_at_ms) == (51_000, 16_000)


def test_a_commit_renews_no_session_and_needs_the_generation() -> None:
    group = Mixed("4.1.2")
    group.classic_join(1.0, 60_000)
    group.sync(1.1, 2)
    for version in (5, 9):
        assert group.do(2.0, Commit(9, version, "g", 2, "c", None, "orders", 0, 1)).error_code == 0
    assert group.do(2.0, Commit(9, 9, "g", 1, "c", None, "orders", 0, 1)).error_code == 22
    assert group.member("c").session_deadline_at_ms == 11_100


def test_a_leave_group_takes_several_of_any_protocol_with_one_epoch() -> None:
    group = Mixed("4.1.2")
    group.classic_join(1.0, 60_000)
    entries = tuple(Leaving(one, None, None) for one in ("m", "nobody", "c"))
    answer = group.do(2.0, Leave(9, 5, "g", entries))
    assert [code for _, _, code in answer.left] == [0, 25, 0]
    assert (group.ids(), group.view.group_epoch) == ([], 3)


@pytest.mark.parametrize(("version", "code"), [("4.2.1", 0), ("4.3.1", 23)])
def test_the_policy_that_disables_migration(version: str, code: int) -> None:
    group = Mixed(version, STAYS._replace(group_consumer_migration_policy="disabled"))
    assert group.classic_join(1.0, 60_000).error_code == code


def test_a_heartbeat_of_the_consumer_protocol_makes_a_classic_member_one_of_it() -> None:
    group = Mixed("4.1.2")
    group.classic_join(1.0, 60_000)
    assert group.beat(2.0, "c", 2).error_code == 0
    assert group.member("c").classic is None
    assert group.heartbeat(3.0, 2) == 25


def test_subscriptions_are_read_or_refused() -> None:
    assert read_subscription(OWNS_ALL) == (("orders",), tuple(("orders", number) for number in range(4)), None)
    newest = b"\x00\x03" + WITHOUT_OWNED[2:] + b"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x02r1"
    assert read_subscription(newest).rack_id == "r1"
    for broken in (b"", b"\x00", WITHOUT_OWNED[:9], b"\x7f\xff" + WITHOUT_OWNED[2:]):
        with pytest.raises(NotModelledError):
            read_subscription(broken)
