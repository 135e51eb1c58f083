"""Steps from the saved state of a release to that of the next, beyond defaults; `state_codec` has the table. Pure.

A step takes a snapshot of the observer as the release before has written it, plain values, and gives it as the release
after writes it. Steps are never changed: the state of each release that is read goes through all steps since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kardia.doubts import SURE, Doubt, Doubts

_STREAM = ("complete_to", "alive_to", "since_tick", "begins_at", "ends_at", "heard_from", "usual_gap_ms")
_COUNTS = ("events", "duplicates", "lines", "ignored", "rejected", "gaps", "touched")
_SOURCE = ("end", "tick_end")


def to_27(snapshot: dict[str, Any]) -> dict[str, Any]:
    """26 to 27: streams and sources have names, ends and causes have doubts."""
    return _with_doubts(_with_names(snapshot))


def _with_names(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What is kept of streams and of sources has names."""
    streams = {}
    for name, (*values, untold) in snapshot["streams"].items():
        kept = dict(zip((*_STREAM, *_COUNTS), (*values, *untold), strict=True))
        streams[name] = kept | {"touched": bool(kept["touched"])}
    sources = {name: dict(zip(_SOURCE, values, strict=True)) for name, values in snapshot["sources"].items()}
    return snapshot | {"streams": streams, "sources": sources}


_DOUBTS: dict[str, Doubts] = {
    "exact": SURE,
    "inferred": Doubt.INFERRED_BEFORE,
    "provisional": Doubt.PROVISIONAL_BEFORE,
    "unknown": Doubt.NOT_SEEN,
}
"""How sure a release was that did not say why -> a doubt that leaves it worth as much."""


def _with_doubts(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What is in doubt about an end or a cause stands where it stood how sure that was."""
    groups = msgspec.msgpack.decode(snapshot["groups"])
    for group in groups:
        _each(group, 20, _ended)
        _one(group, 21, _rebalance)
        _each_value(group, 46, _left)
        _one(group, 51, _told)
        _one(group, 52, _modern)
    return snapshot | {"groups": msgspec.msgpack.encode(groups)}


def _ended(ended: list[Any]) -> None:
    ended[4] = _DOUBTS[ended[4]]


_left = _ended


def _said_end(end: list[Any]) -> None:
    end[2] = _DOUBTS[end[2]]


def _cause(cause: list[Any]) -> None:
    if len(cause) > 6:
        cause[6] = _DOUBTS[cause[6]]


def _rebalance(rebalance: list[Any]) -> None:
    _one(rebalance, 2, _cause)
    _each(rebalance, 20, _left)


def _bump(bump: list[Any]) -> None:
    _one(bump, 3, _cause)


def _told(told: list[Any]) -> None:
    _each_value(told, 6, _said_end)
    _one(told, 8, _rebalance)
    _one(told, 9, _cause)
    _one(told, 10, _bump)


def _modern(modern: list[Any]) -> None:
    _one(modern, 5, _bump)
    _each(modern, 6, _bump)


def _one(values: list[Any], place: int, change: Callable[[list[Any]], None]) -> None:
    """Change what stands at a place, if the array is so long and anything stands there."""
    if len(values) > place and values[place] is not None:
        change(values[place])


def _each(values: list[Any], place: int, change: Callable[[list[Any]], None]) -> None:
    for value in values[place] if len(values) > place else ():
        change(value)


def _each_value(values: list[Any], place: int, change: Callable[[list[Any]], None]) -> None:
    for value in values[place].values() if len(values) > place else ():
        change(value)
