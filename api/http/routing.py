"""Routes: FastAPI describes them, and a request goes straight to its endpoint.

An endpoint takes the request alone and reads the parameters of the URL itself, by functions of `names`, `times` and
`asking`; it names the same ones in `takes`, and a parameter that it does not name is refused. So FastAPI has nothing to
look up for a request: doing that by the types of an endpoint's arguments took as long as the answer itself. How a route
and a request of one's own are made is FastAPI's documented way (`APIRoute.get_route_handler`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from api.access.middleware import MAY_ASK
from api.access.tokens import Scope
from api.answers.as_dicts import API
from api.errors import ParameterRefused
from api.http.request_context import RequestContext

Parameter = Mapping[str, Any]
"""A parameter as OpenAPI describes it."""

TEXT: Mapping[str, Any] = {"type": "string"}
"""Schema of a parameter that may be any text."""

DESCRIBED_LATER: dict[int | str, dict[str, Any]] = {"4XX": {"description": "a problem"}}
"""Keeps FastAPI from describing a refusal of its own."""


class ApiRequest(Request):
    """A request, with what its answer needs of the application."""

    @property
    def context(self) -> RequestContext:
        """That of the application."""
        found: RequestContext = self.app.state.context
        return found

    @property
    def may_ask(self) -> Scope:
        """What the token of the request is for."""
        found: Scope = self.scope[MAY_ASK]
        return found


class DirectRoute(APIRoute):
    """A route whose endpoint is called with the request, once the names of its query parameters are checked."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        endpoint = self.endpoint
        taken = [one for one in (self.openapi_extra or {}).get("parameters", ()) if one["in"] == "query"]
        names = frozenset(one["name"] for one in taken)
        repeatable = frozenset(one["name"] for one in taken if one["schema"].get("type") == "array")

        async def answered(request: Request) -> Response:
            asked = ApiRequest(request.scope, request.receive)
            _check_names(asked, names, repeatable)
            response: Response = await endpoint(asked)
            return response

        return answered


def _check_names(request: ApiRequest, names: frozenset[str], repeatable: frozenset[str]) -> None:
    """Refuse a query parameter that the route does not have, and one that is given twice."""
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name not in names:
            near = ", ".join(sorted(names)) or "none"
            raise ParameterRefused(name, f"one of the parameters of this route ({near})", value)
        if name in seen and name not in repeatable:
            raise ParameterRefused(name, "to be given once", value)
        seen.add(name)


def path_parameter(name: str, description: str, schema: Mapping[str, Any]) -> Parameter:
    """A part of the path."""
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def query_parameter(name: str, description: str, schema: Mapping[str, Any]) -> Parameter:
    """A parameter behind the `?`; none has to be given."""
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def takes(*parameters: Parameter) -> dict[str, Any]:
    """`openapi_extra` of a route with these parameters, those of the path first."""
    return {"parameters": sorted(parameters, key=lambda one: one["in"] == "query")}


def router_of(tag: str, prefix: str = API) -> APIRouter:
    """Router of one noun. `api.shapes.described` says which problems each route has."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=DirectRoute, responses=DESCRIBED_LATER)
