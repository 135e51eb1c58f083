"""Rebalances of a group: what started each, whom it waited for, how long it took."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.answers import answers
from api.http.asking import History, answer, router_of
from api.http.names import ClusterId, GroupId
from api.http.request_context import ContextOf
from api.past import archive
from api.shapes import models

router = router_of("history")


@router.get(
    "/clusters/{cluster}/groups/{group}/rebalances", response_model=models.Rebalances, summary="Rebalances of a group"
)
async def rebalances(context: ContextOf, cluster_id: ClusterId, group_id: GroupId, history: History) -> Response:
    """Standing rows, newest first unless asked otherwise; `from` and `to` bound the instant a rebalance began."""
    store = context.store
    store.require("rebalances")
    store.group(cluster_id, group_id)
    window, question = history.window(cluster_id, group_id)
    page = await context.read(
        partial(
            archive.rebalances, store.readers["rebalances"], cluster_id, group_id, window, store.settings.rows_read_max
        )
    )
    freshness = store.freshness(store.cluster(cluster_id))
    return answer(
        freshness,
        rebalances=[answers.rebalance(row, freshness) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
