"""Where server.log says otherwise than the requests: which group, when, and what each of the two says."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import PAGES, Paging, answer, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.past import by_batch, disagreements
from api.shapes import models
from kardia.tables import DISAGREEMENTS

router = router_of("clusters")

KIND = query_parameter("kind", "only disagreements of this kind", {"type": "string", "enum": list(DISAGREEMENTS)})


@router.get(
    "/clusters/{cluster}/disagreements",
    response_model=models.Disagreements,
    summary="Where server.log says otherwise than the requests",
    openapi_extra=takes(KIND, *CLUSTER, *PAGES),
)
async def of_cluster(request: ApiRequest) -> Response:
    """Disagreements of all groups, those of the latest batch first unless asked otherwise. `from` and `to` bound the
    stamp of the line of server.log."""
    cluster_id = cluster_id_of(request)
    history = paging_of(request)
    request.context.store.require()
    return await _page(request, cluster_id, None, history)


@router.get(
    "/clusters/{cluster}/groups/{group}/disagreements",
    response_model=models.Disagreements,
    summary="Where server.log says otherwise of a group than its requests",
    openapi_extra=takes(KIND, *CLUSTER, *GROUP, *PAGES),
)
async def of_group(request: ApiRequest) -> Response:
    """The same of one group."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    history = paging_of(request)
    request.context.store.require()
    request.context.store.group(cluster_id, group_id)
    return await _page(request, cluster_id, group_id, history)


async def _page(request: ApiRequest, cluster_id: str, group_id: str | None, history: Paging) -> Response:
    kind = request.query_params.get("kind")
    if kind is not None and kind not in DISAGREEMENTS:
        raise ParameterRefused("kind", f"one of {', '.join(DISAGREEMENTS)}", kind)
    store = request.context.store
    cluster = store.cluster(cluster_id)
    part, question = history.part(cluster_id, group_id, kind)
    reader, equal = store.readers["disagreements"], {"kind": kind}
    page = await request.context.read(partial(by_batch.rows, reader, cluster_id, group_id, part, equal))
    return answer(
        store.freshness(cluster),
        disagreements=[disagreements.line(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
