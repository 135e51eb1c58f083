"""Groups as they stand: state, members by status, least headroom, next deadlines, latest rebalance."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.answers import answers, rendered, roster
from api.errors import ParameterRefused
from api.http.asking import LIVE, CursorsOf, CursorText, Limit, answer, router_of
from api.http.names import ClusterId, GroupId
from api.http.request_context import ContextOf
from api.http.times import AskedInstant
from api.past.cursor import Place
from api.past.past import asked, freshness_at, group_at
from api.shapes import models

router = router_of("groups")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")

SEARCH_CHARS_MAX = 200
TEXT = WithJsonSchema({"type": "string", "maxLength": SEARCH_CHARS_MAX})


@router.get(
    "/clusters/{cluster}/groups", response_model=models.Groups, summary="Groups of a cluster", dependencies=[LIVE]
)
async def groups(
    context: ContextOf,
    cluster_id: ClusterId,
    limit: Limit,
    cursors: CursorsOf,
    cursor: CursorText,
    sort: Annotated[
        str,
        WithJsonSchema({"type": "string", "enum": list(roster.SORTS)}),
        Query(description="by name, the worst status first, or the least margin of a timeout first"),
    ] = "name",
    search: Annotated[
        str | None, TEXT, Query(description="only groups whose id contains this, whatever its case")
    ] = None,
    state: Annotated[str | None, TEXT, Query(description="only groups in this state, e.g. Stable")] = None,
) -> Response:
    """Groups by name, the worst status first, or the least margin first. Pages follow the live list: by name each group
    is met once; else one that changes places meanwhile may be met again, or not be met."""
    store = context.store
    store.require(*NEEDS)
    if sort not in roster.SORTS:
        raise ParameterRefused("sort", " or ".join(roster.SORTS), sort)
    for name, given in (("search", search), ("state", state)):
        if given is not None and len(given) > SEARCH_CHARS_MAX:
            raise ParameterRefused(name, f"at most {SEARCH_CHARS_MAX} characters", given)
    view = store.cluster(cluster_id)
    freshness = store.freshness(view)
    question = ["groups", cluster_id, sort, search, state]
    after = cursors.read(question, cursor).after if cursor is not None else None
    page, more = roster.page(view, sort, after, limit, search, state)
    return answer(
        freshness,
        groups=[rendered.group(group, freshness) for _, group in page],
        next_cursor=cursors.write(question, Place(freshness.batch_id, page[-1][0])) if more else None,
    )


@router.get(
    "/clusters/{cluster}/groups/{group}", response_model=models.GroupAnswer, summary="One group", dependencies=[LIVE]
)
async def group(context: ContextOf, cluster_id: ClusterId, group_id: GroupId, then: AskedInstant) -> Response:
    """One group as it stands; with `at` as it stood then, with `known_at` as far as that was known by then.

    About the past, what is left of a deadline counts from the instant asked about, and what ended later is shown as not
    yet ended.
    """
    store = context.store
    store.require(*NEEDS)
    freshness = store.freshness(store.cluster(cluster_id))
    view = store.group(cluster_id, group_id)
    told = freshness
    if then is not None:
        question = partial(group_at, store.readers, store.settings, cluster_id, group_id, view.shard, then)
        view, told = await context.read(question), freshness_at(freshness, then)
    return answer(freshness, **asked(then), group=answers.group(view, told))
