"""What a scrape gets: chooses the groups that have series of their own and puts the families together."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api.background_work import RestingList, resting
from api.metrics import clusters, groups, lag, members, service
from api.metrics.births import Births
from api.metrics.totals import counted, worst
from api.present.current import ClusterView
from api.store import Store


class TableMetrics(Collector):
    """Everything the tables say, as series."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._births = Births(store.settings)
        self._member_series_dropped: dict[str, int] = {}

    def collect(self) -> Iterator[Metric]:
        """All families; called by each scrape, in a thread: a view that is shown does not change."""
        views = [view for _, view in sorted(self._store.current.clusters.items())]
        groups = [group for view in views for group in view.groups.values()]
        try:
            for family in self._families(views, self._births):
                family.samples = RestingList(family.samples)
                yield family
        finally:
            # Another view may be shown by now, and this one be held by nobody else: it is let go in pieces.
            views.clear()
            for _ in resting(range(len(groups))):
                del groups[-1]

    def describe(self) -> Iterator[Metric]:
        """Names of all families, with nothing in them: a scrape that asks for other names runs nothing here."""
        return self._families([], Births(self._store.settings))

    def _families(self, views: list[ClusterView], births: Births) -> Iterator[Metric]:
        store, limit = self._store, self._store.settings.metrics_groups_max
        totals = {view.cluster_id: counted(view) for view in views}
        shown = {view.cluster_id: worst(view, totals[view.cluster_id], limit) for view in views}
        is_read = store.looked_at_ms is not None and not store.troubles("progress")
        told = births.counted(views, shown, is_read=is_read)
        yield from service.families(store, views, told.clusters)
        lengths = {view.cluster_id: len(shown[view.cluster_id]) for view in views}
        yield from clusters.families(views, told.clusters, totals, lengths)
        yield from groups.families(store, views, shown, told.groups)
        yield from lag.families(store, views)
        if store.settings.metrics_members_max:
            yield from members.families(store.settings, views, self._member_series_dropped)
