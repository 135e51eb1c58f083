"""The dashboard of one group: its state as a band, its members as swim lanes, their heartbeats and deadlines."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, Row

from dashboards.answers import AT, CLOCK, LANE, Column, courses, lanes, marks, points, rows, states, value
from dashboards.board import board
from dashboards.panels import HEADROOM, Says, alarm, bounded, number, steps
from dashboards.sources import (
    BLUE,
    CERTAINTY_COLOURS,
    GROUP,
    GROUP_UID,
    ORANGE,
    PURPLE,
    RANGE,
    ROW_TO_MEMBER,
    STATE_COLOURS,
    STATUS_COLOURS,
    YELLOW,
    group_variable,
)

OF = "/clusters/~/groups/~"


def evictions() -> AnnotationQuery:
    """Marks where a membership was taken away."""
    columns = (Column("time", "ended_at_ms", CLOCK), Column("title", "client_id"), Column("text", "end_cause"))
    return marks("Evictions", PURPLE, f"{OF}/evictions", "evictions", *columns, given={"limit": "200", **RANGE})


def rebalances() -> AnnotationQuery:
    """Stretches in which the group rebalanced."""
    columns = (
        Column("time", "started_at_ms", CLOCK),
        Column("timeEnd", "completed_at_ms", CLOCK),
        Column("title", "trigger"),
        Column("text", "reason"),
    )
    return marks("Rebalances", ORANGE, f"{OF}/rebalances", "rebalances", *columns, given={"limit": "200", **RANGE})


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        GROUP_UID,
        "Kardia: group",
        "One consumer group: what it is doing, which member is in danger, when it was evicted or rebalanced and why.",
        group_variable(),
        since="15m",
    )
    return _settings(_lanes(_answers(made.annotation(evictions()).annotation(rebalances()))))


def _answers(made: Dashboard) -> Dashboard:
    imminent = " + ".join(
        f"max(kardia_group_{kind}_timeout_imminent_members{{{GROUP}}})" for kind in ("session", "poll", "rebalance")
    )
    return (
        made.with_panel(
            value(
                Says(
                    "State now",
                    "Does the group work? Only in Stable does everybody know its partitions.",
                    "PreparingRebalance waits for members, CompletingRebalance for the leader; Unknown is a gap.",
                    "rebalance-stuck.md",
                ),
                OF,
                "group",
                Column("state", "state", colours=STATE_COLOURS),
                steps((None, BLUE)),
            )
        )
        .with_panel(
            number(
                Says(
                    "Members in danger",
                    "How many timeouts of members are imminent: session, poll, or rebalance?",
                    "Look for the lane that is not green, and for its deadline in *Deadlines of members*.",
                    "session-timeout-imminent.md",
                ),
                imminent,
                alarm(1),
            )
        )
        .with_panel(
            number(
                Says(
                    "Rebalance running for",
                    "For how long has the group been rebalancing? 0 if it is not.",
                    "Whom it waits for stands on the fleet dashboard and in `kardia why`.",
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
                    "Evictions in the last hour",
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
                    "Rebalances in the last hour",
                    "How restless is the group? Completed rebalances, whatever the cause.",
                    "Open the ledger: what started them?",
                    "rebalance-storm.md",
                ),
                f"sum(max by (trigger) (increase(kardia_rebalances_total{{{GROUP}}}[1h])))",
                alarm(4),
            )
        )
    )


def _lanes(made: Dashboard) -> Dashboard:
    path = f"{OF}/lanes"
    return (
        made.with_panel(
            states(
                Says(
                    "State of the group",
                    "When was it not Stable? Every change, to the millisecond. The last six hours at most.",
                    "Orange or yellow for long: the ledger says whom it waited for. Grey: the log had a gap.",
                    "rebalance-stuck.md",
                ),
                path,
                given={"limit": "1", **RANGE},
            )
        )
        .with_panel(
            lanes(
                Says(
                    "Members over time",
                    "How was each member at each instant? One lane per member; purple marks are evictions, orange "
                    "stretches rebalances. The last six hours at most.",
                    "Yellow is late, orange imminent, purple overdue; grey is unknown. Open the member from *Deadlines "
                    "of members*.",
                    "session-timeout-imminent.md",
                ),
                path,
                height=9,
                given={"limit": "60", **RANGE},
            )
        )
        .with_panel(
            bounded(
                points(
                    Says(
                        "Heartbeats",
                        "How long was the silence that each heartbeat (or commit, join, sync) ended, as a part of the "
                        "session timeout? A heartbeat every third is healthy.",
                        "Points that climb towards 100 % are a member that nearly died: pauses, a busy host, a slow "
                        "network. A lane that stops has no more points.",
                        "session-timeout-imminent.md",
                    ),
                    path,
                    "beats",
                    AT,
                    Column("silence", "gap_ratio", "percentunit"),
                    LANE,
                    given={"limit": "60", **RANGE},
                ),
                steps((None, "transparent"), (0.5, YELLOW), (1, ORANGE)),
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
                    path,
                    "samples",
                    Column("left", "session_headroom_ratio", "percentunit"),
                    given={"limit": "60", **RANGE},
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
                    path,
                    "samples",
                    Column("left", "poll_headroom_ratio", "percentunit"),
                    given={"limit": "60", **RANGE},
                ),
                HEADROOM,
            )
        )
        .with_panel(
            rows(
                Says(
                    "Deadlines of members",
                    "Who is a member now, and how long has each until its session and its poll interval end?",
                    "Open the member; `reason` says why it is not ok.",
                    "session-timeout-imminent.md",
                ),
                f"{OF}/members",
                "members",
                Column("client", "client_id", link=ROW_TO_MEMBER),
                Column("static id", "group_instance_id"),
                Column("status", "status", width=90, colours=STATUS_COLOURS),
                Column("session ends in", "session.remaining_ms", "ms", width=120),
                Column("poll ends in", "poll.remaining_ms", "ms", width=110),
                Column("poll seen by", "poll.evidence", width=110),
                Column("certainty", "health_certainty", width=90),
                Column("reason", "reasons.0"),
                Column("member", "member_id"),
                given={"limit": "200"},
            )
        )
        .with_panel(
            rows(
                Says(
                    "Evictions",
                    "Who lost its membership in this time, when, why, and who broke it?",
                    "client_silent or host_silent: the process or its host; application: it did not poll; broker_slow "
                    "and coordinator_moved: not the client; unknown: nobody can tell.",
                    "evictions.md",
                ),
                f"{OF}/evictions",
                "evictions",
                Column("at", "ended_at_ms", CLOCK, width=170),
                Column("client", "client_id", link=ROW_TO_MEMBER),
                Column("static id", "group_instance_id"),
                Column("cause", "end_cause"),
                Column("who broke it", "fault"),
                Column("how sure", "fault_certainty", width=90, colours=CERTAINTY_COLOURS),
                Column("lived", "lived_ms", "ms", width=100),
                Column("session timeout", "session_timeout_ms", "ms", width=130),
                Column("member", "member_id"),
                given={"limit": "100", **RANGE},
            )
        )
    )


def _settings(made: Dashboard) -> Dashboard:
    return made.with_row(Row("Settings")).with_panel(
        rows(
            Says(
                "What is odd about the settings",
                "Which timeouts and assignors in force ask for trouble?",
                "Do what `advice` says, at the next deployment rather than now.",
            ),
            f"{OF}/incident",
            "lint",
            Column("severity", "severity", width=90),
            Column("finding", "text"),
            Column("advice", "advice"),
            Column("certainty", "certainty", width=90),
            given={"limit": "1", **RANGE},
        )
    )
