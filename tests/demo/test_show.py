"""What the demo prints at its end: the verdict in one sentence, and how to ask on."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from demo import report, show
from demo.verdict import judge
from tests.demo.test_verdict import KILL, evidence_of


def test_it_says_how_to_ask_on_about_the_group_that_lost_a_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["here/kardia", "demo"])
    console = Console(file=io.StringIO(), width=40)
    show._ask_on(console, judge(evidence_of(KILL)), tmp_path / "data" / "tables")
    said = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert "  here/kardia why g01 --tables data/tables  # why it rebalanced last" in said
    assert any(line.startswith("  here/kardia serve --tables data/tables") for line in said)


def test_what_it_says_is_understood_by_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(tmp_path / "Meine Programme" / "kardia"), "demo"])
    console = Console(file=io.StringIO(), width=40)
    show._ask_on(console, judge(evidence_of(KILL)), tmp_path / "Kärdia Daten 1" / "tables")
    commands = [
        shlex.split(line, comments=True)
        for line in console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        if line.startswith("  ")
    ]
    assert [command[1] for command in commands] == ["why", "explain", "groups", "surprises", "serve"]
    for command in commands:
        assert command[0] == str(tmp_path / "Meine Programme" / "kardia")
        assert command[-2:] == ["--tables", str(tmp_path / "Kärdia Daten 1" / "tables")]


def test_predictions_that_came_too_late_come_with_advice() -> None:
    def concluded(*faults: str) -> str:
        console = Console(file=io.StringIO(), width=400)
        show._conclude(console, faults, judge(evidence_of(KILL)), 0)
        return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]

    assert "none was invented" in concluded()
    assert concluded("a").startswith("One thing is wrong:")
    assert "--stretch 2" not in concluded("a", "b")
    assert "--stretch 2" in concluded("checkout-1 was silent: was predicted 40 ms too late")


def test_machines_are_told_what_is_wrong_and_what_is_only_late(tmp_path: Path) -> None:
    late = "checkout-1 was silent: was predicted 40 ms too late"
    show._leave_for_machines(tmp_path / show.VERDICT, ["a", late], judge(evidence_of(KILL)), 7)
    said = json.loads((tmp_path / show.VERDICT).read_text())
    assert (said["wrong"], said["late"], said["stall_ms"]) == (["a"], [late], 7)
    assert said["instants"] > 0


def test_one_timeout_is_told_as_one() -> None:
    assert report._foresight(1, [8_600]) == "1 timeout struck, said 8.6 s before."
    assert report._foresight(1, []) == "1 timeout struck, said by nobody before."
    several = "3 timeouts struck, 2 of them were said before, 4.0 to 4.4 s ahead."
    assert report._foresight(3, [4_400, 4_000]) == several
