"""What routes share: typed, bounded parameters, pages of histories, answers with freshness.

A dependency per noun of the URL. Nothing here knows a route.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Query, Request
from pydantic import WithJsonSchema
from starlette.responses import Response

from api.answers.answers import API
from api.errors import BadCursor, ParameterRefused
from api.http.names import MayAsk
from api.http.plans import PlannedRoute
from api.http.request_context import ContextOf, RequestContext
from api.http.times import TimeRange
from api.http.validators import live_tag
from api.past.archive import Page, Window
from api.past.cursor import CURSOR_CHARS_MAX, Cursors, Place
from api.present.freshness import Freshness
from api.store import Store


async def only_known(request: Request) -> None:
    """Refuse a query parameter that the route does not have, and one that is given twice."""
    known = _query_names(request.scope["route"])
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name not in known:
            near = ", ".join(sorted(known)) or "none"
            raise ParameterRefused(name, f"one of the parameters of this route ({near})", value)
        if name in seen and name not in _REPEATABLE:
            raise ParameterRefused(name, "to be given once", value)
        seen.add(name)


_REPEATABLE = frozenset(("cause",))


def _query_names(route: Any) -> frozenset[str]:
    names: set[str] = set()
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        names |= {field.alias for field in dependant.query_params}
        waiting += dependant.dependencies
    return frozenset(names)


async def page_limit(
    context: ContextOf,
    limit: Annotated[
        str | None,
        WithJsonSchema({"type": "integer", "minimum": 1}),
        Query(description="rows of a page"),
    ] = None,
) -> int:
    """Rows of a page."""
    limits = context.store.settings
    if limit is None:
        return limits.page_size
    is_number = limit.isascii() and limit.isdigit() and len(limit) < 10
    if is_number and 1 <= int(limit) <= limits.page_size_max:
        return int(limit)
    met = {"limit": "page_size_max"} if is_number and int(limit) else {}
    raise ParameterRefused("limit", f"a number from 1 to {limits.page_size_max}", limit, **met)


async def cursor_text(
    cursor: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "pattern": f"^[A-Za-z0-9_-]{{25,{CURSOR_CHARS_MAX}}}$"}),
        Query(description="next_cursor of the page before, asked with the same token and filters"),
    ] = None,
) -> str | None:
    """Cursor as given."""
    return cursor


Limit = Annotated[int, Depends(page_limit)]
CursorText = Annotated[str | None, Depends(cursor_text)]


async def newest_first(
    order: Annotated[
        str,
        WithJsonSchema({"type": "string", "enum": ["newest", "oldest"]}),
        Query(description="newest or oldest first"),
    ] = "newest",
) -> bool:
    """Order of a history."""
    if order not in ("newest", "oldest"):
        raise ParameterRefused("order", "newest or oldest", order)
    return order == "newest"


NewestFirst = Annotated[bool, Depends(newest_first)]


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


async def callers_cursors(context: ContextOf, scope: MayAsk) -> CallersCursors:
    """Bound to the token of the request and to the tables."""
    return CallersCursors(context.store, context.cursors.of(scope.principal, context.store.identity))


CursorsOf = Annotated[CallersCursors, Depends(callers_cursors)]


class Paging:
    """A page of a history: its window, its question for the cursor, and the cursor behind it."""

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

    def window(self, *about: Any) -> tuple[Window, Sequence[Any]]:
        """Window of this page; `about` is what else the question consists of."""
        question = [self._route, *self._times, self._newest, *about]
        place = Place(self._context.store.current.batch_id, ())
        if self._cursor is not None:
            place = self._cursors.read(question, self._cursor)
        return Window(*self._times, self._limit, self._newest, place), question

    def next_cursor(self, question: Sequence[Any], page: Page) -> str | None:
        """Cursor behind a page."""
        return None if page.place is None else self._cursors.write(question, page.place)


async def paging(
    request: Request,
    context: ContextOf,
    cursors: CursorsOf,
    limit: Limit,
    cursor: CursorText,
    times: TimeRange,
    newest: NewestFirst,
) -> Paging:
    """Page of the history that the request asks for."""
    return Paging(context, cursors, request.scope["route"].path, limit, cursor, times, newest)


History = Annotated[Paging, Depends(paging)]


DESCRIBED_LATER: dict[int | str, dict[str, Any]] = {"4XX": {"description": "a problem"}}
"""Keeps FastAPI from describing a refusal of its own."""

LIVE = Depends(live_tag)
"""Of routes that answer from the current view alone: their tag is known before their answer is."""


def router_of(tag: str, prefix: str = API) -> APIRouter:
    """Router of one noun: unknown parameters are refused. `api.shapes.described` says which problems each route has."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=PlannedRoute,
        dependencies=[Depends(only_known)],
        responses=DESCRIBED_LATER,
    )


def answer(freshness: Freshness, **members: Any) -> Response:
    """JSON of an answer, freshness first."""
    return Response(orjson.dumps({"freshness": freshness.as_answer(), **members}), media_type="application/json")
