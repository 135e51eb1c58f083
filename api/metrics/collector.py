"""What a scrape gets: chooses the groups that have series of their own and puts the families together."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api.metrics import clusters, groups, lag, members, service
from api.metrics.births import Births
from api.present import present
from api.present.current import ClusterView, GroupView
from api.store import Store
from kardia.statuses import STATUS_SEVERITY


class TableMetrics(Collector):
    """Everything the tables say, as series."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._births = Births(store.settings)
        self._member_series_dropped: dict[str, int] = {}

    def collect(self) -> Iterator[Metric]:
        """All families; called by each scrape, in a thread: a view that is shown does not change."""
        views = [view for _, view in sorted(self._store.current.clusters.items())]
        shown = {view.cluster_id: self._shown(view) for view in views}
        store = self._store
        is_read = store.looked_at_ms is not None and not store.troubles("progress")
        counted = self._births.counted(views, shown, is_read=is_read)
        yield from service.families(store, views, counted.clusters)
        lengths = {view.cluster_id: len(shown[view.cluster_id]) for view in views}
        yield from clusters.families(views, counted.clusters, lengths)
        yield from groups.families(store, views, shown, counted.groups)
        yield from lag.families(store, views)
        if self._store.settings.metrics_members_max:
            yield from members.families(self._store.settings, views, self._member_series_dropped)

    def _shown(self, cluster: ClusterView) -> list[GroupView]:
        """Groups that get series of their own: those in trouble first, then by name, up to the cap."""
        limit = self._store.settings.metrics_groups_max
        ranked = sorted(
            cluster.groups.values(),
            key=lambda view: (-STATUS_SEVERITY[present.worst(present.shown_by_status(view)) or "ended"], view.group_id),
        )
        return sorted(ranked[:limit], key=lambda view: view.group_id)
