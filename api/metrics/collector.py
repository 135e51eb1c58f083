"""What a scrape gets: chooses the groups that have series of their own and puts the families together."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api.metrics import clusters, groups, lag, members, service
from api.metrics.births import Births
from api.metrics.totals import Totals, counted, worst
from api.present.current import Current
from api.store import Store


class TableMetrics(Collector):
    """Everything the tables say, as series."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._births = Births(store.settings)
        self._member_series_dropped: dict[str, int] = {}
        self._counted: tuple[Current, dict[str, Totals]] | None = None

    def count(self) -> Iterator[None]:
        """Count what is shown at present for the next `collect`, in pieces; whoever leaves it out has it there."""
        current, totals = self._store.current, {}
        for cluster_id, cluster in current.clusters.items():
            totals[cluster_id] = yield from counted(cluster)
        self._counted = current, totals

    def collect(self) -> Iterator[Metric]:
        """All families; called by each scrape, in a thread: a view that is shown does not change."""
        if self._counted is None:
            for _ in self.count():
                pass
        assert self._counted is not None  # noqa: S101 - just counted
        (current, totals), self._counted = self._counted, None
        store, limit = self._store, self._store.settings.metrics_groups_max
        views = [view for _, view in sorted(current.clusters.items())]
        shown = {view.cluster_id: worst(view, totals[view.cluster_id], limit) for view in views}
        is_read = store.looked_at_ms is not None and not store.troubles("progress")
        told = self._births.counted(views, shown, is_read=is_read)
        yield from service.families(store, views, told.clusters)
        lengths = {view.cluster_id: len(shown[view.cluster_id]) for view in views}
        yield from clusters.families(views, told.clusters, totals, lengths)
        yield from groups.families(store, views, shown, told.groups)
        yield from lag.families(store, views)
        if store.settings.metrics_members_max:
            yield from members.families(store.settings, views, self._member_series_dropped)
