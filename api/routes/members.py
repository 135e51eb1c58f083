"""Members: both deadlines with what is left of them, status, reasons, evidence and certainty."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from api.access import ids
from api.answers import as_dicts, evidence
from api.answers.encoded import Open
from api.http.again import encoded_once
from api.http.asking import CURSOR, LIMIT, answer, cursor_of, cursors_of, limit_of
from api.http.member_lives import lives_of
from api.http.names import CLUSTER, GROUP, MEMBER, cluster_id_of, group_id_of, member_id_of
from api.http.routing import ApiRequest, router_of, takes
from api.http.times import AT, KNOWN_AT, then_of
from api.past.as_of import asked, freshness_at, group_at
from api.past.cursor import Place
from api.shapes import models

router = router_of("members")

NEEDS = ("members", "health", "predictions")


@router.get(
    "/clusters/{cluster}/groups/{group}/members",
    response_model=models.Members,
    summary="Present members of a group",
    openapi_extra=takes(*CLUSTER, *GROUP, AT, KNOWN_AT, LIMIT, CURSOR),
)
@encoded_once
async def members(request: ApiRequest) -> Response:
    """Present members by member id; with `at` those that were present then, with `known_at` as far as that was known.

    Those that ended are in `history`, `evictions`, and under their own href.
    """
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    then = then_of(request, cluster_id, group_id)
    limit = limit_of(request)
    cursors = cursors_of(request)
    cursor = cursor_of(request)
    store = request.context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    cluster = store.cluster(cluster_id)
    fresh, found = partial(store.freshness, cluster, group=view), evidence.of(cluster, view)
    freshness = told = Open.of(fresh) if then is None else fresh()
    question = ["members", cluster_id, group_id, then and (then.at_ms, then.known_at_ms)]
    # A member id may be 32 KiB long and a cursor may not: members are paged by the short form of their ids.
    place = Place(freshness.batch_id, ("",)) if cursor is None else cursors.read(question, cursor)
    if then is not None:
        then = then._replace(batch_id=place.batch_id)
        past = partial(group_at, store.readers, store.settings, cluster_id, group_id, view.shard, then)
        view, told = await request.context.read(past), freshness_at(freshness, then)
    keyed = sorted((ids.sort_key(member_id), row) for member_id, row in view.lives.items())
    rest = [(key, row) for key, row in keyed if key > place.after[0]]
    page = rest[:limit]
    more = len(rest) > limit
    return answer(
        freshness,
        **asked(then),
        members=[as_dicts.member(view, row, told) for _, row in page],
        evidence=found,
        next_cursor=cursors.write(question, Place(place.batch_id, (page[-1][0],))) if more else None,
    )


@router.get(
    "/clusters/{cluster}/groups/{group}/members/{member}",
    response_model=models.MemberAnswer,
    summary="One member, present or gone",
    openapi_extra=takes(*CLUSTER, *GROUP, *MEMBER),
)
async def member(request: ApiRequest) -> Response:
    """The latest life of a member id and all lives it had, the latest first."""
    cluster_id, group_id, member_id = cluster_id_of(request), group_id_of(request), member_id_of(request)
    store = request.context.store
    store.require(*NEEDS)
    view = store.group(cluster_id, group_id)
    rows = await lives_of(request.context, view, member_id)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster, group=view)
    found = [as_dicts.member(view, row, freshness) for row in rows]
    return answer(freshness, member=found[0], lives=found, evidence=evidence.of(cluster, view))
