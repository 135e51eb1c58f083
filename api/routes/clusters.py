"""Clusters: who has written to the tables, how far each source has been read, and what was counted of it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from api.answers import as_dicts
from api.http.asking import answer
from api.http.names import CLUSTER, cluster_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.validators import live_tag
from api.present.current import ClusterView
from api.shapes import models
from api.store import Store
from kardia.instants import to_rfc3339
from kardia.story import surprises

router = router_of("clusters")


def _cluster(store: Store, view: ClusterView) -> dict[str, Any]:
    href = as_dicts.cluster_href(view.cluster_id)
    return {
        "href": href,
        "cluster_id": view.cluster_id,
        "groups": len(view.groups),
        "members": sum(len(group.lives) for group in view.groups.values()),
        "freshness": store.freshness(view).as_answer(),
        "sources": [
            {"source": source, "complete_to_ms": at_ms, "complete_to": to_rfc3339(at_ms)}
            for source, at_ms in sorted(view.reach.sources().items())
        ],
        "ledger": dict(view.reach.ledger),
        "disagreements": dict(view.reach.disagreements),
        "self_test": dict(view.reach.self_tested),
        "self_test_in_words": surprises.in_short(view.reach.self_tested),
        "links": {
            "groups": f"{href}/groups",
            "next_evictions": f"{href}/next-evictions",
            "open_rebalances": f"{href}/open-rebalances",
            "rejected": f"{href}/rejected",
            "disagreements": f"{href}/disagreements",
            "surprises": f"{href}/surprises",
            "incidents": f"{href}/incidents",
        },
    }


@router.get("/clusters", response_model=models.Clusters, summary="All clusters")
async def clusters(request: ApiRequest) -> Response:
    """Clusters that the token is for, how fresh each is, and what was counted on the way into the tables."""
    live_tag(request)
    store = request.context.store
    store.require("members", "transitions")
    views = store.current.clusters
    shown = [_cluster(store, views[name]) for name in sorted(views) if request.may_ask.allows(name)]
    return answer(store.freshness(among=request.may_ask), clusters=shown)


@router.get(
    "/clusters/{cluster}", response_model=models.ClusterAnswer, summary="One cluster", openapi_extra=takes(*CLUSTER)
)
async def cluster(request: ApiRequest) -> Response:
    """One cluster."""
    live_tag(request)
    cluster_id = cluster_id_of(request)
    store = request.context.store
    store.require("members", "transitions")
    view = store.cluster(cluster_id)
    return answer(store.freshness(view), cluster=_cluster(store, view))
