"""What the heart may import is a list, and so is what nobody else may use: an import that is not on it fails here.

The order of the rooms is in `pyproject.toml`, checked by `lint-imports`; this is about what comes from outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PURE = {
    *("__future__", "array", "bisect", "collections", "contextlib", "dataclasses", "datetime", "difflib", "enum"),
    *(
        "functools",
        "hashlib",
        "heapq",
        "itertools",
        "math",
        "operator",
        "re",
        "struct",
        "typing",
        "unicodedata",
        "uuid",
    ),
}
"""Modules without a clock, a file, a socket or a process."""

ALSO = {"kardia/durable.py": {"os", "pathlib"}, "kardia/locations.py": {"pathlib", "urllib"}}
"""File -> what it alone may import: a file that is replaced as a whole; names of places, of which none is opened."""


def imports(source: str) -> Iterator[str]:
    """Top-level names of what a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield (node.module or "").partition(".")[0]


def forbidden(name: str, source: str) -> set[str]:
    """What a file of the heart imports and may not."""
    return set(imports(source)) - PURE - {"kardia", "msgspec"} - ALSO.get(name, set())


def test_the_heart_imports_what_is_on_the_list() -> None:
    files = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "kardia").rglob("*.py"))}
    assert len(files) > 80
    assert {name: found for name, source in files.items() if (found := forbidden(name, source))} == {}


@pytest.mark.parametrize("module", ["httpx", "duckdb", "time", "socket", "pathlib", "ingest.tail", "api"])
def test_a_clock_a_socket_and_what_is_above_are_found(module: str) -> None:
    name = module.partition(".")[0]
    assert forbidden("kardia/instants.py", f"def late() -> None:\n    import {module}\n") == {name}
    assert forbidden("kardia/instants.py", f"from {module} import something\n") == {name}
