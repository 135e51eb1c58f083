"""Answers to classic requests that are not as the model of the brokers' release predicts."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import PAGES, Paging, answer, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.past import by_batch, surprises
from api.shapes import models
from kardia.tables import SURPRISE_CLASSES

router = router_of("clusters")

CLASS = query_parameter(
    "surprise_class", "only surprises of this class", {"type": "string", "enum": list(SURPRISE_CLASSES)}
)


@router.get(
    "/clusters/{cluster}/surprises",
    response_model=models.Surprises,
    summary="Answers that are not as the model of the release predicts",
    openapi_extra=takes(CLASS, *CLUSTER, *PAGES),
)
async def of_cluster(request: ApiRequest) -> Response:
    """Surprises of all groups, those of the latest batch first unless asked otherwise. `from` and `to` bound the
    instant of the answer."""
    cluster_id = cluster_id_of(request)
    history = paging_of(request)
    request.context.store.require()
    return await _page(request, cluster_id, None, history)


@router.get(
    "/clusters/{cluster}/groups/{group}/surprises",
    response_model=models.Surprises,
    summary="Answers to a group that are not as the model of the release predicts",
    openapi_extra=takes(CLASS, *CLUSTER, *GROUP, *PAGES),
)
async def of_group(request: ApiRequest) -> Response:
    """The same of one group."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    history = paging_of(request)
    request.context.store.require()
    request.context.store.group(cluster_id, group_id)
    return await _page(request, cluster_id, group_id, history)


async def _page(request: ApiRequest, cluster_id: str, group_id: str | None, history: Paging) -> Response:
    wanted = request.query_params.get("surprise_class")
    if wanted is not None and wanted not in SURPRISE_CLASSES:
        raise ParameterRefused("surprise_class", f"one of {', '.join(SURPRISE_CLASSES)}", wanted)
    store = request.context.store
    cluster = store.cluster(cluster_id)
    part, question = history.part(cluster_id, group_id, wanted)
    reader, equal = store.readers["surprises"], {"surprise_class": wanted}
    page = await request.context.read(partial(by_batch.rows, reader, cluster_id, group_id, part, equal))
    return answer(
        store.freshness(cluster),
        surprises=[surprises.surprise(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
