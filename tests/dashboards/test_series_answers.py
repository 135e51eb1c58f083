"""Every PromQL of every panel, put to a real Prometheus that scrapes the real API while a recorded story is replayed.

Each must have a result at some instant of the story, and its legend must name labels that the result has; what the
story does not have stands in a list with the reason, and nothing else may.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards import rules
from tests.dashboards.questions import Series, filled, series
from tests.dashboards.replaying import STORY, replay, with_lag
from tests.dashboards.scraping import Prometheus, prometheus, until
from tests.support.served import CLUSTER, story_batches

NOT_IN_THE_STORY: dict[str, str] = {
    "kardia-truth: Batch time of the job A": "only `kardia serve` is scraped here, and no job runs",
}
"""Question -> why the story has no result for it."""

PLANTED = (
    Series("planted: no such series", "max(kardia_group_no_such_thing)", ""),
    Series("planted: no such label", 'sum(kardia_groups{colour="green"})', ""),
    Series("planted: no such value", 'sum(kardia_members{state="asleep"})', ""),
)
"""Mistakes that must be found."""


def questions() -> list[Series]:
    """All PromQL of panels, and what was planted. Rules are played with their own histories in `test_rules.py`."""
    return [*series(), *PLANTED]


@pytest.mark.needs_prometheus
def test_every_query_has_a_result_in_a_replayed_story_and_its_legend_names_labels(tmp_path: Path) -> None:
    still, expected = questions(), set(NOT_IN_THE_STORY) | {one.where for one in PLANTED}
    assert len(still) > 40
    names = {name for alert in rules.ALERTS for name in re.findall(r"\bkardia_\w+", alert.expr)}
    with (
        replay(tmp_path / "tables", with_lag(story_batches(STORY))) as replaying,
        prometheus(replaying.api, tmp_path) as asked,
    ):
        groups: list[str] = []
        for batch_id in replaying.batches():
            until(lambda batch_id=batch_id: asked.has_scraped(batch_id), f"a scrape of batch {batch_id}")
            found = replaying.api.get(f"/api/v1/clusters/{CLUSTER}/groups")["groups"]
            groups = [one["group_id"] for one in found] or ["none yet"]
            still = [one for one in still if not any(answered(asked, one, group) for group in groups)]
            if {one.where for one in still} <= expected:
                break  # all others have had a result: the rest of the story can add none
        assert {one.where for one in still} == expected
        # Notifier and job have their own, and are scraped by themselves.
        of_serve = {name for name in names if not name.startswith(("kardia_notify_", "kardia_stream_"))}
        unknown = {name for name in of_serve if not asked.query(f"count({name})")}
        assert not unknown, "rules name series that are not there"


def answered(asked: Prometheus, one: Series, group: str) -> bool:
    """Whether a query has a result about a group; the first one must have the labels of its legend."""
    found = asked.query(filled(one.expr, {"cluster": CLUSTER, "group": group}))
    numbers = [row for row in found if row["value"][1] != "NaN"]
    if numbers:
        wanted = set(re.findall(r"{{(\w+)}}", one.legend))
        assert wanted <= set(numbers[0]["metric"]), f"{one.where}: {wanted} are not in {numbers[0]['metric']}"
    return bool(numbers)
