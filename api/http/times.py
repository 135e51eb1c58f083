"""Instants and ranges of time of the URL: described, read, bounded; in epoch milliseconds or RFC 3339."""

from __future__ import annotations

from api.errors import BeyondComplete, ParameterRefused
from api.http.request_context import RequestContext
from api.http.routing import ApiRequest, query_parameter
from api.past.as_of import Then
from api.present.current import ClusterView
from kardia.instants import INSTANT_MAX_MS, parse_instant


def _instant(request: ApiRequest, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        expected = f"epoch milliseconds or RFC 3339 with a zone; this is {error}"
        raise ParameterRefused(name, expected, text) from None


_INSTANT = "epoch milliseconds or RFC 3339"
_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": INSTANT_MAX_MS},
        {"type": "string", "format": "date-time", "pattern": "^(19[7-9][0-9]|[2-9][0-9]{3})-"},
    ]
}

AT = query_parameter("at", f"the instant asked about, {_INSTANT}; absent: as far as read", _SCHEMA)
KNOWN_AT = query_parameter(
    "known_at", f"only what was known at that instant, {_INSTANT}; absent: all that is known", _SCHEMA
)
FROM_TO = (
    query_parameter("from", f"not before this instant, {_INSTANT}", _SCHEMA),
    query_parameter("to", f"before this instant, {_INSTANT}", _SCHEMA),
)


def at_of(request: ApiRequest) -> int | None:
    """The instant asked about."""
    return _instant(request, "at")


def known_at_of(request: ApiRequest) -> int | None:
    """How late evidence may be that counts."""
    return _instant(request, "known_at")


def within_reach(context: RequestContext, cluster_id: str, group_id: str, /, **instants: int | None) -> None:
    """Refuse an instant that has not been read up to: what was so then is not known, however quiet the tables are. Of a
    group it is read as far as the logs of the broker that leads it.

    Raises BeyondComplete. A cluster or group that is not there is left to the route.
    """
    cluster = context.store.current.clusters.get(cluster_id)
    if cluster is None:
        return
    reached_ms = _reached_ms(cluster, group_id)
    for name, asked_ms in instants.items():
        if asked_ms is not None and (reached_ms is None or asked_ms > reached_ms):
            raise BeyondComplete(name, asked_ms, reached_ms)


def _reached_ms(cluster: ClusterView, group_id: str) -> int | None:
    group = cluster.groups.get(group_id)
    return cluster.reach.complete_as_of_ms if group is None else cluster.complete_of(group)


def then_of(request: ApiRequest, cluster_id: str, group_id: str) -> Then | None:
    """The instant asked about, with what was known; None for the present. `known_at` alone asks about that instant."""
    at_ms, known_at_ms = at_of(request), known_at_of(request)
    within_reach(request.context, cluster_id, group_id, at=at_ms, known_at=known_at_ms)
    instant_ms = known_at_ms if at_ms is None else at_ms
    return None if instant_ms is None else Then(instant_ms, known_at_ms, request.context.store.current.batch_id)


def time_range_of(request: ApiRequest) -> tuple[int | None, int | None]:
    """From (inclusive) and to (exclusive)."""
    from_ms, to_ms = _instant(request, "from"), _instant(request, "to")
    if from_ms is not None and to_ms is not None:
        bounded(request.context, from_ms, to_ms)
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


SPAN_MS = 3_600_000
"""Length of a range of which one end or both are not given: what people look at after an alert."""


def both_ends_of(request: ApiRequest, cluster_id: str) -> tuple[int, int]:
    """From and to of a question that needs both: absent, up to where the cluster has been read, and an hour before.
    What the last line that was read says is inside: `to` is the ms after it."""
    context, times = request.context, time_range_of(request)
    cluster = context.store.current.clusters.get(cluster_id)
    newest_ms = cluster.reach.newest_ms if cluster is not None else None
    return _ends(context, times, None if newest_ms is None else newest_ms + 1)


def both_known_ends_of(request: ApiRequest, cluster_id: str, group_id: str) -> tuple[int, int]:
    """The same of a question about what was so at either end: both are known, absent, up to where all is complete."""
    context, times = request.context, time_range_of(request)
    within_reach(context, cluster_id, group_id, **{"from": times[0], "to": times[1]})
    cluster = context.store.current.clusters.get(cluster_id)
    return _ends(context, times, _reached_ms(cluster, group_id) if cluster is not None else None)


def _ends(context: RequestContext, times: tuple[int | None, int | None], reached_ms: int | None) -> tuple[int, int]:
    from_ms, to_ms = times
    if to_ms is None:
        to_ms = max(context.store.now_ms() if reached_ms is None else reached_ms, from_ms or 0)
    if from_ms is None:
        from_ms = max(0, to_ms - SPAN_MS)
    return bounded(context, from_ms, to_ms)
