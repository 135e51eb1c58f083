"""`kardia serve --follow-topic` beside a real broker and a real `kardia stream`: answers that the tables do not have
yet, which are those of the tables when they do; a job that is stopped and started again disturbs nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from api.settings import ApiSettings
from api.store import Store
from demo.broker import Broker
from demo.ports import free_ports
from supervise import process
from tests.live.test_ahead import Asked
from tests.live.test_followed import without_samples
from tests.live.test_process import asked
from tests.live.test_same_rows import FACTS
from tests.spark_jobs.support import CLUSTER, LANES, ROOT, lanes_say, produce, story_messages, stream_command, told_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 120.0

BASE = f"/api/v1/clusters/{CLUSTER}"

GROUP = f"{BASE}/groups/g04"

PATHS = (f"{GROUP}/rebalances", f"{GROUP}/history?limit=1000", f"{GROUP}/evictions", f"{GROUP}/predictions", GROUP)


@contextmanager
def running(command: Sequence[str], said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process and all that it starts, which end with the context."""
    with said.open("ab") as output:
        started = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
        try:
            yield started
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def told(port: int) -> dict[str, Any]:
    return {path: asked(port, path) for path in PATHS}


def facts_of(answers: dict[str, Any]) -> Any:
    """Without what the clock moves and what is sampled."""
    moving = {"freshness", "next_cursor", "as_of", "now"}

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: of(one) for name, one in value.items() if name not in moving and "remaining" not in name}
        return [of(one) for one in value] if isinstance(value, list) else value

    return without_samples(of(answers))


def in_tables(port: int) -> bool | None:
    found = asked(port, BASE)
    return None if found is None else bool(found["freshness"]["in_tables"])


def reached_ms(port: int) -> int:
    found = asked(port, BASE)
    return (found["freshness"]["complete_as_of_ms"] or 0) if found else 0


def test_answers_come_ahead_of_a_job_that_is_stopped_and_started_again(kafka: Broker, tmp_path: Path) -> None:
    topic, said = "follow.real", tmp_path / "said"
    (port,) = free_ports(1)
    parts = [story_messages(begin=begin, end=end) for begin, end in ((0, 9), (9, 16), (16, 23), (23, None))]
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, parts[0])
    tables, checkpoint = tmp_path / "tables", tmp_path / "checkpoint"
    tables.mkdir()
    job = stream_command(kafka.bootstrap, topic, tmp_path, "--no-archive")
    serve = [
        *(sys.executable, "-m", "cli.main", "serve", "--tables", str(tables), "--port", str(port)),
        *("--follow-topic", topic, "--bootstrap-server", kafka.bootstrap, "--checkpoint", str(checkpoint)),
    ]

    def until(what: Any) -> Any:
        return process.until(what, SECONDS, lambda: said.read_text()[-4000:])

    with running(serve, said) as server:
        with running(job, said) as first:
            until(lambda: "follow.real is followed" in said.read_text())
            until(lambda: in_tables(port) is True)
            was_ms = reached_ms(port)
            os.killpg(first.pid, signal.SIGSTOP)
            produce(kafka.bootstrap, topic, parts[1])
            until(lambda: reached_ms(port) > was_ms and in_tables(port) is False)
            answers = until(lambda: steady(port))
            assert len(json.dumps(answers)) > 2_000, "there is something to compare"
            os.killpg(first.pid, signal.SIGCONT)
            until(lambda: in_tables(port) is True)
            assert facts_of(told(port)) == facts_of(answers)
            first.send_signal(signal.SIGTERM)
            assert first.wait(SECONDS) == 0
        was_ms = reached_ms(port)
        produce(kafka.bootstrap, topic, parts[2])
        until(lambda: reached_ms(port) > was_ms and in_tables(port) is False)
        answers = until(lambda: steady(port))
        assert not psutil.Process(server.pid).children(), "no JVM stays"
        with running(job, said) as second:
            until(lambda: in_tables(port) is True)
            assert facts_of(told(port)) == facts_of(answers)
            produce(kafka.bootstrap, topic, parts[3])
            until(lambda: reached_ms(port) > was_ms)
            until(lambda: told_rows(tables, FACTS) == lanes_say(FACTS))
            until(lambda: in_tables(port) is True)
            behind = Store(ApiSettings(tables=tables), lambda: 0)
            behind.refresh()
            assert facts_of(Asked(behind, lambda: 0).answers(list(PATHS))) == facts_of(told(port))
            second.send_signal(signal.SIGTERM)
            assert second.wait(SECONDS) == 0
        server.send_signal(signal.SIGTERM)
        assert server.wait(SECONDS) == 0
    text = said.read_text()
    assert text.count("follow.real is followed") == 1
    assert "rest on the tables alone, as without" not in text
    assert "Traceback" not in text


def steady(port: int) -> dict[str, Any] | None:
    """Answers that did not change between two looks."""
    found = told(port)
    return found if facts_of(found) == facts_of(told(port)) else None
