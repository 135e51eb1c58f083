"""Every rule of Prometheus in its healthy twin: what looks like the fault and is none. No alert fires at any second.

Goal: the rules are as quiet as the notifier, those that only Prometheus has among them. Method: the scenes of
`tests/notify/test_healthy_twins.py`, and more of logs that are read with interruptions that cost nothing, are folded
into the view; what `/metrics` gives of it each second is played to the rules by promtool. What is no matter of tables
(a server or a notifier that is restarted, another one beside it) is played as series. `test_rules` has the faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from api.metrics import TableMetrics
from api.notify.conditions import find
from api.notify.lifecycle import Lifecycle
from dashboards import rules
from kardia.events import Kind
from kardia.tables import Row
from tests.dashboards.test_rules import NAMES, check
from tests.notify.test_healthy_twins import OF_THE_FEED, SECOND, TWINS, Told, by_the_second, stable, ticking
from tests.support.scene import START, Scene
from tests.support.served import Series, as_promtool

Batches = Iterator[tuple[int, Mapping[str, Sequence[Row]]]]


def scraped(batches: Batches, root: Path) -> Series:
    """What `/metrics` says after each batch, one a second."""
    told, registry, series = Told(root), CollectorRegistry(auto_describe=False), Series()
    registry.register(TableMetrics(told.store))
    for step, (now_ms, rows) in enumerate(batches):
        told.take(now_ms, rows)
        for family in registry.collect():
            for one in family.samples:
                if one.name in NAMES:
                    values = series.setdefault((one.name, tuple(sorted(one.labels.items()))), [])
                    values += [None] * (step - len(values)) + [one.value]
    return series


def check_silent(tmp_path: Path, series: list[dict[str, str]], steps: int, step_s: int = 1) -> None:
    """No alert fires at any of these steps."""
    firing = 'ALERTS{alertstate="firing"}'
    instants = range(0, steps * step_s, step_s)
    check(tmp_path, series, [{"expr": firing, "eval_time": f"{at}s", "exp_samples": []} for at in instants], step_s)


# --- logs that are read with interruptions


def pair(end: int = 60_000) -> Scene:
    """Two members that are well."""
    scene = stable(Scene(), "a", "b")
    scene.heartbeats(3_000, end, "a", "b")
    for at in range(1_500, end, 500):
        scene.fetch(at, "a", data=500)
        scene.fetch(at, "b", data=500)
    return scene


def away(scene: Scene, begin_s: int, end_s: int) -> Batches:
    """The collector is away between two seconds, and reads on where it was."""
    begin, end = START + begin_s * SECOND, START + end_s * SECOND
    scene.events = [one for one in scene.events if one.kind != Kind.TICK or not begin <= one.logged_at_ms < end]
    at_ms = int(START)
    for now_ms, rows in by_the_second(scene):
        while now_ms - at_ms > SECOND + 500:  # nothing is written in these seconds
            at_ms += SECOND
            yield at_ms, {}
        at_ms = now_ms
        yield now_ms, rows


def job_away(scene: Scene, begin_s: int, end_s: int) -> Batches:
    """The job is away between two seconds, and then writes all of it in one batch."""
    waiting: dict[str, list[Row]] = {}
    for now_ms, rows in by_the_second(scene):
        for table, some in rows.items():
            waiting.setdefault(table, []).extend(some)
        if begin_s <= (now_ms - START) // SECOND < end_s:
            yield now_ms, {}
        else:
            yield now_ms, waiting
            waiting = {}


def quiet_broker() -> Scene:
    """Its log has a line in the first second, and is read for a minute and a half in which nothing comes."""
    scene = Scene()
    scene.fetch(500, "a")
    for at in range(SECOND, 90_000, SECOND):
        scene.tick(at, last_line=500)
    return scene


def second_broker(begin: int) -> Scene:
    """Another broker's log is read from some second on."""
    scene = ticking(pair(), 60_000)
    scene.at_broker(2)
    for at in range(begin, 60_000, SECOND):
        scene.tick(at, last_line=at - 1)
    return scene


READ: dict[str, Callable[[], Batches]] = {
    "collector restarted": lambda: away(ticking(pair(), 60_000), 20, 32),
    "job restarted": lambda: job_away(ticking(pair(), 60_000), 20, 32),
    "quiet broker": lambda: by_the_second(quiet_broker()),
    "another broker comes": lambda: by_the_second(second_broker(30_000)),
}
"""Twins of what tells of the feed: nothing of it is lost, and twelve seconds are made up for."""


@pytest.mark.needs_promtool
@pytest.mark.parametrize("name", [*TWINS, *READ])
def test_of_what_is_well_prometheus_says_nothing(name: str, tmp_path: Path) -> None:
    batches = by_the_second(TWINS[name].scene()) if name in TWINS else READ[name]()
    series = scraped(batches, tmp_path)
    steps = max(map(len, series.values()))
    assert steps > 20
    check_silent(tmp_path, as_promtool(series), steps)


@pytest.mark.parametrize("name", READ)
def test_nor_does_the_notifier_where_nothing_of_a_log_is_lost(name: str, tmp_path: Path) -> None:
    told, lifecycle, stale = Told(tmp_path), Lifecycle(), frozenset[str]()
    for now_ms, rows in READ[name]():
        told.take(now_ms, rows)
        found = find(told.store, stale)
        stale = found.stale
        assert lifecycle.step(now_ms, found) == []


# --- what no table tells


FRESH = 'kardia_feed_age_seconds{cluster="c"%s}'
OUTCOMES = 'kardia_predictions_total{cluster="c",kind="session",outcome="%s"%s}'
DISAGREE = 'kardia_disagreements_total{cluster="c",kind="%s"%s}'
TESTED = 'kardia_self_test_answers_total{cluster="c",outcome="%s"%s}'
AVAILABLE = 'kardia_table_available{table="lag"%s}'
FAILING = 'kardia_notify_failing_since_timestamp_seconds{target="webhook-1"}'
DROPPED = 'kardia_notify_dropped_total{target="%s",reason="%s"}'
ONE, OTHER = ',instance="one"', ',instance="other"'
BACK = "stale _x38"
"""A server that is restarted is away for forty seconds."""

STEPS = 110
"""All series are longer."""

PLAYED: dict[str, tuple[tuple[str, ...], int, dict[str, str]]] = {
    "a server is restarted": (
        (
            *("KardiaAbsent", "KardiaSourcesDisagree", "KardiaPredictionsUnreliable", "KardiaTableUnavailable"),
            "KardiaBrokerNotAsRelease",
        ),
        1,
        {
            TESTED % ("broker_not_as_release", ""): f"3x60 {BACK} 3x60",
            FRESH % "": f"1x60 {BACK} 1x60",
            DISAGREE % ("another_end", ""): f"7x60 {BACK} 7x60",  # what the tables say, told again
            OUTCOMES % ("averted", ""): f"9x60 {BACK} 9x60",
            OUTCOMES % ("came_true", ""): f"1x60 {BACK} 1x60",
            AVAILABLE % "": f"1x60 {BACK} 0x20 1x39",
        },
    ),
    "a server is started, and its job after it": (
        ("KardiaAbsent", "KardiaTableUnavailable"),
        1,
        {FRESH % "": "_x45 1x60", AVAILABLE % "": "_x10 0x40 1x60"},
    ),
    "one of two servers goes, and another comes": (
        ("KardiaAbsent", "KardiaSourcesDisagree", "KardiaPredictionsUnreliable"),
        1,
        {
            FRESH % ONE: "1x60 stale",
            FRESH % OTHER: "1x200",
            DISAGREE % ("another_end", ONE): "7x60 stale",
            DISAGREE % ("another_end", OTHER): "_x30 7x170",
            OUTCOMES % ("averted", ONE): "9x60 stale",
            OUTCOMES % ("averted", OTHER): "_x30 9x170",
            TESTED % ("broker_not_as_release", ONE): "3x60 stale",
            TESTED % ("broker_not_as_release", OTHER): "_x30 3x170",
        },
    ),
    "after an outage the broker is named twice": (
        ("KardiaBrokerNotAsRelease",),
        1,
        {FRESH % "": "1x200", TESTED % ("broker_not_as_release", ""): "0x60 2x140"},
    ),
    "another broker has become coordinator": (
        ("KardiaSourcesDisagree",),
        1,
        {FRESH % "": "1x200", DISAGREE % ("another_coordinator", ""): "0x60 3x140"},
    ),
    "half of the predictions come true": (
        ("KardiaPredictionsUnreliable",),
        30,
        {
            FRESH % "": "1x120",
            OUTCOMES % ("averted", ""): "0x10 1x30 2x30 3x20 4x30",
            OUTCOMES % ("came_true", ""): "0x9 1x30 2x30 3x20 4x31",
        },
    ),
    "three members were late": (
        ("KardiaPredictionsUnreliable",),
        30,
        {
            FRESH % "": "1x120",
            OUTCOMES % ("averted", ""): "0x10 1x10 2x10 3x90",
            OUTCOMES % ("came_true", ""): "0x120",
        },
    ),
    "a receiver is restarted, and so is the notifier": (
        ("KardiaNotifyUndelivered",),
        1,
        {
            FRESH % "": "1x200",
            FAILING: "0x19 20x44 0x10 stale _x20 0x100",
            DROPPED % ("webhook-1", "refused"): "2x74 stale _x20 0x100",  # refused long ago, and counted anew
            DROPPED % ("", "alerts"): "0x50 3x150",
        },
    ),
}
"""Twin -> the alerts whose fault it looks like, seconds of a step, the series."""


@pytest.mark.needs_promtool
@pytest.mark.parametrize("name", PLAYED)
def test_who_is_restarted_is_no_alert(name: str, tmp_path: Path) -> None:
    _, step_s, given = PLAYED[name]
    series = [{"series": one, "values": values} for one, values in given.items()]
    check_silent(tmp_path, series, STEPS, step_s)


def test_every_rule_has_a_twin() -> None:
    of_tables = {f"KafkaGroup{alert}" for twin in TWINS.values() for alert in twin.of} | OF_THE_FEED
    played = {alert for alerts, _, _ in PLAYED.values() for alert in alerts}
    elsewhere = {
        "KafkaGroupLagStuck",  # tests/notify/test_healthy_twins.py, tests/lag
        "KardiaArchiveBehind",  # tests/dashboards/test_rules.py
    }
    assert {alert.name for alert in rules.ALERTS} == of_tables | played | elsewhere
