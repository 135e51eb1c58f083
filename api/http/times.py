"""Instants and ranges of time as parameters: typed, bounded, in epoch milliseconds or RFC 3339."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from pydantic import WithJsonSchema

from api.errors import BeyondComplete, ParameterRefused
from api.http.names import ClusterId
from api.http.request_context import ContextOf, RequestContext
from api.past.past import Then
from kardia.instants import INSTANT_MAX_MS, parse_instant


def _instant(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        expected = f"epoch milliseconds or RFC 3339 with a zone; this is {error}"
        raise ParameterRefused(name, expected, text) from None


_INSTANT = "epoch milliseconds or RFC 3339"
INSTANT = WithJsonSchema(
    {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": INSTANT_MAX_MS},
            {"type": "string", "format": "date-time", "pattern": "^(19[7-9][0-9]|[2-9][0-9]{3})-"},
        ]
    }
)


async def at_instant(
    at: Annotated[
        str | None, INSTANT, Query(description=f"the instant asked about, {_INSTANT}; absent: as far as read")
    ] = None,
) -> int | None:
    """The instant asked about."""
    return _instant("at", at)


async def known_at_instant(
    known_at: Annotated[
        str | None,
        INSTANT,
        Query(description=f"only what was known at that instant, {_INSTANT}; absent: all that is known"),
    ] = None,
) -> int | None:
    """How late evidence may be that counts."""
    return _instant("known_at", known_at)


AtInstant = Annotated[int | None, Depends(at_instant)]
KnownAtInstant = Annotated[int | None, Depends(known_at_instant)]


def within_reach(context: RequestContext, cluster_id: str, /, **instants: int | None) -> None:
    """Refuse an instant that has not been read up to: what was so then is not known, however quiet the tables are.

    Raises BeyondComplete. A cluster that is not there is left to the route.
    """
    cluster = context.store.current.clusters.get(cluster_id)
    if cluster is None:
        return
    reached_ms = cluster.reach.complete_as_of_ms
    for name, asked_ms in instants.items():
        if asked_ms is not None and (reached_ms is None or asked_ms > reached_ms):
            raise BeyondComplete(name, asked_ms, reached_ms)


async def past_instant(
    context: ContextOf, cluster_id: ClusterId, at_ms: AtInstant, known_at_ms: KnownAtInstant
) -> Then | None:
    """The instant asked about, with what was known; None for the present. `known_at` alone asks about that instant."""
    within_reach(context, cluster_id, at=at_ms, known_at=known_at_ms)
    instant_ms = known_at_ms if at_ms is None else at_ms
    return None if instant_ms is None else Then(instant_ms, known_at_ms, context.store.current.batch_id)


AskedInstant = Annotated[Then | None, Depends(past_instant)]


async def time_range(
    context: ContextOf,
    from_: Annotated[
        str | None, INSTANT, Query(alias="from", description=f"not before this instant, {_INSTANT}")
    ] = None,
    to: Annotated[str | None, INSTANT, Query(description=f"before this instant, {_INSTANT}")] = None,
) -> tuple[int | None, int | None]:
    """From (inclusive) and to (exclusive)."""
    from_ms, to_ms = _instant("from", from_), _instant("to", to)
    if from_ms is not None and to_ms is not None:
        bounded(context, from_ms, to_ms)
    return from_ms, to_ms


def bounded(context: RequestContext, from_ms: int, to_ms: int) -> tuple[int, int]:
    """A range that is one, and not too wide."""
    widest_ms = context.store.settings.range_max_ms
    if to_ms < from_ms:
        raise ParameterRefused("to", "an instant that is not before `from`", str(to_ms))
    if to_ms - from_ms > widest_ms:
        expected = f"at most {widest_ms} ms after `from`; ask for less, or leave one of them out"
        raise ParameterRefused("to", expected, str(to_ms), limit="range_max_ms")
    return from_ms, to_ms


TimeRange = Annotated[tuple[int | None, int | None], Depends(time_range)]


SPAN_MS = 3_600_000
"""Length of a range of which one end or both are not given: what people look at after an alert."""


async def both_ends(context: ContextOf, times: TimeRange, cluster_id: ClusterId) -> tuple[int, int]:
    """From and to of a question that needs both: absent, up to where the cluster has been read, and an hour before."""
    cluster = context.store.current.clusters.get(cluster_id)
    return _ends(context, times, cluster.reach.newest_ms if cluster is not None else None)


async def both_known_ends(context: ContextOf, times: TimeRange, cluster_id: ClusterId) -> tuple[int, int]:
    """The same of a question about what was so at either end: both are known, absent, up to where all is complete."""
    within_reach(context, cluster_id, **{"from": times[0], "to": times[1]})
    cluster = context.store.current.clusters.get(cluster_id)
    return _ends(context, times, cluster.reach.complete_as_of_ms if cluster is not None else None)


def _ends(context: RequestContext, times: tuple[int | None, int | None], reached_ms: int | None) -> tuple[int, int]:
    from_ms, to_ms = times
    if to_ms is None:
        to_ms = max(context.store.now_ms() if reached_ms is None else reached_ms, from_ms or 0)
    if from_ms is None:
        from_ms = max(0, to_ms - SPAN_MS)
    return bounded(context, from_ms, to_ms)


BothEnds = Annotated[tuple[int, int], Depends(both_ends)]
BothKnownEnds = Annotated[tuple[int, int], Depends(both_known_ends)]
