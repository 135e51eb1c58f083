"""The first samples of a new counter: the count before, so that Prometheus sees it grow.

`increase()` knows nothing of a counter before its first sample. A group whose first rebalance is in the batch that it
is first heard of with would begin at 1, and so would one that gets its series, in trouble, long after it began. So a
series begins with the count of the scrape before, which is 0 of a group that did not exist then, and keeps it for two
scrapes: two Prometheus servers with one interval come in turn, and each is to see the beginning. What was in the tables
when the program began to read them is told as it is: those counters go on from an earlier run of this program.

Only counts are kept from scrape to scrape. A view that was kept whole is all that is left of its batch by the next
scrape, and to free a hundred thousand rows in one go makes every request wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from api.background_work import resting
from api.present.current import ClusterView, GroupView
from api.settings import ApiSettings


class GroupCounts(NamedTuple):
    """What is counted of a group; those of a view that is shown do not change any more."""

    group_id: str
    rebalances: Counter[str]
    evictions: Counter[str]
    fenced: int
    member_seconds_lost: int


Counts = TypeVar("Counts", ClusterView, GroupCounts)


class Held(NamedTuple):
    """A series that is new: in how many more scrapes it tells its beginning."""

    scrapes: int
    counts: ClusterView | GroupCounts


class Counted(NamedTuple):
    """What counters are read off; gauges are read off the current views."""

    clusters: list[ClusterView]
    """Without their groups."""
    groups: dict[str, list[GroupCounts]]


class Births:
    """Remembers from scrape to scrape what was told. Bounded by what has series: clusters, and groups up to the cap."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings
        self._before: Mapping[str, tuple[ClusterView, dict[str, GroupCounts]]] | None = None
        """Clusters, and groups of them of which something had been counted, at the scrape before; None before the
        tables were read."""
        self._told: set[Hashable] = set()
        self._held: dict[Hashable, Held] = {}

    def counted(
        self, clusters: Sequence[ClusterView], shown: Mapping[str, Sequence[GroupView]], *, is_read: bool
    ) -> Counted:
        """What the counters of a scrape are read off. `is_read`: whether the tables have been looked into."""
        first, before = self._before is None, self._before or {}
        scrapes, told = self._settings.metrics_newborn_scrapes, set[Hashable]()
        found = Counted([], {})
        alone = {cluster.cluster_id: cluster.without_groups() for cluster in clusters}
        for cluster in clusters:
            name = cluster.cluster_id
            was, was_of_groups = before.get(name) or (ClusterView(name, self._settings), {})
            if not first and name not in self._told:
                self._held[name] = Held(scrapes, was)
            found.clusters.append(self._as_told(name, alone[name]))
            for view in shown[name]:
                key: Hashable = (name, view.group_id)
                if not first and key not in self._told:
                    self._held[key] = Held(scrapes, was_of_groups.get(view.group_id) or _nothing(view.group_id))
            told |= {name, *((name, view.group_id) for view in shown[name])}
            found.groups[name] = [self._as_told((name, view.group_id), _counts(view)) for view in shown[name]]
        for key in self._held.keys() - told:
            del self._held[key]
        self._told = told
        if is_read:
            self._before = {
                cluster.cluster_id: (
                    alone[cluster.cluster_id],
                    {view.group_id: _counts(view) for view in resting(cluster.groups.values()) if _has_counted(view)},
                )
                for cluster in clusters
            }
        return found

    def _as_told(self, key: Hashable, counts: Counts) -> Counts:
        """The counts, or what a new series still tells."""
        held = self._held.get(key)
        if held is None or not held.scrapes:
            self._held.pop(key, None)
            return counts
        self._held[key] = held._replace(scrapes=held.scrapes - 1)
        assert isinstance(held.counts, type(counts)), "a key is of one kind"  # noqa: S101 - a broken promise of ours
        return held.counts


def _counts(view: GroupView) -> GroupCounts:
    return GroupCounts(view.group_id, view.rebalances, view.evictions, view.fenced, view.member_seconds_lost)


def _has_counted(view: GroupView) -> bool:
    return bool(view.rebalances or view.evictions or view.fenced)


def _nothing(group_id: str) -> GroupCounts:
    return GroupCounts(group_id, Counter(), Counter(), 0, 0)
