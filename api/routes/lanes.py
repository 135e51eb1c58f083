"""Lanes of a group: its pulse as flat rows, for dashboards and data frames."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api import lanes, pulse, report_models
from api.asking import Limit, answer, router_of
from api.desk import DeskOf
from api.names import ClusterId, GroupId
from api.routes.pulse import WIDTH_MAX_MS, WIDTH_MS
from api.times import TimeRange

router = router_of("history")


@router.get(
    "/clusters/{cluster}/groups/{group}/lanes",
    response_model=report_models.Lanes,
    summary="Pulse of a group as flat rows",
)
async def group_lanes(
    at: DeskOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    times: TimeRange,
    limit: Limit,
    member: Annotated[str | None, Query(description="only this member, by its id")] = None,
) -> Response:
    """The same as `pulse`, one row per beat, poll and sample. A wider range than six hours is answered for its last six
    hours; `from_ms` says from when."""
    store = at.store
    store.require("health")
    store.group(cluster_id, group_id)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster)
    newest_ms = (cluster.reach.newest_ms or freshness.now_ms) + 1
    from_ms, to_ms = times
    # Dashboards ask up to their own clock; beyond what was read there is nothing, and six hours of that would be empty.
    to_ms = max(newest_ms if to_ms is None else min(to_ms, newest_ms), from_ms or 0)
    from_ms = max(to_ms - WIDTH_MS if from_ms is None else from_ms, to_ms - WIDTH_MAX_MS)
    asked = pulse.Asked(cluster_id, group_id, from_ms, to_ms, store.current.batch_id, store.settings.rows_read_max)
    members, archived_to_ms = await at.read(partial(pulse.read, store.readers["health"], store.events, asked))
    shown = [one for one in members if member is None or one["member_id"] == member]
    return answer(
        freshness,
        **lanes.flat(shown[:limit]),
        from_ms=from_ms,
        to_ms=to_ms,
        archived_to_ms=archived_to_ms,
        left_off=max(0, len(shown) - limit),
    )
