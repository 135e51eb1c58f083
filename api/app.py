"""The application: settings and a clock in, an ASGI application out.

Only composes: store, context, metrics, routes, page, guard. One background task looks at the tables; it is the only
writer of the current view: it makes the next one and shows it between two requests. An exception in a look is logged
and the next look comes all the same: rather old than absent, and the age is in every answer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, ProcessCollector
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from api.access.middleware import OPEN_PREFIX, Guard, on_error
from api.access.token_file import TokenFile
from api.errors import ApiError
from api.http.changes import Changes
from api.http.refresh import catch_up, is_behind
from api.http.request_context import RequestContext
from api.http.validators import Validators
from api.metrics import RequestMetrics, TableMetrics
from api.past.cursor import Cursors
from api.routes import (
    boards,
    burrow,
    changes,
    chart_rows,
    clusters,
    dangers,
    diff,
    disagreements,
    evictions,
    groups,
    health,
    history,
    incident,
    incidents,
    lag,
    members,
    predictions,
    pulse,
    rebalances,
    rejected,
    runbooks,
    service,
    surprises,
    why,
)
from api.settings import ApiSettings
from api.shapes.described import cached
from api.store import Store
from kardia import __version__

log = logging.getLogger("kardia.api.app")

ROUTES = (
    groups,
    members,
    clusters,
    rejected,
    disagreements,
    surprises,
    dangers,
    boards,
    rebalances,
    history,
    evictions,
    predictions,
    health,
    diff,
    incident,
    incidents,
    why,
    lag,
    pulse,
    chart_rows,
    changes,
    burrow,
    service,
)
"""Nouns in the order of the description. They are looked through from the beginning for each request, so those that are
asked most come first."""

FAILED_S = 1.0
"""Pause after a look that failed for a reason nobody thought of: the next one begins the view anew, which costs."""

PAGE = Path(__file__).parent / "page"

DESCRIPTION = """The liveness of Kafka consumer groups, reconstructed from the traffic itself.

Ids of groups and members may contain anything. In a path they stand as they are if they consist of letters, digits,
`_`, `.`, `-`; else as `~` and the base64url of their UTF-8; or `~` alone with the id in the query parameter of the same
name. Every object carries its `href`. Instants are given in epoch milliseconds and in RFC 3339, and taken in both."""


def create_app(
    settings: ApiSettings,
    now_ms: Callable[[], int],
    shown: Callable[[], None] = lambda: None,
    store: Store | None = None,
    beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
) -> FastAPI:
    """The API over the tables of `settings`. `now_ms` is the wall clock, epoch milliseconds; `shown` is called whenever
    something new has been shown. `store`: what is read in place of the tables alone. `beside`: what runs in the same
    loop as long as the application."""
    store = store or Store(settings, now_ms)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(TableMetrics(store))
    ProcessCollector(namespace="kardia_serve", registry=registry)
    requests = RequestMetrics(registry)

    def changed(outcome: str) -> None:
        """Count a change of the token file. Cursors follow it: all servers with this file share their key."""
        requests.token_file(outcome)
        if tokens is not None:
            app.state.context.cursors = Cursors(tokens.key())

    tokens = None if settings.token_file is None else TokenFile(settings.token_file, changed)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(keep_looking(store, app.state.changes, shown), name="kardia-store")]
        tasks += [asyncio.create_task(run(), name="kardia-beside") for run in beside]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        app.state.context.close()

    app = FastAPI(
        title="Kardia",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from a foreign network
        redoc_url=None,
        redirect_slashes=False,
    )
    cursors = Cursors(secrets.token_bytes(32) if tokens is None else tokens.key())
    app.state.context = RequestContext(store, cursors, requests.read)
    app.state.registry = registry
    app.state.requests = requests
    app.state.changes = Changes(settings.followers_max)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        """The page for people; it carries no data itself."""
        return FileResponse(PAGE / "index.html")

    app.mount(OPEN_PREFIX.rstrip("/"), StaticFiles(directory=PAGE), name="page")
    for routes in (*ROUTES, runbooks):
        app.include_router(routes.router)
    for kind in (ApiError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, on_error)
    document = cached(app, settings)
    app.openapi = document  # type: ignore[method-assign]  # as FastAPI's documentation does it
    app.add_middleware(Validators)
    app.add_middleware(
        Guard, settings=settings, known=tokens, observe=requests.observe, limited=requests.limit, now_ms=now_ms
    )
    return app


async def keep_looking(store: Store, changes: Changes, shown: Callable[[], None]) -> None:
    """Look at the tables again and again, `refresh_ms` apart; tell those who follow what batch is shown."""
    while True:
        try:
            if await is_behind(store):
                if await catch_up(store):
                    shown()
                changes.announce(store.current.batch_id)
        except Exception:
            log.exception("store.look.failed")
            await asyncio.sleep(FAILED_S)
        await store.rest(store.settings.refresh_ms)
