"""What all dashboards have in common: variables, links from one to the other and to the page, how often they ask."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DashboardLinkType

from dashboards.answers import Answer
from dashboards.palette import ALARM, BLIND
from dashboards.sources import (
    CLUSTERS,
    FLEET_UID,
    GROUP,
    GROUP_UID,
    INCIDENT,
    PAGE,
    PAGE_OF_GROUP,
    REBALANCES_UID,
    SERIES,
    TRUTH_UID,
    sources,
)

_OF_ALL = (("Fleet", FLEET_UID), ("Truth and pipeline", TRUTH_UID))
_OF_GROUP = (("Group", GROUP_UID), ("Rebalance ledger", REBALANCES_UID))

BLIND_WHEN = f"max(kardia_feed_stale{{{CLUSTERS}}}) == 1 or absent(kardia_feed_stale{{{CLUSTERS}}})"
"""Nothing is known of the present: the feed is stale, or `kardia serve` does not answer."""


def board(uid: str, title: str, answers: str, *variables: Any, since: str = "30m", refresh: str = "5s") -> Dashboard:
    """A dashboard without panels; `answers` is the sentence that says what it is for."""
    of_group = uid not in (FLEET_UID, TRUTH_UID)
    made = (
        Dashboard(title)
        .uid(uid)
        .description(answers)
        .tags(["kardia", "kafka"])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .timezone("browser")
        .refresh(refresh)
        .time(f"now-{since}", "now")
    )
    fired = f'ALERTS{{{GROUP if of_group else CLUSTERS},alertname=~"Kafka.*|Kardia.*",alertstate="firing"}}'
    made = made.annotation(_stretches("Blind", BLIND, BLIND_WHEN))
    made = made.annotation(_stretches("Alerts", ALARM, fired))
    for variable in (*sources(), *variables):
        made = made.with_variable(variable)
    for name, to in (*_OF_ALL, *(_OF_GROUP if of_group else ())):
        if uid != to:
            made = made.link(_link(name, f"/d/{to}").keep_time(True).include_vars(True))
    if of_group:
        made = made.link(_link("Incident report", INCIDENT).target_blank(True))
    return made.link(_link("Page of Kardia", PAGE_OF_GROUP if of_group else PAGE).target_blank(True))


def _link(name: str, url: str) -> DashboardLink:
    return DashboardLink(name).type(DashboardLinkType.LINK).url(url)


def _stretches(name: str, colour: str, expr: str) -> AnnotationQuery:
    """Stretches of time in all panels, from a query of Prometheus."""
    made = AnnotationQuery().name(name).datasource(SERIES).enable(True).hide(False).icon_color(colour)
    target: Any = Answer({"datasource": {"type": "prometheus", "uid": "${datasource}"}, "expr": expr, "refId": name})
    return made.expr(expr).target(target)
