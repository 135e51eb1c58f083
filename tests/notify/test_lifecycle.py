"""What is told about findings, by instants given: raised once, refreshed, resolved, held back, damped, restarted."""

from __future__ import annotations

import msgspec

from api.notify.conditions import KINDS, Finding, Found
from api.notify.lifecycle import ALERTS_MAX, FLAP_LINGER_MS, REFRESH_MS, Alert, Lifecycle
from dashboards import rules

SESSION = Finding("KafkaGroupSessionTimeoutImminent", "demo", "orders", "", "text")
PENDING = Finding("KafkaGroupPendingMemberBlocks", "demo", "orders", "", "text")
EVICTIONS = Finding("KafkaGroupEvictions", "demo", "orders", "", "text")
STALE = Finding("KardiaFeedStale", "demo", "", "", "text")
LINGER_MS = KINDS[SESSION.alert].linger_ms


def found(*findings: Finding, held: tuple[tuple[str, str], ...] = ()) -> Found:
    return Found(findings, frozenset(held))


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


def test_a_condition_that_does_not_last_is_not_told() -> None:
    lifecycle = Lifecycle()
    assert told(lifecycle, 0, found(PENDING)) == []
    assert told(lifecycle, 2_999, found(PENDING)) == []
    assert told(lifecycle, 3_000, found()) == []
    assert lifecycle.alerts == {}
    assert told(lifecycle, 4_000, found(PENDING)) == []
    assert told(lifecycle, 7_000, found(PENDING)) == ["raised"]


def test_without_evidence_nothing_is_raised_and_nothing_resolved() -> None:
    for held in (("demo", ""), ("demo", "orders")):
        lifecycle = Lifecycle()
        assert told(lifecycle, 0, found(EVICTIONS)) == ["raised"]
        assert told(lifecycle, 10_000, found(held=(held,))) == []
        assert told(lifecycle, 40_000, found(held=(held,))) == ["refreshed"]
        assert told(lifecycle, 41_000, found(SESSION, held=(held,))) == []
        assert sorted(told(lifecycle, 42_000, found(SESSION))) == ["raised", "resolved"]


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


def test_alerts_are_those_of_the_prometheus_rules() -> None:
    of_rules = {alert.name: alert for alert in rules.ALERTS}
    for name, kind in KINDS.items():
        rule = of_rules[name]
        assert (kind.severity, kind.summary, kind.runbook) == (rule.severity, rule.summary, rule.runbook)
        assert f"{kind.hold_ms // 1_000}s" == rule.hold
        assert f"{kind.linger_ms // 1_000}s" == rule.linger
    assert of_rules.keys() - KINDS.keys() == {"KardiaPredictionsUnreliable", "KardiaTableUnavailable"}
