"""Health of a group's members at an instant: what their deadlines and margins were then."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from api import answers, archive, models
from api.asking import Limit, answer, router_of
from api.desk import DeskOf
from api.instants import to_rfc3339
from api.names import ClusterId, GroupId
from api.times import AtInstant, KnownAtInstant, within_reach

router = router_of("history")


def _worst_first(row: Any) -> tuple[int, float, str]:
    deadlines = [at for at in (row.session_deadline_at_ms, row.poll_deadline_at_ms) if at is not None]
    return -answers.BADNESS.get(row.status, 0), min(deadlines, default=float("inf")), archive.short(row.member_id)


@router.get(
    "/clusters/{cluster}/groups/{group}/health",
    response_model=models.HealthAt,
    summary="Health of a group's members at an instant",
)
async def health(
    at: DeskOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    at_ms: AtInstant,
    known_at_ms: KnownAtInstant,
    limit: Limit,
) -> Response:
    """Of each member the latest row at or before `at`, not older than the server's look back; worst status first."""
    store = at.store
    store.require("health")
    store.group(cluster_id, group_id)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster)
    within_reach(at, cluster_id, at=at_ms, known_at=known_at_ms)
    if at_ms is None:
        at_ms = cluster.reach.newest_ms or freshness.now_ms
    rows = await at.read(
        partial(
            archive.health_at,
            store.readers["health"],
            cluster_id,
            group_id,
            archive.Knowledge(store.current.batch_id, known_at_ms),
            at_ms,
            store.settings.health_lookback_ms,
            store.settings.rows_read_max,
        )
    )
    rows.sort(key=_worst_first)
    return answer(
        freshness,
        health=[answers.health(row) for row in rows[:limit]],
        at_ms=at_ms,
        at=to_rfc3339(at_ms),
        left_off=max(0, len(rows) - limit),
    )
