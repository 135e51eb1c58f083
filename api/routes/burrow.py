"""What Burrow's HTTP API has and Kardia can answer, read-only, under its paths; all else says that it is not here."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from api.access.ids import from_segment
from api.answers import burrow
from api.errors import ApiError, NotFound, ParameterRefused, no_cluster
from api.http.names import CLUSTER, SEGMENT, named_cluster_id_of
from api.http.routing import ApiRequest, path_parameter, router_of, takes
from api.http.validators import live_tag
from api.shapes import report_models

router = router_of("burrow", prefix="/v3/kafka")

NEEDS = ("transitions", "members", "health")

CONSUMER = path_parameter("consumer", "group, as it is or as ~base64url", SEGMENT)


def _reply(request: ApiRequest, message: str, code: int = 200, **members: Any) -> Response:
    body = burrow.answer(request.url.path, message, error=code not in (200, 404) or not members, **members)
    return Response(orjson.dumps(body), code, media_type="application/json")


def _refused(request: ApiRequest, error: ApiError) -> Response:
    reply = _reply(request, error.detail, error.status)
    reply.headers.update(error.headers)
    return reply


@router.get("", response_model=report_models.BurrowClusters, summary="Burrow: clusters")
async def clusters(request: ApiRequest) -> Response:
    """Names of all clusters."""
    live_tag(request)
    store = request.context.store
    try:
        store.require(*NEEDS)
    except ApiError as error:
        return _refused(request, error)
    return _reply(
        request,
        "cluster list returned",
        clusters=sorted(filter(request.may_ask.allows, store.current.clusters)),
    )


@router.get(
    "/{cluster}/consumer",
    response_model=report_models.BurrowConsumers,
    summary="Burrow: groups of a cluster",
    openapi_extra=takes(*CLUSTER),
)
async def consumers(request: ApiRequest) -> Response:
    """Names of all groups of a cluster; Burrow does not page, so there is no bound but the number of groups."""
    live_tag(request)
    cluster_id = named_cluster_id_of(request)
    store = request.context.store
    try:
        store.require(*NEEDS)
        if not request.may_ask.allows(cluster_id):
            raise no_cluster()
        found = sorted(store.cluster(cluster_id).groups)
    except NotFound:
        return _reply(request, "cluster not found", 404)
    except ApiError as error:
        return _refused(request, error)
    return _reply(request, "consumer list returned", consumers=found)


@router.get(
    "/{cluster}/consumer/{consumer}/status",
    response_model=report_models.BurrowStatus,
    summary="Burrow: a group",
    openapi_extra=takes(CONSUMER, *CLUSTER),
)
async def status(request: ApiRequest) -> Response:
    """Liveness of a group in Burrow's words: ERR, a deadline of a member passed; WARN, one comes near, a rebalance is
    under way, or the evidence is missing, as for every group while the feed is stale; OK. Lag is null."""
    live_tag(request)
    cluster_id = named_cluster_id_of(request)
    consumer: str = request.path_params["consumer"]
    try:
        group_id = from_segment(consumer)
    except ValueError as error:
        raise ParameterRefused("consumer", f"an id that can be read; this one {error}", consumer) from None
    store = request.context.store
    try:
        store.require(*NEEDS)
        if not request.may_ask.allows(cluster_id):
            raise no_cluster()
        view = store.group(cluster_id, group_id)
    except NotFound:
        found = burrow.status(cluster_id, group_id, None, stale=False)
        return _reply(request, burrow.MEANING, 404, status=found)
    except ApiError as error:
        return _refused(request, error)
    freshness = store.freshness(store.cluster(cluster_id))
    found = burrow.status(cluster_id, group_id, view, stale=freshness.stale)
    return _reply(request, burrow.meaning(freshness), status=found)


@router.get("/{rest:path}", include_in_schema=False)
async def not_here(request: ApiRequest) -> Response:
    """Offsets, lag, topics and configuration: Burrow's, not Kardia's."""
    return _reply(request, burrow.NOT_HERE, 501)
