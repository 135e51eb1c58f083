"""What the request log costs: the modes are really what they are called, and no number of a busy machine gets onto the
page. The numbers depend on the machine and are not checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import request_log
from bench.request_log import LOAD_MAX
from bench.request_log_load import AS_FAST_AS_IT_GOES
from bench.request_log_page import BEGIN, END, costs, page, queue_wins, table
from demo.broker import Broker, BrokerSettings
from ingest.doctor import Level, answerable, broker_logging, cost, loggers, remedies
from kardia.evidence_levels import Read

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
    told = measured | {"results": [vars(result) for result in results]}
    assert costs(told)["asynchronous"] is queue_wins(told)


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


def numbers(cpu: list[float], produced: list[float], p99: list[float]) -> dict[str, Any]:
    """What the benchmark writes, with these ratios of the queue to no queue in each round, at each rate."""
    results = []
    for rate in (200, AS_FAST_AS_IT_GOES):
        for mode, to_off in (("off", 1.0), ("group APIs", 1.2), ("with FETCH", 1.4), ("with FETCH, asynchronous", 1.3)):
            more: dict[str, Any] = {"mode": mode, "rate": rate, "produced_per_s": rate, "read_per_s": rate}
            more |= {"cpu_per_request_to_off": to_off, "cpu_per_request_to_off_least": to_off - 0.1}
            more |= {"cpu_per_request_to_off_most": to_off + 0.1, "log_kb_per_s": 9}
            more |= {"p99_ms": 2.0, "p99_ms_least": 1.0, "p99_ms_most": 3.0}
            if mode.endswith("asynchronous"):
                more |= {"cpu_to_synchronous": cpu, "produced_to_synchronous": produced, "p99_to_synchronous": p99}
            results.append(
                {"stage": "request-log", "what": f"{rate}, log {mode}", "value": 9.0, "cpu_us": 9.0, "more": more}
            )
    return measured() | {"results": results}


SAME, CHEAPER = numbers([1.01, 0.99, 1.0], [1.0, 0.99, 1.02], [1.1, 0.8, 1.0]), numbers([0.9] * 3, [1.1] * 3, [0.8] * 3)


def test_the_queue_is_chosen_where_every_round_shows_that_it_wins_and_nothing_gets_dearer() -> None:
    assert queue_wins(CHEAPER)
    assert not queue_wins(SAME)
    assert not queue_wins(numbers([1.1] * 3, [1.2] * 3, [0.5] * 3)), "more CPU per request"
    assert not queue_wins(numbers([1.0] * 3, [1.2, 1.2, 0.9], [0.5, 1.2, 0.5])), "one round says otherwise"
    assert queue_wins(numbers([1.0] * 3, [1.0] * 3, [0.5] * 3))


def test_the_page_is_written_whole_and_once_more_the_same() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for found in (SAME, CHEAPER):
        made = page(text, found)
        assert page(made, found) == made
        assert made.count("| 200, log ") == 4
        assert "1.40 (1.30 to 1.50)" in made
    assert page(text, SAME).count(remedies.QUEUE) == 0
    assert page(text, CHEAPER).count(remedies.QUEUE) == 4, "the lines and the whole file, each with its reference"


def test_the_doctor_says_the_cost_and_prints_the_lines_that_were_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = cost.parsed(json.dumps(costs(CHEAPER)))
    assert (found.group_apis, found.with_fetch) == ((1.2, 1.2), (1.3, 1.3))
    for module in (remedies, loggers, answerable):
        monkeypatch.setattr(module, "measured", lambda: found)
    assert "1.20 to 1.20 times the broker's CPU per request" in loggers.cost(3, 1).sentence
    asked = answerable.findings(Read(server_log=True, offsets=True), answerable.Looked())
    assert [one.sentence.partition(", at ")[2][:4] for one in asked[3:6]] == ["1.20", "1.20", "1.30"]
    made = page(PAGE.read_text(encoding="utf-8"), CHEAPER)
    assert f"```yaml\n{remedies.log4j2_yaml()}```" in made
    [whole] = [block for block in made.split("```yaml\n")[1:] if "Configuration:" in block]
    path = tmp_path / "log4j2.yaml"
    path.write_text(whole.partition("```")[0])
    assert [one.level for one in broker_logging.examine(path)] == [Level.GOOD]


@pytest.mark.slow
@pytest.mark.long
def test_a_broker_takes_the_configuration_with_a_queue(tmp_path: Path) -> None:
    made = page(PAGE.read_text(encoding="utf-8"), CHEAPER)
    [whole] = [block for block in made.split("```yaml\n")[1:] if "Configuration:" in block]

    class Configured(Broker):
        def _jvm_options(self) -> list[str]:
            file = self.directory / "log4j2.yaml"
            file.write_text(whole.partition("```")[0].replace("      # ... the other appenders as they were\n", ""))
            kept = [one for one in super()._jvm_options() if not one.startswith("-Dlog4j2.configurationFile")]
            return [*kept, f"-Dlog4j2.configurationFile={file}"]

    with Configured(tmp_path / "broker", BrokerSettings()) as broker:
        broker.create_topic("t", 1)
        assert request_log._has_queue(broker)
        assert broker.logs.joinpath("kafka-group-request.log").exists()
