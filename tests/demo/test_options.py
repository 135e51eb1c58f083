"""`kardia demo` with options that cannot be: one sentence, and nothing is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from demo.broker import NEWEST, releases
from spark_jobs.jvm import lock


def test_every_release_has_its_jars_in_the_lock_and_the_newest_is_the_default() -> None:
    assert releases()[0] == NEWEST
    assert "3.9.2" in releases()
    for release in releases():
        # 2.3 was built for Scala 2.12 at most.
        assert any(artifact.name in ("kafka_2.12", "kafka_2.13") for artifact in lock.sets()[f"broker-{release}"])


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (
            ["--kafka", "3.9.0"],
            2,
            "kardia demo: there is no broker 3.9.0; there are 4.4.0, 4.3.1, 4.2.1, 4.1.2, 4.0.2, 3.9.2, 3.7.2, 3.6.2, "
            "3.3.2, 2.8.2, 2.7.2, 2.3.1.",
        ),
        (["--kafka", ""], 2, "kardia demo: there is no broker ; there are"),
        (["--scenario", "flood"], 2, "kardia demo: there is no scenario flood; there are join,"),
        (["--with-prometheus", "--engine", "local"], 2, "kardia demo: --with-prometheus shows how long each"),
        (
            ["--with-prometheus"],
            1,
            "kardia demo: --with-prometheus needs programs that are not on the path: prometheus,",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    options: list[str], code: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    directory = tmp_path / "run"
    done = CliRunner().invoke(app, ["demo", "--directory", str(directory), *options])
    assert done.exit_code == code
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.splitlines()) == 1
    assert not directory.exists()
