"""Lint of a group's settings: each rule at its edge, where it must speak and where it must not."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.lint import RULES, lint

NOW_MS = 1_760_000_000_000


def life(member_id: str, **given: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "protocol": "classic",
        "group_instance_id": None,
        "client_host": "10.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 300_000,
        "end_cause": None,
    }
    return known | {"member_id": member_id} | given


def silences(member_id: str, *silent_ms: int, **given: Any) -> list[dict[str, Any]]:
    known = {"status": "ok", "group_state": "Stable", "session_timeout_ms": 9_000}
    return [
        known
        | {"member_id": member_id, "at_ms": NOW_MS + n * 10_000, "last_heard_at_ms": NOW_MS + n * 10_000 - silent}
        | given
        for n, silent in enumerate(silent_ms)
    ]


def rules(lives: Any = (), rebalances: Any = (), health: Any = ()) -> list[str]:
    return [finding.rule for finding in lint(lives, rebalances, health)]


def test_a_group_in_order_has_no_findings() -> None:
    lives = [life("a"), life("b"), life("s", group_instance_id="s-1")]
    chosen = [{"protocol_name": "range"}, {"protocol_name": "range"}, {"protocol_name": None}]
    assert rules(lives, chosen, silences("a", 2_900, 3_000, 3_000, 10)) == []
    assert rules() == []


@pytest.mark.parametrize(
    ("timeout_ms", "found"), [(5_999, True), (6_000, False), (1_800_000, False), (1_800_001, True)]
)
def test_session_timeouts_outside_the_bounds(timeout_ms: int, found: bool) -> None:
    lives = [life("a", session_timeout_ms=timeout_ms, rebalance_timeout_ms=2_000_000)]
    assert rules(lives) == ["session_outside_bounds"] * found


def test_a_timeout_that_is_not_known_is_no_other_timeout() -> None:
    assert rules([life("a"), life("b", session_timeout_ms=None, rebalance_timeout_ms=None)]) == []


def test_different_timeouts_inside_one_group() -> None:
    assert rules([life("a"), life("b", session_timeout_ms=45_000)]) == ["different_session_timeouts"]
    (one,) = lint([life("a"), life("b", rebalance_timeout_ms=60_000)], (), ())
    assert one.rule == "different_rebalance_timeouts"
    assert one.text == "Members have different rebalance timeouts: 1 min (member b) and 5 min (member a)."
    assert one.member_ids == ("a", "b")


def test_a_poll_interval_below_the_session_timeout() -> None:
    assert rules([life("a", rebalance_timeout_ms=9_999)]) == ["poll_below_session"]
    assert rules([life("a", rebalance_timeout_ms=10_000)]) == []


def test_heartbeats_are_too_rare_only_if_silence_beyond_a_third_is_a_habit() -> None:
    assert rules(health=silences("a", 3_001, 3_001, 3_001)) == ["heartbeat_above_third"]
    assert rules(health=silences("a", 3_001, 3_001, 2_000)) == [], "two may be a slow network"
    assert rules(health=silences("a", 3_001, 3_001, 3_001, 10, 10, 10, 10)) == [], "not a habit"
    same = silences("a", 3_001) * 5
    assert rules(health=same) == [], "one silence that was sampled five times"
    assert rules(health=silences("a", *[3_001] * 5, status="late")) == []
    assert rules(health=silences("a", *[3_001] * 5, group_state="PreparingRebalance")) == []


def test_assignors_that_change() -> None:
    (one,) = lint((), [{"protocol_name": "range"}, {"protocol_name": "cooperative-sticky"}], ())
    assert one.rule == "mixed_assignors"
    assert "range (1 time) and cooperative-sticky (1 time)" in one.text


def test_a_static_id_that_is_fought_over() -> None:
    def taken(*hosts: str) -> list[dict[str, Any]]:
        return [
            life(f"m{n}", group_instance_id="s", client_host=host, end_cause="static_replaced")
            for n, host in enumerate(hosts)
        ]

    assert rules(taken("h1")) == [], "a restart"
    assert rules(taken("h1", "h1", "h1")) == [], "restarts on one host"
    assert rules(taken("h1", "h2", "h1")) == ["duplicate_static_id"]
    assert rules([life("m", group_instance_id="s", end_cause="fenced")]) == ["duplicate_static_id"]


def test_two_processes_with_one_static_id_are_found_by_the_first_refusal() -> None:
    """One take-over from the same host looks like a restart, but the one that was replaced went on sending."""
    one = life("m1", group_instance_id="s", client_host="h", end_cause="static_replaced")
    other = life("m2", group_instance_id="s", client_host="h")
    assert lint([one, other], (), ()) == []
    (found,) = lint([one, other], (), (), ["m1"])
    assert found.rule == "duplicate_static_id"
    assert found.text == (
        "The static id s was taken over 1 time: member m1 and member m2. Who had it before still lived and was fenced: "
        "member m1."
    )


def test_ids_are_never_more_than_text() -> None:
    hostile = "\x1b[2J`</pre>\n# x"
    texts = [one.text for one in lint([life(hostile, session_timeout_ms=1), life("b")], (), ())]
    assert texts
    assert all(text.isprintable() for text in texts)


def test_every_rule_has_a_name_of_its_own_and_an_advice() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.advice.endswith(".") and rule.severity in ("warning", "advice") for rule in RULES)


def stall(member_id: str, ended: int, **given: Any) -> dict[str, Any]:
    known = {
        "client_id": member_id[0],
        "joined_at_ms": NOW_MS,
        "ended_at_ms": NOW_MS + ended,
        "end_cause": "poll_timeout",
    }
    return life(member_id, rebalance_timeout_ms=8_000, session_timeout_ms=6_000) | known | given


def test_stalls_above_the_poll_interval_are_told_once_with_what_to_change() -> None:
    back = life(
        "a-2", rebalance_timeout_ms=8_000, session_timeout_ms=6_000, client_id="a", joined_at_ms=NOW_MS + 46_200
    )
    static = stall("s-1", 50_000, end_cause="session_expired", fault="application", group_instance_id="s")
    (found,) = lint([stall("a-1", 40_000), back | {"ended_at_ms": None}, static], [], [])
    assert found.rule == "stalls_above_interval"
    assert found.text == "a (a-1) and s (s-1): no poll for up to 14.2 s, at a poll interval of 8 s."
    assert found.advice.startswith("Raise max.poll.interval.ms")
    assert found.member_ids == ("a-1", "s-1")


def test_a_stall_after_which_nobody_came_back_has_no_upper_bound_and_a_crash_is_none() -> None:
    (found,) = lint([stall("a-1", 40_000)], [], [])
    assert "no poll for more than 8 s" in found.text
    assert rules([stall("a-1", 40_000, end_cause="session_expired", fault="client_silent")]) == []
