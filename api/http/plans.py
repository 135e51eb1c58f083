"""How a request's parameters are found: a list of steps made once per route, in place of FastAPI's walk per request.

Every parameter here is text that our own functions check, so there is nothing to convert and nothing to validate; what
remains of FastAPI's work is to look names up and to call functions in order. Done anew for each request, with a look at
every type annotation, it took two thirds of the time of an answer. Routes are declared as ever, and FastAPI describes
them; one with a parameter that is more than text is left to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import WithJsonSchema
from pydantic_core import PydanticUndefined
from starlette.requests import Request
from starlette.responses import Response


class Step(NamedTuple):
    """One function to call, and where its arguments come from."""

    call: Callable[..., Awaitable[Any]]
    path: tuple[tuple[str, str], ...]
    """(argument, name in the path)."""
    query: tuple[tuple[str, str, Any], ...]
    """(argument, name in the query, value where it is absent)."""
    results: tuple[tuple[str, int], ...]
    """(argument, number of the step that gives it)."""
    request: str | None
    """Argument that gets the request itself."""


class PlannedRoute(APIRoute):
    """A route whose parameters are found by a plan, if a plan can be made."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        steps: list[Step] = []
        if _plan(self.dependant, steps, {}) is None:
            return super().get_route_handler()

        async def answered(request: Request) -> Response:
            path, query = request.path_params, request.query_params
            found: list[Any] = []
            for step in steps:
                arguments = {name: path[key] for name, key in step.path}
                for name, key, absent in step.query:
                    arguments[name] = query.get(key, absent)
                for name, number in step.results:
                    arguments[name] = found[number]
                if step.request is not None:
                    arguments[step.request] = request
                found.append(await step.call(**arguments))
            response: Response = found[-1]
            return response

        return answered


def _plan(dependant: Dependant, steps: list[Step], known: dict[Any, int]) -> int | None:
    """Add the steps of a function and of all it depends on, in FastAPI's order; the number of its own, None if FastAPI
    must do it."""
    if dependant.call in known:
        return known[dependant.call]
    if dependant.call is None or not _is_simple(dependant):
        return None
    results = []
    for other in dependant.dependencies:
        number = _plan(other, steps, known)
        if number is None:
            return None
        if other.name is not None:
            results.append((other.name, number))
    steps.append(
        Step(
            dependant.call,
            tuple((field.name, field.alias) for field in dependant.path_params),
            tuple((field.name, field.alias, field.default) for field in dependant.query_params),
            tuple(results),
            dependant.request_param_name,
        )
    )
    known[dependant.call] = len(steps) - 1
    return len(steps) - 1


def _is_simple(dependant: Dependant) -> bool:
    """Whether a function is async and takes text, a request, and what other functions give; nothing else."""
    asks_for_more = (
        dependant.header_params,
        dependant.cookie_params,
        dependant.body_params,
        dependant.websocket_param_name,
        dependant.http_connection_param_name,
        dependant.response_param_name,
        dependant.background_tasks_param_name,
        dependant.security_scopes_param_name,
    )
    return (
        not any(asks_for_more)
        and dependant.use_cache
        and inspect.iscoroutinefunction(dependant.call)
        and all(_is_text(field) for field in (*dependant.path_params, *dependant.query_params))
        and all(field.default is not PydanticUndefined for field in dependant.query_params)
    )


def _is_text(field: ModelField) -> bool:
    """Whether a parameter is any text: of its type, and with nothing to it that checks or changes it."""
    info = field.field_info
    return info.annotation in (str, str | None) and all(isinstance(about, WithJsonSchema) for about in info.metadata)
