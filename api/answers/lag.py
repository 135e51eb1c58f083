"""Lag of groups as answers: in records and in time, Burrow's status, and why. Pure; the instant is given.

A row says since when something waits that the group has not read, so time lag grows here without a row being written.
Lag is as of the last look at the ends (`as_of`), or of before it where more had changed than a lane writes at once;
when the last look is long ago (`lag_stale_after_ms`) nothing is known: null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from api.access.ids import to_segment
from api.answers import as_dicts
from api.present import deadlines
from api.present.current import ClusterView, GroupView
from api.present.freshness import Freshness
from api.present.lagging import LagView
from kardia.instants import to_rfc3339
from kardia.lag.commits import ERR, OK, WARN
from kardia.story import lagging
from kardia.story.lagging import Around, Behind, Stuck

NOT_KNOWN = "UNKNOWN"
"""Status where lag is not known."""

SEVERITY = {word: rank for rank, word in enumerate((OK, NOT_KNOWN, WARN, "STOP", "STALL", "REWIND"))}
"""Statuses of partitions, the worst last."""

STATUSES = (OK, NOT_KNOWN, WARN, ERR)
"""Statuses of groups, the worst last: STOP, STALL and REWIND are ERR there, as in Burrow."""

MEMBERLESS = ("Empty", "Dead")


class Known(NamedTuple):
    """How far lag is known."""

    as_of_ms: int | None
    """What is said of lag held then."""
    stale: bool
    """Whether the last look at the ends is too long ago for anything to be said of now."""

    def as_answer(self) -> dict[str, Any]:
        """The `known` object of an answer."""
        return {"as_of_ms": self.as_of_ms, "as_of": to_rfc3339(self.as_of_ms), "stale": self.stale}


def known(cluster: ClusterView, freshness: Freshness, stale_after_ms: int) -> Known:
    """How far lag of a cluster is known at the instant of the answer."""
    looked_ms = cluster.lags.looked_ms
    return Known(cluster.lags.as_of_ms, looked_ms is None or freshness.now_ms - looked_ms > stale_after_ms)


def lag_of(row: Any, as_of: Known) -> int | None:
    """Records of one partition that its group has not read; None where that is not known."""
    return None if as_of.stale or row.lag is None else int(row.lag)


def lag_most(row: Any, as_of: Known) -> int | None:
    """How many they are at most; None where that is not known: its commit is of after the end was asked for, by when
    more may have come."""
    committed_at_ms, looked_at_ms = row.committed_at_ms, row.looked_at_ms
    is_later = None not in (committed_at_ms, looked_at_ms) and committed_at_ms > looked_at_ms
    return None if is_later else lag_of(row, as_of)


def as_of_ms(row: Any, as_of: Known) -> int | None:
    """When what a row says held: a row that was written since the last look of every lane is younger than that."""
    return None if as_of.as_of_ms is None else max(as_of.as_of_ms, row.at_ms)


def time_lag(row: Any, as_of: Known) -> tuple[int | None, int | None, int | None]:
    """For how long the first record that it has not read has waited, milliseconds: (at least, as interpolated, at
    most); each None where it is not known, and all 0 where nothing waits."""
    lag, now_ms = lag_of(row, as_of), as_of_ms(row, as_of)
    if lag is None or now_ms is None:
        return None, None, None
    if lag == 0:
        return 0, 0, 0

    def since(at_ms: int | None) -> int | None:
        return None if at_ms is None else max(0, now_ms - at_ms)

    return since(row.behind_to_ms), since(row.behind_at_ms), since(row.behind_from_ms)


def status(row: Any, as_of: Known) -> str:
    """Burrow's status of a partition, UNKNOWN where lag is not known. Whatever changes it is written at once."""
    return NOT_KNOWN if lag_of(row, as_of) is None else str(row.verdict)


def of_group(statuses: Iterable[str]) -> str:
    """Status of a group by those of its partitions."""
    worst = max(statuses, key=SEVERITY.__getitem__, default=NOT_KNOWN)
    return worst if worst in STATUSES else ERR


def status_of(view: LagView, as_of: Known) -> str:
    """Status of a group."""
    return of_group(NOT_KNOWN if as_of.stale or verdict is None else verdict for verdict in view.verdicts)


def lag_href(cluster_id: str, group_id: str) -> str:
    """URL path of the lag of a group."""
    return f"{as_dicts.group_href(cluster_id, group_id)}/lag"


def partition(cluster: ClusterView, row: Any, as_of: Known, reason: str | None) -> dict[str, Any]:
    """One partition."""
    least_ms, at_ms, most_ms = time_lag(row, as_of)
    return {
        "href": f"{lag_href(cluster.cluster_id, row.group_id)}/history"
        f"?topic={to_segment(row.topic)}&partition={row.partition}",
        **as_dicts.columns("lag", row),
        "as_of_ms": as_of_ms(row, as_of),
        "lag": lag_of(row, as_of),
        "lag_most": lag_most(row, as_of),
        "time_lag_ms": at_ms,
        "time_lag_least_ms": least_ms,
        "time_lag_most_ms": most_ms,
        "deleted_unread": None
        if row.state != "below_start" or as_of.stale or None in (row.start_offset, row.committed_offset)
        else max(0, row.start_offset - row.committed_offset),
        "status": status(row, as_of),
        "reason": reason,
    }


def _behind(row: Any, as_of: Known) -> Behind | None:
    lag = lag_of(row, as_of)
    if not lag:
        return None
    window_ms = None if row.window_from_ms is None else max(0, row.at_ms - row.window_from_ms)
    return Behind(
        row.topic,
        row.partition,
        status(row, as_of),
        row.held,
        row.member_id,
        None if row.behind_to_ms is None else max(0, row.at_ms - row.behind_to_ms),
        window_ms,
        row.window_produced,
        row.window_read,
    )


def around(view: GroupView | None, freshness: Freshness) -> Around:
    """What is known of a group beside its offsets."""
    if view is None or freshness.stale:
        return Around(None, None, ())
    if view.state_name in MEMBERLESS:
        return Around(0, None, ())
    since_ms = view.rebalancing_since_ms
    return Around(
        len(view.lives) or None,
        None if since_ms is None else max(0, freshness.now_ms - since_ms),
        tuple(_stuck(view)),
    )


def _stuck(view: GroupView) -> Iterable[Stuck]:
    """Members that heartbeat and do not poll: past their poll deadline, predicted to pass it, or seen to take nothing
    of what is there for them."""
    zombies = {row.member_id for row in deadlines.zombies(view)}
    for member_id, row in sorted(view.health.items()):
        if member_id in zombies or row.polling == "stalled" or (member_id, "poll") in view.predictions:
            yield Stuck(member_id, row.client_id or "", row.last_poll_at_ms)


def total(cluster: ClusterView, lag: LagView, as_of: Known, freshness: Freshness) -> dict[str, Any]:
    """A group: sums, the worst, and why it falls behind."""
    rows = list(lag.rows.values())
    known_lags = [found for row in rows if (found := lag_of(row, as_of)) is not None]
    times = [time_lag(row, as_of) for row in rows]
    view = cluster.groups.get(lag.group_id)
    return {
        "href": lag_href(cluster.cluster_id, lag.group_id),
        "cluster_id": cluster.cluster_id,
        "group_id": lag.group_id,
        "status": status_of(lag, as_of),
        "partitions": len(rows),
        "partitions_known": len(known_lags),
        "partitions_behind": sum(found > 0 for found in known_lags),
        "lag": sum(known_lags) if known_lags else None,
        "lag_most": _sum_most(rows, as_of) if known_lags else None,
        "lag_max": max(known_lags, default=None),
        "time_lag_ms": _most(time for _, time, _ in times),
        "time_lag_least_ms": _most(time for time, _, _ in times),
        "members": around(view, freshness).members,
        "why": reasons(cluster, lag, as_of, freshness)[0],
    }


def _sum_most(rows: Iterable[Any], as_of: Known) -> int | None:
    most = [lag_most(row, as_of) for row in rows if lag_of(row, as_of) is not None]
    return None if None in most else sum(count for count in most if count is not None)


def _most(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)


def reasons(
    cluster: ClusterView, lag: LagView, as_of: Known, freshness: Freshness
) -> tuple[list[dict[str, Any]], dict[tuple[str, int], str]]:
    """Why a group falls behind: each reason with its sentence and how many partitions have it, the one with most lag
    first; and the reason of each partition."""
    about = around(cluster.groups.get(lag.group_id), freshness)
    found: dict[str, list[tuple[int, Behind]]] = {}
    by_place: dict[tuple[str, int], str] = {}
    for place, row in lag.rows.items():
        behind = _behind(row, as_of)
        reason = None if behind is None else lagging.why(behind, about)
        if behind is not None and reason is not None:
            found.setdefault(reason, []).append((int(row.lag), behind))
            by_place[place] = reason
    told = []
    for reason, ones in sorted(found.items(), key=lambda one: -sum(lag for lag, _ in one[1])):
        ones.sort(key=lambda one: (-one[0], one[1].topic, one[1].partition))
        partitions = [behind for _, behind in ones]
        text = lagging.sentence(reason, partitions, about)
        told.append({"reason": reason, "partitions": len(partitions), "text": text})
    return told, by_place


def ranked(rows: Iterable[Any], as_of: Known) -> list[Any]:
    """Rows, those in trouble first, then the farthest behind."""
    return sorted(
        rows,
        key=lambda row: (-SEVERITY[status(row, as_of)], -(lag_of(row, as_of) or 0), row.topic, row.partition),
    )
