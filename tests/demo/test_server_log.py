"""The demo's own reading of server.log, on which the verdict rests, against what is known of the recorded stories."""

from __future__ import annotations

import pytest

from demo import server_log
from tests.demo.support import facts_of
from tests.support.stories import FIRST_LIGHT, Story


@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_the_facts_are_those_of_the_recording(name: str) -> None:
    story = Story(name)
    facts, expect = facts_of(story), story.expect
    assert {(f.group_id, f.member_id, f.at_ms) for f in facts if f.what == server_log.MEMBER_FAILED} == {
        (e["group"], e["member_id"], e["t"]) for e in expect["evictions"]
    }
    assert {(f.group_id, f.member_id, f.at_ms) for f in facts if f.what == server_log.MEMBER_LEFT} == {
        (e["group"], e["member_id"], e["t"]) for e in expect["leaves"]
    }
    assert {(f.group_id, f.generation, f.at_ms) for f in facts if f.what == server_log.REBALANCE_STARTED} == {
        (r["group"], r["from_gen"], r["t_start"]) for r in expect["rebalances"]
    }
    assert {(f.group_id, f.generation, f.at_ms) for f in facts if f.what == server_log.ASSIGNED} >= {
        (r["group"], r["to_gen"], r["t_done"]) for r in expect["rebalances"] if r.get("t_done") and r["members"]
    }
    assert len([f for f in facts if f.what == server_log.GROUP_EMPTY]) == len(expect["empties"])


def test_lines_of_others_are_no_facts() -> None:
    lines = [
        "",
        "no stamp: Group g with generation 1 is now empty",
        "[2026-01-02 03:04:05,006] INFO [BrokerServer id=1] Group g with generation 1 is now empty (kafka.Server)",
        "[2026-01-02 03:04:05,006] INFO [GroupCoordinator id=1] Scheduling loading of metadata (kafka.Other)",
    ]
    assert list(server_log.facts(lines)) == []


JAVA = "[2026-01-02 03:04:05,006] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
SCALA = "[2026-01-02 03:04:05,006] INFO [GroupCoordinator 1]: "


@pytest.mark.parametrize(
    "lines",
    [
        (
            JAVA
            + "Pending dynamic member with id m-1 joins group g in Stable state. Adding to the group now. (o.a.k.M)",
            JAVA
            + "Preparing to rebalance group g in state PreparingRebalance with old generation 4 (reason: Adding new "
            "member m-1 with group instance id null; client reason: not provided). (org.apache.kafka.M)",
        ),
        (
            JAVA + "Static member with groupInstanceId=shelf and unknown member id joins group g in Stable state. "
            "Created a new member id m-1 for this member and added to the group. (org.apache.kafka.M)",
            JAVA
            + "Preparing to rebalance group g in state PreparingRebalance with old generation 4 (reason: Adding new "
            "member m-1 with group instance id shelf; client reason: not provided). (org.apache.kafka.M)",
        ),
        (
            SCALA + "Static member with groupInstanceId=shelf and unknown member id joins group g in Stable state. "
            "Created a new member id m-1 for this member and add to the group. (kafka.coordinator.group.C)",
            SCALA + "Preparing to rebalance group g in state PreparingRebalance with old generation 4 "
            "(__consumer_offsets-3) (reason: Adding new member m-1 with group instance id Some(shelf); client reason: "
            "not provided) (kafka.coordinator.group.C)",
        ),
        (
            SCALA + "Preparing to rebalance group g in state PreparingRebalance with old generation 4 "
            "(__consumer_offsets-3) (reason: Adding new member m-1 with group instance id None; client reason: not "
            "provided) (kafka.coordinator.group.C)",
        ),
    ],
    ids=["java dynamic", "java static", "scala static", "scala dynamic"],
)
def test_a_member_that_joins_is_one_fact_whichever_line_says_it(lines: tuple[str, ...]) -> None:
    facts = {fact.what: fact for fact in server_log.facts(lines)}
    assert len(facts) == len(list(server_log.facts(lines))) == 2
    added, started = facts[server_log.MEMBER_ADDED], facts[server_log.REBALANCE_STARTED]
    assert (added.group_id, added.member_id, added.at_ms) == ("g", "m-1", 1767323045006)
    assert (started.group_id, started.generation) == ("g", 4)


ONE, TWO = "m-1-0b0a1cf9-8da0-4f6a-9c3e-0123456789ab", "m-2-1b0a1cf9-8da0-4f6a-9c3e-0123456789ab"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (JAVA + f"Group g removed dynamic members who haven't joined: [{ONE}, {TWO}] (o.a.k.M)", server_log.NOT_JOINED),
        (
            SCALA + f"Group g removed dynamic members who haven't joined: Set({ONE}, {TWO}) (kafka.C)",
            server_log.NOT_JOINED,
        ),
        (
            SCALA + "Preparing to rebalance group g in state PreparingRebalance with old generation 4 "
            f"(__consumer_offsets-3) (reason: Removing HashSet({ONE}, {TWO}) on pending sync request expiration) "
            "(kafka.C)",
            server_log.NOT_SYNCED,
        ),
    ],
)
def test_members_that_were_put_out_together_are_a_fact_each(line: str, what: str) -> None:
    facts = [fact for fact in server_log.facts([line]) if fact.what == what]
    assert [(fact.group_id, fact.member_id) for fact in facts] == [("g", ONE), ("g", TWO)]


@pytest.mark.parametrize(
    "line",
    [
        SCALA + "Loading group metadata for g with generation 4 (kafka.coordinator.group.C)",
        JAVA + "Loaded classic group g with 2 members. (org.apache.kafka.M)",
    ],
)
def test_a_group_that_was_loaded_is_a_fact(line: str) -> None:
    assert [(fact.what, fact.group_id) for fact in server_log.facts([line])] == [(server_log.LOADED, "g")]


def test_a_timer_of_a_group_that_was_unloaded_puts_nobody_out() -> None:
    """Kafka up to 3.9 does not cancel it. Another group's line between changes nothing."""
    absent = SCALA + f"Group g removed dynamic members who haven't joined: Set({ONE}, {TWO}) (kafka.C)"
    dead = SCALA + "Group {0} is dead, skipping rebalance stage (kafka.C)"
    assert list(server_log.facts([absent, dead.format("g")])) == []
    assert len(list(server_log.facts([absent, dead.format("other")]))) == 2
