"""The rules of consumer groups, one scenario each, in the releases in which they differ.

Goal: who reads a rule sees it happen. That Kafka does the same is shown by `tests/truth`, not here.
"""

from __future__ import annotations

import pytest

from kardia.coordinator.classic.operations import Commit, Join, OffsetDelete
from kardia.coordinator.consumer.assignors import Subscriber, Uniform, assign_range, broken_law
from kardia.coordinator.consumer.behaviour import SWITCHES, ConsumerBehaviour, consumer_behaviour_of
from kardia.coordinator.consumer.coordinator import ConsumerCoordinator
from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.errors import NotModelledError
from tests.coordinator.consumer_context import ORDERS, Consumers, orders

EVERY = ("4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")


@pytest.mark.parametrize("version", EVERY)
def test_a_silent_member_is_fenced_a_session_after_its_last_heartbeat(version: str) -> None:
    group = Consumers(version)
    first = group.join(0.0, "m").member_epoch
    for at_s in (5, 10):
        assert group.beat(at_s, "m", first).error_code == 0
    group.wait(54.999)
    assert group.ids() == ["m"]
    group.wait(55.0)
    assert (group.ids(), group.view.state, group.view.group_epoch) == ([], "Empty", first + 1)


@pytest.mark.parametrize(("version", "first"), [("4.0.2", 1), ("4.2.1", 1), ("4.3.1", 2), ("4.4.0", 2)])
def test_the_first_epoch_of_a_member(version: str, first: int) -> None:
    assert Consumers(version).join(0.0, "m").member_epoch == first


def test_a_static_leave_keeps_the_place_until_the_session_ends_that_ran_before() -> None:
    group = Consumers("4.1.2")
    group.join(0.0, "m", instance_id="i")
    group.beat(10.0, "m", 1, instance_id="i")
    assert group.beat(12.5, "m", -2, instance_id="i").member_epoch == -2
    assert (group.view.state, group.view.group_epoch) == ("Reconciling", 1)
    group.wait(54.999)
    assert group.member("m").epoch == -2
    group.wait(55.0)
    assert (group.ids(), group.view.group_epoch) == ([], 2)


def test_a_static_member_comes_back_under_another_id_with_all_it_had() -> None:
    group = Consumers("4.1.2")
    group.join(0.0, "m", instance_id="i")
    group.beat(10.0, "m", -2, instance_id="i")
    answer = group.join(20.0, "n", instance_id="i")
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 1, orders(0, 1, 2, 3))
    assert (group.ids(), group.view.group_epoch, group.view.state) == (["n"], 1, "Stable")
    group.wait(64.999)
    assert group.ids() == ["n"]


def test_an_instance_id_in_use_is_refused() -> None:
    group = Consumers("4.4.0")
    group.join(0.0, "m", instance_id="i")
    before = group.view
    assert group.join(1.0, "n", instance_id="i").error_code == 111
    assert group.view == before


def _told_to_give_up(version: str) -> Consumers:
    """m has all of orders and is told at 30 s to give up half; n waits for it."""
    group = Consumers(version, ConsumerSettings(group_consumer_assignment_interval_ms=0))
    epoch = group.join(0.0, "m").member_epoch
    assert group.join(29.0, "n").assignment == ()
    answer = group.beat(30.0, "m", epoch)
    assert (answer.member_epoch, answer.assignment) == (epoch, orders(0, 1))
    assert group.member("m").state == "UNREVOKED_PARTITIONS"
    return group


@pytest.mark.parametrize("version", EVERY)
def test_a_member_that_does_not_give_up_is_fenced_although_it_heartbeats(version: str) -> None:
    group = _told_to_give_up(version)
    epoch = group.member("m").epoch
    for at_s in (35.0, 39.9):
        assert group.beat(at_s, "m", epoch).error_code == 0
    group.wait(39.999)
    assert group.ids() == ["m", "n"]
    group.wait(40.0)
    assert group.ids() == ["n"]


@pytest.mark.parametrize("version", EVERY)
def test_a_member_that_gave_up_goes_to_the_epoch_of_the_target(version: str) -> None:
    group = _told_to_give_up(version)
    answer = group.beat(36.0, "m", group.member("m").epoch, owned=orders(0, 1))
    assert answer.member_epoch == group.view.assignment_epoch
    assert group.member("m").rebalance_deadline_at_ms == -1
    assert group.beat(37.0, "n", group.member("n").epoch).assignment == orders(2, 3)
    assert group.view.state == "Stable"


def test_an_empty_report_is_proof_and_no_report_is_none() -> None:
    group = _told_to_give_up("4.1.2")
    group.beat(31.0, "m", 1, owned=None)
    assert group.member("m").state == "UNREVOKED_PARTITIONS"
    group.beat(32.0, "m", 1, owned=())
    assert group.member("m").state == "STABLE"


@pytest.mark.parametrize(("version", "code"), [("4.1.2", 110), ("4.2.1", 0), ("4.4.0", 0)])
def test_a_known_member_that_joins_again_after_several_epochs(version: str, code: int) -> None:
    group = _told_to_give_up(version)
    group.beat(36.0, "m", group.member("m").epoch, owned=orders(0, 1))
    assert group.join(37.0, "m").error_code == code


def test_a_wrong_epoch_renews_no_session() -> None:
    group = Consumers("4.1.2")
    group.join(0.0, "m")
    for at_s in range(5, 45, 5):
        assert group.beat(at_s, "m", 7).error_code == 110
    group.wait(45.0)
    assert group.ids() == []


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_a_second_target_waits_for_the_interval(version: str) -> None:
    group = Consumers(version)
    group.join(1.0, "m")
    answer = group.join(1.3, "n")
    assert (answer.member_epoch, answer.assignment, group.view.state) == (2, (), "Assigning")
    group.beat(1.999, "n", 2)
    assert group.view.assignment_epoch == 2
    group.beat(2.0, "n", 2)
    assert group.view.assignment_epoch == 3


def test_a_leave_calls_for_a_target_that_the_next_heartbeat_computes() -> None:
    group = Consumers("4.1.2")
    group.join(0.0, "m")
    group.join(1.0, "n")
    group.beat(10.0, "n", -1)
    assert group.view.state == "Assigning"
    answer = group.beat(12.0, "m", 1)
    assert (answer.member_epoch, group.view.state) == (group.view.group_epoch, "Stable")


def test_a_load_starts_every_session_anew_and_the_rebalance_timer_too() -> None:
    group = _told_to_give_up("4.1.2")
    group.reload(35.0)
    member = group.member("m")
    assert (member.session_deadline_at_ms, member.rebalance_deadline_at_ms) == (80_000, 45_000)


@pytest.mark.parametrize(("version", "assigned"), [("4.3.1", 2), ("4.4.0", 3)])
def test_the_target_of_a_group_that_became_empty(version: str, assigned: int) -> None:
    group = Consumers(version)
    group.join(0.0, "m")
    group.beat(1.0, "m", -1)
    assert (group.view.group_epoch, group.view.assignment_epoch) == (3, assigned)


@pytest.mark.parametrize(("version", "code"), [("4.3.1", 81), ("4.4.0", 0)])
def test_a_static_member_and_a_full_group(version: str, code: int) -> None:
    group = Consumers(version, ConsumerSettings(group_consumer_max_size=1))
    group.join(0.0, "m", instance_id="i")
    group.beat(1.0, "m", -2, instance_id="i")
    assert group.join(2.0, "n", instance_id="i").error_code == code
    assert group.beat(3.0, "stranger", 5).error_code == 81


@pytest.mark.parametrize(("version", "code"), [("4.2.1", 113), ("4.3.1", 0)])
def test_a_commit_in_an_older_epoch(version: str, code: int) -> None:
    """Of a partition that the member has had since then."""
    group = _told_to_give_up(version)
    first = group.member("m").epoch
    group.beat(36.0, "m", first, owned=orders(0, 1))
    commit = Commit(99, 10, "g", first, "m", None, "orders", 0, 5)
    assert group.do(37.0, commit).error_code == code
    assert group.do(38.0, commit._replace(version=9)).error_code == 113


def test_a_commit_renews_no_session() -> None:
    group = Consumers("4.1.2")
    group.join(0.0, "m")
    for at_s in range(1, 45):
        assert group.do(at_s, Commit(at_s, 9, "g", 1, "m", None, "orders", 0, at_s)).error_code == 0
    group.wait(45.0)
    assert group.ids() == []


def test_range_gives_consecutive_partitions_and_the_rest_to_the_first() -> None:
    subscribers = [Subscriber(name, None, (ORDERS,), frozenset()) for name in ("c", "a", "b")]
    target = assign_range(subscribers, True)
    assert {name: sorted(part) for name, part in target.items()} == {
        "a": list(orders(0, 1)),
        "b": list(orders(2)),
        "c": list(orders(3)),
    }


def test_the_default_uniform_assignor_keeps_the_laws() -> None:
    refunds = Topic("refunds", "refunds#2", 3)
    for alike, topics in ((True, ((ORDERS, refunds),) * 3), (False, ((ORDERS,), (refunds,), (ORDERS, refunds)))):
        subscribers = [Subscriber(f"m{place}", None, one, frozenset()) for place, one in enumerate(topics)]
        for _ in range(3):
            target = Uniform().uniform("g", subscribers, alike)
            assert broken_law(subscribers, alike, target) == ""
            subscribers = [one._replace(had=target[one.member_id]) for one in subscribers]
            assert Uniform().uniform("g", subscribers, alike) == target
        assert broken_law(subscribers, alike, {**target, "m0": frozenset()}) != ""


def test_what_is_not_modelled_is_refused() -> None:
    group = Consumers("4.4.0")
    group.join(0.0, "m")
    join = Join(1, 9, "g", "c", None, "c", "/h", 10_000, 10_000, "consumer", (("range", b""),), None, "n")
    with pytest.raises(NotModelledError, match="no subscription"):
        group.do(1.0, join)
    with pytest.raises(NotModelledError, match="OffsetDelete"):
        group.do(1.0, OffsetDelete(2, "g", ()))  # type: ignore[arg-type]
    with pytest.raises(NotModelledError, match="regular expression"):
        group.beat(1.0, "n", 0, regex=r"\d{2}", owned=(), rebalance_timeout_ms=1)


def test_the_table_has_a_flag_for_every_row_and_older_releases_are_refused() -> None:
    flags = ConsumerBehaviour._fields[1:]
    assert set(flags) == set(SWITCHES)
    for name, row in SWITCHES.items():
        held = {version for version in EVERY if getattr(consumer_behaviour_of(version), name)}
        assert row.meaning
        assert row.source
        assert held
        assert held != set(EVERY), f"{name} holds everywhere"
    with pytest.raises(ValueError, match="older brokers have no such groups"):
        consumer_behaviour_of("3.9.2")


def test_instants_only_grow() -> None:
    model = ConsumerCoordinator(consumer_behaviour_of("4.4.0"))
    model.advance(10)
    with pytest.raises(ValueError, match="instants only grow"):
        model.advance(9)
