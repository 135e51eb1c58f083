"""The dashboard of one group: its state as a band, its members as chart rows, their heartbeats and deadlines."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, Row

from dashboards.answers import CLOCK, Column, chart_rows, courses, marks, points, rows, states, value
from dashboards.board import board
from dashboards.palette import (
    ALARM,
    CAUSE,
    CERTAINTY,
    HEADROOM,
    NONE,
    OVER,
    SOON,
    STATE,
    STATUS,
    alarm,
    countdown,
    steps,
)
from dashboards.panels import Says, bounded, lines, number
from dashboards.sources import GROUP, GROUP_UID, RANGE, ROW_TO_MEMBER, cluster_variable, group_variable

OF = "/clusters/~/groups/~"
NOW = f"/boards{OF}"
LANES_MAX = "24"
"""Lanes of a picture: those in trouble, where there are more."""

SILENCE = steps((None, NONE), (0.5, SOON), (1, ALARM))


def evictions() -> AnnotationQuery:
    """Marks where a membership was taken away."""
    columns = (Column("time", "ended_at_ms", CLOCK), Column("title", "client_id"), Column("text", "end_cause"))
    return marks("Evictions", OVER, f"{OF}/evictions", "evictions", *columns, given={"limit": "200", **RANGE})


def rebalances() -> AnnotationQuery:
    """Stretches in which the group rebalanced."""
    columns = (
        Column("time", "started_at_ms", CLOCK),
        Column("timeEnd", "completed_at_ms", CLOCK),
        Column("title", "trigger"),
        Column("text", "reason"),
    )
    return marks("Rebalances", SOON, f"{OF}/rebalances", "rebalances", *columns, given={"limit": "200", **RANGE})


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        GROUP_UID,
        "Kardia: group",
        "One consumer group: what it is doing, which member is in danger, when it was evicted or rebalanced and why.",
        cluster_variable(),
        group_variable(),
        since="15m",
    )
    return _settings(_lag(_tables(_chart_rows(_answers(made.annotation(evictions()).annotation(rebalances()))))))


def _answers(made: Dashboard) -> Dashboard:
    return (
        made.with_panel(
            value(
                Says(
                    "State now",
                    "Does the group work? Only in Stable does everybody know its partitions.",
                    "PreparingRebalance waits for members, CompletingRebalance for the leader; Unknown is a gap.",
                    "rebalance-stuck.md",
                ),
                NOW,
                "group",
                Column("state", "state", colours=STATE),
                alarm(None),
            )
        )
        .with_panel(
            number(
                Says(
                    "Members in danger",
                    "How many members lose their membership, or hold a rebalance up, unless something comes of them?",
                    "Look for the lane in orange or purple, and for *Whom the group waits for*.",
                    "session-timeout-imminent.md",
                ),
                f"max(kardia_group_members_in_danger{{{GROUP}}})",
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Rebalancing for",
                    "For how long has the group been rebalancing? 0 if it is not.",
                    "Whom it waits for stands below, in *Whom the group waits for*.",
                    "rebalance-stuck.md",
                ),
                f"max(kardia_group_rebalance_running_seconds{{{GROUP}}})",
                alarm(10),
                unit="s",
                decimals=1,
            )
        )
        .with_panel(
            number(
                Says(
                    "Members present",
                    "How many members are there?",
                    "No member at all: nobody consumes; the group is Empty.",
                ),
                f"sum(max by (state) (kardia_group_members{{{GROUP}}}))",
                alarm(1, below=True),
            )
        )
        .with_panel(
            number(
                Says(
                    "Evictions, last hour",
                    "How many memberships were taken away?",
                    "Each is a purple mark in the lanes and a row in *Evictions*.",
                    "evictions.md",
                ),
                f"sum(max by (cause) (increase(kardia_evictions_total{{{GROUP}}}[1h])))",
                alarm(0.5),
            )
        )
        .with_panel(
            number(
                Says(
                    "Rebalances, last hour",
                    "How restless is the group? Completed rebalances, whatever the cause.",
                    "Open the ledger: what started them?",
                    "rebalance-storm.md",
                ),
                f"sum(max by (trigger) (increase(kardia_rebalances_total{{{GROUP}}}[1h])))",
                alarm(4),
            )
        )
    )


def _chart_rows(made: Dashboard) -> Dashboard:
    return (
        made.with_panel(
            states(
                Says(
                    "State of the group",
                    "When was it not Stable? Every change, to the millisecond, and what lasts; the last six hours at "
                    "most.",
                    "Orange or yellow for long: below stands whom it waits for. Grey: nothing is known of that time.",
                    "rebalance-stuck.md",
                )
            )
        )
        .with_panel(
            chart_rows(
                Says(
                    "Members over time",
                    "How was each member at each instant? A lane per member, at most 24: those in trouble. Purple "
                    "marks are evictions, yellow stretches rebalances. The last six hours at most.",
                    "`awaited`: the group waits for it; `unseen`: silent in a rebalance, it waits too or is gone. Open "
                    "the member from *Members*.",
                    "session-timeout-imminent.md",
                ),
                f"{OF}/points",
                height=12,
                given={"limit": LANES_MAX, **RANGE},
            )
        )
        .with_panel(
            rows(
                Says(
                    "Whom the group waits for",
                    "A rebalance is under way: who has not come, what shows it, until when at the latest?",
                    "Look at that process: it is busy between two polls, or its application is stuck. Empty while no "
                    "rebalance is under way, or while those who wait cannot be told from those who are waited for.",
                    "rebalance-stuck.md",
                ),
                NOW,
                "waits_for",
                Column("client", "client_id", link=ROW_TO_MEMBER, width=120),
                Column("at most for", "left_ms", "ms", width=100),
                Column("shown by", "shown_by", width=180),
                Column("member", "member_id"),
                span=10,
                given={"limit": "50"},
            )
        )
        .with_panel(
            rows(
                Says(
                    "Members",
                    "Who is a member now, and how long has each until its session and its poll interval end?",
                    "Open the member; `reason` says why it is not ok.",
                    "session-timeout-imminent.md",
                ),
                NOW,
                "members",
                Column("status", "status", width=80, colours=STATUS),
                Column("client", "client_id", link=ROW_TO_MEMBER, width=120),
                Column("session ends in", "session_left", width=115, words=countdown()),
                Column("poll ends in", "poll_left", width=95, words=countdown()),
                Column("reason", "reason", width=180),
                Column("static id", "group_instance_id", width=90),
                Column("poll seen by", "poll_evidence", width=95),
                Column("certainty", "certainty", width=85, colours=CERTAINTY),
                Column("member", "member_id"),
                span=14,
                given={"limit": "200"},
            )
        )
        .with_panel(
            bounded(
                courses(
                    Says(
                        "What was left of the session timeout",
                        "How near was each member to its eviction for silence?",
                        "A line that falls to 0 % is an eviction; no line is no knowledge.",
                        "session-timeout-imminent.md",
                    ),
                    "session left",
                ),
                HEADROOM,
            )
        )
        .with_panel(
            bounded(
                courses(
                    Says(
                        "What was left of the poll interval",
                        "How near was each member to giving up because its application did not poll?",
                        "A line that falls straight is an application that is stuck or slow.",
                        "poll-timeout-imminent.md",
                    ),
                    "poll left",
                ),
                HEADROOM,
            )
        )
    )


def _tables(made: Dashboard) -> Dashboard:
    return made.with_panel(
        rows(
            Says(
                "Evictions",
                "Who lost its membership in this time, when, why, and who broke it?",
                "client_silent or host_silent: the process or its host; application: it did not poll; broker_slow "
                "and coordinator_moved: not the client; unknown: nobody can tell. `or later`: a timer fired late, by "
                "that much at most.",
                "evictions.md",
            ),
            f"{OF}/evictions",
            "evictions",
            Column("at", "ended_at_ms", CLOCK, width=165),
            Column("client", "client_id", link=ROW_TO_MEMBER, width=130),
            Column("cause", "end_cause", width=130, colours=CAUSE),
            Column("who broke it", "fault", width=125),
            Column("how sure", "fault_certainty", width=90, colours=CERTAINTY),
            Column("or later", "or_later", width=150),
            Column("lived", "lived_ms", "ms", width=80),
            Column("session timeout", "session_timeout_ms", "ms", width=120),
            Column("static id", "group_instance_id", width=110),
            Column("coordinator", "broker", width=95),
            Column("member", "member_id"),
            given={"limit": "100", **RANGE},
        )
    ).with_row(
        Row("Heartbeats")
        .collapsed(True)
        .with_panel(
            bounded(
                points(
                    Says(
                        "Heartbeats",
                        "How long was the silence that each heartbeat (or commit, join, sync) ended, as a part of the "
                        "session timeout? A heartbeat every third is healthy. Of archived requests alone: the latest "
                        "minutes are not archived yet.",
                        "Points that climb towards 100 % are a member that nearly died: pauses, a busy host, a slow "
                        "network.",
                        "session-timeout-imminent.md",
                    ),
                    "beat",
                    "silence",
                    "lane",
                    "percentunit",
                ),
                SILENCE,
            )
        )
    )


def _lag(made: Dashboard) -> Dashboard:
    path = f"{OF}/lag"
    return made.with_row(
        Row("Lag")
        .collapsed(True)
        .with_panel(
            lines(
                Says(
                    "Records behind",
                    "How many records has the group not read, by what it committed?",
                    "See why in *Why it falls behind*; a line that is gone is lag that nobody knows.",
                ),
                (f"max(kardia_group_lag_records{{{GROUP}}})", "records"),
                span=12,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Time behind",
                    "How long has the first record that it has not read waited, of the partition where it is longest?",
                    "The second line is the least that it can be; without the first the record was there before "
                    "anybody looked.",
                ),
                (f"max(kardia_group_lag_seconds{{{GROUP}}})", "interpolated"),
                (f"max(kardia_group_lag_least_seconds{{{GROUP}}})", "at least"),
                unit="s",
                span=12,
            )
        )
        .with_panel(
            rows(
                Says(
                    "Why it falls behind",
                    "Is nobody a member, does a rebalance last, is a member stuck, or does more come than is read?",
                    "Do what the reason asks for; `unknown` needs more evidence, see the group's page.",
                ),
                path,
                "group.why",
                Column("reason", "reason", width=110),
                Column("partitions", "partitions", "none", width=90),
                Column("why", "text", wraps=True),
                height=5,
            )
        )
        .with_panel(
            rows(
                Says(
                    "Partitions",
                    "Which partitions are behind, those in trouble first, and who has them?",
                    "STOP: no commit any more; STALL: the same one again and again; REWIND: it went back; WARN: lag "
                    "never fell in the last ten commits.",
                ),
                path,
                "partitions",
                Column("topic", "topic", width=200),
                Column("partition", "partition", "none", width=80),
                Column("status", "status", width=90),
                Column("records", "lag", "short", width=90),
                Column("time", "time_lag_ms", "ms", width=90),
                Column("at least", "time_lag_least_ms", "ms", width=90),
                Column("committed", "committed_offset", "none", width=110),
                Column("end", "end_offset", "none", width=110),
                Column("last commit", "committed_at_ms", CLOCK, width=165),
                Column("client", "client_id"),
                given={"limit": "200"},
            )
        )
    )


def _settings(made: Dashboard) -> Dashboard:
    lint = rows(
        Says(
            "What is odd about the settings",
            "Which timeouts and assignors in force ask for trouble?",
            "Do what `advice` says, at the next deployment rather than now.",
        ),
        f"{OF}/incident",
        "lint",
        Column("severity", "severity", width=90),
        Column("finding", "text", width=480, wraps=True),
        Column("advice", "advice", width=480, wraps=True),
        Column("certainty", "certainty", width=90, colours=CERTAINTY),
        given={"limit": "1", **RANGE},
    )
    return made.with_row(Row("Settings").collapsed(True).with_panel(lint))
