"""Stories of groups with epochs that the project has recorded itself, against what the brokers said.

What each kind of evidence says to be exact or inferred is true within its bounds; where the request log and the records
are read, every end, epoch and conversion is found with its instant. Beside that, what single stories have shown: how
members of the three protocols leave when they do not poll, first operations of a broker, conversions of empty groups.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from kardia.certainty import stands
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from tests.support.stories import RECORDED_EPOCHS, STARVED_STORIES, Story, lanes_of, named, standing

WITHIN_MS = 10
"""Promise of an instant against the broker's own line."""

BUSY_MS = 25
"""So much later a line may be written, or a JoinGroup taken up, by a broker beside a dozen clients on two cores."""

BY_A_REQUEST_MS = WITHIN_MS
"""A sentence may stand so much before or after what requests show of the same, which then has the instant."""

CLASSES_MS = 500
"""So long a broker may load classes in its first JoinGroup."""

BOTH, REQUESTS, RECORDS, SENTENCES, ALL = "both", "requests", "records", "sentences", "all"
EVIDENCE = (BOTH, REQUESTS, RECORDS, SENTENCES, ALL)

READ = {
    BOTH: {},
    REQUESTS: {"offsets": False},
    RECORDS: {"requests": False},
    SENTENCES: {"server_log": True, "offsets": False, "requests": False},
    ALL: {"server_log": True},
}

EARLY_KILL = "d06_early_kill-4.4.0"
"""Of the starved stories the one whose machine was not as busy as to miss what is promised of an instant."""

EVICTED = frozenset({"session_expired", "rebalance_timeout", "join_timeout", "sync_timeout"})
LEFT = frozenset({"left", "poll_timeout", "removed_by_admin"})


@cache
def said(name: str, evidence: str) -> dict[str, list[Row]]:
    """What is said of a story by some evidence."""
    rows: dict[str, list[Row]] = {}
    for lane, events in enumerate(lanes_of(name, **READ[evidence])):
        observer = Observer(ObserverSettings("test"), lane)
        for part in (observer.step(events), observer.finish()):
            for table, some in part.items():
                rows.setdefault(table, []).extend(some)
    return rows


def of(name: str, evidence: str, table: str) -> list[dict[str, Any]]:
    """Rows of a table that stand, up to the end of the story."""
    end_ms = Story(name).expect["end_ms"]
    column = {"members": "joined_at_ms", "rebalances": "started_at_ms"}[table]
    return [row for row in standing(table, said(name, evidence)[table]) if row[column] <= end_ms]


def conversions(name: str, evidence: str) -> list[dict[str, Any]]:
    rows = named("transitions", said(name, evidence)["transitions"])
    return [row for row in rows if row["cause"] in ("upgraded", "downgraded")]


def is_at(at_ms: float, bound_ms: float | None, true_ms: float) -> bool:
    """Whether an instant lies within what is said."""
    return at_ms - WITHIN_MS <= true_ms <= at_ms + (bound_ms or 0) + WITHIN_MS


def true_ends(name: str) -> list[tuple[str, str, int, frozenset[str]]]:
    """(group, member, instant, causes that fit) of every end that the broker tells of."""
    expect = Story(name).expect
    members = [one for one in expect["evictions"] if not one.get("not_an_eviction_by_time")]
    ends = [(one["group"], one["member_id"], one["t"], EVICTED) for one in members]
    ends += [
        (one["group"], one["member_id"], one["t"], LEFT) for one in expect["leaves"] if "temporarily" not in one["why"]
    ]
    return [one for one in ends if one[2] <= expect["end_ms"]]


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", [*RECORDED_EPOCHS, *STARVED_STORIES])
def test_nobody_ends_who_did_not_and_what_is_sure_of_an_end_is_true(name: str, evidence: str) -> None:
    true = true_ends(name)
    end_ms = Story(name).expect["end_ms"]
    for row in of(name, evidence, "members"):
        if row["ended_at_ms"] is None or not stands(row["certainty"]):
            continue
        if row["ended_at_ms"] + (row["at_bound_ms"] or 0) > end_ms:
            continue
        if row["end_cause"] in ("static_replaced", "group_deleted"):
            continue
        fits = [
            causes
            for group_id, member_id, at_ms, causes in true
            if (group_id, member_id) == (row["group_id"], row["member_id"])
            and is_at(row["ended_at_ms"], row["at_bound_ms"], at_ms)
        ]
        assert fits, row
        assert any(row["end_cause"] in causes for causes in fits), row


@pytest.mark.parametrize("evidence", [BOTH, SENTENCES, ALL])
@pytest.mark.parametrize("name", [*RECORDED_EPOCHS, EARLY_KILL])
def test_every_end_is_found_with_its_instant(name: str, evidence: str) -> None:
    rows = of(name, evidence, "members")
    for group_id, member_id, at_ms, causes in true_ends(name):
        found = [
            row
            for row in rows
            if (row["group_id"], row["member_id"]) == (group_id, member_id)
            and row["ended_at_ms"] is not None
            and is_at(row["ended_at_ms"], row["at_bound_ms"], at_ms)
        ]
        assert found, (group_id, member_id, at_ms)
        assert found[0]["end_cause"] in causes | {"unknown"}
        if evidence != BOTH:
            assert found[0]["end_cause"] in causes


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", [*RECORDED_EPOCHS, *STARVED_STORIES])
def test_every_epoch_is_found_and_what_is_sure_of_its_begin_is_true(name: str, evidence: str) -> None:
    """Records alone have the time stamp, which in first operations is later than the operation; requests alone may show
    several epochs at once."""
    rows, expect = of(name, evidence, "rebalances"), Story(name).expect
    for one in expect["rebalances"]:
        if one["kind"] != "modern" or evidence == RECORDS or one["t_start"] > expect["end_ms"]:
            continue
        of_epoch = [row for row in rows if (row["group_id"], row["generation_after"]) == (one["group"], one["to_gen"])]
        right = [row for row in of_epoch if is_at(row["started_at_ms"], row["at_bound_ms"], one["t_start"])]
        if evidence == REQUESTS:
            assert right or not any(row["certainty"] == "exact" for row in of_epoch), one
        else:
            assert right, one


def true_classic(expect: dict[str, Any]) -> list[dict[str, Any]]:
    """Rebalances of groups while they are classic ones."""
    return [one for one in expect["rebalances"] if one["kind"] == "classic" and one["t_start"] <= expect["end_ms"]]


def is_followed(one: dict[str, Any], expect: dict[str, Any]) -> bool:
    """Whether a rebalance made a generation, as the next one of its group shows."""
    of_group = [other for other in true_classic(expect) if other["group"] == one["group"]]
    later = [other for other in of_group if other["t_start"] > one["t_start"]]
    return bool(later) and later[0]["from_gen"] == one["from_gen"] + 1


@pytest.mark.parametrize("evidence", [BOTH, REQUESTS, SENTENCES, ALL])
@pytest.mark.parametrize("name", [*RECORDED_EPOCHS, EARLY_KILL])
def test_every_rebalance_of_a_classic_group_is_found_with_its_begin(name: str, evidence: str) -> None:
    """Also of a group that is one for a while. A sentence has the instant; by requests the first rebalances of a broker
    begin too early, as it loads classes before it says so, and on a busy machine a line is written late. Requests alone
    do not count the epochs of a group that was a consumer group before."""
    rows, expect = of(name, evidence, "rebalances"), Story(name).expect
    told = evidence in (SENTENCES, ALL)
    early_ms, most_ms = (BY_A_REQUEST_MS, BUSY_MS) if told else (BUSY_MS, CLASSES_MS)
    for one in true_classic(expect):
        if evidence != SENTENCES and not is_followed(one, expect):
            continue  # its JoinGroups are never answered
        late_ms = BY_A_REQUEST_MS if told else BUSY_MS if one["from_gen"] else CLASSES_MS
        same = [row for row in rows if (row["group_id"], row["generation_before"]) == (one["group"], one["from_gen"])]
        of_begin = [
            row
            for row in same
            if row["started_at_ms"] - early_ms
            <= one["t_start"]
            <= row["started_at_ms"] + max(late_ms, min(row["at_bound_ms"] or 0, most_ms))
        ]
        assert of_begin or (evidence == REQUESTS and all(row["certainty"] != "exact" for row in same)), one
        assert not told or of_begin[-1]["trigger"] != "unknown", (one, of_begin)


@pytest.mark.parametrize("evidence", [BOTH, SENTENCES, ALL])
@pytest.mark.parametrize("name", RECORDED_EPOCHS)
def test_every_conversion_is_found_also_of_a_group_without_members(name: str, evidence: str) -> None:
    rows = conversions(name, evidence)
    true = [one for one in Story(name).expect["rebalances"] if one["kind"] == "conversion"]
    for one in true:
        cause = "downgraded" if one["reason"].endswith("classic group") else "upgraded"
        assert [
            row
            for row in rows
            if (row["group_id"], row["cause"]) == (one["group"], cause)
            and is_at(row["at_ms"], row["at_bound_ms"], one["t_start"])
        ], one
    assert len(rows) == len(true)


@pytest.mark.parametrize("name", RECORDED_EPOCHS)
def test_no_divergence_is_counted_where_the_evidence_is_whole(name: str) -> None:
    rows = named("progress", said(name, BOTH)["progress"])
    assert {(row["divergences"], row["not_modelled"]) for row in rows} <= {(0, 0)}


@pytest.mark.parametrize("evidence", [BOTH, REQUESTS])
def test_who_did_not_poll_in_time_is_told_from_who_closed(evidence: str) -> None:
    """Java keeps its subscription in the one case and gives it up in the other, in share groups as well. Kafka Streams
    sends the same in both: its FETCHes tell them apart."""
    rows = of("e07_long_polls-4.4.0", evidence, "members")
    causes = {row["client_id"][:4]: (row["end_cause"], row["certainty"]) for row in rows if row["end_cause"]}
    assert causes == {
        "lp-a": ("left", "exact"),
        "ls-a": ("left", "exact"),
        "lp-b": ("poll_timeout", "inferred"),
        "ls-b": ("poll_timeout", "inferred"),
    }


def test_a_rebalance_that_was_open_when_its_group_became_a_consumer_group_is_told() -> None:
    """Two classic members had not joined again when the first one of the consumer protocol came."""
    story = Story("e03_moves-4.1.2")
    (true,) = [one for one in story.expect["rebalances"] if one["kind"] == "classic" and "(on-a-" in one["reason"]]
    for evidence in (BOTH, REQUESTS):
        rows = [row for row in of(story.name, evidence, "rebalances") if row["generation_after"] is None]
        assert [(row["group_id"], row["trigger"], row["completed_at_ms"]) for row in rows] == [
            ("on", "member_left", None)
        ]
        assert is_at(rows[0]["started_at_ms"], rows[0]["at_bound_ms"], true["t_start"])


def test_who_joins_by_an_expression_is_why_its_look_up_makes_an_epoch() -> None:
    rows = [row for row in of("e02_plans-4.4.0", BOTH, "rebalances") if row["group_id"] == "expr"]
    first = next(row for row in rows if row["generation_after"] == 2)
    assert (first["trigger"], first["trigger_client_id"]) == ("member_joined", "expr-b")


def test_a_session_that_ends_after_its_coordinator_died_is_told_as_one() -> None:
    """The new coordinator begins sessions anew; no leave is in its log, and its record says that the member is gone."""
    rows = [row for row in of("e06_breaks-4.4.0", BOTH, "members") if row["client_id"] == "fail-c"]
    assert [(row["end_cause"], row["certainty"]) for row in rows] == [("session_expired", "inferred")]


def test_a_classic_member_in_a_consumer_group_says_in_a_sentence_why_it_leaves() -> None:
    rows = [row for row in of("e03_moves-4.0.2", SENTENCES, "members") if row["member_id"].startswith("on-b-")]
    assert [(row["end_cause"], row["certainty"]) for row in rows] == [("left", "exact")]


def test_an_epoch_that_a_topic_made_is_not_taken_for_the_end_of_a_member() -> None:
    """A topic had grown while a dead member's session ran: two epochs, of which requests show no cause."""
    rows = [row for row in of("e02_plans-4.3.1", REQUESTS, "members") if row["client_id"] == "long-b"]
    (true,) = [one["t"] for one in Story("e02_plans-4.3.1").expect["evictions"] if one["group"] == "long"]
    assert is_at(rows[0]["ended_at_ms"], rows[0]["at_bound_ms"], true)
    assert rows[0]["certainty"] == "provisional"
