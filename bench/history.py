"""What was measured before, a line of JSON a run, so that a loss is seen: `kardia bench --history FILE` adds its own.

Machines are noisy, and the same one is now slow, now quick. So a rate that has a baseline of the same run counts as its
share of that, and a loss is told only where a run is worse than all of the last ones on as many cores, by a margin.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.result import Result

LAST = 5
"""So many runs before are looked at."""

LEAST = 3
"""With fewer than that nothing is told: how far runs differ is not known."""

MARGIN = 0.1
"""So much worse than the worst of them, as a share of it."""


@dataclass(frozen=True)
class Run:
    """What one `kardia bench` measured. `at`: ISO 8601, UTC. `commit`: empty where the code is in no checkout."""

    at: str
    commit: str
    cores: int
    scale: float
    results: list[Result]


def run_of(results: Sequence[Result], around: dict[str, Any], scale: float) -> Run:
    """A run that has just ended."""
    return Run(datetime.now(UTC).isoformat(timespec="seconds"), _commit(), int(around["cores"]), scale, list(results))


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def read(path: Path) -> list[Run]:
    """All runs, the oldest first; none where there is no file. Raises `ValueError` with the line that is none."""
    runs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), 1):
        try:
            fields = json.loads(line)
            runs.append(Run(**fields | {"results": [Result(**one) for one in fields["results"]]}))
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}: no run of kardia bench ({error}). Expected: a line that it has written. "
                "Next: take the line out, or name another file with --history"
            ) from error
    return runs


def append(path: Path, run: Run) -> None:
    """Add a run."""
    fields = asdict(run)
    for one in fields["results"]:
        for name in ("value", "baseline", "cpu_us"):
            one[name] = one[name] if one[name] is None else round(one[name], 3)
        del one["more"]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def losses(before: Sequence[Run], run: Run) -> Iterator[str]:
    """What has become worse, in sentences. A stage that failed to be measured is none."""
    like = [one for one in before if (one.cores, one.scale) == (run.cores, run.scale)]
    for result in run.results:
        same = (
            (one, old) for one in like for old in one.results if (old.stage, old.what) == (result.stage, result.what)
        )
        last = list(same)[-LAST:]
        if len(last) < LEAST:
            continue
        cost, worst = _cost(result), max(_cost(old) for _, old in last)
        if cost > worst * (1 + MARGIN):
            by = f", each beside its {result.baseline_what}" if _has_share(result) else ""
            yield (
                f"{result.stage}: {result.what}: {cost / worst - 1:.0%} worse than the worst of the last {len(last)} "
                f"runs{by} (since {last[0][0].at}, {last[0][0].commit or 'no commit'})."
            )


def _has_share(result: Result) -> bool:
    return bool(result.baseline) and result.unit.endswith("/s")


def _cost(result: Result) -> float:
    """The less the better."""
    if not result.is_rate:
        return result.value
    rate = result.value / result.baseline if result.baseline and _has_share(result) else result.value
    return 1 / rate if rate > 0 else float("inf")
