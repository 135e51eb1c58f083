"""Streams groups: tasks wait for each other by process, the first assignment waits for members, topics must be there.

Goal: the rules that differ from consumer groups, each in a few heartbeats. Method: as `test_consumer_rules`; what
Kafka's classes do in the same histories is seen by `tests/truth`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.coordinator.consumer.operations import Topic, Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.streams.assignor import RoundRobin, Work, Worker, broken_law
from kardia.coordinator.streams.behaviour import streams_behaviour_of
from kardia.coordinator.streams.coordinator import StreamsCoordinator
from kardia.coordinator.streams.group import Tasks
from kardia.coordinator.streams.operations import (
    InternalTopic,
    StreamsAnswer,
    StreamsBeat,
    StreamsMemberView,
    StreamsOperation,
    StreamsView,
    Subtopology,
    Task,
    Topology,
)
from kardia.coordinator.streams.settings import StreamsSettings
from kardia.coordinator.streams.status import Status

PROMPT = StreamsSettings(group_streams_assignment_interval_ms=0, group_streams_initial_rebalance_delay_ms=0)
ORDERS, CHANGES = Topic("orders", "orders#1", 4), Topic("app-changes", "changes#1", 4)
STATELESS = Topology(0, (Subtopology("0", ("orders",)),))
STATEFUL = Topology(0, (Subtopology("0", ("orders",), changelogs=(InternalTopic("app-changes"),)),))


def tasks(*numbers: int) -> tuple[Task, ...]:
    """Of the only subtopology."""
    return tuple(("0", number) for number in numbers)


class Application:
    """One group "g" of one coordinator in a cluster with the topic `orders` of four partitions."""

    def __init__(self, version: str, settings: StreamsSettings = PROMPT, topology: Topology = STATELESS) -> None:
        """Nobody is in it."""
        self.coordinator = StreamsCoordinator(streams_behaviour_of(version), settings)
        self._topology, self._number = topology, 0
        self.do(0.0, Topics(0, (ORDERS,)))

    def do(self, at_s: float, operation: StreamsOperation) -> list[StreamsAnswer]:
        """Timers that are due fire first."""
        at_ms = round(at_s * 1000)
        self.coordinator.advance(at_ms)
        return self.coordinator.perform(operation, at_ms)

    def beat(self, at_s: float, member_id: str, epoch: int, **given: Any) -> StreamsAnswer:
        """A heartbeat; epoch 0 brings the topology and a process of its own."""
        self._number += 1
        beat = StreamsBeat(
            self._number, 1, "g", member_id, epoch,
            None, None, -1, None, None, None, None, None, None, None, None, False, 0, "c", "/10.0.0.1",
        )  # fmt: skip
        if epoch == 0:
            beat = beat._replace(
                topology=self._topology,
                rebalance_timeout_ms=10_000,
                process_id=f"of-{member_id}",
                active=(),
                standby=(),
                warmup=(),
            )
        (answer,) = self.do(at_s, beat._replace(**given))
        return answer

    @property
    def view(self) -> StreamsView:
        """The group, which must exist."""
        view = self.coordinator.view("g")
        assert view is not None
        return view

    def member(self, member_id: str) -> StreamsMemberView:
        """One of its members."""
        return next(one for one in self.view.members if one.member_id == member_id)


@pytest.mark.parametrize(("version", "first"), [("4.1.2", 1), ("4.2.1", 2), ("4.4.0", 2)])
def test_the_first_epoch_of_a_group(version: str, first: int) -> None:
    group = Application(version)
    joined = group.beat(0.0, "m", 0)
    assert (joined.member_epoch, joined.active) == (first, tasks(0, 1, 2, 3))
    # 4.1 keeps in memory only that the topics fit, and loses it with the first heartbeat of a group.
    assert group.view.state == ("NotReady" if version == "4.1.2" else "Stable")


def test_who_joins_during_the_delay_gets_tasks_with_the_first_heartbeat_after_it() -> None:
    group = Application("4.2.1", StreamsSettings())
    first, second = group.beat(0.0, "m", 0), group.beat(2.0, "n", 0)
    assert (first.member_epoch, second.member_epoch) == (1, 1)
    assert first.active == second.active == ()
    assert first.statuses == second.statuses == (Status.ASSIGNMENT_DELAYED,)
    assert group.view.initial_deadline_at_ms == 3_000
    group.coordinator.advance(3_000)
    assert (group.view.group_epoch, group.view.assignment_epoch, group.view.initial_deadline_at_ms) == (3, 3, -1)
    told = group.beat(5.0, "m", 1)
    assert (told.member_epoch, told.active) == (3, tasks(0, 2))


def test_a_group_whose_only_heartbeat_was_its_first_gets_nothing_when_the_delay_is_over() -> None:
    group = Application("4.4.0", StreamsSettings())
    group.beat(0.0, "m", 0)
    group.coordinator.advance(3_000)
    assert (group.view.state, group.view.assignment_epoch) == ("Assigning", 1)
    assert group.beat(5.0, "m", 1).active == tasks(0, 1, 2, 3)


def test_without_its_topics_an_application_has_no_tasks_and_the_broker_is_told_what_to_create() -> None:
    group = Application("4.4.0", topology=STATEFUL)
    joined = group.beat(0.0, "m", 0)
    assert (joined.error_code, joined.active, joined.missing) == (0, (), (("app-changes", 4),))
    assert joined.statuses == (Status.MISSING_INTERNAL_TOPICS,)
    assert group.view.state == "NotReady"
    group.do(1.0, Topics(1, (ORDERS, CHANGES)))
    told = group.beat(2.0, "m", joined.member_epoch)
    assert (told.active, told.statuses, group.view.state) == (tasks(0, 1, 2, 3), (), "Stable")


def test_a_member_gives_up_before_another_one_gets_and_is_fenced_if_it_does_not() -> None:
    group = Application("4.4.0")
    epoch = group.beat(0.0, "m", 0).member_epoch
    newer = group.beat(1.0, "n", 0)
    assert (newer.active, group.member("n").state) == ((), "UNRELEASED_TASKS")
    asked = group.beat(2.0, "m", epoch)
    assert (asked.member_epoch, asked.active, group.member("m").state) == (epoch, tasks(0, 2), "UNREVOKED_TASKS")
    assert group.member("m").rebalance_deadline_at_ms == 12_000
    assert group.beat(3.0, "n", newer.member_epoch).active is None
    group.beat(11.0, "n", newer.member_epoch)
    group.coordinator.advance(12_000)
    assert [one.member_id for one in group.view.members] == ["n"]


def test_a_member_that_has_given_up_is_done_in_the_same_heartbeat_and_the_other_one_gets() -> None:
    group = Application("4.4.0")
    epoch = group.beat(0.0, "m", 0).member_epoch
    newer = group.beat(1.0, "n", 0).member_epoch
    group.beat(2.0, "m", epoch)
    done = group.beat(3.0, "m", epoch, active=tasks(0, 2), standby=(), warmup=())
    assert (done.member_epoch, group.member("m").rebalance_deadline_at_ms) == (newer, -1)
    assert group.beat(4.0, "n", newer).active == tasks(1, 3)
    assert group.view.state == "Stable"


def test_a_static_member_that_is_away_keeps_its_tasks_until_its_session_is_over() -> None:
    group = Application("4.4.0")
    epoch = group.beat(0.0, "m", 0, instance_id="i").member_epoch
    group.beat(10.0, "m", epoch, instance_id="i")
    left = group.beat(12.5, "m", -2, instance_id="i")
    assert (left.error_code, left.member_epoch, group.view.state) == (0, -2, "Reconciling")
    back = group.beat(20.0, "other", 0, instance_id="i", process_id="of-m")
    assert (back.member_epoch, back.active, group.view.group_epoch) == (epoch, tasks(0, 1, 2, 3), epoch)
    group.beat(21.0, "other", -2, instance_id="i")
    group.coordinator.advance(64_999)
    assert len(group.view.members) == 1
    group.coordinator.advance(65_000)
    assert not group.view.members


@pytest.mark.parametrize("version", ["4.1.2", "4.2.1", "4.3.1"])
def test_before_4_4_an_instance_id_is_refused_as_a_request_that_cannot_be(version: str) -> None:
    assert Application(version).beat(0.0, "m", 0, instance_id="i").error_code == 42


def test_a_shutdown_is_told_to_everybody_until_nobody_is_left() -> None:
    group = Application("4.3.1")
    epoch = group.beat(0.0, "m", 0).member_epoch
    assert group.beat(1.0, "m", epoch, shutdown=True).statuses == (Status.SHUTDOWN_APPLICATION,)
    assert Status.SHUTDOWN_APPLICATION in (group.beat(2.0, "n", 0).statuses or ())
    assert group.view.shutdown_by == "m"
    group.beat(3.0, "m", -1)
    group.beat(3.0, "n", -1)
    assert group.view.shutdown_by == ""


def test_a_load_starts_sessions_and_the_time_to_give_up_and_forgets_the_delay() -> None:
    group = Application("4.3.1")
    epoch = group.beat(0.0, "m", 0).member_epoch
    group.beat(1.0, "n", 0)
    group.beat(2.0, "m", epoch)
    group.do(3.0, Unload(90))
    group.do(4.0, Load(91))
    assert [one.session_deadline_at_ms for one in group.view.members] == [49_000, 49_000]
    assert group.member("m").rebalance_deadline_at_ms == 14_000
    waiting = Application("4.3.1", StreamsSettings())
    waiting.beat(0.0, "m", 0)
    waiting.do(1.0, Unload(90))
    waiting.do(1.0, Load(91))
    assert waiting.view.initial_deadline_at_ms == -1


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"m": Tasks(frozenset(tasks(0, 1)))}, ""),
        ({"m": Tasks(frozenset(tasks(0)))}, "are active of"),
        ({"m": Tasks(frozenset(tasks(0, 1))), "n": Tasks(standby=frozenset(tasks(0)))}, ""),
        ({"m": Tasks(frozenset(tasks(0, 1)), frozenset(tasks(0)))}, "twice in one process"),
        ({"m": Tasks(frozenset(tasks(0, 1)), warmup=frozenset(tasks(1)))}, "to warm up"),
    ],
)
def test_what_the_assignor_never_does_is_told(target: dict[str, Tasks], said: str) -> None:
    broken = broken_law((Worker("m", "p"), Worker("n", "q")), Work({"0": 2}, frozenset({"0"}), 1), target)
    assert said in broken
    assert bool(broken) is bool(said)


def test_our_own_assignor_keeps_the_laws() -> None:
    workers = [Worker("a", "p"), Worker("b", "p"), Worker("c", "q")]
    work = Work({"0": 3, "1": 2}, frozenset({"1"}), 2)
    target = RoundRobin().assign("g", workers, work)
    assert broken_law(workers, work, target) == ""
    assert sum(len(part.standby) for part in target.values()) == 2
