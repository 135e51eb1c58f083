"""Across all groups of a cluster: who is next to be evicted, and which rebalances are under way."""

from __future__ import annotations

from starlette.responses import Response

from api.answers import dangers
from api.http.again import encoded_once
from api.http.asking import LIMIT, answer_about_cluster
from api.http.names import CLUSTER
from api.http.routing import ApiRequest, router_of, takes
from api.shapes import report_models

router = router_of("dangers")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")


@router.get(
    "/clusters/{cluster}/next-evictions",
    response_model=report_models.NextEvictions,
    summary="Who is next to be evicted, across all groups",
    openapi_extra=takes(*CLUSTER, LIMIT),
)
@encoded_once
async def next_evictions(request: ApiRequest) -> Response:
    """The deadlines that come first: session, poll, and rebalance where a member was told to rejoin and has not.

    Most are renewed in time; `predicted` tells those that Kardia does not expect to be. Members whose status is unknown
    are counted, not listed.
    """
    return answer_about_cluster(request, NEEDS, dangers.next_evictions)


@router.get(
    "/clusters/{cluster}/open-rebalances",
    response_model=report_models.OpenRebalances,
    summary="Rebalances under way, across all groups",
    openapi_extra=takes(*CLUSTER, LIMIT),
)
@encoded_once
async def open_rebalances(request: ApiRequest) -> Response:
    """Groups that rebalance, the longest first: since when, whom they wait for, until when at the latest."""
    return answer_about_cluster(request, NEEDS, dangers.open_rebalances)
