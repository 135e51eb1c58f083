"""Brokers before 2.8 in the demo: a ZooKeeper beside them, text lines, the story they can be shown, their sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import broker_logging, request_log, server_log
from demo.broker import Broker, BrokerSettings
from demo.evidence import Evidence, Witness
from demo.scenario import FAULTS, WITH_EPOCHS, played_on
from demo.server_log import Fact
from demo.verdict import judge
from supervise import process
from tests.demo.support import facts_of
from tests.support.stories import OLD_STORIES, Story

WAIT_S = 30.0

SAYS_LITTLE = ("2.0.1",)
"""Releases whose coordinator says at DEBUG only that a member left, and at no level why a group prepares."""


@pytest.mark.parametrize("name", [name for name in OLD_STORIES if not name.startswith("o25")])
def test_the_facts_are_those_of_the_recording(name: str) -> None:
    story = Story(name)
    facts, expect = facts_of(story), story.expect
    said = {(f.group_id, f.member_id) for f in facts if f.what == server_log.MEMBER_FAILED}
    timed = {(e["group"], e["member_id"]) for e in expect["evictions"] if "session" in e["why"]}
    assert said == timed
    if not name.endswith(SAYS_LITTLE):
        assert {(f.group_id, f.member_id, f.at_ms) for f in facts if f.what == server_log.MEMBER_LEFT} == {
            (e["group"], e["member_id"], e["t"]) for e in expect["leaves"]
        }
    assert {(f.group_id, f.generation) for f in facts if f.what == server_log.REBALANCE_STARTED} == {
        (r["group"], r["from_gen"]) for r in expect["rebalances"]
    }
    assert all(f.members == -1 for f in facts if f.what == server_log.GENERATION_STARTED)


SCALA = "[2026-01-02 03:04:05,006] INFO [GroupCoordinator 1]: "
OLD, NEW = "shelf-0b0a1cf9-8da0-4f6a-9c3e-0123456789ab", "shelf-1b0a1cf9-8da0-4f6a-9c3e-0123456789ab"


@pytest.mark.parametrize(
    ("line", "group_id"),
    [
        (
            f"Static member Some(shelf) with unknown member id rejoins, assigning new member id {NEW}, while old "
            f"member {OLD} will be removed. (kafka.C)",
            "",
        ),
        (
            f"Static member Some(shelf) of group g with unknown member id rejoins, assigning new member id {NEW}, "
            f"while old member id {OLD} will be removed. (kafka.C)",
            "g",
        ),
    ],
)
def test_a_static_member_that_is_back_is_a_fact_with_a_group_or_without(line: str, group_id: str) -> None:
    [fact] = server_log.facts([SCALA + line])
    assert (fact.what, fact.group_id, fact.member_id) == (server_log.STATIC_REPLACED, group_id, OLD)


def test_a_fact_without_a_group_is_looked_for_by_its_member() -> None:
    """And counts as missed where no group has it."""
    fact = Fact(server_log.STATIC_REPLACED, 5_000, "", OLD)
    row = {
        "group_id": "g",
        "member_id": OLD,
        "client_id": "c",
        "joined_at_ms": 1_000,
        "ended_at_ms": 5_001,
        "end_cause": "static_replaced",
    }
    nothing: dict[str, list[dict[str, object]]] = {"rebalances": [], "transitions": [], "predictions": []}
    assert not judge(Evidence(facts=[fact], members=[row], **nothing)).faults  # type: ignore[arg-type]
    assert judge(Evidence(facts=[fact], members=[], **nothing)).faults  # type: ignore[arg-type]


@pytest.mark.parametrize(("certainty", "faults"), [("unknown", 0), ("exact", 1)])
def test_a_poll_timeout_that_no_line_can_tell_has_to_be_said_to_be_unknown(certainty: str, faults: int) -> None:
    row = {
        "group_id": "g",
        "member_id": OLD,
        "client_id": "c",
        "joined_at_ms": 1_000,
        "ended_at_ms": 5_000,
        "end_cause": "left",
        "certainty": certainty,
    }
    nothing: dict[str, list[dict[str, object]]] = {"rebalances": [], "transitions": [], "predictions": []}
    left = Fact(server_log.MEMBER_LEFT, 5_000, "g", OLD)
    evidence = Evidence(facts=[left], members=[row], witnesses=[Witness("c", 6_000)], **nothing)  # type: ignore[arg-type]
    assert len(judge(evidence).faults) == faults


@pytest.mark.parametrize("reason", ["Adding new member m-1", "Adding new member m-1 with group instanceid Some(i)"])
def test_a_member_of_a_release_with_few_words_is_added_by_the_reason_alone(reason: str) -> None:
    line = "Preparing to rebalance group g in state PreparingRebalance with old generation 4 (__consumer_offsets-3) "
    facts = list(server_log.facts([f"{SCALA}{line}(reason: {reason}) (kafka.coordinator.group.C)"]))
    assert [(fact.what, fact.member_id) for fact in facts] == [
        (server_log.REBALANCE_STARTED, ""),
        (server_log.MEMBER_ADDED, "m-1"),
    ]


def test_commits_are_read_from_text_lines(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[1] / "ingest" / "data" / "text-lines-2.3.1.log"
    log = tmp_path / "kafka-request.log"
    # Of names as the demo has them: those of the rest hold what stands between fields.
    plain = [
        line for line in recorded.read_text(encoding="utf-8").splitlines(keepends=True) if "clientId=odd" not in line
    ]
    log.write_text("".join(plain), encoding="utf-8")
    found = {commit.member_id[:5]: commit for commit in request_log.commits(log)}
    assert found
    assert {commit.accepted for commit in found.values()} == {True, False}


def test_the_filters_look_for_what_only_lines_of_one_api_have(tmp_path: Path) -> None:
    said = broker_logging.log4j1_properties(tmp_path, lines_of=broker_logging.TEXT)
    assert "StringToMatch=RequestHeader(apiKey=OFFSET_COMMIT," in said
    assert said.count("StringToMatch=") == len(broker_logging.APIS)
    assert "requestApiKey" not in said
    assert broker_logging.log4j1_properties(tmp_path).count('StringToMatch="requestApiKey":') == len(
        broker_logging.APIS
    )


def test_a_story_has_no_static_members_where_there_are_none() -> None:
    assert played_on("4.4.0") == list(FAULTS)
    assert set(played_on("2.3.1")) == set(played_on("3.9.2")) == set(FAULTS) - WITH_EPOCHS
    assert set(played_on("2.3.1")) - set(played_on("2.0.1")) == {"static-restart", "static-expiry"}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", ["2.3.1", "2.7.2"])
def test_an_old_broker_runs_beside_its_zookeeper_and_comes_back(tmp_path: Path, version: str) -> None:
    """Its jars are fetched for this; two JVMs."""
    from confluent_kafka import Consumer

    with Broker(tmp_path, BrokerSettings(version=version, offsets_partitions=3)) as broker:
        broker.create_topic("t", 1)
        broker.create_topic("t", 1)
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "g", "client.id": "c", "session.timeout.ms": 1_500}
            | {"heartbeat.interval.ms": 300, "log_level": 0}
        )
        consumer.subscribe(["t"])

        def beating() -> bool:
            consumer.poll(0.1)
            return "apiKey=HEARTBEAT," in broker.request_log.read_text()

        process.until(beating, WAIT_S, lambda: broker.request_log.read_text())
        consumer.close()
        assert server_log.MEMBER_LEFT in [fact.what for fact in server_log.read(broker.server_log)]
        names = {
            line.partition("RequestHeader(apiKey=")[2].partition(",")[0]
            for line in broker.request_log.read_text().splitlines()
        }
        assert {"JOIN_GROUP", "HEARTBEAT", "LEAVE_GROUP"} <= names <= set(broker_logging.APIS.values())
        assert broker.stop() == 143
        broker.start()
        assert broker.running
