"""`kardia trace` tells what happens in a trace, and what a trace can say."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from kardia.trace.language import CLAUSES, OPTIONS, VERBS
from tests.golden import FOLDER

CRASH = FOLDER / "walk-3-crash.trace"


def test_the_command_teaches_the_whole_language() -> None:
    told = CliRunner().invoke(app, ["trace", "--language"])
    assert told.exit_code == 0
    for form in (*VERBS, *(f"{name}=" for name in OPTIONS), *(one.form for one in CLAUSES.values())):
        assert f"\n  {form}" in told.stdout, form


@pytest.mark.parametrize("version", ["", "3.9.2", "2.8.2"])
def test_the_command_tells_what_happens(version: str) -> None:
    options = ["--kafka-version", version] if version else []
    told = CliRunner().invoke(app, ["trace", str(CRASH), *options])
    assert told.exit_code == 0
    assert f"Kafka {version or '4.4.0'}, by the model" in told.stdout
    assert "b evicted: session_expired, group PreparingRebalance" in told.stdout
    assert ("Not compared" in told.stdout) == (version == "2.8.2")


def test_a_file_without_expectations_is_a_question(tmp_path: Path) -> None:
    question = tmp_path / "question.trace"
    question.write_text("When?\n\nKafka 4.4.0\nMember a: session=10s\n\n+0.000 a joins\n+5.000 a syncs\n+60.000\n")
    told = CliRunner().invoke(app, ["trace", str(question)])
    assert told.exit_code == 0
    assert "+15.000" in told.stdout
    assert "a evicted: session_expired, group Empty" in told.stdout


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("What?\nKafka 4.4.0\nMember a:\n+0.000 a joins => group Stable\n", 1, "`group Stable`, but it is Preparing"),
        ("What?\nKafka 4.4.0\n+0.000 a joins\n", 2, "'a'; expected a declared member"),
    ],
)
def test_a_difference_and_an_error_have_their_exit_status(tmp_path: Path, text: str, status: int, said: str) -> None:
    file = tmp_path / "one.trace"
    file.write_text(text)
    told = CliRunner().invoke(app, ["trace", str(file)])
    assert told.exit_code == status
    assert said in told.stderr
