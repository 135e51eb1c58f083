"""Groups that have epochs: what answers and records show, rule by rule. The rules' sources stand with the code.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kardia.observe.modern
from kardia.events import Event, Kind
from kardia.observe import Observer
from tests.support.modern_scene import STABLE, UNRELEASED, UNREVOKED, ModernScene, since_start
from tests.support.scene import START, Known
from tests.support.stories import named
from tests.support.work import Lines

ROOM = Path(kardia.observe.modern.__file__).parent

UNKNOWN_MEMBER, FENCED_EPOCH, UNRELEASED_INSTANCE, NOT_COORDINATOR = 25, 110, 111, 16


def pair(**options: Any) -> ModernScene:
    """Members a and b at epoch 2, settled: a has partition 0, b has 1. Last heard 4,100 and 4,200."""
    scene = ModernScene(**options)
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.comes(2_000, "b", 2)
    scene.beat(3_010, "a", 1, 1, assigned=(0,))
    scene.beat(3_050, "a", 1, 2, owned=(0,))
    scene.beat(4_000, "b", 2, 2, assigned=(1,))
    scene.beat(4_100, "b", 2, 2, owned=(1,))
    scene.beat(4_200, "a", 2)
    return scene


def health(known: Known, member: str) -> dict[str, Any]:
    """The last row of health of a member."""
    return [row for row in named("health", known.rows["health"]) if row["member_id"] == member][-1]


def rebalances(known: Known) -> list[tuple[int, int | None, str, str | None]]:
    """(epoch, completed at, trigger, member) of each, by its begin."""
    return [
        (row["generation_after"], since_start(row["completed_at_ms"]), row["trigger"], row["trigger_member_id"])
        for row in known.rebalances()
    ]


# --- joins and epochs


def test_a_rebalance_is_over_when_every_member_has_come_to_the_epoch() -> None:
    scene = pair()
    scene.tick(5_000)
    known = scene.known()
    assert rebalances(known) == [(1, 1_000, "member_joined", "a"), (2, 3_050, "member_joined", "b")]
    second = known.rebalances()[1]
    assert (second["partitions_moved"], second["partition_seconds_lost"]) == (1, 1)
    assert [(one["member_id"], one["waited_ms"], one["partitions"]) for one in second["stragglers"]] == [
        ("a", 1_050, 1)
    ]


def test_the_group_is_reconciling_until_the_partition_that_was_given_up_has_an_owner() -> None:
    scene = pair()
    scene.tick(5_000)
    assert scene.known().states() == [(1_000, "Stable"), (2_000, "Reconciling"), (4_000, "Stable")]


def test_the_session_of_a_member_is_that_of_the_configuration() -> None:
    scene = pair(given_ms=45_000)
    scene.tick(5_000)
    row = health(scene.known(), "a")
    assert (row["session_timeout_ms"], since_start(row["session_deadline_at_ms"])) == (45_000, 49_200)
    assert (row["status"], row["certainty"], row["member_epoch"], row["partitions"]) == ("ok", "exact", 2, 1)


def test_the_default_of_brokers_is_only_inferred_and_stands_in_no_row_of_members() -> None:
    scene = pair(given_ms=-1)
    scene.tick(5_000)
    known = scene.known()
    row = health(known, "a")
    assert (row["session_timeout_ms"], row["certainty"]) == (45_000, "inferred")
    assert {row["session_timeout_ms"] for row in named("members", known.rows["members"])} == {None}


def test_an_answer_with_a_higher_epoch_than_was_counted_shows_a_rebalance_that_was_not_seen() -> None:
    """Between the last answer that had the epoch before and this one; from 4.3 on a target may come 1 s later."""
    scene = pair()
    scene.beat(6_100, "b", 2)
    scene.beat(6_200, "a", 2, 3)
    scene.beat(8_100, "b", 2, 3)
    scene.tick(9_000)
    known = scene.known()
    last = known.rebalances()[-1]
    assert (last["trigger"], since_start(last["started_at_ms"]), last["at_bound_ms"]) == ("unknown", 5_100, 1_100)
    assert known.alive() == {"a", "b"}


def test_a_broker_before_4_3_computes_every_target_at_once() -> None:
    scene = pair(version="4.1.2")
    scene.beat(6_100, "b", 2)
    scene.beat(6_200, "a", 2, 3)
    scene.tick(9_000)
    last = scene.known().rebalances()[-1]
    assert (since_start(last["started_at_ms"]), last["at_bound_ms"]) == (6_100, 100)


# --- ends


def test_a_silent_member_is_evicted_one_session_after_its_last_heartbeat() -> None:
    scene = pair()
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3, assigned=(0, 1))
    scene.beat(14_300, "a", 3, 3, owned=(0, 1))
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (14_100, "session_expired", "exact")}
    assert rebalances(known)[-1] == (3, 14_200, "session_expired", "b")
    assert known.rebalances()[-1]["partitions_moved"] == 1


def test_only_silence_shows_it_and_it_is_inferred() -> None:
    scene = pair()
    scene.beats(6_100, 17_000, 2, "b")
    scene.tick(17_000)
    known = scene.known()
    assert known.ended() == {"a": (14_200, "session_expired", "inferred")}
    assert named("members", known.rows["members"])[-1]["at_bound_ms"] is None


def test_a_member_is_not_ended_by_silence_if_nothing_says_how_long_its_session_is() -> None:
    scene = pair(given_ms=-1)
    scene.beats(6_100, 70_000, 2, "b")
    scene.tick(70_000)
    known = scene.known()
    assert known.ended() == {}
    row = health(known, "a")
    assert (row["status"], row["certainty"]) == ("overdue", "provisional")
    assert "default session timeout of 45000 ms" in row["reasons"][0]
    assert known.predictions() == []


def test_answers_with_the_old_epoch_long_after_it_say_that_nobody_was_evicted() -> None:
    """The session is longer than the configuration says, as a group may have one of its own."""
    scene = pair()
    scene.beats(6_100, 18_200, 2, "b")
    scene.tick(19_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert rebalances(known)[-1][0] == 2
    assert known.states()[-1][1] == "Stable"


def test_a_partition_that_is_given_to_somebody_shows_that_its_owner_is_gone() -> None:
    """At some time since the last answer with the epoch before; how long a session is nobody knows."""
    scene = pair(given_ms=-1, version="4.1.2")
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3, assigned=(0, 1))
    scene.tick(15_000)
    known = scene.known()
    assert known.ended() == {"b": (12_200, "session_expired", "inferred")}
    assert named("members", known.rows["members"])[-1]["at_bound_ms"] == 2_000
    assert rebalances(known)[-1] == (3, 14_200, "session_expired", "b")


def test_a_partition_that_its_owner_gave_up_shows_nothing() -> None:
    scene = pair(given_ms=-1)
    scene.comes(5_000, "c", 3)
    scene.beat(6_100, "b", 2, 3, owned=(1,))
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beat(6_300, "a", 2, 3, owned=())
    scene.beat(8_000, "c", 3, 3, assigned=(0,))
    scene.tick(9_000)
    known = scene.known()
    assert known.ended() == {}
    assert rebalances(known)[-1] == (3, 6_300, "member_joined", "c")


def test_a_member_that_does_not_give_up_its_partitions_is_evicted_though_it_heartbeats() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_100, "b", 2, 3, owned=(1,))
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beats(8_200, 14_000, 2, "a")
    scene.beats(8_100, 14_000, 3, "b", "c")
    scene.beat(14_300, "b", 3, 4)
    scene.tick(16_000)
    known = scene.known()
    assert known.ended() == {"a": (14_200, "rebalance_timeout", "exact")}
    held = next(row for row in known.rebalances() if row["generation_after"] == 3)["stragglers"][0]
    assert (held["member_id"], held["joined"], held["partitions"]) == ("a", False, 1)


def test_the_group_waits_for_who_must_give_something_up_and_until_when() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beat(8_200, "a", 2)
    scene.tick(9_000)
    row = health(scene.known(), "a")
    assert (row["member_state"], row["partitions"], row["partitions_revoking"]) == ("unrevoked", 0, 1)
    assert (since_start(row["awaited_since_at_ms"]), since_start(row["awaited_until_at_ms"])) == (6_200, 14_200)


def test_who_gives_its_partitions_up_in_time_is_not_evicted() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_100, "b", 2, 3, owned=(1,))
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beat(13_000, "a", 2, 3, owned=())
    scene.beats(8_100, 20_000, 3, "b", "c")
    scene.beats(15_000, 20_000, 3, "a")
    scene.tick(20_000)
    assert scene.known().ended() == {}


@pytest.mark.parametrize(("said", "cause"), [({"topics": [], "owned": ()}, "left"), ({"owned": ()}, "poll_timeout")])
def test_java_keeps_its_subscription_when_its_application_did_not_poll(said: dict[str, Any], cause: str) -> None:
    scene = pair(given_ms=45_000)
    scene.beats(6_200, 15_000, 2, "a", "b")
    scene.beat(15_000, "a", -1, **said)
    scene.tick(16_000)
    ((at, found, _),) = scene.known().ended().values()
    assert (at, found) == (15_000, cause)


def test_a_leave_begins_an_epoch() -> None:
    scene = pair()
    scene.goes(5_000, "b")
    scene.beat(6_200, "a", 2, 3, assigned=(0, 1))
    scene.tick(7_000)
    known = scene.known()
    assert known.ended() == {"b": (5_000, "left", "exact")}
    assert rebalances(known)[-1] == (3, 6_200, "member_left", "b")
    assert known.states()[-2:] == [(5_000, "Assigning"), (6_200, "Stable")]


def test_the_last_member_that_leaves_leaves_an_empty_group() -> None:
    scene = ModernScene()
    scene.comes(1_000, "a", 1, (0, 1))
    scene.goes(5_000, "a")
    scene.tick(6_000)
    known = scene.known()
    assert known.states()[-1] == (5_000, "Empty")
    assert rebalances(known)[-1] == (2, 5_000, "member_left", "a")


# --- static members


def static() -> ModernScene:
    """A static member s, and b; epoch 2."""
    scene = ModernScene()
    scene.comes(1_000, "s", 1, (0, 1), instance="i")
    scene.comes(2_000, "b", 2)
    scene.beat(3_000, "s", 1, 1, assigned=(0,), instance="i")
    scene.beat(3_050, "s", 1, 2, owned=(0,), instance="i")
    scene.beat(4_000, "b", 2, 2, assigned=(1,))
    scene.beat(4_200, "s", 2, instance="i")
    return scene


def test_a_leave_for_a_moment_begins_no_epoch_and_its_session_runs_on() -> None:
    scene = static()
    scene.goes(5_000, "s", -2, instance="i")
    scene.beats(6_000, 13_000, 2, "b")
    scene.tick(13_500)
    known = scene.known()
    assert known.alive() == {"s", "b"}
    assert known.states()[-1] == (5_000, "Reconciling")
    row = health(known, "s")
    assert (row["member_state"], since_start(row["session_deadline_at_ms"])) == ("away", 14_200)
    scene.beats(14_000, 16_000, 2, "b")
    scene.beat(16_000, "b", 2, 3, assigned=(0, 1))
    scene.tick(17_000)
    assert scene.known().ended() == {"s": (14_200, "session_expired", "exact")}


def test_a_static_member_that_comes_back_takes_its_place_without_an_epoch() -> None:
    scene = static()
    scene.goes(5_000, "s", -2, instance="i")
    scene.comes(7_000, "s2", 2, (0,), instance="i")
    scene.beats(8_000, 12_000, 2, "b", "s2")
    scene.tick(12_000)
    known = scene.known()
    assert known.ended() == {"s": (7_000, "static_replaced", "exact")}
    assert rebalances(known)[-1][0] == 2
    assert known.states()[-1] == (7_000, "Stable")


def test_a_refusal_changes_nothing_of_the_member() -> None:
    """110: another epoch; 111: the instance id is another's. Neither renews a session."""
    scene = static()
    scene.beat(6_000, "b", 1, error=FENCED_EPOCH)
    scene.comes(6_500, "z", 0, error=UNRELEASED_INSTANCE, instance="i")
    scene.comes(6_600, "z", 0, error=UNRELEASED_INSTANCE, instance="i")
    scene.tick(8_000)
    known = scene.known()
    assert known.alive() == {"s", "b"}
    rows = named("transitions", known.rows["transitions"])
    assert [(row["member_id"], row["cause"]) for row in rows[-2:]] == [("b", "fenced"), ("z", "instance_id_in_use")]
    assert since_start(health(known, "b")["last_heard_at_ms"]) == 4_000


# --- records


def test_records_alone_show_members_epochs_and_who_is_gone() -> None:
    scene = ModernScene(given_ms=-1)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.record_join(2_000, "b", 2, state=UNRELEASED)
    scene.record_current(3_000, "a", 1, UNREVOKED, (0,), (1,))
    scene.record_current(3_050, "a", 2, STABLE, (0,))
    scene.record_current(4_000, "b", 2, STABLE, (1,))
    scene.record_gone(15_000, "b", 3)
    scene._sign(Kind.TICK, 20_000, {})
    scene.events[-1] = scene.events[-1]._replace(source="offsets-topic/offsets/0")
    known = scene.known()
    assert known.ended() == {"b": (15_000, "unknown", "unknown")}
    assert rebalances(known)[:2] == [(1, 1_000, "member_joined", "a"), (2, 3_050, "member_joined", "b")]
    assert known.states() == [(1_000, "Stable"), (2_000, "Reconciling"), (4_000, "Stable"), (15_000, "Assigning")]


def both(given_ms: int = -1) -> ModernScene:
    """The same as `pair`, with its records."""
    scene = ModernScene(given_ms=given_ms)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.record_join(2_000, "b", 2, state=UNRELEASED)
    scene.comes(2_010, "b", 2, since=2_000)
    scene.record_current(3_000, "a", 1, UNREVOKED, (0,), (1,))
    scene.beat(3_010, "a", 1, 1, assigned=(0,), since=3_000)
    scene.record_current(3_050, "a", 2, STABLE, (0,))
    scene.beat(3_060, "a", 1, 2, owned=(0,), since=3_050)
    scene.record_current(4_000, "b", 2, STABLE, (1,))
    scene.beat(4_010, "b", 2, 2, assigned=(1,), since=4_000)
    scene.beat(4_100, "b", 2, owned=(1,))
    scene.beat(4_200, "a", 2)
    return scene


def test_a_tombstone_without_a_leave_is_the_end_of_a_session_whose_length_it_shows() -> None:
    scene = both()
    scene.beats(6_200, 14_000, 2, "a")
    scene.record_gone(14_101, "b", 3)
    scene.beat(14_300, "a", 2, 3)
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (14_101, "session_expired", "inferred")}
    assert health(known, "a")["session_timeout_ms"] == 10_000
    assert rebalances(known)[-1][2:] == ("session_expired", "b")


def test_a_tombstone_with_a_leave_is_that_leave() -> None:
    scene = both()
    scene.record_gone(5_000, "b", 3)
    scene.goes(5_010, "b", since=5_000)
    scene.tick(8_000)
    assert scene.known().ended() == {"b": (5_000, "left", "exact")}


def test_the_answer_to_a_leave_may_come_long_after_its_record() -> None:
    """It waits until the record is replicated, other answers with it."""
    scene = both()
    scene.record_gone(5_000, "b", 3)
    scene.beat(6_200, "a", 2, 3, since=5_100)
    scene.goes(7_000, "b", since=4_999)
    scene.tick(9_000)
    known = scene.known()
    assert known.ended() == {"b": (5_000, "left", "exact")}
    assert rebalances(known)[-1][2:] == ("member_left", "b")


@pytest.mark.parametrize("given_ms", [-1, 10_000])
def test_where_records_are_read_silence_alone_ends_nobody(given_ms: int) -> None:
    scene = both(given_ms)
    scene.beats(6_200, 70_000, 2, "a")
    scene.tick(70_000)
    known = scene.known()
    assert known.ended() == {}
    assert health(known, "b")["status"] == "overdue"


def test_records_of_one_operation_are_one_step() -> None:
    """A new member, a new epoch, a new target: never Assigning."""
    scene = both()
    scene.tick(5_000)
    assert "Assigning" not in {state for _, state in scene.known().states()}


# --- the worst evidence


def test_a_gap_hides_who_was_heard_and_who_has_what() -> None:
    scene = pair()
    scene.gap(5_000, 9_000)
    scene.beats(9_100, 30_000, 2, "a")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {}
    assert (health(known, "b")["status"], health(known, "b")["partitions"]) == ("unknown", None)
    assert (5_000, "Unknown") in known.states()


def test_an_epoch_after_a_gap_is_nobodys_eviction() -> None:
    scene = pair()
    scene.gap(5_000, 20_000)
    scene.beat(20_100, "a", 2, 4, assigned=(0, 1))
    scene.tick(22_000)
    known = scene.known()
    assert known.ended() == {}
    assert rebalances(known)[-1][2] == "unknown"
    assert known.rebalances()[-1]["certainty"] in ("unknown", "inferred", "provisional")


def test_a_broker_that_logs_nothing_evicts_nobody() -> None:
    scene = pair()
    scene.tick(4_300, last_line=4_200)
    for at in range(5_300, 60_000, 1_000):
        scene.tick(at, last_line=4_200)
    known = scene.known()
    assert known.ended() == {}
    assert health(known, "b")["status"] == "overdue"


def test_a_load_begins_every_session_anew() -> None:
    """A coordinator that moved: b ends a session after the load, if it stays silent."""
    scene = pair()
    scene.beat(6_200, "a", 2, error=NOT_COORDINATOR)
    scene.tick(30_000)
    scene.at_broker(2)
    scene.beats(7_000, 17_000, 2, "a")
    scene.beat(17_100, "a", 2, 3, assigned=(0, 1))
    scene.beats(19_000, 30_000, 3, "a")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {"b": (17_000, "session_expired", "provisional")}
    assert (7_000, "Stable") in known.states()


def test_a_second_time_the_same_lines_say_nothing_new() -> None:
    scene = both()
    scene.record_gone(14_101, "b", 3)
    scene.tick(20_000)
    once = scene.known()
    scene.events += scene.events[:-1]
    twice = scene.known()
    assert twice.rows["transitions"] == once.rows["transitions"]
    assert twice.rows["members"] == once.rows["members"]


def test_a_late_timer_is_no_second_eviction() -> None:
    """The tombstone comes 400 ms after the deadline, on a busy broker."""
    scene = pair(given_ms=10_000)
    scene.record_current(6_000, "a", 2, STABLE, (0,))
    scene.beats(6_200, 14_000, 2, "a")
    scene.record_gone(14_500, "b", 3)
    scene.tick(20_000)
    known = scene.known()
    ((at, cause, _),) = [known.ended()["b"]]
    assert (at, cause) == (14_500, "session_expired")
    assert sum(row["cause"] == "session_expired" and row["entity"] == "member" for row in _transitions(known)) == 1


def _transitions(known: Known) -> list[dict[str, Any]]:
    return named("transitions", known.rows["transitions"])


def test_records_that_come_late_correct_what_requests_had_shown() -> None:
    """The topic is read some seconds behind the log: the epoch is there already, and the end has its instant."""
    scene = pair(given_ms=-1, version="4.1.2")
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3, assigned=(0, 1))
    scene.tick(18_000)
    before = len(scene.events)
    scene.record_gone(14_101, "b", 3)
    scene.tick(20_000)
    known = scene._fed([scene.events[:before], scene.events[before:]])
    assert known.alive() == {"a"}
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2, 3]
    assert is_between(known, "b", 14_101)


def is_between(known: Known, member: str, at: float) -> bool:
    """Whether the end of a member was at an instant, by what its row says."""
    rows = [row for row in named("members", known.rows["members"]) if row["member_id"] == member]
    begin = rows[-1]["ended_at_ms"] - START
    return bool(begin <= at <= begin + rows[-1]["at_bound_ms"])


def test_an_answer_25_of_a_member_whose_session_was_over_confirms_it() -> None:
    scene = pair()
    scene.beats(6_100, 14_000, 2, "b")
    scene.beat(15_500, "a", 2, error=UNKNOWN_MEMBER)
    scene.tick(17_000)
    assert scene.known().ended() == {"a": (14_200, "session_expired", "exact")}


def test_an_answer_25_that_nothing_explains_is_an_end_of_which_the_cause_is_unknown() -> None:
    scene = pair(given_ms=-1)
    scene.beat(6_200, "a", 2, error=UNKNOWN_MEMBER)
    scene.tick(8_000)
    known = scene.known()
    assert known.ended()["a"][1:] == ("unknown", "unknown")


def test_a_log_that_is_off_does_not_make_a_leave_an_eviction() -> None:
    """The last line stands at 4,200; b leaves at 20,000, and no line says so."""
    scene = both()
    scene.tick(5_000, last_line=4_200)
    scene.record_gone(20_000, "b", 3)
    for at in range(6_000, 40_000, 1_000):
        scene.tick(at, last_line=4_200)
    known = scene._fed([scene.events])
    assert known.ended().get("b", (0, "unknown", ""))[1] == "unknown"
    assert health(known, "a")["session_timeout_ms"] != 15_800


def test_one_epoch_too_many_is_found_out() -> None:
    """A join that was answered with the epoch there was: from 4.3 on the group may have the next one. It has not."""
    scene = pair()
    scene.comes(5_000, "c", 2)
    scene.beats(6_000, 22_000, 2, "a", "b", "c")
    scene.tick(22_000)
    known = scene.known()
    assert known.observer.groups["g"].generation == 2
    assert known.states()[-1][1] == "Stable"
    assert known.ended() == {}


def test_a_heartbeat_of_a_member_that_is_well_costs_the_same_in_a_large_group() -> None:
    def lines(members: int) -> int:
        scene = ModernScene(given_ms=45_000)
        names = [f"m{number}" for number in range(members)]
        for number, name in enumerate(names):
            scene.comes(1_000 + number, name, number + 1)
        for name in names:
            scene.beat(3_000, name, 1, members)
        scene.beats(5_000, 7_500, members, *names)
        scene.tick(8_000)
        observer = Observer(scene.settings)
        observer.step(scene.events)
        more = ModernScene(given_ms=45_000)
        more.position = scene.position
        more.beats(9_000, 15_000, members, "m0", "m1")
        more.tick(16_000)
        with Lines(ROOM) as counted:
            observer.step(more.events)
        return counted.done

    assert lines(200) <= 1.2 * lines(20)


# --- share and streams groups


@pytest.mark.parametrize("protocol", ["share", "streams"])
def test_groups_of_the_other_protocols_have_epochs_and_sessions_as_well(protocol: str) -> None:
    scene = pair(protocol=protocol)
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3)
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (14_100, "session_expired", "exact")}
    (row, *_) = named("members", known.rows["members"])
    assert row["protocol"] == protocol


def test_members_of_a_share_group_read_the_same_partitions() -> None:
    """That somebody is given a partition shows nothing of others."""
    scene = ModernScene(protocol="share", given_ms=-1)
    scene.comes(1_000, "a", 1, (0, 1))
    scene.comes(2_000, "b", 2, (0, 1))
    scene.beats(3_000, 20_000, 2, "a", "b")
    scene.tick(20_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert known.states() == [(1_000, "Stable")]


def test_the_first_assignment_of_a_streams_group_waits() -> None:
    """Its first epoch is 2, and members are answered with 1 until the target is computed."""
    scene = ModernScene(protocol="streams")
    scene.comes(1_000, "a", 1, status=[5])
    scene.comes(2_000, "b", 1, status=[5])
    scene.beat(4_100, "a", 1, 3, assigned=(0,))
    scene.beat(4_200, "b", 1, 3, assigned=(1,))
    scene.tick(5_000)
    known = scene.known()
    assert rebalances(known) == [(2, 4_200, "member_joined", "a"), (3, 4_200, "member_joined", "b")]
    assert known.states() == [(1_000, "Assigning"), (4_100, "Reconciling"), (4_200, "Stable")]


# --- hostile input


def test_what_is_no_protocol_of_ours_is_counted_and_nothing_else() -> None:
    scene = ModernScene()
    scene.comes(1_000, "a", 1)
    event: Event = scene.events[-1]
    scene.events[-1] = event._replace(detail={**(event.detail or {}), "protocol": "queue"})
    scene.tick(2_000)
    known = scene.known()
    assert known.alive() == set()
    assert sum(row["not_modelled"] for row in named("progress", known.rows["progress"])) == 1


def test_the_records_of_an_operation_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kardia.observe.modern.operations.MAX_RECORDS", 4)
    scene = both()
    scene.record_gone(14_101, "b", 3)
    scene.tick(20_000)
    known = scene.known()
    assert "b" in known.ended()
    assert all(len(group.operation) < 4 for group in known.observer.groups.values())


def test_open_rebalances_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kardia.observe.modern.epochs.MAX_OPEN", 5)
    scene = ModernScene()
    scene.comes(1_000, "a", 1, (0,))
    for number in range(20):
        scene.comes(1_100 + 10 * number, f"m{number}", number + 2)
    scene.tick(1_500)
    group = scene.known().observer.groups["g"]
    assert group.modern is not None
    assert len(group.modern.bumps) <= 5
    assert START > 0
