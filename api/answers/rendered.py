"""Groups as JSON for lists: rendered once per change of the group, with placeholders for what the clock changes.

The placeholder is a NUL byte, which JSON text never holds: inside of strings it is escaped. Filled in is what is left
of the two deadlines that come first. A group that rebalances is rendered anew each time: its duration moves as well.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import orjson

from api.answers import as_dicts
from api.present.current import GroupView
from api.present.freshness import Freshness

_HOLE = b"\0"
_DEADLINES = ("next_session_deadline", "next_poll_deadline")
"""Members of a group that count down, in the order in which they are rendered."""


class Rendered(NamedTuple):
    """JSON of a group around its holes, and the deadlines that belong into them."""

    parts: tuple[bytes, ...]
    deadlines: tuple[tuple[int, bool], ...]
    """Each with whether it is the least that it may be."""


def group(view: GroupView, freshness: Freshness, rung: int) -> orjson.Fragment:
    """`as_dicts.group` as JSON, with the rung of evidence on which the group stands: what is read of its broker moves
    without it."""
    return orjson.Fragment(b'%s,"rung":%d}' % (_group(view, freshness)[:-1], rung))


def _group(view: GroupView, freshness: Freshness) -> bytes:
    if view.rebalance is not None and view.rebalance.completed_at_ms is None:
        return orjson.dumps(as_dicts.group(view, freshness))
    parts, deadlines = view.remembered("rendered", _rendered)
    left = [freshness.left_json(deadline_ms, is_least=is_least) for deadline_ms, is_least in deadlines]
    return b"".join(chain.from_iterable(zip(parts, [*left, b""], strict=True)))


def _rendered(view: GroupView) -> Rendered:
    found: dict[str, Any] = as_dicts.group(view, Freshness(None, 0, 0, 0))
    counting = [found[name] for name in _DEADLINES if found[name] is not None]
    for deadline in counting:
        deadline["remaining_ms"] = orjson.Fragment(_HOLE)
    parts = tuple(orjson.dumps(found).split(_HOLE))
    return Rendered(parts, tuple((one["deadline_at_ms"], one["is_least"]) for one in counting))
