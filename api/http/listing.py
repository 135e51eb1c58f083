"""Rows about one line of a log each, as two routes answer them: of a cluster, and of one of its groups."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from api.errors import ParameterRefused
from api.http.asking import answer, paging_of
from api.http.names import cluster_id_of, group_id_of
from api.http.routing import ApiRequest
from api.past import by_batch


class Listing(NamedTuple):
    """A table that is listed, and the column with a closed list by which it may be chosen."""

    table: str
    column: str
    allowed: Collection[str]
    shown: Callable[[Any], dict[str, Any]]


async def listed(request: ApiRequest, listing: Listing, *, of_group: bool) -> Response:
    """A page of it. Raises `ParameterRefused` for what is not in the closed list."""
    cluster_id = cluster_id_of(request)
    group_id = group_id_of(request) if of_group else None
    history, store = paging_of(request), request.context.store
    store.require()
    if group_id is not None:
        store.group(cluster_id, group_id)
    wanted = request.query_params.get(listing.column)
    if wanted is not None and wanted not in listing.allowed:
        raise ParameterRefused(listing.column, f"one of {', '.join(listing.allowed)}", wanted)
    cluster = store.cluster(cluster_id)
    part, question = history.part(cluster_id, group_id, wanted)
    reader, equal = store.readers[listing.table], {listing.column: wanted}
    page = await request.context.read(partial(by_batch.rows, reader, cluster_id, group_id, part, equal))
    rows = {listing.table: [listing.shown(row) for row in page.rows]}
    return answer(store.freshness(cluster), **rows, next_cursor=history.next_cursor(question, page))
