"""What a question costs that is asked from the command line, process and all: CPU time, of which the libraries alone
are the baseline.

The tables are those of a small cluster, as they lie while a job writes them: a commit per second, not yet compacted.
Each verb is run as a user runs it. CPU and not the time it took, because a person has a processor free.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

from bench.crowd import SAMPLE_EVERY_S, Crowd, moved
from bench.growth import APP_ID, lay
from bench.result import Result
from spark_jobs.schemas import to_tables
from spark_jobs.writers.delta_rs import DeltaRsWriter

GROUPS = 6
COMMITS = 120
"""Live batches, two minutes of them: as many files of each of the largest tables."""

RUNS = 9
CPU_S = 1.5
"""At most, in the median, for a list of groups."""

SECOND_MS = 1_000

LIBRARIES = """
from cli.asking.left_out import leave_out

leave_out()
import typer, rich.console, rich.table, httpx, fastapi, pyarrow.dataset, deltalake
"""
"""For a process of its own: what the command line loads, without the parts that it leaves out."""


def verbs_stage(directory: Path, scale: float) -> list[Result]:
    """CPU seconds of verbs."""
    tables, group = _tables(directory / "tables", max(2, int(COMMITS * scale)))
    runs = max(3, int(RUNS * min(1.0, scale)))
    libraries_s = statistics.median(_cpu_s([sys.executable, "-c", LIBRARIES], runs))
    results = []
    for words in (["groups"], ["group", group], ["explain", group]):
        command = [sys.executable, "-m", "cli.main", *words, "--tables", str(tables)]
        used_s = _cpu_s(command, runs)
        what = f"kardia {words[0]} --tables, CPU"
        more = {"least": round(min(used_s), 2), "most": round(max(used_s), 2), "runs": runs}
        results.append(
            Result(
                "verbs",
                what,
                statistics.median(used_s),
                "s",
                baseline=libraries_s,
                baseline_what="its libraries loaded, no question asked",
                target=CPU_S if words == ["groups"] else None,
                more=more,
            )
        )
    return results


def _tables(directory: Path, commits: int) -> tuple[Path, str]:
    """(tables with so many live batches; one of their groups)."""
    laid = lay(directory, Crowd(GROUPS, 1, hours=1))
    writer = DeltaRsWriter(directory, APP_ID)
    writer.prepare()
    for number in range(commits):
        batch_id, later_ms = laid.batch_id + 1 + number, (1 + number) * SECOND_MS
        health = moved(laid.samples[number % SAMPLE_EVERY_S], later_ms, batch_id)
        rows = to_tables(laid.crowd.second(laid.at_ms + later_ms, number), batch_id)
        writer.write(batch_id, rows | {"health": health})
    writer.close()
    return directory, laid.crowd.groups[0]


def _cpu_s(command: list[str], runs: int) -> list[float]:
    """CPU seconds of each of several runs, after one that may have to compile what it loads."""
    found: list[float] = []
    for _ in range(1 + runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return found[1:]
