"""Shapes of the answers, for OpenAPI and for the tests. Columns of tables are rendered from `kardia.tables`.

The answers themselves are built in `api.answers` as plain dicts and encoded once; these models are not in the way of a
request. A test reads every route's answer through its model, so neither can drift from the other.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from api.errors import CODES, LIMITS
from api.past import rejected
from api.shapes.base import Answer, Moving, PendingId, Shown, columns, many, shape

OR_LATER = "what `at_bound_ms` says in words: empty, `or up to 150 ms later`, or `or later`"


class Freshness(Answer):
    """How far the tables reach. Everything logged up to `complete_as_of` is in the answer."""

    complete_as_of_ms: int | None
    complete_as_of: str | None
    age_ms: int | None = Field(description="answered_at - complete_as_of, at least 0")
    stale: bool = Field(description="age beyond the bound: silence may be the feed's, countdowns are withheld")
    batch_id: int = Field(description="the batch this answer rests on")
    in_tables: bool = Field(description="whether it is in the tables; who follows a log or a topic answers ahead")
    answered_at_ms: int
    answered_at: str


class Deadline(Answer):
    """A deadline of a present member."""

    deadline_at_ms: int | None
    deadline_at: str | None
    is_least: bool
    remaining_ms: int | None
    headroom_ratio: float | None = Field(description="part of the timeout left at health_at, 0 to 1")


class SessionDeadline(Deadline):
    """The coordinator evicts the member at this deadline unless it hears from it."""

    timeout_ms: int | None
    last_heard_at_ms: int | None
    last_heard_at: str | None


class PollDeadline(Deadline):
    """The client gives up its membership at this deadline unless the application polls."""

    interval_ms: int | None = Field(description="max.poll.interval.ms where the library announces it")
    last_poll_at_ms: int | None
    last_poll_at: str | None
    evidence: str
    error_bound_ms: int | None


class Assignment(Answer):
    """Target and current assignment of a present member of a group that has epochs."""

    group_epoch: int | None = Field(description="epoch of the whole group, to which each member is to come")
    member_epoch: int | None = Field(description="lower than the group's while the member has yet to come to it")
    member_state: str = Field(description="what `health` says of it: stable, unrevoked, unreleased, away, unknown")
    partitions: int | None = Field(description="partitions that it may read; null where that is not known")
    partitions_revoking: int | None = Field(description="partitions that it was told to give up and still has")
    partitions_target: int | None = Field(description="partitions that it is to have in the end, by records")
    assigned: str | None = Field(description="which it has, as `orders:0-3,7;payments:1`; null where that is not known")
    assigned_target: str | None = Field(description="which it is to have in the end, likewise")
    moving: list[Moving] = Field(description="partitions on their way from it or to it, the first 50")
    awaited_since_at_ms: int | None = Field(description="a rebalance waits for it since then")
    awaited_since_at: str | None
    awaited_until_at_ms: int | None = Field(description="and until then at the latest; null if that is not known")
    awaited_until_at: str | None


class _Href(Answer):
    href: str = Field(description="where this object is")


class _Remaining(Answer):
    remaining_ms: int | None


Prediction = shape(
    "Prediction",
    _Remaining,
    columns("predictions", ("kind", "predicted_at_ms", "deadline_at_ms", "outcome", "certainty")),
)


class _Member(_Href):
    status: str
    shown: Shown
    or_later: str = Field(description="of its end: " + OR_LATER)
    reasons: list[str]
    health_at_ms: int | None
    health_at: str | None
    health_certainty: str
    health_doubts: list[str] = Field(description="what is in doubt about the health, a sentence each")
    session: SessionDeadline | None
    poll: PollDeadline | None
    assignment: Assignment | None = Field(description="null in a classic group, and of who is a member no more")


Member = shape("Member", _Member, columns("members") | {"predictions": many(Prediction)})


PastPrediction = shape("PastPrediction", _Href, columns("predictions") | {"remaining_ms": (int | None, ...)})


class _Health(_Href):
    session_is_least: bool = Field(description="the session may be over later than that: see `is_least` of a deadline")
    poll_is_least: bool = Field(description="the same of the poll interval")


Health = shape("Health", _Health, columns("health"))


class _Rebalance(_Href):
    running: bool
    or_later: str = Field(description="of its start: " + OR_LATER)
    completed_or_later: str = Field(description="the same of `completed_bound_ms`")
    caused_by_href: str | None = Field(description="where the rebalance is that this one follows from")
    duration_ms: int | None = Field(description="so far, if it is running; null where its begin or its end is not read")
    join_ms: int | None = Field(description="length of the join phase; null where its begin or its end is not read")
    sync_ms: int | None = Field(description="from the new generation to the leader's assignment")


Rebalance = shape("Rebalance", _Rebalance, columns("rebalances"))
Event = shape("Event", Answer, columns("events"), "An event of the archive: a line, and what was read from it.")


_ARCHIVED = Field(None, description="with events=true: what `evidence` points to, if it is archived")


class _Transition(_Href):
    or_later: str = Field(description=OR_LATER)


Transition = shape("Transition", _Transition, columns("transitions") | {"event": (Event | None, _ARCHIVED)})


class _Eviction(_Href):
    lived_ms: int
    or_later: str = Field(description=OR_LATER)


Eviction = shape("Eviction", _Eviction, columns("members"))


class NextDeadline(Answer):
    """The member of a group whose deadline comes first."""

    href: str
    member_id: str
    client_id: str | None
    status: str
    timeout_ms: int | None
    deadline_at_ms: int
    deadline_at: str | None
    is_least: bool
    remaining_ms: int | None


class MemberCounts(Answer):
    """Present members by `shown`, as the list of members says it: each is counted once."""

    total: int
    ok: int
    late: int
    imminent: int
    overdue: int
    unknown: int
    awaited: int = Field(description="a rebalance waits for them")
    unseen: int = Field(description="silent while the group rebalances: they may wait for it too")


class _Group(_Href):
    cluster_id: str
    group_id: str
    shard: int
    state: str
    state_since_at_ms: int | None
    state_since_at: str | None
    state_cause: str | None
    state_certainty: str
    generation_id: int | None
    status: str | None = Field(description="the worst status of its members")
    shown: str | None = Field(description="the worst status of its members as pictures show them; null without members")
    protocols: list[str] = Field(
        description="protocols of its members, of a group without members that of its last rebalance; with another "
        "than classic, `generation_id` is the epoch of the group"
    )
    members: MemberCounts
    session_headroom_min_ratio: float | None
    poll_headroom_min_ratio: float | None
    next_session_deadline: NextDeadline | None
    next_poll_deadline: NextDeadline | None
    links: dict[str, str]


Group = shape(
    "Group",
    _Group,
    {"last_rebalance": (Rebalance | None, ...), "pending": many(PendingId)},
    "A group as it stands.",
)


class Source(Answer):
    """A source and how far it has been read."""

    source: str
    complete_to_ms: int
    complete_to: str | None


class Cluster(_Href):
    """A cluster that has written to the tables."""

    cluster_id: str
    groups: int
    members: int
    freshness: Freshness
    sources: list[Source]
    ledger: dict[str, int] = Field(description="sums over all batches of the counts of `progress`")
    disagreements: dict[str, int] = Field(
        description="of the ledger's `divergences` those of server.log with the requests, by kind"
    )
    self_test: dict[str, int] = Field(
        description="answers that were put to the model of the release, how many of them it predicted, and surprises "
        "by class"
    )
    self_test_in_words: str
    links: dict[str, str]


class Fresh(Answer):
    """Base of answers with data: how far the tables reach."""

    freshness: Freshness


class _Paged(Fresh):
    next_cursor: str | None = Field(description="give it as `cursor` to go on; null on the last page")


_INSTANTS: dict[str, Any] = {
    "at_ms": (int | None, Field(description="the instant asked about; null for the present")),
    "at": (str | None, ...),
    "known_at_ms": (int | None, Field(description="only what was known then; null for all that is known")),
    "known_at": (str | None, ...),
}


class Clusters(Fresh):
    """All clusters."""

    clusters: list[Cluster]


class ClusterAnswer(Fresh):
    """One cluster."""

    cluster: Cluster


ListedGroup = shape(
    "ListedGroup",
    Group,
    {"rung": (int, Field(description="on which rung of evidence it stands, see `evidence` of the group"))},
    "A group of a list.",
)

Groups = shape("Groups", _Paged, {"groups": many(ListedGroup)}, "Groups of a cluster.")


class Answerable(Answer):
    """A question that people ask of a group, and whether what is read answers it."""

    question: str = Field(description="in the words of people")
    answered: Literal["yes", "partly", "no"] = Field(description="whether what is read of the group answers it")
    needs: str = Field(description="what is missing, and which step brings it; empty if nothing is")


class GroupEvidence(Answer):
    """What is read of the broker that leads a group (docs/reference/truth.md, Less evidence)."""

    rung: int = Field(
        description="0 nothing now, 1 the admin API, 2 __consumer_offsets, 3 server.log, 4 both, 5 the request log, "
        "6 with FETCH"
    )
    read: str = Field(description="the rung in words")
    questions: list[Answerable] = Field(description="what people ask, and what each of it needs")


ON_RUNG: dict[str, Any] = {"evidence": (GroupEvidence, Field(description="on which rung the group stands"))}

GroupAnswer = shape(
    "GroupAnswer",
    Fresh,
    {"group": (Group, ...)} | ON_RUNG | _INSTANTS,
    "One group.",
)


Members = shape("Members", _Paged, {"members": many(Member)} | ON_RUNG | _INSTANTS, "Present members of a group.")


MemberAnswer = shape(
    "MemberAnswer",
    Fresh,
    {"member": (Member, ...), "lives": many(Member)} | ON_RUNG,
    "One member: its latest life, and all lives that its id had.",
)


Rebalances = shape("Rebalances", _Paged, {"rebalances": many(Rebalance)}, "Rebalances of a group.")


Predictions = shape(
    "Predictions", _Paged, {"predictions": many(PastPrediction)}, "Predictions about members of a group."
)


HealthAt = shape(
    "HealthAt",
    Fresh,
    {"health": many(Health), "at_ms": (int, ...), "at": (str | None, ...), "left_off": (int, ...)},
    "Of each member the latest health row at or before an instant, the worst status first.",
)


History = shape(
    "History", _Paged, {"transitions": many(Transition)}, "Changes of state of a group and of its memberships."
)


Evictions = shape("Evictions", _Paged, {"evictions": many(Eviction)}, "Memberships of a group that were taken away.")


_LINE: dict[str, Any] = {
    "at_ms": (int | None, Field(description="the line's own stamp; null: it has none that can be read")),
    "at": (str | None, Field(description="the same instant in RFC 3339")),
    "batch_id": (int, Field(description="the batch that brought it into the tables")),
}
RejectedLine = shape(
    "RejectedLine", Answer, columns("rejected", rejected.SHOWN) | _LINE, "A line that could not be understood."
)


Rejected = shape("Rejected", _Paged, {"rejected": many(RejectedLine)}, "Lines of a cluster's logs that were rejected.")


class _Disagreement(_Href):
    text: str


Disagreement = shape("Disagreement", _Disagreement, columns("disagreements"))


Disagreements = shape(
    "Disagreements",
    _Paged,
    {"disagreements": many(Disagreement)},
    "Lines of server.log that say otherwise than the requests.",
)


class _Surprise(_Href):
    text: str


Surprise = shape("Surprise", _Surprise, columns("surprises"))


Surprises = shape(
    "Surprises",
    _Paged,
    {"surprises": many(Surprise)},
    "Answers to classic requests that are not as the model of the brokers' release predicts.",
)


class Beat(Answer):
    """A request that renewed a session."""

    at_ms: int
    by: str = Field(description="heartbeat, commit, join or sync; seen: remembered by a health row, kind not known")
    error_code: int = Field(description="of the answer; 27 tells the member that a rebalance is under way")
    renewed_at_ms: int = Field(description="the session timeout runs from here: JoinGroup and SyncGroup may wait")


class PollSeen(Answer):
    """Evidence that the application polled."""

    at_ms: int
    evidence: str
    error_bound_ms: int | None = Field(description="the poll was at most that much earlier")


class Sample(Answer):
    """What was known of a member at an instant."""

    at_ms: int
    status: str
    shown: Shown
    certainty: str
    reasons: list[str]
    group_state: str
    generation_id: int | None
    session_timeout_ms: int | None
    session_deadline_at_ms: int | None
    poll_interval_ms: int | None
    poll_timeout_ms: int | None
    poll_deadline_at_ms: int | None
    awaited_since_at_ms: int | None = Field(description="a rebalance waits for it since then, as far as can be seen")
    awaited_until_at_ms: int | None = Field(description="and until then at the latest; null if that is not known")
    member_epoch: int | None = Field(description="null in a classic group; the group's epoch is `generation_id`")
    member_state: str | None = Field(description="what `health` says of a member that has epochs")
    partitions: int | None = Field(description="partitions that it may read; null where that is not known")
    partitions_revoking: int | None = Field(description="partitions that it was told to give up and still has")
    partitions_target: int | None = Field(description="partitions that it is to have in the end, by records")
    assigned: str | None = Field(description="which it has, as `orders:0-3,7;payments:1`; null where that is not known")
    assigned_target: str | None = Field(description="which it is to have in the end, likewise")
    moving: list[Moving] | None = Field(description="partitions on their way from it or to it; null where none are")


class MemberPulse(_Href):
    """One member over a stretch of time. Instants are epoch milliseconds only: there are many of them."""

    group_id: str
    member_id: str
    client_id: str | None
    group_instance_id: str | None
    beats: list[Beat]
    polls: list[PollSeen]
    samples: list[Sample]


class Pulse(Fresh):
    """Beats, polls and deadlines of a group's members."""

    from_ms: int
    to_ms: int
    archived_to_ms: int | None = Field(
        description="up to here each request is among the beats; after it, those that health rows saw; null: all so"
    )
    members: list[MemberPulse]
    left_off: int = Field(description="members beyond `limit`")


class Readiness(Answer):
    """Whether answers can be given, and what is missing if not."""

    ready: bool
    waiting_for: list[str]
    freshness: Freshness


class Version(Answer):
    """What is running."""

    name: str
    version: str
    api: str
    personal: str = Field(
        description="hidden: addresses, connections and clients' own words are null in all answers; else shown",
        json_schema_extra={"enum": ["shown", "hidden"]},
    )
    tables: dict[str, int] = Field(description="columns per table as this version knows them")


class Problem(BaseModel):
    """RFC 9457 problem with a stable code."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(json_schema_extra={"enum": CODES})
    request_id: str
    limit: str = Field(
        "",
        description="setting whose bound the request met; absent if it met none",
        json_schema_extra={"enum": list(LIMITS)},
    )
    complete_as_of_ms: int | None = Field(
        None, description="of `beyond_complete`: up to when everything is known; null before anything was read"
    )
    complete_as_of: str | None = Field(None, description="the same instant in RFC 3339")
