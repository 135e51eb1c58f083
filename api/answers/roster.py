"""Groups of a cluster in the orders in which they are listed; sorted once per view, not per request.

Pure. A place in an order is a tuple that fits into a cursor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from api.access.ids import sort_key
from api.present import shown_status
from api.present.current import ClusterView, GroupView
from kardia.statuses import STATUS_SEVERITY

NAME_CHARS = 200
"""Characters of a group id that it is sorted by, and a digest of the whole: an id may be 32 KiB long, a cursor not."""

Entry = tuple[tuple[Any, ...], str, str]
"""Place in an order, id of the group, and what a search looks into."""

CHUNK = 50
"""Groups that are ranked without a break."""


def by_name(cluster: ClusterView) -> list[Entry]:
    """Groups by name."""
    # Groups come last and go everywhere at once (`api.present.forgetting`): those that are missing are the last ones.
    if missing := list(islice(cluster.groups, len(cluster.by_name), None)):
        added = [((group_id[:NAME_CHARS], sort_key(group_id)), group_id, group_id.casefold()) for group_id in missing]
        cluster.by_name = sorted(cluster.by_name + added)
    return cluster.by_name


def worst_first(cluster: ClusterView) -> list[Entry]:
    """Groups by the worst status of a member, as it is shown; last those without members; among equals by name."""
    return cluster.overview(_worst_first)


def least_margin_first(cluster: ClusterView) -> list[Entry]:
    """Groups by the least part that is left of a session timeout or poll interval of any member, as they were sampled;
    last those of which none is known; among equals by name."""
    return cluster.overview(_least_margin_first)


def _worst_first(cluster: ClusterView) -> Generator[None, None, list[Entry]]:
    return (yield from _ranked(cluster, _badness))


def _least_margin_first(cluster: ClusterView) -> Generator[None, None, list[Entry]]:
    return (yield from _ranked(cluster, _margin))


def _badness(view: GroupView) -> int:
    return -STATUS_SEVERITY[shown_status.worst(view.shown_by_status()) or "ended"]


def _margin(view: GroupView) -> int:
    """Ten-thousandths, as fine as headroom is told."""
    margin = view.tally().least_headroom
    return 10_001 if margin is None else round(margin * 10_000)


def _ranked(cluster: ClusterView, rank_of: Callable[[GroupView], int]) -> Generator[None, None, list[Entry]]:
    ranked: dict[int, list[Entry]] = {}
    for number, (place, group_id, folded_id) in enumerate(by_name(cluster)):
        rank = rank_of(cluster.groups[group_id])
        ranked.setdefault(rank, []).append(((rank, *place), group_id, folded_id))
        if number % CHUNK == 0:
            yield
    return [entry for rank in sorted(ranked) for entry in ranked[rank]]


SORTS = {"name": by_name, "worst": worst_first, "margin": least_margin_first}


def page(
    cluster: ClusterView, sort: str, after: tuple[Any, ...] | None, limit: int, search: str | None, state: str | None
) -> tuple[list[tuple[tuple[Any, ...], GroupView]], bool]:
    """The first groups behind a place whose id contains something and that are in a state; whether there are more."""
    ordered = SORTS[sort](cluster)
    begin = 0 if after is None else bisect_right(ordered, after, key=itemgetter(0))
    matching = _matching(cluster, islice(ordered, begin, None), search, state)
    found = list(islice(matching, limit + 1))
    return found[:limit], len(found) > limit


def _matching(
    cluster: ClusterView, entries: Iterator[Entry], search: str | None, state: str | None
) -> Iterator[tuple[tuple[Any, ...], GroupView]]:
    wanted = (search or "").casefold()
    wanted_state = None if state is None else state.casefold()
    for place, group_id, folded_id in entries:
        if wanted in folded_id:
            view = cluster.groups[group_id]
            if wanted_state is None or view.state_name.casefold() == wanted_state:
                yield place, view
