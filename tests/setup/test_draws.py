"""`make test` draws the same examples each time; `make test-long` new ones, and says how to draw those again.

Method: a small file of tests is run by pytest in a process of its own, as the Makefile runs the suite, and writes down
what was drawn for it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.draws import NEW, SAME

ROOT = Path(__file__).resolve().parents[2]

FILE = """
import os
from hypothesis import given, strategies as st

@given(st.integers(), st.text())
def test_writes_down_what_is_drawn(number, text):
    with open(os.environ["DRAWN"], "a") as file:
        file.write(f"{number} {text!a}\\n")

@given(st.booleans())
def test_fails(flag):
    assert not flag
"""


class Run:
    """One run of the small file."""

    def __init__(self, folder: Path, *options: str) -> None:
        tests, drawn = folder / "test_drawing.py", folder / "drawn"
        tests.write_text(FILE, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        drawn.write_text("", encoding="utf-8")
        plugins = ("_hypothesis_pytestplugin", "xdist", "tests.support.draws", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(folder / "pytest.ini")]
        done = subprocess.run(
            [*command, *(part for plugin in plugins for part in ("-p", plugin)), *options, str(tests)],
            cwd=ROOT,
            env={
                "DRAWN": str(drawn),
                "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "found"),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.told = done.stdout + done.stderr
        self.drawn = drawn.read_text(encoding="utf-8")
        assert "1 failed, 1 passed" in self.told


def test_the_suite_runs_with_the_same_examples_unless_new_ones_are_asked_for(request: pytest.FixtureRequest) -> None:
    asked = request.config.option.hypothesis_profile
    assert settings.get_current_profile_name() == (asked or SAME)
    assert settings.get_profile(SAME).derandomize
    long = (ROOT / "Makefile").read_text(encoding="utf-8").partition("test-long:")[2].splitlines()[1]
    assert f"--hypothesis-profile={NEW}" in long


def test_the_same_is_drawn_each_time(tmp_path: Path) -> None:
    first, second = Run(tmp_path), Run(tmp_path)
    assert first.drawn == second.drawn
    assert first.drawn.count("\n") >= 100


def test_new_examples_can_be_drawn_again(tmp_path: Path) -> None:
    """Drawn by a process of the run, and again by the run itself."""
    new = Run(tmp_path, "-n", "1", "--hypothesis-profile=new")
    found = re.search(r"pytest (--hypothesis-profile=new --hypothesis-seed=\d+) FILE::NAME", new.told)
    assert found is not None
    assert "@reproduce_failure(" in new.told
    assert Run(tmp_path, *found[1].split()).drawn == new.drawn
    other, seed = found[1].rsplit("=", 1)
    assert Run(tmp_path, *f"{other}={int(seed) + 1}".split()).drawn != new.drawn
