"""Lag: of all groups, of one group by partition, and as it was."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from api.access.ids import from_segment
from api.answers import as_dicts, lag
from api.errors import ParameterRefused
from api.http.asking import LIMIT, PAGES, answer, answer_about_cluster, limit_of, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.http.validators import live_tag
from api.past import lag as past
from api.present.current import ClusterView
from api.present.freshness import Freshness
from api.present.lagging import LagView
from api.shapes import lag_models

router = router_of("lag")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions", "lag")

TOPIC_CHARS_MAX = 400
"""Of a topic in a question; Kafka's names have 249 characters at most, in base64url 333."""
TOPIC = query_parameter(
    "topic", "only this topic: its name, or ~base64url", {"type": "string", "maxLength": TOPIC_CHARS_MAX}
)
PARTITION = query_parameter("partition", "only this partition", {"type": "integer", "minimum": 0})


@router.get(
    "/clusters/{cluster}/lag",
    response_model=lag_models.LagOfCluster,
    summary="Lag of all groups",
    openapi_extra=takes(*CLUSTER, LIMIT),
)
async def of_cluster(request: ApiRequest) -> Response:
    """Groups that have committed offsets, the worst status first, then the farthest behind; and why they are."""
    live_tag(request)
    stale_after_ms = request.context.store.settings.lag_stale_after_ms

    def rows(cluster: ClusterView, freshness: Freshness, limit: int) -> dict[str, Any]:
        known = lag.known(cluster, freshness, stale_after_ms)
        found = [lag.total(cluster, one, known, freshness) for one in cluster.lags.groups.values()]
        found.sort(key=lambda one: (-lag.STATUSES.index(one["status"]), -(one["lag"] or 0), one["group_id"]))
        return {"known": known.as_answer(), "groups": found[:limit], "left_off": max(0, len(found) - limit)}

    return answer_about_cluster(request, NEEDS, rows)


@router.get(
    "/clusters/{cluster}/groups/{group}/lag",
    response_model=lag_models.LagOfGroup,
    summary="Lag of a group",
    openapi_extra=takes(*CLUSTER, *GROUP, LIMIT),
)
async def of_group(request: ApiRequest) -> Response:
    """Partitions that a group has committed offsets for, those in trouble first, then the farthest behind; and why."""
    live_tag(request)
    cluster_id, group_id, limit = cluster_id_of(request), group_id_of(request), limit_of(request)
    store = request.context.store
    store.require(*NEEDS)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster)
    known = lag.known(cluster, freshness, store.settings.lag_stale_after_ms)
    view = cluster.lags.groups.get(group_id)
    if view is None:
        view = LagView(group_id, store.group(cluster_id, group_id).shard, {})
    _, reasons = lag.reasons(cluster, view, known, freshness)
    ranked = lag.ranked(view.rows.values(), known)
    return answer(
        freshness,
        known=known.as_answer(),
        group=lag.total(cluster, view, known, freshness),
        partitions=[
            lag.partition(cluster, row, known, reasons.get((row.topic, row.partition))) for row in ranked[:limit]
        ],
        left_off=max(0, len(ranked) - limit),
    )


@router.get(
    "/clusters/{cluster}/groups/{group}/lag/history",
    response_model=lag_models.LagHistory,
    summary="Lag of a group as it was",
    openapi_extra=takes(*CLUSTER, *GROUP, TOPIC, PARTITION, *PAGES),
)
async def history(request: ApiRequest) -> Response:
    """Rows of lag of a group, the newest first unless asked otherwise: one for each partition that changed, by
    each look at the ends. A time lag grows while no row is written: it counts from `behind_at`."""
    cluster_id, group_id, paging = cluster_id_of(request), group_id_of(request), paging_of(request)
    topic, number = _topic(request), _partition(request)
    store = request.context.store
    store.require("lag")
    cluster = store.cluster(cluster_id)
    if group_id not in cluster.lags.groups:
        store.group(cluster_id, group_id)
    part, question = paging.part(cluster_id, group_id, topic, number)
    page = await request.context.read(
        partial(past.rows, store.readers["lag"], cluster_id, group_id, part, topic, number)
    )
    return answer(
        store.freshness(cluster),
        lag=[{"href": lag.lag_href(row.cluster_id, row.group_id), **as_dicts.columns("lag", row)} for row in page.rows],
        next_cursor=paging.next_cursor(question, page),
    )


def _topic(request: ApiRequest) -> str | None:
    given = request.query_params.get("topic")
    if given is None:
        return None
    if len(given) > TOPIC_CHARS_MAX:
        raise ParameterRefused("topic", f"at most {TOPIC_CHARS_MAX} characters", given)
    try:
        return from_segment(given)
    except ValueError as error:
        raise ParameterRefused("topic", f"a name that can be read; this one {error}", given) from None


def _partition(request: ApiRequest) -> int | None:
    given = request.query_params.get("partition")
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise ParameterRefused("partition", "a number of a partition", given)
    return int(given)
