"""The service and its feed: what runs, which tables can be read, how far each source has been read, and what was
counted of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from api.present.current import ClusterView
from api.present.freshness import LEDGER
from api.store import FOLLOWED, Store
from kardia import __version__
from kardia.story.surprises import outcomes
from kardia.tables import DISAGREEMENTS


def families(store: Store, clusters: list[ClusterView], counted: list[ClusterView]) -> Iterator[Metric]:
    """Series without a group; counters are read off `counted`, one for each cluster."""
    build = GaugeMetricFamily("kardia_build_info", "What is running.", labels=("version",))
    build.add_metric((__version__,), 1)
    yield build
    waiting = GaugeMetricFamily("kardia_table_available", "1 if the table can be read.", labels=("table",))
    for name in FOLLOWED:
        waiting.add_metric((name,), 0 if store.troubles(name) else 1)
    yield waiting
    batch = GaugeMetricFamily("kardia_batch_id", "The batch that answers rest on; -1 before the first.")
    batch.add_metric((), store.current.batch_id)
    yield batch
    yield from _feed(store, clusters, counted)


def _feed(store: Store, clusters: list[ClusterView], counted: list[ClusterView]) -> Iterator[Metric]:
    of_cluster = ("cluster",)
    reached = GaugeMetricFamily(
        "kardia_complete_as_of_timestamp_seconds", "Instant up to which everything is in the tables.", labels=of_cluster
    )
    age = GaugeMetricFamily(
        "kardia_feed_age_seconds", "Wall clock minus kardia_complete_as_of_timestamp_seconds.", labels=of_cluster
    )
    stale = GaugeMetricFamily("kardia_feed_stale", "1 if the age is beyond the bound.", labels=of_cluster)
    source_age = GaugeMetricFamily(
        "kardia_source_age_seconds",
        "Wall clock minus the instant up to which a source has been read; retired sources have none.",
        labels=("cluster", "source"),
    )
    ledger = CounterMetricFamily(
        "kardia_ledger", "What was counted on the way into the tables.", labels=("cluster", "what")
    )
    disagreements = CounterMetricFamily(
        "kardia_disagreements",
        "Lines of server.log that say otherwise than the requests: of the ledger's divergences these.",
        labels=("cluster", "kind"),
    )
    tested = CounterMetricFamily(
        "kardia_self_test_answers",
        "Answers to classic requests that were put to the model of the brokers' release: predicted, of a group that is "
        "unknown, or a surprise, by its class.",
        labels=("cluster", "outcome"),
    )
    forgotten = CounterMetricFamily(
        "kardia_groups_forgotten",
        "Groups without members that are no longer held in memory; their rows stay in the tables.",
        labels=of_cluster,
    )
    for cluster, told in zip(clusters, counted, strict=True):
        freshness, labels = store.freshness(cluster), (cluster.cluster_id,)
        if freshness.complete_as_of_ms is not None and freshness.age_ms is not None:
            reached.add_metric(labels, freshness.complete_as_of_ms / 1000)
            age.add_metric(labels, freshness.age_ms / 1000)
        stale.add_metric(labels, freshness.stale)
        forgotten.add_metric(labels, cluster.forgotten)
        for source, at_ms in sorted(cluster.reach.live_sources().items()):
            source_age.add_metric((*labels, source), max(0, freshness.now_ms - at_ms) / 1000)
        for what in LEDGER:
            ledger.add_metric((*labels, what), told.reach.ledger[what])
        for kind in DISAGREEMENTS:
            disagreements.add_metric((*labels, kind), told.reach.disagreements[kind])
        for outcome, count in outcomes(told.reach.self_tested).items():
            tested.add_metric((*labels, outcome), count)
    yield from (reached, age, stale, source_age, ledger, disagreements, tested, forgotten)
