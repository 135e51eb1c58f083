"""Health of a group's members at an instant: what their deadlines and margins were then."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from starlette.responses import Response

from api.access import ids
from api.answers import as_dicts
from api.http.asking import LIMIT, answer, limit_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.times import AT, KNOWN_AT, at_of, known_at_of, within_reach
from api.past import archive
from api.past.as_of import Then, brought_up
from api.present.health import shown_as
from api.shapes import models
from kardia.instants import to_rfc3339
from kardia.statuses import STATUS_SEVERITY

router = router_of("history")

KINDS = ("session", "poll")


def _worst_first(row: Any) -> tuple[int, float, str]:
    deadlines = [at for at in (row.session_deadline_at_ms, row.poll_deadline_at_ms) if at is not None]
    return -STATUS_SEVERITY[shown_as(row)], min(deadlines, default=float("inf")), ids.sort_key(row.member_id)


@router.get(
    "/clusters/{cluster}/groups/{group}/health",
    response_model=models.HealthAt,
    summary="Health of a group's members at an instant",
    openapi_extra=takes(*CLUSTER, *GROUP, AT, KNOWN_AT, LIMIT),
)
async def health(request: ApiRequest) -> Response:
    """Of each member the latest row at or before `at`, not older than the server's look back; worst status first.

    With `at`, deadlines are brought up to the instant by what later rows, predictions and the archive know.
    """
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    at_ms = at_of(request)
    known_at_ms = known_at_of(request)
    limit = limit_of(request)
    store = request.context.store
    store.require("health", "transitions", "predictions")
    view, cluster = store.group(cluster_id, group_id), store.cluster(cluster_id)
    freshness = store.freshness(cluster, group=view)
    within_reach(request.context, cluster_id, group_id, at=at_ms, known_at=known_at_ms)
    rows_max, knowledge = store.settings.rows_read_max, archive.Knowledge(store.current.batch_id, known_at_ms)
    instant_ms = cluster.reach.newest_ms or freshness.now_ms if at_ms is None else at_ms

    def read() -> tuple[list[Any], Container[tuple[str, str]]]:
        about = cluster_id, group_id
        rows = archive.health_at(
            store.readers["health"], *about, knowledge, instant_ms, store.settings.health_lookback_ms, rows_max
        )
        if at_ms is None:
            return rows, [(row.member_id, kind) for row in rows for kind in KINDS if not view.is_least(row, kind)]
        return brought_up(store.readers, about, Then(at_ms, known_at_ms, knowledge.batch_id), rows, rows_max)

    rows, exact = await request.context.read(read)
    rows.sort(key=_worst_first)
    return answer(
        freshness,
        health=[as_dicts.health(row, exact) for row in rows[:limit]],
        at_ms=instant_ms,
        at=to_rfc3339(instant_ms),
        left_off=max(0, len(rows) - limit),
    )
