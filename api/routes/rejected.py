"""Lines of the logs that could not be understood: what, where, what was expected, why not."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import PAGES, answer, paging_of
from api.http.names import CLUSTER, cluster_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.past import rejected
from api.shapes import models
from kardia.events import REJECT_REASONS

router = router_of("clusters")

REASON = query_parameter(
    "reason", "only lines that were rejected for this", {"type": "string", "enum": list(REJECT_REASONS)}
)


@router.get(
    "/clusters/{cluster}/rejected",
    response_model=models.Rejected,
    summary="Lines that could not be understood",
    openapi_extra=takes(REASON, *CLUSTER, *PAGES),
)
async def rejected_lines(request: ApiRequest) -> Response:
    """Rejected lines, those of the latest batch first unless asked otherwise. `from` and `to` bound a line's own stamp;
    a line without one that can be read may be of any time and is in every range."""
    cluster_id = cluster_id_of(request)
    history = paging_of(request)
    reason = request.query_params.get("reason")
    if reason is not None and reason not in REJECT_REASONS:
        raise ParameterRefused("reason", f"one of {', '.join(REJECT_REASONS)}", reason)
    store = request.context.store
    store.require()
    cluster = store.cluster(cluster_id)
    part, question = history.part(cluster_id, reason)
    page = await request.context.read(partial(rejected.lines, store.rejected, cluster_id, part, reason))
    return answer(
        store.freshness(cluster),
        rejected=[rejected.line(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
