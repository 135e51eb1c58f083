"""The OpenAPI document: what FastAPI reads from the types, and what types cannot say.

Adds a meaning to every field, the problems that each route may answer with their codes, ETag and If-None-Match, and
examples: real answers of a recorded story (`api/shapes/examples.json`, made by `scripts/write_examples.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api import errors
from api.errors import ApiError
from api.http.validators import TAGGED, UNTAGGED
from api.settings import ApiSettings
from api.shapes.meanings import meaning_of
from api.shapes.models import Problem
from api.shapes.report_models import BurrowAnswer

EXAMPLES = Path(__file__).parent / "examples.json"
"""{"answers": {path: {"url", "type", "answer"}}, "problems": {code: problem}, "parameters": {name: value}}."""

OPEN = ("/livez", "/healthz", "/readyz")
"""Routes that need no token."""

ALWAYS = (
    errors.MethodRefused,
    errors.BodyRefused,
    errors.UrlTooLong,
    errors.HostRefused,
    errors.ParameterRefused,
    errors.InternalError,
    errors.Overloaded,
)
"""What the guard, and the check of parameters, may answer on any route."""

OF_PATHS = ("cluster", "group", "member", "consumer")
"""Ids; as query parameters they are given where the path has `~`."""

PROBLEM_TYPE = "application/problem+json"


BOARD_OF_MEMBER = "/api/v1/boards/clusters/{cluster}/groups/{group}/members/"
"""Board that may read files: a member that is gone."""


def cached(app: FastAPI, settings: ApiSettings) -> Callable[[], dict[str, Any]]:
    """The document, made when it is first asked for."""
    return cache(partial(describe, app, settings))


def describe(app: FastAPI, settings: ApiSettings) -> dict[str, Any]:
    """The document of an application."""
    found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = found["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema()
    schemas["BurrowAnswer"] = BurrowAnswer.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas["BurrowAnswer"].pop("$defs")
    for name, schema in schemas.items():
        _give_meanings(name, schema)
    if settings.token_file is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, item in found["paths"].items():
        operation = item["get"]
        if settings.token_file is not None and path not in OPEN:
            operation["security"] = [{"token": []}]
        for parameter in operation.get("parameters", ()):
            _describe_parameter(parameter, settings)
        operation["responses"] = _responses(path, operation)
    return found


def problems_of(path: str, parameters: set[tuple[str, str]]) -> list[type[ApiError]]:
    """Problems that a route may answer; `parameters` are (in, name)."""
    found = [*ALWAYS]
    if path not in OPEN:
        found += [errors.Unauthenticated, errors.TooMany]
    if any(place == "path" for place, _ in parameters):
        found.append(errors.NotFound)
    if ("query", "known_at") in parameters:
        found.append(errors.BeyondComplete)
    if ("query", "cursor") in parameters:
        found.append(errors.BadCursor)
    if path == "/metrics":
        found.append(errors.ScopeTooNarrow)
    if path.startswith(TAGGED) and path != "/version":
        found += [errors.TablesMissing, errors.TablesNotRead, errors.TableUnreadable]
    if path.startswith(("/api/v1/clusters/{cluster}/groups/", BOARD_OF_MEMBER)):
        found += [errors.RangeTooWide, errors.ReadTimedOut]
    if path in [f"/api/v1/clusters/{{cluster}}/{one}" for one in ("rejected", "disagreements", "surprises")]:
        found.append(errors.ReadTimedOut)
    return sorted(found, key=lambda kind: (kind.status, kind.code))


@cache
def examples() -> dict[str, Any]:
    """Answers of the recorded story."""
    found: dict[str, Any] = orjson.loads(EXAMPLES.read_bytes())
    return found


def _give_meanings(name: str, schema: dict[str, Any]) -> None:
    fields = schema.get("properties", {})
    for field, described in fields.items():
        meaning = meaning_of(name, field, frozenset(fields))
        if "description" not in described and meaning is not None:
            # Beside a $ref as well: OpenAPI 3.1 reads both.
            described["description"] = meaning


def _describe_parameter(parameter: dict[str, Any], settings: ApiSettings) -> None:
    if parameter["name"] == "limit":
        parameter["schema"] |= {"maximum": settings.page_size_max, "default": settings.page_size}
    value = examples()["parameters"].get(parameter["name"])
    if value is not None and (parameter["in"] == "path" or parameter["name"] not in OF_PATHS):
        parameter["example"] = value


def _responses(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    """200 with its example, 304 where there are tags, and each status of a problem with its codes."""
    found = {status: said for status, said in operation["responses"].items() if status.isdigit()}
    recorded = examples()["answers"].get(path, [])
    found["200"]["description"] = operation["summary"]
    for one in recorded:
        said = found["200"].setdefault("content", {}).setdefault(one["type"], {"schema": {"type": "string"}})
        said.setdefault("examples", {})[f"recorded_{len(said.get('examples', {})) + 1}"] = {
            "summary": f"GET {one['url']}",
            "value": one["answer"],
        }
    if path.startswith(TAGGED) and not path.startswith(UNTAGGED):
        tag = {"description": "covers all but what the clock moves", "schema": {"type": "string"}}
        found["200"]["headers"] = {"ETag": tag}
        found["304"] = {"description": "The caller has it already: If-None-Match names its ETag"}
        asked = {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "ETags of answers that the caller has, or *",
            "schema": {"type": "string"},
        }
        operation.setdefault("parameters", []).append(asked)
    if path.startswith("/v3/"):
        return found | _of_burrow(path)
    if path == "/readyz":
        found["503"] = found["200"] | {"description": "Tables are missing or cannot be read; the body names them"}
    parameters = {(one["in"], one["name"]) for one in operation.get("parameters", ())}
    for kind in problems_of(path, parameters):
        _add_problem(found, kind)
    return found


def _add_problem(responses: dict[str, Any], kind: type[ApiError]) -> None:
    status, line = str(kind.status), f"`{kind.code}`: {kind.title}"
    said = responses.setdefault(status, {"description": "", "content": {}})
    said["description"] = f"{said['description']}; {line}" if said["description"] else line
    content = said["content"] = dict(said["content"])
    body = content.setdefault(PROBLEM_TYPE, {"schema": {"$ref": "#/components/schemas/Problem"}})
    value = examples()["problems"].get(kind.code)
    if value is not None:
        body.setdefault("examples", {})[kind.code] = {"summary": kind.title, "value": value}


def _of_burrow(path: str) -> dict[str, Any]:
    """Burrow's answers say in their own shape what is wrong; what the guard refuses is a problem as everywhere."""
    found: dict[str, Any] = {}
    for kind in (*ALWAYS, errors.Unauthenticated, errors.TooMany):
        _add_problem(found, kind)
    shapes = {
        name: {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        for name in ("BurrowStatus", "BurrowAnswer")
    }
    if "{" in path:
        shape = shapes["BurrowStatus" if path.endswith(("/status", "/lag")) else "BurrowAnswer"]
        found["404"] = {"description": "Not seen; in Burrow's shape", "content": shape}
    found["503"]["content"] |= shapes["BurrowAnswer"]
    return found
