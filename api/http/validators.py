"""ETag and If-None-Match: whoever has an answer and asks again is told in a few bytes that nothing new is known.

What a tag covers: every byte of an answer but what the clock alone moves, `TOLD_BY_THE_CLOCK`. Two answers with one tag
tell the same facts, deadlines included; what is left of a deadline follows from the present. That is a weak tag; an
answer without such a field gets a strong one. Going stale changes the tag, because countdowns are then withheld.

Where an answer is made from the current view alone its tag is made from the view's revision and the question, without
the answer (`live_tag`, cheap: a 304 costs no more than the guard); where files are read it is a digest of the answer.
Answers stay `no-store`: a cache that keeps one and revalidates it would show the countdown of the past as the present.
"""

from __future__ import annotations

import re
from hashlib import sha256

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.middleware import MAY_ASK
from api.store import Store

TOLD_BY_THE_CLOCK = (
    "age_ms",
    "answered_at_ms",
    "answered_at",
    "remaining_ms",
    "lasting_ms",
    "duration_ms",
    "in_tables",
)
"""Fields that move while nothing happens. `duration_ms` of what is over moves with `completed_at_ms` beside it."""

TAG = "kardia.tag"
"""Key of the tag of the answer in the ASGI scope, where it is known before the answer is."""

TAGGED = ("/api/v1/", "/v3/kafka", "/openapi.json", "/version")
"""How the paths begin whose answers have tags; probes and series are asked for what is so now."""

UNTAGGED = "/api/v1/boards/"
"""How the paths begin whose answers the clock alone changes, in words and in what is no longer known."""

TIMED = "/api/v1/"
"""How the paths begin whose answers have such fields; the description of the API only shows them."""

# A quotation mark inside a JSON string has a backslash before it, so this finds names of members and nothing else.
_MOVING = re.compile(rb'"(?:%s)":(?:-?[0-9]+|"[^"]*"|null|true|false)' % "|".join(TOLD_BY_THE_CLOCK).encode())
_ENTITY_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


class NotModifiedError(Exception):
    """The caller has this answer already."""


class Validators:
    """ASGI middleware: puts a tag on answers, and leaves out those that the caller has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(TAGGED) or path.startswith(UNTAGGED):
            await self._app(scope, receive, send)
            return
        started: Message | None = None

        async def send_tagged(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start" and message["status"] == 200:
                started = message
                return
            if started is not None:
                start, started = started, None
                # An answer that comes in pieces is a stream, which has no end to make a tag of.
                if not message.get("more_body"):
                    tag = scope.get(TAG) or tag_of(message.get("body", b""), live=scope["path"].startswith(TIMED))
                    if is_among(tag, _asked_with(scope)):
                        await not_modified(tag)(scope, receive, send)
                        return
                    start = {**start, "headers": [*start["headers"], (b"etag", tag.encode())]}
                await send(start)
            await send(message)

        try:
            await self._app(scope, receive, send_tagged)
        except NotModifiedError:
            await not_modified(scope[TAG])(scope, receive, send)


def live_tag(request: Request) -> None:
    """Give an answer that is made from the current view its tag; NotModifiedError if the caller has that answer."""
    if "at" in request.query_params or "known_at" in request.query_params:
        return  # the past is read from files
    store: Store = request.app.state.context.store
    scope, may_ask = request.scope, request.scope[MAY_ASK]
    view = [
        store.epoch,
        store.revision,
        [store.freshness(cluster).stale for cluster in store.current.clusters.values()],
    ]
    asked = [scope["path"], scope["query_string"].decode("latin-1"), sorted(may_ask.clusters or ()), may_ask.principal]
    digest = sha256(orjson.dumps([view, [str(trouble) for trouble in store.troubles()], asked])).hexdigest()[:24]
    scope[TAG] = f'W/"{digest}"'
    listed = _asked_with(scope)
    # `*` is left for later: only whoever has a tag is known to have had the answer.
    if listed is not None and listed.strip() != "*" and is_among(scope[TAG], listed):
        raise NotModifiedError


def tag_of(body: bytes, *, live: bool = True) -> str:
    """Tag of a body: weak if it is about the present and the clock moves some of it."""
    settled, moving = _MOVING.subn(b"", body) if live else (body, 0)
    return f'{"W/" * (moving > 0)}"{sha256(settled).hexdigest()[:24]}"'


def is_among(tag: str, if_none_match: str | None) -> bool:
    """Whether an If-None-Match names a tag, compared weakly; `*` names any."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or tag.removeprefix("W/").strip('"') in _ENTITY_TAG.findall(if_none_match)


def not_modified(tag: str) -> Response:
    """The answer to whoever has it already."""
    return Response(status_code=304, headers={"ETag": tag})


def _asked_with(scope: Scope) -> str | None:
    """The If-None-Match of a request; several such headers are one list."""
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"]
    return ", ".join(found) if found else None
