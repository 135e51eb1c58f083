"""What all dashboards have in common: variables, links from one to the other and to the page, how often they ask."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DashboardLinkType

from dashboards.sources import (
    FLEET_UID,
    INCIDENT,
    PAGE,
    PAGE_OF_GROUP,
    TO_FLEET,
    TO_GROUP,
    TO_REBALANCES,
    TO_TRUTH,
    TRUTH_UID,
    sources,
)

_OF_ALL = (("Fleet", TO_FLEET), ("Truth and pipeline", TO_TRUTH))
_OF_GROUP = (("Group", TO_GROUP), ("Rebalance ledger", TO_REBALANCES))


def board(uid: str, title: str, answers: str, *variables: Any, since: str = "30m", refresh: str = "5s") -> Dashboard:
    """A dashboard without panels; `answers` is the sentence that says what it is for."""
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
    for variable in (*sources(), *variables):
        made = made.with_variable(variable)
    of_group = uid not in (FLEET_UID, TRUTH_UID)
    for name, url in (*_OF_ALL, *(_OF_GROUP if of_group else ())):
        if f"/{uid}?" not in url:
            made = made.link(_link(name, url).keep_time(True))
    if of_group:
        made = made.link(_link("Incident report", INCIDENT).target_blank(True))
    return made.link(_link("Page of Kardia", PAGE_OF_GROUP if of_group else PAGE).target_blank(True))


def _link(name: str, url: str) -> DashboardLink:
    return DashboardLink(name).type(DashboardLinkType.LINK).url(url)
