"""Ids of the URL as parameters: a dependency per noun."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query

from api.errors import ParameterRefused
from api.ids import ID_BYTES_MAX, from_segment

_ID = f"its id: as it is if it is plain, ~base64url if not, or ~ with the query parameter; at most {ID_BYTES_MAX} bytes"


def _id(name: str, segment: str, given: str | None) -> str:
    try:
        return from_segment(segment, given)
    except ValueError as error:
        raise ParameterRefused(name, f"an id that can be read (see /openapi.json); this one {error}", segment) from None


async def cluster_id(
    cluster: Annotated[str, Path(description=f"Cluster, {_ID}")],
    given: Annotated[str | None, Query(alias="cluster", description="cluster, where the path has ~")] = None,
) -> str:
    """Cluster of the URL."""
    return _id("cluster", cluster, given)


async def group_id(
    group: Annotated[str, Path(description=f"Group, {_ID}")],
    given: Annotated[str | None, Query(alias="group", description="group, where the path has ~")] = None,
) -> str:
    """Group of the URL."""
    return _id("group", group, given)


async def member_id(
    member: Annotated[str, Path(description=f"Member, {_ID}")],
    given: Annotated[str | None, Query(alias="member", description="member, where the path has ~")] = None,
) -> str:
    """Member of the URL."""
    return _id("member", member, given)


ClusterId = Annotated[str, Depends(cluster_id)]
GroupId = Annotated[str, Depends(group_id)]
MemberId = Annotated[str, Depends(member_id)]
