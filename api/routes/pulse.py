"""Pulse of a group: beats, polls and deadlines of its members over a stretch of time, for an electrocardiogram."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import LIMIT, answer, limit_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.times import FROM_TO, time_range_of
from api.past import pulse
from api.shapes import models

router = router_of("history")

WIDTH_MS = 60_000
"""Stretch that is answered when `from` is absent."""

WIDTH_MAX_MS = 6 * 3_600_000
"""Nobody sees a beat in a wider picture; Grafana draws some 1,500 points in a panel."""


@router.get(
    "/clusters/{cluster}/groups/{group}/pulse",
    response_model=models.Pulse,
    summary="Beats, polls and deadlines of a group's members",
    openapi_extra=takes(*CLUSTER, *GROUP, *FROM_TO, LIMIT),
)
async def group_pulse(request: ApiRequest) -> Response:
    """From `from` to `to`, absent: the last minute that was read; members by id."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    times = time_range_of(request)
    limit = limit_of(request)
    store = request.context.store
    store.require("health")
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster, group=store.group(cluster_id, group_id))
    from_ms, to_ms = times
    if to_ms is None:
        newest_ms = cluster.reach.newest_ms or freshness.now_ms
        to_ms = newest_ms + 1 if from_ms is None else min(from_ms + WIDTH_MAX_MS, max(from_ms, newest_ms + 1))
    if from_ms is None:
        from_ms = to_ms - WIDTH_MS
    if to_ms - from_ms > WIDTH_MAX_MS:
        raise ParameterRefused("from", f"at most {WIDTH_MAX_MS} ms before `to`; ask for less", str(from_ms))
    asked = pulse.Asked(cluster_id, group_id, from_ms, to_ms, store.current.batch_id, store.settings.rows_read_max)
    members, archived_to_ms = await request.context.read(
        partial(pulse.read, store.readers["health"], store.events, asked)
    )
    return answer(
        freshness,
        members=members[:limit],
        from_ms=from_ms,
        to_ms=to_ms,
        archived_to_ms=archived_to_ms,
        left_off=max(0, len(members) - limit),
    )
