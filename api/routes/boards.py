"""What dashboards show of the present of a cluster, a group, a member. Nearly all moves with the clock, so no ETag."""

from __future__ import annotations

from starlette.responses import Response

from api.answers import boards
from api.http.asking import Limit, answer, router_of
from api.http.lives import lives_of
from api.http.names import ClusterId, GroupId, MemberId
from api.http.request_context import ContextOf
from api.shapes import board_models

router = router_of("boards")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")


@router.get(
    "/boards/clusters/{cluster}",
    response_model=board_models.ClusterBoard,
    summary="What a dashboard shows of a cluster now",
)
async def cluster_board(context: ContextOf, cluster_id: ClusterId, limit: Limit) -> Response:
    """Who is next, rebalances under way, the worst groups: nothing of it is said of a present that is not known."""
    context.store.require(*NEEDS)
    view = context.store.cluster(cluster_id)
    freshness = context.store.freshness(view)
    return answer(freshness, **boards.cluster(view, freshness, limit))


@router.get(
    "/boards/clusters/{cluster}/groups/{group}",
    response_model=board_models.GroupBoard,
    summary="What a dashboard shows of a group now",
)
async def group_board(context: ContextOf, cluster_id: ClusterId, group_id: GroupId, limit: Limit) -> Response:
    """Its state, whom a rebalance waits for, its members with what is left of their deadlines."""
    context.store.require(*NEEDS)
    view = context.store.group(cluster_id, group_id)
    freshness = context.store.freshness(context.store.cluster(cluster_id))
    return answer(freshness, **boards.group(view, freshness, limit))


@router.get(
    "/boards/clusters/{cluster}/groups/{group}/members/{member}",
    response_model=board_models.MemberBoard,
    summary="What a dashboard shows of a member now",
)
async def member_board(context: ContextOf, cluster_id: ClusterId, group_id: GroupId, member_id: MemberId) -> Response:
    """Its latest life, present or over."""
    store = context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    [life, *_] = await lives_of(context, view, member_id)
    freshness = store.freshness(store.cluster(cluster_id))
    return answer(freshness, member=boards.member(view, life, freshness))
