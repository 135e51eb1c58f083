"""Whom a load names: the coordinator of 2.5 to 3.9 tells each member of each record that it reads. Instants in ms."""

from __future__ import annotations

from typing import Any

from tests.support.told import START, A, B, C, Told


def read(told: Told, at_ms: int, member: str, generation: int, instance: str = "None", group: str = "g") -> None:
    """A member of a record that a load has read."""
    client = f"clientId={member[0]}, clientHost=/10.0.0.9, sessionTimeoutMs=10000, rebalanceTimeoutMs=60000"
    told.say(
        at_ms,
        f"Loaded member MemberMetadata(memberId={member}, groupInstanceId={instance}, {client}, "
        f"supportedProtocols=List(range)) in group {group} with generation {generation}.",
    )


def loaded(told: Told, at_ms: int, generation: int) -> None:
    told.say(at_ms, f"Loading group metadata for g with generation {generation}")


def members(told: Told) -> dict[str, tuple[int, str | None, int | None, str]]:
    """Member -> (since, end, session timeout, certainty)."""
    rows: list[dict[str, Any]] = told.rows()["members"]
    return {
        row["member_id"]: (
            row["joined_at_ms"] - START,
            row["end_cause"],
            row["session_timeout_ms"],
            row["certainty"],
        )
        for row in rows
    }


def test_who_is_named_in_the_record_that_counts_is_a_member() -> None:
    told = Told()
    read(told, 100, A, 4)
    read(told, 100, B, 4)
    loaded(told, 120, 4)
    assert members(told) == {
        A: (120, None, 10_000, "provisional"),
        B: (120, None, 10_000, "provisional"),
    }
    assert told.states() == [(120, "Stable", "inferred")]


def test_records_of_generations_before_name_nobody() -> None:
    told = Told()
    read(told, 100, C, 3)
    read(told, 100, A, 4)
    loaded(told, 120, 4)
    assert members(told).keys() == {A}


def test_a_group_of_which_only_old_records_are_read_is_none() -> None:
    """It was deleted since, or has become empty."""
    told = Told()
    read(told, 100, A, 4)
    assert told.rows().get("members", []) == []
    assert told.rows()["transitions"] == []
    loaded(told, 120, 5)
    assert members(told) == {}


def test_a_seat_that_was_taken_within_the_generation_is_the_later_ones() -> None:
    told = Told()
    read(told, 100, A, 4, "Some(i-a)")
    read(told, 100, C, 4)
    read(told, 101, B, 4, "Some(i-a)")
    read(told, 101, C, 4)
    loaded(told, 120, 4)
    assert members(told).keys() == {B, C}


def test_whoever_was_a_member_before_stays_the_same_member_and_is_known_better() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 1)
    read(told, 9_000, A, 1)
    loaded(told, 9_010, 1)
    (row,) = told.rows()["members"]
    assert (row["member_id"], row["joined_at_ms"], row["session_timeout_ms"]) == (A, START, 10_000)
    assert row["client_host"] == "10.0.0.9"


def test_up_to_2_7_the_static_ones_are_named() -> None:
    told = Told()
    told.say(
        100,
        f"Static member MemberMetadata(memberId={A}, groupInstanceId=Some(i-a), clientId=a, clientHost=/10.0.0.9, "
        "sessionTimeoutMs=10000, rebalanceTimeoutMs=60000, supportedProtocols=List(range), ).groupInstanceId of group "
        f"g loaded with member id {A} at generation 2.",
    )
    loaded(told, 120, 2)
    (row,) = told.rows()["members"]
    assert (row["member_id"], row["group_instance_id"], row["session_timeout_ms"]) == (A, "i-a", 10_000)


def test_what_one_load_has_read_does_not_serve_the_next() -> None:
    told = Told()
    read(told, 100, A, 4)
    told.say(130, "Finished loading offsets and group metadata from __consumer_offsets-3 in 9 milliseconds")
    shard = told.events[0].shard
    told.say(131, f"Finished loading offsets and group metadata from __consumer_offsets-{shard} in 9 milliseconds")
    loaded(told, 200, 4)
    assert members(told) == {}
