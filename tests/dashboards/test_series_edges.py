"""What a replayed story does not have, put to a real Prometheus: names that need quoting, and an API that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from api.settings import ApiSettings
from tests.api.conftest import Api, Clock, running
from tests.api.written import CLUSTER, NOW_MS, Tables, health, member, progress, transition
from tests.dashboards.questions import Series, filled, series
from tests.dashboards.scraping import Prometheus, prometheus, until

NAMES = (
    "plain",
    "it's",
    'quote" and \\ backslash',
    "C:\\dir\\",
    "line\nbreak\ttab",
    "z\u0301 \u6f22",
    '"} or vector(9) or kardia_up{group="',
)
"""Names of groups; the first has one member, each next one more."""

AGE_MS = 4_000
"""How old the answers are while the API lives."""


def one(where: str) -> Series:
    """The query of a panel."""
    return next(found for found in series() if where in found.where)


class Scraped:
    """A Prometheus that has scraped an API with these groups; the API lives until it is stopped."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        tables, self._api = Tables(root / "tables"), ExitStack()
        tables.create()
        rows = [progress(NOW_MS - AGE_MS)]
        for count, name in enumerate(NAMES, start=1):
            rows.append(transition(name, 1, "Stable"))
            for at in range(count):
                rows += [member(name, f"m{at}"), health(name, f"m{at}")]
        tables.batch(0, *rows)
        stack.push(self._api)
        settings = ApiSettings(tables=tables.root, refresh_ms=20)
        api = Api(self._api.enter_context(running(settings, Clock())))
        api.wait_for_batch(0)
        self.prometheus: Prometheus = stack.enter_context(prometheus(api, root))
        until(lambda: self.prometheus.has_scraped(0), "a scrape")
        api.client.close()

    def stop_api(self) -> None:
        """End the API, and wait for Prometheus to notice."""
        self._api.close()
        until(lambda: not self.prometheus.query("kardia_batch_id"), "a scrape that failed")


@pytest.fixture
def scraped(tmp_path: Path) -> Iterator[Scraped]:
    with ExitStack() as stack:
        yield Scraped(tmp_path, stack)


@pytest.mark.needs_prometheus
def test_a_group_is_found_by_its_name_whatever_is_in_it(scraped: Scraped) -> None:
    about_a_group = [one for one in series() if "${group" in one.expr]
    assert len(about_a_group) > 8
    for count, name in enumerate(NAMES, start=1):
        values = {"cluster": CLUSTER, "group": name}
        for question in about_a_group:
            scraped.prometheus.query(filled(question.expr, values))  # fails unless it is understood
        found = scraped.prometheus.query(filled(one("kardia-group: Members present").expr, values))
        assert [row["value"][1] for row in found] == [str(count)], name


@pytest.mark.needs_prometheus
@pytest.mark.parametrize("board", ["kardia-fleet", "kardia-truth"])
def test_answers_grow_older_once_nobody_gives_them(scraped: Scraped, board: str) -> None:
    expr = filled(one(f"{board}: Age of the answers").expr, {"cluster": CLUSTER, "group": "none"})

    def age_ms() -> float:
        (found,) = scraped.prometheus.query(expr)
        return float(found["value"][1]) * 1_000

    assert age_ms() == AGE_MS
    until(lambda: scraped.prometheus.query("count_over_time(kardia_feed_age_seconds[1h:5s])"), "a point each 5 s")
    scraped.stop_api()
    before = age_ms()
    assert AGE_MS < before < AGE_MS + 60_000
    until(lambda: age_ms() > before + 1_000, "older answers")
