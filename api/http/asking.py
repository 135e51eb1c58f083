"""What routes share: how many rows, pages of histories, answers with freshness. Nothing here knows a route."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson
from starlette.responses import Response

from api.answers.encoded import Open, encode
from api.errors import BadCursor, ParameterRefused
from api.http.again import EncodedResponse
from api.http.names import cluster_id_of
from api.http.request_context import RequestContext
from api.http.routing import ApiRequest, query_parameter
from api.http.times import FROM_TO, time_range_of
from api.past.archive import HistoryPart, Page
from api.past.cursor import CURSOR_CHARS_MAX, Cursors, Place
from api.present.current import ClusterView
from api.present.freshness import Freshness
from api.store import Store

LIMIT = query_parameter("limit", "rows of a page", {"type": "integer", "minimum": 1})
CURSOR = query_parameter(
    "cursor",
    "next_cursor of the page before, asked with the same token and filters",
    {"type": "string", "pattern": f"^[A-Za-z0-9_.-]{{25,{CURSOR_CHARS_MAX}}}$"},
)
ORDER = query_parameter(
    "order", "newest or oldest first", {"type": "string", "enum": ["newest", "oldest"], "default": "newest"}
)
PAGES = (LIMIT, CURSOR, *FROM_TO, ORDER)
"""Parameters of a history that is given in pages."""


def limit_of(request: ApiRequest) -> int:
    """Rows of a page."""
    limits, limit = request.context.store.settings, request.query_params.get("limit")
    if limit is None:
        return limits.page_size
    is_number = limit.isascii() and limit.isdigit() and len(limit) < 10
    if is_number and 1 <= int(limit) <= limits.page_size_max:
        return int(limit)
    met = {"limit": "page_size_max"} if is_number and int(limit) else {}
    raise ParameterRefused("limit", f"a number from 1 to {limits.page_size_max}", limit, **met)


def cursor_of(request: ApiRequest) -> str | None:
    """Cursor as given."""
    return request.query_params.get("cursor")


def newest_first_of(request: ApiRequest) -> bool:
    """Order of a history."""
    order = request.query_params.get("order", "newest")
    if order not in ("newest", "oldest"):
        raise ParameterRefused("order", "newest or oldest", order)
    return order == "newest"


class CallersCursors:
    """Cursors that this caller gets, and those that it may give back."""

    def __init__(self, store: Store, cursors: Cursors) -> None:
        self._batch_id = store.current.batch_id
        self._cursors = cursors

    def read(self, question: Sequence[Any], cursor: str) -> Place:
        """Place of a cursor."""
        place = self._cursors.read(question, cursor)
        if place.batch_id > self._batch_id:
            raise BadCursor(
                "cursor: expected one that is not ahead of what this server has read; another server gave it; ask "
                "again in a moment, or without a cursor."
            )
        return place

    def write(self, question: Sequence[Any], place: Place) -> str:
        """Cursor for what is behind a place."""
        return self._cursors.write(question, place)


def cursors_of(request: ApiRequest) -> CallersCursors:
    """Bound to the token of the request and to the tables."""
    context = request.context
    return CallersCursors(context.store, context.cursors.of(request.may_ask.principal, context.store.identity))


class Paging:
    """A page of a history: which part it is, its question for the cursor, and the cursor behind it."""

    def __init__(
        self,
        context: RequestContext,
        cursors: CallersCursors,
        route: str,
        limit: int,
        cursor: str | None,
        times: tuple[int | None, int | None],
        newest: bool,
    ) -> None:
        self._context = context
        self._cursors = cursors
        self._route = route
        self._cursor = cursor
        self._limit = limit
        self._times = times
        self._newest = newest

    def part(self, *about: Any) -> tuple[HistoryPart, Sequence[Any]]:
        """What this page is of the history; `about` is what else the question consists of."""
        question = [self._route, *self._times, self._newest, *about]
        place = Place(self._context.store.current.batch_id, ())
        if self._cursor is not None:
            place = self._cursors.read(question, self._cursor)
        return HistoryPart(*self._times, self._limit, self._newest, place), question

    def next_cursor(self, question: Sequence[Any], page: Page) -> str | None:
        """Cursor behind a page."""
        return None if page.place is None else self._cursors.write(question, page.place)


def paging_of(request: ApiRequest) -> Paging:
    """Page of the history that the request asks for."""
    return Paging(
        request.context,
        cursors_of(request),
        request.scope["route"].path,
        limit_of(request),
        cursor_of(request),
        time_range_of(request),
        newest_first_of(request),
    )


def answer(freshness: Freshness, **members: Any) -> Response:
    """JSON of an answer, freshness first."""
    if isinstance(freshness, Open):
        return EncodedResponse(encode(freshness, members))
    return Response(orjson.dumps({"freshness": freshness.as_answer(), **members}), media_type="application/json")


def answer_about_cluster(
    request: ApiRequest, needs: Sequence[str], rows: Callable[[ClusterView, Freshness, int], dict[str, Any]]
) -> Response:
    """A list about the present of a whole cluster, of at most `limit` rows; `needs`: the tables that it is made of."""
    cluster_id, limit = cluster_id_of(request), limit_of(request)
    store = request.context.store
    store.require(*needs)
    view = store.cluster(cluster_id)
    freshness = Open.of(partial(store.freshness, view))
    return answer(freshness, **rows(view, freshness, limit))
