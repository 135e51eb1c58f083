"""Evictions of a group: memberships that were taken away, when and why."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.answers import as_dicts
from api.errors import ParameterRefused
from api.http.asking import PAGES, answer, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.past import archive
from api.shapes import models
from kardia.tables import END_CAUSES, EVICTION_CAUSES

router = router_of("history")

CAUSE = query_parameter(
    "cause",
    f"end causes, may be repeated; absent: {', '.join(EVICTION_CAUSES)}",
    {"type": "array", "items": {"type": "string", "enum": list(END_CAUSES)}},
)


@router.get(
    "/clusters/{cluster}/groups/{group}/evictions",
    response_model=models.Evictions,
    summary="Evictions of a group",
    openapi_extra=takes(CAUSE, *CLUSTER, *GROUP, *PAGES),
)
async def evictions(request: ApiRequest) -> Response:
    """Ended memberships, newest first unless asked otherwise; `from` and `to` bound the instant of the end."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    history = paging_of(request)
    given_causes = request.query_params.getlist("cause")
    for given in given_causes:
        if given not in END_CAUSES:
            raise ParameterRefused("cause", f"one of {', '.join(END_CAUSES)}", given)
    causes = frozenset(given_causes or EVICTION_CAUSES)
    store = request.context.store
    store.require("members")
    view = store.group(cluster_id, group_id)
    part, question = history.part(cluster_id, group_id, sorted(causes))
    page = await request.context.read(
        partial(
            archive.evictions,
            store.readers["members"],
            cluster_id,
            group_id,
            part,
            causes,
            store.settings.rows_read_max,
        )
    )
    return answer(
        store.freshness(store.cluster(cluster_id), group=view),
        evictions=[as_dicts.eviction(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
