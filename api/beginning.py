"""A first view of tables that are there: what `api.store` does once, and again when the tables were made anew.

`progress` first, added up: its highest batch is the one to trust. Then all other tables up to it, in pieces, batch
after batch, each folded into a view that nobody sees yet, because none of the rows is needed afterwards: the rows of
an hour took more memory than all that is kept of them. At the end each table is followed from that batch on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from api.errors import ApiError
from api.files.follower import Follower
from api.files.pieces import ROWS_AT_ONCE, Span, ends
from api.present.current import Current
from api.present.folding import after
from api.settings import ApiSettings
from kardia.lag.book import REPEAT_MS

LAG_LOOKBACK_MS = REPEAT_MS + 900_000
"""A partition whose lag does not change is written once an hour, and a little later where many wait."""

Rows = dict[str, list[Any]]
"""Rows by table."""

Each = Callable[[Sequence[str], Callable[[str, Follower], object]], dict[str, ApiError]]
"""Does something with the followers of tables, and says what is wrong with which table."""


class Begun(NamedTuple):
    """A view up to the trusted batch; None without a `progress` that can be read."""

    view: Current | None
    trusted: int
    names: tuple[str, ...]
    """Tables that it has."""
    troubles: dict[str, ApiError]


def begun(each: Each, names: Sequence[str], settings: ApiSettings, shown: Callable[[Rows], Rows]) -> Begun:
    """Make it of `progress` and the tables of these names, of rows that are to be `shown`."""
    all_names = ("progress", *names)
    each(all_names, lambda _name, follower: follower.restart())
    troubles = each(all_names, lambda _name, follower: follower.reader.refresh())
    ledger: list[Any] = []
    if "progress" not in troubles:
        troubles |= each(("progress",), lambda _name, follower: _follow(follower, ledger))
    if "progress" in troubles:
        return Begun(None, -1, (), troubles)
    trusted = max((row.batch_id for row in ledger), default=-1)
    since_ms = {name: oldest_ms(settings, name, ledger) for name in names}
    there = [name for name in names if name not in troubles]
    while True:
        # What is there of a table that was read in part would be counted twice: then it is left out from the beginning.
        view = after(Current(settings), shown({"progress": ledger}), trusted)
        view, failed = _with_past(view, each, there, since_ms, shown)
        if not failed:
            break
        troubles |= failed
        there = [name for name in there if name not in failed]
    troubles |= each(there, lambda _name, follower: follower.look(trusted))
    pa.default_memory_pool().release_unused()
    return Begun(view, trusted, ("progress", *there), troubles)


def oldest_ms(settings: ApiSettings, name: str, ledger: Iterable[Any]) -> dict[str, int] | None:
    """By cluster: older rows of health and of lag are history, whoever is present has been written since. Counted
    from the source of the cluster that is furthest behind: its members were sampled last when it was read last."""
    back_ms = {"health": settings.health_lookback_ms, "lag": LAG_LOOKBACK_MS}.get(name)
    if back_ms is None:
        return None
    reached: dict[str, dict[tuple[int, str], int]] = {}
    for row in ledger:
        sources = reached.setdefault(row.cluster_id, {})
        place = (row.lane, row.source)
        sources[place] = max(row.complete_to_ms, sources.get(place, 0))
    oldest: dict[str, int] = {}
    for cluster_id, sources in reached.items():
        live_ms = max(sources.values()) - settings.source_retired_ms
        behind_ms = min(at_ms for at_ms in sources.values() if at_ms >= live_ms)
        oldest[cluster_id] = behind_ms - back_ms
    return oldest


def _follow(follower: Follower, ledger: list[Any]) -> None:
    """Read `progress` and follow it from there: whatever comes later is seen to have come."""
    follower.look(-1)
    ledger += follower.waiting


def _with_past(
    view: Current,
    each: Each,
    names: Sequence[str],
    since_ms: Mapping[str, dict[str, int] | None],
    shown: Callable[[Rows], Rows],
) -> tuple[Current, dict[str, ApiError]]:
    """A view with the rows up to its batch, taken in in pieces; what was wrong with which table, after which it has no
    more of any."""
    spans: list[Span] = []
    failed = each(names, lambda name, follower: spans.extend(follower.spans(since_ms[name])))
    for above, end in pairwise([-1, *ends(spans, view.batch_id, ROWS_AT_ONCE)]):
        rows: Rows = {}
        failed = failed or each(names, partial(_take, rows, above, end, since_ms))
        if failed:
            break
        view = after(view, shown(rows), view.batch_id)
    return view, failed


def _take(
    rows: Rows, above: int, end: int, since_ms: Mapping[str, dict[str, int] | None], name: str, follower: Follower
) -> None:
    rows[name] = follower.past(above, end, since_ms[name])
