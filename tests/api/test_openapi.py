"""The OpenAPI document: nothing without a meaning, examples that were recorded and fit, problems with their codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from api.app import create_app
from api.errors import CODES
from api.settings import ApiSettings
from api.shapes.described import EXAMPLES
from api.shapes.meanings import MEANINGS
from scripts.write_examples import made

DOCUMENT: dict[str, Any] = create_app(ApiSettings(tables=Path("nowhere")), lambda: 0).openapi()
OPERATIONS = [(path, item["get"]) for path, item in DOCUMENT["paths"].items()]
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def test_the_committed_examples_are_what_the_story_gives() -> None:
    assert orjson.loads(EXAMPLES.read_bytes()) == made(), "run: .venv/bin/python -m scripts.write_examples"


def test_every_field_has_a_meaning_and_every_meaning_a_field() -> None:
    fields = {(schema, name) for schema, found in SCHEMAS.items() for name in found.get("properties", {})}
    for schema, name in fields:
        assert SCHEMAS[schema]["properties"][name].get("description"), (schema, name)
    for key in MEANINGS:
        schema, _, name = key.rpartition(".")
        assert any(name == field and schema in ("", of) for of, field in fields), key


def test_every_route_and_parameter_is_described() -> None:
    for path, operation in OPERATIONS:
        assert operation["summary"], path
        assert operation["description"], path
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (path, parameter["name"])
            schema = parameter["schema"]
            assert "null" not in str(schema), (path, "a query string has no null")
            if parameter["in"] == "path":
                assert parameter["example"], (path, parameter["name"])


@pytest.mark.parametrize(("path", "operation"), OPERATIONS, ids=[path for path, _ in OPERATIONS])
def test_the_examples_of_a_route_fit_its_schema(path: str, operation: dict[str, Any]) -> None:
    found = 0
    for status, said in operation["responses"].items():
        for content in said.get("content", {}).values():
            for example in content.get("examples", {}).values():
                found += status == "200"
                jsonschema.validate(example["value"], content["schema"] | {"components": DOCUMENT["components"]})
    assert found, "no recorded answer"


def test_parameters_of_examples_fit_their_schemas() -> None:
    for _, operation in OPERATIONS:
        for parameter in operation.get("parameters", ()):
            if "example" in parameter:
                jsonschema.validate(parameter["example"], parameter["schema"])


def test_problems_are_declared_with_their_codes() -> None:
    assert SCHEMAS["Problem"]["properties"]["code"]["enum"] == CODES
    seen = set()
    for path, operation in OPERATIONS:
        responses = operation["responses"]
        assert {"400", "404", "422"} & set(responses) or "{" not in path, path
        for status, said in responses.items():
            assert said["description"], (path, status)
            assert status.isdigit(), (path, status)
            seen |= {code for code in CODES if f"`{code}`" in said["description"]}
    assert seen == set(CODES)


def test_tokens_are_described_where_there_are_some(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("t" * 40 + "\n")
    settings = ApiSettings(tables=tmp_path, token_file=tmp_path / "tokens")
    described = create_app(settings, lambda: 0).openapi()
    assert described["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    for path, item in described["paths"].items():
        assert ("security" in item["get"]) == (path not in ("/livez", "/healthz", "/readyz")), path
    assert "securitySchemes" not in DOCUMENT["components"]
