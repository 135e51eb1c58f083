"""A measurement and how it is shown: a table for a person, JSON for a machine. CPU is what the stage's processes used.

On a shared machine the rate halves while the CPU per event moves by a fifth, so both are always shown.
"""

from __future__ import annotations

import json
import os
import platform
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table


@dataclass
class Result:
    """One line of the table. `target` is what it should be at least if it is a rate, and at most else."""

    stage: str
    what: str
    value: float
    unit: str
    baseline: float | None = None
    baseline_what: str = ""
    cpu_us: float | None = None
    target: float | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target was met, None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.is_rate else self.value <= self.target

    @property
    def is_rate(self) -> bool:
        """Whether more is better; of a time, a size and a share of a core less is."""
        return self.unit.endswith("/s") or self.unit == "% of JSON lines"


class Usage:
    """CPU seconds and peak memory of this process and of all below it, between two moments."""

    def __init__(self) -> None:
        """Begin now."""
        self._before = cpu_seconds()

    def cpu_s(self) -> float:
        """CPU seconds since the beginning."""
        return cpu_seconds() - self._before


def cpu_seconds(pid: int | None = None) -> float:
    """CPU seconds of a process, of its children that have ended and of everything that runs below it."""
    total = 0.0
    if pid is None:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        total += ended.ru_utime + ended.ru_stime
    for process in _family(pid):
        try:
            times = process.cpu_times()
            total += times.user + times.system
            if process.pid != os.getpid():
                total += times.children_user + times.children_system
        except psutil.Error:
            continue
    return total


def memory_mb(pid: int | None = None) -> dict[str, float]:
    """Resident memory by program, of a process and of everything below it; shared pages count once (PSS)."""
    found: dict[str, float] = {}
    for process in _family(pid):
        try:
            name = "java" if "java" in process.name() else "python"
            full = process.memory_full_info()
            found[name] = found.get(name, 0.0) + getattr(full, "pss", full.rss) / 1e6
        except psutil.Error:
            continue
    return found


def _family(pid: int | None) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def show(results: Sequence[Result], around: dict[str, Any], path: Path | None) -> None:
    """Print the table and the JSON; write the JSON to a file if one is given."""
    console = Console(width=None if Console().is_terminal else 150)
    table = Table(
        title=f"kardia bench on {around['cores']} cores, load {around['load_before']} before", title_justify="left"
    )
    for name in ("stage", "what", "measured", "target", "baseline", "CPU µs each", "more"):
        table.add_column(name, overflow="fold")
    for result in results:
        verdict = {True: "met", False: "missed", None: ""}[result.met]
        table.add_row(
            result.stage,
            result.what,
            f"{result.value:,.2f} {result.unit}" if result.value < 100 else f"{result.value:,.0f} {result.unit}",
            "" if result.target is None else f"{result.target:,.0f}: {verdict}",
            "" if result.baseline is None else f"{result.baseline:,.0f} ({result.baseline_what})",
            "" if result.cpu_us is None else f"{result.cpu_us:.2f}",
            ", ".join(f"{key} {value}" for key, value in result.more.items()),
        )
    console.print(table)
    text = json.dumps(
        {"machine": around, "results": [asdict(result) | {"met": result.met} for result in results]}, indent=1
    )
    print(text)
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")
