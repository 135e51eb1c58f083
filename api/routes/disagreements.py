"""Where server.log says otherwise than the requests: which group, when, and what each of the two says."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import History, answer, router_of
from api.http.names import ClusterId, GroupId
from api.http.request_context import ContextOf, RequestContext
from api.past import disagreements
from api.shapes import models
from kardia.tables import DISAGREEMENTS

router = router_of("clusters")

KindOf = Annotated[
    str | None,
    WithJsonSchema({"type": "string", "enum": list(DISAGREEMENTS)}),
    Query(description="only disagreements of this kind"),
]


@router.get(
    "/clusters/{cluster}/disagreements",
    response_model=models.Disagreements,
    summary="Where server.log says otherwise than the requests",
)
async def of_cluster(context: ContextOf, cluster_id: ClusterId, history: History, kind: KindOf = None) -> Response:
    """Disagreements of all groups, those of the latest batch first unless asked otherwise. `from` and `to` bound the
    stamp of the line of server.log."""
    context.store.require()
    return await _page(context, cluster_id, None, history, kind)


@router.get(
    "/clusters/{cluster}/groups/{group}/disagreements",
    response_model=models.Disagreements,
    summary="Where server.log says otherwise of a group than its requests",
)
async def of_group(
    context: ContextOf, cluster_id: ClusterId, group_id: GroupId, history: History, kind: KindOf = None
) -> Response:
    """The same of one group."""
    context.store.require()
    context.store.group(cluster_id, group_id)
    return await _page(context, cluster_id, group_id, history, kind)


async def _page(
    context: RequestContext, cluster_id: str, group_id: str | None, history: History, kind: str | None
) -> Response:
    if kind is not None and kind not in DISAGREEMENTS:
        raise ParameterRefused("kind", f"one of {', '.join(DISAGREEMENTS)}", kind)
    store = context.store
    cluster = store.cluster(cluster_id)
    window, question = history.window(cluster_id, group_id, kind)
    reader = store.readers["disagreements"]
    page = await context.read(partial(disagreements.lines, reader, cluster_id, group_id, window, kind))
    return answer(
        store.freshness(cluster),
        disagreements=[disagreements.line(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
