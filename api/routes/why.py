"""Why a group rebalanced or lost a member, the last time before an instant, in the sentences of `kardia why`."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.answers import as_dicts
from api.http.asking import answer
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.times import AT, at_of, within_reach
from api.past import archive
from api.past.incident import ROWS_MAX, Asked, material, read
from api.shapes import report_models
from kardia import story
from kardia.instants import to_rfc3339

router = router_of("history")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")


@router.get(
    "/clusters/{cluster}/groups/{group}/why",
    response_model=report_models.Why,
    summary="Why a group rebalanced or lost a member",
    openapi_extra=takes(*CLUSTER, *GROUP, AT),
)
async def why(request: ApiRequest) -> Response:
    """The last rebalance or eviction up to `at`: what began it, whom it waited for, how it ended, and how the group
    stood then. Absent, the last that is known."""
    cluster_id, group_id, at_ms = cluster_id_of(request), group_id_of(request), at_of(request)
    within_reach(request.context, cluster_id, group_id, at=at_ms)
    store = request.context.store
    store.require(*NEEDS)
    view, cluster = store.group(cluster_id, group_id), store.cluster(cluster_id)
    freshness = store.freshness(cluster, group=view)
    newest_ms = cluster.reach.newest_ms or freshness.now_ms
    to_ms = (newest_ms if at_ms is None else at_ms) + 1
    end_ms = to_ms if freshness.complete_as_of_ms is None else min(to_ms, freshness.complete_as_of_ms)
    knowledge = archive.Knowledge(freshness.batch_id, None)
    asked = Asked(cluster_id, group_id, to_ms, to_ms, end_ms, knowledge, ROWS_MAX)  # no samples: nobody looks for lint

    def told() -> story.Story:
        rows = read(store.readers, store.settings, asked)
        return story.why(material(rows, asked, freshness, cluster.reach.ledger), at_ms=at_ms)

    found = await request.context.read(partial(told))
    return answer(
        freshness,
        group={"href": as_dicts.group_href(cluster_id, group_id), "cluster_id": cluster_id, "group_id": group_id},
        at_ms=at_ms,
        at=to_rfc3339(at_ms),
        sentences=[sentence.as_json() for sentence in found.sentences],
    )
