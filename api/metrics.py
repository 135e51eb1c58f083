"""Series for Prometheus, computed from the current view when they are asked for.

Nothing here is counted twice or kept: gauges and counters of the tables are read off the view, so a scrape costs what
the present groups cost and never what history costs. No member, client or host becomes a label. Group names do, which
strangers choose: `metrics_groups_max` bounds how many, `kardia_groups_without_series` says how many have none, and the
series of the cluster always count all of them. Names: prometheus.io/docs/practices/naming.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from hashlib import blake2b

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api import answers, deadlines
from api.current import EVICTION_CAUSES, STATES, ClusterView, GroupView
from api.freshness import LEDGER
from api.store import Store
from kardia import __version__
from kardia.tables import OUTCOMES, PREDICTION_KINDS, STATUSES, TRIGGERS

PRESENT_STATUSES = tuple(status for status in STATUSES if status != "ended")


class RequestMetrics:
    """Counts of the HTTP side. Labels come from closed sets: method, route template, status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "kardia_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "kardia_http_request_duration_seconds",
            "Time to answer a request.",
            ("route",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one finished request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)


class TableMetrics(Collector):
    """Everything the tables say, as series."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """All families; called by each scrape, between two folds."""
        clusters = [view for _, view in sorted(self._store.current.clusters.items())]
        shown = {view.cluster_id: self._shown(view) for view in clusters}
        yield from self._service(clusters)
        for view_families in (self._cluster_families, self._group_families):
            yield from view_families(clusters, shown)

    def _shown(self, cluster: ClusterView) -> list[GroupView]:
        """Groups that get series of their own: those in trouble first, then by name, up to the cap."""
        limit = self._store.settings.metrics_groups_max
        ranked = sorted(
            cluster.groups.values(),
            key=lambda view: (-answers.BADNESS.get(answers.worst(view.statuses()) or "ended", 0), view.group_id),
        )
        return sorted(ranked[:limit], key=lambda view: view.group_id)

    def _service(self, clusters: list[ClusterView]) -> Iterator[Metric]:
        build = GaugeMetricFamily("kardia_build_info", "What is running.", labels=("version",))
        build.add_metric((__version__,), 1)
        yield build
        waiting = GaugeMetricFamily("kardia_table_available", "1 if the table can be read.", labels=("table",))
        for name in self._store.readers:
            waiting.add_metric((name,), 0 if self._store.troubles(name) else 1)
        yield waiting
        batch = GaugeMetricFamily("kardia_batch_id", "The batch that answers rest on; -1 before the first.")
        batch.add_metric((), self._store.current.batch_id)
        yield batch
        reached = GaugeMetricFamily(
            "kardia_complete_as_of_seconds", "Instant up to which everything is in the tables.", labels=("cluster",)
        )
        age = GaugeMetricFamily(
            "kardia_feed_age_seconds", "Wall clock minus kardia_complete_as_of_seconds.", labels=("cluster",)
        )
        stale = GaugeMetricFamily("kardia_feed_stale", "1 if the age is beyond the bound.", labels=("cluster",))
        ledger = CounterMetricFamily(
            "kardia_ledger", "What was counted on the way into the tables.", labels=("cluster", "what")
        )
        for cluster in clusters:
            freshness, labels = self._store.freshness(cluster), (cluster.cluster_id,)
            if freshness.complete_as_of_ms is not None and freshness.age_ms is not None:
                reached.add_metric(labels, freshness.complete_as_of_ms / 1000)
                age.add_metric(labels, freshness.age_ms / 1000)
            stale.add_metric(labels, freshness.stale)
            for what in LEDGER:
                ledger.add_metric((*labels, what), cluster.reach.ledger[what])
        yield from (reached, age, stale, ledger)

    def _cluster_families(self, clusters: list[ClusterView], shown: dict[str, list[GroupView]]) -> Iterator[Metric]:
        groups = GaugeMetricFamily("kardia_groups", "Groups by state.", labels=("cluster", "state"))
        members = GaugeMetricFamily("kardia_members", "Present members by status.", labels=("cluster", "status"))
        imminent = GaugeMetricFamily(
            "kardia_timeout_imminent_members", "Members with an open prediction.", labels=("cluster", "kind")
        )
        without = GaugeMetricFamily(
            "kardia_groups_without_series", "Groups beyond the cap on group labels.", labels=("cluster",)
        )
        rebalances = CounterMetricFamily("kardia_rebalances", "Completed rebalances.", labels=("cluster", "trigger"))
        evictions = CounterMetricFamily("kardia_evictions", "Memberships taken away.", labels=("cluster", "cause"))
        predictions = CounterMetricFamily(
            "kardia_predictions", "Predicted timeouts whose outcome is known.", labels=("cluster", "kind", "outcome")
        )
        for cluster in clusters:
            name, views = cluster.cluster_id, cluster.groups.values()
            states = Tally(state_label(view) for view in views)
            statuses: Tally[str] = Tally()
            for view in views:
                statuses.update(view.statuses())
            kinds = Tally(kind for view in views for _, kind in view.predictions)
            for state in STATES:
                groups.add_metric((name, state), states[state])
            for status in PRESENT_STATUSES:
                members.add_metric((name, status), statuses[status])
            for kind in PREDICTION_KINDS:
                imminent.add_metric((name, kind), kinds[kind])
                for outcome in OUTCOMES:
                    if outcome != "open":
                        predictions.add_metric((name, kind, outcome), cluster.predictions[kind, outcome])
            without.add_metric((name,), len(cluster.groups) - len(shown[name]))
            for trigger in TRIGGERS:
                rebalances.add_metric((name, trigger), cluster.rebalances[trigger])
            for cause in EVICTION_CAUSES:
                evictions.add_metric((name, cause), cluster.evictions[cause])
        yield from (groups, members, imminent, without, rebalances, evictions, predictions)

    def _group_families(self, clusters: list[ClusterView], shown: dict[str, list[GroupView]]) -> Iterator[Metric]:
        of_group = ("cluster", "group")
        members = GaugeMetricFamily(
            "kardia_group_members", "Present members of a group by status.", labels=(*of_group, "status")
        )
        state = GaugeMetricFamily("kardia_group_state", "1 for the state a group is in.", labels=(*of_group, "state"))
        generation = GaugeMetricFamily("kardia_group_generation", "Generation of a group.", labels=of_group)
        session = GaugeMetricFamily(
            "kardia_group_session_headroom_min_ratio",
            "Least part of a session timeout that was left when a member was last written.",
            labels=of_group,
        )
        poll = GaugeMetricFamily(
            "kardia_group_poll_headroom_min_ratio",
            "Least part of a poll timeout that was left when a member was last written.",
            labels=of_group,
        )
        imminent = {
            kind: GaugeMetricFamily(
                f"kardia_group_{kind}_timeout_imminent_members",
                f"Members of a group with an open prediction of a {kind} timeout.",
                labels=of_group,
            )
            for kind in PREDICTION_KINDS
        }
        running = GaugeMetricFamily(
            "kardia_group_rebalance_running_seconds", "Age of a running rebalance, 0 if there is none.", labels=of_group
        )
        rebalances = CounterMetricFamily(
            "kardia_group_rebalances", "Completed rebalances of a group.", labels=(*of_group, "trigger")
        )
        evictions = CounterMetricFamily(
            "kardia_group_evictions", "Memberships of a group taken away.", labels=(*of_group, "cause")
        )
        for cluster in clusters:
            freshness = self._store.freshness(cluster)
            for view in shown[cluster.cluster_id]:
                labels = (cluster.cluster_id, self._label(view.group_id))
                statuses, health = view.statuses(), view.health.values()
                for status in PRESENT_STATUSES:
                    members.add_metric((*labels, status), statuses[status])
                for name in STATES:
                    state.add_metric((*labels, name), name == state_label(view))
                if (generation_id := answers.generation(view)) is not None:
                    generation.add_metric(labels, generation_id)
                _add_known(session, labels, deadlines.least(map(deadlines.session_headroom, health)))
                _add_known(poll, labels, deadlines.least(map(deadlines.poll_headroom, health)))
                kinds = Tally(kind for _, kind in view.predictions)
                for kind, family in imminent.items():
                    family.add_metric(labels, kinds[kind])
                latest = view.rebalance
                is_running = latest is not None and latest.completed_at_ms is None and not freshness.stale
                running.add_metric(labels, max(0, freshness.now_ms - latest.started_at_ms) / 1000 if is_running else 0)
                # From zero on: a counter that appears with its first event has no increase for it.
                for trigger in TRIGGERS:
                    rebalances.add_metric((*labels, trigger), view.rebalances[trigger])
                for cause in EVICTION_CAUSES:
                    evictions.add_metric((*labels, cause), view.evictions[cause])
        yield from (members, state, generation, session, poll, *imminent.values(), running, rebalances, evictions)

    def _label(self, group_id: str) -> str:
        """A group as a label: as it is, unless it is too long."""
        longest = self._store.settings.metrics_label_chars_max
        if len(group_id) <= longest:
            return group_id
        digest = blake2b(group_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return f"{group_id[: longest - 13]}~{digest}"


def state_label(view: GroupView) -> str:
    """State of a group as a label of the closed list."""
    return view.state_name if view.state_name in STATES else "Unknown"


def _add_known(family: GaugeMetricFamily, labels: tuple[str, ...], value: float | None) -> None:
    if value is not None:
        family.add_metric(labels, value)
