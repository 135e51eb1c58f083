"""Ids that a client chose to look like a sentence of the coordinator: whatever they make of a line of `server.log`, it
is never a number that does not exist, never another group's event, and never the end of the collector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ingest.dialects.server_log import ServerLog
from ingest.stamps import zone_named
from ingest.wire.batches import MAX_EVENTS, batches, decode_batch
from kardia.events import ALL_SHARDS, DEFAULT_OFFSETS_PARTITIONS, Event, Kind, shard_of
from kardia.observe import Observer, ObserverSettings
from kardia.tables import TABLES
from tests.ingest.lines import START_MS, line, stamp
from tests.ingest.world import LANES, World

UUID = "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"
OTHER = "11111111-2222-3333-4444-555555555555"
SCALA = "[GroupCoordinator 1]: "
HUGE = "99999999999999999999999"


def java(shard: int) -> str:
    """The prefix of a 4.x line: its partition is the broker's own word."""
    return f"[GroupCoordinator id=1 topic=__consumer_offsets partition={shard}] "


def line_of(message: str) -> bytes:
    return f"{stamp(START_MS)} INFO {message} (org.apache.kafka.coordinator.group.GroupMetadataManager)".encode()


def read(message: str) -> Any:
    data = line_of(message)
    return ServerLog(zone_named("UTC")).read(data, "b/server/i", 0, len(data) + 1)


def preparing(group: str, generation: int | str = 3, reason: str = "y", place: str = "") -> str:
    return (
        f"Preparing to rebalance group {group} in state Stable with old generation {generation}{place} "
        f"(reason: {reason})."
    )


def refusal(event: Any) -> str:
    assert isinstance(event, Event)
    assert event.kind == Kind.REJECTED
    return str((event.detail or {})["reason"])


def named_like(fake: str, shard: int) -> str:
    """A group of this shard whose name ends a fake sentence: what an attacker would draw until it fits."""
    return next(
        name
        for name in (f"{fake}{number}" for number in range(10_000))
        if shard_of(name, DEFAULT_OFFSETS_PARTITIONS) == shard
    )


@pytest.mark.parametrize("generation", [HUGE, "9" * 5_000, str(2**31)])
def test_a_number_that_cannot_be_is_refused_where_it_is_read(generation: str) -> None:
    for message in (
        SCALA + preparing("g", generation),
        SCALA + f"Stabilized group g generation {generation} with 2 members.",
        SCALA + f"Resigned as the group coordinator for partition {generation} in epoch OptionalInt[4]",
        java(3).replace("=3]", f"={generation}]") + "Group g with generation 5 is now empty.",
        SCALA + f"Stabilized group g generation 4 (__consumer_offsets-{generation})",
    ):
        assert refusal(read(message)) == "out_of_range", message


def test_a_number_at_its_bound_is_read() -> None:
    event = read(SCALA + preparing("g", 2**31 - 1))
    assert (event.kind, event.generation_id) == (Kind.COORDINATOR_LINE, 2**31 - 1)


def test_digits_of_other_scripts_are_none() -> None:
    assert refusal(read(SCALA + "Stabilized group g generation \u0663 with 2 members.")) == "unknown_sentence"


def test_a_fake_generation_does_not_hide_the_real_one() -> None:
    group = f"g in state Stable with old generation {HUGE} (reason: a"
    event = read(java(shard_of(group)) + preparing(group, 7))
    assert (event.group_id, event.generation_id) == (group, 7)


def test_a_group_cannot_speak_for_another_one_by_a_name_of_the_same_partition() -> None:
    victim = "orders"
    group = named_like(f"{victim} in state Stable with old generation 5 (reason: removing member x-{UUID} ", 7)
    assert shard_of(victim) != 7
    assert read(java(7) + preparing(group)).group_id == group
    group = named_like(f"{victim} in state Stable with old generation 5 (reason: x", shard_of(victim))
    assert refusal(read(java(shard_of(victim)) + preparing(group))) == "ambiguous"


def test_a_client_reason_does_not_help_it() -> None:
    victim = "orders"
    group = named_like(f"{victim} in state Stable with old generation 5 (reason: x", shard_of(victim))
    reason = "client reason: z in state Stable with old generation 6 (reason: b"
    found = read(java(shard_of(victim)) + preparing(group, reason=reason))
    assert refusal(found) == "ambiguous"


def test_a_partition_in_the_sentence_is_the_clients_word_where_it_can_be() -> None:
    victim = "orders"
    place = f" (__consumer_offsets-{shard_of(victim)})"
    group = f"{victim} in state Stable with old generation 5{place} (reason: x"
    own = f" (__consumer_offsets-{shard_of(group)})"
    assert refusal(read(SCALA + preparing(group, place=own))) == "ambiguous"


def test_without_a_partition_a_sentence_with_two_meanings_has_none() -> None:
    group = "orders in state Stable with old generation 5 (reason: x"
    assert refusal(read(SCALA + preparing(group))) == "ambiguous"


def test_a_group_that_is_new_cannot_speak_for_one_that_is_known(tmp_path: Path) -> None:
    """Its first rebalance is said before any of its requests is logged: to go by the known group would be its word."""
    group = "orders in state Stable with old generation 5 (reason: x"
    with World(tmp_path, server=True) as world:
        request = {"groupId": "orders", "generationId": 5, "memberId": "m-1", "groupInstanceId": None}
        world.file.write(line(1, request=request) + b"\n")
        world.server_path.write_bytes(line_of(SCALA + preparing(group)) + b"\n")
        world.step(10)
        found = [event for event in world.topic.events() if event.kind in (Kind.COORDINATOR_LINE, Kind.REJECTED)]
        assert [refusal(event) for event in found] == ["ambiguous"]


@pytest.mark.parametrize(
    "message",
    [
        f"Member c-{UUID} in group a-{OTHER} in group orders has failed, removing it from the group",
        f"Assignment received from leader c-{UUID} for group a-{OTHER} for group orders for generation 4.",
        f"[Group orders] Member a-{OTHER} has left group through explicit `LeaveGroup` request; client reason: x] "
        f"Member c-{UUID} has left group through explicit `LeaveGroup` request",
        f"Pending member c-{UUID} in group a-{OTHER} in group orders has been removed after session timeout "
        "expiration.",
    ],
)
def test_other_sentences_with_two_meanings_have_none_either(message: str) -> None:
    assert refusal(read(SCALA + message)) == "ambiguous"


def test_a_client_id_with_a_uuid_is_a_part_of_its_member_id() -> None:
    """Kafka Streams names its clients so: `<application>-<uuid>-StreamThread-1-consumer`."""
    member = f"app-{OTHER}-StreamThread-1-consumer-{UUID}"
    for reason in (
        f"Adding new member {member} with group instance id None; client reason: not provided",
        f"removing member {member} on heartbeat expiration",
        f"Updating metadata for member {member} during Stable; client reason: x",
        f"leader {member} re-joining group during Stable",
        f"explicit `LeaveGroup` request for ({member}) members.",
    ):
        event = read(SCALA + preparing("g", reason=reason))
        assert event.member_id == member, reason
    event = read(SCALA + f"Member {member} in group g has failed, removing it from the group")
    assert (event.member_id, event.group_id) == (member, "g")


# --- and if all that fails -------------------------------------------------------------------------------------------


def event(number: int, **changes: Any) -> Event:
    at = float(START_MS + number)
    one = Event(int(Kind.HEARTBEAT), 1, "b/request/i", number, number + 1, at, at, at, at, group_id="g")
    return one._replace(**changes)


STRANGE: tuple[dict[str, Any], ...] = (
    {"generation_id": 10**23},
    {"member_id": "\ud800"},
    {"detail": {"members": [object()]}},
    {"detail": {"generation": -(10**40)}},
)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("at", [0, 1, MAX_EVENTS - 1, MAX_EVENTS, 2 * MAX_EVENTS])
def test_an_event_that_cannot_be_encoded_becomes_a_rejected_one(strange: dict[str, Any], at: int) -> None:
    events = [event(number) for number in range(2 * MAX_EVENTS + 1)]
    events[at] = events[at]._replace(**strange)
    found = [one for data, _ in batches(events) for one in decode_batch(data)]
    assert len(found) == len(events)
    bad = found.pop(at)
    assert refusal(bad) == "not_an_event"
    assert (bad.source, bad.start, bad.end, bad.shard) == ("b/request/i", at, at + 1, ALL_SHARDS)
    assert found == [one for one in events if one.start != at]


def test_a_collector_goes_on_behind_such_a_group(tmp_path: Path) -> None:
    group = f"g in state Stable with old generation {HUGE} (reason: a"
    with World(tmp_path, server=True) as world:
        world.write(3)
        world.server_path.write_bytes(
            b"".join(
                line_of(SCALA + preparing(name)) + b"\n"
                for name in (group, f"g in state Stable with old generation {'9' * 5_000} (reason: a", "behind")
            )
        )
        world.drain()
        world.crash()
        world.write(1)
        world.drain()
        lines = {one.group_id for one in world.topic.events() if one.kind == Kind.COORDINATOR_LINE}
        assert "behind" in lines
        assert world.members() == world.expected()


def test_a_line_that_is_refused_is_not_a_gap(tmp_path: Path) -> None:
    """The ledger: what was sent and came is not lost, though it is no event. One bad line blinded a whole lane."""
    columns = [column.name for column in TABLES["progress"].columns]
    with World(tmp_path) as world:
        world.write(3)
        bad = {"groupId": "g", "generationId": -7, "memberId": "m"}
        world.file.write(line(9, request=bad) + b"\n")
        world.drain()
        world.write(3)
        world.drain()
        told = [
            dict(zip(columns, row, strict=False))
            for lane in range(LANES)
            for row in Observer(ObserverSettings("c", ""), lane).step(world.topic.events(lane))["progress"]
        ]
    assert [row["gaps"] for row in told] == [0] * LANES
    assert sum(row["rejected"] for row in told) == 1
