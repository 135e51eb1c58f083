"""What dashboards show of the present of a cluster, a group, a member. Nearly all moves with the clock, so no ETag."""

from __future__ import annotations

from starlette.responses import Response

from api.answers import boards
from api.http.asking import LIMIT, answer, answer_about_cluster, limit_of
from api.http.member_lives import lives_of
from api.http.names import CLUSTER, GROUP, MEMBER, cluster_id_of, group_id_of, member_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.shapes import board_models

router = router_of("boards")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")


@router.get(
    "/boards/clusters/{cluster}",
    response_model=board_models.ClusterBoard,
    summary="What a dashboard shows of a cluster now",
    openapi_extra=takes(*CLUSTER, LIMIT),
)
async def cluster_board(request: ApiRequest) -> Response:
    """Who is next, rebalances under way, the worst groups: nothing of it is said of a present that is not known."""
    return answer_about_cluster(request, NEEDS, boards.cluster)


@router.get(
    "/boards/clusters/{cluster}/groups/{group}",
    response_model=board_models.GroupBoard,
    summary="What a dashboard shows of a group now",
    openapi_extra=takes(*CLUSTER, *GROUP, LIMIT),
)
async def group_board(request: ApiRequest) -> Response:
    """Its state, whom a rebalance waits for, its members with what is left of their deadlines."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    limit = limit_of(request)
    store = request.context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    freshness = store.freshness(store.cluster(cluster_id), group=view)
    return answer(freshness, **boards.group(view, freshness, limit))


@router.get(
    "/boards/clusters/{cluster}/groups/{group}/members/{member}",
    response_model=board_models.MemberBoard,
    summary="What a dashboard shows of a member now",
    openapi_extra=takes(*CLUSTER, *GROUP, *MEMBER),
)
async def member_board(request: ApiRequest) -> Response:
    """Its latest life, present or over."""
    cluster_id, group_id, member_id = cluster_id_of(request), group_id_of(request), member_id_of(request)
    store = request.context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    [life, *_] = await lives_of(request.context, view, member_id)
    freshness = store.freshness(store.cluster(cluster_id), group=view)
    return answer(freshness, member=boards.member(view, life, freshness))
