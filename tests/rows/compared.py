"""Two lists of rows of one case, said apart in sentences: which row is gone, is new, or says something else now."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from kardia.tables import TABLES

Key = tuple[str, str]
"""(table, values of its key as JSON)."""

KNOWN = "known_at_ms"


def differences(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """What is different, a sentence each, in the order of tables, keys and instants. Lines are as `cases.rows_of` gives
    them; a column that came since, and is null, is no difference."""
    old, new = (Counter(map(_without_nulls_at_the_end, lines)) for lines in (before, now))
    gone, come = _by_key(old - new), _by_key(new - old)
    found: list[str] = []
    for key in sorted(gone.keys() | come.keys()):
        found += _of_key(key, gone.get(key, []), come.get(key, []))
    return found


def _without_nulls_at_the_end(line: str) -> str:
    values = json.loads(line)
    while values[-1] is None:
        del values[-1]
    return json.dumps(values)


def _by_key(lines: Counter[str]) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for line in sorted(lines.elements()):
        table, *values = json.loads(line)
        names = TABLES[table].names
        row = dict(zip(names, [*values, *[None] * (len(names) - len(values))], strict=True))
        found[table, json.dumps([row[name] for name in TABLES[table].key])].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row[KNOWN])
    return found


def _of_key(key: Key, gone: list[dict[str, Any]], come: list[dict[str, Any]]) -> Iterator[str]:
    """Rows of one key, those with the most in common as a pair."""
    left = list(come)
    for row in gone:
        if not left:
            yield f"{_named(key, row)}: is not said any more: {_shown(row)}"
            continue
        nearest = min(left, key=lambda one: len(_changed(row, one)))
        left.remove(nearest)
        changed = ", ".join(f"{name} {row[name]!r} -> {nearest[name]!r}" for name in _changed(row, nearest))
        yield f"{_named(key, row)}: {changed}"
    for row in left:
        yield f"{_named(key, row)}: is said now: {_shown(row)}"


def _changed(one: dict[str, Any], another: dict[str, Any]) -> list[str]:
    return [name for name, value in one.items() if value != another[name]]


def _named(key: Key, row: dict[str, Any]) -> str:
    table, values = key
    of_key = ", ".join(str(value) for value in json.loads(values) if value not in ("", None))
    return f"{table} of {of_key} (known at {row[KNOWN]})"


def _shown(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in row.items() if value not in (None, "", -1))
