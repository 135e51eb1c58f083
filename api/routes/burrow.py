"""What Burrow's HTTP API has and Kardia can answer, read-only, under its paths; all else says that it is not here."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from api.access.ids import from_segment
from api.answers import burrow, lag
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
        cluster = store.cluster(cluster_id)
        found = sorted({*cluster.groups, *cluster.lags.groups})
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
    """A group whose commits and ends are read, by Burrow's rules, with the partitions that are not OK. Of any other the
    liveness of its members in Burrow's words: ERR, a deadline of a member passed; WARN, one comes near, a rebalance is
    under way, or the evidence is missing, as for every group while the feed is stale; OK. Lag is null then."""
    return await _status(request, every_partition=False)


@router.get(
    "/{cluster}/consumer/{consumer}/lag",
    response_model=report_models.BurrowStatus,
    summary="Burrow: a group with all its partitions",
    openapi_extra=takes(CONSUMER, *CLUSTER),
)
async def lag_of(request: ApiRequest) -> Response:
    """The same with every partition, those that are OK as well."""
    return await _status(request, every_partition=True)


async def _status(request: ApiRequest, *, every_partition: bool) -> Response:
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
        cluster = store.cluster(cluster_id)
        nobody_looks = cluster.lags.as_of_ms is None and group_id in cluster.groups
        offsets = None if nobody_looks else cluster.lags.groups.get(group_id)
        view = None if offsets is not None else store.group(cluster_id, group_id)
    except NotFound:
        found = burrow.status(cluster_id, group_id, None, stale=False)
        return _reply(request, burrow.MEANING, 404, status=found)
    except ApiError as error:
        return _refused(request, error)
    freshness = store.freshness(cluster)
    if offsets is not None:
        known = lag.known(cluster, freshness, store.settings.lag_stale_after_ms)
        found = burrow.status_by_offsets(
            cluster, offsets, known, stale=freshness.stale, every_partition=every_partition
        )
        return _reply(request, burrow.meaning(freshness, known), status=found)
    found = burrow.status(cluster_id, group_id, view, stale=freshness.stale)
    return _reply(request, burrow.meaning(freshness), status=found)


@router.get("/{rest:path}", include_in_schema=False)
async def not_here(request: ApiRequest) -> Response:
    """Topics, configuration and the rest: Burrow's, not Kardia's."""
    return _reply(request, burrow.NOT_HERE, 501)
