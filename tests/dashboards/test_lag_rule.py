"""The alert about lag, by Prometheus and by the notifier, on one history of commits and of looks at the ends.

Goal: both tell of a group that has stopped, at the same instant; neither takes it for over while the ends are not seen.
Method: a book of lag is fed by the ten seconds, and its rows are served.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.notify.conditions import LAG_STUCK, find
from api.notify.lifecycle import Lifecycle, Notice
from kardia.lag.book import LagBook
from kardia.tables import Row
from tests.api.written import NOW_MS, progress
from tests.dashboards.test_rules import alerts, check
from tests.lag.test_book import commit, look
from tests.support.served import Batch, Served, as_promtool, recorded

STEP_S = 10
NAMES = frozenset({"kardia_group_lag_status", "kardia_feed_stale"})

READS_TO_S, READS_FROM_S, OVER_S = 100, 900, 960
"""It commits everything every ten seconds, then nothing, then everything again."""

BLIND_S = range(600, 800)
"""Nobody looks at the ends."""

STOPS_S = 200
"""Something has waited for 100 s, and its last ten commits took 90."""

TOLD_S = STOPS_S + 300


def history() -> Iterator[Batch]:
    """One group, one partition to which a record comes each second."""
    book, looks = LagBook("demo", 0, 1_000.0), 0
    for second in range(0, OVER_S, STEP_S):
        at_ms, end = NOW_MS + second * 1_000, 1_000 + second
        rows: list[Row] = []
        if not READS_TO_S < second < READS_FROM_S:
            rows += book.commit(commit(second, at_ms - 500, end))
        if second not in BLIND_S:
            rows += book.look(look(looks, at_ms, {0: end}))
            looks += 1
        yield at_ms + 1_000, {"lag": rows, "progress": [progress(at_ms + 1_000)[1]]}


def told(root: Path) -> list[tuple[int, Notice]]:
    """What the notifier tells, by the second at which it looked."""
    served, lifecycle = Served(root), Lifecycle()
    notices = []
    for number, batch in enumerate(history()):
        served.take(batch)
        notices += [(number * STEP_S, one) for one in lifecycle.step(served.now_ms, find(served.store))]
    return [(second, one) for second, one in notices if one.finding.alert == LAG_STUCK]


@pytest.mark.needs_promtool
def test_a_group_that_stops_is_told_and_is_not_over_while_nobody_looks(tmp_path: Path) -> None:
    _, series = recorded(history(), tmp_path / "tables", NAMES)
    whose = {"cluster": "demo", "group": "g"}
    silent = (STOPS_S, TOLD_S - STEP_S, READS_FROM_S + STEP_S, OVER_S - STEP_S)
    firing = (TOLD_S + STEP_S, BLIND_S[0] + 100, BLIND_S[-1], BLIND_S.stop + STEP_S, READS_FROM_S - 1)
    expected = [alerts(LAG_STUCK, whose, at_s, False) for at_s in silent]
    expected += [alerts(LAG_STUCK, whose, at_s, True) for at_s in firing]
    check(tmp_path, as_promtool(series), expected, STEP_S)


def test_the_notifier_tells_the_same_and_says_since_when_it_is_not_known(tmp_path: Path) -> None:
    notices = told(tmp_path / "tables")
    raised = [second for second, one in notices if one.what == "raised"]
    resolved = [second for second, one in notices if one.what == "resolved"]
    assert (raised, resolved) == ([TOLD_S], [READS_FROM_S])
    finding = notices[0][1].finding
    assert finding.description == "Group g: 1 partition of 1 with something to read and no way forward: 1 STOP."
    unknown = [(second, one.unknown_since_ms) for second, one in notices if one.unknown_since_ms is not None]
    assert unknown, "it is told that nobody looks"
    assert all(BLIND_S[0] < second < BLIND_S.stop + STEP_S for second, _ in unknown)
    last_look_ms = NOW_MS + (BLIND_S[0] - STEP_S) * 1_000
    assert {at_ms for _, at_ms in unknown} == {last_look_ms + 4}, "since the last look"
