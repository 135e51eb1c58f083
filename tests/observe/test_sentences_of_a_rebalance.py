"""Sentences about a group that prepares, and about one that its broker lets go: who is a member, and in which state."""

from __future__ import annotations

from kardia.kafka.states import GroupState
from tests.support.told import START, A, B, C, Told


def test_who_joins_while_the_group_prepares_is_a_member_from_then_on() -> None:
    """No sentence about the rebalance names him: he once began where the record listed him, or not at all."""
    told = Told()
    told.joins(1_000, 0)
    told.say(
        1_400, f"Pending dynamic member with id {B} joins group g in PreparingRebalance state. Adding to the group now."
    )
    told.say(
        1_500,
        "Static member with groupInstanceId=i-c and unknown member id joins group g in PreparingRebalance state. "
        f"Created a new member id {C} for this member and added to the group.",
    )
    told.becomes(4_000, 1, 3)
    told.record(4_020, 1, A, B, C)
    told.expires(9_000, B, 1)
    joined = {
        row["member_id"]: (
            row["joined_at_ms"] - START,
            row["client_id"],
            row["group_instance_id"],
            row["generation_first"],
        )
        for row in told.rows()["members"]
    }
    assert joined[B] == (1_400, "b", None, 1)
    assert joined[C][0] == 1_500
    assert len(joined) == 3
    assert told.ends() == {B: (9_000, "session_expired", "exact")}


def test_the_record_of_a_generation_that_is_read_after_the_next_rebalance_began_does_not_end_it() -> None:
    """It is stored some ms after its assignment was received, and a JoinGroup that waited behind is told in between."""
    told = Told()
    told.joins(1_000, 0)
    told.becomes(4_000, 1, 1)
    told.joins(4_013, 1, B)
    told.record(4_013, 1, A)
    told.say(
        4_300, f"Pending dynamic member with id {C} joins group g in PreparingRebalance state. Adding to the group now."
    )
    told.becomes(6_000, 2, 3)
    assert [row["started_at_ms"] - START for row in told.rows()["rebalances"]] == [1_000, 4_013]
    assert [state for at_ms, state, _ in told.states() if 4_013 <= at_ms < 6_000] == [GroupState.PREPARING]


def test_a_broker_that_unloads_a_group_is_told_as_that_and_not_as_a_move() -> None:
    """It shuts down, or another one leads: the sentence says neither."""
    told = Told()
    told.joins(0, 0)
    told.becomes(100, 1, 1)
    told.say(5_000, "Unloading group metadata for g with generation 1")
    causes = [row["cause"] for row in told.rows()["transitions"] if row["entity"] == "group"]
    assert causes[-1] == "coordinator_unloaded"
    assert told.states()[-1] == (5_000, GroupState.UNKNOWN, "unknown")


def test_a_member_with_the_leaders_seat_is_the_leader_though_its_id_is_a_new_one() -> None:
    """Up to 2.4 the sentence about a seat that is taken names no group, so that nobody is told of the new id."""
    old, new = (f"seat-00000000-0000-4000-8000-00000000000{number}" for number in (7, 8))
    for member, trigger in ((new, "leader_rejoined"), (B, "metadata_changed")):
        told = Told()
        told.joins(0, 0)
        told.becomes(3_000, 1, 2)
        told.record(3_012, 1, old, B, instances={old: "seat"})
        told.prepares(9_000, 1, f"Updating metadata for member {member}")
        row = told.rows()["rebalances"][-1]
        assert (row["trigger"], row["trigger_member_id"]) == (trigger, member)
        assert (row["certainty"] == "exact") == (member == B)


def test_where_somebody_ends_whom_the_list_lacked_it_was_not_whole() -> None:
    """The seat of A was taken: the new id is named by its end alone, and A is a member no more."""
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 1)
    told.record(3_012, 1, A, instances={A: "a"})
    told.expires(20_000, C, 1)
    assert told.rows()["rebalances"][-1]["members_before"] is None
