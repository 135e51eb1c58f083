"""Expectations of public cases, and how an answer is held against them.

`expect.yaml` is a list of cases:

    case: name, of its own
    files: what is replayed, as it lies in the folder
    options: further words of `kardia replay`
    truth: what is true, for whoever reads the case
    code: exit status of the replay, 0 if not given
    replay: what the replay says, as patterns
    rejected: true where lines are not understood
    groups: by name, and all of them
      stands: how the group stands at last: state, generation_id, number of members
      lives, rebalances: rows of these tables, all of them, each with the columns that count
      why, explain, incident: patterns, all of which are in the answer
      never: patterns that are in no answer

Instants (columns `..._at_ms`) are written as RFC 3339. A column that is `null` is not known. A life or a rebalance that
is not listed was invented; so an eviction that never was fails whatever else is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from deltalake import DeltaTable

from kardia.instants import to_rfc3339
from kardia.tables import TABLES
from tests.story.conftest import Said, kardia

FOLDER = Path(__file__).parent

VERBS = ("why", "explain", "incident")

WHOLE = ("--from", "8760h")
"""A report is of the last hour, unless it is told otherwise."""


class Case(NamedTuple):
    """One case."""

    name: str
    folder: Path
    expected: Mapping[str, Any]


def cases() -> list[Case]:
    """All of them."""
    paths = sorted(FOLDER.glob("*/expect.yaml"))
    return [Case(one["case"], path.parent, one) for path in paths for one in yaml.safe_load(path.read_text())]


def differences(case: Case, tables: Path) -> list[str]:
    """Replay a case into tables, ask all there is to ask, and give what is not as it has to be."""
    expected = case.expected
    files = [case.folder / name for name in expected["files"]]
    said = kardia("replay", "--tables", tables, *files, *expected.get("options", ()))
    found = list(_unlike("replay", said, expected.get("replay", ()), expected.get("code", 0)))
    if said.code:
        return found
    groups = expected.get("groups", {})
    listed = {row["group_id"]: row for row in kardia("groups", "-o", "json", "--tables", tables).json()}
    if listed.keys() != groups.keys():
        found.append(f"groups: {sorted(listed)}, expected {sorted(groups)}")
    rejected = {row["reason"] for row in _rows(tables, "rejected")}
    if bool(rejected) != expected.get("rejected", False):
        found.append(f"rejected: {rejected}, expected {expected.get('rejected', False)}")
    lives, rebalances = _standing(tables, "members"), _standing(tables, "rebalances")
    for group, told in groups.items():
        found += _stands_unlike(group, listed.get(group), told.get("stands", {}))
        for name, rows in (("lives", lives), ("rebalances", rebalances)):
            of_group = [row for row in rows if row["group_id"] == group]
            found += (f"{group}: {one}" for one in _unlike_rows(name, of_group, told.get(name, [])))
        for verb in VERBS:
            whole = WHOLE if verb == "incident" else ()
            said = kardia(verb, group, "--tables", tables, *whole)
            found += _unlike(f"{verb} {group}", said, told.get(verb, ()), 0, told.get("never", ()))
    return found


def _stands_unlike(group: str, row: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> Iterator[str]:
    """How the last state of a group differs."""
    if row is not None:
        stands = {"state": row["state"], "generation_id": row["generation_id"], "members": row["members"]["total"]}
        if not wanted.items() <= stands.items():
            yield f"{group} stands: {stands}, expected {wanted}"


def _unlike(verb: str, said: Said, wanted: Any, code: int, never: Any = ()) -> Iterator[str]:
    """How an answer differs. Lines are joined: where a terminal breaks them says nothing."""
    text = " ".join((said.out + said.err).split())
    if said.code != code:
        yield f"{verb}: exit {said.code}, expected {code}: {text}"
    for pattern in wanted:
        if not re.search(pattern, text):
            yield f"{verb}: `{pattern}` is not said: {text}"
    for pattern in never:
        if re.search(pattern, text):
            yield f"{verb}: `{pattern}` is said: {text}"


def _unlike_rows(name: str, rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> Iterator[str]:
    """Rows that nobody expects, and expected ones that are not there."""
    open_rows = [{column: _shown(column, value) for column, value in row.items()} for row in rows]
    for one in wanted:
        fitting = next((row for row in open_rows if one.items() <= row.items()), None)
        if fitting is None:
            columns = next(iter(wanted)).keys() | one.keys()
            there = [{column: row[column] for column in columns} for row in open_rows]
            yield f"{name}: {one} is not there: {there}"
        else:
            open_rows.remove(fitting)
    for row in open_rows:
        yield f"{name}: nobody expects { {column: value for column, value in row.items() if value is not None} }"


def _shown(column: str, value: Any) -> Any:
    return to_rfc3339(value) if column.endswith("_at_ms") else value


def _standing(tables: Path, name: str) -> list[dict[str, Any]]:
    """Of each key the row that stands: the one known last."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(_rows(tables, name), key=lambda row: (row["batch_id"], row["known_at_ms"])):
        best[tuple(row[column] for column in TABLES[name].key)] = row
    return [row for row in best.values() if not row.get("withdrawn")]


def _rows(tables: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(tables / name).to_pyarrow_table().to_pylist()
    return found
