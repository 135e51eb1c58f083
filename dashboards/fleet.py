"""The dashboard of all groups: who is next, which groups are worst, where a storm is. The first row answers."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from dashboards.answers import CLOCK, Column, rows
from dashboards.board import board
from dashboards.panels import HEADROOM, Says, alarm, bars, coloured, lines, number, stacked, steps
from dashboards.sources import (
    AGE,
    BLUE,
    CLUSTER,
    FLEET_UID,
    ORANGE,
    ROW_TO_GROUP,
    ROW_TO_MEMBER_OF_ROW,
    STATE_COLOURS,
    STATUS_COLOURS,
    YELLOW,
)

STORM = 4
"""Rebalances within five minutes that make a storm, as the alert has it."""


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        FLEET_UID,
        "Kardia: fleet",
        "All consumer groups of a cluster: who is next to be evicted, which groups are worst, where a storm is.",
    )
    return _trends(_lists(_answers(made)))


def _answers(made: Dashboard) -> Dashboard:
    imminent = f"kardia_timeout_imminent_members{{{CLUSTER},kind"
    storms = (
        f"count(sum by (group) (max by (group, trigger) (increase(kardia_rebalances_total{{{CLUSTER}}}[5m])))"
        f" >= {STORM}) or vector(0)"
    )
    return (
        made.with_panel(
            number(
                Says(
                    "Session timeout imminent",
                    "How many members will be evicted for silence unless they are heard in time?",
                    "See who in *Who is next*; look at the process and its host: dead, paused, or cut off?",
                    "session-timeout-imminent.md",
                ),
                f'max({imminent}="session"}})',
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Poll timeout imminent",
                    "How many members will give up their membership unless the application polls in time?",
                    "See who in *Who is next*; its processing is slow or stuck. A thread dump shows where.",
                    "poll-timeout-imminent.md",
                ),
                f'max({imminent}="poll"}})',
                alarm(1),
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
                f'sum(max by (state) (kardia_groups{{{CLUSTER},state=~"PreparingRebalance|CompletingRebalance"}}))',
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Groups in a storm",
                    f"How many groups have rebalanced {STORM} times or more within five minutes?",
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
                    "Evictions in the last hour",
                    "Has anybody lost its membership without asking to go?",
                    "See why in *Why members were evicted*, then open the group.",
                    "evictions.md",
                ),
                f"sum(max by (cause) (increase(kardia_cluster_evictions_total{{{CLUSTER}}}[1h])))",
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
                unit="s",
                decimals=1,
            )
        )
    )


def _lists(made: Dashboard) -> Dashboard:
    return (
        made.with_panel(
            rows(
                Says(
                    "Who is next",
                    "Which deadlines come first, across all groups? Most are renewed in time; `predicted` tells those "
                    "that Kardia does not expect to be.",
                    "Open the member: is it silent (session), does it not poll (poll), or does it not rejoin "
                    "(rebalance)?",
                    "session-timeout-imminent.md",
                ),
                "/clusters/~/next-evictions",
                "next_evictions",
                Column("group", "group_id", link=ROW_TO_GROUP),
                Column("client", "client_id", link=ROW_TO_MEMBER_OF_ROW),
                Column("timeout", "kind", width=80),
                Column("left", "remaining_ms", "ms", width=80),
                Column("status", "status", width=90, colours=STATUS_COLOURS),
                Column("predicted", "predicted", width=85, colours={"true": ORANGE}),
                Column("certainty", "certainty", width=90),
                Column("member", "member_id"),
                span=14,
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
                "/clusters/~/open-rebalances",
                "open_rebalances",
                Column("group", "group_id", link=ROW_TO_GROUP),
                Column("state", "state", colours=STATE_COLOURS),
                Column("lasting", "lasting_ms", "ms", width=80),
                Column("waits for", "waits_for.0.client_id"),
                Column("shown by", "waits_for.0.shown_by"),
                Column("ends at the latest", "ends_at_latest_at_ms", CLOCK),
                Column("trigger", "trigger"),
                span=10,
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
                "/clusters/~/groups",
                "groups",
                Column("group", "group_id", link=ROW_TO_GROUP),
                Column("worst status", "status", width=110, colours=STATUS_COLOURS),
                Column("state", "state", width=150, colours=STATE_COLOURS),
                Column("since", "state_since_at_ms", CLOCK, width=170),
                Column("members", "members.total", "none", width=80),
                Column("overdue", "members.overdue", "none", width=80),
                Column("imminent", "members.imminent", "none", width=80),
                Column("late", "members.late", "none", width=80),
                Column("session headroom", "session_headroom_min_ratio", "percentunit", width=140),
                Column("poll headroom", "poll_headroom_min_ratio", "percentunit", width=120),
                Column("last rebalance", "last_rebalance.started_at_ms", CLOCK, width=170),
                Column("because of", "last_rebalance.trigger"),
                height=9,
                given={"sort": "worst", "limit": "20"},
            )
        )
    )


def _trends(made: Dashboard) -> Dashboard:
    by_cause = "max by (cause) (increase(kardia_cluster_evictions_total"
    restless = f"sum by (group) (max by (group, trigger) (increase(kardia_rebalances_total{{{CLUSTER}}}[10m])))"
    by_trigger = "max by (trigger) (increase(kardia_cluster_rebalances_total"
    return (
        made.with_row(Row("Storms and trends"))
        .with_panel(
            bars(
                Says(
                    "Most rebalances",
                    "Which groups rebalanced most in the last ten minutes?",
                    "Open its ledger: what started them, and is it the same each time?",
                    "rebalance-storm.md",
                ),
                f"topk(8, {restless})",
                "{{group}}",
                steps((None, BLUE), (2, YELLOW), (STORM, ORANGE)),
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
                f"bottomk(8, min by (group) (kardia_group_session_headroom_min_ratio{{{CLUSTER}}}))",
                "{{group}}",
                HEADROOM,
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
                f"bottomk(8, min by (group) (kardia_group_poll_headroom_min_ratio{{{CLUSTER}}}))",
                "{{group}}",
                HEADROOM,
                unit="percentunit",
            )
        )
        .with_panel(
            coloured(
                stacked(
                    lines(
                        Says(
                            "Members by status",
                            "Is trouble spreading? Present members of all groups.",
                            "Many members at once point to the network or to a broker, not to a group.",
                        ),
                        (f"max by (state) (kardia_members{{{CLUSTER}}})", "{{state}}"),
                        span=8,
                    )
                ),
                STATUS_COLOURS,
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
                    (f"{by_trigger}{{{CLUSTER}}}[5m])) > 0", "{{trigger}}"),
                    span=8,
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
                    (f"{by_cause}{{{CLUSTER}}}[5m])) > 0", "{{cause}}"),
                    span=8,
                )
            )
        )
    )
