"""The dashboard of one member: how long it has, how it was, what was said of it beforehand, how it ended."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.answers import CLOCK, Column, chart_rows, courses, points, rows, value
from dashboards.board import board
from dashboards.group import NOW, OF, SILENCE, evictions, rebalances
from dashboards.palette import CERTAINTY, END, HEADROOM, OUTCOME, STATUS, alarm, countdown
from dashboards.panels import Says, bounded
from dashboards.sources import MEMBER_UID, RANGE, cluster_variable, group_variable, member_variable

ONE = {"member": "${member:raw}"}


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        MEMBER_UID,
        "Kardia: member",
        "One member of a group: how long it has until it is evicted, how it was, and how it ended.",
        cluster_variable(),
        group_variable(),
        member_variable(),
        since="15m",
    )
    return _past(_pictures(_answers(made.annotation(evictions()).annotation(rebalances()))))


def _answers(made: Dashboard) -> Dashboard:
    path = f"{NOW}/members/~"
    return (
        made.with_panel(
            value(
                Says(
                    "Status",
                    "Is it well? ok, late, imminent, awaited, overdue, unseen, ended, or unknown.",
                    "late: silent longer than its habit; imminent: it will be evicted; overdue: the outcome is not "
                    "known yet.",
                    "session-timeout-imminent.md",
                ),
                path,
                "member",
                Column("status", "status", colours=STATUS),
                alarm(None),
            )
        )
        .with_panel(
            value(
                Says(
                    "Session ends in",
                    "When does the coordinator evict it, if it hears nothing more?",
                    "Look at the process: dead, paused, or cut off from the broker?",
                    "session-timeout-imminent.md",
                ),
                path,
                "member",
                Column("left", "session_left"),
                alarm(None),
                *countdown(),
            )
        )
        .with_panel(
            value(
                Says(
                    "Poll ends in",
                    "When does the client give up its membership, if the application does not poll?",
                    "Take a thread dump: which call keeps the application from polling?",
                    "poll-timeout-imminent.md",
                ),
                path,
                "member",
                Column("left", "poll_left"),
                alarm(None),
                *countdown(),
            )
        )
        .with_panel(
            value(
                Says(
                    "Poll seen by",
                    "What shows that it polls? `none`: its library or its topic shows nothing.",
                    "`none` is no trouble by itself; the poll deadline is then not known.",
                    "poll-timeout-imminent.md",
                ),
                path,
                "member",
                Column("evidence", "poll_evidence"),
                alarm(None),
            )
        )
        .with_panel(
            value(
                Says(
                    "How sure",
                    "How sure is what is said of it? exact: the broker's own timer.",
                    "unknown: the log has a gap; do not act on the numbers.",
                    "log-gap.md",
                ),
                path,
                "member",
                Column("certainty", "certainty", colours=CERTAINTY),
                alarm(None),
            )
        )
        .with_panel(
            value(
                Says(
                    "Ended because of",
                    "Why is it no longer a member?",
                    "`session_expired`: the process or the network; `poll_timeout`: the application.",
                    "evictions.md",
                ),
                path,
                "member",
                Column("cause", "end_cause", colours=END),
                alarm(None),
            )
        )
    )


def _pictures(made: Dashboard) -> Dashboard:
    return (
        made.with_panel(
            chart_rows(
                Says(
                    "Status over time",
                    "When was it not ok? The last six hours at most.",
                    "Compare with the heartbeats below: silence, or no polls?",
                    "session-timeout-imminent.md",
                ),
                f"{OF}/points",
                height=4,
                given={**ONE, **RANGE},
            )
        )
        .with_panel(
            bounded(
                points(
                    Says(
                        "Heartbeats",
                        "How long was the silence that each request ended, as a part of the session timeout? Of "
                        "archived requests alone.",
                        "Many tall points: pauses of the process, or a session timeout that is too short for it.",
                        "session-timeout-imminent.md",
                    ),
                    "beat",
                    "silence",
                    "lane",
                    "percentunit",
                    span=12,
                ),
                SILENCE,
            )
        )
        .with_panel(
            points(
                Says(
                    "Evidence of polls",
                    "When did the application certainly poll, and how exact is that? A point per poll that was seen; "
                    "its height is by how much it may have been earlier.",
                    "No points for longer than the poll interval: the application is stuck, if its library shows "
                    "polls at all.",
                    "poll-timeout-imminent.md",
                ),
                "poll",
                "error bound",
                "evidence",
                "ms",
                span=12,
            )
        )
        .with_panel(
            bounded(
                courses(
                    Says(
                        "What was left of the session timeout",
                        "How near was it to its eviction for silence?",
                        "A line that falls to 0 % is an eviction.",
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
                        "How near was it to giving up, because its application did not poll?",
                        "A line that falls straight is an application that is stuck or slow.",
                        "poll-timeout-imminent.md",
                    ),
                    "poll left",
                ),
                HEADROOM,
            )
        )
    )


def _past(made: Dashboard) -> Dashboard:
    return (
        made.with_panel(
            rows(
                Says(
                    "Lives",
                    "When did it come and go, with which library and which timeouts in force?",
                    "Compare the timeouts with those of the other members: they should be the same.",
                ),
                f"{OF}/members/~",
                "lives",
                Column("joined", "joined_at_ms", CLOCK, width=170),
                Column("ended", "ended_at_ms", CLOCK, width=170),
                Column("or later", "or_later", width=150),
                Column("cause", "end_cause", colours=END),
                Column("coordinator", "broker"),
                Column("who broke it", "fault"),
                Column("its own words", "end_reason"),
                Column("library", "client_software_name"),
                Column("version", "client_software_version"),
                Column("session timeout", "session_timeout_ms", "ms"),
                Column("rebalance timeout", "rebalance_timeout_ms", "ms"),
                Column("certainty", "certainty", colours=CERTAINTY),
                height=6,
            )
        )
        .with_panel(
            rows(
                Says(
                    "What was said beforehand",
                    "Which timeouts of it were predicted, how far ahead, and what became of them?",
                    "`averted` again and again: it is often late; raise its timeout or find what delays it.",
                    "predictions-unreliable.md",
                ),
                f"{OF}/predictions",
                "predictions",
                Column("said at", "predicted_at_ms", CLOCK),
                Column("timeout", "kind"),
                Column("for", "deadline_at_ms", CLOCK),
                Column("outcome", "outcome", colours=OUTCOME),
                Column("ahead", "lead_ms", "ms"),
                Column("error", "error_ms", "ms"),
                Column("certainty", "certainty", colours=CERTAINTY),
                span=12,
                given={**ONE, **RANGE},
            )
        )
        .with_panel(
            rows(
                Says(
                    "What happened to it",
                    "Which changes of its membership were there, and what shows them?",
                    "`evidence` names the line of the log; `kardia explain` tells the story around it.",
                ),
                f"{OF}/history",
                "transitions",
                Column("at", "at_ms", CLOCK),
                Column("from", "from_state"),
                Column("to", "to_state"),
                Column("or later", "or_later"),
                Column("because of", "cause"),
                Column("evidence", "evidence"),
                Column("certainty", "certainty", colours=CERTAINTY),
                span=12,
                given={**ONE, **RANGE},
            )
        )
    )
