"""What a collector can say: one `Event` per request that a broker completed, record, coordinator line, tick or gap.

An event states what was in the log and where it stood, never what it means. Its identity is its position: the same
bytes of the same file always give the same `event_id`, so a repeat is recognised and a hole is visible.

Instants of a request are computed from its line (the line is written when the answer has left):

    arrived  = logged - total          the request was read from the socket
    handled  = arrived + queue + local the handler thread was done with it
    decided  = handled + remote        the answer was known
    logged                             the answer was written, the line appears
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

_new = tuple.__new__

FORMAT_VERSION = 3
"""Version of what travels through the topic; a reader refuses a higher one. 3 has folded batches beside those of 1; 2
had them in another form, in no release, and is refused as well."""

DEFAULT_OFFSETS_PARTITIONS = 50
"""`offsets.topic.num.partitions` of a cluster that did not change it."""

DEFAULT_LANES = 6
"""Partitions of the topic `kardia.events`; fixed for the life of a topic, because a lane keeps order."""

ALL_SHARDS = -1
"""Shard of an event that concerns every shard of the lane it is sent to (tick, gap, rejected line)."""


OFFSETS_BROKER = "offsets-topic"
"""Broker part of the source of `__consumer_offsets` records: they come from no broker's log."""

ADMIN_BROKER = "admin-api"
"""Broker part of the source of samples: they come from no broker's log, and their instants are those of the clock of
the machine that asks."""

CLOCKS_APART_MS = 1_000.0
"""Clocks of the machines of one cluster, and of those that ask it, differ by less."""

SILENCE_MS = 3_000
"""A log without any line for that long may be the log of a broker that is down: nobody's silence in it is evidence.
Consumers that fetch make lines twice a second, those that only heartbeat every 3 s."""


class Kind(IntEnum):
    """Kind of an event. Numbers are part of the format: never reuse one."""

    JOIN = 1
    SYNC = 2
    HEARTBEAT = 3
    LEAVE = 4
    COMMIT = 5
    TXN_COMMIT = 6
    FETCH = 7
    TELEMETRY = 8
    DELETE_GROUPS = 9
    MODERN_HEARTBEAT = 10  # ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat
    GROUP_RECORD = 20  # GroupMetadata record of __consumer_offsets, or its tombstone
    OFFSET_RECORD = 21  # OffsetCommit record of __consumer_offsets, or its tombstone
    OTHER_RECORD = 22  # any other record of __consumer_offsets
    ENDS = 23  # end offsets of partitions that groups have commits for, as the admin API says
    COORDINATOR_LINE = 30  # a line of the coordinator in server.log
    GROUP_SAMPLE = 40  # what the admin API answered about a group
    TICK = 90  # the source has been read completely up to an instant
    GAP = 91  # a part of the source is lost
    REJECTED = 92  # a line that could not be understood


class Event(NamedTuple):
    """One event. Unused fields hold their zero: empty string, -1 for numbers that may be 0, None for `detail`.

    `source` is `BROKER/STREAM/INCARNATION`: the broker's own address or name, `request`, `server`, `offsets` or
    `samples`, and one file from its creation to its end (the partition number of `__consumer_offsets`, a run of a
    sampler). `start` and `end` are byte positions in that file, end exclusive (or record offsets, or numbers of
    samples). `generation_id` is the one the request names; for a JOIN, which names none, the one of the answer; for a
    MODERN_HEARTBEAT the member epoch of the answer, or
    of a refused request. `member_id` and `group_instance_id` are those of the request, empty for a first JOIN; a
    LEAVE holds its members in `detail`. `error_code` is the answer's. `detail` is described per kind in `DETAILS`.
    """

    kind: int
    shard: int
    source: str
    start: int
    end: int
    logged_at_ms: float
    arrived_at_ms: float
    handled_at_ms: float
    decided_at_ms: float
    group_id: str = ""
    member_id: str = ""
    group_instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    connection: str = ""
    software: str = ""
    api_version: int = -1
    error_code: int = 0
    generation_id: int = -1
    detail: dict[str, Any] | None = None


QUEUED_MS = 9.0
"""A request that stood longer in its broker's queue says so. What takes less time than that is an instant."""

_QUEUED = f"float; for that long it stood in the broker's queue, where that was more than {QUEUED_MS:.0f} ms"

DETAILS: dict[Kind, dict[str, str]] = {
    Kind.JOIN: {
        "session_timeout_ms": "int, as the request asks",
        "rebalance_timeout_ms": "int; equals session_timeout_ms for version 0, which has none",
        "protocol_type": "str, e.g. consumer or connect",
        "protocols": "list of [name, hash of its bytes]: equal hash, equal bytes; empty where the log does not "
        "show them",
        "reason": "str, the client's reason or empty",
        "assigned_member_id": "str, member id of the answer (the new id when the error is 79)",
        "leader": "str, leader of the answer or empty",
        "protocol_name": "str, chosen protocol or empty",
        "members": "list of [member id, group instance id or empty]; filled for the leader only",
        "skip_assignment": "bool",
        "release": "str; of a text line the oldest release whose lines look so: 2.0, 2.3, 2.4, 2.5 or 2.6",
        "queued_ms": _QUEUED,
    },
    Kind.SYNC: {
        "protocol_name": "str",
        "assignments": "list of [member id, [[topic, [partition, ...]], ...]]; filled by the leader only; without "
        "topics where the log does not show them",
        "assignment": "list of [topic, [partition, ...]] of the answer, empty where the log does not show it",
        "queued_ms": _QUEUED,
    },
    Kind.HEARTBEAT: {
        "throttle_ms": "float; for that long a quota mutes the connection. Without either there is no detail",
        "queued_ms": _QUEUED,
    },
    Kind.LEAVE: {
        "members": "list of [member id, group instance id or empty, reason or empty, error code]",
        "queued_ms": _QUEUED,
    },
    Kind.COMMIT: {"offsets": "list of [topic or topic id, partition, offset, error code]", "queued_ms": _QUEUED},
    Kind.TXN_COMMIT: {"offsets": "as COMMIT"},
    Kind.FETCH: {"bytes": "int, size of the records in the answer"},
    Kind.TELEMETRY: {
        "bytes": "int, size of the metrics as pushed; they are not kept",
        "compression": "int",
        "client_instance_id": "str",
        "last_poll_s": "float; whole seconds since the begin of the last poll, if the client pushes that",
        "unreadable": "str; why the metrics could not be read, if so",
    },
    Kind.DELETE_GROUPS: {},
    Kind.MODERN_HEARTBEAT: {
        "protocol": "str: consumer, share or streams",
        "member_epoch": "int, of the request: 0 joins, -1 leaves, -2 leaves for a moment (static)",
        "answered_epoch": "int, of the answer",
        "interval_ms": "int; how often the broker wants a heartbeat, 0 in the answer to a leave",
        "rebalance_timeout_ms": "int, if the request says it",
        "rack": "str, if the request says it",
        "topics": "list of names, if the request says them",
        "regex": "str, if the request says it; empty takes it back",
        "owned": "list of [topic id or subtopology, [partition, ...]] that the member owns, if the request says it",
        "assigned": "the same, if the answer assigns: everything, without what is to be given up",
        "status": "list of int, of a streams group that is not as it should be: 5, the first assignment is delayed",
        "throttle_ms": "as HEARTBEAT",
        "queued_ms": _QUEUED,
    },
    Kind.GROUP_RECORD: {
        "tombstone": "bool; nothing else is set when true",
        "protocol_type": "str",
        "generation": "int (also in generation_id)",
        "protocol_name": "str or empty",
        "leader": "str or empty",
        "state_at_ms": "int or -1, currentStateTimestamp",
        "members": "list of [member id, instance id or empty, client id, host, session_timeout_ms, "
        "rebalance_timeout_ms, [[topic, [partition, ...]], ...]]",
    },
    Kind.OFFSET_RECORD: {
        "tombstone": "bool",
        "topic": "str",
        "partition": "int",
        "offset": "int",
        "commit_at_ms": "int",
        "expire_at_ms": "int; of a commit with a retention of its own, and of every commit to a broker 2.0",
    },
    Kind.OTHER_RECORD: {
        "record_type": "int",
        "name": "str",
        "tombstone": "bool",
        "protocol": "str: consumer, share, streams",
        "epoch": "int, of the group, its target assignment or its member, by the kind of record",
        "state": "int, of a member: 0 stable, 1 must give partitions up, 2 waits for others; streams: 1, 2, 3",
        "assigned": "list of [topic id, [partition, ...]], assigned to the member, or its target",
        "revoking": "the same, that the member must give up",
        "rebalance_timeout_ms": "int, of a member",
        "classic_session_ms": "int, of a member that speaks the classic protocol: its session timeout",
        "rack": "str, of a member, if it has one",
        "topics": "list of names to which the member is subscribed",
        "regex": "str, the same",
    },
    Kind.ENDS: {
        "begins": "bool; true in the first of a collector: what other events of it told does not go on",
        "more": "bool; another event of the same look follows. With the last, all that was not told is as it was",
        "ends": "list of [topic, [[partition, log start offset or -1, high watermark, leader epoch or -1], ...]], "
        "those that changed since the look before, and some others",
        "unreadable": "list of [topic, [partition, ...]], those that were told before and were not answered now",
    },
    Kind.COORDINATOR_LINE: {
        "what": "str, one of COORDINATOR_LINES",
        "reason": "str, text in `(reason: ...)`, the client reason of a leave, or `N members` where a line counts them",
        "members": "list of member ids a line names beyond member_id",
        "session_timeout_ms": "int, of the member, where a line tells all of it (its client.id and host as well)",
        "rebalance_timeout_ms": "int, likewise",
        "session_ms": "dict protocol -> int, of `configured`: session timeout of groups with epochs",
    },
    Kind.GROUP_SAMPLE: {
        "since_ms": "float; when the group was asked about the time before, and was as was said: what is other now "
        "changed after it; -1 for the first answer of this sampler",
        "asked_ms": "float; this time it was asked then, and was answered at `logged_at_ms`",
        "state": "str, as the coordinator calls it; Unknown where the library has no word for it",
        "protocol": "str: classic or consumer",
        "assignor": "str or empty",
        "whole": "bool; whether all members are listed",
        "members": "list of [member id, instance id or empty, client id, host, [[topic, [partition, ...]], ...]]; "
        "without a group: every group that is shown has been answered about in this run, nothing else is set",
    },
    Kind.TICK: {
        "previous_end": "int, `end` of the tick before this one of the same source in this lane, 0 for the first",
        "events": "int, events sent to this lane between the two ticks",
        "lines": "int, lines read between the two ticks",
        "ignored": "dict reason -> count",
        "wall_at_ms": "float, the collector's wall clock",
        "first_line_at_ms": "float, stamp of the first line since the last tick",
        "last_line_at_ms": "float, stamp of the last line read, of whatever kind: the broker was alive then",
        "silences": "list of [from_ms, to_ms]: between two lines nothing at all was logged for SILENCE_MS or longer",
        "begins_at_ms": "float, stamp of the first line of the whole stream that is read; a replay says so",
        "ends_at_ms": "float, stamp of its last line, where no more will be read of it but of the broker's other log;"
        " a replay says so",
        "is_over": "bool; no more will be read of any log of the broker; a replay says so",
        "holes": "list of [from_ms, to_ms]: between two lines a file of the log is missing; a replay says so",
        "slow": "list of [from_ms, taken_ms, queue_ms, local_ms, remote_ms]: the slowest request of each window of the "
        " broker's clock in which one was slow; see `kardia.slowness`",
        "processes": "dict, what connections show of the broker's process: known_from_ms, since when those of all its "
        "clients are known; restarts, list of [from_ms, to_ms, shown_at_ms]: started again between two lines; went_on, "
        "list of [from_ms, to_ms, shown_at_ms, 1 if nobody was late else 0]: the same process between two instants",
        "queued_at": "list of float: when requests arrived that stood long in the broker's queue, one a moment",
        "asked_from_ms": "float; the first request about a group, as far as whoever reads the log has read",
        "session_shown": "list of [protocol, session timeout or 0, at_ms]: what an eviction has shown of groups with "
        "epochs, from an instant on; 0: two have contradicted each other",
        "session_ms": "dict protocol -> int, session timeout of groups with epochs as the cluster is configured; where "
        "it was read, from time to time",
        "group_session_ms": "dict group -> the same, of groups with a configuration of their own",
    },
    Kind.GAP: {"from_ms": "float", "to_ms": "float", "reason": "str, one of GAP_REASONS"},
    Kind.REJECTED: {
        "reason": "str, one of REJECT_REASONS",
        "excerpt": "str, at most 200 characters, escaped",
        "expected": "str",
    },
}
"""Keys of `Event.detail` by kind."""

COORDINATOR_LINES = (
    "preparing_rebalance",
    "stabilized",
    "assignment_received",
    "member_added",  # while the group prepares; one that begins a rebalance is named by the sentence about that
    "member_failed",
    "member_left",
    "group_empty",
    "removed_not_joined",
    "rebalance_skipped",  # what the sentence before it says is of a group that the broker no longer holds
    "pending_member_removed",
    "static_replaced",
    "instance_fenced",  # its static id is that of the first of `members`. Of no group, for all lanes: of who is named
    "static_reverted",  # `member_id` never was one, the first of `members` is one again
    "member_loaded",  # of a record that a load has read, which need not be the last one
    "group_loaded",
    "group_unloaded",
    "partition_elected",  # `generation_id` is the epoch of the leader
    "partition_loaded",
    "partition_unloaded",
    "group_dead",
    "epoch_raised",
    "target_computed",
    "epoch_member_joined",
    "epoch_member_replaced",
    "epoch_member_left",
    "epoch_member_away",
    "epoch_member_fenced",
    "epoch_member_reached",
    "epoch_group_loaded",
    "epoch_group_unloaded",
    "instance_in_use",
    "epoch_instance_fenced",
    "upgraded",
    "downgraded",
    "configured",  # of no group, for all lanes: what a broker that starts says of its settings
    "other",
)
"""Values of `what` in a COORDINATOR_LINE."""

GAP_REASONS = (
    "lost_lines",
    "truncated",
    "file_vanished",
    "collector_slept",
    "log_off",
    "topic_lost",
    "count_mismatch",
    "log_ends",
)
"""Closed list of reasons of a GAP."""

REJECT_REASONS = (
    "unknown_shape",
    "unknown_sentence",
    "unknown_layout",
    "no_group",
    "bad_json",
    "bad_encoding",
    "bad_timestamp",
    "future_timestamp",
    "out_of_range",
    "ambiguous",
    "line_too_long",
    "incomplete_line",
    "unsupported_version",
    "bad_record",
    "foreign_cluster",
    "not_an_event",
    "not_applied",
)
"""Closed list of reasons of a REJECTED."""

IGNORE_REASONS = (
    "other_api",
    "other_logger",
    "continuation",
    "not_a_coordinator_line",
    "unattributed_fetch",
    "blank",
    "unknown_record",
)
"""Closed list of reasons why a line gives no event: not an error, but counted."""


def for_shard(event: Event, shard: int) -> Event:
    """The same event for another shard; `_replace` takes more than twice as long."""
    return _new(Event, (event[0], shard, *event[2:]))


def event_id(event: Event) -> str:
    """Identity of an event, 32 hex digits: a digest of its position and of the shard it was sent to.

    A FETCH names no group; where its client belongs to groups of several shards it is sent to each of them, and each
    copy is an event of its own.
    """
    text = f"{event.source}\0{event.start}\0{event.end}\0{event.shard}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def stream_of(source: str) -> str:
    """`BROKER/STREAM` of a source: what stays when the file is rotated."""
    return source.rsplit("/", 1)[0]


@lru_cache(maxsize=1_000)
def broker_of(source: str) -> str:
    """The broker part of a source. Asked once per stretch, and there are few sources."""
    return source.rsplit("/", 2)[0]


def shard_of(group_id: str, partitions: int = DEFAULT_OFFSETS_PARTITIONS) -> int:
    """Partition of `__consumer_offsets` that holds a group, and so the shard of its events.

    Java's `String.hashCode` over UTF-16 units, then `abs` with the one value that has none mapped to 0
    (Kafka `GroupMetadataManager.partitionFor`).
    """
    value = 0
    if group_id.isascii():
        for unit in group_id.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        data = group_id.encode("utf-16-be", "surrogatepass")
        for at in range(0, len(data), 2):
            value = (31 * value + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    if value >= 0x80000000:
        value = 0x100000000 - value
    return 0 if value == 0x80000000 else value % partitions


def lane_of(shard: int, lanes: int = DEFAULT_LANES) -> int:
    """Lane of a shard: the partition of `kardia.events` and the key of the job's state."""
    return shard % lanes
