"""Recorded stories of consumer, share and streams groups against their truth: every end, leave, epoch and conversion,
with its instant; and what each kind of evidence proves alone, and no more.

The truth of an instant is the stamp of the coordinator's own line, which is not read here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from tests.support.stories import MODERN_STORIES, NOISE_GROUPS, Story, lanes_of, named, standing

WITHIN_MS = 10
"""Promise of an instant against the broker's own line."""

FIRST_MS = 100
"""The first operation of a broker that has just started waits for classes to load: its line stands before, its records
after that. Seen: 31 to 96 ms."""

BOTH, RECORDS, REQUESTS, CONFIGURED = "both", "records", "requests", "requests and the session timeout"
EVIDENCE = (BOTH, RECORDS, REQUESTS, CONFIGURED)

CAUSES = {"the member session expired": "session_expired", "it failed to transition": "rebalance_timeout"}


@cache
def said(name: str, evidence: str) -> dict[str, list[Row]]:
    """What is said of a story by some evidence."""
    given_ms = 10_000 if evidence == CONFIGURED else -1
    settings = ObserverSettings(
        "test", consumer_session_ms=given_ms, share_session_ms=given_ms, streams_session_ms=given_ms
    )
    rows: dict[str, list[Row]] = {}
    for lane, events in enumerate(lanes_of(name, offsets=evidence in (BOTH, RECORDS))):
        observer = Observer(settings, lane)
        for part in (observer.step(_records(events) if evidence == RECORDS else events), observer.finish()):
            for table, some in part.items():
                rows.setdefault(table, []).extend(some)
    return rows


def _records(events: tuple[Event, ...]) -> list[Event]:
    """The records among the events, and a tick that says that all were read."""
    records = [event for event in events if event.source.startswith("offsets-topic")]
    if records:
        at = max(event.logged_at_ms for event in records) + 5_000
        records.append(Event(int(Kind.TICK), -1, "offsets-topic/offsets/0", 0, 1, at, at, at, at, detail={}))
    return records


def of(name: str, evidence: str, table: str) -> list[dict[str, Any]]:
    """Standing rows of a table, without the noise."""
    return [row for row in standing(table, said(name, evidence)[table]) if row["group_id"] not in NOISE_GROUPS]


def transitions(name: str, evidence: str) -> list[dict[str, Any]]:
    rows = named("transitions", said(name, evidence)["transitions"])
    return [row for row in rows if row["group_id"] not in NOISE_GROUPS]


def evictions(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """(group, member id) -> what the coordinator's own line says of a member that a timer ended."""
    true = [item for item in Story(name).expect["evictions"] if not item.get("not_an_eviction_by_time")]
    return {(item["group"], item["member_id"]): item for item in true}


def is_within(row: dict[str, Any], column: str, at_ms: float, within_ms: float = WITHIN_MS) -> bool:
    """Whether an instant lies between those that a row says."""
    bound = row["at_bound_ms"]
    return row[column] - within_ms <= at_ms and (bound is None or at_ms <= row[column] + bound + within_ms)


@pytest.mark.parametrize("evidence", [BOTH, CONFIGURED])
@pytest.mark.parametrize("name", MODERN_STORIES)
def test_every_eviction_is_found_with_its_cause_and_instant_and_none_is_invented(name: str, evidence: str) -> None:
    ended = {
        (row["group_id"], row["member_id"]): row
        for row in of(name, evidence, "members")
        if row["end_cause"] in ("session_expired", "rebalance_timeout", "join_timeout", "sync_timeout")
    }
    true = evictions(name)
    assert ended.keys() == true.keys()
    for key, item in true.items():
        row = ended[key]
        assert row["end_cause"] == next(cause for words, cause in CAUSES.items() if words in item["why"])
        assert abs(row["ended_at_ms"] - item["t"]) <= WITHIN_MS
        assert row["certainty"] in ("exact", "inferred")


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_records_alone_show_when_a_member_was_gone_and_never_a_cause_that_they_do_not_show(name: str) -> None:
    """The rebalance timeout runs from a record to a record; a session runs from a heartbeat that none is written of."""
    ended = {(row["group_id"], row["member_id"]): row for row in of(name, RECORDS, "members") if row["ended_at_ms"]}
    for key, item in evictions(name).items():
        row = ended[key]
        assert abs(row["ended_at_ms"] - item["t"]) <= WITHIN_MS
        expected = "rebalance_timeout" if "transition" in item["why"] else "unknown"
        assert row["end_cause"] == expected
    assert {row["end_cause"] for row in ended.values()} <= {"unknown", "rebalance_timeout", "static_replaced"}


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_requests_alone_do_not_end_whom_nothing_shows_to_be_gone(name: str) -> None:
    """Nothing says how long a session is. That a partition of it is given to somebody shows that its member is gone, at
    some time before; where nothing does it is overdue at most."""
    true = evictions(name)
    for row in of(name, REQUESTS, "members"):
        key = (row["group_id"], row["member_id"])
        if row["end_cause"] in ("session_expired", "rebalance_timeout"):
            assert is_within(row, "ended_at_ms", true[key]["t"]), row
        elif row["ended_at_ms"] is not None:
            assert key not in true, row


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", MODERN_STORIES)
def test_every_leave_is_found_and_none_is_invented(name: str, evidence: str) -> None:
    """A static member that leaves for a moment stays a member. librdkafka does not say that it closed: without a sign
    of a poll timeout that is inferred."""
    expect = Story(name).expect
    left = [item for item in expect["leaves"] if "temporarily" not in item["why"]]
    ended = [row for row in of(name, evidence, "members") if row["end_cause"] in ("left", "poll_timeout")]
    if evidence == RECORDS:
        assert ended == []
        return
    found = sorted((row["group_id"], row["member_id"], row["ended_at_ms"]) for row in ended)
    true = sorted((item["group"], item["member_id"], item["t"]) for item in left)
    assert [key[:2] for key in found] == [key[:2] for key in true]
    for (_, _, said_ms), (_, _, at_ms) in zip(found, true, strict=True):
        assert abs(said_ms - at_ms) <= WITHIN_MS
    assert {row["end_cause"] for row in ended} <= {"left"}
    for row in ended:
        told = "rdkafka" not in (row["client_software_version"] or "")
        assert row["certainty"] == "exact" or (not told and row["certainty"] == "inferred")


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_a_static_member_that_leaves_for_a_moment_is_a_member_until_it_is_replaced_or_its_session_ends(
    evidence: str,
) -> None:
    rows = [row for row in transitions("k06_static-4.1.2", evidence) if row["cause"] == "static_left"]
    true = [item for item in Story("k06_static-4.1.2").expect["leaves"] if "temporarily" in item["why"]]
    moments = [row for row in rows if row["entity"] == "member"]
    assert [row["member_id"] for row in moments] == [item["member_id"] for item in true]
    assert all(abs(row["at_ms"] - item["t"]) <= WITHIN_MS for row, item in zip(moments, true, strict=True))
    replaced = [row for row in of("k06_static-4.1.2", evidence, "members") if row["end_cause"] == "static_replaced"]
    assert [row["client_id"] for row in replaced] == ["k06-a"]


@pytest.mark.parametrize("name", ["k06_static-4.1.2", "k07_unreleased-4.4.0"])
@pytest.mark.parametrize("evidence", [BOTH, REQUESTS])
def test_who_asks_for_an_instance_id_that_a_member_has_is_refused_and_nobody_is_evicted(
    name: str, evidence: str
) -> None:
    true = [item for item in Story(name).expect["evictions"] if item.get("not_an_eviction_by_time")]
    rows = [row for row in transitions(name, evidence) if row["cause"] == "instance_id_in_use"]
    assert [row["member_id"] for row in rows] == [item["member_id"] for item in true]
    assert all(abs(row["at_ms"] - item["t"]) <= WITHIN_MS for row, item in zip(rows, true, strict=True))
    known = {row["member_id"] for row in of(name, evidence, "members")}
    assert known.isdisjoint(item["member_id"] for item in true)


def epochs(name: str, evidence: str) -> dict[tuple[str, int], dict[str, Any]]:
    """(group, epoch) -> its rebalance."""
    rows = [row for row in of(name, evidence, "rebalances") if row["leader_member_id"] is None]
    return {(row["group_id"], row["generation_after"]): row for row in rows}


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", MODERN_STORIES)
def test_every_epoch_is_found_when_it_began_and_when_every_member_had_come_to_it(name: str, evidence: str) -> None:
    found = epochs(name, evidence)
    for item in Story(name).expect["rebalances"]:
        if item["kind"] != "modern":
            continue
        row = found.get((item["group"], item["to_gen"]))
        if row is None and evidence in (REQUESTS, CONFIGURED):
            # The epoch is below one that an answer showed: told together, as one of which it is not known what it was.
            assert any(one["generation_before"] < item["to_gen"] < epoch for (_, epoch), one in found.items())
            continue
        assert row is not None, item
        first = row["generation_before"] in (0, 1)
        assert is_within(row, "started_at_ms", item["t_start"], FIRST_MS if first else WITHIN_MS), (row, item)
        reached = list(item["members_at_epoch"].values())
        if reached and row["completed_at_ms"] is not None:
            # An answer is later than the operation by what it takes to store its record.
            assert row["completed_at_ms"] >= row["started_at_ms"]
            assert min(reached) - 200 <= row["completed_at_ms"] + (row["at_bound_ms"] or 0), (row, item)


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_records_and_requests_together_know_what_began_every_epoch(name: str) -> None:
    for row in epochs(name, BOTH).values():
        if row["leader_member_id"] is None and row["trigger"] != "topic_metadata":
            assert row["trigger"] != "unknown", row
            assert row["trigger_member_id"], row


def test_who_held_its_partitions_back_is_named_with_how_many() -> None:
    """k08-b is told to give up one of its partitions, and is evicted after its 8 s: the group waited for it."""
    for evidence in EVIDENCE:
        row = epochs("k08_rebalance_timeout-4.1.2", evidence)["h08", 3]
        longest = row["stragglers"][0]
        assert (longest["client_id"], longest["joined"], longest["partitions"]) == ("k08-b", False, 1)
        assert 8_200 <= longest["waited_ms"] <= 8_300
        assert (row["partitions_moved"], row["partition_seconds_lost"]) == (1, 5)


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_a_group_is_converted_on_line_and_back(evidence: str) -> None:
    """Classic to consumer with the first member of the consumer protocol, back when the last one has left."""
    name = "k11_migration-4.1.2"
    true = [item for item in Story(name).expect["rebalances"] if item["kind"] == "conversion"]
    rows = [row for row in transitions(name, evidence) if row["cause"] in ("upgraded", "downgraded")]
    assert [row["cause"] for row in rows] == ["upgraded", "downgraded"]
    for row, item in zip(rows, true, strict=True):
        # The classes of the consumer protocol are loaded in the first operation: its records are 11 ms later.
        assert is_within(row, "at_ms", item["t_start"], 15), (row, item)
    if evidence != RECORDS:
        last = [row for row in of(name, evidence, "rebalances") if row["leader_member_id"]][-1]
        assert (last["generation_before"], last["generation_after"], last["trigger"]) == (6, 7, "member_left")
    protocols = {row["client_id"]: row["protocol"] for row in of(name, evidence, "members")}
    assert protocols["k11-a2"] == "consumer"
    assert {protocols[one] for one in ("k11-b", "k11-c", "k11-d")} == {"classic"}


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_no_divergence_is_counted_where_the_evidence_is_whole(name: str) -> None:
    for evidence in EVIDENCE:
        rows = named("progress", said(name, evidence)["progress"])
        assert {(row["divergences"], row["not_modelled"]) for row in rows} <= {(0, 0)}, evidence


@pytest.mark.parametrize("name", [name for name in MODERN_STORIES if evictions(name)])
def test_evictions_are_foretold_where_it_is_known_how_long_a_session_is(name: str) -> None:
    rows = of(name, CONFIGURED, "predictions")
    came = {row["member_id"] for row in rows if row["outcome"] == "came_true"}
    assert came == {member_id for _, member_id in evictions(name)}
    assert all(row["lead_ms"] > 0 for row in rows if row["outcome"] == "came_true")


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", MODERN_STORIES)
def test_an_end_that_is_exact_has_the_true_instant_between_its_bounds(name: str, evidence: str) -> None:
    true = {key: item["t"] for key, item in evictions(name).items()}
    for row in of(name, evidence, "members"):
        at_ms = true.get((row["group_id"], row["member_id"]))
        if row["certainty"] == "exact" and row["end_cause"] is not None and at_ms is not None:
            assert is_within(row, "ended_at_ms", at_ms, 3), row
