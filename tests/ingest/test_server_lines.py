"""Coordinator lines: both coordinators, old releases, and ids that try to look like a line."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.dialects import is_numbered
from ingest.dialects.server_log import PATTERNS, ServerLog
from ingest.stamps import zone_named
from kardia.events import COORDINATOR_LINES, Event, Kind, shard_of
from tests.ingest.lines import DATA, START_MS, STORIES, stamp

UUID = "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"
OTHER = "11111111-2222-3333-4444-555555555555"
SCALA = "[GroupCoordinator 1]: "
MANAGER = "[GroupMetadataManager brokerId=1] "


def java(group: str) -> str:
    return f"[GroupCoordinator id=1 topic=__consumer_offsets partition={shard_of(group)}] "


def read(message: str, logger: str = "org.apache.kafka.coordinator.group.GroupMetadataManager") -> Any:
    data = f"{stamp(START_MS)} INFO {message} ({logger})".encode()
    return ServerLog(zone_named("UTC")).read(data, "b/server/i", 0, len(data) + 1)


def said(message: str) -> tuple[str, str, str, str, int, str]:
    event = read(message)
    assert isinstance(event, Event), message
    assert event.kind == Kind.COORDINATOR_LINE
    detail = event.detail or {}
    assert detail["what"] in COORDINATOR_LINES
    return (
        detail["what"],
        event.group_id,
        event.member_id,
        event.group_instance_id,
        event.generation_id,
        detail["reason"],
    )


M = f"c-{UUID}"
N = f"d, e-{OTHER}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            SCALA + f"Preparing to rebalance group g in state PreparingRebalance with old generation 3 "
            f"(__consumer_offsets-{shard_of('g')}) (reason: Adding new member {M} with group instance id None; "
            "client reason: not provided)",
            (
                "preparing_rebalance",
                "g",
                M,
                "",
                3,
                f"Adding new member {M} with group instance id None; client reason: not provided",
            ),
        ),
        (
            java("g") + "Preparing to rebalance group g in state PreparingRebalance with old generation 3 (reason: "
            f"removing member {M} on heartbeat expiration.).",
            ("preparing_rebalance", "g", M, "", 3, f"removing member {M} on heartbeat expiration."),
        ),
        (
            java("g") + "Preparing to rebalance group g in state PreparingRebalance with old generation 3 (reason: "
            f"explicit `LeaveGroup` request for ({M}, {N}) members.).",
            ("preparing_rebalance", "g", M, "", 3, f"explicit `LeaveGroup` request for ({M}, {N}) members."),
        ),
        (
            SCALA + "Stabilized group g generation 4 (__consumer_offsets-3) with 2 members",
            ("stabilized", "g", "", "", 4, "2 members"),
        ),
        (SCALA + "Stabilized group g generation 4 (__consumer_offsets-3)", ("stabilized", "g", "", "", 4, "")),
        (java("g") + "Stabilized group g generation 4 with 2 members.", ("stabilized", "g", "", "", 4, "2 members")),
        (
            SCALA + f"Assignment received from leader {M} for group g for generation 4. The group has 2 members, "
            "0 of which are static.",
            ("assignment_received", "g", M, "", 4, "2 members"),
        ),
        (
            SCALA + "Assignment received from leader for group g for generation 4",
            ("assignment_received", "g", "", "", 4, ""),
        ),
        (
            SCALA + f"Member {M} in group g has failed, removing it from the group",
            ("member_failed", "g", M, "", -1, ""),
        ),
        (
            java("g") + f"Member {M} in group g has failed, removing it from the group.",
            ("member_failed", "g", M, "", -1, ""),
        ),
        (
            java("g")
            + f"[Group g] Member {M} has left group through explicit `LeaveGroup` request; client reason: bye",
            ("member_left", "g", M, "", -1, "bye"),
        ),
        (
            SCALA
            + f"Member MemberMetadata(memberId={M}, groupInstanceId=Some(i-1), clientId=c, clientHost=/127.0.0.1, "
            "sessionTimeoutMs=1, rebalanceTimeoutMs=1, supportedProtocols=List(range)) has left group g through "
            "explicit `LeaveGroup`; client reason: bye",
            ("member_left", "g", M, "i-1", -1, "bye"),
        ),
        (
            SCALA + f"Member[group.instance.id None, member.id {M}] in group g has left, removing it from the group",
            ("member_left", "g", M, "", -1, ""),
        ),
        (SCALA + f"Member {M} in group g has left, removing it from the group", ("member_left", "g", M, "", -1, "")),
        (
            java("g") + f"Pending member {M} in group g has been removed after session timeout expiration.",
            ("pending_member_removed", "g", M, "", -1, "session timeout expiration"),
        ),
        (
            java("g") + f"[Group g] Pending member {M} has left group through explicit `LeaveGroup` request; "
            "client reason: x",
            ("pending_member_removed", "g", M, "", -1, "x"),
        ),
        (
            SCALA + f"Pending member with memberId={M} has left group g through explicit `LeaveGroup` request",
            ("pending_member_removed", "g", M, "", -1, ""),
        ),
        (SCALA + f"Pending member {M} is leaving group g.", ("pending_member_removed", "g", M, "", -1, "")),
        (SCALA + "Group g with generation 5 is now empty (__consumer_offsets-3)", ("group_empty", "g", "", "", 5, "")),
        (java("g") + "Group g with generation 5 is now empty.", ("group_empty", "g", "", "", 5, "")),
        (SCALA + "Group g is dead, skipping rebalance stage", ("rebalance_skipped", "g", "", "", -1, "")),
        (java("g") + "Group g is dead, skipping rebalance stage.", ("rebalance_skipped", "g", "", "", -1, "")),
        (
            SCALA + f"Group g removed dynamic members who haven't joined: Set({M}, {N})",
            ("removed_not_joined", "g", M, "", -1, ""),
        ),
        (
            java("g") + f"Group g removed dynamic members who haven't joined: [{M}]",
            ("removed_not_joined", "g", M, "", -1, ""),
        ),
        (
            SCALA + "Static member with groupInstanceId=i-1 and unknown member id joins group g in Stable state. "
            f"Replacing previously mapped member {M} with this groupInstanceId.",
            ("static_replaced", "g", M, "i-1", -1, ""),
        ),
        (java("g") + "Loaded classic group g with 2 members.", ("group_loaded", "g", "", "", -1, "2 members")),
        (SCALA + "Loading group metadata for g with generation 4", ("group_loaded", "g", "", "", 4, "")),
        (java("g") + "[GroupId=g] Unloading group metadata for generation 4.", ("group_unloaded", "g", "", "", 4, "")),
        (SCALA + "Unloading group metadata for g with generation 4", ("group_unloaded", "g", "", "", 4, "")),
        (MANAGER + "Group g transitioned to Dead in generation 4", ("group_dead", "g", "", "", 4, "")),
        (
            java("g")
            + "[GroupId g] Member JPpgBn3mQZ2T4kLpuKcc5A fenced from the group because the member session expired.",
            ("epoch_member_fenced", "g", "JPpgBn3mQZ2T4kLpuKcc5A", "", -1, "the member session expired"),
        ),
    ],
)
def test_texts_of_both_coordinators(message: str, expected: tuple[str, str, str, str, int, str]) -> None:
    assert said(message) == expected


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (
            "[GroupCoordinator id=1] Finished loading of metadata from __consumer_offsets-7 with epoch 3 in 5ms",
            "partition_loaded",
        ),
        (
            MANAGER
            + "Finished loading offsets and group metadata from __consumer_offsets-7 in 5 milliseconds for epoch 3",
            "partition_loaded",
        ),
        (
            "[GroupCoordinator id=1] Started unloading metadata for __consumer_offsets-7 with epoch OptionalInt[4].",
            "partition_unloaded",
        ),
        (SCALA + "Resigned as the group coordinator for partition 7 in epoch OptionalInt[4]", "partition_unloaded"),
    ],
)
def test_lines_about_a_partition_have_its_shard_and_no_group(message: str, what: str) -> None:
    event = read(message)
    assert (event.detail["what"], event.shard, event.group_id) == (what, 7, "")


def test_members_beyond_the_first_are_kept() -> None:
    event = read(SCALA + f"Group g removed dynamic members who haven't joined: HashSet({M}, {N})")
    assert (event.member_id, event.detail["members"]) == (M, [N])


def test_deleted_groups_get_an_event_each() -> None:
    events = read(SCALA + "The following groups were deleted: a, b. A total of 3 offsets were removed.")
    assert [(event.group_id, event.detail["what"], event.shard) for event in events] == [
        ("a", "group_dead", shard_of("a")),
        ("b", "group_dead", shard_of("b")),
    ]
    assert events[0].end == events[1].start


HOSTILE = "g in state PreparingRebalance with old generation 9 (reason: x"


def test_a_group_that_looks_like_a_line_is_told_apart_by_its_partition() -> None:
    message = f"Preparing to rebalance group {HOSTILE} in state PreparingRebalance with old generation 3 (reason: y)."
    what, group, _, _, generation, reason = said(java(HOSTILE) + message)
    assert (what, group, generation, reason) == ("preparing_rebalance", HOSTILE, 3, "y")


def test_a_client_reason_cannot_become_the_group() -> None:
    reason = "x in state PreparingRebalance with old generation 9 (reason: gotcha"
    message = f"Preparing to rebalance group g in state PreparingRebalance with old generation 3 (reason: {reason})."
    assert said(java("g") + message)[1] == "g"


def test_a_client_reason_is_not_searched_for_members() -> None:
    reason = (
        f"Updating metadata for member {M} during Stable; client reason: removing member {N} on heartbeat expiration."
    )
    message = f"Preparing to rebalance group g in state PreparingRebalance with old generation 3 (reason: {reason})."
    assert said(java("g") + message)[2] == M


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "blank"),
        (b"[2026-11-20 10:47:18,113] INFO started (kafka.server.KafkaServer)", "not_a_coordinator_line"),
        (b"java.lang.IllegalStateException: x", "continuation"),
        (b"\tat kafka.coordinator.group.GroupCoordinator.handle(GroupCoordinator.scala:1)", "continuation"),
        (
            f"{stamp(START_MS)} INFO {SCALA}Startup complete. (kafka.coordinator.group.GroupCoordinator)".encode(),
            "not_a_coordinator_line",
        ),
    ],
)
def test_other_lines_are_ignored(data: bytes, reason: str) -> None:
    assert ServerLog(zone_named("UTC")).read(data, "b/server/i", 0, len(data)) == reason


@pytest.mark.parametrize(
    ("line", "broker"),
    [
        (b"[2026-11-20 08:26:30,010] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)", "broker-3"),
        (b"[2026-11-20 08:26:30,010] INFO [GroupCoordinator 12]: Stabilized group g generation 1", "broker-12"),
        (b"[2026-11-20 08:26:30,010] INFO [GroupCoordinator id=4 topic=__consumer_offsets partition=1] x", "broker-4"),
        (b"[2026-11-20 08:26:30,010] INFO [ReplicaManager broker=5] Stopped (kafka.server)", "broker-5"),
        (b"[2026-11-20 08:26:30,010] INFO Stabilized group x [KafkaServer id=9] generation 1", None),
        (b"[2026-11-20 08:26:30,010] INFO [Controller id=9] Stopped (kafka.controller)", None),
        (b"\tat kafka.server [KafkaServer id=9]", None),
    ],
)
def test_a_broker_is_named_by_the_node_id_that_its_own_components_say(line: bytes, broker: str | None) -> None:
    found = ServerLog(zone_named("UTC")).broker_of(line)
    assert (found and found.address) == broker
    assert is_numbered(broker or "10.0.0.1:9092") == (broker is not None)


def test_bad_bytes_are_refused() -> None:
    data = f"{stamp(START_MS)} INFO {SCALA}Member ".encode() + b"\xff (kafka.coordinator.group.GroupCoordinator)"
    event = ServerLog(zone_named("UTC")).read(data, "b/server/i", 0, len(data))
    assert isinstance(event, Event)
    assert (event.kind, (event.detail or {})["reason"]) == (Kind.REJECTED, "bad_encoding")


def test_every_kind_of_line_has_a_pattern() -> None:
    no_sentence = {"configured"}  # a setting of the broker, see `test_logged_settings`
    assert {pattern.what for pattern in PATTERNS} == set(COORDINATOR_LINES) - no_sentence


def test_a_line_made_to_be_slow_is_not(  # linear patterns: a MiB within seconds
) -> None:
    read(java("g") + "Preparing to rebalance group " + " in state PreparingRebalance with old generation 1" * 4_000)
    read(SCALA + "Member " + "a-" * 50_000 + " in group g has failed, removing it from the grou")


@pytest.mark.parametrize(
    "path", sorted(STORIES.glob("*/server*.log.gz")), ids=lambda path: path.parent.name + path.name
)
def test_recorded_logs_give_their_lines(path: Path) -> None:
    """Every sentence of the coordinator about a group's generation is understood."""
    dialect = ServerLog(zone_named("UTC"))
    missed: Counter[str] = Counter()
    with gzip.open(path) as lines:
        for data in lines:
            reading = dialect.read(data.rstrip(b"\n"), "b/server/i", 0, len(data))
            if not isinstance(reading, str):
                continue
            text = data.decode()
            if not text.startswith("["):
                continue  # the rest of a line whose group or member id has a line break
            if "coordinator.group" in text and any(
                word in text for word in (" generation ", "has failed", "has left", "is now empty", "Replacing prev")
            ):
                missed[text] += 1
    assert not missed


def test_the_sample_of_4_1_1() -> None:
    counted: Counter[str] = Counter()
    dialect = ServerLog(zone_named("UTC"))
    for data in (DATA / "coordinator-server-log-4.1.1.txt").read_bytes().splitlines():
        reading = dialect.read(data, "b/server/i", 0, len(data))
        if isinstance(reading, Event):
            counted[(reading.detail or {})["what"]] += 1
    assert counted == {
        "preparing_rebalance": 21,
        "stabilized": 11,
        "assignment_received": 11,
        "group_empty": 10,
        "member_left": 6,
        "member_failed": 5,
        "static_replaced": 1,
        "epoch_member_joined": 6,
        "epoch_member_away": 4,
        "epoch_member_fenced": 2,
        "epoch_member_left": 4,
        "epoch_member_replaced": 2,
        "epoch_raised": 12,
        "target_computed": 6,
    }
