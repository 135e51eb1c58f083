"""What Burrow's HTTP API has and Kardia can answer, read-only, under its paths; all else says that it is not here."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import Path, Request
from starlette.responses import Response

from api.access.ids import from_segment
from api.answers import burrow
from api.errors import ApiError, NotFound, ParameterRefused, no_cluster
from api.http.asking import LIVE, router_of
from api.http.names import SEGMENT, MayAsk, NamedClusterId
from api.http.request_context import ContextOf
from api.shapes import report_models

router = router_of("burrow", prefix="/v3/kafka")

NEEDS = ("transitions", "members", "health")


def _reply(request: Request, message: str, code: int = 200, **members: Any) -> Response:
    body = burrow.answer(request.url.path, message, error=code not in (200, 404) or not members, **members)
    return Response(orjson.dumps(body), code, media_type="application/json")


def _refused(request: Request, error: ApiError) -> Response:
    reply = _reply(request, error.detail, error.status)
    reply.headers.update(error.headers)
    return reply


@router.get("", response_model=report_models.BurrowClusters, summary="Burrow: clusters", dependencies=[LIVE])
async def clusters(request: Request, context: ContextOf, scope: MayAsk) -> Response:
    """Names of all clusters."""
    try:
        context.store.require(*NEEDS)
    except ApiError as error:
        return _refused(request, error)
    return _reply(
        request, "cluster list returned", clusters=sorted(filter(scope.allows, context.store.current.clusters))
    )


@router.get(
    "/{cluster}/consumer",
    response_model=report_models.BurrowConsumers,
    summary="Burrow: groups of a cluster",
    dependencies=[LIVE],
)
async def consumers(request: Request, context: ContextOf, scope: MayAsk, cluster_id: NamedClusterId) -> Response:
    """Names of all groups of a cluster; Burrow does not page, so there is no bound but the number of groups."""
    try:
        context.store.require(*NEEDS)
        if not scope.allows(cluster_id):
            raise no_cluster()
        found = sorted(context.store.cluster(cluster_id).groups)
    except NotFound:
        return _reply(request, "cluster not found", 404)
    except ApiError as error:
        return _refused(request, error)
    return _reply(request, "consumer list returned", consumers=found)


@router.get(
    "/{cluster}/consumer/{consumer}/status",
    response_model=report_models.BurrowStatus,
    summary="Burrow: a group",
    dependencies=[LIVE],
)
async def status(
    request: Request,
    context: ContextOf,
    scope: MayAsk,
    cluster_id: NamedClusterId,
    consumer: Annotated[str, SEGMENT, Path(description="group, as it is or as ~base64url")],
) -> Response:
    """Liveness of a group in Burrow's words: ERR, a deadline of a member passed; WARN, one comes near, a rebalance is
    under way, or the evidence is missing, as for every group while the feed is stale; OK. Lag is null."""
    try:
        group_id = from_segment(consumer)
    except ValueError as error:
        raise ParameterRefused("consumer", f"an id that can be read; this one {error}", consumer) from None
    try:
        context.store.require(*NEEDS)
        if not scope.allows(cluster_id):
            raise no_cluster()
        view = context.store.group(cluster_id, group_id)
    except NotFound:
        found = burrow.status(cluster_id, group_id, None, stale=False)
        return _reply(request, burrow.MEANING, 404, status=found)
    except ApiError as error:
        return _refused(request, error)
    freshness = context.store.freshness(context.store.cluster(cluster_id))
    found = burrow.status(cluster_id, group_id, view, stale=freshness.stale)
    return _reply(request, burrow.meaning(freshness), status=found)


@router.get("/{rest:path}", include_in_schema=False)
async def not_here(request: Request) -> Response:
    """Offsets, lag, topics and configuration: Burrow's, not Kardia's."""
    return _reply(request, burrow.NOT_HERE, 501)
