"""Ids of clusters, groups and members in URLs: how they are described, and how they are read, a function per noun."""

from __future__ import annotations

from api.access.ids import ID_BYTES_MAX, from_segment
from api.errors import ParameterRefused, no_cluster
from api.http.routing import TEXT, ApiRequest, Parameter, path_parameter, query_parameter

_ID = f"its id: as it is if it is plain, ~base64url if not, or ~ with the query parameter; at most {ID_BYTES_MAX} bytes"
SEGMENT = {"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,199}|~[A-Za-z0-9_-]*)$"}
"""An id in a path, as answers write it; what is read beyond that is in `api.access.ids`."""


def _described(name: str) -> tuple[Parameter, Parameter]:
    """An id in the path, and in the query."""
    return (
        path_parameter(name, f"{name.capitalize()}, {_ID}", SEGMENT),
        query_parameter(name, f"{name}, where the path has ~", TEXT),
    )


CLUSTER = _described("cluster")
GROUP = _described("group")
MEMBER = _described("member")


def _id(request: ApiRequest, name: str) -> str:
    segment: str = request.path_params[name]
    try:
        return from_segment(segment, request.query_params.get(name))
    except ValueError as error:
        raise ParameterRefused(name, f"an id that can be read (see /openapi.json); this one {error}", segment) from None


def named_cluster_id_of(request: ApiRequest) -> str:
    """Cluster of the URL, whoever asks."""
    return _id(request, "cluster")


def cluster_id_of(request: ApiRequest) -> str:
    """Cluster of the URL; one that the token is not for is not there."""
    found = named_cluster_id_of(request)
    if not request.may_ask.allows(found):
        raise no_cluster()
    return found


def group_id_of(request: ApiRequest) -> str:
    """Group of the URL."""
    return _id(request, "group")


def member_id_of(request: ApiRequest) -> str:
    """Member of the URL."""
    return _id(request, "member")
