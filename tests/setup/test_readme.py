"""The commands of README as they stand there, walked in an empty folder: what needs no broker is run, one after the
other.

Method: the code blocks of the page are the data; what a reader has to put in (a folder of logs, a group) is put in.
What needs a broker is named here, or names no tables; its options are held by `test_pages`. How the wheel is installed
by pip, pipx and uv, and what `kardia live` then answers: `test_installed`.
"""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from scripts import install
from tests.setup.test_pages import commands
from tests.support.stories import Story

README = (install.ROOT / "README.md").read_text(encoding="utf-8")
STORY, GROUP = "c04_mpi-3.9.2", "g04"
LOGS = ("kafka-request.log", "server.log")

INSTALLED = 'pipx install "$(ls dist/*.whl)[live]"'
"""What the page installs, where `make release` has left a wheel."""

NEED_A_BROKER = frozenset({"stream"})
BESIDE = frozenset({"serve", "live"})
"""Go on until they are told to end: `tests/api/test_serve.py`, `test_installed`."""


def walked() -> list[list[str]]:
    """Words of each command that names tables and is run, in the order of the page."""
    found = (shlex.split(command, comments=True) for command in commands(README))
    return [words for words in found if "--tables" in words and words[1] not in NEED_A_BROKER | BESIDE]


@pytest.mark.slow
def test_they_answer_from_a_folder_of_logs_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in LOGS:
        (logs / name).write_bytes(gzip.decompress((Story(STORY).folder / f"{name}.gz").read_bytes()))
    here = tmp_path / "empty"
    here.mkdir()
    monkeypatch.chdir(here)
    said = dict[str, str]()
    for words in walked():
        given = [{"/var/log/kafka": str(logs), "GROUP": GROUP}.get(word, word) for word in words[1:]]
        result = CliRunner().invoke(app, given, prog_name="kardia")
        assert result.exit_code == 0, (words, result.output)
        said[words[1]] = result.output
    assert said.keys() == {"replay", "incident", "why"}
    assert f"{GROUP}\n  2 members evicted" in said["incident"]
    assert "gave up its membership" in said["why"]


def test_what_is_built_is_what_is_installed() -> None:
    assert f"\nmake release\n{INSTALLED}\nkardia live " in README
    assert all(f"`{way}`" in README for way in ("pipx install", "uv tool install", "pip install"))
