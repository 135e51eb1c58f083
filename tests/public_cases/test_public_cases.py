"""What is said of logs that people posted in public, from the files to the sentences: see `cases`."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.replay import run
from tests.public_cases.cases import Case, cases, differences
from tests.support.inline_pool import InlinePool


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_is_true_is_said_and_nothing_else(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "Pool", InlinePool)
    found = differences(case, tmp_path / "tables")
    assert not found, "\n".join(found)
