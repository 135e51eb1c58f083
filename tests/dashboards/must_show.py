"""What each fault must look like: panels, and of each the value and the colour that it must have. Data, no code.

Storms, a server that hangs and a group just born need numbers of a real Prometheus and are in `test_boards_show`.

`{who}` is the client at fault. Of a stat `Is` has its one value, of a picture what a lane ends with, of a table a cell
by its row and column. A table or a row that must not be there has the value `None`.
"""

from __future__ import annotations

from typing import NamedTuple

from dashboards import palette
from tests.dashboards.screen import Shown

WELL, SOON, ALARM, OVER = palette.WELL, palette.SOON, palette.ALARM, palette.OVER
PLAIN, REST, BLIND, GONE = palette.PLAIN, palette.REST, palette.BLIND, palette.GONE

WHO = "{who}"


class Is(NamedTuple):
    """A value that must be seen."""

    board: str
    panel: str
    shown: Shown | None
    row: str = ""
    column: str = ""


class Must(NamedTuple):
    """What must be seen at a moment of a history."""

    history: str
    group: str
    who: str
    """Client id."""
    member: str
    """Member id, or its beginning, for the board of the member; empty: no such board is looked at."""
    moment: str
    at_ms: tuple[int, int]
    """From when to when, after the fault's own instant (`FAULT_AT`)."""
    seen: tuple[Is, ...]


def stat(board: str, panel: str, text: str, colour: str) -> Is:
    """One value."""
    return Is(board, panel, Shown(text, colour))


def cell(board: str, panel: str, row: str, column: str, text: str, colour: str) -> Is:
    """A cell of a table, or, without a column, the end of a lane."""
    return Is(board, panel, Shown(text, colour), row, column)


def absent(board: str, panel: str, row: str, column: str) -> Is:
    """A table without that row."""
    return Is(board, panel, None, row, column)


def nothing(board: str, panel: str, column: str) -> Is:
    """A table without rows; which column is asked for."""
    return Is(board, panel, None, "", column)


NO_EVICTION = nothing("group", "Evictions", "cause")
NOBODY_AWAITED = nothing("group", "Whom the group waits for", "shown by")
NO_REBALANCE = nothing("fleet", "Rebalances under way", "state")
STABLE = (
    stat("group", "State now", "Stable", WELL),
    cell("group", "State of the group", "state", "", "Stable", WELL),
)

DANGER = (
    *STABLE,
    cell("fleet", "Who is next", WHO, "status", "imminent", ALARM),
    cell("fleet", "Worst groups", "{group}", "worst status", "imminent", ALARM),
    cell("fleet", "Worst groups", "{group}", "state", "Stable", WELL),
    NO_REBALANCE,
    cell("group", "Members over time", WHO, "", "imminent", ALARM),
    cell("group", "Members", WHO, "status", "imminent", ALARM),
    NO_EVICTION,
    NOBODY_AWAITED,
    stat("member", "Status", "imminent", ALARM),
    stat("member", "Ended because of", "still a member", PLAIN),
    cell("member", "Status over time", WHO, "", "imminent", ALARM),
)
"""Of a member that is about to be taken away, whichever timeout it is."""

SURELY = (
    cell("group", "Members", WHO, "certainty", "exact", WELL),
    stat("member", "How sure", "exact", WELL),
)
"""The broker's log goes on beyond the instant at which an answer to the member would have been logged."""

LIKELY = (
    cell("group", "Members", WHO, "certainty", "inferred", REST),
    stat("member", "How sure", "inferred", REST),
)
"""The broker's last line is so near that an answer to the member may be under way."""

TAKEN_AWAY = (
    *STABLE,
    cell("group", "Members over time", WHO, "", "ended", GONE),
    NOBODY_AWAITED,
    NO_REBALANCE,
    stat("member", "Status", "ended", GONE),
    stat("member", "Session ends in", "ended", GONE),
    stat("member", "Poll ends in", "ended", GONE),
    stat("member", "How sure", "exact", WELL),
    cell("member", "Status over time", WHO, "", "ended", GONE),
)
"""And after it."""

KILL = ("c01_kill-4.1.2", "g01", "c01-b", "c01-b-")
STALL = ("c04_mpi-3.9.2", "g04", "c04-a", "c04-a-")
STRAGGLER = ("kip62-rebalance-timeout", "g", "b", "")
DEAD = ("d01_kill_long-4.4.0", "both", "both-b", "both-b-39ea55a2")

FAULT_AT = {
    KILL[0]: 1_795_211_009_702,
    STALL[0]: 1_795_211_497_309,
    STRAGGLER[0]: 1_800_000_001_000,
    DEAD[0]: 1_795_372_956_899,
}
"""When it is taken away, leaves, when the trace begins, when the broker is killed."""

AWAITED = (
    stat("group", "State now", "PreparingRebalance", ALARM),
    cell("group", "State of the group", "state", "", "PreparingRebalance", ALARM),
    cell("fleet", "Rebalances under way", "{group}", "waits for", "b", PLAIN),
    cell("fleet", "Rebalances under way", "{group}", "state", "PreparingRebalance", ALARM),
    cell("fleet", "Rebalances under way", "{group}", "shown by", "heartbeats without rejoining", PLAIN),
    cell("fleet", "Who is next", WHO, "status", "imminent", ALARM),
    cell("fleet", "Who is next", WHO, "predicted", "yes", ALARM),
    absent("fleet", "Who is next", "a", "left"),  # it may wait in a JoinGroup: its session is not running
    cell("group", "Whom the group waits for", WHO, "shown by", "heartbeats without rejoining", PLAIN),
    cell("group", "Members over time", WHO, "", "imminent", ALARM),
    cell("group", "Members over time", "a", "", "unseen", BLIND),
    cell("group", "Members", "a", "session ends in", "not known", BLIND),
    cell("group", "Members", WHO, "certainty", "provisional", SOON),
    NO_EVICTION,
)

MUST_SHOW = {
    "killed: before": Must(
        *KILL,
        "before",
        (-2_000, -1_000),
        (
            *DANGER,
            *LIKELY,
            cell("group", "Members", WHO, "session ends in", "1.6 s", ALARM),
            cell("group", "Members", "c01-a", "session ends in", "≥ 8.6 s", PLAIN),
            cell("group", "Members", "c01-a", "status", "ok", WELL),
            stat("member", "Session ends in", "1.6 s", ALARM),
            stat("member", "Poll ends in", "≥ 51.6 s", PLAIN),
            cell("member", "What was said beforehand", "session", "outcome", "open", PLAIN),
        ),
    ),
    "killed: after": Must(
        *KILL,
        "after",
        (9_000, 10_000),
        (
            *TAKEN_AWAY,
            cell("group", "Evictions", WHO, "cause", "session_expired", ALARM),
            cell("group", "Evictions", WHO, "who broke it", "client_silent", PLAIN),
            stat("member", "Ended because of", "session_expired", ALARM),
            cell("member", "What was said beforehand", "session", "outcome", "came_true", PLAIN),
            cell("rebalances", "Ledger", "c01-c", "trigger", "session_expired", ALARM),
        ),
    ),
    "stalled: before": Must(
        *STALL,
        "before",
        (-2_000, -1_000),
        (
            *DANGER,
            *SURELY,
            cell("fleet", "Who is next", "c04-b", "left", "≥ 4.4 s", PLAIN),
            cell("group", "Members", "c04-b", "status", "ok", WELL),
            cell("group", "Members", "c04-b", "session ends in", "≥ 2.4 s", PLAIN),
            stat("member", "Session ends in", "≥ 5.8 s", PLAIN),
            stat("member", "Poll ends in", "1.0 s", ALARM),
            cell("member", "What was said beforehand", "poll", "outcome", "open", PLAIN),
        ),
    ),
    "stalled: after": Must(
        *STALL,
        "after",
        (6_000, 7_000),
        (
            *TAKEN_AWAY,
            cell("group", "Evictions", WHO, "cause", "poll_timeout", OVER),
            cell("group", "Evictions", WHO, "who broke it", "application", PLAIN),
            stat("member", "Ended because of", "poll_timeout", OVER),
            cell("member", "What was said beforehand", "poll", "outcome", "came_true", PLAIN),
            cell("rebalances", "Ledger", "c04-d", "trigger", "poll_timeout", OVER),
            cell("fleet", "Worst groups", "{group}", "worst status", "ok", WELL),
        ),
    ),
    "straggler: while it is waited for": Must(*STRAGGLER, "waiting", (29_000, 31_000), AWAITED),
    "straggler: after": Must(
        *STRAGGLER,
        "after",
        (46_000, 47_500),
        (
            *STABLE,
            NO_REBALANCE,
            NOBODY_AWAITED,
            cell("group", "Members over time", WHO, "", "ended", GONE),
            cell("group", "Members over time", "a", "", "ok", WELL),
            cell("group", "Evictions", WHO, "cause", "rebalance_timeout", SOON),
            cell("rebalances", "Ledger", WHO, "took", "30020", PLAIN),
        ),
    ),
    "dead broker: while it is dead": Must(
        *DEAD,
        "dead",
        (12_000, 13_000),
        (
            NO_EVICTION,
            NO_REBALANCE,
            stat("group", "State now", "Unknown", BLIND),
            cell("group", "State of the group", "state", "", "Unknown", BLIND),
            cell("fleet", "Worst groups", "{group}", "state", "Unknown", BLIND),
            cell("fleet", "Who is next", WHO, "status", "overdue", OVER),
            cell("fleet", "Who is next", WHO, "certainty", "provisional", SOON),
            cell("fleet", "Worst groups", "{group}", "worst status", "overdue", OVER),
            cell("group", "Members over time", WHO, "", "overdue", OVER),
            cell("group", "Members", WHO, "certainty", "provisional", SOON),
            cell("group", "Members", WHO, "session ends in", "due 4.2 s ago", OVER),
            stat("member", "Poll ends in", "not known", BLIND),
            stat("member", "Ended because of", "still a member", PLAIN),
            cell("member", "What was said beforehand", "session", "outcome", "open", PLAIN),
        ),
    ),
}
