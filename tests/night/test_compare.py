"""The comparison of a night can fail: each way in which tables may be wrong, planted into tables that are right.

The tables and the log are of a recorded story in which a broker was killed; no broker runs here.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from demo import server_log
from demo.server_log import Fact
from demo.tables import Record
from tests.night.compare import DOUBLED, INVENTED, MISSED, OPEN, UNTRUE, Comparison, Night, compare
from tests.support.stories import Story, lanes_of, named, observe

STORY = "d02_kill_short-4.4.0"
TABLES = ("members", "rebalances", "predictions")


@cache
def night() -> Night:
    """What the tables and server.log say of the story."""
    story = Story(STORY)
    with gzip.open(story.folder / "server.log.gz", "rt", encoding="utf-8") as lines:
        facts = [fact for fact in server_log.facts(lines) if fact.group_id != "dump"]
    rows = observe(lanes_of(STORY, server_log=True))
    ever: dict[str, list[Record]] = {
        table: [{**row, "batch_id": 0} for row in named(table, rows.get(table, [])) if row["group_id"] != "dump"]
        for table in TABLES
    }
    return Night(facts, ever, story.expect["end_ms"])


def changed(table: str, change: Callable[[list[Record]], list[Record]]) -> Comparison:
    """The comparison after a table was made wrong."""
    ever = dict(night().ever)
    ever[table] = change([dict(row) for row in ever[table]])
    return compare(replace(night(), ever=ever))


def kinds(comparison: Comparison) -> set[str]:
    """What is wrong, in a word each."""
    return {one.what for one in comparison.findings}


def ended(rows: list[Record]) -> Record:
    """The last row of an eviction that is exact."""
    return [row for row in rows if row["end_cause"] == "session_expired" and row["certainty"] == "exact"][-1]


def test_tables_that_are_right_are_right() -> None:
    comparison = compare(night())
    assert comparison.findings == ()
    assert comparison.counts["server.log: member_failed"] >= 4
    assert comparison.counts["said to be exact: members"] >= 4
    assert comparison.counts["said to be exact: rebalances"] >= 4


def test_who_did_not_join_again_in_time_was_removed() -> None:
    """The cause has two facts: of a classic group and of one with epochs."""
    facts = list(night().facts)
    row = ended([dict(row) for row in night().ever["members"]])
    at = next(at for at, fact in enumerate(facts) if (fact.what, fact.member_id) == ("member_failed", row["member_id"]))
    facts[at] = replace(facts[at], what=server_log.NOT_JOINED)
    ever = dict(night().ever)
    gone = {"end_cause": "rebalance_timeout"}
    ever["members"] = [{**one, **gone} if one["member_id"] == row["member_id"] else one for one in ever["members"]]
    comparison = compare(replace(night(), facts=facts, ever=ever))
    assert [one for one in comparison.findings if "rebalance_timeout" in one.told] == []


def test_a_generation_may_begin_twice_where_its_coordinator_was_none_any_more() -> None:
    facts = list(night().facts)
    begun = next(fact for fact in facts if fact.what == server_log.GENERATION_STARTED and fact.members > 0)
    empty = Fact(server_log.GROUP_EMPTY, begun.at_ms - 400, begun.group_id, generation=begun.generation)

    def emptied(rows: list[Record]) -> list[Record]:
        mine = {"group_id": begun.group_id, "generation_after": begun.generation}
        return [{**row, "members_after": 0} if mine.items() <= row.items() else row for row in rows]

    ever = dict(night().ever)
    ever["rebalances"] = emptied([dict(row) for row in ever["rebalances"]])
    size = f"0 members after it, the broker says {begun.members}"
    assert [size in one.told for one in compare(replace(night(), ever=ever)).findings] == [True]
    assert compare(replace(night(), ever=ever, facts=[*facts, empty])).findings == ()


@pytest.mark.parametrize("certainty", ["exact", "inferred"])
def test_an_invented_eviction_is_found(certainty: str) -> None:
    def change(rows: list[Record]) -> list[Record]:
        row = next(row for row in rows if row["end_cause"] is None)
        end = {"ended_at_ms": row["joined_at_ms"] + 4_000, "end_cause": "session_expired", "certainty": certainty}
        return [*rows, {**row, **end, "at_bound_ms": 0, "known_at_ms": row["known_at_ms"] + 10**9}]

    found = kinds(changed("members", change))
    assert (UNTRUE if certainty == "exact" else INVENTED) in found


def test_an_untruth_that_was_corrected_later_was_said_all_the_same() -> None:
    def change(rows: list[Record]) -> list[Record]:
        row = ended(rows)
        return [{**row, "ended_at_ms": row["ended_at_ms"] - 5_000, "known_at_ms": row["known_at_ms"] - 1}, *rows]

    findings = changed("members", change).findings
    assert [one.what for one in findings] == [UNTRUE]
    assert "+5000 ms outside" in findings[0].told


def test_an_instant_is_true_within_its_bound_and_where_the_machine_stood_still() -> None:
    def early(bound_ms: int | None) -> Callable[[list[Record]], list[Record]]:
        def change(rows: list[Record]) -> list[Record]:
            last = ended(rows)
            moved = {"ended_at_ms": last["ended_at_ms"] - 300, "at_bound_ms": bound_ms}
            return [{**row, **moved} if row is last else row for row in rows]

        return change

    assert kinds(changed("members", early(0))) == {UNTRUE}
    assert kinds(changed("members", early(290))) == set()
    assert kinds(changed("members", early(None))) == set()
    rows = early(0)([dict(row) for row in night().ever["members"]])
    at_ms = ended(rows)["ended_at_ms"]
    stood = replace(night(), ever={**night().ever, "members": rows}, stalls=[(at_ms + 300, 290.0)])
    assert compare(stood).findings == ()


def test_an_eviction_that_is_missing_is_found_and_an_unknown_one_is_none() -> None:
    def without(rows: list[Record]) -> list[Record]:
        gone = ended(rows)["member_id"]
        return [row for row in rows if row["member_id"] != gone]

    def not_known(rows: list[Record]) -> list[Record]:
        gone = ended(rows)["member_id"]
        return [
            {**row, "end_cause": "unknown", "certainty": "unknown"} if row["member_id"] == gone else row for row in rows
        ]

    assert MISSED in kinds(changed("members", without))
    assert MISSED not in kinds(changed("members", not_known))
    at_ms = ended(list(night().ever["members"]))["ended_at_ms"]
    lost = replace(night(), ever={**night().ever, "members": without(list(night().ever["members"]))})
    assert MISSED not in kinds(compare(replace(lost, gaps=[(at_ms - 100, at_ms + 100)]))), "it lies in a gap"
    assert MISSED in kinds(compare(replace(lost, gaps=[(at_ms + 100, at_ms + 200)])))


def test_an_id_that_never_synced_may_have_given_its_seat_to_another_one_before() -> None:
    life = ended(list(night().ever["members"]))
    fact = Fact(server_log.NOT_SYNCED, life["ended_at_ms"] + 5_000, life["group_id"], life["member_id"])
    taken = Fact(server_log.STATIC_REPLACED, life["ended_at_ms"], life["group_id"], life["member_id"])
    rows = [{**life, "end_cause": "static_replaced", "fault": None}]
    found = compare(Night([fact, taken], {"members": rows}, night().until_ms + 10**6))
    assert found.findings == ()
    before = replace(fact, at_ms=life["ended_at_ms"] - 5_000)
    assert kinds(compare(Night([before, taken], {"members": rows}, night().until_ms + 10**6))) == {MISSED}


def test_two_lives_at_once_are_found() -> None:
    def change(rows: list[Record]) -> list[Record]:
        row = ended(rows)
        return [*rows, {**row, "joined_at_ms": row["joined_at_ms"] + 7, "certainty": "unknown"}]

    assert DOUBLED in kinds(changed("members", change))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda row: {"started_at_ms": row["started_at_ms"] - 3}, DOUBLED),
        (lambda row: {"generation_before": row["generation_before"] + 900}, INVENTED),
    ],
)
def test_a_rebalance_that_is_none_is_found(change: Callable[[Record], Record], what: str) -> None:
    def add(rows: list[Record]) -> list[Record]:
        row = next(row for row in rows if row["completed_at_ms"] is not None)
        return [*rows, {**row, "certainty": "inferred", **change(row)}]

    assert what in kinds(changed("rebalances", add))


@pytest.mark.parametrize("wrong", [{"completed_at_ms": None}, {"certainty": "provisional"}])
def test_a_rebalance_that_never_ends_is_found_but_not_one_that_the_next_one_ended(wrong: Record) -> None:
    rows = [row for row in night().ever["rebalances"] if row["group_id"] == "both"]
    first, last = (max(rows, key=lambda row: (sign * row["started_at_ms"], row["known_at_ms"])) for sign in (-1, 1))
    later = replace(night(), until_ms=night().until_ms + 10**6)

    def found(row: Record) -> set[str]:
        return kinds(compare(replace(later, ever={**night().ever, "rebalances": [*rows, {**row, **wrong}]})))

    assert OPEN in found(last)
    assert (OPEN in found(first)) == ("certainty" in wrong)


@pytest.mark.parametrize("wrong", [{"trigger": "member_left"}, {"trigger_member_id": "other"}, {"members_after": 77}])
def test_a_trigger_or_a_size_that_is_not_the_brokers_is_found(wrong: Record) -> None:
    def change(rows: list[Record]) -> list[Record]:
        done = [row for row in rows if row["certainty"] == "exact" and row["completed_at_ms"] is not None]
        named = next(row for row in done if row["trigger"] in ("member_joined", "session_expired"))
        return [*rows, {**named, **wrong}]

    assert kinds(changed("rebalances", change)) == {UNTRUE}


def test_a_rebalance_that_is_missing_is_found_and_a_withdrawn_one_is_none() -> None:
    def without(rows: list[Record]) -> list[Record]:
        gone = rows[0]["group_id"], rows[0]["generation_before"]
        return [row for row in rows if (row["group_id"], row["generation_before"]) != gone]

    def withdrawn(rows: list[Record]) -> list[Record]:
        return [*rows, {**rows[0], "generation_before": 900, "withdrawn": True}]

    assert kinds(changed("rebalances", without)) == {MISSED}
    assert kinds(changed("rebalances", withdrawn)) == set()


def test_a_rebalance_that_a_load_undid_may_be_missing() -> None:
    """It had begun, and the group was loaded before its generation began."""
    start = max((one for one in night().facts if one.what == server_log.REBALANCE_STARTED), key=lambda one: one.at_ms)
    lost = replace(start, at_ms=start.at_ms - 3_000, generation=900)
    load = Fact(server_log.LOADED, start.at_ms - 2_000, start.group_id)
    assert kinds(compare(replace(night(), facts=[lost, *night().facts]))) == {MISSED}
    assert compare(replace(night(), facts=[lost, load, *night().facts])).findings == ()


def test_what_is_provisional_at_the_end_is_found_where_it_is_much() -> None:
    rows = [{**row, "certainty": "provisional"} for row in night().ever["rebalances"]]
    later = replace(night(), until_ms=night().until_ms + 10**6)
    unsure = replace(later, ever={**night().ever, "rebalances": rows})
    assert OPEN in kinds(compare(unsure))
    assert compare(replace(unsure, by_requests_alone=True)).findings == ()


def test_a_prediction_that_came_true_of_nothing_and_one_left_open_are_found() -> None:
    row = {
        "cluster_id": "test",
        "group_id": "pair",
        "member_id": "nobody",
        "kind": "session",
        "predicted_at_ms": night().facts[0].at_ms,
        "deadline_at_ms": night().facts[0].at_ms + 4_000,
        "known_at_ms": night().facts[0].at_ms,
        "certainty": "exact",
        "batch_id": 0,
    }
    true = {"outcome": "came_true", "outcome_at_ms": row["deadline_at_ms"]}
    assert kinds(changed("predictions", lambda rows: [*rows, {**row, **true}])) == {INVENTED}
    late = compare(
        replace(
            night(),
            ever={**night().ever, "predictions": [{**row, "outcome": "open", "outcome_at_ms": None}]},
            until_ms=night().until_ms + 10**6,
        )
    )
    assert OPEN in kinds(late)


def test_members_at_the_end_are_those_of_the_broker() -> None:
    """A member that the broker has and the tables lack, one the other way round, and one that was never heard of."""
    begin = next(fact for fact in night().facts if fact.what == server_log.MEMBER_ADDED)
    before = replace(night(), until_ms=begin.at_ms + 100, facts=[begin], ever=_only(begin))
    right = replace(before, members_now={begin.group_id: {begin.member_id}})
    assert compare(right).findings == ()
    assert kinds(compare(replace(right, members_now={begin.group_id: {begin.member_id, "other"}}))) == {MISSED}
    assert kinds(compare(replace(right, members_now={begin.group_id: set()}))) == {INVENTED}
    assert kinds(compare(replace(right, member_ids=frozenset({"other"})))) == {INVENTED}


def _only(fact: Fact) -> dict[str, list[Record]]:
    rows = [row for row in night().ever["members"] if row["member_id"] == fact.member_id]
    open_ = {"ended_at_ms": None, "end_cause": None, "joined_at_ms": fact.at_ms}
    return {"members": [{**row, **open_} for row in rows]}


def test_who_took_the_seat_of_an_id_that_no_client_was_given_is_not_missed() -> None:
    first = night().facts[0]
    facts = [*night().facts, Fact(server_log.STATIC_REPLACED, first.at_ms, first.group_id, "unheard-of")]
    told = compare(replace(night(), facts=facts))
    assert [(one.what, one.told) for one in told.findings] == [
        (MISSED, "static_replaced of unheard-of: it is in no table")
    ]
    unheard = compare(replace(night(), facts=facts, was_given=lambda member_id: member_id != "unheard-of"))
    assert unheard.findings == ()
    assert unheard.counts["replaced ids that no client was given"] == 1


def test_a_seat_that_was_given_back_is_not_missed() -> None:
    """The broker says that it was taken, and 5 s later that this could not be stored."""
    first = night().facts[0]
    taken = Fact(server_log.STATIC_REPLACED, first.at_ms, first.group_id, "holder")
    back = Fact(server_log.STATIC_REVERTED, first.at_ms + 5_001, first.group_id, "holder")
    told = compare(replace(night(), facts=[*night().facts, taken, back]))
    assert told.findings == ()
    assert told.counts["seats that were given back"] == 1


def test_a_seat_that_is_taken_while_the_group_completes_has_words_of_its_own() -> None:
    """They begin like those of changed metadata."""
    row = next(row for row in night().ever["rebalances"] if row["certainty"] == "exact" and row["generation_before"])
    member_id = "chair-1-75a21329-7dfa-426f-b3d8-2627af5c23a5"
    reason = f"Updating metadata for static member {member_id} with instance id chair-1; client reason: not provided"
    told = {**row, "trigger": "static_replaced", "trigger_member_id": member_id}
    facts = [
        replace(fact, reason=reason)
        if fact.what == server_log.REBALANCE_STARTED and fact.generation == row["generation_before"]
        else fact
        for fact in night().facts
        if fact.group_id == row["group_id"]
    ]
    ever = {"members": [], "rebalances": [told], "predictions": []}
    right = compare(replace(night(), facts=facts, ever=ever))
    assert UNTRUE not in kinds(right)
    changed_metadata = {**told, "trigger": "metadata_changed"}
    wrong = compare(replace(night(), facts=facts, ever={**ever, "rebalances": [changed_metadata]}))
    assert UNTRUE in kinds(wrong)
