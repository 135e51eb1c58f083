"""Groups that change from one protocol to the other: who waits is told, who stays is kept, nothing is cancelled.

Goal: the rules that a migration meets, each in a few requests. Method: as `test_consumer_rules`; what Kafka's classes
do in the same histories is seen by `tests/truth`.
"""

from __future__ import annotations

import pytest

from kardia.coordinator.classic.operations import Answer, Commit, Heartbeat, Join, Leave, Leaving, Sync, View
from kardia.coordinator.consumer.operations import BeatAnswer, ConsumerView
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.wire import read_assignment, write_assignment
from tests.coordinator.consumer_context import Consumers, orders

SETTINGS = ConsumerSettings(group_initial_rebalance_delay_ms=0, group_consumer_assignment_interval_ms=0)
METADATA = b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"
ALL = tuple(("orders", number) for number in range(4))


class Migrating(Consumers):
    """A group that begins as a classic one of c, in generation 1, that owns all of orders."""

    def __init__(self, version: str = "4.1.2", settings: ConsumerSettings = SETTINGS, member_id: str = "c") -> None:
        """c joins and syncs at 0."""
        super().__init__(version, settings)
        assert not self.classic_join(0.0, "", new_id=member_id)
        self.wait(0.0)
        assignments = ((member_id, write_assignment(0, ALL)),)
        self.do(0.0, Sync(2, 5, "g", 1, member_id, None, "consumer", "range", assignments))
        assert self.classic.state == "Stable"

    def classic_join(self, at_s: float, member_id: str, **given: object) -> Answer | None:
        """JoinGroup, with a session of 10 s; None while it waits."""
        self._number += 1
        protocols = (("range", METADATA),)
        plain = Join(
            self._number, 3, "g", member_id, None, "k", "/h", 10_000, 60_000, "consumer", protocols, None, "new"
        )
        answer = self.do(at_s, plain._replace(**given))  # type: ignore[arg-type]
        assert answer is None or isinstance(answer, Answer)
        return answer

    def heartbeat(self, at_s: float, generation: int, member_id: str = "c") -> int:
        """Heartbeat; returns the error code."""
        return int(self.do(at_s, Heartbeat(3, 4, "g", generation, member_id, None)).error_code)

    @property
    def classic(self) -> View:
        """The group, which must be a classic one."""
        view = self.coordinator.view("g")
        assert isinstance(view, View)
        return view


def test_a_heartbeat_makes_a_consumer_group_of_a_classic_one_and_its_members_stay() -> None:
    group = Migrating()
    answer = group.join(1.0, "m")
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, ())
    assert (group.view.group_epoch, group.view.state) == (2, "Reconciling")
    c = group.member("c")
    assert (c.epoch, c.previous_epoch, c.classic) == (1, 1, (10_000, ("range",)))
    assert c.session_deadline_at_ms == 11_000  # from the conversion on, with the member's own time-out
    assert tuple(partition for partition, _ in c.assigned) == orders(0, 1, 2, 3)
    assert group.heartbeat(2.0, 1) == 27


def test_who_waits_for_a_classic_rebalance_is_told_to_join_again() -> None:
    group = Migrating()
    group.classic_join(0.1, "", new_id="d")  # waits, and c has not rejoined
    answers = group.coordinator.perform(
        group.beat_of("m", names=("orders",), owned=(), rebalance_timeout_ms=10_000), 1_000
    )
    codes = sorted((type(one).__name__, one.error_code) for one in answers)
    assert codes == [("Answer", 27), ("BeatAnswer", 0)]
    assert group.ids() == ["c", "d", "m"]
    assert group.member("d").assigned == ()


@pytest.mark.parametrize("version", ["4.0.2", "4.4.0"])
def test_a_first_generation_that_is_prepared_cannot_be_converted_and_its_members_are_told_27(version: str) -> None:
    group = Consumers(version, SETTINGS._replace(group_initial_rebalance_delay_ms=3_000))
    group.do(
        0.0,
        Join(100, 3, "g", "", None, "k", "/h", 10_000, 60_000, "consumer", (("range", METADATA),), None, "c"),
    )
    answers = group.coordinator.perform(
        group.beat_of("m", names=("orders",), owned=(), rebalance_timeout_ms=10_000), 1_000
    )
    assert [(type(one), one.error_code) for one in answers] == [(Answer, 27), (BeatAnswer, -1)]
    view = group.coordinator.view("g")
    assert isinstance(view, View)
    assert (view.state, [one.waits_for_join for one in view.members]) == ("PreparingRebalance", [False])
    group.wait(3.0)
    view = group.coordinator.view("g")
    assert isinstance(view, View)
    assert (view.state, view.members) == ("Empty", ())


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_a_policy_keeps_classic_groups(policy: str) -> None:
    group = Migrating(settings=SETTINGS._replace(group_consumer_migration_policy=policy))
    assert group.join(1.0, "m").error_code == 69
    assert group.classic.state == "Stable"


def test_user_data_of_a_client_s_assignor_keeps_a_group_classic() -> None:
    group = Migrating()
    group.classic_join(1.0, "c")
    group.wait(1.0)
    odd = write_assignment(0, ALL)[:-4] + b"\x00\x00\x00\x01x"
    group.do(1.0, Sync(9, 5, "g", 2, "c", None, "consumer", "range", (("c", odd),)))
    assert group.join(2.0, "m").error_code == 69
    assert group.classic.generation_id == 2


@pytest.mark.parametrize("by", ["leave", "expiry", "administrator"])
def test_the_last_member_of_the_consumer_protocol_goes_and_the_others_rebalance_as_a_classic_group(by: str) -> None:
    group = Migrating()
    group.join(1.0, "m")
    assert group.heartbeat(2.0, 1) == 27
    assert group.classic_join(2.0, "c") is not None
    if by == "leave":
        group.beat(3.0, "m", -1)
        at_ms = 3_000
    elif by == "administrator":
        group.do(3.0, Leave(7, 5, "g", (Leaving("m", None, None),)))
        at_ms = 3_000
    else:
        for second in range(5, 46, 5):
            group.heartbeat(second, 2)
        group.wait(46.0)
        at_ms = 46_000
    view = group.classic
    assert (view.state, view.generation_id, view.protocol_name) == ("PreparingRebalance", 2, "range")
    assert [one.session_deadline_at_ms for one in view.members] == [at_ms + 10_000]
    assert view.join_deadline_at_ms == at_ms + 60_000


def test_a_policy_keeps_a_group_of_classic_members_a_consumer_group() -> None:
    group = Migrating(settings=SETTINGS._replace(group_consumer_migration_policy="upgrade"))
    group.join(1.0, "m")
    group.beat(2.0, "m", -1)
    assert isinstance(group.coordinator.view("g"), ConsumerView)


@pytest.mark.parametrize(("version", "state"), [("4.2.1", "Stable"), ("4.3.1", "Stable")])
def test_a_static_member_comes_back_classic_and_gets_the_target_of_the_one_before(version: str, state: str) -> None:
    group = Consumers(version, SETTINGS)
    group.join(0.0, "m", instance_id="i")
    epoch = group.view.group_epoch
    protocols = (("range", METADATA),)
    answer = group.do(1.0, Join(5, 9, "g", "", "i", "k", "/h", 10_000, 60_000, "consumer", protocols, None, "back"))
    assert (answer.error_code, answer.generation_id, answer.member_id) == (0, epoch, "back")
    view = group.coordinator.view("g")
    assert isinstance(view, View)
    assert (view.state, view.generation_id, view.leader) == (state, epoch, "back")
    given = group.do(1.1, Sync(6, 5, "g", epoch, "back", "i", "consumer", "range", ()))
    assert read_assignment(given.assignment).partitions == ALL


def test_an_empty_group_is_replaced_in_both_directions_and_keeps_its_offsets() -> None:
    group = Migrating("4.3.1")
    group.do(1.0, Commit(7, 9, "g", 1, "c", None, "orders", 0, 42))
    group.do(2.0, Leave(8, 5, "g", (Leaving("c", None, None),)))
    assert group.classic.state == "Empty"
    assert group.join(3.0, "m").member_epoch == 2  # anew: not the generation of the group before
    group.beat(4.0, "m", -1)
    assert group.view.state == "Empty"
    group.classic_join(5.0, "", new_id="c")
    group.wait(5.0)
    assert (group.classic.state, group.classic.generation_id) == ("CompletingRebalance", 1)
    assert {place: kept.offset for place, kept in group.coordinator.committed("g").items()} == {("orders", 0): 42}


def test_an_empty_consumer_group_that_a_stranger_joins_is_forgotten_until_the_next_load() -> None:
    group = Consumers("4.1.2", SETTINGS)
    group.join(0.0, "m")
    group.beat(1.0, "m", -1)
    protocols = (("range", METADATA),)
    answer = group.do(
        2.0, Join(5, 9, "g", "stranger", None, "k", "/h", 10_000, 60_000, "consumer", protocols, None, "")
    )
    assert answer.error_code == 25
    assert group.coordinator.view("g") is None
    group.reload(3.0)
    assert group.view.state == "Empty"


def test_the_join_timer_of_an_older_life_counts_a_generation_of_an_empty_group() -> None:
    group = Migrating(settings=SETTINGS._replace(group_consumer_migration_policy="upgrade"))
    group.classic_join(0.1, "", new_id="d")  # the timer is due at 60.1
    group.coordinator.perform(group.beat_of("m", names=("orders",), owned=(), rebalance_timeout_ms=10_000), 1_000)
    group.do(2.0, Leave(8, 5, "g", tuple(Leaving(one, None, None) for one in ("c", "d", "m"))))
    group.classic_join(3.0, "", version=9, new_id="pending")
    assert (group.classic.state, group.classic.generation_id) == ("Empty", 0)
    group.wait(60.1)
    assert (group.classic.state, group.classic.generation_id) == ("Empty", 1)


def test_an_offset_keeps_the_retention_that_a_classic_group_committed_it_with() -> None:
    group = Migrating(settings=SETTINGS._replace(offsets_retention_check_interval_ms=10_000))
    group.do(1.0, Commit(7, 2, "g", 1, "c", None, "other", 0, 42, retention_ms=15_000))
    group.join(2.0, "m")
    group.wait(10.0)
    assert group.coordinator.committed("g")
    group.wait(20.0)
    assert not group.coordinator.committed("g")
