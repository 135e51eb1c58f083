"""What differs between a group at two instants, and what happened to it in between."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from api.answers import as_dicts, difference
from api.http.asking import LIMIT, answer, limit_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.times import FROM_TO, KNOWN_AT, both_known_ends_of, known_at_of, within_reach
from api.past import archive
from api.past.as_of import Then, freshness_at, group_at
from api.past.cursor import Place
from api.shapes import report_models
from kardia.instants import to_rfc3339

router = router_of("history")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")


@router.get(
    "/clusters/{cluster}/groups/{group}/diff",
    response_model=report_models.Difference,
    summary="What differs between two instants",
    openapi_extra=takes(*CLUSTER, *GROUP, *FROM_TO, KNOWN_AT, LIMIT),
)
async def diff(request: ApiRequest) -> Response:
    """The group at `from` against the group at `to`: state, members that came, went or changed, rebalances between.

    A member that came after `from` and went by `to` is in `came_and_went`. Rebalances are those that began after `from`
    and by `to`. Each list has at most `limit` entries; `left_off` counts the others.
    """
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    times = both_known_ends_of(request, cluster_id, group_id)
    known_at_ms = known_at_of(request)
    limit = limit_of(request)
    store = request.context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    within_reach(request.context, cluster_id, group_id, known_at=known_at_ms)
    freshness = store.freshness(store.cluster(cluster_id), group=view)
    ends = [Then(at_ms, known_at_ms, store.current.batch_id) for at_ms in times]
    told = freshness_at(freshness, ends[0]), freshness_at(freshness, ends[1])

    def read() -> tuple[dict[str, Any], list[Any]]:
        before, after = (
            group_at(store.readers, store.settings, cluster_id, group_id, view.shard, then) for then in ends
        )
        lives = archive.lives_until(
            store.readers["members"],
            cluster_id,
            group_id,
            ends[1].knowledge,
            ends[1].at_ms,
            store.settings.rows_read_max,
        )
        rows_max = store.settings.rows_read_max
        part = archive.HistoryPart(
            times[0] + 1, times[1] + 1, rows_max, False, Place(freshness.batch_id, ()), known_at_ms
        )
        begun = archive.rebalances(store.readers["rebalances"], cluster_id, group_id, part, rows_max)
        return difference.between(before, after, told, lives, limit), begun.rows

    found, begun = await request.context.read(partial(read))
    found["rebalances"] = [as_dicts.rebalance(row, told[1]) for row in begun[:limit]]
    found["left_off"]["rebalances"] = max(0, len(begun) - limit)
    return answer(
        freshness,
        from_ms=times[0],
        **{"from": to_rfc3339(times[0])},
        to_ms=times[1],
        to=to_rfc3339(times[1]),
        known_at_ms=known_at_ms,
        known_at=to_rfc3339(known_at_ms),
        **found,
    )
