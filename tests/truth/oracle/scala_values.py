"""Scala's values from Python: collections walked, options and small collections made; alike in Scala 2.12 and 2.13."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.truth.oracle.jvm import jclass

_IMMUTABLE = "scala.collection.immutable."


def items(collection: Any) -> Iterator[Any]:
    """What is in a collection; of a map its pairs (`_1`, `_2`)."""
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def option(value: Any) -> Any:
    """Some, or None where there is nothing."""
    return jclass("scala.Option").apply(value)


def scala_list(values: Iterable[Any]) -> Any:
    """A List in the order given."""
    cons = jclass(_IMMUTABLE + "$colon$colon")
    made = getattr(jclass(_IMMUTABLE + "Nil$"), "MODULE$")
    for value in reversed(list(values)):
        made = cons(value, made)
    return made


def scala_map(values: Mapping[str, Any]) -> Any:
    """An immutable Map."""
    made = getattr(jclass(_IMMUTABLE + "Map$EmptyMap$"), "MODULE$")
    for key, value in values.items():
        made = made.updated(key, value)
    return made


def scala_set(values: Iterable[str]) -> Any:
    """An immutable Set."""
    made = getattr(jclass(_IMMUTABLE + "Set$EmptySet$"), "MODULE$")
    for value in values:
        made = getattr(made, "$plus")(value)
    return made
