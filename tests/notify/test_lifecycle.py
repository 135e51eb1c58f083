"""What is told about findings, by instants given: raised once, refreshed, resolved, held back, damped, restarted."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from api.notify import targets
from api.notify.conditions import BLIND, KINDS, Finding, Found
from api.notify.lifecycle import (
    ALERTS_MAX,
    EXPIRES_MS,
    FLAP_LINGER_MS,
    NAMED_AFTER_MS,
    NAMED_MAX,
    REFRESH_MS,
    Alert,
    Lifecycle,
)
from api.notify.targets import Links
from dashboards import rules
from kardia.instants import to_rfc3339

SESSION = Finding("KafkaGroupSessionTimeoutImminent", "demo", "orders", "", "text")
PENDING = Finding("KafkaGroupPendingMemberBlocks", "demo", "orders", "", "text")
EVICTIONS = Finding("KafkaGroupEvictions", "demo", "orders", "", "text")
STALE = Finding("KardiaFeedStale", "demo", "", "", "text")
LINGER_MS = KINDS[SESSION.alert].linger_ms
KNOWN_TO_MS = 7
"""Up to when there was evidence of what is held back."""


def found(*findings: Finding, held: tuple[tuple[str, str], ...] = ()) -> Found:
    return Found(findings, dict.fromkeys(held, KNOWN_TO_MS))


def told(lifecycle: Lifecycle, now_ms: int, what: Found) -> list[str]:
    return [notice.what for notice in lifecycle.step(now_ms, what)]


def test_a_finding_is_raised_once_refreshed_and_resolved_after_its_linger() -> None:
    lifecycle = Lifecycle()
    assert told(lifecycle, 0, found(SESSION)) == ["raised"]
    assert told(lifecycle, 1, found(SESSION)) == []
    assert told(lifecycle, REFRESH_MS - 1, found(SESSION)) == []
    assert told(lifecycle, REFRESH_MS, found(SESSION)) == ["refreshed"]
    assert told(lifecycle, REFRESH_MS + LINGER_MS - 1, found()) == []
    assert told(lifecycle, REFRESH_MS + LINGER_MS, found()) == ["resolved"]
    assert told(lifecycle, REFRESH_MS + 10 * LINGER_MS, found()) == []


def test_what_lingers_is_told_as_over_and_never_as_it_was() -> None:
    """One that flaps stays raised for minutes: its refreshes said the last "in 1.2 s" a minute after the recovery."""
    lifecycle, notices = Lifecycle(), []
    for at_ms in range(0, 400_000, 500):
        is_so = at_ms % 100_000 < 2_000 and at_ms < 300_000
        now = found(SESSION._replace(description=f"near at {at_ms}")) if is_so else found()
        notices += [(at_ms, is_so, notice) for notice in lifecycle.step(at_ms, now)]
    refreshed = [(at_ms, is_so, notice) for at_ms, is_so, notice in notices if notice.what == "refreshed"]
    assert len(refreshed) > 5
    for at_ms, is_so, notice in refreshed:
        said = targets.texts(msgspec.structs.replace(notice, outcome="x was heard again."), Links("", ""))[
            "description"
        ]
        if is_so:
            assert said == f"near at {at_ms}"
        else:
            assert said == (
                f"Over since {to_rfc3339(min(at_ms // 100_000, 2) * 100_000 + 1_500)}. x was heard again. "
                "The alert stays for a while, in case it comes again."
            )
    assert notices[-1][2].what == "resolved"


def near(*member_ids: str) -> Found:
    return found(SESSION._replace(members=member_ids, member_ids=member_ids))


def test_who_comes_into_danger_is_named_at_once_and_once() -> None:
    """Until the next refresh its timeout would have passed."""
    lifecycle = Lifecycle()
    assert told(lifecycle, 0, near("a")) == ["raised"]
    assert told(lifecycle, 1_999, near("a", "b")) == [], "not twice within two seconds"
    (notice,) = lifecycle.step(2_000, near("a", "b"))
    assert (notice.what, notice.finding.members) == ("refreshed", ("a", "b"))
    assert told(lifecycle, 4_000, near("b")) == []
    assert told(lifecycle, 6_000, near("a")) == [], "it was named already"
    assert told(lifecycle, 8_000, found()) == []
    assert told(lifecycle, 10_000, near("c")) == ["refreshed"], "the alert still stands, and another one is in it"
    assert told(lifecycle, 40_000, near("c")) == ["refreshed"]


def test_who_is_named_is_told_again_when_it_was_over() -> None:
    lifecycle = Lifecycle()
    told(lifecycle, 0, near("a"))
    assert told(lifecycle, 2_000, near("b")) == ["refreshed"]
    assert "resolved" in told(lifecycle, 2_000 + LINGER_MS, found())
    assert told(lifecycle, 90_000, near("b")) == ["raised"]
    assert told(lifecycle, 92_000, near("a")) == ["refreshed"]


def test_a_large_group_that_fails_member_by_member_does_not_flood() -> None:
    lifecycle = Lifecycle()
    said = [
        notice
        for at_ms in range(0, 600_000, 500)
        for notice in lifecycle.step(at_ms, near(*(f"m-{at_ms // 500 + more}" for more in range(3))))
    ]
    assert len(said) <= 1 + NAMED_MAX + 600_000 // REFRESH_MS
    assert all(len(alert.named) <= NAMED_MAX for alert in lifecycle.alerts.values())
    assert min(later.at_ms - one.at_ms for one, later in pairwise(said)) >= NAMED_AFTER_MS


def test_an_alert_that_lists_what_happened_waits_for_its_refresh() -> None:
    lifecycle = Lifecycle()
    told(lifecycle, 0, found(EVICTIONS._replace(members=("a",), member_ids=("a",))))
    assert told(lifecycle, 5_000, found(EVICTIONS._replace(members=("a", "b"), member_ids=("a", "b")))) == []


def test_a_condition_that_does_not_last_is_not_told() -> None:
    lifecycle = Lifecycle()
    assert told(lifecycle, 0, found(PENDING)) == []
    assert told(lifecycle, 2_999, found(PENDING)) == []
    assert told(lifecycle, 3_000, found()) == []
    assert lifecycle.alerts == {}
    assert told(lifecycle, 4_000, found(PENDING)) == []
    assert told(lifecycle, 7_000, found(PENDING)) == ["raised"]


def test_without_evidence_nothing_is_raised_and_nothing_resolved() -> None:
    held = (("demo", "orders"),)
    lifecycle = Lifecycle()
    assert told(lifecycle, 0, found(EVICTIONS)) == ["raised"]
    assert told(lifecycle, 10_000, found(held=held)) == ["refreshed"], "it is not known any more"
    assert told(lifecycle, 39_999, found(held=held)) == []
    assert told(lifecycle, 40_000, found(held=held)) == ["refreshed"]
    assert told(lifecycle, 41_000, found(SESSION, held=held)) == []
    assert sorted(told(lifecycle, 42_000, found(SESSION))) == ["raised", "resolved"]


def test_a_feed_that_comes_and_goes_is_told_once_and_not_for_every_alert() -> None:
    """Nothing is heard at all, again and again: each alert is refreshed as ever, and one about the feed says why."""
    stale, lifecycle = (("demo", ""),), Lifecycle()
    told(lifecycle, 0, found(SESSION, EVICTIONS))
    said = {
        now_ms: told(lifecycle, now_ms, found(held=stale) if now_ms % 1_000 else found(SESSION, EVICTIONS))
        for now_ms in range(500, 60_500, 500)
    }
    assert {now_ms: what for now_ms, what in said.items() if what} == {
        30_000: ["refreshed"] * 2,
        60_000: ["refreshed"] * 2,
    }


def test_what_cannot_be_known_is_told_as_unknown_until_it_is_known_again() -> None:
    group = (("demo", "orders"),)
    lifecycle = Lifecycle()

    def unknown_since(now_ms: int, what: Found) -> list[tuple[str, int | None]]:
        return [(notice.what, notice.unknown_since_ms) for notice in lifecycle.step(now_ms, what)]

    assert unknown_since(0, found(SESSION)) == [("raised", None)]
    assert unknown_since(10_000, found(held=group)) == [("refreshed", KNOWN_TO_MS)]
    assert unknown_since(10_500, found(held=group)) == []
    assert unknown_since(40_000, found(held=group)) == [("refreshed", KNOWN_TO_MS)]
    assert unknown_since(41_000, found(SESSION)) == [("refreshed", None)], "it is so, and known to be"
    assert unknown_since(42_000, found(held=group)) == [("refreshed", KNOWN_TO_MS)]
    assert unknown_since(43_000, found()) == [], "nothing says that it is so: its linger begins"
    assert unknown_since(42_000 + LINGER_MS, found()) == [("resolved", None)]


def test_what_is_found_in_spite_of_a_gap_is_known() -> None:
    held = (("demo", "orders"),)
    lifecycle = Lifecycle()
    lifecycle.step(0, found(SESSION))
    assert lifecycle.step(10_000, found(SESSION, held=held)) == []
    [notice] = lifecycle.step(REFRESH_MS, found(SESSION, held=held))
    assert (notice.what, notice.unknown_since_ms) == ("refreshed", None)


def test_without_tables_nothing_is_known_of_anything_and_nothing_ends() -> None:
    lifecycle = Lifecycle()
    lifecycle.step(0, found(SESSION, STALE))
    lifecycle.step(15_000, found(SESSION, STALE))
    assert lifecycle.step(16_000, BLIND) == []
    told_blind = [*lifecycle.step(REFRESH_MS, BLIND), *lifecycle.step(15_000 + REFRESH_MS, BLIND)]
    assert {(one.finding.alert, one.what, one.unknown_since_ms) for one in told_blind} == {
        (SESSION.alert, "refreshed", 15_000),
        (STALE.alert, "refreshed", 15_000),
    }, "with the instant at which each was last found"
    for now_ms in range(15_500 + REFRESH_MS, 16_000 + 20 * REFRESH_MS, 500):
        assert {one.what for one in lifecycle.step(now_ms, BLIND)} <= {"refreshed"}
    assert "resolved" in told(lifecycle, now_ms + 500, found(SESSION)), "the feed is not stale"


def test_a_condition_begins_to_last_when_there_is_evidence_of_it() -> None:
    lifecycle = Lifecycle()
    held = (("demo", ""),)
    assert told(lifecycle, 0, found(PENDING)) == []
    for blind in (found(PENDING, held=held), found(held=held), BLIND):
        assert told(lifecycle, 60_000, blind) == []
        assert told(lifecycle, 60_001, found(PENDING)) == []
    assert told(lifecycle, 62_999, found(PENDING)) == []
    assert told(lifecycle, 63_000, found(PENDING)) == ["raised"]


def test_what_is_unknown_is_said_to_be_in_every_form() -> None:
    lifecycle, links = Lifecycle(), Links("http://kardia.example", "docs/runbooks")
    lifecycle.step(0, found(SESSION))
    [notice] = lifecycle.step(10_000, found(held=(("demo", "orders"),)))
    [to_webhook] = [msgspec.json.decode(one.body) for one in targets.to_webhook([notice], links)]
    [request] = targets.to_alertmanager([notice], links)
    [alert] = msgspec.json.decode(request.body)
    expected = (
        "Unknown since 1970-01-01T00:00:00.007Z: evidence is missing, so it may be over, or have come true. "
        "What was said last: text"
    )
    assert alert["annotations"]["description"] == to_webhook["data"]["annotations"]["description"] == expected
    assert (to_webhook["type"], to_webhook["data"]["unknown_since_at_ms"]) == ("io.kardia.alert.refreshed", KNOWN_TO_MS)
    assert alert["labels"] == targets.labels(SESSION), "the same alert, not another one"
    assert alert["endsAt"] == to_rfc3339(10_000 + EXPIRES_MS)


def test_a_linger_begins_when_there_is_evidence_again() -> None:
    lifecycle = Lifecycle()
    told(lifecycle, 0, found(SESSION))
    told(lifecycle, 60_000, found(held=(("demo", ""),)))
    assert told(lifecycle, 60_000 + LINGER_MS - 1, found()) == []
    assert "resolved" in told(lifecycle, 60_000 + LINGER_MS, found())


def test_another_group_is_not_held_back_and_the_feed_never_is() -> None:
    held = (("demo", "payments"), ("other", ""))
    assert told(Lifecycle(), 0, found(SESSION, held=held)) == ["raised"]
    lifecycle = Lifecycle()
    told(lifecycle, 0, found(STALE, held=(("demo", ""),)))
    assert told(lifecycle, 15_000, found(STALE, held=(("demo", ""),))) == ["raised"]


def test_what_comes_and_goes_stays_raised_longer_each_time() -> None:
    lifecycle, now_ms, lasted = Lifecycle(), 0, []
    for _ in range(4):
        assert told(lifecycle, now_ms, found(EVICTIONS)) == ["raised"]
        gone_ms = now_ms
        while "resolved" not in told(lifecycle, now_ms, found()):
            now_ms += 1_000
        lasted.append(now_ms - gone_ms)
        now_ms += 1_000
    assert lasted == [0, 2 * FLAP_LINGER_MS, 4 * FLAP_LINGER_MS, 8 * FLAP_LINGER_MS]


def test_a_restart_tells_nothing_twice_and_forgets_nothing() -> None:
    before = Lifecycle()
    before.step(0, found(SESSION))
    saved = msgspec.json.encode(list(before.alerts.values()))
    for findings, expected in (((SESSION,), []), ((), ["resolved"])):
        alerts = msgspec.json.decode(saved, type=list[Alert])
        after = Lifecycle({alert.finding.key: alert for alert in alerts})
        assert told(after, LINGER_MS - 1, found(SESSION)) == []
        after = Lifecycle({alert.finding.key: alert for alert in msgspec.json.decode(saved, type=list[Alert])})
        assert [one for one in told(after, LINGER_MS, found(*findings)) if one != "refreshed"] == expected


def test_every_notice_has_an_id_of_its_own_and_a_second_raise_another_than_the_first() -> None:
    lifecycle, ids = Lifecycle(), []
    for now_ms in range(0, 400_000, 10_000):
        what = found(SESSION) if now_ms % 200_000 < 100_000 else found()
        ids += [notice.id for notice in lifecycle.step(now_ms, what)]
    assert len(ids) == len(set(ids)) > 6


def test_what_finds_no_place_is_counted() -> None:
    lifecycle = Lifecycle({("x", "", str(at), ""): Alert(SESSION, 0, 0) for at in range(ALERTS_MAX)})
    lifecycle._alert(("KafkaGroupEvictions", "demo", "new", ""), EVICTIONS, 0)
    assert lifecycle.dropped == 1
    assert len(lifecycle.alerts) == ALERTS_MAX


def duration_ms(text: str) -> int:
    """Prometheus' way to write a duration, of one unit."""
    return int(text[:-1]) * {"s": 1_000, "m": 60_000}[text[-1]]


def test_alerts_are_those_of_the_prometheus_rules() -> None:
    of_rules = {alert.name: alert for alert in rules.ALERTS}
    for name, kind in KINDS.items():
        rule = of_rules[name]
        assert (kind.severity, kind.summary, kind.runbook) == (rule.severity, rule.summary, rule.runbook)
        assert kind.hold_ms == duration_ms(rule.hold)
        assert kind.linger_ms == duration_ms(rule.linger)
    left_to_prometheus = {
        "KardiaAbsent",
        "KardiaArchiveBehind",
        "KardiaBrokerNotAsRelease",
        "KardiaNotifyUndelivered",
        "KardiaPredictionsUnreliable",
        "KardiaSourcesDisagree",
        "KardiaTableUnavailable",
    }
    assert of_rules.keys() - KINDS.keys() == left_to_prometheus
