"""What routes share: typed, bounded parameters; answers with freshness; reads of files under a time limit.

A dependency per noun of the URL. Nothing here knows a route.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from api.answers import API
from api.archive import Page, Window
from api.cursor import Cursors, Place
from api.errors import BadCursor, Overloaded, ParameterRefused, ReadTimedOut
from api.freshness import Freshness
from api.ids import ID_BYTES_MAX, from_segment
from api.instants import parse_instant
from api.models import Problem
from api.store import Store

Found = TypeVar("Found")


class Desk:
    """What a request needs: the store, the key of cursors, and places for reads of files. One per application."""

    def __init__(self, store: Store, cursors: Cursors) -> None:
        self.store = store
        self.cursors = cursors
        limits = store.settings
        # A pool of our own: a thread that is given up still holds its place, where anyio's limiter would hand it on.
        self._pool = ThreadPoolExecutor(limits.reads_at_once_max, "kardia-read")
        self._pending = 0
        self._lock = Lock()

    async def read(self, question: Callable[[], Found]) -> Found:
        """Run a read of files in a thread. One that takes too long is given up; its place stays taken to its end."""
        limits = self.store.settings
        if self._pending >= limits.reads_at_once_max + limits.reads_waiting_max:
            raise Overloaded(
                "expected fewer questions about the past at once; ask again later.", headers={"Retry-After": "1"}
            )
        with self._lock:
            self._pending += 1
        reading = self._pool.submit(question)
        reading.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(reading), limits.read_timeout_ms / 1000)
        except TimeoutError:
            raise ReadTimedOut(
                f"expected an answer within {limits.read_timeout_ms} ms; narrow it with from and to, or ask later."
            ) from None

    def close(self) -> None:
        """Take no more reads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: Future[Any]) -> None:
        # Called by the reading thread.
        with self._lock:
            self._pending -= 1


async def desk(request: Request) -> Desk:
    """The application's desk."""
    found: Desk = request.app.state.desk
    return found


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


_ID = f"its id: as it is if it is plain, ~base64url if not, or ~ with the query parameter; at most {ID_BYTES_MAX} bytes"


def _id(name: str, segment: str, given: str | None) -> str:
    try:
        return from_segment(segment, given)
    except ValueError as error:
        raise ParameterRefused(name, f"an id that can be read (see /openapi.json); this one {error}", segment) from None


async def cluster_id(
    cluster: Annotated[str, Path(description=f"Cluster, {_ID}")],
    given: Annotated[str | None, Query(alias="cluster", description="cluster, where the path has ~")] = None,
) -> str:
    """Cluster of the URL."""
    return _id("cluster", cluster, given)


async def group_id(
    group: Annotated[str, Path(description=f"Group, {_ID}")],
    given: Annotated[str | None, Query(alias="group", description="group, where the path has ~")] = None,
) -> str:
    """Group of the URL."""
    return _id("group", group, given)


async def member_id(
    member: Annotated[str, Path(description=f"Member, {_ID}")],
    given: Annotated[str | None, Query(alias="member", description="member, where the path has ~")] = None,
) -> str:
    """Member of the URL."""
    return _id("member", member, given)


DeskOf = Annotated[Desk, Depends(desk)]
ClusterId = Annotated[str, Depends(cluster_id)]
GroupId = Annotated[str, Depends(group_id)]
MemberId = Annotated[str, Depends(member_id)]


async def page_limit(
    at: DeskOf,
    limit: Annotated[
        str | None, Query(description="rows of a page, 1 to 1000", json_schema_extra={"default": "100"})
    ] = None,
) -> int:
    """Rows of a page."""
    limits = at.store.settings
    if limit is None:
        return limits.page_size
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and 1 <= int(limit) <= limits.page_size_max):
        raise ParameterRefused("limit", f"a number from 1 to {limits.page_size_max}", limit)
    return int(limit)


async def cursor_text(
    cursor: Annotated[str | None, Query(description="next_cursor of the page before")] = None,
) -> str | None:
    """Cursor as given."""
    return cursor


Limit = Annotated[int, Depends(page_limit)]
CursorText = Annotated[str | None, Depends(cursor_text)]


def _instant(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        expected = f"epoch milliseconds or RFC 3339 with a zone; this is {error}"
        raise ParameterRefused(name, expected, text) from None


_INSTANT = "epoch milliseconds or RFC 3339"


async def at_instant(
    at: Annotated[str | None, Query(description=f"the instant asked about, {_INSTANT}; absent: as far as read")] = None,
) -> int | None:
    """The instant asked about."""
    return _instant("at", at)


AtInstant = Annotated[int | None, Depends(at_instant)]


async def time_range(
    at: DeskOf,
    from_: Annotated[str | None, Query(alias="from", description=f"not before this instant, {_INSTANT}")] = None,
    to: Annotated[str | None, Query(description=f"before this instant, {_INSTANT}")] = None,
) -> tuple[int | None, int | None]:
    """From (inclusive) and to (exclusive)."""
    from_ms, to_ms = _instant("from", from_), _instant("to", to)
    if from_ms is not None and to_ms is not None:
        widest_ms = at.store.settings.range_max_ms
        if to_ms < from_ms:
            raise ParameterRefused("to", "an instant that is not before `from`", to)
        if to_ms - from_ms > widest_ms:
            raise ParameterRefused(
                "to", f"at most {widest_ms} ms after `from`; ask for less, or leave one of them out", to
            )
    return from_ms, to_ms


TimeRange = Annotated[tuple[int | None, int | None], Depends(time_range)]


async def newest_first(
    order: Annotated[
        str, Query(description="newest or oldest first", json_schema_extra={"enum": ["newest", "oldest"]})
    ] = "newest",
) -> bool:
    """Order of a history."""
    if order not in ("newest", "oldest"):
        raise ParameterRefused("order", "newest or oldest", order)
    return order == "newest"


NewestFirst = Annotated[bool, Depends(newest_first)]


class Paging:
    """A page of a history: its window, its question for the cursor, and the cursor behind it."""

    def __init__(
        self, at: Desk, route: str, limit: int, cursor: str | None, times: tuple[int | None, int | None], newest: bool
    ) -> None:
        self._desk = at
        self._route = route
        self._cursor = cursor
        self._limit = limit
        self._times = times
        self._newest = newest

    def window(self, *about: Any) -> tuple[Window, Sequence[Any]]:
        """Window of this page; `about` is what else the question consists of."""
        question = [self._route, *self._times, self._newest, *about]
        batch_id = self._desk.store.current.batch_id
        place = Place(batch_id, ())
        if self._cursor is not None:
            place = self._desk.cursors.read(question, self._cursor)
            if place.batch_id > batch_id:
                raise BadCursor(
                    "cursor: expected one of these tables; they have been made anew since; ask without a cursor."
                )
        return Window(*self._times, self._limit, self._newest, place), question

    def next_cursor(self, question: Sequence[Any], page: Page) -> str | None:
        """Cursor behind a page."""
        return None if page.place is None else self._desk.cursors.write(question, page.place)


async def paging(
    request: Request, at: DeskOf, limit: Limit, cursor: CursorText, times: TimeRange, newest: NewestFirst
) -> Paging:
    """Page of the history that the request asks for."""
    return Paging(at, request.scope["route"].path, limit, cursor, times, newest)


History = Annotated[Paging, Depends(paging)]


def router_of(tag: str, prefix: str = API) -> APIRouter:
    """Router of one noun: unknown parameters are refused, and problems are part of its description."""
    return APIRouter(prefix=prefix, tags=[tag], dependencies=[Depends(only_known)], responses=PROBLEMS)


def answer(freshness: Freshness, **members: Any) -> Response:
    """JSON of an answer, freshness first."""
    return Response(orjson.dumps({"freshness": freshness.as_answer(), **members}), media_type="application/json")


_PROBLEM = {"application/problem+json": {"schema": Problem.model_json_schema()}}

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The question cannot be answered; `code` says why", "content": _PROBLEM},
    "5XX": {"description": "The answer cannot be given now; `code` says why", "content": _PROBLEM},
}
