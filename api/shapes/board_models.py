"""Shapes of what dashboards ask of the present (`api.answers.boards`). For OpenAPI and the tests."""

from __future__ import annotations

from pydantic import Field

from api.shapes.base import Answer, Shown
from api.shapes.models import Fresh
from kardia.statuses import SHOWN

_LEFT = "null while the feed is stale or has not reached a deadline that the clock has passed; below 0 it is over"

_IN_WORDS = (
    "the same in words: `9.2 s`, `≥ 9.2 s` where it may have been renewed since, `due 0.4 s ago`, `ended` or "
    "`not known`"
)


class _OnBoard(Answer):
    href: str = Field(description="where more is said of it")


class NextOnBoard(_OnBoard):
    """A deadline that comes early."""

    group_id: str
    member_id: str
    client_id: str | None
    kind: str = Field(description="session, poll or rebalance: which timeout it is")
    left_ms: int | None = Field(description=_LEFT)
    left: str = Field(description=_IN_WORDS)
    status: Shown
    predicted: str = Field(
        json_schema_extra={"enum": ["yes", "no", "unknown"]},
        description="whether the timeout is expected to strike, or this is just the next deadline",
    )
    certainty: str


class RebalanceOnBoard(_OnBoard):
    """A rebalance that is under way."""

    group_id: str
    state: str
    lasting_ms: int | None
    waits_for: str = Field(description="client id, or that it cannot be seen yet")
    waits_for_others: int = Field(description="how many more it is known to wait for")
    shown_by: str | None
    ends_at_latest_at_ms: int | None = Field(description="end of this phase at the latest; null if not known")
    trigger: str


class WaitedForOnBoard(_OnBoard):
    """Whom a rebalance waits for."""

    member_id: str
    client_id: str | None
    shown_by: str
    pending: str = Field(json_schema_extra={"enum": ["yes", "no"]})
    until_at_ms: int | None
    until_at: str | None
    left_ms: int | None = Field(description="until then")


class MemberOnBoard(_OnBoard):
    """A membership, present or over."""

    group_id: str
    member_id: str
    client_id: str | None
    group_instance_id: str | None
    status: Shown
    session_left_ms: int | None = Field(description=_LEFT)
    poll_left_ms: int | None = Field(description=_LEFT)
    session_left: str = Field(description=_IN_WORDS)
    poll_left: str
    poll_evidence: str | None
    certainty: str
    reason: str | None = Field(description="why the status is what it is; null of a member that is well")
    end_cause: str = Field(description="why it is no longer a member; `still a member`, or `unknown` of a stale feed")
    ended_at_ms: int | None
    ended_at: str | None


class GroupOnBoard(_OnBoard):
    """A group as it stands."""

    group_id: str
    state: str = Field(description="its state; Unknown while the feed is stale, or its broker silent beyond a session")
    state_since_at_ms: int | None
    state_certainty: str
    status: str = Field(json_schema_extra={"enum": [*SHOWN, "no members"]}, description="the worst of its members")
    members: int
    in_danger: int | None = Field(description="imminent, overdue or awaited; null while the feed is stale")
    overdue: int | None
    imminent: int | None
    awaited: int | None = Field(description="members that a rebalance waits for")
    late: int | None
    unknown: int | None
    generation_id: int | None
    rebalancing_for_ms: int | None = Field(description="null if it does not rebalance, or nobody knows")
    last_rebalance_at_ms: int | None = Field(description="when the latest rebalance began")
    last_trigger: str | None = Field(description="what started it")


class ClusterBoard(Fresh):
    """A cluster as it stands."""

    next: list[NextOnBoard] = Field(description="deadlines that come first")
    rebalances: list[RebalanceOnBoard]
    groups: list[GroupOnBoard]


class GroupBoard(Fresh):
    """A group, whom it waits for, and its members."""

    group: GroupOnBoard
    waits_for: list[WaitedForOnBoard] = Field(description="whom a rebalance waits for, as far as that can be seen")
    members: list[MemberOnBoard]


class MemberBoard(Fresh):
    """A member."""

    member: MemberOnBoard
