"""What `kardia` may import from the standard library is a list: an import of a clock, socket or file fails here.

Of libraries only public names are used: a private one may go with any release of theirs.
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


def imports(source: str) -> Iterator[str]:
    """Top-level names of what a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield (node.module or "").partition(".")[0]


def forbidden(source: str) -> set[str]:
    """What a file of `kardia` imports and may not."""
    return set(imports(source)) - PURE - {"kardia", "msgspec"}


def test_kardia_imports_what_is_on_the_list() -> None:
    files = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "kardia").rglob("*.py"))}
    assert len(files) > 80
    assert {name: found for name, source in files.items() if (found := forbidden(source))} == {}


@pytest.mark.parametrize("module", ["httpx", "duckdb", "time", "socket", "pathlib", "ingest.tail.tailer", "api"])
def test_a_clock_a_socket_and_what_is_above_are_found(module: str) -> None:
    name = module.partition(".")[0]
    assert forbidden(f"def late() -> None:\n    import {module}\n") == {name}
    assert forbidden(f"from {module} import something\n") == {name}


ROOMS = (
    *(
        "api",
        "bench",
        "cli",
        "dashboards",
        "demo",
        "ingest",
        "kardia",
        "live",
        "scripts",
        "spark_jobs",
        "stores",
        "supervise",
    ),
    "tests",
)


def private(source: str) -> list[str]:
    """Imports of names of libraries that begin with an underscore."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            room, *rest = name.split(".")
            if room not in ROOMS and any(part.startswith("_") for part in rest):
                found.append(name)
    return found


def test_nobody_imports_a_private_name_of_a_library() -> None:
    files = {path: path.read_text() for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
    assert len(files) > 500
    assert {str(path): found for path, source in files.items() if (found := private(source))} == {}


@pytest.mark.parametrize("source", ["from fastapi._compat import ModelField", "import a._b", "from a import _b"])
def test_a_private_name_is_found(source: str) -> None:
    assert len(private(source)) == 1
