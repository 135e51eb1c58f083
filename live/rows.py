"""Rows as the lanes tell them, made what a reader of the tables gets: without the way through Arrow and back.

A step tells a few rows a dozen times a second. As columns of Arrow they cost a hundred times of what is in them, so the
view gets them directly, and the tables those of a whole batch at once. Equal to what is read is a law of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from api.files.reader import ROW_TYPES
from kardia.table_types import STRUCTS
from kardia.tables import TABLES, Row


def _text(value: Any) -> Any:
    """A text as it can be written; half of a surrogate pair is shown."""
    text = str.__str__(value)  # a plain one: a certainty is a text with a class of its own
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _texts(value: Iterable[Any]) -> list[Any]:
    return [_text(one) for one in value]


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "long": int,
    "int": int,
    "double": float,
    "bool": bool,
    "strings": _texts,
}


def _entries(fields: Sequence[tuple[str, str]]) -> Callable[[Any], list[dict[str, Any]]]:
    """How a list of entries is made: by name or by position, each field by its type."""
    made = [(name, _SIMPLE[kind]) for name, kind in fields]

    def of(value: Iterable[Any]) -> list[dict[str, Any]]:
        found = []
        for entry in value:
            given = entry if isinstance(entry, Mapping) else dict(zip((name for name, _ in made), entry, strict=True))
            found.append({name: None if given.get(name) is None else make(given[name]) for name, make in made})
        return found

    return of


_MAKE = _SIMPLE | {name: _entries(fields) for name, fields in STRUCTS.items()}

_OF_TABLE = {name: [_MAKE[column.type] for column in table.columns] for name, table in TABLES.items()}


def as_read(name: str, rows: Iterable[Row], batch_id: int, hidden: frozenset[str]) -> list[Any]:
    """Rows of a batch as `api.files.reader.TableReader` gives them; columns that are hidden are None."""
    make = [
        None if column.name in hidden else one
        for column, one in zip(TABLES[name].columns, _OF_TABLE[name], strict=True)
    ]
    new, kind = tuple.__new__, ROW_TYPES[name]
    return [
        new(
            kind,
            (
                *(None if one is None or value is None else one(value) for one, value in zip(make, row, strict=True)),
                batch_id,
            ),
        )
        for row in rows
    ]
