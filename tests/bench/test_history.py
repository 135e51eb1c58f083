"""Runs of the benchmarks that are kept: read as they were written, and what has become worse is told, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.history import Run, append, losses, read
from bench.result import Result
from cli.main import app

HISTORY = Path(__file__).resolve().parents[2] / "bench" / "history.jsonl"


def run(*results: Result, cores: int = 2, scale: float = 1.0) -> Run:
    return Run("2026-11-27T12:00:00+00:00", "abcdef0123", cores, scale, list(results))


def rate(value: float, baseline: float | None = None) -> Result:
    return Result("lines", "parsed", value, "lines/s", baseline, "cat" if baseline else "")


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert read(path) == []
    first, second = run(rate(100.0, 200.0)), run(Result("size", "p95", 800.0, "ms", cpu_us=1.5, target=1_200.0))
    append(path, first)
    append(path, second)
    assert read(path) == [first, second]


def test_what_is_worse_than_all_of_the_last_ones_is_told() -> None:
    before = [run(rate(value)) for value in (100.0, 90.0, 110.0)]
    (sentence,) = losses(before, run(rate(80.0)))
    assert sentence.startswith("lines: parsed: 12% worse than the worst of the last 3 runs (since 2026-11-27")
    assert not list(losses(before, run(rate(85.0))))
    assert not list(losses(before[:2], run(rate(10.0))))


def test_a_slow_day_is_no_loss_where_a_baseline_shows_it() -> None:
    before = [run(rate(100.0, 200.0)) for _ in range(3)]
    assert not list(losses(before, run(rate(50.0, 100.0))))
    assert list(losses(before, run(rate(80.0, 200.0))))


def test_of_a_time_less_is_better() -> None:
    before = [run(Result("size", "p95", value, "ms")) for value in (800.0, 900.0, 850.0)]
    assert list(losses(before, run(Result("size", "p95", 1_000.0, "ms"))))
    assert not list(losses(before, run(Result("size", "p95", 100.0, "ms"))))


@pytest.mark.parametrize("other", [{"cores": 8}, {"scale": 0.1}])
def test_other_machines_and_sizes_are_not_compared(other: dict[str, float]) -> None:
    before = [run(rate(100.0), **other) for _ in range(3)]  # type: ignore[arg-type]
    assert not list(losses(before, run(rate(10.0))))


def test_a_line_that_is_no_run_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    append(path, run(rate(1.0)))
    path.write_text(path.read_text() + '{"at": "today"}\n')
    told = CliRunner().invoke(app, ["bench", "--only", "lines", "--history", str(path)])
    assert told.exit_code == 2
    assert "line 2: no run of kardia bench" in told.output
    assert "Next: " in told.output


def test_the_history_of_the_project_can_be_read() -> None:
    assert len(read(HISTORY)) > 2
