"""Rebalances of a group: what started each, whom it waited for, how long it took."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.answers import as_dicts
from api.http.asking import PAGES, answer, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.past import archive
from api.shapes import models

router = router_of("history")


@router.get(
    "/clusters/{cluster}/groups/{group}/rebalances",
    response_model=models.Rebalances,
    summary="Rebalances of a group",
    openapi_extra=takes(*CLUSTER, *GROUP, *PAGES),
)
async def rebalances(request: ApiRequest) -> Response:
    """Standing rows, newest first unless asked otherwise; `from` and `to` bound the instant a rebalance began."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    history = paging_of(request)
    store = request.context.store
    store.require("rebalances")
    view = store.group(cluster_id, group_id)
    part, question = history.part(cluster_id, group_id)
    page = await request.context.read(
        partial(
            archive.rebalances, store.readers["rebalances"], cluster_id, group_id, part, store.settings.rows_read_max
        )
    )
    freshness = store.freshness(store.cluster(cluster_id), group=view)
    return answer(
        freshness,
        rebalances=[as_dicts.rebalance(row, freshness) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
