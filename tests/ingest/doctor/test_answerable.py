"""Which questions the doctor says can be asked, by what it was given to look at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from ingest.doctor import Level, answerable
from kardia.evidence_levels import Read
from tests.ingest.doctor.test_doctor import copied

STORY = "c04_mpi-4.1.2"
FETCH = b'"requestApiKey":1,'


def asked(*options: str) -> dict[str, tuple[str, str]]:
    """Level and sentence by question."""
    said = CliRunner().invoke(app, ["doctor", *options, "-o", "json"])
    found = [one for one in json.loads(said.stdout) if one["subject"] == answerable.SUBJECT]
    return {one["sentence"].partition("”")[0].removeprefix("“"): (one["level"], one["sentence"]) for one in found}


def answered(found: dict[str, tuple[str, str]]) -> list[str]:
    return [question for question, (level, _) in found.items() if level == Level.GOOD]


def test_server_log_alone_tells_what_was_and_not_what_will_be(tmp_path: Path) -> None:
    found = asked("--server-log", str(copied(tmp_path, STORY, "server.log")))
    assert answered(found) == ["why did it rebalance?", "who was evicted, and when?"]
    assert "needs the request log" in found["who is next?"][1]
    assert "__consumer_offsets" in found["who is a member?"][1]


def test_a_request_log_answers_all_and_polls_if_it_has_fetch(tmp_path: Path) -> None:
    log = copied(tmp_path, STORY)
    assert len(answered(asked("--request-log", str(log)))) == 6
    log.write_bytes(b"".join(line for line in log.read_bytes().splitlines(keepends=True) if FETCH not in line))
    found = asked("--request-log", str(log))
    assert len(answered(found)) == 5
    assert "FETCH" in found["did it poll?"][1]


@pytest.mark.parametrize(
    "content", [b"", b"[2026-11-20 10:00:00,000] INFO nothing (x)\n"], ids=("empty", "other lines")
)
def test_a_log_that_says_nothing_answers_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kafka-request.log").write_bytes(content)
    assert answered(asked("--request-log", str(tmp_path / "kafka-request.log"))) == []
    assert answered(asked("--request-log", str(tmp_path / "nowhere.log"))) == []


def test_the_step_stands_once_below_the_questions_that_take_it() -> None:
    looked = answerable.Looked("b:9092", Path("my client.properties"))
    found = answerable.findings(Read(server_log=True, offsets=True), looked, ("the lines",))
    assert [one.remedy for one in found[:-2]] == [()] * 5 + [("the lines",)]
    reach = "--bootstrap-server b:9092 --client-config 'my client.properties'"
    assert found[-2].remedy == (f"kardia collect {reach} --cluster NAME --positions FOLDER",), "no log has the ends"
    assert found[-1].remedy[0] == f"kardia capture {reach} --out offsets.jsonl"


def test_the_admin_api_alone_is_a_rung_to_stand_on() -> None:
    """That the cluster tells of its groups was not counted: nobody was said to be a member of anything."""
    found = answerable.findings(Read(samples=True), answerable.Looked("b:9092"))
    assert found[0].level is Level.GOOD
    assert "in part" in found[2].sentence
    assert found[-1].remedy[0].startswith("kardia capture --admin --bootstrap-server b:9092")
    assert answerable.findings(Read(), answerable.Looked())[-1].subject != answerable.NOW
