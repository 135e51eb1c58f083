"""What the move of a classic group to the consumer protocol meets: each rule by the least that shows it, and that
nothing is said of what was not seen."""

from __future__ import annotations

import pytest

from kardia.kafka.newer_protocol import Support, support_of
from kardia.protocol_migration import HEARTBEAT_MS, MAX_SIZE, POLICY, SESSION_MS, Classic, Meeting, Weight, meetings

SETTINGS = {POLICY: "bidirectional", SESSION_MS: "45000", HEARTBEAT_MS: "5000", MAX_SIZE: "100"}
JAVA = Classic("m-1", "orders", "apache-kafka-java/4.1.2", "", 45_000, 5_000.0, ("range", "cooperative-sticky"))


def said(*members: Classic, **settings: str) -> dict[str, Meeting]:
    """By rule. Settings by name, with `_` for `.`."""
    changed = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
    return {one.rule: one for one in meetings(members, changed)}


@pytest.mark.parametrize(
    ("software", "client_id", "expected"),
    [
        ("apache-kafka-java/4.0.0", "c", Support.YES),
        ("apache-kafka-java/3.9.1", "c", Support.PREVIEW),
        ("apache-kafka-java/3.6.2", "c", Support.NO),
        ("apache-kafka-java/4.1.2", "app-StreamThread-1-consumer", Support.NO),
        ("apache-kafka-java/unknown", "c", Support.UNKNOWN),
        ("librdkafka/2.12.0", "c", Support.YES),
        ("librdkafka/2.11.1", "c", Support.PREVIEW),
        ("librdkafka/1.9.2", "c", Support.NO),
        # A binding has a version of its own: that of the library in it counts.
        ("confluent-kafka-javascript/1.6.0-rdkafka-2.12.0", "c", Support.YES),
        ("confluent-kafka-javascript/2.20.0-rdkafka-2.11.0", "c", Support.PREVIEW),
        ("kgo/v1.20.5", "c", Support.ASKED),
        ("kgo/v1.18.0", "c", Support.NO),
        ("kafka-python/3.0.12", "c", Support.NO),
        ("sarama/1.50.0", "c", Support.UNKNOWN),
        ("", "c", Support.UNKNOWN),
    ],
)
def test_what_a_client_can_is_told_by_its_announced_version(software: str, client_id: str, expected: Support) -> None:
    can, row = support_of(software, client_id)
    assert can is expected
    assert expected is Support.UNKNOWN or (row is not None and row.source.startswith("https://"))


def test_a_group_that_is_ready_meets_nothing_but_what_nobody_can_see() -> None:
    found = said(JAVA)
    assert {rule: one.weight for rule, one in found.items()} == {
        "client_can": Weight.FINE,
        "policy": Weight.FINE,
        "regex": Weight.UNKNOWN,
    }
    assert found["regex"].certainty == "unknown"


def test_a_client_that_is_too_old_stops_it_and_the_row_says_what_is_needed() -> None:
    found = said(JAVA, JAVA._replace(member_id="m-2", client_id="old", software="apache-kafka-java/3.4.0"))
    old = found["client_too_old"]
    assert (old.weight, old.member_ids) == (Weight.STOPS, ("m-2",))
    assert "apache-kafka-java/3.4.0" in old.text
    assert "4.0" in old.advice
    assert found["client_can"].member_ids == ("m-1",)


def test_an_assignor_of_ones_own_has_no_counterpart_on_the_broker() -> None:
    found = said(JAVA._replace(assignors=("com.example.Own",)))
    own = found["custom_assignor"]
    assert (own.weight, own.certainty) == (Weight.STOPS, "inferred"), "that it sends data along is not seen"
    assert "com.example.Own" in own.text
    assert "eager" not in found
    assert "custom_assignor" not in said(JAVA)


def test_who_is_eager_today_gives_up_less_then() -> None:
    assert said(JAVA._replace(assignors=("range",)))["eager"].weight is Weight.CHANGES
    unknown = said(JAVA._replace(assignors=()))
    assert unknown["assignor_unknown"].certainty == "unknown"
    assert "eager" not in unknown


def test_timeouts_that_the_broker_overrides_are_named_with_both_values() -> None:
    found = said(JAVA._replace(session_ms=10_000, heartbeat_ms=3_010.0))
    assert "10 s" in found["session"].text
    assert "45 s" in found["session"].text
    assert (found["heartbeat"].certainty, "3 s" in found["heartbeat"].text) == ("inferred", True)
    unread = {one.rule: one for one in meetings([JAVA._replace(session_ms=10_000)], None)}
    assert unread["session"].certainty == "unknown"
    assert "heartbeat" not in unread


def test_static_members_keep_their_id_and_a_second_process_is_refused() -> None:
    assert "UNRELEASED_INSTANCE_ID" in said(JAVA._replace(instance_id="i-1"))["static"].text


@pytest.mark.parametrize(
    ("policy", "weight"),
    [("BIDIRECTIONAL", Weight.FINE), ("upgrade", Weight.FINE), ("downgrade", Weight.STOPS), ("disabled", Weight.STOPS)],
)
def test_the_policy_of_the_broker_lets_it_move_or_does_not(policy: str, weight: Weight) -> None:
    assert said(JAVA, group_consumer_migration_policy=policy)["policy"].weight is weight


def test_brokers_before_4_and_groups_that_are_too_large_stop_it() -> None:
    assert said(JAVA, inter_broker_protocol_version="3.9-IV0")["broker"].weight is Weight.STOPS
    assert said(JAVA, JAVA._replace(member_id="m-2"), group_consumer_max_size="1")["too_many"].weight is Weight.STOPS


def test_groups_of_embedded_protocols_stay_what_they_are() -> None:
    [only] = meetings([JAVA._replace(protocol_type="connect", assignors=("sessioned",))], SETTINGS)
    assert (only.rule, only.weight) == ("not_a_consumer", Weight.STOPS)
    assert meetings([], SETTINGS) == []
