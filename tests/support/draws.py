"""What Hypothesis draws: the same examples each time for `make test`, new ones for `make test-long`.

Whether a clone is whole must not depend on the draw, so the profile in force by default derives its examples from the
name of the test. `--hypothesis-profile=new` draws others, from a seed that is told at the end of the run together with
how to draw them again; a failure also shows the line that plays just its example (`@reproduce_failure`). What such a
run finds is written beside its test as an `@example`, with a sentence, before it is mended.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from hypothesis import settings

SAME, NEW = "same", "new"

settings.register_profile(SAME, derandomize=True, print_blob=True)
settings.register_profile(NEW, derandomize=False, print_blob=True)
settings.load_profile(SAME)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of new examples where it can still be told; a process of the run takes the run's."""
    if config.option.hypothesis_profile == NEW and config.option.hypothesis_seed is None:
        given: dict[str, str] = getattr(config, "workerinput", {})
        config.option.hypothesis_seed = given.get("hypothesis_seed") or str(secrets.randbelow(2**32))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed to a process of the run: of the options it knows only those of the command line."""
    node.workerinput["hypothesis_seed"] = node.config.option.hypothesis_seed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to draw the same again."""
    option = terminalreporter.config.option
    if option.hypothesis_profile == NEW:
        again = f"--hypothesis-profile={NEW} --hypothesis-seed={option.hypothesis_seed}"
        terminalreporter.write_line(
            f"New examples were drawn. One test with the same ones: .venv/bin/python -m pytest {again} FILE::NAME; "
            "one example alone: the line @reproduce_failure that its failure shows."
        )
