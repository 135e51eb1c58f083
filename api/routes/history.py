"""State history of a group: every change of its state and of its memberships, with cause and evidence."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api import answers, archive, models
from api.asking import ClusterId, DeskOf, GroupId, History, answer, router_of
from api.errors import ParameterRefused

router = router_of("history")

ENTITIES = ("group", "member")


@router.get(
    "/clusters/{cluster}/groups/{group}/history", response_model=models.History, summary="State history of a group"
)
async def history(
    at: DeskOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    history: History,
    entity: Annotated[
        str | None,
        Query(description="changes of the group or of its members alone", json_schema_extra={"enum": list(ENTITIES)}),
    ] = None,
) -> Response:
    """Transitions, newest first unless asked otherwise; `from` and `to` bound the instant on the broker."""
    if entity is not None and entity not in ENTITIES:
        raise ParameterRefused("entity", " or ".join(ENTITIES), entity)
    store = at.store
    store.require("transitions")
    store.group(cluster_id, group_id)
    window, question = history.window(cluster_id, group_id, entity)
    page = await at.read(
        partial(archive.transitions, store.readers["transitions"], cluster_id, group_id, window, entity)
    )
    return answer(
        store.freshness(store.cluster(cluster_id)),
        transitions=[answers.transition(row) for row in page.rows],
        next_cursor=history.next_cursor(question, page),
    )
