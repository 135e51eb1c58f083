"""Predictions of a group: which timeouts were said beforehand, when, and what became of each."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api.answers import answers
from api.http.asking import History, answer, router_of
from api.http.names import AN_ID, ClusterId, GroupId
from api.http.request_context import ContextOf
from api.past import archive
from api.shapes import models

router = router_of("history")


@router.get(
    "/clusters/{cluster}/groups/{group}/predictions",
    response_model=models.Predictions,
    summary="Predictions about members of a group",
)
async def predictions(
    context: ContextOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    history: History,
    member: Annotated[str | None, AN_ID, Query(description="only about this member, by its id")] = None,
) -> Response:
    """Standing rows, newest first unless asked otherwise; `from` and `to` bound the instant it was first said."""
    store = context.store
    store.require("predictions")
    store.group(cluster_id, group_id)
    window, question = history.window(cluster_id, group_id, member)
    page = await context.read(
        partial(
            archive.predictions,
            store.readers["predictions"],
            cluster_id,
            group_id,
            window,
            store.settings.rows_read_max,
            member,
        )
    )
    freshness = store.freshness(store.cluster(cluster_id))
    return answer(
        freshness,
        predictions=[answers.past_prediction(row, freshness) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
