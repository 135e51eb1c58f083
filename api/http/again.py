"""Answers made from the current view, sent again for as long as the view is the same: encoded once, however many ask.

An answer is named by its tag (`api.http.validators.live_tag`): what it is made from, who asks, and what.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.responses import Response

from api.answers.encoded import Encoded
from api.http.routing import ApiRequest
from api.http.validators import TAG, live_tag

Endpoint = Callable[[ApiRequest], Awaitable[Response]]


class EncodedResponse(Response):
    """An answer that may be sent again."""

    media_type = "application/json"

    def __init__(self, encoded: Encoded) -> None:
        """The answer as of now."""
        self.encoded = encoded
        super().__init__(encoded.filled())


def encoded_once(endpoint: Endpoint) -> Endpoint:
    """A route whose answer is made from the current view alone, unless it is asked about the past."""

    @wraps(endpoint)
    async def answered(request: ApiRequest) -> Response:
        live_tag(request)
        tag: str | None = request.scope.get(TAG)
        if tag is None:
            return await endpoint(request)
        context = request.context
        state = (context.store.epoch, context.store.revision, context.cursors)
        found = context.kept.of(state, tag)
        if found is not None:
            return EncodedResponse(found)
        response = await endpoint(request)
        if isinstance(response, EncodedResponse):
            context.kept.keep(tag, response.encoded)
        return response

    return answered
