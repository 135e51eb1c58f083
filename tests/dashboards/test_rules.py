"""Every alert on series of replayed histories: when it fires, and that it does not fire before, after, or for others.

The series are what `/metrics` gave while a history was replayed into tables second by second (`tests.support.served`);
nothing of them is invented. Where no recorded story has the fault, a golden trace has it, with which Kafka's own
classes agree. The instants are those of the truth beside each history (`expect.json`, the trace), not of what Kardia
said. Bounds to the second and names that need quoting: `dashboards/prometheus/kardia.rules.test.yml`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import yaml

from api.notify.conditions import LAG_STUCK, find
from dashboards import rules
from dashboards.generate import HERE
from kardia.events import Event
from kardia.tables import Row
from kardia.trace.clients import GROUP
from tests.api.written import NOW_MS, member, progress, rebalance, transition
from tests.golden.log import START_AT_MS
from tests.support.served import Batch, Series, Served, as_promtool, recorded, story_batches, trace_batches
from tests.support.stories import Story, doctored, lanes_of

NAMES = frozenset(name for alert in rules.ALERTS for name in re.findall(r"\bkardia_\w+", alert.expr))

TRACE_GROUP = GROUP


class Case(NamedTuple):
    """A history, and of one alert the instants at which it must fire and must not, in ms on the broker's clock."""

    alert: str
    history: str
    labels: dict[str, str]
    firing_at_ms: tuple[int, ...]
    silent_at_ms: tuple[int, ...]
    blind: tuple[int, int] | None = None
    gap_at: int | None = None
    of: Callable[[str], tuple[tuple[Event, ...], ...]] = lanes_of


def eviction(story: str, place: int = 0) -> int:
    """Instant of an eviction in the broker's own words."""
    return int(Story(story).expect["evictions"][place]["t"])


def leave(story: str, place: int = 0) -> int:
    """Instant of a leave in the broker's own words."""
    return int(Story(story).expect["leaves"][place]["t"])


def with_server_log(story: str) -> tuple[tuple[Event, ...], ...]:
    """Events of a story and of its server.log, which agrees with them."""
    return lanes_of(story, server_log=True)


def trace_ms(*seconds: float) -> tuple[int, ...]:
    """Instants of a trace."""
    return tuple(START_AT_MS + int(second * 1_000) for second in seconds)


def start_of(story: str) -> int:
    """Instant of the first rebalance of a story."""
    return int(Story(story).expect["start_ms"])


KILL, STOPPED, SLOW_POLL, SLOW_JOIN = "c01_kill-4.1.2", "c02_sigstop-3.9.2", "c04_mpi-3.9.2", "c10_slow-3.9.2"
STATIC = "c06_static-3.9.2"
G01, G02, G04, G04S, G06, G10 = ({"group": name} for name in ("g01", "g02", "g04", "g04s", "g06", "g10"))
TRACED = {"group": TRACE_GROUP}


CASES = (
    Case(
        "KafkaGroupSessionTimeoutImminent",
        KILL,
        G01,
        (eviction(KILL) - 2_000, eviction(KILL) + 2_000, eviction(KILL, 1) - 1_000),
        (eviction(KILL) - 9_000,),
    ),
    Case(
        "KafkaGroupSessionTimeoutImminent",
        STOPPED,
        G02,
        (eviction(STOPPED) - 1_000, eviction(STOPPED, 1) - 1_000),
        (start_of(STOPPED) + 9_000,),
    ),
    Case(
        "KafkaGroupPollTimeoutImminent",
        SLOW_POLL,
        G04,
        (leave(SLOW_POLL) - 2_000,),
        (start_of(SLOW_POLL) + 6_000,),
    ),
    Case(
        "KafkaGroupZombieMember",
        SLOW_POLL,
        G04S,
        (eviction(SLOW_POLL) - 2_000, eviction(SLOW_POLL) + 2_000),
        (eviction(SLOW_POLL) - 10_000,),
    ),
    Case(
        "KafkaGroupZombieMember",
        "kip62-rebalance-timeout",
        TRACED,
        trace_ms(30, 39),
        trace_ms(9, 20),
    ),
    Case("KafkaGroupRebalanceStuck", "kip62-rebalance-timeout", TRACED, trace_ms(35, 39), trace_ms(11, 20, 42)),
    Case("KafkaGroupPendingMemberBlocks", "rule-05-ids-that-are-never-used", TRACED, trace_ms(17), trace_ms(9, 11, 20)),
    Case(
        "KafkaGroupRebalanceStorm",
        SLOW_POLL,
        G04,
        (leave(SLOW_POLL, 1) + 8_000,),
        (leave(SLOW_POLL) - 2_000, leave(SLOW_POLL) + 3_000),
    ),
    Case("KafkaGroupStaticMemberFenced", "static-3-fenced", TRACED, trace_ms(14, 20), trace_ms(9, 10)),
    Case(
        "KafkaGroupEvictions",
        STOPPED,
        G02,
        (eviction(STOPPED, 1) + 6_000,),
        (eviction(STOPPED) + 3_000, eviction(STOPPED, 1) - 2_000),
    ),
    Case(
        "KardiaPredictionsUnreliable",
        SLOW_POLL,
        {"kind": "poll"},
        (leave(SLOW_POLL, 1) - 1_000,),
        (leave(SLOW_POLL) - 2_000,),
    ),
    Case(
        "KardiaLogGap",
        KILL,
        {},
        (start_of(KILL) + 20_000,),
        (start_of(KILL) + 3_000,),
        gap_at=40,
    ),
    Case(
        "KardiaSourcesDisagree",
        KILL,
        {},
        (eviction(KILL) + 8_000,),
        (eviction(KILL) + 3_000,),
        of=doctored,
    ),
    Case("KardiaSourcesDisagree", KILL, {}, (), (eviction(KILL) + 8_000,), of=with_server_log),
)
"""Of each alert at least one history, with instants at which it fires and at which it does not."""

BLIND = Case("KardiaSourceStalled", KILL, {}, (), (), blind=(36, 70))
"""The collector reads nothing for the last half of the story, and a member is killed meanwhile."""

GONE = Case("KardiaAbsent", KILL, {}, (), ())
"""The server goes while a member that was killed is still silent, and comes back."""

HELD = Case("KafkaGroupSessionTimeoutImminent", KILL, G01, (), (), blind=(39, 70))
"""The collector stops when a timeout is near and told."""

UNDELIVERED = "KardiaNotifyUndelivered"

NOT_AS_RELEASE = "KardiaBrokerNotAsRelease"

ARCHIVE_BEHIND = "KardiaArchiveBehind"
"""Series of `kardia stream`, which has no history of a group."""

QUIET = ("KafkaGroupPendingMemberBlocks", "KafkaGroupStaticMemberFenced", "KardiaLogGap", "KardiaSourceStalled")
"""What must not fire in any of the recorded stories: nothing of the kind was done in them."""


def batches(case: Case) -> Iterator[Batch]:
    """The history of a case."""
    if case.history.endswith((".1", ".2", ".0")):
        return story_batches(case.history, case.blind, case.gap_at, case.of)
    return trace_batches(case.history)


@cache
def series_of(
    history: str, blind: tuple[int, int] | None, gap_at: int | None, of: Callable[[str], tuple[tuple[Event, ...], ...]]
) -> tuple[int, Series]:
    """(first instant, series) of a history; several alerts are about the same one."""
    with TemporaryDirectory() as root:
        return recorded(batches(Case("", history, {}, (), (), blind, gap_at, of)), Path(root) / "tables", NAMES)


def played(case: Case) -> tuple[int, int, list[dict[str, str]]]:
    """(first instant, number of steps, series) of the history of a case."""
    begin_ms, series = series_of(case.history, case.blind, case.gap_at, case.of)
    return begin_ms, max(map(len, series.values())), as_promtool(series)


def interrupted(series: Series, at_s: int, away_s: int) -> list[dict[str, str]]:
    """Series of a server that cannot be scraped for a while: all of them end at once, as Prometheus marks it, and go on
    afterwards from where they were."""
    before, after = ({key: values[part] for key, values in series.items()} for part in (slice(at_s), slice(at_s, None)))
    return [
        one | {"values": f"{one['values']} stale _x{away_s - 1} {other['values']}"}
        for one, other in zip(as_promtool(before), as_promtool(after), strict=True)
    ]


def alerts(name: str, labels: dict[str, str], at_s: int, firing: bool) -> dict[str, object]:
    """A test of promtool: whether an alert fires for these labels at an instant."""
    wanted = {"alertname": name, "alertstate": "firing", "cluster": "test"} | labels
    selector = ",".join(f'{label}="{value}"' for label, value in wanted.items())
    return {
        "expr": f"count(ALERTS{{{selector}}})",
        "eval_time": f"{at_s}s",
        "exp_samples": [{"labels": "{}", "value": 1}] if firing else [],
    }


def check(
    tmp_path: Path,
    series: list[dict[str, str]],
    expected: Sequence[dict[str, object]],
    step_s: int = 1,
    rules_every: str = "1s",
) -> None:
    """Have promtool play the rules over series, of which there is a value every `step_s`."""
    program = shutil.which("promtool")
    assert program is not None
    test = {"interval": f"{step_s}s", "input_series": series, "promql_expr_test": list(expected)}
    content = {
        "rule_files": [str(HERE / "prometheus" / "kardia.rules.yml")],
        "evaluation_interval": rules_every,
        "tests": [test],
    }
    path = tmp_path / "played.test.yml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True))
    done = subprocess.run([program, "test", "rules", path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{case.history}")
def test_an_alert_fires_when_its_fault_is_there_and_only_then(case: Case, tmp_path: Path) -> None:
    begin_ms, steps, series = played(case)
    expected = []
    for firing, instants in ((True, case.firing_at_ms), (False, case.silent_at_ms)):
        for at_ms in instants:
            at_s = -(-(at_ms - begin_ms) // 1_000)
            assert 0 <= at_s < steps, f"{at_s} s is outside the history of {steps} s"
            expected.append(alerts(case.alert, case.labels, at_s, firing))
    if case.history in (KILL, STOPPED, SLOW_POLL) and case.gap_at is None:
        expected += [alerts(name, {}, steps - 1, False) for name in QUIET]
    check(tmp_path, series, expected)


@pytest.mark.needs_promtool
def test_while_the_collector_stands_still_the_feed_is_accused_and_not_the_members(tmp_path: Path) -> None:
    _, steps, series = played(BLIND)
    expected = [alerts("KafkaGroupSessionTimeoutImminent", {}, at_s, False) for at_s in range(46, steps - 2)]
    sources = [one for one in series if one["series"].startswith("kardia_source_age_seconds")]
    at_s = 36 + 15 + 6
    expected += [alerts("KardiaSourceStalled", {}, 36 + 14, False)]
    stalled = alerts("KardiaSourceStalled", {}, at_s, True)
    stalled["exp_samples"] = [{"labels": "{}", "value": len(sources)}]
    check(tmp_path, series, [*expected, stalled])


@pytest.mark.needs_promtool
def test_what_fires_when_the_feed_becomes_stale_goes_on_until_it_is_fresh_and_no_longer(tmp_path: Path) -> None:
    _, blind = recorded(batches(HELD), tmp_path / "blind", NAMES)
    _, seen = recorded(batches(HELD._replace(blind=None)), tmp_path / "seen", NAMES)
    # It stays as it is for a minute, longer than the alert lingers; then all is read, and the danger is over.
    series = {key: [*values, *[values[-1]] * 60, *[seen[key][-1]] * 60] for key, values in blind.items()}
    steps = max(map(len, blind.values()))
    stale = blind["kardia_feed_stale", (("cluster", "test"),)]
    assert stale[-1] == 1, "it was stale at the end"
    fresh_s = steps + 60
    expected = [alerts(HELD.alert, HELD.labels, at_s, True) for at_s in (39 + 5, stale.index(1) + 5, fresh_s - 1)]
    expected.append(alerts(HELD.alert, HELD.labels, fresh_s + 40, False))
    check(tmp_path, as_promtool(series), expected)


def restarts(names: Sequence[tuple[str, str]]) -> Iterator[Batch]:
    """A group in which, every twenty seconds, one member leaves and ten seconds later another one comes."""
    joined = dict.fromkeys(("a", "b", "c"), NOW_MS - 600_000)
    rows = [member("orders", name, joined_at_ms=at_ms) for name, at_ms in joined.items()]
    yield NOW_MS, of_tables(transition("orders", 1, "Stable"), *rows, progress(NOW_MS))
    for number, (leaves, comes) in enumerate(names):
        at_ms = NOW_MS + 10_000 + number * 20_000
        ended = {"ended_at_ms": at_ms, "end_cause": "left", "joined_at_ms": joined[leaves]}
        yield rebalanced(at_ms, "member_left", leaves, **ended)
        joined[comes] = at_ms + 10_000
        yield rebalanced(joined[comes], "member_joined", comes, joined_at_ms=joined[comes], known_at_ms=joined[comes])


def rebalanced(at_ms: int, trigger: str, who: str, **life: Any) -> Batch:
    """A rebalance, what is known of the member that began it, and that all is read."""
    over = {"completed_at_ms": at_ms, "known_at_ms": at_ms, "trigger": trigger, "trigger_member_id": who}
    return at_ms, of_tables(rebalance("orders", at_ms, **over), member("orders", who, **life), progress(at_ms))


def of_tables(*rows: tuple[str, Row]) -> dict[str, list[Row]]:
    """Rows by table."""
    found: dict[str, list[Row]] = {}
    for table, row in rows:
        found.setdefault(table, []).append(row)
    return found


@pytest.mark.needs_promtool
@pytest.mark.parametrize(
    ("names", "is_storm"),
    [
        pytest.param((("a", "a2"), ("b", "b2"), ("c", "c2")), False, id="a rolling restart"),
        pytest.param((("a", "a2"), ("a2", "a3"), ("a3", "a4")), True, id="a crash loop"),
    ],
)
def test_a_rolling_restart_is_no_storm_for_anybody(
    names: Sequence[tuple[str, str]], is_storm: bool, tmp_path: Path
) -> None:
    """The notifier and the rule count the same."""
    served, storms = Served(tmp_path / "notified"), []
    for batch in restarts(names):
        served.take(batch)
        storms.append("KafkaGroupRebalanceStorm" in {one.alert for one in find(served.store).findings})
    assert storms == [False] * 4 + [is_storm] * 3
    _, series = recorded(restarts(names), tmp_path / "scraped", NAMES)
    whose = {"cluster": "demo", "group": "orders"}
    fires = [alerts("KafkaGroupRebalanceStorm", whose, at, storm) for at, storm in enumerate(storms)]
    check(tmp_path, as_promtool(series), fires)


def answered(surprise_class: str) -> Iterator[Batch]:
    """A minute of answers that are as predicted, with three in its middle that are surprises."""
    for second in range(60):
        of_class: dict[str, Any] = {surprise_class: int(second in (30, 31, 33))}
        counts: dict[str, Any] = {"answers": 100, "predicted": 100 - of_class[surprise_class], **of_class}
        yield NOW_MS + 1_000 * second, of_tables(progress(NOW_MS + 1_000 * second, **counts))


@pytest.mark.needs_promtool
@pytest.mark.parametrize(("surprise_class", "is_told"), [("broker_not_as_release", True), ("own_mistake", False)])
def test_of_surprises_those_that_name_the_broker_are_told(surprise_class: str, is_told: bool, tmp_path: Path) -> None:
    _, series = recorded(answered(surprise_class), tmp_path / "tables", NAMES)
    whose = {"cluster": "demo"}
    expected = [alerts(NOT_AS_RELEASE, whose, 20, False), alerts(NOT_AS_RELEASE, whose, 45, is_told)]
    check(tmp_path, as_promtool(series), expected)


@pytest.mark.needs_promtool
def test_that_nobody_serves_is_told_after_a_minute_and_by_nothing_else(tmp_path: Path) -> None:
    _, series = recorded(batches(GONE), tmp_path / "tables", NAMES)
    gone_s, away_s = 40, 100
    back_s = gone_s + away_s
    scraped = interrupted(series, gone_s, away_s)
    expected = [alerts("KardiaAbsent", {"cluster": ""}, at_s, False) for at_s in (1, gone_s, gone_s + 58, back_s + 6)]
    expected += [alerts("KardiaAbsent", {"cluster": ""}, at_s, True) for at_s in (gone_s + 66, back_s - 1)]
    one = [{"labels": "{}", "value": 1}]
    expected.append({"expr": "count(ALERTS)", "eval_time": f"{back_s - 1}s", "exp_samples": one})
    check(tmp_path, scraped, expected)


@pytest.mark.needs_promtool
def test_a_receiver_that_takes_nothing_is_told_after_a_minute_and_one_that_refuses_at_once(tmp_path: Path) -> None:
    """Series as `kardia notify` has them: since when the first fails; what was given up for the second."""
    since, dropped = "kardia_notify_failing_since_timestamp_seconds", "kardia_notify_dropped_total"
    series = [
        {"series": f'{since}{{target="webhook-1"}}', "values": "0x19 20x119 0x60"},
        {"series": f'{since}{{target="webhook-2"}}', "values": "0x200"},
        {"series": f'{dropped}{{target="webhook-2",reason="refused"}}', "values": "0x99 1x100"},
        {"series": f'{dropped}{{target="webhook-1",reason="refused"}}', "values": "0x200"},
        {"series": f'{dropped}{{target="",reason="alerts"}}', "values": "0x50 7x150"},
    ]
    first, second = ({"cluster": "", "target": f"webhook-{number}"} for number in (1, 2))
    fires = {(1, 79): False, (1, 90): True, (1, 139): True, (1, 150): False, (2, 99): False, (2, 110): True}
    expected = [alerts(UNDELIVERED, (first, second)[one - 1], at_s, fire) for (one, at_s), fire in fires.items()]
    check(tmp_path, series, expected)


def saw(minutes: int, tooth: int, *, begin: int = 0, per_minute: int = 0) -> list[int]:
    """What the archive is behind, a value a minute: it runs every two minutes and leaves `begin`, and so many more or
    fewer as time goes on, never fewer than none."""
    return [max(0, begin + per_minute * minute) + tooth * (minute % 2) for minute in range(minutes)]


@pytest.mark.needs_promtool
@pytest.mark.parametrize(
    ("values", "silent_to", "firing_from"),
    [
        pytest.param(saw(121, 0, per_minute=1_500), 72, 78, id="no run comes to its end"),
        pytest.param(saw(121, 90_000, begin=200, per_minute=1_500), 72, 78, id="less is archived than comes"),
        pytest.param(saw(121, 4_000, begin=30), 120, None, id="twin: well"),
        pytest.param(saw(121, 900_000, begin=20_000), 120, None, id="twin: well, in a large cluster"),
        pytest.param(saw(121, 2_000, begin=3_000_000, per_minute=-20_000), 120, None, id="twin: it catches up"),
        pytest.param(
            [*saw(40, 4_000), *saw(81, 4_000, begin=900_000, per_minute=-9_000)], 120, None, id="twin: after a stop"
        ),
    ],
)
def test_an_archive_that_falls_behind_is_told_and_one_that_catches_up_is_not(
    values: list[int], silent_to: int, firing_from: int | None, tmp_path: Path
) -> None:
    """Minutes of two hours. Half an hour has to be above the bound, and then ten minutes pass."""
    text = " ".join(map(str, values))
    series = [{"series": 'kardia_stream_archive_behind_records{instance="job:1"}', "values": text}]
    whose = {"cluster": "", "instance": "job:1"}
    fires = dict.fromkeys(range(10, silent_to + 1), False)
    fires |= {} if firing_from is None else dict.fromkeys(range(firing_from, 121), True)
    expected = [alerts(ARCHIVE_BEHIND, whose, 60 * minute, fire) for minute, fire in fires.items()]
    check(tmp_path, series, expected, 60, rules_every="1m")


def test_every_alert_about_groups_and_logs_has_a_history() -> None:
    told = {case.alert for case in (*CASES, BLIND, GONE)} | {LAG_STUCK}  # tests/dashboards/test_lag_rule.py
    told |= {UNDELIVERED, ARCHIVE_BEHIND, NOT_AS_RELEASE}
    assert {alert.name for alert in rules.ALERTS} - told == {"KardiaFeedStale", "KardiaTableUnavailable"}
