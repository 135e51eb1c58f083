"""The rebalance ledger of a group: what started each rebalance, whom it waited for, what it cost."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.answers import CLOCK, Column, history, rows
from dashboards.board import board
from dashboards.group import OF, evictions
from dashboards.palette import CERTAINTY, TRIGGER, alarm
from dashboards.panels import Says, lines, number, stacked
from dashboards.sources import (
    CLUSTER,
    GROUP,
    RANGE,
    REBALANCES_UID,
    ROW_TO_MEMBER,
    cluster_variable,
    group_variable,
)


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        REBALANCES_UID,
        "Kardia: rebalance ledger",
        "Every rebalance of a group: who started it and why, whom it waited for, how long nobody worked.",
        cluster_variable(),
        group_variable(),
        since="1h",
        refresh="30s",
    )
    return _story(_ledger(_answers(made.annotation(evictions()))))


def _answers(made: Dashboard) -> Dashboard:
    slowest = f"kardia_rebalance_duration_quantile_seconds{{{CLUSTER},quantile='0.95'}}"
    return (
        made.with_panel(
            number(
                Says(
                    "Rebalancing for",
                    "Does the group stand still now, and since when?",
                    "`kardia why` says whom it waits for.",
                    "rebalance-stuck.md",
                ),
                f"max(kardia_group_rebalance_running_seconds{{{GROUP}}})",
                alarm(10),
                unit="s",
                span=6,
                decimals=1,
            )
        )
        .with_panel(
            number(
                Says(
                    "Rebalances, last hour",
                    "How restless is the group?",
                    "A cause that repeats in the ledger is a loop; a dozen causes are a deployment.",
                    "rebalance-storm.md",
                ),
                f"sum(max by (trigger) (increase(kardia_rebalances_total{{{GROUP}}}[1h])))",
                alarm(4),
                span=6,
            )
        )
        .with_panel(
            number(
                Says(
                    "Member time lost, 1 h",
                    "What did rebalances cost? Time without an assignment, summed over members.",
                    "Cooperative assignors and static members lose less; whom they wait for stands in the ledger.",
                    "rebalance-storm.md",
                ),
                f"max(increase(kardia_rebalance_member_lost_seconds_total{{{GROUP}}}[1h]))",
                alarm(60),
                unit="s",
                span=6,
                decimals=1,
            )
        )
        .with_panel(
            number(
                Says(
                    "Slowest in the cluster",
                    "How long do the slowest of all groups' rebalances take? 95 % in the last hour were quicker.",
                    "A slow rebalance waits for one busy member: shorten max.poll.interval.ms or its work.",
                    "rebalance-stuck.md",
                ),
                f"max({slowest})",
                alarm(10),
                unit="s",
                span=6,
                decimals=1,
            )
        )
    )


def _ledger(made: Dashboard) -> Dashboard:
    return made.with_panel(
        rows(
            Says(
                "Ledger",
                "What started each rebalance, whom did it wait for, what did it cost? Newest first.",
                "`caused by` filled means a cascade: cure the first one. A long `waited` names the member to look at; "
                "`broker took` is filled where the broker itself was slow.",
                "rebalance-storm.md",
            ),
            f"{OF}/rebalances",
            "rebalances",
            Column("began", "started_at_ms", CLOCK, width=165),
            Column("took", "duration_ms", "ms", width=75),
            Column("trigger", "trigger", width=135, colours=TRIGGER),
            Column("started by", "trigger_client_id", width=120),
            Column("waited for", "stragglers.0.client_id", width=120),
            Column("waited", "stragglers.0.waited_ms", "ms", width=75),
            Column("member time lost", "member_seconds_lost", "s", width=130),
            Column("certainty", "certainty", width=85, colours=CERTAINTY),
            Column("caused by", "caused_by_started_at_ms", CLOCK, width=165),
            Column("began or later", "or_later", width=150),
            Column("over or later", "completed_or_later", width=150),
            Column("reason", "reason", width=200),
            Column("join phase", "join_ms", "ms", width=90),
            Column("sync phase", "sync_ms", "ms", width=90),
            Column("generation", "generation_after", "none", width=90),
            Column("before", "members_before", "none", width=70),
            Column("after", "members_after", "none", width=70),
            Column("partition time lost", "partition_seconds_lost", "s", width=140),
            Column("broker took", "broker_slow_ms", "ms", width=100),
            Column("member", "trigger_member_id", link=ROW_TO_MEMBER),
            height=11,
            given={"limit": "200", **RANGE},
        )
    )


def _story(made: Dashboard) -> Dashboard:
    return (
        made.with_panel(
            history(
                Says(
                    "How long each took",
                    "Were they short or long, and what started the long ones? A point per rebalance.",
                    "Long ones of `member_joined` wait for members that are busy between two polls.",
                    "rebalance-stuck.md",
                ),
                f"{OF}/rebalances",
                "rebalances",
                Column("time", "started_at_ms", CLOCK),
                Column("took", "duration_ms", "ms"),
                Column("trigger", "trigger", colours=TRIGGER),
                span=12,
                given={"order": "oldest", "limit": "1000", **RANGE},
            )
        )
        .with_panel(
            stacked(
                lines(
                    Says(
                        "What started them",
                        "Which trigger is the usual one? Completed rebalances per five minutes.",
                        "`session_expired` and `poll_timeout` repeat until their cause is cured.",
                        "rebalance-storm.md",
                    ),
                    (f"max by (trigger) (increase(kardia_rebalances_total{{{GROUP}}}[5m])) > 0", "{{trigger}}"),
                    colours=TRIGGER,
                )
            )
        )
        .with_panel(
            rows(
                Says(
                    "The story in sentences",
                    "What happened in this time, one thing after the other? The latest hundred sentences, newest "
                    "first.",
                    "*Incident report* above gives the same as Markdown for a ticket.",
                ),
                f"{OF}/incident",
                "timeline",
                Column("at", "at_ms", CLOCK, width=170),
                Column("what", "text", width=760, wraps=True),
                Column("kind", "kind", width=140),
                Column("certainty", "certainty", width=90, colours=CERTAINTY),
                height=10,
                given={"limit": "100", **RANGE},
                newest_first="at",
            )
        )
    )
