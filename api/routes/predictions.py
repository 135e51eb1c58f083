"""Predictions of a group: which timeouts were said beforehand, when, and what became of each."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.answers import as_dicts
from api.http.asking import PAGES, answer, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import TEXT, ApiRequest, query_parameter, router_of, takes
from api.past import archive
from api.shapes import models

router = router_of("history")

ONE_MEMBER = query_parameter("member", "only about this member, by its id", TEXT)


@router.get(
    "/clusters/{cluster}/groups/{group}/predictions",
    response_model=models.Predictions,
    summary="Predictions about members of a group",
    openapi_extra=takes(ONE_MEMBER, *CLUSTER, *GROUP, *PAGES),
)
async def predictions(request: ApiRequest) -> Response:
    """Standing rows, newest first unless asked otherwise; `from` and `to` bound the instant it was first said."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    history = paging_of(request)
    member = request.query_params.get("member")
    store = request.context.store
    store.require("predictions")
    view = store.group(cluster_id, group_id)
    part, question = history.part(cluster_id, group_id, member)
    page = await request.context.read(
        partial(
            archive.predictions,
            store.readers["predictions"],
            cluster_id,
            group_id,
            part,
            store.settings.rows_read_max,
            member,
        )
    )
    freshness = store.freshness(store.cluster(cluster_id), group=view)
    return answer(
        freshness,
        predictions=[as_dicts.past_prediction(row, freshness) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
