"""Clusters: who has written to the tables, how far each source has been read, and the ledger."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from api.answers import answers
from api.http.asking import LIVE, answer, router_of
from api.http.names import ClusterId, MayAsk
from api.http.request_context import ContextOf
from api.present.current import ClusterView
from api.shapes import models
from api.store import Store
from kardia.instants import to_rfc3339

router = router_of("clusters")


def _cluster(store: Store, view: ClusterView) -> dict[str, Any]:
    href = answers.cluster_href(view.cluster_id)
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
        "links": {
            "groups": f"{href}/groups",
            "next_evictions": f"{href}/next-evictions",
            "open_rebalances": f"{href}/open-rebalances",
            "rejected": f"{href}/rejected",
            "disagreements": f"{href}/disagreements",
        },
    }


@router.get("/clusters", response_model=models.Clusters, summary="All clusters", dependencies=[LIVE])
async def clusters(context: ContextOf, scope: MayAsk) -> Response:
    """Clusters that the token is for, how fresh each is, and what was counted on the way into the tables."""
    context.store.require("members", "transitions")
    views = context.store.current.clusters
    shown = [_cluster(context.store, views[name]) for name in sorted(views) if scope.allows(name)]
    return answer(context.store.freshness(among=scope), clusters=shown)


@router.get("/clusters/{cluster}", response_model=models.ClusterAnswer, summary="One cluster", dependencies=[LIVE])
async def cluster(context: ContextOf, cluster_id: ClusterId) -> Response:
    """One cluster."""
    context.store.require("members", "transitions")
    view = context.store.cluster(cluster_id)
    return answer(context.store.freshness(view), cluster=_cluster(context.store, view))
