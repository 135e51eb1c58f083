"""Groups that have epochs: joins, epochs, rebalances and sessions; share and streams groups; hostile input. The
rules' sources stand with the code.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

import pytest

from kardia.events import Event
from tests.support.modern_scene import (
    ModernScene,
    both,
    health,
    pair,
    rebalances,
    since_start,
)
from tests.support.scene import START
from tests.support.stories import named

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


def test_the_default_of_brokers_is_told_in_no_row() -> None:
    scene = pair(given_ms=-1)
    scene.tick(5_000)
    known = scene.known()
    row = health(known, "a")
    assert (row["session_timeout_ms"], row["session_deadline_at_ms"]) == (None, None)
    assert row["certainty"] == "provisional"
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
    assert (last["trigger"], since_start(last["started_at_ms"]), last["at_bound_ms"]) == (
        "topic_metadata",
        5_100,
        1_100,
    )
    assert last["certainty"] == "provisional"  # nobody asked for it, and nobody can have been gone
    assert known.alive() == {"a", "b"}


def test_a_broker_before_4_3_computes_every_target_at_once() -> None:
    scene = pair(version="4.1.2")
    scene.beat(6_100, "b", 2)
    scene.beat(6_200, "a", 2, 3)
    scene.tick(9_000)
    last = scene.known().rebalances()[-1]
    assert (since_start(last["started_at_ms"]), last["at_bound_ms"]) == (6_100, 100)


def test_of_two_who_join_at_once_the_one_with_the_later_epoch_was_the_second_though_it_asked_first() -> None:
    """b's request arrived at 1,000, waited for a thread until 1,012, and took effect in between or later."""
    scene = ModernScene(version="4.1.2")
    scene.comes(1_014, "a", 1, (0, 1), since=1_005)
    scene.comes(1_021, "b", 2, since=1_000)
    scene.events[-1] = scene.events[-1]._replace(handled_at_ms=float(START + 1_012))
    scene.tick(4_000)
    rows = [row for row in scene.known().rebalances() if not row["withdrawn"]]
    assert [(row["generation_after"], row["trigger_member_id"]) for row in rows] == [(1, "a"), (2, "b")]
    assert since_start(rows[1]["started_at_ms"]) == 1_005


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


@pytest.mark.parametrize("protocol", ["consumer", "share"])
def test_of_two_that_join_in_one_instant_the_epochs_of_their_answers_say_who_was_first(protocol: str) -> None:
    """b was taken from the queue a moment before a, and its answer is in the log first; the coordinator did a first."""
    scene = ModernScene(protocol=protocol, version="4.1.2")
    scene.comes(1_009, "b", 2, since=1_000.1)
    scene.comes(1_008, "a", 1, since=1_000.4)
    scene.tick(3_000)
    told = {row["generation_after"]: row["trigger_member_id"] for row in scene.known().rebalances()}
    assert told == {1: "a", 2: "b"}


@pytest.mark.parametrize(("later_ms", "sure"), [(3.0, "exact"), (0.2, "provisional")])
def test_of_two_that_join_while_the_first_assignment_is_delayed_their_answers_do_not_say_who_was_first(
    later_ms: float, sure: str
) -> None:
    """Both have the epoch from before every join. b is answered first, and its line is read first."""
    scene = ModernScene(protocol="streams", version="4.2.1")
    scene.comes(1_030, "b", 1, since=1_000 + later_ms, status=[5])
    scene.comes(1_031, "a", 1, since=1_000, status=[5])
    scene.tick(3_000)
    rows = scene.known().rebalances()
    told = {row["generation_after"]: (row["trigger_member_id"], row["certainty"]) for row in rows}
    assert [told[epoch][0] for epoch in (2, 3)] == ["a", "b"]
    assert told[2][1] == sure
    assert set(told) == {2, 3}


def test_a_group_that_was_deleted_unseen_counts_its_epochs_from_the_first_again() -> None:
    """By requests alone: nobody was left, its offsets expired, and others come under its name ten minutes later."""
    scene = ModernScene(version="4.1.2")
    scene.comes(1_000, "a", 1)
    scene.beats(3_000, 9_000, 1, "a")
    scene.comes(9_500, "b", 2)
    scene.beat(11_000, "a", 1, 2)
    scene.beats(13_000, 20_000, 2, "a", "b")
    scene.goes(21_000, "a")
    scene.beat(22_000, "b", 2, 3)
    scene.goes(23_000, "b")
    scene.tick(600_000)
    scene.comes(601_000, "c", 1)
    scene.beats(603_000, 625_000, 1, "c")
    scene.comes(630_000, "d", 2)
    scene.beat(631_000, "c", 1, 2)
    scene.beats(632_000, 650_000, 2, "c", "d")
    scene.tick(652_000)
    rows = [
        (row["generation_after"], row["started_at_ms"] - START, row["certainty"]) for row in scene.known().rebalances()
    ]
    assert rows[-2:] == [(1, 601_000, "exact"), (2, 630_000, "exact")]
