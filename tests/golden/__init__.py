"""Histories of groups as text, `*.trace`, and the runners that hold the model, the job and Kafka's own classes to
them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kardia.trace import Trace, read

FOLDER = Path(__file__).resolve().parent


@cache
def traces() -> tuple[Trace, ...]:
    """All traces, by name."""
    return tuple(read(path.read_text(encoding="utf-8"), path.name) for path in sorted(FOLDER.glob("*.trace")))


def cases() -> list[tuple[Trace, str]]:
    """Every trace with every release it is written for."""
    return [(trace, version) for trace in traces() for version in trace.versions]


def name_of(value: object) -> str:
    """Name of a parameter of a test."""
    return value.name.removesuffix(".trace") if isinstance(value, Trace) else str(value)
