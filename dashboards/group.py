"""The dashboard of one group: its states, its members, its deadlines, what happened and why."""

from __future__ import annotations

from grafana_foundation_sdk.builders import text
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DashboardLinkType
from grafana_foundation_sdk.models.text import TextMode

from dashboards.panels import (
    GROUP,
    ORANGE,
    PAGE_OF_GROUP,
    PURPLE,
    SOURCE,
    datasource_variable,
    lines,
    number,
    page_variable,
    ratio,
    stacked,
    states,
    values_variable,
)

UID = "kardia-group"

MEMBERS = f"""Members with their countdowns, the cause of every rebalance, evictions and the whole state history are on
[the page of Kardia]({PAGE_OF_GROUP}); the same as JSON is one `href` away. Member ids are no labels: they change with
every restart, and strangers choose them."""


def build() -> Dashboard:
    """The dashboard."""
    return (
        Dashboard("Kardia: group")
        .uid(UID)
        .description("One consumer group. What each panel answers: dashboards/README.md.")
        .tags(["kardia", "kafka"])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("5s")
        .time("now-30m", "now")
        .with_variable(datasource_variable())
        .with_variable(values_variable("cluster", "Cluster", "label_values(kardia_groups, cluster)"))
        .with_variable(
            values_variable("group", "Group", "label_values(kardia_group_state{cluster=${cluster:doublequote}}, group)")
        )
        .with_variable(page_variable())
        .link(DashboardLink("All groups").type(DashboardLinkType.LINK).url("/d/kardia-groups").keep_time(True))
        .link(DashboardLink("Page of this group").type(DashboardLinkType.LINK).url(PAGE_OF_GROUP).target_blank(True))
        .annotation(
            _marks("Evictions", PURPLE, f"sum by (cause) (increase(kardia_evictions_total{{{GROUP}}}[30s])) > 0")
        )
        .annotation(
            _marks("Rebalances", ORANGE, f"sum by (trigger) (increase(kardia_rebalances_total{{{GROUP}}}[30s])) > 0")
        )
        .with_panel(number("Members", "Members that are present.", f"sum(kardia_group_members{{{GROUP}}})"))
        .with_panel(
            number(
                "Session timeout imminent",
                "Members that will be evicted for silence unless they are heard in time.",
                f"sum(kardia_group_session_timeout_imminent_members{{{GROUP}}})",
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Poll timeout imminent",
                "Members that will give up their membership unless the application polls in time.",
                f"sum(kardia_group_poll_timeout_imminent_members{{{GROUP}}})",
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Rebalance timeout imminent",
                "Members that will be removed unless they rejoin the running rebalance in time.",
                f"sum(kardia_group_rebalance_timeout_imminent_members{{{GROUP}}})",
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Rebalance running for",
                "Age of the rebalance that is running, 0 if there is none.",
                f"max(kardia_group_rebalance_running_seconds{{{GROUP}}})",
                alarm_from=10,
                unit="s",
            )
        )
        .with_panel(
            number("Generation", "Rises by one with every rebalance.", f"max(kardia_group_generation{{{GROUP}}})")
        )
        .with_panel(
            number(
                "Rebalances in the last hour",
                "Completed rebalances, whatever the cause.",
                f"sum(increase(kardia_rebalances_total{{{GROUP}}}[1h]))",
            )
        )
        .with_panel(
            number(
                "Evictions in the last hour",
                "Memberships that were taken away.",
                f"sum(increase(kardia_evictions_total{{{GROUP}}}[1h]))",
                alarm_from=1,
            )
        )
        .with_panel(
            states(
                "State of the group",
                "Eager assignors stop work in PreparingRebalance. States shorter than a scrape are on the page only.",
                f"max by (state) (kardia_group_state{{{GROUP}}})",
            )
        )
        .with_panel(
            stacked(
                lines(
                    "Members by status",
                    "Present members. Anything but ok deserves a look.",
                    (f"sum by (state) (kardia_group_members{{{GROUP}}})", "{{state}}"),
                )
            )
        )
        .with_panel(
            ratio(
                lines(
                    "Least headroom",
                    "Least part of a timeout that was left when a member was last written: session and poll.",
                    (f"min(kardia_group_session_headroom_min_ratio{{{GROUP}}})", "session"),
                    (f"min(kardia_group_poll_headroom_min_ratio{{{GROUP}}})", "poll"),
                )
            )
        )
        .with_panel(
            stacked(
                lines(
                    "What started rebalances",
                    "Completed rebalances per five minutes, by the event that started them.",
                    (f"sum by (trigger) (increase(kardia_rebalances_total{{{GROUP}}}[5m])) > 0", "{{trigger}}"),
                )
            )
        )
        .with_panel(
            stacked(
                lines(
                    "Why members were evicted",
                    "Evictions per five minutes, by cause.",
                    (f"sum by (cause) (increase(kardia_evictions_total{{{GROUP}}}[5m])) > 0", "{{cause}}"),
                )
            )
        )
        .with_panel(
            text.Panel().title("Members and causes").mode(TextMode.MARKDOWN).content(MEMBERS).height(4).span(24)
        )
    )


def _marks(name: str, colour: str, expr: str) -> AnnotationQuery:
    return AnnotationQuery().name(name).datasource(SOURCE).enable(True).icon_color(colour).expr(expr)
