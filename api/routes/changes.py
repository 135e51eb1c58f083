"""`/api/v1/changes`: server-sent events, one per batch, so that a page asks when there is something new to ask for.

Not in the OpenAPI document: the answer never ends, and nothing there can describe that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from starlette.responses import Response

from api.access.middleware import MAY_STILL
from api.errors import Overloaded
from api.http.changes import Changes
from api.http.routing import ApiRequest, router_of

router = router_of("service")

PING_S = 10.0
"""A comment that often tells both ends that the line is up; proxies cut silent ones after 30 to 60 s."""

SEND_TIMEOUT_S = 20.0
"""A follower that takes nothing for that long is let go."""


@router.get("/changes", include_in_schema=False)
async def changes(request: ApiRequest) -> Response:
    """Freshness, now and after each batch. Beyond `followers_max` it is refused, and asking every second does too. It
    ends when the caller's token is none any more."""
    from sse_starlette import EventSourceResponse  # loads a whole server, which a question has no use for

    found: Changes = request.app.state.changes
    if found.is_full:
        raise Overloaded(
            "expected fewer followers; ask for what you want once a second.",
            headers={"Retry-After": "30"},
            limit="followers_max",
        )

    may_still: Callable[[], bool] = request.scope[MAY_STILL]

    def say(_: int) -> str | None:
        if not may_still():
            return None
        news: dict[str, Any] = request.context.store.freshness(among=request.may_ask).as_answer()
        return orjson.dumps(news).decode()

    stream = EventSourceResponse(found.follow(say), ping=PING_S, send_timeout=SEND_TIMEOUT_S)
    del stream.headers["cache-control"]  # the guard says it of every answer
    return stream
