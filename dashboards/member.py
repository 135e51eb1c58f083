"""The dashboard of one member: how long it has, how it was, what was said of it beforehand, how it ended."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.answers import AT, CLOCK, LANE, Column, courses, lanes, points, rows, value
from dashboards.board import board
from dashboards.group import OF, evictions, rebalances
from dashboards.panels import HEADROOM, Says, alarm, bounded, steps
from dashboards.sources import (
    BLUE,
    CERTAINTY_COLOURS,
    MEMBER_UID,
    ORANGE,
    PURPLE,
    RANGE,
    STATUS_COLOURS,
    YELLOW,
    group_variable,
    member_variable,
)

LATE_MS = 3_000
"""Less than one heartbeat of the default settings is left."""

ONE = {"member": "${member:raw}"}


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        MEMBER_UID,
        "Kardia: member",
        "One member of a group: how long it has until it is evicted, how it was, and how it ended.",
        group_variable(),
        member_variable(),
        since="15m",
    )
    return _past(_pictures(_answers(made.annotation(evictions()).annotation(rebalances()))))


def _answers(made: Dashboard) -> Dashboard:
    path, deadline = f"{OF}/members/~", steps((None, PURPLE), (0, ORANGE), (LATE_MS, BLUE))
    return (
        made.with_panel(
            value(
                Says(
                    "Status",
                    "Is it well? ok, late, imminent, overdue, ended, or unknown.",
                    "late: silent longer than its habit; imminent: it will be evicted; overdue: the outcome is not "
                    "known yet.",
                    "session-timeout-imminent.md",
                ),
                path,
                "member",
                Column("status", "status", colours=STATUS_COLOURS),
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
                Column("left", "session.remaining_ms", "ms"),
                deadline,
            )
        )
        .with_panel(
            value(
                Says(
                    "Poll interval ends in",
                    "When does the client give up its membership, if the application does not poll?",
                    "Take a thread dump: which call keeps the application from polling?",
                    "poll-timeout-imminent.md",
                ),
                path,
                "member",
                Column("left", "poll.remaining_ms", "ms"),
                deadline,
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
                Column("evidence", "poll.evidence"),
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
                Column("certainty", "health_certainty", colours=CERTAINTY_COLOURS),
                alarm(None),
            )
        )
        .with_panel(
            value(
                Says(
                    "Ended because of",
                    "Why is it no longer a member? `not known` while it is one.",
                    "`session_expired`: the process or the network; `poll_timeout`: the application.",
                    "evictions.md",
                ),
                path,
                "member",
                Column("cause", "end_cause"),
                alarm(None),
            )
        )
    )


def _pictures(made: Dashboard) -> Dashboard:
    path = f"{OF}/lanes"
    return (
        made.with_panel(
            lanes(
                Says(
                    "Status over time",
                    "When was it not ok? The last six hours at most.",
                    "Compare with the heartbeats below: silence, or no polls?",
                    "session-timeout-imminent.md",
                ),
                path,
                height=4,
                given={**ONE, **RANGE},
            )
        )
        .with_panel(
            bounded(
                points(
                    Says(
                        "Heartbeats",
                        "How long was the silence that each request ended, as a part of the session timeout?",
                        "Many tall points: pauses of the process, or a session timeout that is too short for it.",
                        "session-timeout-imminent.md",
                    ),
                    path,
                    "beats",
                    AT,
                    Column("silence", "gap_ratio", "percentunit"),
                    LANE,
                    span=12,
                    given={**ONE, **RANGE},
                ),
                steps((None, "transparent"), (0.5, YELLOW), (1, ORANGE)),
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
                path,
                "polls",
                AT,
                Column("error bound", "error_bound_ms", "ms"),
                Column("evidence", "evidence"),
                span=12,
                given={**ONE, **RANGE},
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
                    path,
                    "samples",
                    Column("left", "session_headroom_ratio", "percentunit"),
                    given={**ONE, **RANGE},
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
                    path,
                    "samples",
                    Column("left", "poll_headroom_ratio", "percentunit"),
                    given={**ONE, **RANGE},
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
                Column("cause", "end_cause"),
                Column("who broke it", "fault"),
                Column("its own words", "end_reason"),
                Column("library", "client_software_name"),
                Column("version", "client_software_version"),
                Column("session timeout", "session_timeout_ms", "ms"),
                Column("rebalance timeout", "rebalance_timeout_ms", "ms"),
                Column("certainty", "certainty", colours=CERTAINTY_COLOURS),
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
                Column("outcome", "outcome"),
                Column("ahead", "lead_ms", "ms"),
                Column("error", "error_ms", "ms"),
                Column("certainty", "certainty", colours=CERTAINTY_COLOURS),
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
                Column("because of", "cause"),
                Column("evidence", "evidence"),
                Column("certainty", "certainty", colours=CERTAINTY_COLOURS),
                span=12,
                given={**ONE, **RANGE},
            )
        )
    )
