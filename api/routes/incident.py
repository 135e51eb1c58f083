"""An incident report: everything about a group in a stretch of time, as JSON or as Markdown for a ticket."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from starlette.responses import Response

from api.answers import as_dicts, evidence
from api.errors import ParameterRefused
from api.http.asking import LIMIT, answer, limit_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.http.times import FROM_TO, KNOWN_AT, both_ends_of, known_at_of, within_reach
from api.past import archive
from api.past.incident import Asked, Rows, read, report
from api.shapes import report_models
from kardia.instants import to_rfc3339
from kardia.story.report import markdown

router = router_of("history")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")
FORMATS = ("json", "markdown")
MARKDOWN = "text/markdown"

FORMAT = query_parameter("format", "absent: by the Accept header, else json", {"type": "string", "enum": list(FORMATS)})


@router.get(
    "/clusters/{cluster}/groups/{group}/incident",
    response_model=report_models.Incident,
    responses={200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}},
    summary="Incident report of a group",
    openapi_extra=takes(FORMAT, *CLUSTER, *GROUP, *FROM_TO, KNOWN_AT, LIMIT),
)
async def incident(request: ApiRequest) -> Response:
    """Timeline in sentences, evictions, rebalances, predictions, deadlines at the end, settings, and what is odd about
    them, from `from` to before `to`; absent, the last hour that was read. Lists hold the latest `limit` entries."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    times = both_ends_of(request, cluster_id)
    known_at_ms = known_at_of(request)
    limit = limit_of(request)
    form = request.query_params.get("format")
    if form is not None and form not in FORMATS:
        raise ParameterRefused("format", " or ".join(FORMATS), form)
    store = request.context.store
    store.require(*NEEDS)
    view, cluster = store.group(cluster_id, group_id), store.cluster(cluster_id)
    within_reach(request.context, cluster_id, group_id, known_at=known_at_ms)
    freshness = store.freshness(cluster, group=view)
    knowledge = archive.Knowledge(freshness.batch_id, known_at_ms)
    reached_ms = freshness.complete_as_of_ms
    end_ms = times[1] if reached_ms is None else min(times[1], reached_ms)
    asked = Asked(cluster_id, group_id, *times, end_ms, knowledge, limit)

    def made() -> dict[str, Any]:
        rows: Rows = read(store.readers, store.settings, asked)
        return report(rows, asked, freshness, cluster.reach.ledger)

    found = await request.context.read(partial(made))
    reply = answer(
        freshness,
        group={
            "href": as_dicts.group_href(cluster_id, group_id),
            "cluster_id": cluster_id,
            "group_id": group_id,
        },
        from_ms=times[0],
        **{"from": to_rfc3339(times[0])},
        to_ms=times[1],
        to=to_rfc3339(times[1]),
        known_at_ms=known_at_ms,
        known_at=to_rfc3339(known_at_ms),
        evidence=evidence.of(cluster, view),
        **found,
    )
    if form == "markdown" or (form is None and MARKDOWN in request.headers.get("accept", "")):
        reply = Response(markdown(orjson.loads(reply.body)), media_type=MARKDOWN)
    reply.headers["Vary"] = "Accept"
    return reply
