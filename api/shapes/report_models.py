"""Shapes of answers that are put together from several tables: differences, dangers, incident reports.

As in `api.shapes.models`: for OpenAPI and the tests, not in the way of a request.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from api.answers.chart_rows import POINTS
from api.past.incident import SETTINGS
from api.shapes.base import Answer, Shown, columns, many, shape
from api.shapes.models import ON_RUNG, Beat, Eviction, Fresh, Health, Member, PastPrediction, PollSeen, Rebalance
from kardia.lint import RULES
from kardia.statuses import SHOWN


class Changed(Answer):
    """A value that is another one now."""

    name: str
    before: str | int | None
    after: str | int | None


class GroupDifference(Answer):
    """What differs about the group itself."""

    href: str
    cluster_id: str
    group_id: str
    changed: list[Changed]
    members_before: int
    members_after: int


class MemberDifference(Answer):
    """What differs about a member that was there at both instants."""

    href: str
    member_id: str
    changed: list[Changed]


_ENDS: dict[str, Any] = {
    "from_ms": (int, ...),
    "from": (str | None, ...),
    "to_ms": (int, ...),
    "to": (str | None, ...),
}

Difference = shape(
    "Difference",
    Fresh,
    _ENDS
    | {
        "known_at_ms": (int | None, ...),
        "known_at": (str | None, ...),
        "group": (GroupDifference, ...),
        "came": many(Member),
        "went": many(Eviction),
        "came_and_went": many(Eviction),
        "changed": many(MemberDifference),
        "rebalances": many(Rebalance),
        "left_off": (dict[str, int], Field(description="entries beyond `limit`, per list")),
    },
    "What differs between a group at two instants, and what happened in between.",
)


class NextEviction(Answer):
    """A deadline of a present member."""

    href: str
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str | None
    kind: str = Field(description="session, poll or rebalance: which timeout it is")
    deadline_at_ms: int
    deadline_at: str | None
    is_least: bool
    remaining_ms: int | None
    status: str
    shown: Shown
    certainty: str
    health_at_ms: int
    health_at: str | None
    predicted: bool = Field(description="whether an eviction is predicted, or this is just the next deadline")


class NextEvictions(Fresh):
    """Deadlines of a cluster that come first; most of them will be renewed in time."""

    next_evictions: list[NextEviction]
    unknown_members: int = Field(description="present members whose deadlines are not known, so they are not listed")


class WaitedFor(Answer):
    """A member, or an id that was handed out and not used, that a rebalance waits for, as far as that can be seen."""

    href: str = Field(description="of the member; of the group for an id that is no member")
    member_id: str
    client_id: str | None
    shown_by: str
    pending: bool = Field(description="an id that was handed out and that nobody joins with")
    until_at_ms: int | None = Field(description="it goes on without it then, at the latest; null if not known")
    until_at: str | None


class Joining(Answer):
    """Who has joined in a rebalance, and is a member when it is answered."""

    member_id: str
    client_id: str | None
    since_at_ms: int
    since_at: str | None


class OpenRebalance(Answer):
    """A rebalance that is under way."""

    href: str
    group_id: str
    state: str
    since_at_ms: int
    since_at: str | None
    lasting_ms: int | None
    trigger: str | None = Field(description="null while it cannot be known: its JoinGroup is not answered yet")
    certainty: str
    joining: list[Joining] = Field(description="who has joined in it and is no member yet, as server.log says")
    waits_for: list[WaitedFor] = Field(description="those that can be seen; there may be others")
    ends_at_latest_at_ms: int | None = Field(description="of this phase; null if a timeout is not known")
    ends_at_latest_at: str | None


class OpenRebalances(Fresh):
    """Groups of a cluster that rebalance, the longest first."""

    open_rebalances: list[OpenRebalance]
    left_off: int


class GroupOf(Answer):
    """Which group a report is about."""

    href: str
    cluster_id: str
    group_id: str


class Evidence(Answer):
    """What a sentence rests on."""

    table: str
    seq: int | None
    shown_by: str
    source: str | None
    start: int | None
    end: int | None
    event: str | None
    client_id: str | None
    logged_at_ms: float | None


class Sentence(Answer):
    """One thing that happened, in words; ids in it are quoted and escaped where they are not plain."""

    at_ms: int
    at: str
    kind: str
    text: str
    certainty: str
    member_ids: list[str]
    evidence: list[Evidence]


class Causes(Answer):
    """How often each trigger and each cause of an end occurred, the most frequent first."""

    triggers: dict[str, int]
    ends: dict[str, int]


class Finding(Answer):
    """Something about the settings that is worth changing."""

    rule: str = Field(json_schema_extra={"enum": [rule.name for rule in RULES]})
    severity: str
    text: str
    advice: str
    certainty: str
    member_ids: list[str]


Settings = shape("Settings", Answer, columns("members", SETTINGS), "Who a member was, and its timeouts in force.")


class Spoken(Answer):
    """How many members speak each protocol from an instant on."""

    at: str
    at_ms: int
    classic: int
    consumer: int


class Migration(Answer):
    """How a group changed between the classic and the consumer protocol."""

    speaks: list[Spoken]
    conversions: list[Sentence]
    in_the_way: list[Sentence]


Incident = shape(
    "Incident",
    Fresh,
    _ENDS
    | {
        "known_at_ms": (int | None, ...),
        "known_at": (str | None, ...),
        "group": (GroupOf, ...),
        **ON_RUNG,
        "timeline": many(Sentence),
        "causes": (Causes, ...),
        "evictions": many(Eviction),
        "rebalances": many(Rebalance),
        "predictions": many(PastPrediction),
        "deadlines": many(Health),
        "settings": many(Settings),
        "lint": many(Finding),
        "migration": (Migration | None, ...),
        "left_off": (dict[str, int], Field(description="earlier entries beyond `limit`, per list")),
    },
    "What happened to a group in a stretch of time, and what is odd about its settings.",
)


Why = shape(
    "Why",
    Fresh,
    {
        "group": (GroupOf, ...),
        "at_ms": (int | None, ...),
        "at": (str | None, ...),
        "sentences": (list[Sentence], Field(description="in order of time; the last says how the group stood")),
    },
    "The last rebalance or eviction of a group in sentences.",
)


class Lost(Answer):
    """A member that was taken away from its group."""

    href: str
    member_id: str
    client_id: str | None
    ended_at_ms: int = Field(description="when the membership ended")
    ended_at: str | None
    end_cause: str = Field(description="what ended it")
    certainty: str


class Longest(Answer):
    """The longest rebalance of a group in a stretch of time."""

    started_at_ms: int = Field(description="when it began")
    started_at: str | None
    duration_ms: int = Field(description="how long it lasted")
    trigger: str = Field(description="what began it")
    certainty: str
    waited_for: str | None = Field(description="member id that it waited for longest; null if for nobody")
    waited_for_client_id: str | None = Field(description="its client.id; null if not known")
    waited_ms: int | None = Field(description="how long it waited for it")


class GroupIncidents(Answer):
    """What a group went through in a stretch of time."""

    href: str
    group_id: str
    first_at_ms: int = Field(description="when the first of it happened")
    first_at: str | None
    last_at_ms: int = Field(description="when the last of it happened")
    last_at: str | None
    evictions: int = Field(description="members that it lost against their will")
    ends: dict[str, int] = Field(description="ended memberships by cause")
    evicted: list[Lost] = Field(description="the latest of those it lost against their will, in order of time")
    rebalances: int = Field(description="rebalances that began or lasted in it")
    rebalancing_ms: int | None = Field(description="what those of known length lasted, together; null if there is none")
    refusals: int = Field(description="how often a member was fenced, or told that its static id is another one's")
    triggers: dict[str, int] = Field(description="rebalances by what began them")
    longest: Longest | None = Field(description="of those that are over")


Incidents = shape(
    "Incidents",
    Fresh,
    {
        "from_ms": (int | None, ...),
        "from": (str | None, ...),
        "to_ms": (int | None, ...),
        "to": (str | None, ...),
        "groups_known": (int, Field(description="groups of the cluster, also those of which nothing is told")),
        "incidents": (list[GroupIncidents], Field(description="the worst first")),
        "left_off": (int, Field(description="groups beyond `limit`")),
    },
    "What the groups of a cluster went through in a stretch of time, the worst first.",
)


class Lane(Answer):
    """A member as a lane of a picture."""

    href: str
    group_id: str
    lane: str = Field(description="static id, else client id, with the end of the member id where others share it")
    member_id: str
    client_id: str | None
    group_instance_id: str | None
    last_status: str


class LaneBeat(Beat):
    """A request that renewed a session, and the silence that it ended."""

    lane: str
    gap_ms: int | None = Field(
        description="since the session was last renewed; null where requests between the two may be missing: beside "
        "one that only a sample remembers (`seen`), across a time of which nothing is known, and for the first"
    )
    gap_ratio: float | None = Field(description="the same as a part of the session timeout in force")


class LanePoll(PollSeen):
    """Evidence that the application polled."""

    lane: str


class LaneSample(Answer):
    """What was known of a member at an instant."""

    lane: str
    at_ms: int
    status: str
    shown: Shown
    certainty: str
    group_state: str
    generation_id: int | None
    session_headroom_ratio: float | None
    poll_headroom_ratio: float | None


class GroupState(Answer):
    """What a group was from an instant on."""

    at_ms: int
    state: str
    certainty: str = Field(description="provisional: members show it, and what began it is not known yet")


class Lanes(Fresh):
    """State of a group, beats, polls and deadlines of its members, one row per point, in order of time.

    While the feed is stale the last row of each lane, and of the states, is `unknown` from where knowledge ends.
    """

    from_ms: int
    to_ms: int
    archived_to_ms: int | None
    states: list[GroupState] = Field(description="the first at from_ms")
    lanes: list[Lane]
    beats: list[LaneBeat]
    polls: list[LanePoll]
    samples: list[LaneSample]
    left_off: int = Field(description="members beyond `limit`")


class Point(Answer):
    """One point of a picture; fields that its kind does not have are null."""

    kind: str = Field(json_schema_extra={"enum": list(POINTS)}, description="what it is a point of")
    at_ms: int
    lane: str | None
    state: str | None = Field(description="of the group from here on")
    shown: str | None = Field(
        json_schema_extra={"enum": [*SHOWN, None]}, description="status of the member at a sample"
    )
    gap_ratio: float | None = Field(description="silence that a beat ended, as a part of the session timeout")
    session_headroom_ratio: float | None
    poll_headroom_ratio: float | None
    evidence: str | None = Field(description="what shows a poll")
    error_bound_ms: int | None


class Points(Fresh):
    """What `Lanes` has, as one list in order of time."""

    from_ms: int
    to_ms: int
    archived_to_ms: int | None
    lanes: list[Lane]
    points: list[Point] = Field(description="in order of time")
    left_off: int = Field(description="members beyond `limit`")


class BurrowRequest(Answer):
    """What was asked, as Burrow repeats it."""

    url: str
    host: str


class BurrowAnswer(Answer):
    """What all answers of Burrow have."""

    error: bool
    message: str
    request: BurrowRequest


class BurrowClusters(BurrowAnswer):
    """Burrow's list of clusters."""

    clusters: list[str]


class BurrowConsumers(BurrowAnswer):
    """Burrow's list of groups."""

    consumers: list[str]


class BurrowCommit(Answer):
    """A commit, as Burrow shows it."""

    offset: int = Field(description="committed offset")
    timestamp: int = Field(description="when it was stored, by the broker's clock, epoch milliseconds")
    observedAt: int = Field(description="the same: Kardia takes the broker's clock")  # noqa: N815  Burrow's name
    lag: int | None = Field(description="records behind it now; null of the first of the window, and if not known")


class BurrowPartition(Answer):
    """Burrow's status of a partition."""

    topic: str = Field(description="topic")
    partition: int = Field(description="partition of the topic")
    owner: str = Field(description="member that has it; empty if nobody, or not known")
    client_id: str = Field(description="its client.id")
    status: str = Field(json_schema_extra={"enum": ["OK", "WARN", "STOP", "STALL", "REWIND", "UNKNOWN"]})
    start: BurrowCommit = Field(description="first commit of the window")
    end: BurrowCommit = Field(description="last commit")
    current_lag: int | None = Field(description="records that the group has not read; null if not known")
    complete: float = Field(description="share of the ten commits of a window that were seen; 0 if lag is not known")


class BurrowGroup(Answer):
    """Burrow's status of a group, filled with what Kardia knows."""

    cluster: str
    group: str
    status: str = Field(json_schema_extra={"enum": ["NOTFOUND", "OK", "WARN", "ERR"]})
    complete: float = Field(
        description="share of the partitions whose window of commits is full; where no commits are read, of the "
        "members about whom enough is known"
    )
    partitions: list[BurrowPartition] = Field(description="partitions that are not OK; under `lag` all")
    partition_count: int = Field(description="partitions that it has commits for")
    maxlag: BurrowPartition | None = Field(description="the partition with most lag; null if none is known")
    totallag: int | None = Field(description="sum of what is known; null if nothing is")


class BurrowStatus(BurrowAnswer):
    """Burrow's answer about a group."""

    status: BurrowGroup
