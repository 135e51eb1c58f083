"""The dashboard of all groups: who is next, which groups are worst, where a storm is. The first row answers."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from dashboards.answers import CLOCK, Column, rows
from dashboards.board import board
from dashboards.palette import (
    ALARM,
    CAUSE,
    CERTAINTY,
    HEADROOM,
    PLAIN,
    PREDICTED,
    SOON,
    STATE,
    STATUS,
    TRIGGER,
    alarm,
    countdown,
    steps,
)
from dashboards.panels import Says, bars, lines, number, stacked
from dashboards.sources import (
    AGE,
    CLUSTERS,
    FLEET_UID,
    GROUPS,
    ROW_TO_GROUP,
    ROW_TO_MEMBER_OF_ROW,
    SERIES_TO_GROUP,
    SERIES_TO_LEDGER,
    clusters_variable,
    groups_variable,
)

STORM = 4
"""Rebalances within five minutes that make a storm, as the alert has it."""


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        FLEET_UID,
        "Kardia: fleet",
        "All consumer groups of a cluster: who is next to be evicted, which groups are worst, where a storm is.",
        clusters_variable(),
        groups_variable(),
    )
    return _trends(_lists(_answers(made)))


def _answers(made: Dashboard) -> Dashboard:
    in_danger = f"sum(max by (cluster) (kardia_members_in_danger{{{CLUSTERS}}}))"
    stormy = f"max by (cluster, group) (kardia_group_storm_rebalances{{{CLUSTERS}}})"
    storms = f"count({stormy} >= {STORM}) or on () vector(0)"
    running = 'state=~"PreparingRebalance|CompletingRebalance"'
    return (
        made.with_panel(
            number(
                Says(
                    "Members in danger",
                    "How many members lose their membership, or hold a rebalance up, unless something comes of them?",
                    "See who in *Who is next* and *Rebalances under way*: dead, paused, stuck, or cut off?",
                    "session-timeout-imminent.md",
                ),
                in_danger,
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Firing alerts",
                    "How many alerts of these clusters fire in Prometheus?",
                    "Their names stand over the pictures as marks; each links its runbook.",
                ),
                f'count(ALERTS{{{CLUSTERS},alertname=~"Kafka.*|Kardia.*",alertstate="firing"}}) or on () vector(0)',
                alarm(1),
                always=True,
            )
        )
        .with_panel(
            number(
                Says(
                    "Rebalancing now",
                    "How many groups stand still, because they prepare or complete a rebalance?",
                    "See whom they wait for in *Rebalances under way*.",
                    "rebalance-stuck.md",
                ),
                f"sum(max by (cluster, state) (kardia_groups{{{CLUSTERS},{running}}}))",
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Groups in a storm",
                    f"How many groups have rebalanced {STORM} times or more within five minutes, roll-outs left out?",
                    "See which in *Most rebalances*, then its ledger: a cause that repeats is a loop.",
                    "rebalance-storm.md",
                ),
                storms,
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Evictions, last hour",
                    "Has anybody lost its membership without asking to go?",
                    "See why in *Why members were evicted*, then open the group.",
                    "evictions.md",
                ),
                f"sum(max by (cluster, cause) (increase(kardia_cluster_evictions_total{{{CLUSTERS}}}[1h])))",
                alarm(0.5),
            )
        )
        .with_panel(
            number(
                Says(
                    "Age of the answers",
                    "Up to how long ago is everything known? Beyond ten seconds countdowns stand still.",
                    "Believe nothing else here: Kardia is blind. Look at *Truth and pipeline*.",
                    "feed-stale.md",
                ),
                AGE,
                alarm(10),
                always=True,
                unit="s",
                decimals=1,
            )
        )
    )


def _lists(made: Dashboard) -> Dashboard:
    path = "/boards/clusters/~"
    of_cluster = Row("Now: $cluster").repeat("cluster")
    return (
        made.with_row(of_cluster)
        .with_panel(
            rows(
                Says(
                    "Who is next",
                    "Which deadlines come first, across all groups? Most are renewed in time; `predicted` tells those "
                    "that Kardia does not expect to be.",
                    "Open the member: is it silent (session), does it not poll (poll), or does it not rejoin "
                    "(rebalance)?",
                    "session-timeout-imminent.md",
                ),
                path,
                "next",
                Column("status", "status", width=80, colours=STATUS),
                Column("left", "left", width=80, words=countdown()),
                Column("timeout", "kind", width=75),
                Column("group", "group_id", link=ROW_TO_GROUP, width=125),
                Column("client", "client_id", link=ROW_TO_MEMBER_OF_ROW, width=135),
                Column("predicted", "predicted", width=80, colours=PREDICTED),
                Column("certainty", "certainty", width=85, colours=CERTAINTY),
                Column("member", "member_id"),
                span=13,
                height=9,
                given={"limit": "20"},
            )
        )
        .with_panel(
            rows(
                Says(
                    "Rebalances under way",
                    "Which groups rebalance now, since when, whom do they wait for, and until when at the latest?",
                    "Open the group: the member it waits for is busy, or gone without a word.",
                    "rebalance-stuck.md",
                ),
                path,
                "rebalances",
                Column("group", "group_id", link=ROW_TO_GROUP, width=105),
                Column("lasting", "lasting_ms", "ms", width=70),
                Column("waits for", "waits_for", width=120),
                Column("state", "state", width=140, colours=STATE),
                Column("shown by", "shown_by", width=125),
                Column("ends at the latest", "ends_at_latest_at_ms", CLOCK, width=160),
                Column("trigger", "trigger"),
                span=11,
                height=9,
                given={"limit": "20"},
            )
        )
        .with_panel(
            rows(
                Says(
                    "Worst groups",
                    "Which groups should be looked at first? Those with an overdue member lead, then imminent, late, "
                    "unknown.",
                    "Click the group. `unknown` is a gap in what was read, not an eviction.",
                ),
                path,
                "groups",
                Column("worst status", "status", width=105, colours=STATUS),
                Column("group", "group_id", link=ROW_TO_GROUP, width=170),
                Column("state", "state", width=155, colours=STATE),
                Column("members", "members", "none", width=80),
                Column("overdue", "overdue", "none", width=75),
                Column("imminent", "imminent", "none", width=80),
                Column("awaited", "awaited", "none", width=75),
                Column("late", "late", "none", width=60),
                Column("last rebalance", "last_rebalance_at_ms", CLOCK, width=170),
                Column("because of", "last_trigger", width=140, colours=TRIGGER),
                Column("since", "state_since_at_ms", CLOCK),
                height=9,
                given={"limit": "20"},
            )
        )
    )


def _trends(made: Dashboard) -> Dashboard:
    by_cause = "sum by (cause) (max by (cluster, cause) (increase(kardia_cluster_evictions_total"
    restless = "sum by (cluster, group) (max by (cluster, group, trigger) (increase(kardia_rebalances_total"
    evicted = "sum by (cluster, group) (max by (cluster, group, cause) (increase(kardia_evictions_total"
    by_trigger = "sum by (trigger) (max by (cluster, trigger) (increase(kardia_cluster_rebalances_total"
    return (
        made.with_row(Row("Groups that stand out"))
        .with_panel(
            bars(
                Says(
                    "Most rebalances",
                    "Which groups rebalanced most in the last ten minutes?",
                    "Open its ledger: what started them, and is it the same each time?",
                    "rebalance-storm.md",
                ),
                f"topk(8, {restless}{{{GROUPS}}}[10m]))) > 0)",
                "{{group}}",
                steps((None, PLAIN), (2, SOON), (STORM, ALARM)),
                SERIES_TO_LEDGER,
                unit="none",
            )
        )
        .with_panel(
            bars(
                Says(
                    "Evictions by group",
                    "Which groups lost most members in the last hour?",
                    "Open the group: *Evictions* says who, when, why, and who broke it.",
                    "evictions.md",
                ),
                f"topk(8, {evicted}{{{GROUPS}}}[1h]))) > 0)",
                "{{group}}",
                steps((None, PLAIN), (0.5, SOON), (2, ALARM)),
                SERIES_TO_GROUP,
                unit="none",
            )
        )
        .with_panel(
            bars(
                Says(
                    "Least session headroom",
                    "Which groups come nearest to a session timeout? Part of the timeout that was left.",
                    "Below a half is unusual: heartbeats are sent every third. Find what delays the member.",
                    "session-timeout-imminent.md",
                ),
                f"bottomk(8, min by (cluster, group) (kardia_group_session_headroom_min_ratio{{{GROUPS}}}))",
                "{{group}}",
                HEADROOM,
                SERIES_TO_GROUP,
                unit="percentunit",
            )
        )
        .with_panel(
            bars(
                Says(
                    "Least poll headroom",
                    "Which groups come nearest to a poll timeout? Part of max.poll.interval.ms that was left.",
                    "Fetch less at once, or raise max.poll.interval.ms; then find the slow call.",
                    "poll-timeout-imminent.md",
                ),
                f"bottomk(8, min by (cluster, group) (kardia_group_poll_headroom_min_ratio{{{GROUPS}}}))",
                "{{group}}",
                HEADROOM,
                SERIES_TO_GROUP,
                unit="percentunit",
            )
        )
        .with_row(Row("Trends"))
        .with_panel(
            stacked(
                lines(
                    Says(
                        "Members by status",
                        "Is trouble spreading? Present members of all groups.",
                        "Many members at once point to the network or to a broker, not to a group.",
                    ),
                    (f"sum by (state) (max by (cluster, state) (kardia_members{{{CLUSTERS}}}))", "{{state}}"),
                    span=8,
                    colours=STATUS,
                )
            )
        )
        .with_panel(
            stacked(
                lines(
                    Says(
                        "What started rebalances",
                        "Deployments, evictions, or metadata? Completed rebalances per five minutes, by trigger.",
                        "`session_expired` and `poll_timeout` are trouble; `member_joined` with `member_left` is a "
                        "deployment.",
                        "rebalance-storm.md",
                    ),
                    (f"{by_trigger}{{{CLUSTERS}}}[5m]))) > 0", "{{trigger}}"),
                    span=8,
                    colours=TRIGGER,
                )
            )
        )
        .with_panel(
            stacked(
                lines(
                    Says(
                        "Why members were evicted",
                        "Silence, no poll, or a rebalance that was too slow? Evictions per five minutes, by cause.",
                        "`session_expired`: the process or the network; `poll_timeout`: the application.",
                        "evictions.md",
                    ),
                    (f"{by_cause}{{{CLUSTERS}}}[5m]))) > 0", "{{cause}}"),
                    span=8,
                    colours=CAUSE,
                )
            )
        )
    )
