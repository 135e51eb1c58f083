"""State history of a group: every change of its state and of its memberships, with cause and evidence."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from api.answers import as_dicts
from api.errors import ParameterRefused, TablesMissing
from api.files.reader import TableReader
from api.http.asking import PAGES, answer, paging_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import TEXT, ApiRequest, query_parameter, router_of, takes
from api.past import archive
from api.shapes import models

router = router_of("history")

ENTITIES = ("group", "member")

ENTITY = query_parameter(
    "entity", "changes of the group or of its members alone", {"type": "string", "enum": list(ENTITIES)}
)
ONE_MEMBER = query_parameter("member", "only changes of this member, by its id", TEXT)
EVENTS = query_parameter(
    "events",
    "true: with the archived event of each",
    {"type": "string", "enum": ["true", "false"], "default": "false"},
)


@router.get(
    "/clusters/{cluster}/groups/{group}/history",
    response_model=models.History,
    summary="State history of a group",
    openapi_extra=takes(ENTITY, ONE_MEMBER, EVENTS, *CLUSTER, *GROUP, *PAGES),
)
async def history(request: ApiRequest) -> Response:
    """Transitions, newest first unless asked otherwise; `from` and `to` bound the instant on the broker."""
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    history = paging_of(request)
    entity, member = request.query_params.get("entity"), request.query_params.get("member")
    events = request.query_params.get("events", "false")
    if events not in ("true", "false"):
        raise ParameterRefused("events", "true or false", events)
    if entity is not None and entity not in ENTITIES:
        raise ParameterRefused("entity", " or ".join(ENTITIES), entity)
    store = request.context.store
    store.require("transitions")
    view = store.group(cluster_id, group_id)
    part, question = history.part(cluster_id, group_id, entity, member)
    page = await request.context.read(
        partial(archive.transitions, store.readers["transitions"], cluster_id, group_id, part, entity, member)
    )
    found = [as_dicts.transition(row) for row in page.rows]
    if events == "true":
        archived = await request.context.read(partial(_archived, store.events, cluster_id, group_id, page.rows))
        for transition in found:
            place = position(transition["evidence"])
            event = archived.get(place) if place is not None else None
            transition["event"] = event and as_dicts.columns("events", event)
    return answer(
        store.freshness(store.cluster(cluster_id), group=view),
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
