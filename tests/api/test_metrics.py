"""Series of `/metrics` from rows of the tables: names, sums, scores, caps; the cost of a scrape without a clock."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest
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
        self.clock = Clock()
        self.store = Store(ApiSettings(tables=tables.root, **settings), self.clock)  # type: ignore[arg-type]
        self.store.refresh()
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(TableMetrics(self.store))

    def value(self, name: str, **labels: str) -> float | None:
        """Value of one series of the cluster `demo`."""
        return self.registry.get_sample_value(name, {"cluster": "demo"} | labels)

    def labels(self, name: str) -> list[dict[str, str]]:
        """Label sets of a series."""
        return [one.labels for family in self.registry.collect() for one in family.samples if one.name == name]

    def families(self) -> list[Metric]:
        """All of a scrape."""
        return list(self.registry.collect())

    def samples(self) -> int:
        """How many lines a scrape has."""
        return sum(len(family.samples) for family in self.registry.collect())


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


OVER = {"deadline_at_ms": NOW_MS - 4_000}
"""Longer ago than a heartbeat is late: one would show that it polls, as a leave would show that it does not."""


def test_a_member_whose_poll_interval_ran_out_as_foretold_and_that_still_heartbeats_is_a_zombie(filled: Tables) -> None:
    """The deadline in its row alone is none: an idle topic may show no poll either."""
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 0
    filled.batch(1, prediction("orders", "s", "poll"), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 0, "it has not run out yet"
    just_over = {"deadline_at_ms": NOW_MS - 5, "known_at_ms": NOW_MS + 1}
    filled.batch(2, prediction("orders", "s", "poll", **just_over), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 0, "no heartbeat was due since"
    filled.batch(3, prediction("orders", "s", "poll", **OVER, known_at_ms=NOW_MS + 2), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 1
    averted = {"outcome": "averted", "outcome_at_ms": NOW_MS, "known_at_ms": NOW_MS + 3}
    filled.batch(4, prediction("orders", "s", "poll", **OVER, **averted), progress(NOW_MS))
    assert Scraped(filled).value("kardia_group_zombie_members", group="orders") == 0


def test_whom_a_rebalance_waits_for_is_a_zombie_while_its_session_lives(filled: Tables) -> None:
    filled.batch(1, prediction("orders", "a", "rebalance"), prediction("orders", "s", "poll", **OVER), progress(NOW_MS))
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


def counts(scraped: Scraped, group: str = "orders") -> dict[str, float]:
    """Counters of one scrape, summed over their other labels."""
    found: dict[str, float] = {}
    for family in scraped.families():
        for one in family.samples:
            if family.type == "counter" and one.name != "kardia_member_series_dropped_total":
                whose = one.labels.get("group", group)
                if whose == group:
                    found[one.name] = found.get(one.name, 0) + one.value
    return {name: value for name, value in found.items() if value}


def test_a_counter_begins_before_its_first_event(tables: Tables) -> None:
    """A group whose first rebalance and eviction are known as soon as the group: `increase()` must see them."""
    tables.create()
    scraped = Scraped(tables)
    assert counts(scraped) == {}
    rows = [
        transition("orders", 1, "Stable"),
        rebalance("orders", NOW_MS - 9_000, member_seconds_lost=7),
        member("orders", "gone", ended_at_ms=NOW_MS - 2_000, end_cause="session_expired"),
        prediction("orders", "gone", "session", outcome="came_true", lead_ms=4_000),
        progress(NOW_MS, gaps=2),
    ]
    tables.batch(0, *rows)
    scraped.store.refresh()
    first = scraped.families()
    states = [one for family in first if family.name == "kardia_group_state" for one in family.samples]
    assert [one.labels["state"] for one in states if one.value] == ["Stable"], "gauges tell what is so"
    histograms = [one for family in first if family.type == "histogram" for one in family.samples]
    zeros = [one for family in first if family.type == "counter" for one in family.samples]
    assert {one.value for one in zeros + histograms} == {0}
    assert {one.labels["group"] for one in zeros if "group" in one.labels} == {"orders"}
    assert counts(scraped) == {}, "the second of two servers"
    told = counts(scraped)
    assert (told["kardia_rebalances_total"], told["kardia_evictions_total"]) == (1, 1)
    assert (told["kardia_cluster_evictions_total"], told["kardia_rebalance_member_lost_seconds_total"]) == (1, 7)
    assert told["kardia_predictions_total"] == 1
    assert scraped.value("kardia_ledger_total", what="gaps") == 2
    # Another group comes into a cluster that is known.
    tables.batch(1, transition("later", 1, "Stable"), rebalance("later", NOW_MS - 1_000), progress(NOW_MS + 1))
    scraped.store.refresh()
    assert counts(scraped, "later")["kardia_cluster_rebalances_total"] == 2
    assert "kardia_rebalances_total" not in counts(scraped, "later")
    assert counts(scraped, "later")["kardia_rebalances_total"] == 1


def test_a_scrape_of_other_names_takes_no_beginning_from_who_asks_for_all(tables: Tables) -> None:
    """The supervisor asks for a count of rounds every few seconds: what is new is still to be told to Prometheus."""
    tables.create()
    scraped = Scraped(tables)
    Gauge("other", "Of another collector.", registry=scraped.registry).set(1)
    assert counts(scraped) == {}
    tables.batch(0, transition("orders", 1, "Stable"), rebalance("orders", NOW_MS - 9_000), progress(NOW_MS))
    scraped.store.refresh()
    for _ in range(5):
        text = generate_latest(scraped.registry.restricted_registry(["other"])).decode()
        assert [line for line in text.splitlines() if line[:1] != "#"] == ["other 1.0"]
    assert (counts(scraped), counts(scraped)) == ({}, {}), "of two servers"
    assert counts(scraped)["kardia_rebalances_total"] == 1


def test_what_was_there_when_the_program_began_is_told_as_it_is(filled: Tables) -> None:
    """After a restart Prometheus has the series: one that began at 0 again would be an increase by all there was."""
    assert counts(Scraped(filled))["kardia_rebalances_total"] == 1


def test_a_scrape_before_the_tables_are_read_begins_nothing(filled: Tables) -> None:
    scraped = Scraped.__new__(Scraped)
    scraped.clock = Clock()
    scraped.store = Store(ApiSettings(tables=filled.root), scraped.clock)
    scraped.registry = CollectorRegistry(auto_describe=False)
    scraped.registry.register(TableMetrics(scraped.store))
    assert counts(scraped) == {}
    scraped.store.refresh()
    assert counts(scraped)["kardia_rebalances_total"] == 1


def test_no_view_is_kept_from_scrape_to_scrape(filled: Tables) -> None:
    """One that is let go whole, with all rows of a large fleet, makes every request wait."""
    scraped = Scraped(filled)
    scraped.families()
    view = weakref.ref(scraped.store.current.clusters["demo"])
    filled.batch(1, health("orders", "a", at_ms=NOW_MS + 1), progress(NOW_MS))
    scraped.store.refresh()
    gc.collect()
    assert view() is None


def test_a_group_that_gets_series_late_begins_with_what_it_had(tables: Tables) -> None:
    tables.create()
    scraped = Scraped(tables, metrics_groups_max=1)
    tables.batch(
        0,
        *(transition(group, 1, "Stable") for group in ("a", "z")),
        *(rebalance("z", NOW_MS - ago) for ago in (9_000, 8_000, 7_000)),
        member("z", "m"),
        member("a", "m"),
        health("a", "m"),
        health("z", "m"),
        progress(NOW_MS),
    )
    scraped.store.refresh()
    assert counts(scraped, "z").get("kardia_rebalances_total") is None, "a has the only series"
    late = health("z", "m", at_ms=NOW_MS + 1, status="imminent")
    tables.batch(1, rebalance("z", NOW_MS - 1_000), late, progress(NOW_MS + 1))
    scraped.store.refresh()
    assert [counts(scraped, "z")["kardia_rebalances_total"] for _ in range(2)] == [3, 3]
    assert counts(scraped, "z")["kardia_rebalances_total"] == 4


def test_quantiles_are_those_of_the_durations(tables: Tables) -> None:
    """Not edges of buckets, nor guesses between two; those of more than an hour ago do not count."""
    tables.create()
    took = (130, 190, 260, 4_321)
    rows = [
        rebalance("orders", NOW_MS - 60_000 - at * 10_000, completed_at_ms=NOW_MS - 60_000 - at * 10_000 + took_ms)
        for at, took_ms in enumerate(took)
    ]
    old = rebalance("orders", NOW_MS - 3_700_000, completed_at_ms=NOW_MS - 3_600_000)
    foretold = prediction("orders", "x", "session", outcome="came_true", outcome_at_ms=NOW_MS - 5_000, lead_ms=4_300)
    tables.batch(0, transition("orders", 1, "Stable"), *rows, old, foretold, progress(NOW_MS))
    scraped = Scraped(tables)

    def told(what: str, quantile: str, **labels: str) -> float | None:
        return scraped.value(f"kardia_{what}_quantile_seconds", quantile=quantile, **labels)

    assert (told("rebalance_duration", "0.5"), told("rebalance_duration", "0.95")) == (0.19, 4.321)
    assert told("prediction_lead", "0.5", kind="session") == 4.3
    assert told("prediction_lead", "0.5", kind="poll") is None
    assert told("eviction_known_after", "0.5") is None


def test_members_in_danger_are_those_that_lanes_show(tables: Tables) -> None:
    """Overdue counts; who is waited for counts, and not who waits in its JoinGroup."""
    tables.create()
    preparing = {"group_state": "PreparingRebalance"}
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        *(member("orders", one) for one in "abcd"),
        health("orders", "a", status="overdue"),
        health("orders", "b", status="ok", awaited_since_at_ms=NOW_MS - 500, **preparing),
        health("orders", "c", status="overdue", **preparing),
        health("orders", "d", status="late"),
        progress(NOW_MS),
    )
    scraped = Scraped(tables)
    assert scraped.value("kardia_group_members_in_danger", group="orders") == 2
    assert scraped.value("kardia_members_in_danger") == 2
