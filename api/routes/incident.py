"""An incident report: everything about a group in a stretch of time, as JSON or as Markdown for a ticket."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import Header, Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.answers import answers
from api.errors import ParameterRefused
from api.http.asking import Limit, answer, router_of
from api.http.names import ClusterId, GroupId
from api.http.request_context import ContextOf
from api.http.times import BothEnds, KnownAtInstant, within_reach
from api.past import archive
from api.past.incident import Asked, Rows, read, report
from api.shapes import report_models
from kardia.instants import to_rfc3339
from kardia.story.report import markdown

router = router_of("history")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")
FORMATS = ("json", "markdown")
MARKDOWN = "text/markdown"


@router.get(
    "/clusters/{cluster}/groups/{group}/incident",
    response_model=report_models.Incident,
    responses={200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}},
    summary="Incident report of a group",
)
async def incident(
    context: ContextOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    times: BothEnds,
    known_at_ms: KnownAtInstant,
    limit: Limit,
    form: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "enum": list(FORMATS)}),
        Query(alias="format", description="absent: by the Accept header, else json"),
    ] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Timeline in sentences, evictions, rebalances, predictions, deadlines at the end, settings, and what is odd about
    them, from `from` to before `to`; absent, the last hour that was read. Lists hold the latest `limit` entries."""
    if form is not None and form not in FORMATS:
        raise ParameterRefused("format", " or ".join(FORMATS), form)
    store = context.store
    store.require(*NEEDS)
    store.group(cluster_id, group_id)
    cluster = store.cluster(cluster_id)
    within_reach(context, cluster_id, known_at=known_at_ms)
    freshness = store.freshness(cluster)
    knowledge = archive.Knowledge(freshness.batch_id, known_at_ms)
    reached_ms = freshness.complete_as_of_ms
    end_ms = times[1] if reached_ms is None else min(times[1], reached_ms)
    asked = Asked(cluster_id, group_id, *times, end_ms, knowledge, limit)

    def made() -> dict[str, Any]:
        rows: Rows = read(store.readers, store.settings, asked)
        return report(rows, asked, freshness, cluster.reach.ledger["gaps"])

    found = await context.read(partial(made))
    reply = answer(
        freshness,
        group={
            "href": answers.group_href(cluster_id, group_id),
            "cluster_id": cluster_id,
            "group_id": group_id,
        },
        from_ms=times[0],
        **{"from": to_rfc3339(times[0])},
        to_ms=times[1],
        to=to_rfc3339(times[1]),
        known_at_ms=known_at_ms,
        known_at=to_rfc3339(known_at_ms),
        **found,
    )
    if form == "markdown" or (form is None and MARKDOWN in accept):
        reply = Response(markdown(orjson.loads(reply.body)), media_type=MARKDOWN)
    reply.headers["Vary"] = "Accept"
    return reply
