"""The service itself: whether it lives, whether it can answer, what it is, and its series for Prometheus."""

from __future__ import annotations

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse, Response

from api.errors import ScopeTooNarrow
from api.http.asking import answer
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.shapes import models
from kardia import __version__
from kardia.tables import TABLES

router = router_of("service", prefix="")

API_VERSION = "v1"

NAMES = query_parameter(
    "name[]", "Only series of this name; may be given several times.", {"type": "array", "items": {"type": "string"}}
)


@router.get("/livez", response_class=PlainTextResponse, summary="Whether the process answers")
@router.get("/healthz", response_class=PlainTextResponse, summary="The same under its older name")
async def livez(_: ApiRequest) -> Response:
    """Always `ok`, whatever the tables do: a restart would not help them."""
    return PlainTextResponse("ok\n")


@router.get("/readyz", response_model=models.Readiness, summary="Whether questions can be answered")
async def readyz(request: ApiRequest) -> Response:
    """200 if all tables are there and read; 503 and their names if not. Old tables are ready: old beats absent."""
    troubled = sorted({name for trouble in request.context.store.troubles() for name in trouble.members["tables"]})
    reply = answer(request.context.store.freshness(), ready=not troubled, waiting_for=troubled)
    if troubled:
        reply.status_code = 503
        reply.headers["Retry-After"] = "2"
    return reply


@router.get("/version", response_model=models.Version, summary="What is running")
async def version(request: ApiRequest) -> Response:
    """Name and versions."""
    described = models.Version(
        name="kardia",
        version=__version__,
        api=API_VERSION,
        personal="hidden" if request.context.store.settings.hide_personal else "shown",
        tables={name: len(table.columns) for name, table in TABLES.items()},
    )
    return Response(described.model_dump_json(), media_type="application/json")


@router.get("/metrics", response_class=PlainTextResponse, summary="Series for Prometheus", openapi_extra=takes(NAMES))
async def metrics(request: ApiRequest) -> Response:
    """Text exposition, of all series or of those named by `name[]`, as clients of Prometheus have it. What all cost
    follows the groups that are present, never the history; the process's own counters alone cost next to nothing."""
    if request.may_ask.clusters is not None:
        raise ScopeTooNarrow("The series are about all clusters; expected a token without cluster=; ask for one.")
    registry: Collector = request.app.state.registry
    if names := request.query_params.getlist("name[]"):
        registry = request.app.state.registry.restricted_registry(names)
    # Of a large fleet it takes tenths of a second: in a thread, and one at a time.
    async with request.context.scraping:
        series = await asyncio.to_thread(generate_latest, registry)
    return Response(series, media_type=CONTENT_TYPE_LATEST)
