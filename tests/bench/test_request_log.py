"""What the request log costs: the modes are really what they are called, and no number of a busy machine gets onto the
page. The numbers depend on the machine and are not checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import request_log
from bench.request_log_page import BEGIN, END, LOAD_MAX, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "request-logging.md"


@pytest.mark.slow
@pytest.mark.long
def test_each_mode_logs_what_it_says_and_the_load_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "ROUNDS", 2)
    found = request_log.turns(tmp_path / "broker", 100, 2.0, scale=0.05)
    assert [turn.mode for turn in found] == [*request_log.MODES] * 2
    for turn in found:
        assert (turn.log_bytes_per_s > 0) == (turn.mode != "off"), turn
        assert turn.produced_per_s > 50, turn
        assert turn.fetched_per_s > 10, turn
        assert turn.broker_cpu_s > 0, turn
        assert turn.p99_ms > 0, turn
    by_mode = {turn.mode: turn.log_bytes_per_s for turn in found}
    assert by_mode["with FETCH"] > by_mode["group APIs"]
    results = request_log._results(100, found)
    measured = {"machine": {"cores": 2, "memory_gb": 4.0, "processor": "x", "load_before": 0.1}}
    made = table(measured | {"results": [vars(result) for result in results]})
    assert made.count("\n| 100 requests/s, log ") == len(request_log.MODES)


def measured(**more: Any) -> dict[str, Any]:
    return {"machine": {"cores": 2, "memory_gb": 4.0, "processor": "x", "load_before": 0.1} | more, "results": []}


def test_numbers_of_a_busy_machine_and_of_another_stage_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing of the stage request-log"):
        table(measured())
    busy = measured(load_before=LOAD_MAX + 0.1)
    busy["results"] = [{"stage": "request-log"}]
    with pytest.raises(ValueError, match="the machine was busy"):
        table(busy)


def test_the_page_has_the_place_of_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert 0 < text.index(BEGIN) < text.index(END)
