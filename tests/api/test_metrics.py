"""Series of `/metrics` from rows of the tables: names, sums, scores, caps; the cost of a scrape without a clock."""

from __future__ import annotations

import re

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from api.metrics import TableMetrics
from api.settings import ApiSettings
from api.store import Store
from scripts.metrics_page import metrics_page
from scripts.write_reference import FOLDER
from tests.api.conftest import Clock
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

MINUTE_MS = 60_000


class Scraped:
    """What a scrape says, by name and labels."""

    def __init__(self, tables: Tables, **settings: object) -> None:
        self.store = Store(ApiSettings(tables=tables.root, **settings), Clock())  # type: ignore[arg-type]
        self.store.refresh()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(TableMetrics(self.store))

    def value(self, name: str, **labels: str) -> float | None:
        """Value of one series of the cluster `demo`."""
        return self._registry.get_sample_value(name, {"cluster": "demo"} | labels)

    def labels(self, name: str) -> list[dict[str, str]]:
        """Label sets of a series."""
        return [one.labels for family in self._registry.collect() for one in family.samples if one.name == name]

    def families(self) -> list[Metric]:
        """All of a scrape."""
        return list(self._registry.collect())

    def samples(self) -> int:
        """How many lines a scrape has."""
        return sum(len(family.samples) for family in self._registry.collect())


@pytest.fixture
def filled(tables: Tables) -> Tables:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a", client_host="10.0.0.9"),
        member("orders", "b", client_host="10.0.0.9"),
        member("orders", "s", group_instance_id="one"),
        member("orders", "gone", ended_at_ms=NOW_MS - 2_000, end_cause="session_expired", known_at_ms=NOW_MS - 500),
        member("orders", "late", ended_at_ms=NOW_MS - 1_000, end_cause="session_expired"),
        health("orders", "a", session_deadline_at_ms=NOW_MS + 4_000, status="late"),
        health("orders", "b", session_deadline_at_ms=NOW_MS + 500, status="imminent"),
        health("orders", "s", poll_deadline_at_ms=NOW_MS - 5, last_poll_at_ms=NOW_MS - 60_005),
        rebalance("orders", NOW_MS - 9_000, member_seconds_lost=7),
        prediction("orders", "gone", "session", outcome="came_true", lead_ms=4_000),
        prediction("orders", "a", "session", predicted_at_ms=NOW_MS - 30_000, outcome="averted"),
        progress(NOW_MS - 3_000),
        progress(NOW_MS - 1_000, source="b2/request"),
    )
    return tables


def test_the_page_of_metrics_is_old_if_it_is_not_what_the_programs_give() -> None:
    assert (FOLDER / "metrics.md").read_text(encoding="utf-8") == metrics_page(), "run scripts/write_reference.py"


def test_every_series_of_a_scrape_is_on_the_page_with_its_labels(filled: Tables) -> None:
    page = (FOLDER / "metrics.md").read_text(encoding="utf-8")
    rows = {row[0]: set(row[1:]) for row in (re.findall(r"`(\w+)`", line) for line in page.splitlines()) if row}
    scraped = Scraped(filled, metrics_members_max=100)
    seen = set()
    for family in scraped.families():
        name = family.name + ("_total" if family.type == "counter" else "")
        for one in family.samples:
            assert set(one.labels) - {"le"} <= rows[name], one
            seen.add(name)
    assert len(seen) > 40


def test_names_tell_units_and_counters(filled: Tables) -> None:
    for family in Scraped(filled, metrics_members_max=100).families():
        assert family.name.startswith("kardia_"), family.name
        assert not re.search(r"_(ms|millis|minutes|percent)(_|$)", family.name), family.name
        if family.documentation.startswith("Instant"):
            assert family.name.endswith("_timestamp_seconds"), family.name


def test_members_below_a_threshold_count_for_every_higher_one(filled: Tables) -> None:
    scraped = Scraped(filled)
    for threshold, count in (("0.5", 2), ("0.25", 1), ("0.1", 1)):
        of_kind = {"kind": "session", "threshold": threshold}
        assert scraped.value("kardia_group_members_below_headroom", group="orders", **of_kind) == count
        assert scraped.value("kardia_members_below_headroom", **of_kind) == count
    assert scraped.value("kardia_members_below_headroom", kind="poll", threshold="0.1") == 1
    assert scraped.value("kardia_group_session_headroom_min_ratio", group="orders") == 0.05
    assert scraped.value("kardia_group_members", group="orders", state="imminent") == 1


def test_state_is_one_series_per_state(filled: Tables) -> None:
    scraped = Scraped(filled)
    states = {labels["state"] for labels in scraped.labels("kardia_group_state")}
    assert {"Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead", "Unknown"} <= states
    found = {state: scraped.value("kardia_group_state", group="orders", state=state) for state in states}
    assert found == {state: float(state == "Stable") for state in states}


def test_a_member_past_its_poll_deadline_that_still_heartbeats_is_a_zombie(filled: Tables) -> None:
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 1
    filled.batch(1, health("orders", "s", at_ms=NOW_MS + 1, status="imminent"), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 0


def test_whom_a_rebalance_waits_for_is_a_zombie_while_its_session_lives(filled: Tables) -> None:
    filled.batch(1, prediction("orders", "a", "rebalance"), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 2


def test_durations_are_histograms(filled: Tables) -> None:
    scraped = Scraped(filled)
    assert scraped.value("kardia_rebalance_duration_seconds_bucket", le="0.1") == 0
    assert scraped.value("kardia_rebalance_duration_seconds_bucket", le="0.5") == 1
    assert scraped.value("kardia_rebalance_duration_seconds_count") == 1
    assert scraped.value("kardia_rebalance_duration_seconds_sum") == 0.5
    assert scraped.value("kardia_rebalance_member_lost_seconds_total", group="orders") == 7
    assert scraped.value("kardia_eviction_known_after_seconds_count") == 2
    assert scraped.value("kardia_eviction_known_after_seconds_sum") == 1.5
    assert scraped.value("kardia_prediction_lead_seconds_bucket", kind="session", le="2.5") == 0
    assert scraped.value("kardia_prediction_lead_seconds_bucket", kind="session", le="5.0") == 1


def test_scores_tell_what_came_true_and_what_was_foreseen(filled: Tables) -> None:
    scraped = Scraped(filled)
    assert scraped.value("kardia_prediction_precision_ratio", kind="session") == 0.5
    assert scraped.value("kardia_prediction_recall_ratio", kind="session") == 0.5
    assert scraped.value("kardia_prediction_precision_ratio", kind="poll") is None


def test_every_source_has_its_own_age_and_a_retired_one_none(filled: Tables) -> None:
    scraped = Scraped(filled)
    assert scraped.value("kardia_source_age_seconds", source="b1/request") == 3
    assert scraped.value("kardia_source_age_seconds", source="b2/request") == 1
    retired = Scraped(filled, source_retired_ms=1_500)
    assert retired.value("kardia_source_age_seconds", source="b1/request") is None


def test_a_rebalance_that_only_the_state_shows_is_running(filled: Tables) -> None:
    filled.batch(1, health("orders", "a", at_ms=NOW_MS + 1_000, group_state="PreparingRebalance"), progress(NOW_MS))
    scraped = Scraped(filled)
    assert scraped.store.group("demo", "orders").rebalancing_since_ms == NOW_MS + 1_000
    filled.batch(2, transition("orders", 2, "PreparingRebalance", at_ms=NOW_MS - 8_000), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_rebalance_running_seconds", group="orders") == 8


def test_members_have_series_only_when_asked_for_and_never_by_their_id(filled: Tables) -> None:
    name = "kardia_member_session_headroom_ratio"
    assert Scraped(filled).labels(name) == []
    scraped = Scraped(filled, metrics_members_max=5)
    assert scraped.labels(name) == [
        {"cluster": "demo", "group": "orders", "member": "one", "host": ""},
        {"cluster": "demo", "group": "orders", "member": "app", "host": "10.0.0.9"},
    ]
    shared = scraped.value(name, group="orders", member="app", host="10.0.0.9")
    assert shared == 0.05, "of two members with one client id and host the worse is shown"


def test_the_cap_on_members_is_hard_and_what_it_drops_is_counted(filled: Tables) -> None:
    scraped = Scraped(filled, metrics_members_max=1)
    assert len(scraped.labels("kardia_member_session_headroom_ratio")) == 1
    first = scraped.value("kardia_member_series_dropped_total")
    assert first is not None
    assert scraped.value("kardia_member_series_dropped_total") == first + 1


def test_a_scrape_does_not_grow_with_history(filled: Tables) -> None:
    before = Scraped(filled).samples()
    past = [rebalance("orders", NOW_MS - minute * MINUTE_MS) for minute in range(10, 60)]
    gone = [
        member("orders", f"old-{number}", ended_at_ms=NOW_MS - number * 1_000 - 5_000, end_cause="poll_timeout")
        for number in range(50)
    ]
    filled.batch(1, *past, *gone, progress(NOW_MS))
    assert Scraped(filled).samples() == before + 1, "one more: poll timeouts have a recall now"
