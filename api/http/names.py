"""Ids of clusters, groups and members in URLs, as FastAPI dependencies."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import WithJsonSchema

from api.access.guard import MAY_ASK
from api.access.ids import ID_BYTES_MAX, from_segment
from api.access.tokens import Scope
from api.errors import ParameterRefused, no_cluster

_ID = f"its id: as it is if it is plain, ~base64url if not, or ~ with the query parameter; at most {ID_BYTES_MAX} bytes"
SEGMENT = WithJsonSchema({"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,199}|~[A-Za-z0-9_-]*)$"})
"""An id in a path, as answers write it; what is read beyond that is in `api.access.ids`."""
AN_ID = WithJsonSchema({"type": "string"})
"""An id as a query parameter: any text."""


def _id(name: str, segment: str, given: str | None) -> str:
    try:
        return from_segment(segment, given)
    except ValueError as error:
        raise ParameterRefused(name, f"an id that can be read (see /openapi.json); this one {error}", segment) from None


async def may_ask(request: Request) -> Scope:
    """What the token of the request is for."""
    found: Scope = request.scope[MAY_ASK]
    return found


MayAsk = Annotated[Scope, Depends(may_ask)]


async def named_cluster_id(
    cluster: Annotated[str, SEGMENT, Path(description=f"Cluster, {_ID}")],
    given: Annotated[str | None, AN_ID, Query(alias="cluster", description="cluster, where the path has ~")] = None,
) -> str:
    """Cluster of the URL, whoever asks."""
    return _id("cluster", cluster, given)


NamedClusterId = Annotated[str, Depends(named_cluster_id)]


async def cluster_id(scope: MayAsk, found: NamedClusterId) -> str:
    """Cluster of the URL; one that the token is not for is not there."""
    if not scope.allows(found):
        raise no_cluster()
    return found


async def group_id(
    group: Annotated[str, SEGMENT, Path(description=f"Group, {_ID}")],
    given: Annotated[str | None, AN_ID, Query(alias="group", description="group, where the path has ~")] = None,
) -> str:
    """Group of the URL."""
    return _id("group", group, given)


async def member_id(
    member: Annotated[str, SEGMENT, Path(description=f"Member, {_ID}")],
    given: Annotated[str | None, AN_ID, Query(alias="member", description="member, where the path has ~")] = None,
) -> str:
    """Member of the URL."""
    return _id("member", member, given)


ClusterId = Annotated[str, Depends(cluster_id)]
GroupId = Annotated[str, Depends(group_id)]
MemberId = Annotated[str, Depends(member_id)]
