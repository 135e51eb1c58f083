"""Lines of the logs that could not be understood: what, where, what was expected, why not."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import History, answer, router_of
from api.http.names import ClusterId
from api.http.request_context import ContextOf
from api.past import rejected
from api.shapes import models
from kardia.events import REJECT_REASONS

router = router_of("clusters")


@router.get(
    "/clusters/{cluster}/rejected", response_model=models.Rejected, summary="Lines that could not be understood"
)
async def rejected_lines(
    context: ContextOf,
    cluster_id: ClusterId,
    history: History,
    reason: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "enum": list(REJECT_REASONS)}),
        Query(description="only lines that were rejected for this"),
    ] = None,
) -> Response:
    """Rejected lines, those of the latest batch first unless asked otherwise. `from` and `to` bound a line's own stamp;
    a line without one that can be read may be of any time and is in every range."""
    if reason is not None and reason not in REJECT_REASONS:
        raise ParameterRefused("reason", f"one of {', '.join(REJECT_REASONS)}", reason)
    store = context.store
    store.require()
    cluster = store.cluster(cluster_id)
    window, question = history.window(cluster_id, reason)
    page = await context.read(partial(rejected.lines, store.rejected, cluster_id, window, reason))
    return answer(
        store.freshness(cluster),
        rejected=[rejected.line(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
