"""The verdict: right on recorded stories, and wrong as soon as the tables are wrong in any way it must notice."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from demo import request_log, server_log
from demo.evidence import Evidence, GivenUp, Line, Tolerance, Witness
from demo.request_log import Commit
from demo.server_log import Fact
from demo.tables import Record
from demo.verdict import TRIGGERS, judge
from tests.demo.support import facts_of
from tests.support.stories import FIRST_LIGHT, NOISE_GROUPS, Story, lanes_of, observe, standing


@cache
def evidence_of(name: str) -> Evidence:
    """What is known of a recorded story: the broker's facts, and what Kardia makes of request log and offsets."""
    story = Story(name)
    start_ms, end_ms = story.expect["start_ms"], story.expect["end_ms"]
    rows = observe(lanes_of(name))

    def within(table: str, column: str) -> list[Record]:
        return [
            row
            for row in standing(table, rows.get(table, []))
            if row["group_id"] not in NOISE_GROUPS and start_ms <= (row[column] or start_ms) <= end_ms
        ]

    return Evidence(
        facts=facts_of(story),
        members=within("members", "ended_at_ms"),
        rebalances=within("rebalances", "started_at_ms"),
        transitions=within("transitions", "at_ms"),
        predictions=within("predictions", "predicted_at_ms"),
    )


KNOWN = {
    # The first instants of these recordings are of brokers that are seconds old.
    "c03_zombie-3.9.2": ("group g03c completed its rebalance after 1.0 s: +12 ms off",),
    "c13_commit-3.9.2": ("c13-b joined the group: +24 ms off", "group g13 began to rebalance: +24 ms off"),
    # librdkafka shows no poll without new commits, so its poll timeout is explained afterwards and not predicted.
    "c04_mpi-3.9.2": ("c04-b left the group: was not predicted",),
    "c04_mpi-4.1.2": ("c04-b left the group: was not predicted", "group g04 began to rebalance: -11 ms off"),
}
"""What the judge holds against the reconstruction of single recordings, and why."""


KNOWN_WITH_EPOCHS: dict[str, tuple[str, ...]] = {
    "k01_kill-4.1.2": (),
    "k03_zombie-4.1.2": (),
    "k05_leave-4.4.0": (),
    "k06_static-4.1.2": (),
    "k08_rebalance_timeout-4.1.2": (),
    # The first line of a broker that is seconds old stands after its classes are loaded.
    "k11_migration-4.1.2": ("group h11 began to rebalance: -79 ms off",),
}


@pytest.mark.parametrize("name", KNOWN_WITH_EPOCHS)
def test_recorded_stories_of_groups_with_epochs_are_right(name: str) -> None:
    verdict = judge(evidence_of(name))
    assert sorted(verdict.faults) == sorted(KNOWN_WITH_EPOCHS[name])


def test_who_held_its_partitions_back_must_be_named_with_its_wait() -> None:
    """k08-b was called back never; had it said that it gave partitions up, the group would have waited till then."""
    evidence = evidence_of("k08_rebalance_timeout-4.1.2")
    began = next(f.at_ms for f in evidence.facts if f.what == server_log.EPOCH_BEGAN and f.generation == 3)
    [right] = [line for line in _given_up_after(evidence, began, 8_250) if "gave partitions up" in line.done]
    assert (right.who, right.fault) == ("k08-b", "")
    [wrong] = [line for line in _given_up_after(evidence, began, 4_000) if "gave partitions up" in line.done]
    assert wrong.fault == "the client says 4.0 s"


def _given_up_after(evidence: Evidence, began_ms: int, after_ms: int) -> tuple[Line, ...]:
    """The verdict if k08-b had said that it gave partitions up, and had stayed."""
    members = [{**row, "ended_at_ms": None} if row["client_id"] == "k08-b" else row for row in evidence.members]
    given_up = [GivenUp("k08-b", began_ms + after_ms)]
    return judge(replace(evidence, given_up=given_up, members=members)).lines


@pytest.mark.parametrize("group", ["epoch", "trigger", "conversion"])
def test_an_epoch_that_is_told_wrong_is_a_fault(group: str) -> None:
    evidence = evidence_of("k11_migration-4.1.2")
    turned = {
        "epoch": replace(evidence, rebalances=[row for row in evidence.rebalances if row["generation_after"] != 5]),
        "trigger": replace(
            evidence,
            rebalances=[
                {**row, "trigger": "member_left"} if row["generation_after"] == 5 else row
                for row in evidence.rebalances
            ],
        ),
        "conversion": replace(
            evidence, transitions=[row for row in evidence.transitions if row["cause"] != "downgraded"]
        ),
    }[group]
    assert len(judge(turned).faults) == len(judge(evidence).faults) + 1


@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_recorded_stories_are_right(name: str) -> None:
    verdict = judge(evidence_of(name))
    assert set(verdict.faults) <= set(KNOWN.get(name, ()))
    assert len(verdict.errors_ms) >= 6


def _first(facts: Sequence[Fact], what: str) -> Fact:
    return next(fact for fact in facts if fact.what == what)


KILL = "c01_kill-4.1.2"
WITHIN_MS = Tolerance().instant_ms


def _without_member(evidence: Evidence, fact: Fact) -> Evidence:
    return replace(evidence, members=[row for row in evidence.members if row["member_id"] != fact.member_id])


def _member(evidence: Evidence, fact: Fact, **changes: Any) -> Evidence:
    rows = [{**row, **changes} if row["member_id"] == fact.member_id else row for row in evidence.members]
    return replace(evidence, members=rows)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda e, f: _without_member(e, f), "not in the tables"),
        (lambda e, f: _member(e, f, ended_at_ms=None, end_cause=None), "not in the tables"),
        (lambda e, f: _member(e, f, ended_at_ms=f.at_ms + WITHIN_MS + 1), "+11 ms off"),
        (lambda e, f: _member(e, f, ended_at_ms=f.at_ms - WITHIN_MS - 1), "-11 ms off"),
        (lambda e, f: _member(e, f, end_cause="left"), "Kardia says left"),
        (lambda e, _: replace(e, predictions=()), "was not predicted"),
        (
            lambda e, f: replace(e, predictions=[{**row, "predicted_at_ms": f.at_ms + 5} for row in e.predictions]),
            "was predicted 5 ms too late",
        ),
        (
            lambda e, f: replace(e, seen_at_ms={(f.group_id, f.member_id, "session"): f.at_ms + 40}),
            "was predicted 40 ms too late",
        ),
        (lambda e, f: replace(e, facts=[fact for fact in e.facts if fact != f]), "invented"),
        (lambda e, _: replace(e, rebalances=()), "not in the tables"),
        (
            lambda e, _: replace(e, rebalances=[{**row, "trigger": "metadata_changed"} for row in e.rebalances]),
            "Kardia says metadata_changed, the broker: Adding new member",
        ),
        (
            lambda e, _: replace(e, rebalances=[{**row, "members_after": 7} for row in e.rebalances]),
            "Kardia says 7 members, the broker",
        ),
        (
            lambda e, _: replace(e, rebalances=[*e.rebalances, {**e.rebalances[0], "generation_before": 99}]),
            "invented",
        ),
        (
            lambda e, _: replace(
                e, transitions=[*e.transitions, {**e.transitions[0], "entity": "group", "to_state": "Empty"}]
            ),
            "invented",
        ),
    ],
)
def test_whatever_is_wrong_is_noticed(change: Callable[[Evidence, Fact], Evidence], expected: str) -> None:
    evidence = evidence_of(KILL)
    fact = _first(evidence.facts, server_log.MEMBER_FAILED)
    if expected == "invented" and not evidence.transitions[0]["from_state"]:
        pytest.fail("the first transition has no state before it")
    changed = change(replace(evidence, transitions=[{**t, "from_state": "Stable"} for t in evidence.transitions]), fact)
    assert any(expected in fault for fault in judge(changed).faults)


def test_an_instant_at_the_bound_is_still_right() -> None:
    evidence = evidence_of(KILL)
    fact = _first(evidence.facts, server_log.MEMBER_FAILED)
    assert judge(_member(evidence, fact, ended_at_ms=fact.at_ms + WITHIN_MS)).faults == judge(evidence).faults


def test_only_the_first_group_of_a_broker_is_granted_more() -> None:
    evidence = evidence_of("c13_commit-3.9.2")
    [group] = {fact.group_id for fact in evidence.facts}
    late = judge(evidence)
    granted = judge(replace(evidence, first_group_id=group))
    assert any("ms off" in fault for fault in late.faults)
    assert not any("ms off" in fault for fault in granted.faults)
    assert all(line.routine for line in granted.lines if line.error_ms is not None)
    assert judge(replace(evidence, first_group_id="another")).faults == late.faults


@pytest.mark.parametrize(("later_ms", "may_be"), [(0, True), (30, True), (31, False), (None, False)])
def test_a_rebalance_may_never_be_complete_if_the_next_one_began_while_its_assignment_was_stored(
    later_ms: int | None, may_be: bool
) -> None:
    """The lines of a real broker, but for the instants. That it was completed is no fault either."""
    lines = [
        (0, "Preparing to rebalance group g in state PreparingRebalance with old generation 0 (reason: Adding new "),
        (500, "Stabilized group g generation 1 with 1 members."),
        (508, "Assignment received from leader c-1 for group g for generation 1. The group has 1 members, 0 of which"),
    ]
    again = "Preparing to rebalance group g in state PreparingRebalance with old generation 1 (reason: Adding new "
    lines += [] if later_ms is None else [(508 + later_ms, again)]
    prefix = "INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=18]"
    written = [f"[2026-11-27 05:25:10,{ms:03}] {prefix} {text} (org.apache.kafka.Log)" for ms, text in lines]
    facts = list(server_log.facts(written))
    row = dict(evidence_of(KILL).rebalances[0]) | {
        "group_id": "g",
        "started_at_ms": facts[0].at_ms,
        "trigger": "member_joined",
        "stragglers": [],
        "members_after": 1,
    }
    next_row = row | {"generation_before": 1, "started_at_ms": facts[-1].at_ms}
    rows = [row | {"generation_before": 0, "generation_after": 1}, *([] if later_ms is None else [next_row])]

    def faults(completed_at_ms: int | None) -> list[str]:
        rows[0]["completed_at_ms"] = completed_at_ms
        judged = judge(
            replace(evidence_of(KILL), facts=facts, members=(), transitions=(), predictions=(), rebalances=rows)
        )
        return [fault for fault in judged.faults if "completed" in fault]

    assert faults(facts[2].at_ms + 3) == []
    assert (faults(None) == []) == may_be


def test_a_straggler_that_is_named_wrongly_is_noticed() -> None:
    evidence = evidence_of("c10_slow-3.9.2")
    assert any("waited" in line.said for line in judge(evidence).lines)
    rows = [{**row, "stragglers": (row["stragglers"] or [])[1:]} for row in evidence.rebalances]
    assert any("longest wait" in fault for fault in judge(replace(evidence, rebalances=rows)).faults)


def test_a_poll_timeout_needs_the_client_as_witness() -> None:
    evidence = evidence_of("c04_mpi-4.1.2")
    timeouts = [row for row in evidence.members if row["end_cause"] == "poll_timeout"]
    witnesses = [Witness(row["client_id"], row["ended_at_ms"] + 3_000) for row in timeouts]
    assert timeouts
    without = judge(evidence).faults
    assert judge(replace(evidence, witnesses=witnesses)).faults == without
    missing = set(judge(replace(evidence, witnesses=witnesses[1:])).faults) - set(without)
    assert [fault.rsplit(" ", 1)[-1] for fault in missing] == ["invented"]
    extra = set(judge(replace(evidence, witnesses=[*witnesses, Witness("nobody", 1)])).faults) - set(without)
    assert [fault for fault in extra if fault.startswith("nobody") and "no poll timeout in the tables" in fault]


def test_commits_while_the_group_rebalances_are_lines_of_their_own() -> None:
    evidence = evidence_of("c10_slow-3.9.2")
    start = [fact for fact in evidence.facts if fact.what == server_log.REBALANCE_STARTED][-1]
    member = evidence.members[0]
    commit = Commit(start.at_ms + 50.0, start.group_id, member["member_id"], accepted=True)

    def lines(*commits: Commit, **changes: Any) -> list[Line]:
        verdict = judge(replace(evidence, commits=commits, **changes))
        return [line for line in verdict.lines if "committed" in line.done]

    [line] = lines(commit)
    assert (line.who, line.said) == (member["client_id"], "in PreparingRebalance, still members")
    assert line.fault == ""
    assert lines(replace(commit, at_ms=start.at_ms - 1.0)) == []
    assert lines(replace(commit, accepted=False)) == []
    [line] = lines(commit, members=[{**member, "ended_at_ms": start.at_ms}])
    assert line.fault == "not what the tables say"
    # A rebalance of one member is over within milliseconds: it is found among what is near, not at three instants.
    brief = [
        {**row, "at_ms": round(commit.at_ms) - late_ms, "seq": seq, "to_state": state}
        for row in evidence.transitions[:1]
        for seq, (late_ms, state) in enumerate([(500, "Stable"), (3, "PreparingRebalance"), (0, "CompletingRebalance")])
    ]
    brief = [{**row, "entity": "group", "group_id": start.group_id} for row in brief]
    [line] = lines(commit, transitions=brief)
    assert line.fault == ""
    [line] = lines(commit, transitions=())
    assert line.fault == "not what the tables say"


def test_commits_are_read_from_the_request_log(tmp_path: Path) -> None:
    folder = Story("c13_commit-3.9.2").folder
    log = tmp_path / "kafka-request.log"
    log.write_bytes(gzip.decompress((folder / "kafka-request.log.gz").read_bytes()))
    found = request_log.commits(log)
    expected = Story("c13_commit-3.9.2").expect["request_lines"]["OFFSET_COMMIT"]
    assert expected <= len(found) <= expected + 20
    assert all(commit.group_id and commit.member_id for commit in found)
    assert any(commit.accepted for commit in found)


@pytest.mark.parametrize(
    ("reason", "trigger"),
    [
        ("Updating metadata for static member m with instance id i; client reason: x", "static_replaced"),
        ("Updating metadata for member m during Stable; client reason: x", "metadata_changed"),
    ],
)
def test_metadata_is_updated_for_who_came_back_and_for_who_changed_its_mind(reason: str, trigger: str) -> None:
    """The first is of a static member that came back while its group completed a rebalance."""
    assert next(triggers for words, triggers in TRIGGERS if words in reason) == (trigger,)
