"""Groups whose requests are not read: what each sentence and record proves, and what none of them does.

Sentences are given as their brokers write them, and read by the dialect of server.log; the laws are those of the
observer: any split into steps, with the state written down and read back in between, says the same.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardia.events import Event, Kind, shard_of
from kardia.kafka.states import GroupState
from tests.corpora.test_outages import OUTAGES
from tests.support.evidence_levels import RUNGS
from tests.support.scene import SAME_IN_ANY_SPLIT
from tests.support.stories import FIRST_LIGHT, lanes_of, named, standing
from tests.support.told import START, A, B, C, Told, run, ticks_of

# --- laws


@pytest.mark.parametrize("rung", ["2", "3", "4"])
@pytest.mark.parametrize("name", ["c04_mpi-3.9.2", "c06_static-3.9.2", "m01_coordinator_kill-4.1.2", OUTAGES[1]])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_split_with_restarts_says_the_same(name: str, rung: str, data: st.DataObject) -> None:
    lane = max(lanes_of(name, **RUNGS[rung]), key=lambda events: sum(bool(event.group_id) for event in events))
    events = sorted((event for event in lane if event.kind != Kind.TICK), key=lambda event: event.logged_at_ms)
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=12).map(sorted))
    steps = [events[begin:end] for begin, end in pairwise([0, *cuts, len(events)])]
    # Up to the last stamp each log is complete only when a later one was read, but the last.
    told = [[*step, *_so_far(events, step)] for step in steps]
    whole, parts = run([[*events, *ticks_of(events)]]), run([*told, ticks_of(events)], restarts=True)
    for table in SAME_IN_ANY_SPLIT:
        assert parts[table] == whole[table], table


def _so_far(events: list[Event], step: list[Event]) -> list[Event]:
    """Ticks of all logs up to just before the last event of a step."""
    at = max((event.logged_at_ms for event in step), default=0.0) - 1.0
    return [tick._replace(end=0, logged_at_ms=at) for tick in ticks_of(events)] if step else []


@pytest.mark.parametrize("rung", ["2", "3", "4"])
@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_each_state_leads_on_from_the_one_before(name: str, rung: str) -> None:
    for lane in lanes_of(name, **RUNGS[rung]):
        last: dict[str, str] = {}
        for row in named("transitions", run([list(lane)])["transitions"]):
            if row["entity"] == "group":
                assert row["from_state"] == last.get(row["group_id"], GroupState.UNKNOWN)
                last[row["group_id"]] = row["to_state"]


@pytest.mark.parametrize("rung", ["2", "3", "4"])
def test_nothing_counts_down_and_nothing_is_foretold(rung: str) -> None:
    for name in ("c01_kill-3.9.2", "c04_mpi-4.1.2"):
        for lane in lanes_of(name, **RUNGS[rung]):
            said = run([list(lane)])
            assert said["predictions"] == []
            for row in named("health", said["health"]):
                assert (row["session_deadline_at_ms"], row["poll_deadline_at_ms"]) == (None, None)
                if row["status"] != "ended":
                    assert row["status"] == "unknown"
                    assert [reason[:26] for reason in row["reasons"]] == ["needs the request log of i"]


# --- sentences


def test_a_rebalance_has_its_begin_its_end_its_trigger_and_its_size() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.expires(20_000, B, 1)
    told.becomes(21_000, 2, 1)
    first, second = told.rows()["rebalances"]
    assert (first["started_at_ms"], first["joined_at_ms"], first["completed_at_ms"]) == (
        START,
        START + 3_000,
        START + 3_010,
    )
    assert (first["trigger"], first["trigger_member_id"], first["trigger_client_id"]) == ("member_joined", A, "a")
    assert (first["members_after"], first["leader_member_id"], first["certainty"]) == (2, A, "exact")
    assert (second["trigger"], second["trigger_member_id"], second["trigger_client_id"]) == ("session_expired", B, None)
    assert [row["member_seconds_lost"] for row in (first, second)] == [None, None]
    assert told.ends() == {B: (20_000, "session_expired", "exact")}


def test_the_clients_own_reason_is_kept_and_cannot_speak_for_the_coordinator() -> None:
    told = Told()
    told.joins(0, 4, words="removing member x on heartbeat expiration")
    (row,) = told.rows()["rebalances"]
    assert (row["trigger"], row["reason"]) == ("member_joined", "removing member x on heartbeat expiration")


@pytest.mark.parametrize(
    ("words", "cause", "certainty"),
    [
        ("consumer poll timeout has expired.", "poll_timeout", "exact"),
        ("the consumer is being closed", "left", "exact"),
        ("member was removed by an admin", "removed_by_admin", "exact"),
        ("goodbye", "left", "unknown"),
        ("not provided", "left", "unknown"),
    ],
)
def test_why_a_member_left_is_what_it_says(words: str, cause: str, certainty: str) -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    member = f"MemberMetadata(memberId={B}, groupInstanceId=None, clientId=b, clientHost=/10.0.0.9)"
    told.say(9_000, f"Member {member} has left group g through explicit `LeaveGroup`; client reason: {words}")
    told.prepares(9_000, 1, f"Removing Set({B}) on LeaveGroup; client reason: {words}")
    assert told.ends() == {B: (9_000, cause, certainty)}
    row = told.rows()["rebalances"][-1]
    assert row["trigger"] == {"left": "member_left"}.get(cause, cause)
    assert row["certainty"] == ("exact" if certainty == "exact" else "inferred")


def test_a_release_that_says_no_reason_leaves_the_trigger_unknown_unless_something_else_tells_it() -> None:
    told = Told()
    told.prepares(0, 0)
    told.becomes(3_000, 1, 2)
    told.prepares(9_000, 1)
    told.becomes(9_500, 2, 3)
    told.fails(20_000, B)
    told.prepares(20_000, 2)
    rows = told.rows()["rebalances"]
    assert [(row["trigger"], row["certainty"]) for row in rows] == [
        ("member_joined", "inferred"),
        ("unknown", "unknown"),
        ("session_expired", "inferred"),
    ]


def test_who_fails_long_after_he_began_to_wait_may_never_have_been_let_in() -> None:
    told = Told()
    told.joins(0, 4, A)
    told.fails(299_000, B)
    told.fails(300_100, A)
    assert told.ends() == {B: (299_000, "session_expired", "exact"), A: (300_100, "session_expired", "provisional")}


def test_whoever_did_not_join_again_in_time_was_waited_for() -> None:
    told = Told()
    told.joins(0, 4)
    told.say(60_000, f"Group g removed dynamic members who haven't joined: Set({B}, {C})")
    told.becomes(60_000, 5, 1)
    assert {end[1:] for end in told.ends().values()} == {("rebalance_timeout", "exact")}
    stragglers = told.rows()["rebalances"][0]["stragglers"]
    assert [(one["member_id"], one["waited_ms"], one["joined"]) for one in stragglers] == [
        (B, 60_000, False),
        (C, 60_000, False),
    ]


def test_a_group_without_members_had_members_whose_end_nobody_told() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.expires(20_000, B, 1)
    told.say(21_000, "Group g with generation 2 is now empty (__consumer_offsets-1)")
    rows = {row["member_id"]: row for row in told.rows()["members"]}
    assert (rows[A]["end_cause"], rows[A]["certainty"]) == ("unknown", "unknown")
    assert rows[A]["ended_at_ms"] + rows[A]["at_bound_ms"] == START + 21_000
    assert told.states()[-1] == (21_000, "Empty", "exact")


def test_a_sentence_about_the_end_of_a_rebalance_does_not_tell_its_begin() -> None:
    told = Told()
    told.becomes(3_000, 7, 2)
    told.becomes(9_000, 8, 3)
    first, second = told.rows()["rebalances"]
    assert (first["started_at_ms"], first["trigger"], first["certainty"]) == (START + 3_000, "unknown", "unknown")
    assert (second["started_at_ms"], second["at_bound_ms"]) == (START + 3_010, 5_990)
    assert (second["trigger"], second["certainty"]) == ("unknown", "unknown")


# --- loads, moves, gaps


def test_a_load_undoes_what_was_under_way() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 1)
    told.joins(9_000, 1, B)
    told.say(12_000, "Loading group metadata for g with generation 1")
    told.joins(15_000, 1, C)
    assert told.states()[3:] == [
        (9_000, "PreparingRebalance", "exact"),
        (12_000, "Stable", "inferred"),
        (15_000, "PreparingRebalance", "exact"),
    ]
    assert told.ends()[B][1:] == ("unknown", "unknown")
    assert A not in told.ends()
    assert told.rows()["rebalances"][1]["completed_at_ms"] is None


@pytest.mark.parametrize("named", [f"Set({B}, {C})", f"[{B}, {C}]"], ids=("Scala", "Java"))
def test_who_did_not_send_sync_in_time_is_removed_as_the_sentence_names_him(named: str) -> None:
    told = Told()
    for at_ms, member in ((0, A), (5_000, B), (9_000, C)):
        told.joins(at_ms, at_ms // 4_000, member)
        told.say(
            at_ms + 1_000, f"Stabilized group g generation {at_ms // 4_000 + 1} (__consumer_offsets-1) with 1 members"
        )
    told.prepares(70_000, 3, f"Removing {named} on pending sync request expiration")
    assert told.ends() == dict.fromkeys((B, C), (70000, "sync_timeout", "exact"))
    last = max(told.rows()["rebalances"], key=lambda row: row["started_at_ms"])
    assert (last["trigger"], last["members_before"]) in {("sync_timeout", 3), ("sync_timeout", None)}


def test_who_joined_during_a_rebalance_and_did_not_send_sync_was_a_member_though_nothing_had_named_him() -> None:
    told = Told()
    told.joins(0, 0)
    told.say(3_000, "Stabilized group g generation 1 (__consumer_offsets-1) with 3 members")
    told.prepares(63_000, 1, f"Removing [{B}, {C}] on pending sync request expiration")
    assert told.ends() == dict.fromkeys((B, C), (63_000, "sync_timeout", "inferred"))
    last = max(told.rows()["rebalances"], key=lambda row: row["started_at_ms"])
    assert (last["trigger"], last["trigger_member_id"], last["certainty"]) == ("sync_timeout", B, "inferred")


def test_the_old_id_of_a_static_member_did_not_send_sync_because_its_seat_was_taken() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    words = "Static member with groupInstanceId=s and unknown member id joins group g in Stable state. Replacing"
    told.say(9_000, f"{words} previously mapped member {B} with this groupInstanceId.")
    told.prepares(63_000, 1, f"Removing [{B}] on pending sync request expiration")
    assert told.ends() == {B: (9_000, "static_replaced", "exact")}


@pytest.mark.parametrize("before", ["nothing", "another generation", "a load"])
def test_where_the_end_of_the_join_phase_was_not_read_it_may_be_an_old_id(before: str) -> None:
    told = Told()
    if before != "nothing":
        told.joins(0, 0)
        told.becomes(3_000, 2 if before == "another generation" else 1, 2)
    if before == "a load":
        told.say(9_000, "Loading group metadata for g with generation 1")
    told.prepares(63_000, 1, f"Removing [{B}] on pending sync request expiration")
    assert B not in told.ends()


def test_a_load_of_a_generation_that_was_not_read_says_no_state() -> None:
    told = Told()
    told.say(0, "Loading group metadata for g with generation 4")
    assert told.states() == [(0, "Unknown", "unknown")], "it was loaded, so it exists"
    told.becomes(2_000, 5, 1)
    assert told.states()[-1] == (2_010, "Stable", "inferred")


def test_a_broker_that_wakes_evicts_nobody_of_a_group_that_another_one_has_loaded() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.say(15_000, "Loading group metadata for g with generation 1", broker=2)
    told.fails(18_000, A, broker=1)
    told.prepares(18_000, 1, f"removing member {A} on heartbeat expiration", broker=1)
    told.say(18_500, "Unloading group metadata for g with generation 1", broker=1)
    assert told.ends() == {}
    assert told.states()[-1] == (15_000, "Stable", "inferred")
    told.fails(25_000, B, broker=2)
    assert told.ends() == {B: (25_000, "session_expired", "exact")}


@pytest.mark.parametrize("java", [False, True])
def test_a_broker_that_starts_again_and_goes_by_an_epoch_of_before_holds_no_group(java: bool) -> None:
    """It loads what it led when it fell, two seconds after another one has, and unloads it at once."""
    told = Told()
    told.takes(-1_000, 2, 7, java=java)
    told.joins(0, 0, broker=2)
    told.becomes(3_000, 1, 1, broker=2)
    told.takes(23_000, 1, 8, java=java)
    told.takes(25_000, 2, 7, java=java)
    told.say(25_060, f"Resigned as the group coordinator for partition {shard_of('g', 50)} in epoch OptionalInt[8]", 2)
    assert [one for one in told.states() if one[0] > 23_050] == []
    told.fails(33_050, A, broker=1)
    told.prepares(33_050, 1, f"removing member {A} on heartbeat expiration", broker=1)
    assert told.ends() == {A: (33_050, "session_expired", "exact")}
    assert told.rows()["rebalances"][-1]["trigger"] == "session_expired"
    one_by_one = [[event] for event in told.events]
    whole, cut = run([told.events, ticks_of(told.events)]), run([*one_by_one, ticks_of(told.events)], restarts=True)
    for table in ("members", "rebalances"):
        assert standing(table, cut[table]) == standing(table, whole[table])


def test_a_broker_whose_own_election_was_not_read_is_believed_when_it_loads() -> None:
    told = Told()
    told.takes(-1_000, 2, 7)
    told.joins(0, 0, broker=2)
    told.becomes(3_000, 1, 1, broker=2)
    told.say(23_000, "Loading group metadata for g with generation 1", broker=3)
    told.fails(33_050, A, broker=3)
    assert told.ends() == {A: (33_050, "session_expired", "exact")}


def test_a_lower_epoch_stands_when_the_higher_one_is_long_ago() -> None:
    """`__consumer_offsets` was made anew."""
    told = Told()
    told.takes(-7_200_000, 1, 9)
    told.takes(-1_000, 2, 0)
    told.joins(0, 0, broker=2)
    told.becomes(3_000, 1, 1, broker=2)
    assert told.states()[-1] == (3_010, "Stable", "inferred")


def test_a_group_that_was_handed_over_is_unknown_until_somebody_loads_it() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.say(15_000, "Unloading group metadata for g with generation 1", broker=1)
    assert told.states()[-1] == (15_000, "Unknown", "unknown")
    told.say(16_000, "Loading group metadata for g with generation 1", broker=2)
    assert told.states()[-1] == (16_000, "Stable", "inferred")


def test_a_member_that_a_load_brought_back_ends_a_second_time() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.expires(9_000, B, 1)
    told.say(9_500, "Loading group metadata for g with generation 1", broker=2)
    told.fails(19_500, B, broker=2)
    lives = [row for row in told.rows()["members"] if row["member_id"] == B]
    assert sorted(row["ended_at_ms"] - START for row in lives) == [9_000, 19_500]


def test_what_lies_in_a_gap_is_unknown() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.joins(9_000, 1, B)
    told.gap(10_000, 30_000)
    assert told.states()[-1] == (10_000, "Unknown", "unknown")
    told.becomes(31_000, 5, 2)
    row = told.rows()["rebalances"][-1]
    assert (row["generation_before"], row["trigger"], row["certainty"]) == (4, "unknown", "unknown")
    assert row["started_at_ms"] == START + 31_000  # not since the line before the gap: that was another rebalance
    assert told.ends() == {}


# --- records


def test_records_alone_bound_what_lies_between_them() -> None:
    told = Told()
    told.record(0, 1, A, B)
    told.record(20_000, 2, A, C)
    told.record(50_000, 3)
    members = {row["member_id"]: row for row in told.rows()["members"]}
    assert (members[B]["ended_at_ms"], members[B]["at_bound_ms"]) == (START, 20_000)
    assert {row["end_cause"] for row in members.values()} == {"unknown"}
    assert (members[C]["joined_at_ms"], members[C]["session_timeout_ms"], members[C]["client_host"]) == (
        START,
        10_000,
        "10.0.0.9",
    )
    first, second, third = told.rows()["rebalances"]
    assert (first["completed_at_ms"], first["certainty"]) == (START, "unknown")
    assert (second["started_at_ms"], second["at_bound_ms"], second["joined_at_ms"]) == (START, 20_000, None)
    assert (second["completed_at_ms"], second["trigger"], second["certainty"]) == (
        START + 20_000,
        "unknown",
        "inferred",
    )
    assert (second["generation_after"], second["members_after"], second["leader_member_id"]) == (2, 2, A)
    assert (third["members_after"], third["completed_at_ms"]) == (0, START + 50_000)


def test_who_joins_an_empty_group_began_its_rebalance() -> None:
    told = Told()
    told.record(0, 0)
    told.record(20_000, 1, A)
    (row,) = told.rows()["rebalances"]
    assert (row["trigger"], row["certainty"]) == ("member_joined", "inferred")


def test_a_generation_that_no_record_shows_leaves_the_members_before_unknown() -> None:
    told = Told()
    told.record(0, 1, A)
    told.record(20_000, 4, A)
    row = told.rows()["rebalances"][-1]
    assert (row["generation_before"], row["trigger"], row["members_before"]) == (3, "unknown", None)


def test_a_deleted_group_that_comes_back_begins_anew() -> None:
    told = Told()
    told.record(0, 1, A)
    told.record(10_000, 2)
    told.record(20_000, -1, tombstone=True)
    told.record(30_000, 1, B)
    assert [state for _, state, _ in told.states()][-3:] == ["Dead", "Unknown", "Stable"]
    assert told.rows()["rebalances"][-1]["trigger"] == "member_joined"


def test_records_name_the_members_of_whom_sentences_speak() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.record(3_012, 1, A, B)
    told.expires(20_000, B, 1)
    told.becomes(21_000, 2, 1)
    told.record(21_012, 2, A)
    rows = told.rows()
    assert [(row["members_before"], row["members_after"]) for row in rows["rebalances"]] == [(None, 2), (2, 1)]
    assert rows["rebalances"][-1]["trigger_client_id"] == "b"
    assert told.ends() == {B: (20_000, "session_expired", "exact")}


def leaves_after(told: Told, at_ms: int, member: str) -> None:
    """A leave in the words of a Scala coordinator, which come after what it led to."""
    whose = f"MemberMetadata(memberId={member}, groupInstanceId=None, clientId=c, clientHost=/10.0.0.9)"
    told.say(at_ms, f"Member {whose} has left group g through explicit `LeaveGroup`; client reason: not provided")


def test_a_leave_that_is_said_after_what_it_led_to_counts_nobody_twice_and_leaves_nobody_in_an_empty_group() -> None:
    """A real broker 3.9.2: four members were told of three, and an Empty group had one."""
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.record(3_012, 1, A, B)
    told.prepares(9_000, 1, f"Removing member {B} on LeaveGroup; client reason: not provided")
    leaves_after(told, 9_001, B)
    told.say(10_000, "Group g with generation 2 is now empty (__consumer_offsets-1)")
    leaves_after(told, 10_001, A)
    row = told.rows()["rebalances"][-1]
    assert (row["trigger"], row["trigger_member_id"], row["members_before"]) == ("member_left", B, 2)
    assert told.ends() == {B: (9_001, "left", "unknown"), A: (10_000, "left", "unknown")}


def test_a_rebalance_that_begins_anew_was_undone_by_a_load_and_with_it_who_joined() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.record(3_012, 1, A, B)
    told.joins(9_000, 1, C)
    told.joins(30_000, 1, "d")
    assert [row["members_before"] for row in told.rows()["rebalances"]][-2:] == [2, None]
    told.becomes(31_000, 2, 3)
    rows = {row["member_id"]: row["certainty"] for row in told.rows()["members"]}
    assert rows[C] == "provisional"  # it had joined in what was undone


@pytest.mark.parametrize(("lasts_ms", "cause"), [(60_000, "rebalance_timeout"), (20_000, "unknown")])
def test_who_is_not_listed_was_dropped_only_if_the_time_to_join_again_was_over(lasts_ms: int, cause: str) -> None:
    """Up to 2.6 no sentence says that somebody was dropped; in 2.0 and 2.1 none says that somebody left."""
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.record(3_012, 1, A, B)
    told.joins(9_000, 1, C)
    told.becomes(9_000 + lasts_ms, 2, 2)
    told.record(9_012 + lasts_ms, 2, A, C)
    end = told.ends()[B]
    assert end[1] == cause
    assert end[0] == (69_000 if cause == "rebalance_timeout" else 3_012)


def test_records_go_on_where_the_sentences_end() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.record(3_012, 1, A, B)
    lines = ticks_of(told.events)
    told.record(60_000, 2, A)
    said = run([[*told.events, *lines]])
    last = standing("rebalances", said["rebalances"])[-1]
    assert (last["generation_after"], last["completed_at_ms"], last["trigger"]) == (2, START + 60_000, "unknown")


def test_a_record_after_a_gap_of_the_sentences_tells_who_is_left() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.record(3_012, 1, A, B)
    told.gap(10_000, 30_000)
    told.record(20_000, 2, A)
    told.joins(40_000, 2, C)
    members = {row["member_id"]: row for row in told.rows()["members"]}
    assert (members[B]["end_cause"], members[B]["certainty"]) == ("unknown", "unknown")
    assert members[B]["ended_at_ms"] >= START + 3_012
    assert members[B]["ended_at_ms"] + members[B]["at_bound_ms"] == START + 20_000
    assert told.states()[-1] == (40_000, "PreparingRebalance", "exact")


def test_a_loaded_group_that_is_over_capacity_is_asked_to_rebalance() -> None:
    told = Told()
    told.say(0, "Loading group metadata for g with generation 4")
    words = "Freshly-loaded group g (size 3) is over capacity 2. Rebalancing in order to give a chance for consumers to"
    told.prepares(1, 4, f"{words} commit offsets")
    (found,) = told.rows()["rebalances"]
    assert (found["trigger"], found["certainty"], found["reason"]) == ("over_capacity", "exact", None)


def test_a_leave_tells_who_it_was_and_its_timeouts() -> None:
    told = Told()
    told.say(
        5,
        f"Member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=a, clientHost=/10.0.0.7, "
        "sessionTimeoutMs=6000, rebalanceTimeoutMs=8000, supportedProtocols=List(range)) has left group g through "
        "explicit `LeaveGroup`; client reason: the consumer is being closed",
    )
    (life,) = told.rows()["members"]
    known = ("client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms", "end_cause")
    assert [life[column] for column in known] == ["a", "10.0.0.7", 6_000, 8_000, "left"]


def test_of_a_client_that_forges_its_metadata_nothing_is_believed() -> None:
    told = Told()
    told.say(
        5,
        f"Member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=a, clientHost=/10.0.0.7, "
        "sessionTimeoutMs=1, rebalanceTimeoutMs=1, supportedProtocols=List(, clientHost=/10.0.0.8, "
        "sessionTimeoutMs=6000, rebalanceTimeoutMs=8000, supportedProtocols=List(range)) has left group g through "
        "explicit `LeaveGroup`; client reason: the consumer is being closed",
    )
    (life,) = told.rows()["members"]
    assert (life["session_timeout_ms"], life["client_host"], life["end_cause"]) == (None, None, "left")
