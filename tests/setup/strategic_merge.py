"""A patch of a manifest as Kubernetes and kustomize merge it, by the keys that the schemas of Kubernetes carry.

A mapping is merged key by key, a list by its `x-kubernetes-patch-merge-key`; where the schema gives none the patch's
list takes the place of the other.
Truth: Kubernetes, "Update API Objects in Place Using kubectl patch", strategic merge.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate

SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
STATEFUL_SET = "io.k8s.api.apps.v1.StatefulSet"


@cache
def _definitions(version: str) -> dict[str, Any]:
    found = json.loads((SCHEMAS / f"v{version}.0-local" / "_definitions.json").read_text())
    definitions: dict[str, Any] = found["$defs"]
    return definitions


def merged(base: dict[str, Any], patch: dict[str, Any], version: str, kind: str = STATEFUL_SET) -> dict[str, Any]:
    """`base` with `patch` merged into it; `kind` is the name of its definition."""
    properties = _definitions(version)[kind].get("properties", {})
    result = dict(base)
    for key, value in patch.items():
        schema, before = properties.get(key, {}), base.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            result[key] = merged(before, value, version, _kind(schema)) if _kind(schema) else before | value
        elif isinstance(value, list) and isinstance(before, list) and "x-kubernetes-patch-merge-key" in schema:
            result[key] = _by_key(before, value, schema, version)
        else:
            result[key] = value
    return result


def _by_key(before: list[Any], patch: list[Any], schema: dict[str, Any], version: str) -> list[Any]:
    name, kind = schema["x-kubernetes-patch-merge-key"], _kind(schema["items"])
    there = {one[name]: one for one in before}
    for one in patch:
        there[one[name]] = merged(there[one[name]], one, version, kind) if one[name] in there else one
    return list(there.values())


def _kind(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
