"""The dashboard of all groups: who is in danger, what rebalances, how fresh the answers are."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
)
from grafana_foundation_sdk.models.dashboard import DashboardLink as PanelLink

from dashboards.panels import (
    CLUSTER,
    SOURCE,
    datasource_variable,
    lines,
    number,
    page_variable,
    query,
    stacked,
    values_variable,
    worst,
)

UID = "kardia-groups"
GROUP_URL = "/d/kardia-group?var-cluster=${cluster:percentencode}&var-group=${__data.fields.group:percentencode}"


def build() -> Dashboard:
    """The dashboard."""
    return (
        Dashboard("Kardia: groups")
        .uid(UID)
        .description("Liveness of all consumer groups of a cluster. What each panel answers: dashboards/README.md.")
        .tags(["kardia", "kafka"])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("5s")
        .time("now-30m", "now")
        .with_variable(datasource_variable())
        .with_variable(values_variable("cluster", "Cluster", "label_values(kardia_groups, cluster)"))
        .with_variable(page_variable())
        .link(DashboardLink("Page of Kardia").type(DashboardLinkType.LINK).url("${page}/").target_blank(True))
        .with_panel(number("Groups", "Groups that were seen.", f"sum(kardia_groups{{{CLUSTER}}})"))
        .with_panel(number("Members", "Members that are present.", f"sum(kardia_members{{{CLUSTER}}})"))
        .with_panel(
            number(
                "Session timeout imminent",
                "Members that will be evicted for silence unless they are heard in time.",
                f'sum(kardia_timeout_imminent_members{{{CLUSTER},kind="session"}})',
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Poll timeout imminent",
                "Members that will give up their membership unless the application polls in time.",
                f'sum(kardia_timeout_imminent_members{{{CLUSTER},kind="poll"}})',
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Rebalancing now",
                "Groups in PreparingRebalance or CompletingRebalance.",
                f'sum(kardia_groups{{{CLUSTER},state=~"PreparingRebalance|CompletingRebalance"}})',
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Rebalances in the last hour",
                "Completed rebalances, whatever the cause.",
                f"sum(increase(kardia_cluster_rebalances_total{{{CLUSTER}}}[1h]))",
            )
        )
        .with_panel(
            number(
                "Evictions in the last hour",
                "Memberships that were taken away.",
                f"sum(increase(kardia_cluster_evictions_total{{{CLUSTER}}}[1h]))",
                alarm_from=1,
            )
        )
        .with_panel(
            number(
                "Age of the answers",
                "Wall clock minus the instant up to which everything is in the tables.",
                f"max(kardia_feed_age_seconds{{{CLUSTER}}})",
                alarm_from=10,
                unit="s",
            )
        )
        .with_panel(
            worst(
                "Least session headroom",
                "Part of the session timeout that was left when a member was last written. Below a half is unusual.",
                f"bottomk(8, kardia_group_session_headroom_min_ratio{{{CLUSTER}}})",
                "{{group}}",
            )
        )
        .with_panel(
            worst(
                "Least poll headroom",
                "Part of the poll interval that was left when a member was last written.",
                f"bottomk(8, kardia_group_poll_headroom_min_ratio{{{CLUSTER}}})",
                "{{group}}",
            )
        )
        .with_panel(_table())
        .with_panel(
            stacked(
                lines(
                    "Members by status",
                    "Present members. Anything but ok deserves a look.",
                    (f"sum by (state) (kardia_members{{{CLUSTER}}})", "{{state}}"),
                )
            )
        )
        .with_panel(
            stacked(
                lines(
                    "What started rebalances",
                    "Completed rebalances per five minutes, by the event that started them.",
                    (
                        f"sum by (trigger) (increase(kardia_cluster_rebalances_total{{{CLUSTER}}}[5m])) > 0",
                        "{{trigger}}",
                    ),
                )
            )
        )
        .with_panel(
            stacked(
                lines(
                    "Why members were evicted",
                    "Evictions per five minutes, by cause.",
                    (f"sum by (cause) (increase(kardia_cluster_evictions_total{{{CLUSTER}}}[5m])) > 0", "{{cause}}"),
                )
            )
        )
        .with_panel(
            lines(
                "Whether predictions come true",
                "Predicted timeouts by outcome, per hour. Averted: heard in time; unknown: the evidence was lost.",
                (
                    f"sum by (kind, outcome) (increase(kardia_predictions_total{{{CLUSTER}}}[1h]))",
                    "{{kind}} {{outcome}}",
                ),
            )
        )
        .with_panel(
            lines(
                "How fresh the answers are",
                "Above the bound (10 s unless set) countdowns stand still, because silence may be the feed's.",
                (f"kardia_feed_age_seconds{{{CLUSTER}}}", "age"),
                unit="s",
            )
        )
        .with_panel(
            lines(
                "What was counted on the way",
                "Per second: events, and what should be none: rejected lines, gaps, late events, divergences.",
                (f'rate(kardia_ledger_total{{{CLUSTER},what!~"events|lines|ignored"}}[5m])', "{{what}}"),
                (f'rate(kardia_ledger_total{{{CLUSTER},what="events"}}[5m])', "events"),
            )
        )
    )


def _table() -> table.Panel:
    columns = (
        ("A", "members", f"sum by (group) (kardia_group_members{{{CLUSTER}}})"),
        ("B", "session headroom", f"min by (group) (kardia_group_session_headroom_min_ratio{{{CLUSTER}}})"),
        ("C", "poll headroom", f"min by (group) (kardia_group_poll_headroom_min_ratio{{{CLUSTER}}})"),
        ("D", "session imminent", f"sum by (group) (kardia_group_session_timeout_imminent_members{{{CLUSTER}}})"),
        ("E", "poll imminent", f"sum by (group) (kardia_group_poll_timeout_imminent_members{{{CLUSTER}}})"),
        ("F", "rebalances 1 h", f"sum by (group) (increase(kardia_rebalances_total{{{CLUSTER}}}[1h]))"),
        ("G", "evictions 1 h", f"sum by (group) (increase(kardia_evictions_total{{{CLUSTER}}}[1h]))"),
    )
    panel = table.Panel().title("Groups").description("Click a group for its own dashboard.").datasource(SOURCE)
    for ref, _, expr in columns:
        panel = panel.with_target(query(expr, instant=True, ref=ref))
    renamed = {f"Value #{ref}": name for ref, name, _ in columns}
    return (
        panel.height(10)
        .span(24)
        .decimals(2)
        .with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            DataTransformerConfig(
                id_val="organize",
                options={"excludeByName": {"Time": True}, "renameByName": renamed},
            )
        )
        .override_by_name(
            "group",
            [DynamicConfigValue(id_val="links", value=[PanelLink(title="Dashboard of the group", url=GROUP_URL)])],
        )
    )
