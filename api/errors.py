"""What can go wrong for a caller, as RFC 9457 problems with stable codes.

    ApiError
    ├── BadCursor            400  cursor altered, of another question, or of another server's key
    ├── Unauthenticated      401  no token, or not one of ours; says nothing about what exists
    ├── ScopeTooNarrow       403  a token for some clusters asks for what is about all
    ├── NotFound             404  cluster, group, member or route; a cluster that the token is not for is not there
    ├── MethodRefused        405  this API only reads
    ├── BodyRefused          413  a body where none is read
    ├── UrlTooLong           414
    ├── HostRefused          421  a name this server does not answer to (DNS rebinding)
    ├── ParameterRefused     422  names the parameter, what was expected, and the value, cut and escaped
    ├── BeyondComplete       422  an instant beyond `complete_as_of`: nothing is known of it yet
    ├── RangeTooWide         422  the question would read more rows than allowed
    ├── TooMany              429  one token has too many requests in work
    ├── InternalError        500  a defect here; the request id leads to the log, nothing else leaves
    ├── Overloaded           503  too many requests or reads at once
    ├── TablesMissing        503  names the tables that are not there yet
    ├── TablesNotRead        503  names the tables that this server, which has just begun, has not looked at yet
    ├── TableUnreadable      503  names the table whose log or files cannot be read
    └── ReadTimedOut         504  the files did not answer in time

Where a bound was met, `limit` is the name of its setting, one of `LIMITS`. No text of a library, no path, no stack and
no id of a group or member appears in a problem.
"""

# ruff: noqa: N818 - a problem is named for what the caller did or met, as the tree above reads

from __future__ import annotations

from typing import Any, ClassVar

import orjson
from starlette.responses import Response

from kardia.instants import to_rfc3339

PROBLEM_TYPE = "urn:kardia:problem:"
LIMITS = (
    "url_bytes_max",
    "requests_at_once_max",
    "requests_of_token_max",
    "followers_max",
    "reads_waiting_max",
    "read_timeout_ms",
    "rows_read_max",
    "page_size_max",
    "range_max_ms",
)
"""Settings of `api.settings` that a request can meet the bound of."""

VALUE_SHOWN_MAX = 60
"""Characters of a refused value that are repeated to the caller."""


class ApiError(Exception):
    """One problem: class attributes are the stable part, `detail` is the sentence for this occurrence."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Something is wrong in Kardia"

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.members = members


class BadCursor(ApiError):
    """The cursor was not made by this server for this question."""

    status, code, title = 400, "bad_cursor", "The cursor cannot be used"


class Unauthenticated(ApiError):
    """The caller did not show a valid token."""

    status, code, title = 401, "unauthenticated", "A bearer token is needed"


class ScopeTooNarrow(ApiError):
    """The token is for some clusters, and the answer would be about all."""

    status, code, title = 403, "scope_too_narrow", "The token is not for all clusters"


class NotFound(ApiError):
    """There is no such thing; `what` says which kind of thing."""

    status, code, title = 404, "not_found", "There is no such thing"

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(detail, what=what)


def no_cluster() -> NotFound:
    """The same for a cluster that is not there and for one that the caller may not ask about."""
    return NotFound("cluster", "No cluster of this name has written to the tables; /api/v1/clusters lists them.")


class MethodRefused(ApiError):
    """Only GET and HEAD exist."""

    status, code, title = 405, "method_refused", "This API only reads"


class BodyRefused(ApiError):
    """A request carried a body."""

    status, code, title = 413, "body_refused", "No request here has a body"


class UrlTooLong(ApiError):
    """Path and query are longer than allowed."""

    status, code, title = 414, "url_too_long", "The URL is too long"


class HostRefused(ApiError):
    """The Host header names a machine that this server does not answer for."""

    status, code, title = 421, "host_refused", "This server does not answer to that name"


class ParameterRefused(ApiError):
    """A parameter is unknown, malformed or out of its bounds."""

    status, code, title = 422, "parameter_refused", "A parameter cannot be used"

    def __init__(self, parameter: str, expected: str, value: str | None = None, **members: Any) -> None:
        shown = "" if value is None else f"; got {shorten(value)}"
        super().__init__(f"{shorten(parameter)}: expected {expected}{shown}.", parameter=shorten(parameter), **members)


class BeyondComplete(ApiError):
    """An instant that the tables do not reach yet: an empty answer would look as if all had been well."""

    status, code, title = 422, "beyond_complete", "Nothing is known of that instant yet"

    def __init__(self, parameter: str, asked_ms: int, reached_ms: int | None) -> None:
        reached = to_rfc3339(reached_ms)
        known = "Nothing has been read yet" if reached is None else f"Nothing is known beyond {reached}"
        asked = to_rfc3339(asked_ms) or f"{asked_ms} ms"
        super().__init__(
            f"{known}; {parameter} asks about {asked}; expected an instant that is not after it; ask again when more "
            "has been read, or ask without an instant for what is known last.",
            parameter=parameter,
            complete_as_of_ms=reached_ms,
            complete_as_of=reached,
        )


class RangeTooWide(ApiError):
    """The answer would need more rows than one request may read."""

    status, code, title = 422, "range_too_wide", "The question reads too many rows"


class TooMany(ApiError):
    """One token has too many requests in work."""

    status, code, title = 429, "too_many_requests", "Too many requests with one token"


class InternalError(ApiError):
    """A defect."""


class Overloaded(ApiError):
    """A bound on concurrent work is reached."""

    status, code, title = 503, "overloaded", "Too many requests at once"


class TablesMissing(ApiError):
    """Tables are not there yet."""

    status, code, title = 503, "tables_missing", "Tables are not there yet"

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"The tables {', '.join(names)} do not exist yet under the table directory; expected the job or a replay "
            "to have written them; start `kardia stream` or `kardia replay` with the same --tables, or wait for "
            "its first batch.",
            headers={"Retry-After": "2"},
            tables=names,
        )


class TablesNotRead(ApiError):
    """The first look at the tables is not over: a large directory takes a while."""

    status, code, title = 503, "tables_not_read", "Tables are being read for the first time"

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"This server has just begun and has not read the tables {', '.join(names)} yet; expected the end of its "
            "first look at them; ask again in a moment.",
            headers={"Retry-After": "2"},
            tables=names,
        )


class TableUnreadable(ApiError):
    """A table is there and cannot be read."""

    status, code, title = 503, "table_unreadable", "A table cannot be read"

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"The tables {', '.join(names)} cannot be read now; expected a Delta table of reader version 1; "
            "the log of this server says what its reader met.",
            headers={"Retry-After": "5"},
            tables=names,
        )


class ReadTimedOut(ApiError):
    """A read of the files was given up."""

    status, code, title = 504, "read_timed_out", "The files did not answer in time"


CODES: list[Any] = sorted({kind.code for kind in ApiError.__subclasses__()})
"""All stable codes."""


def shorten(value: str) -> str:
    """A stranger's text for a message: escaped to ASCII, quoted, at most VALUE_SHOWN_MAX characters of it."""
    return ascii(value if len(value) <= VALUE_SHOWN_MAX else value[:VALUE_SHOWN_MAX] + "...")


def problem(error: ApiError, request_id: str) -> Response:
    """The HTTP answer of a problem."""
    body = {
        "type": PROBLEM_TYPE + error.code,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "request_id": request_id,
        **error.members,
    }
    return Response(orjson.dumps(body), error.status, error.headers, "application/problem+json")
