"""What a trace can say, as data: its header, what clients do, and what is expected. Nothing here reads or runs one.

    A silent member is evicted one session timeout after its last heartbeat.

    Kafka 3.9.2, 4.4.0
    Member a: session=10s rebalance=60s

    +0.000   a joins             => a waits, group PreparingRebalance
    +3.000                       => a joined generation 1 as leader, group CompletingRebalance
    +3.010   a syncs as leader   => a synced, group Stable
    +13.010                      => a evicted: session_expired, group Empty

Every change of the group's state, every member that goes, every late answer and every error must be written down:
what is not expected is a difference. The words are those of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.tables import TRIGGERS

NAME = r"[a-z][a-z0-9-]*"
NAMES = rf"{NAME}(?: and {NAME})*"
INSTANT = r"\+\d+\.\d{3}"
STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Unknown")
"""`Dead` is also what Kafka calls a group that it does not know; `Unknown` is for who reads a log that does not say."""

EVICTIONS = ("session_expired", "rebalance_timeout", "sync_timeout", "join_timeout")
"""Ends by a timer of the coordinator."""
PARTINGS = ("left", "removed_by_admin", "static_replaced", "rejected", "forgotten", "poll_timeout", "unknown")
"""Ends by a request. `forgotten`: the coordinator moved, and nothing had been written of the member. `poll_timeout`: it
left and its reason says so; the log shows that, to the coordinator it has just left. `unknown`: the log is silent."""

ADMIN, COORDINATOR = "admin", "coordinator"
"""Actors that are no members."""

VERBS: dict[str, str] = {
    "joins": "JoinGroup; with an empty member id first, and again at once if the answer is 79",
    "asks for a member id": "JoinGroup with an empty member id, and nothing more",
    "syncs": "SyncGroup, with an assignment for everybody if it is the leader; `as leader` says that it must be",
    "heartbeats": "Heartbeat",
    "commits": "OffsetCommit; `commits in a transaction`: TxnOffsetCommit",
    "leaves": 'LeaveGroup; `because "..."` is its reason',
    "stops": "nothing more comes from it; the coordinator is not told",
    "removes": "by `admin`: LeaveGroup of the named members by their instance ids",
    "deletes the group": "by `admin`: DeleteGroups",
    "moves": "by `coordinator`: from now on another broker leads the group's shard, in whose log the rest stands",
    "unloads": "by `coordinator`: nobody leads the shard, requests are answered 16; until it `loads` on another broker",
    "loads": "by `coordinator`: what `unloads` has left",
    "dies": "by `coordinator`: its broker is gone and its log silent, until it `restarts`",
    "restarts": "by `coordinator`: the broker leads the shard again and counts its connections anew",
}
"""What an actor does, and the requests that makes."""

OWNERS: Mapping[str, str] = {
    "removes": ADMIN,
    "deletes the group": ADMIN,
    **dict.fromkeys(("moves", "unloads", "loads", "dies", "restarts"), COORDINATOR),
}
"""Who does what no member does."""

OPTIONS: dict[str, str] = {
    "session": "duration: session.timeout.ms",
    "rebalance": "duration: rebalance timeout, max.poll.interval.ms of a consumer",
    "instance": "name: group.instance.id",
    "version": "number: version of JoinGroup",
    "protocols": "names with commas: assignors in order of preference",
    "subscribes": "name: topic of the subscription; another topic, other bytes",
    "generation": "number: send this generation instead of the one the member knows",
    "taking": "duration: the answer leaves that long after the request was handled",
}
"""`name=value` after `Member NAME:` (for all its requests) or after a verb (for one)."""

UNANSWERED = "unanswered"
"""Word after a verb: the connection breaks before the answer, so the broker logs nothing of a request that counts."""


class Clause(NamedTuple):
    """A form of expectation: how it is written, the pattern that reads it, what it means."""

    form: str
    pattern: str
    meaning: str


_WHO = rf"(?P<names>{NAMES})"
_AT = rf"(?P<value>{INSTANT})"

CLAUSES: dict[str, Clause] = {
    "joined": Clause(
        "NAMES joined generation N [as leader]",
        rf"{_WHO} joined generation (?P<value>\d+)(?P<more> as leader)?",
        "JoinGroup answered 0",
    ),
    "synced": Clause("NAMES synced", rf"{_WHO} synced", "SyncGroup answered 0"),
    "answered": Clause(
        "NAMES answered CODE [ERROR]",
        rf"{_WHO} answered (?P<value>-?\d+)(?: (?P<more>[A-Z_]+))?",
        "answered with this error code; 0 needs no saying, except for JoinGroup and SyncGroup",
    ),
    "waits": Clause("NAMES wait", rf"{_WHO} waits?", "its JoinGroup or SyncGroup has no answer yet"),
    "evicted": Clause(
        "NAMES evicted: CAUSE", rf"{_WHO} evicted: (?P<value>{'|'.join(EVICTIONS)})", "removed by a timer"
    ),
    "gone": Clause("NAMES gone: CAUSE", rf"{_WHO} gone: (?P<value>{'|'.join(PARTINGS)})", "removed by a request"),
    "dropped": Clause("NAMES dropped", rf"{_WHO} dropped", "its id was handed out (79) and is pending no more"),
    "state": Clause("group STATE", rf"group (?P<value>{'|'.join(STATES)})", "the state of the group after this line"),
    "generation": Clause("generation N", r"generation (?P<value>\d+)", "the generation of the group"),
    "leader": Clause("leader NAME", rf"leader (?P<names>{NAME})", "the leader of the group"),
    "members": Clause("members NAMES|none", rf"members (?:none|{_WHO})", "the members of the group, all of them"),
    "pending": Clause("pending NAMES|none", rf"pending (?:none|{_WHO})", "ids handed out and not used yet"),
    "session": Clause(
        "session of NAME ends at +SECONDS|never",
        rf"session of (?P<names>{NAME}) ends (?P<value>never|at {INSTANT})",
        "its timer; never: none counts while it waits",
    ),
    "join_phase": Clause("join phase ends at +SECONDS", rf"join phase ends at {_AT}", "by the timer"),
    "sync_phase": Clause("sync phase ends at +SECONDS", rf"sync phase ends at {_AT}", "for members that never sync"),
    "rebalance": Clause(
        "rebalance: TRIGGER [by NAME]",
        rf"rebalance: (?P<value>{'|'.join(TRIGGERS)})(?: by (?P<names>{NAME}))?",
        "a rebalance begins, and what started it",
    ),
    "nothing": Clause("nothing happens", r"nothing happens", "for readers: no answer to anybody else, no change"),
}
"""What can be expected."""

LOG_FAULTS: dict[str, Clause] = {
    "begins": Clause("begins at +SECONDS", rf"begins at (?P<from>{INSTANT})", "older lines were not collected"),
    "lost": Clause(
        "loses +SECONDS to +SECONDS",
        rf"loses (?P<from>{INSTANT}) to (?P<to>{INSTANT})",
        "these lines are lost, and the collector says so",
    ),
    "missing": Clause(
        "misses +SECONDS to +SECONDS",
        rf"misses (?P<from>{INSTANT}) to (?P<to>{INSTANT})",
        "these lines are lost, and only their count shows it",
    ),
    "late": Clause("is late by DURATION", r"is late by (?P<late>\d+)ms", "every other line comes that much later"),
    "twice": Clause(
        "arrives twice", "arrives twice", "each record of the topic comes again at once, and all in the end"
    ),
}
"""After `Log`: what befalls the request log on its way to the job; the coordinator does not know of it."""

MARKS = ("coordinator only", "log only")
"""After `#` at the end of a line: what is expected is shown only by the coordinator, or only by its request log."""

SETTINGS: dict[str, tuple[str, int]] = {
    "group.initial.rebalance.delay.ms": ("initial_rebalance_delay_ms", 1),
    "group.min.session.timeout.ms": ("group_min_session_timeout_ms", 1),
    "group.max.session.timeout.ms": ("group_max_session_timeout_ms", 1),
    "group.max.size": ("group_max_size", 1),
    "offsets.retention.minutes": ("offsets_retention_ms", 60_000),
    "offsets.retention.check.interval.ms": ("offsets_retention_check_interval_ms", 1),
}
"""Broker properties, the setting of the model each becomes, and the factor."""


class TraceError(ValueError):
    """A text that is no trace: where, what stands there, what was expected."""

    def __init__(self, name: str, line: int, found: str, expected: str) -> None:
        """Make the sentence."""
        super().__init__(f"{name}:{line}: {found}; expected {expected}")
        self.name, self.line = name, line


class Act(NamedTuple):
    """Something one actor does. `verb` is a key of `VERBS`."""

    who: str
    verb: str
    options: Mapping[str, str]
    reason: str
    whom: tuple[str, ...]
    """Whom an administrator removes."""
    unanswered: bool
    as_leader: bool
    transaction: bool


class Expectation(NamedTuple):
    """One clause after `=>`. `kind` is a key of `CLAUSES`."""

    kind: str
    names: tuple[str, ...]
    value: str
    more: str
    text: str
    versions: tuple[str, ...]
    """Releases for which it holds, a subset of the trace's."""
    mark: str
    """One of `MARKS`, or empty."""


class Step(NamedTuple):
    """One line: an instant, what is done then, and what is expected of everything since the line before."""

    line: int
    at_ms: int
    before_timers: bool
    """Requests come before the timers of the same ms."""
    acts: tuple[Act, ...]
    text: str
    expectations: tuple[Expectation, ...]


class LogFault(NamedTuple):
    """What befalls the log. `kind` is a key of `LOG_FAULTS`; instants are -1 where the kind has none."""

    kind: str
    from_ms: int = -1
    to_ms: int = -1
    late_ms: int = 0


class Trace(NamedTuple):
    """A history with its expectations."""

    name: str
    title: str
    """First sentence, what it shows."""
    versions: tuple[str, ...]
    settings: CoordinatorSettings
    members: Mapping[str, Mapping[str, str]]
    """Declared members with their options."""
    coordinator_only: str
    """Why the log cannot show this, empty if it can."""
    log_faults: tuple[LogFault, ...]
    steps: tuple[Step, ...]
