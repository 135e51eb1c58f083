"""The stored form of the observer's state: lists of plain values, made and read by the types of the fields.

A dataclass is the list of its values in the order of its fields, and so is a named tuple, which holds plain values. A
dictionary whose values hold their own key is the list of its values: its field says so (`KEY`). What is plain
already stays as it is and is not copied. Both directions follow from the same annotations, so that a new field is kept
without a line of its own; but the form is another one then, and the version of the state with it
(`spark_jobs.state_codec`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, get_args, get_origin, get_type_hints

Change = Callable[[Any], Any]

KEY = "key"
"""In the metadata of a field that is a dictionary: the attribute in which its values hold their own key. Dots lead on
into the attributes of attributes."""


@cache
def writer(kind: Any) -> Change | None:
    """How a value of a type is made plain; None where it is."""
    if is_dataclass(kind):
        return _writer_of_fields(kind)
    return _inside(kind, writer)


@cache
def reader(kind: Any) -> Change | None:
    """How a value of a type is made from its plain form; None where that is the value. What does not have as many
    values as the type has fields is refused with a ValueError or a TypeError."""
    if is_dataclass(kind):
        return _reader_of_fields(kind)
    if isinstance(kind, type) and issubclass(kind, tuple):
        make: Change = kind._make  # type: ignore[attr-defined]
        return make
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return tuple if get_origin(kind) is tuple else _inside(kind, reader)


def _inside(kind: Any, change_of: Callable[[Any], Change | None]) -> Change | None:
    """The same for each value of a list or a dictionary, and for a value that may be None."""
    arguments = [one for one in get_args(kind) if one is not type(None)]
    change = change_of(arguments[-1]) if arguments else None
    if change is None:
        return None
    if get_origin(kind) is list:
        return lambda values: list(map(change, values))
    if get_origin(kind) is dict:
        return lambda values: {key: change(value) for key, value in values.items()}
    return lambda value: None if value is None else change(value)


def _writer_of_fields(kind: Any) -> Change:
    """A dataclass becomes the list, or the tuple, of its values."""
    hints, held = get_type_hints(kind), fields(kind)
    values_of: Change = attrgetter(*(item.name for item in held))
    found = [_writer_of_field(hints[item.name], item.metadata.get(KEY)) for item in held]
    changes = [(place, change) for place, change in enumerate(found) if change is not None]

    def write(one: Any) -> list[Any]:
        values = list(values_of(one))
        for place, change in changes:
            values[place] = change(values[place])
        return values

    return write if changes else values_of


def _writer_of_field(kind: Any, key: str | None) -> Change | None:
    if key is None:
        return writer(kind)
    change = writer(get_args(kind)[-1])
    if change is None:
        return lambda values: list(values.values())
    return lambda values: list(map(change, values.values()))


def _reader_of_fields(kind: Any) -> Change:
    hints, held = get_type_hints(kind), fields(kind)
    found = [_reader_of_field(hints[item.name], item.metadata.get(KEY)) for item in held]
    changes = [(place, change) for place, change in enumerate(found) if change is not None]

    def read(values: Any) -> Any:
        if len(values) != len(held):
            raise ValueError(f"{len(values)} values of a {kind.__name__}, which has {len(held)}")
        values = list(values)
        for place, change in changes:
            values[place] = change(values[place])
        return kind(*values)

    return read


def _reader_of_field(kind: Any, key: str | None) -> Change | None:
    if key is None:
        return reader(kind)
    change, key_of = reader(get_args(kind)[-1]), attrgetter(key)
    if change is None:
        raise TypeError(f"{kind}: its values hold no key")
    return lambda values: {key_of(one): one for one in map(change, values)}
