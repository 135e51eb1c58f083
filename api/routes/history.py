"""State history of a group: every change of its state and of its memberships, with cause and evidence."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.answers import answers
from api.errors import ParameterRefused, TablesMissing
from api.files.reader import TableReader
from api.http.asking import History, answer, router_of
from api.http.names import AN_ID, ClusterId, GroupId
from api.http.request_context import ContextOf
from api.past import archive
from api.shapes import models

router = router_of("history")

ENTITIES = ("group", "member")


@router.get(
    "/clusters/{cluster}/groups/{group}/history", response_model=models.History, summary="State history of a group"
)
async def history(
    context: ContextOf,
    cluster_id: ClusterId,
    group_id: GroupId,
    history: History,
    entity: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "enum": list(ENTITIES)}),
        Query(description="changes of the group or of its members alone"),
    ] = None,
    member: Annotated[str | None, AN_ID, Query(description="only changes of this member, by its id")] = None,
    events: Annotated[
        str,
        WithJsonSchema({"type": "string", "enum": ["true", "false"]}),
        Query(description="true: with the archived event of each"),
    ] = "false",
) -> Response:
    """Transitions, newest first unless asked otherwise; `from` and `to` bound the instant on the broker."""
    if events not in ("true", "false"):
        raise ParameterRefused("events", "true or false", events)
    if entity is not None and entity not in ENTITIES:
        raise ParameterRefused("entity", " or ".join(ENTITIES), entity)
    store = context.store
    store.require("transitions")
    store.group(cluster_id, group_id)
    window, question = history.window(cluster_id, group_id, entity, member)
    page = await context.read(
        partial(archive.transitions, store.readers["transitions"], cluster_id, group_id, window, entity, member)
    )
    found = [answers.transition(row) for row in page.rows]
    if events == "true":
        archived = await context.read(partial(_archived, store.events, cluster_id, group_id, page.rows))
        for transition in found:
            place = position(transition["evidence"])
            event = archived.get(place) if place is not None else None
            transition["event"] = event and answers.columns("events", event)
    return answer(
        store.freshness(store.cluster(cluster_id)),
        transitions=found,
        next_cursor=history.next_cursor(question, page),
    )


def position(evidence: str | None) -> tuple[str, int] | None:
    """Source and first byte of the line that an evidence names; None for a timer."""
    source, _, start = (evidence or "").rpartition("@")
    return (source, int(start)) if source and start.isascii() and start.isdigit() else None


def _archived(reader: TableReader, cluster_id: str, group_id: str, rows: list[Any]) -> dict[tuple[str, int], Any]:
    """Events behind some transitions; none if the archive does not exist: its retention is short, or it is not kept."""
    positions = [place for row in rows if (place := position(row.evidence)) is not None]
    try:
        return archive.events_at(reader, cluster_id, group_id, positions)
    except TablesMissing:
        return {}
