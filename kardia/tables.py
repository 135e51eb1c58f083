"""The eleven tables, described once as data: a new column goes here, its value into
`kardia/observe/output/rows.py`. Schemas, API models and pages are rendered from it.

Rows are never changed in place. For one life of a member (`cluster_id, group_id, member_id, joined_at_ms`), one
rebalance (`cluster_id, group_id, generation_before, started_at_ms`) or one prediction (`cluster_id, group_id,
member_id, kind, predicted_at_ms`) the row with the highest `known_at_ms` stands; `key` of a table names these columns.
Names: durations end in `_ms`, instants in `_at_ms` (epoch milliseconds, UTC).
"""

from __future__ import annotations

from typing import Any

from kardia.differences import DISAGREEMENTS as DISAGREEMENTS
from kardia.differences import SURPRISE_CLASSES as SURPRISE_CLASSES
from kardia.table_types import Column, Table

Row = tuple[Any, ...]
"""Values of one row, in the order of `Table.columns` without `batch_id`, which the sink adds."""


END_CAUSES = (
    "session_expired",
    "left",
    "poll_timeout",
    "rebalance_timeout",
    "sync_timeout",
    "join_timeout",
    "static_replaced",
    "fenced",
    "rejected",
    "removed_by_admin",
    "group_deleted",
    "unknown",
)

EVICTION_CAUSES = (
    "session_expired",
    "poll_timeout",
    "rebalance_timeout",
    "sync_timeout",
    "join_timeout",
    "fenced",
    "rejected",
    "removed_by_admin",
)
"""End causes that took a membership away from a consumer that had not asked to go. `unknown` is none of them: an
eviction is never invented. A poll timeout is one, although the client itself sends the leave."""

REFUSALS_MAX = 100
"""Refusals of one life that have a row of `transitions`: a client that does not rest is refused some hundred times a
second."""

LEAVE_CAUSES = ("left", "poll_timeout", "removed_by_admin")
"""End causes that are a LeaveGroup, whoever sent it and why."""

STRUCK = {"session_expired": "session", "poll_timeout": "poll", "rebalance_timeout": "rebalance"}
"""End cause -> kind of the prediction that it makes true."""

TRIGGERS = (
    "member_joined",
    "member_left",
    "poll_timeout",
    "session_expired",
    "pending_expired",
    "rebalance_timeout",
    "sync_timeout",
    "metadata_changed",
    "leader_rejoined",
    "static_replaced",
    "removed_by_admin",
    "assignment_not_stored",
    "over_capacity",
    "coordinator_loaded",
    "topic_metadata",
    "unknown",
)

STATUS_MEANINGS = {
    "ok": "heard as usual, and nothing is predicted",
    "late": "silent for more than twice its own longest usual silence and a third of its session timeout; nothing is "
    "predicted yet",
    "imminent": "a timeout is predicted: about half of it has passed in unusual silence, or without a poll, or without "
    "rejoining",
    "overdue": "its session deadline passed, and what became of it is not known yet",
    "unknown": "the evidence is missing: a gap, a timeout that was not seen, nothing heard of it yet",
    "ended": "no member any more: its last row",
}
"""Status of a member's health, and what it means: the one place where the words are defined."""

STATUSES = tuple(STATUS_MEANINGS)

PREDICTION_KINDS = ("session", "poll", "rebalance")

OUTCOMES = ("open", "came_true", "averted", "unknown")
"""Of a prediction: open, still running; came_true, the timeout struck; averted, the member was heard in time or left by
itself; unknown, the evidence went missing."""

SELF_TEST = ("answers", "predicted", *SURPRISE_CLASSES)
"""Last columns of `progress`: what a self-test counted."""

NOT_TESTED: Row = (None,) * len(SELF_TEST)
"""These columns where there is none."""

POLL_EVIDENCE = ("fetch", "commit", "join", "sync", "heartbeat", "telemetry", "none")


def _s(name: str, meaning: str, *, nullable: bool = True, personal: bool = False) -> Column:
    return Column(name, "string", meaning, nullable, personal)


def _l(name: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "long", meaning, nullable)


COMMON = (
    _s("cluster_id", "name of the cluster, from configuration", nullable=False),
    _s("group_id", "consumer group; empty where a row is about a source", nullable=False, personal=True),
    Column(
        "shard", "int", "partition of __consumer_offsets that holds the group; -1 where a row is about a source", False
    ),
    _l("at_ms", "when it was so on the broker", nullable=False),
    _l("known_at_ms", "instant, on the broker's clock, of the evidence that settled this row", nullable=False),
    _s("certainty", "exact, inferred, provisional or unknown", nullable=False),
)
"""First columns of every table."""

_BOUND = (
    "it was so between `at_ms` and that much later, because timers of a broker fire late and requests take time; 0: at "
    "`at_ms`, to the width of a stamp; null: not before `at_ms`, and nothing that was seen says how much later"
)
"""Of an instant that follows from a deadline. `exact` about such a row means: exactly between these two instants."""

_DOUBTS = Column(
    "doubts",
    "strings",
    "what is in doubt about it, of the closed list of doubts: `certainty` is what the weakest of them leaves it worth; "
    "null where nothing is",
)
"""Last column of what the table describes, of tables that say what was concluded."""

BATCH = _l("batch_id", "batch that wrote the row; readers trust batches that `progress` covers", nullable=False)
"""Last column of every table, added by the sink."""

_MEMBER_KEY = ("cluster_id", "group_id", "member_id", "joined_at_ms")

MEMBERS = Table(
    "members",
    "one row per version of what is known about one membership: who, timeouts in force, how it ended",
    _MEMBER_KEY,
    COMMON
    + (
        _s("member_id", "id given by the coordinator", nullable=False, personal=True),
        _s("group_instance_id", "static id, null for a dynamic member", personal=True),
        _s("protocol", "classic, consumer, share or streams", nullable=False),
        _s("client_id", "client.id of the requests", personal=True),
        _s("client_host", "address the member connects from", personal=True),
        _s("client_software_name", "client library as announced, null if not"),
        _s("client_software_version", "version of the library as announced, null if not"),
        _l("session_timeout_ms", "session timeout in force, null if not known"),
        _l("rebalance_timeout_ms", "rebalance timeout in force, null if not known"),
        _l("joined_at_ms", "when the coordinator added it, or when it was first seen", nullable=False),
        _l("ended_at_ms", "when it stopped being a member, null while it is one"),
        _s("end_cause", "why it ended, one of the closed list, null while it is a member"),
        _s("end_reason", "the client's or the coordinator's own words, null if none", personal=True),
        _s("broker", "broker whose log tells of it"),
        _l("generation_first", "first generation it belonged to, null if none yet; or group epoch before it came"),
        _s("fault", "who broke it, one of the closed list; null while it is a member, and if it left by itself"),
        _s("fault_certainty", "how sure that is; null where `fault` is"),
        Column("fault_signs", "strings", "what shows it, as `key=number`; see the list of keys"),
        _l("at_bound_ms", f"of its end, or of its begin while it is a member: {_BOUND}"),
        _s("rack", "client.rack of a member of the newer protocols, null if it has none"),
        Column("subscription", "strings", "topics, or a regular expression, of a member of the newer protocols"),
        _DOUBTS,
    ),
)

REBALANCES = Table(
    "rebalances",
    "one row per version of what is known about one rebalance: of a classic group from when it began to prepare one to "
    "the assignment; of a consumer, share or streams group from a new group epoch to when every member had come to it, "
    "which may be in one step with another epoch",
    ("cluster_id", "group_id", "generation_before", "started_at_ms"),
    COMMON
    + (
        _l(
            "started_at_ms",
            "the group began to prepare a rebalance, or had a new epoch; where a JoinGroup of a classic group began it,"
            " when that was handed to the coordinator, whose own thread in Kafka 4 may be some ms behind, on a busy "
            "machine 100",
            nullable=False,
        ),
        _l(
            "joined_at_ms",
            "the join phase ended and the new generation began, or the target assignment of the epoch was computed; "
            "null while it lasts, where only a record of the offsets topic tells that it is over, and where answers "
            "show that there is a target and not since when",
        ),
        _l(
            "completed_at_ms",
            "the assignment was stored: the group is Stable; or every member had come to the epoch; or the group "
            "became empty. Null meanwhile",
        ),
        _s("trigger", "what started it, one of the closed list", nullable=False),
        _s("trigger_member_id", "member that started it", personal=True),
        _s("trigger_client_id", "its client.id", personal=True),
        _s("trigger_group_instance_id", "its static id", personal=True),
        _s("reason", "the client's own reason, or a sentence", personal=True),
        _l("generation_before", "generation before, or group epoch before", nullable=False),
        _l("generation_after", "generation after, null while it lasts; or the new group epoch"),
        _l("members_before", "members before, null if not known"),
        _l("members_after", "members after, null while it lasts"),
        Column(
            "stragglers",
            "stragglers",
            "who was waited for and how long, longest first; while a classic group prepares, who has joined",
        ),
        _s("leader_member_id", "leader of the new generation", personal=True),
        _s("protocol_name", "assignor chosen"),
        _l("caused_by_started_at_ms", "start of the rebalance before, where this one began because of it; else null"),
        _l("member_seconds_lost", "sum over members of the time from the start to their assignment, in seconds"),
        _l(
            "partition_seconds_lost",
            "sum over partitions of the time without a reader from the start to the assignment, in seconds; of what a "
            "classic member had that was evicted, since that was last heard; null while it lasts, and where the "
            "assignments or the assignor are not known",
        ),
        _l(
            "broker_slow_ms",
            "longest time that the broker itself took for a request meanwhile; null while it lasts, and if it was "
            "never slow",
        ),
        _l("at_bound_ms", f"of its start: {_BOUND}"),
        _l(
            "completed_bound_ms",
            "the same for `joined_at_ms` and `completed_at_ms`: they may be so much later where no answer shows them, "
            "because nobody was left, or `completed_at_ms` where a busy broker was slow with the assignment; null "
            "while it lasts, and where nothing that was seen says how much",
        ),
        Column(
            "withdrawn",
            "bool",
            "true: there was no such rebalance; what was said of it before is taken back, and no reader shows it",
        ),
        _s("protocol", "what the group spoke: classic, consumer, share or streams"),
        _l(
            "partitions_moved",
            "of a group that has epochs: partitions that came to another member; null while it lasts, where that is "
            "not known, and of classic groups",
        ),
        Column(
            "began_unseen",
            "bool",
            "true: it had begun before anything that was read of it; `started_at_ms` is when it was first seen to be "
            "under way, and how long it lasted is not known",
        ),
        _DOUBTS,
    ),
)

TRANSITIONS = Table(
    "transitions",
    "one row per change of a group's state or of a member's membership, and of what was found later: Absent to Absent "
    "confirms or corrects an end, Stable to Stable is a load",
    ("cluster_id", "group_id", "seq"),
    COMMON
    + (
        _l(
            "seq",
            "counts the transitions of its group: from 1, or from an instant (epoch ms) where the group may have been "
            "there before and was forgotten",
            nullable=False,
        ),
        _s("entity", "group or member", nullable=False),
        _s("member_id", "member, null for a group", personal=True),
        _s("from_state", "state before", nullable=False),
        _s("to_state", "state after", nullable=False),
        _s("cause", "end cause, trigger, or what happened", nullable=False),
        _s("evidence", "what showed it: the kind of event or timer, and the position of the event"),
        _l("generation_id", "generation in force after it, or group epoch"),
        _l("at_bound_ms", _BOUND),
        _DOUBTS,
    ),
)

HEALTH = Table(
    "health",
    "one row per member and instant: deadlines, margins, evidence; sampled while well, every batch while in danger",
    ("cluster_id", "group_id", "member_id"),
    COMMON
    + (
        _s("member_id", "member", nullable=False, personal=True),
        _s("group_instance_id", "static id", personal=True),
        _s("client_id", "client.id", personal=True),
        _s("group_state", "state of the group", nullable=False),
        _l("generation_id", "generation of the group, or its epoch"),
        _l("session_timeout_ms", "session timeout in force"),
        _l("poll_interval_ms", "max.poll.interval.ms where the library announces it, else null"),
        _l("last_heard_at_ms", "last request that renewed the session"),
        _l("session_deadline_at_ms", "the coordinator evicts the member then, if it hears nothing"),
        _l("last_poll_at_ms", "latest instant at which the application is known to have polled"),
        _s("poll_evidence", "what shows it", nullable=False),
        _l("poll_error_bound_ms", "the poll was at most that much earlier than last_poll_at_ms"),
        _l("poll_deadline_at_ms", "the client gives up its membership then, if the application does not poll"),
        _s(
            "status",
            "one of: " + "; ".join(f"{status}, {meaning}" for status, meaning in STATUS_MEANINGS.items()),
            nullable=False,
        ),
        Column("reasons", "strings", "why the status is not ok"),
        _l(
            "pending_members",
            "ids that the coordinator handed out to clients that did not come back; a rebalance waits for them, see "
            "`pending`",
        ),
        _l("awaited_since_at_ms", "a rebalance under way waits for it since then; null where it may be waiting itself"),
        _l("awaited_until_at_ms", "the rebalance goes on without it then, at the latest; null if that is not known"),
        _s(
            "polling",
            "polls, stalled (its heartbeats go on and what it should take is not taken) or unknown: what its library "
            "and its topics do not show",
        ),
        Column(
            "pending",
            "pending",
            "of `pending_members` those that last longest; null where there are none",
            personal=True,
        ),
        _l("member_epoch", "epoch of the member, null in a classic group; the group's is `generation_id`"),
        _s(
            "member_state",
            "in a group that has epochs: stable, unrevoked (it must give partitions up), unreleased (it waits for "
            "partitions that others have), away (a static member that left for a moment), unknown",
        ),
        _l("partitions", "partitions that it may read; null where that is not known"),
        _l("partitions_revoking", "partitions that it was told to give up and still has; null in classic groups"),
        _l("partitions_target", "partitions that it is to have in the end, by records; null where that is not known"),
        Column(
            "moving",
            "moving",
            "partitions on their way from the member or to it, the first 50: those that it is to give up, and those of "
            "its target that it does not have; null where none are known to be",
            personal=True,
        ),
        _s(
            "assigned",
            "which partitions it has, those among them that it must give up, as `orders:0-3,7;payments:1`, cut with … "
            "at 1,000 characters; null in classic groups and where that is not known",
        ),
        _s("assigned_target", "which it is to have in the end, likewise"),
        _DOUBTS,
    ),
)

PREDICTIONS = Table(
    "predictions",
    "one row per version of a predicted timeout and of what became of it",
    ("cluster_id", "group_id", "member_id", "kind", "predicted_at_ms"),
    COMMON
    + (
        _s("member_id", "member", nullable=False, personal=True),
        _s("client_id", "client.id", personal=True),
        _s("kind", "session, poll or rebalance", nullable=False),
        _l("predicted_at_ms", "when it was first said", nullable=False),
        _l("deadline_at_ms", "when it was said to happen; null where nothing says how long the session is"),
        _s("outcome", "open, came_true, averted or unknown", nullable=False),
        _l("outcome_at_ms", "when the outcome was reached"),
        _l("lead_ms", "outcome_at_ms - predicted_at_ms of one that came true"),
        _l("error_ms", "outcome_at_ms - deadline_at_ms of one that came true"),
        _DOUBTS,
    ),
)

LAG_STATES = {
    "known": "the end of the partition was seen, and the commit is not behind its start",
    "below_start": "the end of the partition was seen, and records before its start are deleted that the group has not "
    "read",
    "beyond_end": "it has committed an offset that the partition does not have: its log was cut off or made anew, or "
    "somebody set the offset; lag is not known",
    "no_end": "the end of the partition is not known: it was not looked at yet, or its leader does not answer, or its "
    "topic is gone",
    "gone": "the commit is gone: deleted with its group or its topic or by an administrator, or expired",
    "forgotten": "more commits were held than a lane takes; it is taken up again with its next commit",
    "looked": "about no group: the ends were looked at, at `known_at_ms`, and what the latest rows of the lane say "
    "held at `at_ms`, which is earlier where more had changed than is written at once; `partition` is the lane",
}
"""States of `lag`, and what each means."""

LAG = Table(
    "lag",
    "one row per group, partition and change: the committed offset, the end of the partition, and since when something "
    "waits there that the group has not read; written by the look at the ends that finds it changed, and every few "
    "seconds where nobody looks",
    ("cluster_id", "group_id", "topic", "partition"),
    COMMON
    + (
        _s("topic", "topic", nullable=False),
        Column("partition", "int", "partition of the topic", False),
        _s(
            "state",
            "one of: " + "; ".join(f"{state}, {meaning}" for state, meaning in LAG_STATES.items()),
            nullable=False,
        ),
        _l("committed_offset", "offset that the group goes on from; null where the commit is gone"),
        _l("committed_at_ms", "when that was committed, by the broker's clock"),
        _l("start_offset", "log start offset of the partition"),
        _l("end_offset", "high watermark of the partition, null where it is not known"),
        _l("lag", "records between the two: end_offset - committed_offset, at least 0; null where it is not known"),
        _l(
            "behind_from_ms",
            "the first record that it has not read came then at the earliest; null: nothing waits, or it was there "
            "when the partition was first looked at",
        ),
        _l("behind_at_ms", "when it came, interpolated between two looks; null where one of the bounds is not known"),
        _l("behind_to_ms", "it came then at the latest; null: nothing waits, or the end is not known"),
        _l("window_from_ms", "the first of the last ten commits, by the broker's clock"),
        _l("window_commits", "how many of them have been seen, ten at most"),
        _l("window_produced", "records that came since then, interpolated; null where the end was not looked at then"),
        _l("window_read", "records by which its commits went forward since then; below 0: back"),
        _s(
            "verdict",
            "status by Burrow's rules, as of `at_ms`: OK, WARN, STALL, REWIND or STOP; null where lag is not known",
        ),
        _l("looked_at_ms", "when the end was asked for, by the collector's clock; null where it is not known"),
        _s(
            "held",
            "member: somebody has the partition, by the last record of the group; nobody: that record names nobody who "
            "has it; null: not known, as in groups with epochs, whose records do not name topics",
        ),
        _s("member_id", "who has it, null if nobody or not known", personal=True),
        _s("client_id", "its client.id", personal=True),
        _s(
            "committed_by",
            "member that committed `committed_offset`, by its request; null: no request log shows it, or it was none",
            personal=True,
        ),
        _s("committed_by_client_id", "client.id of that request", personal=True),
    ),
)

PROGRESS = Table(
    "progress",
    "one row per batch, lane and source: how far everything has been read, and the counts of the ledger",
    ("cluster_id", "lane", "source"),
    COMMON
    + (
        Column("lane", "int", "partition of kardia.events", False),
        _s("source", "BROKER/STREAM", nullable=False),
        _l("complete_to_ms", "everything the source said up to then is in the tables", nullable=False),
        _l("events", "events accepted in the batch", nullable=False),
        _l("duplicates", "events that had been accepted before", nullable=False),
        _l("late", "events that came after their place in the order had passed", nullable=False),
        _l("lines", "lines the collector read", nullable=False),
        _l("ignored", "lines that give no event", nullable=False),
        _l("rejected", "lines that could not be understood", nullable=False),
        _l("gaps", "gaps met", nullable=False),
        _l(
            "divergences",
            "times the broker's answer, or its server.log, differed from what was concluded",
            nullable=False,
        ),
        _l(
            "not_modelled",
            "events of an unknown kind, heartbeats of an unknown protocol, and telemetry of no known member",
            nullable=False,
        ),
        _l("forgotten", "groups without members that are held no longer; their rows stay", nullable=False),
        *(
            _l(kind, f"of `divergences`: {meaning}; see `disagreements`", nullable=False)
            for kind, meaning in DISAGREEMENTS.items()
        ),
        _l("gap_from_ms", "where the first of `gaps` begins: from then on something is lost; null without one"),
        _l("gap_to_ms", "where the last of them ends"),
        _l(
            "answers",
            "answers to classic requests that the self-test put to the model of the release; it begins anew with its "
            "process",
        ),
        _l("predicted", "of `answers` those that were as the model says; of groups that it does not know none is"),
        *(_l(kind, f"of `answers`: {meaning}; see `surprises`") for kind, meaning in SURPRISE_CLASSES.items()),
    ),
)

OF_THE_LINE = (
    _s("source", "BROKER/STREAM/INCARNATION of the line", nullable=False),
    _l("start", "first byte of the line", nullable=False),
    _l("end", "byte after the line", nullable=False),
)
"""Columns that say which line of which log a row is about."""

DISAGREEMENT_ROWS = Table(
    "disagreements",
    "one row per line of server.log that says otherwise than the requests: which group, when, and what each says",
    ("cluster_id", "source", "start"),
    COMMON
    + (
        _s("kind", "one of the closed list", nullable=False),
        _s("member_id", "member that it is about, null where it is about the group", personal=True),
        _s("client_id", "its client.id, null if not known", personal=True),
        _s("told", "what server.log says: a cause of an end, or a generation; `at_ms` is when", nullable=False),
        _s(
            "concluded",
            "what the requests had shown: `member` (it is one still), a cause of an end, a generation, or the broker "
            "that leads the group",
            nullable=False,
        ),
        _l(
            "concluded_at_ms",
            "when, by the requests: the end, or the deadline of the session of a member; null where it is about none",
        ),
        _s("concluded_certainty", "how sure that was", nullable=False),
        *OF_THE_LINE,
    ),
)

SURPRISES = Table(
    "surprises",
    "one row per answer to a classic request that is not as the model of the brokers' release predicts",
    ("cluster_id", "group_id", "at_ms", "member_id", "request"),
    COMMON
    + (
        _s("surprise_class", "why it was not as predicted, one of the closed list", nullable=False),
        _s("member_id", "whose request it was, null where nothing shows it", personal=True),
        _s("request", "JoinGroup, SyncGroup, Heartbeat, LeaveGroup or OffsetCommit", nullable=False),
        _s("predicted", "what the release answers, in words", nullable=False),
        _s("seen", "what the broker answered, in words", nullable=False),
        Column("tried", "strings", "names of the explanations that were tried, in order"),
        _s("because", "why it is of this class", nullable=False),
        _s("kafka_version", "release whose model predicts", nullable=False),
        _s("trace", "a trace that `kardia trace` replays; null where the window is too long for one", personal=True),
        _s("source", "BROKER/STREAM/INCARNATION of the line of the answer, empty where there is none", nullable=False),
        _l("start", "first byte of that line, -1 where there is none", nullable=False),
    ),
)

REJECTED = Table(
    "rejected",
    "one row per line that could not be understood: reason, position, bounded excerpt",
    ("cluster_id", "source", "start"),
    COMMON
    + (
        *OF_THE_LINE,
        _s("reason", "one of the closed list", nullable=False),
        _s("expected", "what would have been understood"),
        _s("excerpt", "at most 200 characters, control characters escaped", personal=True),
    ),
)

EVENTS = Table(
    "events",
    "one row per accepted event, append only, short retention; for replay, verify and audit",
    ("event_id",),
    COMMON
    + (
        _s("event_id", "identity: digest of the position", nullable=False),
        _s("kind", "kind of the event, lower case", nullable=False),
        _s("source", "BROKER/STREAM/INCARNATION", nullable=False),
        _l("start", "first byte", nullable=False),
        _l("end", "byte after the last", nullable=False),
        Column("logged_at_ms", "double", "the line's own stamp, epoch ms", False),
        Column("arrived_at_ms", "double", "request read by the broker", False),
        Column("handled_at_ms", "double", "handler thread done", False),
        Column("decided_at_ms", "double", "answer known", False),
        _s("member_id", "member id of the request", personal=True),
        _s("group_instance_id", "static id of the request", personal=True),
        _s("client_id", "client.id", personal=True),
        _s("client_host", "address of the client", personal=True),
        _s("connection", "connection as the broker prints it", personal=True),
        _s("software", "name/version as announced; of a request that came folded, by the first of its stretch"),
        Column("api_version", "int", "version of the API, -1 if none"),
        Column("error_code", "int", "error code of the answer"),
        Column("generation_id", "int", "generation of the request"),
        _s("detail", "JSON, by kind", personal=True),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        EVENTS,
        TRANSITIONS,
        REBALANCES,
        MEMBERS,
        HEALTH,
        PREDICTIONS,
        REJECTED,
        DISAGREEMENT_ROWS,
        SURPRISES,
        LAG,
        PROGRESS,
    )
}
"""All tables; `progress` last, because it is written last."""

LIVE_TABLES: tuple[str, ...] = tuple(name for name in TABLES if name != "events")
"""Tables written by the live query; `events` has a query of its own."""
