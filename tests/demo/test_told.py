"""Which alert belongs to which fault, what had to be told, and what was told of nothing. Over made-up messages."""

from __future__ import annotations

from typing import Any

import pytest

from demo.receiver import FROM_ALERTMANAGER, FROM_NOTIFIER, Message
from demo.told import (
    STALE_AFTER_MS,
    STOOD_STILL_MS,
    Begun,
    Danger,
    Received,
    Span,
    danger_of,
    dangers,
    fault_of,
    fresh_spans,
    invented,
    missing,
    received,
    stood_still,
)

SESSION, POLL = "KafkaGroupSessionTimeoutImminent", "KafkaGroupPollTimeoutImminent"
STARTED = "2026-01-02T03:04:05.123456789Z"
STARTED_MS = 1767323045123
HOSTILE = 'a/"b"\n\u202e{{ .x }}'


def page(at_ms: int, status: str, group: str = "g", alert: str = SESSION) -> Message:
    """What Alertmanager posts of one alert."""
    one = {
        "status": status,
        "fingerprint": f"{alert} {group}",
        "startsAt": STARTED,
        "labels": {"alertname": alert, "severity": "critical", "cluster": "demo", "group": group},
        "annotations": {"description": "text", "incident_url": "http://kardia/incident"},
    }
    return Message(at_ms, FROM_ALERTMANAGER, {"status": status, "alerts": [one]})


def event(at_ms: int, told_at_ms: int, what: str = "raised", group: str = "g", alert: str = SESSION) -> Message:
    """What the notifier posts of one alert."""
    labels = {"alertname": alert, "severity": "critical", "cluster": "demo", "group": group}
    data = {"labels": labels, "told_at_ms": told_at_ms, "since_at_ms": told_at_ms}
    return Message(at_ms, FROM_NOTIFIER, {"type": f"io.kardia.alert.{what}", "data": data})


def told(at_ms: int, group: str = "g", alert: str = SESSION, resolved_at_ms: int | None = None) -> Received:
    return Received(alert, group, "critical", "", "", at_ms, resolved_at_ms)


def danger(committed_at_ms: int, closed_at_ms: int | None, group: str = "g", kind: str = "session") -> Danger:
    return Danger(group, "m", kind, committed_at_ms - 100, committed_at_ms, closed_at_ms)


@pytest.mark.parametrize("group", ["g", HOSTILE])
def test_an_alert_lasts_from_its_first_page_to_its_last(group: str) -> None:
    messages = [
        event(STARTED_MS - 500_000, STARTED_MS - 500_010, group=group),  # an earlier one, long over
        event(STARTED_MS + 20, STARTED_MS + 10, group=group),
        event(STARTED_MS + 25, STARTED_MS + 15, group="other"),
        page(STARTED_MS + 40, "firing", group),
        event(STARTED_MS + 50, STARTED_MS + 45, "refreshed", group=group),
        page(STARTED_MS + 60, "firing", group),
        page(STARTED_MS + 90, "resolved", group),
        page(STARTED_MS + 99, "firing", group, POLL),
        page(STARTED_MS + 999, "resolved", group, "KafkaGroupEvictions"),  # it was told before anybody listened
    ]
    first, second = received(messages)
    assert (first.alert, first.group_id, first.incident_url) == (SESSION, group, "http://kardia/incident")
    assert (first.raised_at_ms, first.pushed_at_ms) == (STARTED_MS + 10, STARTED_MS + 20)
    assert (first.at_ms, first.resolved_at_ms) == (STARTED_MS + 40, STARTED_MS + 90)
    assert (second.alert, second.raised_at_ms, second.resolved_at_ms) == (POLL, None, None)


def test_an_alert_that_its_two_senders_end_and_begin_again_is_one() -> None:
    pages = [page(STARTED_MS + 40, "firing"), page(STARTED_MS + 90, "resolved"), page(STARTED_MS + 95, "firing")]
    [one] = received(pages)
    assert (one.at_ms, one.resolved_at_ms) == (STARTED_MS + 40, None)
    later = page(STARTED_MS + 900, "firing")
    later.body["alerts"][0]["startsAt"] = "2026-01-02T03:04:06Z"
    # A start that moves while it fires is the other sender's; after its end it is another alert.
    assert len(received([*pages, later])) == 1
    [first, again] = received([*pages, page(STARTED_MS + 800, "resolved"), later])
    assert (first.resolved_at_ms, again.at_ms) == (STARTED_MS + 800, STARTED_MS + 900)


def row(outcome: str, batch_id: int, **changes: Any) -> dict[str, Any]:
    found = {
        "group_id": "g",
        "member_id": "m",
        "kind": "session",
        "predicted_at_ms": 5,
        "known_at_ms": 7,
        "certainty": "inferred",
        "outcome": outcome,
        "batch_id": batch_id,
    }
    return found | changes


def test_a_danger_begins_when_a_prediction_is_worth_an_alert() -> None:
    rows = [
        row("open", 1, certainty="provisional", known_at_ms=6),
        row("open", 2),
        row("open", 3, known_at_ms=8),
        row("open", 3, member_id="late", kind="poll", certainty="provisional"),
        row("open", 3, member_id="n", kind="rebalance"),
        row("open", 9, member_id="whose commit is not known"),
        row("came_true", 4),
        row("averted", 4, member_id="never told"),
    ]
    first, second = dangers(rows, {1: 100, 2: 200, 3: 300, 4: 400})
    assert first == Danger("g", "m", "session", 7, 200, 400)
    assert (second.member_id, second.alert, second.closed_at_ms) == ("late", POLL, None)


@pytest.mark.parametrize(
    ("found", "alerts", "is_missing"),
    [
        (danger(1_000, 5_000), [told(1_200)], False),
        (danger(1_000, 5_000), [], True),
        (danger(1_000, 5_000), [told(1_200, group="other")], True),
        (danger(1_000, 5_000), [told(1_200, alert=POLL)], True),
        (danger(1_000, 5_000), [told(100, resolved_at_ms=900)], True),
        (danger(1_000, 5_000), [told(100, resolved_at_ms=1_100)], False),
        (danger(1_000, 5_000), [told(7_001)], True),
        (danger(1_000, 2_999), [], False),
        (danger(1_000, 3_000), [], True),
        (danger(1_000, None), [], True),
        (danger(1_000, None), [told(90_000)], False),
    ],
)
def test_what_stood_long_enough_must_have_been_told(found: Danger, alerts: list[Received], is_missing: bool) -> None:
    assert missing([found], alerts, [(0, 100_000)]) == ([found] if is_missing else [])


@pytest.mark.parametrize(
    ("fresh", "is_missing"),
    [
        ([(0, 3_000)], True),
        ([(0, 2_999)], False),  # a while is held back
        ([(3_000, 9_000)], True),
        ([(3_001, 9_000)], False),
        ([(0, 2_000), (4_000, 9_000)], False),
        ([(0, 500), (1_500, 3_500)], True),
        ([], False),
    ],
)
def test_what_stood_while_the_feed_was_stale_need_not_have_been_told(fresh: list[Span], is_missing: bool) -> None:
    assert bool(missing([danger(1_000, 5_000)], [], fresh)) == is_missing


def test_the_feed_is_fresh_for_a_while_after_each_commit() -> None:
    def progress(batch_id: int, complete_to_ms: int, source: str = "b/request") -> dict[str, Any]:
        return {"batch_id": batch_id, "lane": 0, "source": source, "complete_to_ms": complete_to_ms}

    rows = [
        progress(1, 9_900),
        progress(2, 10_900),
        progress(2, 10_500, "b/offsets"),  # the slowest source counts
        progress(3, 40_000),
        progress(3, 25_000, "b/offsets"),
        progress(4, 41_000, "b/offsets"),
        progress(5, 99_000),  # of a commit that is not known
    ]
    commits = {1: 10_000, 2: 11_000, 3: 40_000, 4: 42_000}
    found = fresh_spans(rows, commits, 45_000)
    assert found == [(10_000, 10_500 + STALE_AFTER_MS), (42_000, 45_000)]
    assert fresh_spans([], {}, 45_000) == []


def test_a_feed_that_stood_still_is_a_fault_and_a_moment_of_it_is_none() -> None:
    moment, long = (0, 5_000), (5_000 + STOOD_STILL_MS, 60_000)
    assert stood_still([moment, long]) == []
    assert stood_still([moment, (long[0] + 1, 60_000)]) == [(5_000, long[0] + 1)]
    assert stood_still([moment]) == []


def test_what_was_told_of_no_danger_is_invented() -> None:
    alerts = [told(1_200), told(1_300, group="calm"), told(1_400, alert="KafkaGroupRebalanceStorm", group="calm")]
    found = [danger(1_000, 5_000)]
    assert invented(found, alerts) == [alerts[1]]
    assert danger_of(alerts[0], found) == found[0]
    assert danger_of(alerts[1], found) is None


def test_an_alert_belongs_to_the_fault_of_its_group_that_began_last() -> None:
    begun = [Begun("join", "g", 100), Begun("leave", "g", 900), Begun("kill", "h", 950), Begun("kill", "g", 2_000)]
    assert fault_of(told(1_000), begun) == begun[1]
    assert fault_of(told(2_000), begun) == begun[3]
    assert fault_of(told(99), begun) is None
    assert fault_of(told(5_000, group=""), begun) is None
