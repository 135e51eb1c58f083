"""Groups as they stand: state, members by status, least headroom, next deadlines, latest rebalance."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.answers import as_dicts, evidence, rendered, roster
from api.answers.encoded import Open
from api.errors import ParameterRefused
from api.http.again import encoded_once
from api.http.asking import CURSOR, LIMIT, answer, cursor_of, cursors_of, limit_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.http.times import AT, KNOWN_AT, then_of
from api.past.as_of import asked, freshness_at, group_at
from api.past.cursor import Place
from api.shapes import models

router = router_of("groups")

NEEDS = ("transitions", "rebalances", "members", "health", "predictions")

SEARCH_CHARS_MAX = 200
SHORT_TEXT = {"type": "string", "maxLength": SEARCH_CHARS_MAX}

SORT = query_parameter(
    "sort",
    "by name, the worst status first, or the least margin of a timeout first",
    {"type": "string", "enum": list(roster.SORTS), "default": "name"},
)
SEARCH = query_parameter("search", "only groups whose id contains this, whatever its case", SHORT_TEXT)
STATE = query_parameter("state", "only groups in this state, e.g. Stable", SHORT_TEXT)


@router.get(
    "/clusters/{cluster}/groups",
    response_model=models.Groups,
    summary="Groups of a cluster",
    openapi_extra=takes(SORT, SEARCH, STATE, *CLUSTER, LIMIT, CURSOR),
)
@encoded_once
async def groups(request: ApiRequest) -> Response:
    """Groups by name, the worst status first, or the least margin first. Pages follow the live list: by name each group
    is met once; else one that changes places meanwhile may be met again, or not be met."""
    cluster_id = cluster_id_of(request)
    limit = limit_of(request)
    cursors = cursors_of(request)
    cursor = cursor_of(request)
    given = request.query_params
    sort, search, state = given.get("sort", "name"), given.get("search"), given.get("state")
    store = request.context.store
    store.require(*NEEDS)
    if sort not in roster.SORTS:
        raise ParameterRefused("sort", " or ".join(roster.SORTS), sort)
    for name, text in (("search", search), ("state", state)):
        if text is not None and len(text) > SEARCH_CHARS_MAX:
            raise ParameterRefused(name, f"at most {SEARCH_CHARS_MAX} characters", text)
    view = store.cluster(cluster_id)
    freshness = Open.of(partial(store.freshness, view))
    question = ["groups", cluster_id, sort, search, state]
    after = cursors.read(question, cursor).after if cursor is not None else None
    page, more = roster.page(view, sort, after, limit, search, state)
    return answer(
        freshness,
        groups=[
            rendered.group(one, freshness.as_of(view.complete_of(one)), evidence.read_of(view, one).rung)
            for _, one in page
        ],
        next_cursor=cursors.write(question, Place(freshness.batch_id, page[-1][0])) if more else None,
    )


@router.get(
    "/clusters/{cluster}/groups/{group}",
    response_model=models.GroupAnswer,
    summary="One group",
    openapi_extra=takes(*CLUSTER, *GROUP, AT, KNOWN_AT),
)
@encoded_once
async def group(request: ApiRequest) -> Response:
    """One group as it stands; with `at` as it stood then, with `known_at` as far as that was known by then.

    About the past, what is left of a deadline counts from the instant asked about, and what ended later is shown as not
    yet ended.
    """
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    then = then_of(request, cluster_id, group_id)
    store = request.context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    fresh = partial(store.freshness, store.cluster(cluster_id), group=view)
    freshness = told = Open.of(fresh) if then is None else fresh()
    if then is not None:
        question = partial(group_at, store.readers, store.settings, cluster_id, group_id, view.shard, then)
        view, told = await request.context.read(question), freshness_at(freshness, then)
    found = evidence.of(store.cluster(cluster_id), view)
    return answer(freshness, **asked(then), group=as_dicts.group(view, told), evidence=found)
