"""`kardia bench`: the stages one after the other, each in a directory of its own that is removed afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench.backlog import backlog_stage
from bench.collecting import collect_stage
from bench.following import follow_stage
from bench.history import append, losses, read, run_of
from bench.lines import parse_stage, replay_stage, text_stage
from bench.live import live_stage
from bench.observer import observer_stage
from bench.one_process import one_process_stage
from bench.request_log import request_log_stage
from bench.result import Result, machine, show
from bench.serving import api_stage
from bench.size import size_stage
from bench.stored import stored_stage
from bench.sustained import sustained_stage
from bench.telling import notify_stage
from bench.uneven import uneven_stage
from bench.verbs import verbs_stage

STAGES: dict[str, Callable[[Path, float], list[Result]]] = {
    "lines": parse_stage,
    "text": text_stage,
    "observer": observer_stage,
    "replay": replay_stage,
    "collect": collect_stage,
    "backlog": backlog_stage,
    "live": live_stage,
    "one-process": one_process_stage,
    "follow": follow_stage,
    "sustained": sustained_stage,
    "size": size_stage,
    "uneven": uneven_stage,
    "api": api_stage,
    "notify": notify_stage,
    "store": stored_stage,
    "verbs": verbs_stage,
    "request-log": request_log_stage,
}
"""Stages in the order of the flow."""


def run_bench(
    stages: Sequence[str], scale: float, path: Path | None, work: Path | None, history: Path | None = None
) -> None:
    """Run stages, show what they measured, and what of it has become worse since the runs in `history`, which this one
    is added to. Raises `ValueError` where that file cannot be read."""
    around, before = machine(), read(history) if history is not None else []
    console = Console(stderr=True)
    results: list[Result] = []
    for name in stages:
        console.print(f"{name} …", highlight=False)
        if work is not None:
            work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"kardia-bench-{name}-", dir=work) as directory:
            results.extend(STAGES[name](Path(directory), scale))
    show(results, around, path)
    if history is not None:
        run = run_of(results, around, scale)
        for sentence in losses(before, run):
            console.print(sentence, highlight=False)
        append(history, run)
