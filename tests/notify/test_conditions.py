"""What an alert says, in words: how long is left, how long ago it was due, and about whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.notify import conditions
from api.settings import ApiSettings
from api.store import Store
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
        ({"protocol": "consumer"}, {"status": "unknown"}, {}),
        ({}, {"status": "imminent", "at_ms": GAP_MS}, HELD),
        ({}, {"status": "imminent", "at_ms": GAP_MS + 1}, {}),
        ({}, {"status": "ok", "at_ms": GAP_MS}, {}),
    ],
    ids=[
        "not heard since the gap",
        "heard since",
        "never heard",
        "timeout never seen",
        "not modelled",
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
        (NOW_MS + 2_900, "the first in 2.9 s."),
        (NOW_MS, "the first in 0.0 s."),
        (NOW_MS - 2_300, "the first was due 2.3 s ago and has no outcome yet."),
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
    assert finding.description == f"Group orders: the session timeout of 1 member(s) is near, {when}"
    assert finding.members == (who,)
    assert conditions.find(store).held == {}
