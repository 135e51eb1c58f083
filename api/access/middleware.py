"""What every request passes first: bounds, host, token; and what every answer leaves with: headers, id, a count.

Pure ASGI, no decision about tables. Routes that carry no data (`/livez`, `/healthz`, `/readyz`, the page and its
files, runbooks) are open; everything else needs a token where there is one. The route template goes into metrics, never
the URL.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import tokens
from api.access.token_file import TokenFile
from api.errors import (
    ApiError,
    BodyRefused,
    HostRefused,
    InternalError,
    MethodRefused,
    NotFound,
    Overloaded,
    TooMany,
    Unauthenticated,
    UrlTooLong,
    problem,
)
from api.settings import ApiSettings

log = logging.getLogger("kardia.api.guard")

PROBES = frozenset(("/livez", "/healthz"))
"""Answered however many requests are in work: who asks restarts the server where it is not."""

OPEN_PATHS = frozenset(("/", "/readyz")) | PROBES
OPEN_PREFIX = "/page/"
RUNBOOKS_PREFIX = "/runbooks/"
METHODS = ("GET", "HEAD")
REQUEST_ID = "kardia.request_id"
"""Key of the request id in the ASGI scope."""
MAY_ASK = "kardia.may_ask"
"""Key of the `api.access.tokens.Scope` of the caller in the ASGI scope."""

MAY_STILL = "kardia.may_still"
"""Key in the ASGI scope of a function that says whether the caller may still ask what it might when it asked: the
answer to a stream that goes on after its token has expired or was revoked."""

LIMIT = "kardia.limit"
"""Key of the setting in the ASGI scope whose bound the request met, if it met one."""

LOOPBACK_HOSTS = frozenset(("localhost", "127.0.0.1", "[::1]"))

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
CSP_DATA = b"default-src 'none'; frame-ancestors 'none'"
CSP_PAGE = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

STREAM = b"text/event-stream"

Observe = Callable[[str, str, int, float], None]
"""(method, route template, status, seconds) of a finished request."""


class Guard:
    """ASGI middleware around the application."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ApiSettings,
        known: TokenFile | None,
        observe: Observe,
        limited: Callable[[str], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._app = app
        self._now_ms = now_ms
        self._settings = settings
        self._tokens = known
        self._observe = observe
        self._limited = limited
        self._in_work = 0
        self._in_work_of: Counter[str] = Counter()
        """Principal -> its requests in work."""
        hosts = {host.lower() for host in settings.allowed_hosts}
        # Without a token the Host header is all that keeps a foreign page from reading loopback by DNS rebinding.
        if settings.is_loopback:
            hosts |= LOOPBACK_HOSTS | {settings.host.lower()}
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        began, status, started, streamed = perf_counter(), 500, False, False
        is_page = scope["path"] == "/" or scope["path"].startswith((OPEN_PREFIX, RUNBOOKS_PREFIX))
        holds_no_data = is_page or scope["path"] == "/openapi.json"
        method = scope["method"] if scope["method"] in METHODS else "other"
        # A HEAD is answered as a GET whose body the server leaves out.
        asked = {**scope, "method": "GET" if method == "HEAD" else scope["method"], REQUEST_ID: request_id}

        async def send_with_headers(message: Message) -> None:
            nonlocal status, started, streamed
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                streamed = any(
                    name == b"content-type" and value.startswith(STREAM) for name, value in message["headers"]
                )
                headers = [*message.get("headers", ()), *HEADERS, (b"x-request-id", request_id.encode())]
                headers.append((b"content-security-policy", CSP_PAGE if is_page else CSP_DATA))
                # Nothing that changes is kept: what is left of a deadline would be told of another present.
                headers.append((b"cache-control", b"no-cache" if holds_no_data else b"no-store"))
                message = {**message, "headers": headers}
            self._in_work -= 1  # who does not read is no work; what it costs is bounded by `connections`
            try:
                await send(message)
            finally:
                self._in_work += 1

        self._in_work += 1
        principal = ""
        try:
            asked[MAY_ASK] = may_ask = self._check(scope)
            asked[MAY_STILL] = partial(self._may_still, scope, may_ask)
            principal = may_ask.principal
            self._in_work_of[principal] += 1
            if principal and self._in_work_of[principal] > self._settings.requests_of_token_max:
                raise TooMany(
                    f"expected at most {self._settings.requests_of_token_max} requests at once with one token; ask "
                    "again later.",
                    headers={"Retry-After": "1"},
                    limit="requests_of_token_max",
                )
            await self._app(asked, receive, send_with_headers)
        except Exception as error:
            # After the start of an answer the application has already told the caller, and the log (`on_error`).
            if not started:
                refused = as_api_error(error, request_id)
                asked[LIMIT] = refused.members.get("limit")
                await problem(refused, request_id)(scope, receive, send_with_headers)
        finally:
            self._in_work -= 1
            if asked.get(MAY_ASK) is not None:
                self._in_work_of[principal] -= 1
                if not self._in_work_of[principal]:
                    del self._in_work_of[principal]
            if asked.get(LIMIT) is not None:
                self._limited(asked[LIMIT])
            if not streamed:  # how long somebody followed says nothing about how quickly anything is answered
                self._observe(method, route_of(asked), status, perf_counter() - began)

    def _check(self, scope: Scope) -> tokens.Scope:
        """What the caller may ask about, or the problem with the request."""
        limits = self._settings
        if self._in_work > limits.requests_at_once_max and scope["path"] not in PROBES:
            raise Overloaded(
                f"expected at most {limits.requests_at_once_max} requests at once; ask again later.",
                headers={"Retry-After": "1"},
                limit="requests_at_once_max",
            )
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > limits.url_bytes_max:
            raise UrlTooLong(
                f"expected at most {limits.url_bytes_max} bytes of path and query; shorten it.", limit="url_bytes_max"
            )
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._hosts and _host_name(headers.get(b"host", b"")) not in self._hosts:
            raise HostRefused(
                "Host: expected a name this server answers to; use 127.0.0.1, or start it with --allowed-host NAME."
            )
        if headers.get(b"content-length", b"0").strip(b"0") or b"transfer-encoding" in headers:
            raise BodyRefused("expected no body; put everything into the URL.", headers={"Connection": "close"})
        if scope["method"] not in METHODS:
            raise MethodRefused(
                "expected GET or HEAD; nothing here can be changed.", headers={"Allow": ", ".join(METHODS)}
            )
        if self._tokens is None or _is_open(scope["path"]):
            return tokens.EVERYTHING
        may_ask = self._tokens.accept(headers.get(b"authorization"), self._now_ms())
        if may_ask is None:
            raise Unauthenticated(
                "Authorization: expected `Bearer` and a token of this server; ask its operator for one.",
                headers={"WWW-Authenticate": 'Bearer realm="kardia"'},
            )
        return may_ask

    def _may_still(self, scope: Scope, might: tokens.Scope) -> bool:
        if self._tokens is None:
            return True
        return self._tokens.accept(dict(scope["headers"]).get(b"authorization"), self._now_ms()) == might


def as_api_error(error: Exception, request_id: str) -> ApiError:
    """The one table from exceptions to problems; what is not in it is a defect and is logged whole."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException) and error.status_code == NotFound.status:
        return NotFound(
            "route", "No route has this path; /openapi.json lists them, and every answer has hrefs to follow."
        )
    if isinstance(error, HTTPException) and error.status_code == MethodRefused.status:
        return MethodRefused(
            "expected GET or HEAD; nothing here can be changed.", headers={"Allow": ", ".join(METHODS)}
        )
    log.error("request.failed request_id=%s", request_id, exc_info=error)
    return InternalError(
        "A defect in Kardia; expected an answer; tell its operator the request_id, which leads to the log."
    )


async def on_error(request: Request, error: Exception) -> Response:
    """Exception handler of the application."""
    request_id: str = request.scope[REQUEST_ID]
    refused = as_api_error(error, request_id)
    request.scope[LIMIT] = refused.members.get("limit")
    return problem(refused, request_id)


def route_of(scope: Scope) -> str:
    """Template of the route that took the request, `unmatched` for none: a closed set."""
    route: Any = scope.get("route")
    return getattr(route, "path", None) or "unmatched"


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith((OPEN_PREFIX, RUNBOOKS_PREFIX))


_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
"""A name or an address in brackets, and perhaps a port: nothing may stand between the bracket and the colon."""


def _host_name(host: bytes) -> str:
    found = _HOST.fullmatch(host.decode("latin-1").lower())
    return "" if found is None else found[1]
