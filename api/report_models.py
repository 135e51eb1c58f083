"""Shapes of answers that are put together from several tables: differences, dangers, incident reports.

As in `api.models`: for OpenAPI and the tests, not in the way of a request.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from api.models import Answer, Eviction, Fresh, Member, Rebalance, many, shape


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
