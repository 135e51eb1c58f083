"""Health of a group's members at an instant: what their deadlines and margins were then."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from starlette.responses import Response

from api.access import ids
from api.answers import answers
from api.http.asking import Limit, answer, router_of
from api.http.names import ClusterId, GroupId
from api.http.request_context import ContextOf
from api.http.times import AtInstant, KnownAtInstant, within_reach
from api.past import archive
from api.past.past import Then, brought_up
from api.present import present
from api.shapes import models
from kardia.instants import to_rfc3339
from kardia.statuses import STATUS_SEVERITY

router = router_of("history")

KINDS = ("session", "poll")


def _worst_first(row: Any) -> tuple[int, float, str]:
    deadlines = [at for at in (row.session_deadline_at_ms, row.poll_deadline_at_ms) if at is not None]
    return -STATUS_SEVERITY[present.shown_as(row)], min(deadlines, default=float("inf")), ids.sort_key(row.member_id)


@router.get(
    "/clusters/{cluster}/groups/{group}/health",
    response_model=models.HealthAt,
    summary="Health of a group's members at an instant",
)
async def health(
    context: ContextOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    at_ms: AtInstant,
    known_at_ms: KnownAtInstant,
    limit: Limit,
) -> Response:
    """Of each member the latest row at or before `at`, not older than the server's look back; worst status first.

    With `at`, deadlines are brought up to the instant by what later rows, predictions and the archive know.
    """
    store = context.store
    store.require("health", "transitions", "predictions")
    store.group(cluster_id, group_id)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster)
    within_reach(context, cluster_id, at=at_ms, known_at=known_at_ms)
    view = store.group(cluster_id, group_id)
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

    rows, exact = await context.read(read)
    rows.sort(key=_worst_first)
    return answer(
        freshness,
        health=[answers.health(row, exact) for row in rows[:limit]],
        at_ms=instant_ms,
        at=to_rfc3339(instant_ms),
        left_off=max(0, len(rows) - limit),
    )
