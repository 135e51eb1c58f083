"""What happened last night: all groups of a cluster that lost members or rebalanced, the worst first."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.http.asking import LIMIT, answer, limit_of
from api.http.names import CLUSTER, cluster_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.times import FROM_TO, time_range_of
from api.past.incidents import Stretch, incidents
from api.shapes import report_models
from kardia.instants import to_rfc3339

router = router_of("history")

NEEDS = ("members", "rebalances", "transitions")


@router.get(
    "/clusters/{cluster}/incidents",
    response_model=report_models.Incidents,
    summary="What groups went through, the worst first",
    openapi_extra=takes(*CLUSTER, *FROM_TO, LIMIT),
)
async def all_incidents(request: ApiRequest) -> Response:
    """Groups that lost members or rebalanced from `from` to before `to`, the worst first; absent, in all that is kept.
    `left_off` counts groups beyond `limit`."""
    cluster_id, limit = cluster_id_of(request), limit_of(request)
    from_ms, to_ms = time_range_of(request)
    store = request.context.store
    store.require(*NEEDS)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster)
    stretch = Stretch(cluster_id, from_ms, to_ms, freshness.batch_id)
    found = await request.context.read(partial(incidents, store.readers, stretch, store.settings.rows_read_max))
    return answer(
        freshness,
        from_ms=from_ms,
        **{"from": to_rfc3339(from_ms)},
        to_ms=to_ms,
        to=to_rfc3339(to_ms),
        groups_known=len(cluster.groups),
        incidents=found[:limit],
        left_off=max(0, len(found) - limit),
    )
