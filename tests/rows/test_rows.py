"""A tenth of the golden rows is as it was agreed on (`make rows` has them all), and a change of one row is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kardia.tables import TABLES
from tests.rows import __main__ as rows
from tests.rows import cases
from tests.rows.compared import differences

TENTH = 10
CASE = "story/c01_kill-3.9.2/requests/at once"


def test_every_case_has_a_digest_and_no_other() -> None:
    assert list(rows.agreed()) == sorted(cases.names())


@pytest.mark.parametrize("name", cases.names()[::TENTH])
def test_a_case_is_told_as_it_was(name: str) -> None:
    digest = cases.digest_of(cases.rows_of(name))
    if digest != rows.agreed()[name]:
        pytest.fail("\n".join(rows.report([name], {name: digest})))


@pytest.mark.parametrize("seed", ["0", "1"])
def test_rows_do_not_follow_from_how_a_process_hashes_strings(seed: str) -> None:
    """Two members that a conversion does not name are gone in one instant, in the order of their ids."""
    name = "simulated/migration, records/4.3.1/70014"
    code = f"from tests.rows import cases; print(cases.digest_of(cases.rows_of({name!r})))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": seed},
        cwd=rows.ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.strip() == rows.agreed()[name]


def _changed(table: str, column: str, change: Callable[[Any], Any]) -> Callable[[list[str]], list[str]]:
    """Rows of which one of a table, the first that has a value there, has another."""

    def of(lines: list[str]) -> list[str]:
        at = 1 + TABLES[table].names.index(column)
        rows = [json.loads(line) for line in lines]
        place, row = next((place, row) for place, row in enumerate(rows) if row[0] == table and row[at] is not None)
        row[at] = change(row[at])
        return sorted([*lines[:place], *lines[place + 1 :], json.dumps(row)])

    return of


def _without(lines: list[str]) -> list[str]:
    return lines[1:]


PLANTED = {
    "a row that is gone": (_without, "is not said any more"),
    "an instant": (_changed("rebalances", "completed_at_ms", lambda at: at + 1), "completed_at_ms "),
    "a certainty": (_changed("members", "certainty", lambda _: "exact?"), "certainty 'exact' -> 'exact?'"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_change_of_one_row_is_one_sentence(what: str) -> None:
    change, told = PLANTED[what]
    before = cases.rows_of(CASE)
    (sentence,) = differences(before, change(before))
    head, _, said = sentence.partition(": ")
    assert head.split(" of ")[0] in TABLES
    assert said.startswith(told)
    if "->" in said and "ms" in said:
        was, _, now = said.removeprefix(told).partition(" -> ")
        assert int(now) == int(was) + 1
    assert differences(before, before) == []
    (again,) = differences(change(before), before)
    assert again != sentence


def test_a_planted_change_fails_with_its_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = cases.rows_of
    change, told = PLANTED["a certainty"]

    @contextmanager
    def as_it_is() -> Iterator[Path]:
        yield rows.ROOT

    monkeypatch.setattr(cases, "rows_of", lambda name: change(honest(name)))
    monkeypatch.setattr(rows, "_tree_of_before", as_it_is)
    monkeypatch.setattr(rows, "digests_of", lambda names, _: {name: rows.digest(name) for name in names})
    monkeypatch.setattr("sys.argv", ["rows", CASE])
    assert rows.main() == 1
    told_lines = capsys.readouterr().out.splitlines()
    assert told_lines[0] == f"{CASE}: rows differ"
    assert told_lines[1].endswith(told)
    assert len(told_lines) == 3
    monkeypatch.setattr(cases, "rows_of", honest)
    assert rows.main() == 0
