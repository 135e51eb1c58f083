"""Groups of a cluster in the orders in which they are listed; sorted once per change of the view, not per request.

Pure. A place in an order is a tuple that fits into a cursor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from api import answers
from api.archive import short
from api.current import ClusterView, GroupView

NAME_CHARS = 200
"""Characters of a group id that it is sorted by, and a digest of the whole: an id may be 32 KiB long, a cursor not."""

Entry = tuple[tuple[Any, ...], GroupView]
"""Place in an order, and the group."""


def by_name(cluster: ClusterView) -> list[Entry]:
    """Groups by name."""
    # Groups come and never go, so their number tells whether one is missing.
    if len(cluster.by_name) != len(cluster.groups):
        found = [((view.group_id[:NAME_CHARS], short(view.group_id)), view) for view in cluster.groups.values()]
        cluster.by_name = sorted(found, key=itemgetter(0))
    return cluster.by_name


def worst_first(cluster: ClusterView) -> list[Entry]:
    """Groups with an overdue member first, then imminent, late, unknown, ok, without members; among equals by name."""
    return cluster.remembered("worst_first", _worst_first)


def _worst_first(cluster: ClusterView) -> list[Entry]:
    ranked: dict[int, list[Entry]] = {}
    for place, view in by_name(cluster):
        rank = -answers.BADNESS.get(answers.worst(view.statuses()) or "ended", 0)
        ranked.setdefault(rank, []).append(((rank, *place), view))
    return [entry for rank in sorted(ranked) for entry in ranked[rank]]


SORTS = {"name": by_name, "worst": worst_first}


def page(
    ordered: list[Entry], after: tuple[Any, ...] | None, limit: int, search: str | None, state: str | None
) -> tuple[list[Entry], bool]:
    """The first groups behind a place whose id contains something and that are in a state; whether there are more."""
    begin = 0 if after is None else bisect_right(ordered, after, key=itemgetter(0))
    found = list(islice(_matching(islice(ordered, begin, None), search, state), limit + 1))
    return found[:limit], len(found) > limit


def _matching(entries: Iterator[Entry], search: str | None, state: str | None) -> Iterator[Entry]:
    wanted = (search or "").casefold()
    wanted_state = None if state is None else state.casefold()
    for entry in entries:
        view = entry[1]
        if wanted in view.folded_id and (wanted_state is None or view.state_name.casefold() == wanted_state):
            yield entry
