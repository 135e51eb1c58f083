"""The table of alerts that the demo prints: an alert that never came stands in it with the reason."""

from __future__ import annotations

import io

from rich.console import Console

from demo import alarm_report
from demo.told import Begun, Danger

BEGUN = (Begun("kill", "checkout", 1_000), Begun("leave", "checkout", 9_000), Begun("empty", "reports", 2_000))


def said(*dangers: Danger) -> dict[str, str]:
    console = Console(file=io.StringIO(), width=200)
    alarm_report.show(console, (), BEGUN, dangers)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return {line.split()[0]: line for line in lines if "none: " in line}


def test_a_fault_without_danger_and_one_that_was_seen_too_late_are_told_apart() -> None:
    late = Danger("checkout", "m", "session", 3_000, 7_000, 7_500)
    shown = said(late)
    assert set(shown) == {"kill", "leave", "empty"}
    assert "too late or too briefly" in shown["kill"]
    assert "nothing was in danger" in shown["leave"]
    assert "nothing was in danger" in shown["empty"]
    assert "nothing was in danger" in said()["kill"]
