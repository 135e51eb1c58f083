"""What an alert says, in words: how long is left, how long ago it was due, and about whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.notify import conditions
from api.notify.conditions import Finding, find
from api.notify.outcomes import outcome_of
from api.settings import ApiSettings
from api.store import Store
from kardia.instants import to_rfc3339
from tests.api.conftest import Clock
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, transition

GAP_MS = NOW_MS - 10 * 60_000
HELD = {("demo", "orders"): GAP_MS}


@pytest.mark.parametrize(
    ("of_member", "of_health", "held"),
    [
        ({}, {"status": "unknown"}, HELD),
        ({}, {"status": "ok"}, {}),
        ({}, {"status": "unknown", "last_heard_at_ms": None, "session_deadline_at_ms": None}, {}),
        ({}, {"status": "unknown", "session_timeout_ms": None, "session_deadline_at_ms": None}, {}),
        ({"protocol": "consumer"}, {"status": "unknown"}, HELD),
        ({}, {"status": "imminent", "at_ms": GAP_MS}, HELD),
        ({}, {"status": "imminent", "at_ms": GAP_MS + 1}, {}),
        ({}, {"status": "ok", "at_ms": GAP_MS}, {}),
    ],
    ids=[
        "not heard since the gap",
        "heard since",
        "never heard",
        "timeout never seen",
        "of another protocol",
        "in danger when it came",
        "in danger since",
        "well when it came",
    ],
)
def test_a_group_is_held_back_until_all_that_were_known_before_a_gap_are_known_again(
    tmp_path: Path, of_member: dict[str, Any], of_health: dict[str, Any], held: dict[tuple[str, str], int]
) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    tables.batch(0, progress(GAP_MS, gaps=1))
    tables.batch(
        1,
        transition("orders", 1, "Stable"),
        member("orders", "a", **of_member),
        health("orders", "a", **of_health),
        member("orders", "b"),
        health("orders", "b"),
        progress(NOW_MS),
    )
    store = Store(ApiSettings(tables=tables.root), Clock())
    store.refresh()
    assert conditions.find(store).held == held


@pytest.mark.parametrize(
    ("deadline_at_ms", "when"),
    [
        (NOW_MS + 2_900, f"at {to_rfc3339(NOW_MS + 2_900)}, in 2.9 s."),
        (NOW_MS, f"at {to_rfc3339(NOW_MS)}, in 0.0 s."),
        (NOW_MS - 2_300, f"was due at {to_rfc3339(NOW_MS - 2_300)}, 2.3 s ago, and has no outcome yet."),
    ],
)
@pytest.mark.parametrize(
    ("host", "who"), [("10.0.0.9", "app at 10.0.0.9"), (None, "app")], ids=["host seen", "host hidden"]
)
def test_a_timeout_that_is_near_says_when_and_who(
    tmp_path: Path, deadline_at_ms: int, when: str, host: str | None, who: str
) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a", client_id="app", client_host=host),
        health("orders", "a", status="imminent"),
        prediction("orders", "a", "session", deadline_at_ms=deadline_at_ms),
        progress(NOW_MS),
    )
    store = Store(ApiSettings(tables=tables.root), Clock())
    store.refresh()
    [finding] = conditions.find(store).findings
    assert finding.alert == "KafkaGroupSessionTimeoutImminent"
    assert finding.description == f"Group orders: the session timeout of 1 member is near, {when}"
    assert finding.members == (who,)
    assert conditions.find(store).held == {}


@pytest.mark.parametrize(
    ("members", "session", "zombies"),
    [
        (1, "the session timeout of 1 member is near, at {}, in 2.9 s.", "1 member heartbeats and does no work."),
        (
            2,
            "the session timeout of 2 members is near, the first at {}, in 2.9 s.",
            "2 members heartbeat and do no work.",
        ),
    ],
)
def test_it_reads_well_for_one_and_for_many(tmp_path: Path, members: int, session: str, zombies: str) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    rows: list[Any] = [transition("orders", 1, "Stable")]
    for at in range(members):
        rows += [
            member("orders", f"m{at}"),
            health("orders", f"m{at}", status="overdue", poll_deadline_at_ms=NOW_MS - 4_000),
        ]
        rows.append(prediction("orders", f"m{at}", "session", deadline_at_ms=NOW_MS + 2_900 + at))
        rows.append(prediction("orders", f"m{at}", "poll", deadline_at_ms=NOW_MS - 4_000))
    tables.batch(0, *rows, progress(NOW_MS))
    store = Store(ApiSettings(tables=tables.root), Clock())
    store.refresh()
    said = {finding.alert: finding.description for finding in conditions.find(store).findings}
    assert said["KafkaGroupSessionTimeoutImminent"] == "Group orders: " + session.format(to_rfc3339(NOW_MS + 2_900))
    assert said["KafkaGroupZombieMember"] == f"Group orders: {zombies}"


@pytest.mark.parametrize(("since_ms", "said"), [(27_570, "27 s"), (95_000, "1 min 35 s")])
def test_a_duration_is_told_in_whole_seconds_and_in_minutes_where_there_are_any(
    tmp_path: Path, since_ms: int, said: str
) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    began_ms = NOW_MS - since_ms
    tables.batch(0, transition("orders", 1, "PreparingRebalance", at_ms=began_ms), progress(NOW_MS))
    store = Store(ApiSettings(tables=tables.root), Clock())
    store.refresh()
    [finding] = conditions.find(store).findings
    assert finding.alert == "KafkaGroupRebalanceStuck"
    assert finding.description == f"Group orders: rebalancing for {said}."


def test_a_feed_about_as_old_as_the_bound_does_not_come_and_go(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    tables.batch(0, member("g", "m"), health("g", "m"), progress(NOW_MS))
    clock = Clock(NOW_MS)
    store = Store(ApiSettings(tables=tables.root, stale_after_ms=10_000), clock)
    store.refresh()
    stale: frozenset[str] = frozenset()
    seen = []
    for age_ms in (10_000, 10_001, 9_000, 10_500, 5_001, 5_000, 9_999, 10_001):
        clock.now_ms = NOW_MS + age_ms
        stale = find(store, stale).stale
        seen.append(bool(stale))
    assert seen == [False, True, True, True, True, False, False, True]


def test_what_is_over_says_what_became_of_whom_it_was_about(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    at = NOW_MS - 1_000
    over = {"joined_at_ms": NOW_MS - 60_000, "client_host": "10.0.0.9"}
    tables.batch(
        0,
        member("g", "back", client_id="back", client_host="10.0.0.8"),
        health("g", "back", last_heard_at_ms=at),
        member("g", "dead", **over, client_id="dead", ended_at_ms=at, end_cause="session_expired"),
        member("g", "gone", **over, client_id="gone", ended_at_ms=at, end_cause="left"),
        progress(NOW_MS),
    )
    store = Store(ApiSettings(tables=tables.root), Clock(NOW_MS))
    store.refresh()
    who = ("back", "dead", "gone", "never")
    finding = Finding("KafkaGroupSessionTimeoutImminent", "demo", "g", "", "text", who, who)
    when = to_rfc3339(at)
    assert outcome_of(store, finding) == (
        f"back at 10.0.0.8 was heard again at {when}. dead at 10.0.0.9 was evicted at {when}: session_expired. "
        f"gone at 10.0.0.9 left at {when}. It is not known what became of never."
    )
    assert outcome_of(store, finding._replace(group="another")) == ""


@pytest.mark.parametrize(
    ("alert", "rows"),
    [
        (
            "KafkaGroupEvictions",
            [
                member("g", name, client_id=name, ended_at_ms=NOW_MS - 1_000, end_cause="session_expired")
                for name in ("one", "two")
            ],
        ),
        (
            "KafkaGroupStaticMemberFenced",
            [transition("g", 2, "Member", entity="member", member_id="one", cause="fenced", at_ms=NOW_MS - 1_000)],
        ),
    ],
)
def test_who_was_evicted_or_fenced_is_named(tmp_path: Path, alert: str, rows: list[Any]) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    tables.batch(0, member("g", "here"), *rows, progress(NOW_MS))
    store = Store(ApiSettings(tables=tables.root), Clock(NOW_MS))
    store.refresh()
    [found] = [one for one in find(store).findings if one.alert == alert]
    assert found.members == ("one", "two")[: len(rows)]
