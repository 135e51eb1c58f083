"""Evictions of a group: memberships that were taken away, when and why."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.answers import answers
from api.errors import ParameterRefused
from api.http.asking import History, answer, router_of
from api.http.names import ClusterId, GroupId
from api.http.request_context import ContextOf
from api.past import archive
from api.shapes import models
from kardia.tables import END_CAUSES, EVICTION_CAUSES

router = router_of("history")


@router.get(
    "/clusters/{cluster}/groups/{group}/evictions", response_model=models.Evictions, summary="Evictions of a group"
)
async def evictions(
    context: ContextOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    history: History,
    cause: Annotated[
        list[str] | None,
        WithJsonSchema({"type": "array", "items": {"type": "string", "enum": list(END_CAUSES)}}),
        Query(description=f"end causes, may be repeated; absent: {', '.join(EVICTION_CAUSES)}"),
    ] = None,
) -> Response:
    """Ended memberships, newest first unless asked otherwise; `from` and `to` bound the instant of the end."""
    for given in cause or ():
        if given not in END_CAUSES:
            raise ParameterRefused("cause", f"one of {', '.join(END_CAUSES)}", given)
    causes = frozenset(cause or EVICTION_CAUSES)
    store = context.store
    store.require("members")
    store.group(cluster_id, group_id)
    window, question = history.window(cluster_id, group_id, sorted(causes))
    page = await context.read(
        partial(
            archive.evictions,
            store.readers["members"],
            cluster_id,
            group_id,
            window,
            causes,
            store.settings.rows_read_max,
        )
    )
    return answer(
        store.freshness(store.cluster(cluster_id)),
        evictions=[answers.eviction(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
