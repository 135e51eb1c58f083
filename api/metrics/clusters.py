"""The cluster as a whole: all its groups are counted here, with or without series of their own.

Scores of predictions are over everything the view has counted: precision is the part of the predictions with a clear
outcome that came true, recall the part of the timeouts that struck which had been predicted. A score that has nothing
to score has no sample. `unknown` outcomes count for neither: the evidence went missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from api.metrics.totals import Totals
from api.present.current import STATES, ClusterView
from api.present.distribution import Distribution
from api.present.health import HEADROOM_OF
from api.present.member_counts import THRESHOLDS
from kardia.certainty import CERTAINTIES
from kardia.statuses import SHOWN
from kardia.tables import EVICTION_CAUSES, OUTCOMES, PREDICTION_KINDS, TRIGGERS

PRESENT_STATUSES = tuple(status for status in SHOWN if status != "ended")
"""A member is in one of them, as it is shown: `unseen`, and not overdue, where it may wait in a JoinGroup."""

STRIKES = {"session": "session_expired", "poll": "poll_timeout", "rebalance": "rebalance_timeout"}
"""Kind of a prediction -> the end cause that it foretells."""

OF_CLUSTER = ("cluster",)


def families(
    clusters: list[ClusterView], counted: list[ClusterView], totals: Mapping[str, Totals], shown: Mapping[str, int]
) -> Iterator[Metric]:
    """Series of clusters; `shown` says how many groups of each have series of their own. Counters are read off
    `counted`."""
    yield from _present(clusters, totals, shown)
    yield from _counted(counted)
    yield from _scores(counted)
    yield from _quantiles(clusters)


def _present(clusters: list[ClusterView], totals: Mapping[str, Totals], shown: Mapping[str, int]) -> Iterator[Metric]:
    groups = GaugeMetricFamily("kardia_groups", "Groups by state.", labels=("cluster", "state"))
    members = GaugeMetricFamily(
        "kardia_members", "Present members by state of health, as it is shown.", labels=("cluster", "state")
    )
    sure = GaugeMetricFamily(
        "kardia_members_by_certainty",
        "Present members by how sure it is what is said of their health.",
        labels=("cluster", "certainty"),
    )
    low = GaugeMetricFamily(
        "kardia_members_below_headroom",
        "Members with less than this part of a timeout left when they were last written.",
        labels=("cluster", "kind", "threshold"),
    )
    imminent = GaugeMetricFamily(
        "kardia_timeout_imminent_members",
        "Members with an open prediction.",
        labels=("cluster", "kind"),
    )
    danger = GaugeMetricFamily(
        "kardia_members_in_danger",
        "Members that lose their membership, or hold a rebalance up, unless something comes of them.",
        labels=OF_CLUSTER,
    )
    without = GaugeMetricFamily(
        "kardia_groups_without_series", "Groups beyond the cap on group labels.", labels=OF_CLUSTER
    )
    for cluster in clusters:
        name, total = cluster.cluster_id, totals[cluster.cluster_id]
        for state in STATES:
            groups.add_metric((name, state), total.states[state])
        for status in PRESENT_STATUSES:
            members.add_metric((name, status), total.shown[status])
        for certainty in CERTAINTIES:
            sure.add_metric((name, certainty), total.certainties[certainty])
        for kind in HEADROOM_OF:
            for threshold in THRESHOLDS:
                low.add_metric((name, kind, str(threshold)), total.low[kind, threshold])
        for kind in PREDICTION_KINDS:
            imminent.add_metric((name, kind), total.endangered[kind])
        danger.add_metric((name,), total.in_danger)
        without.add_metric((name,), len(cluster.groups) - shown[name])
    yield from (groups, members, sure, low, imminent, danger, without)


def _counted(clusters: list[ClusterView]) -> Iterator[Metric]:
    rebalances = CounterMetricFamily(
        "kardia_cluster_rebalances", "Completed rebalances of all groups.", labels=("cluster", "trigger")
    )
    evictions = CounterMetricFamily(
        "kardia_cluster_evictions", "Memberships of all groups taken away.", labels=("cluster", "cause")
    )
    lasted = HistogramMetricFamily(
        "kardia_rebalance_duration_seconds",
        "From the start of a rebalance to its assignment; empty ones at once.",
        labels=OF_CLUSTER,
    )
    known_after = HistogramMetricFamily(
        "kardia_eviction_known_after_seconds",
        "From an eviction to the evidence that settled it, on the broker's clock.",
        labels=OF_CLUSTER,
    )
    for cluster in clusters:
        labels = (cluster.cluster_id,)
        for trigger in TRIGGERS:
            rebalances.add_metric((*labels, trigger), cluster.rebalances[trigger])
        for cause in EVICTION_CAUSES:
            evictions.add_metric((*labels, cause), cluster.evictions[cause])
        _add(lasted, labels, cluster.rebalance_ms)
        _add(known_after, labels, cluster.eviction_known_after_ms)
    yield from (rebalances, evictions, lasted, known_after)


def _scores(clusters: list[ClusterView]) -> Iterator[Metric]:
    of_kind = ("cluster", "kind")
    outcomes = CounterMetricFamily(
        "kardia_predictions", "Predicted timeouts whose outcome is known.", labels=(*of_kind, "outcome")
    )
    precision = GaugeMetricFamily(
        "kardia_prediction_precision_ratio", "Part of the predictions that came true.", labels=of_kind
    )
    recall = GaugeMetricFamily(
        "kardia_prediction_recall_ratio", "Part of the timeouts that struck and had been predicted.", labels=of_kind
    )
    lead = HistogramMetricFamily(
        "kardia_prediction_lead_seconds", "From a prediction that came true to its timeout.", labels=of_kind
    )
    for cluster in clusters:
        for kind in PREDICTION_KINDS:
            labels = (cluster.cluster_id, kind)
            for outcome in OUTCOMES:
                if outcome != "open":
                    outcomes.add_metric((*labels, outcome), cluster.predictions[kind, outcome])
            came_true, averted = cluster.predictions[kind, "came_true"], cluster.predictions[kind, "averted"]
            if came_true + averted:
                precision.add_metric(labels, came_true / (came_true + averted))
            # Both are counted from rows of their own: an eviction may be in the tables a batch before its prediction.
            struck = max(cluster.evictions[STRIKES[kind]], came_true)
            if struck:
                recall.add_metric(labels, came_true / struck)
            _add(lead, labels, cluster.lead_ms[kind])
    yield from (outcomes, precision, recall, lead)


QUANTILES = (0.5, 0.95)
"""Half of them, and all but the slowest."""


def _quantiles(clusters: list[ClusterView]) -> Iterator[Metric]:
    """Quantiles of the durations themselves, of the last hour that was read: those of a histogram are edges of its
    buckets. No sample where there was nothing."""
    lasted = GaugeMetricFamily(
        "kardia_rebalance_duration_quantile_seconds",
        "How long the rebalances of the last hour took, this part of them at most.",
        labels=(*OF_CLUSTER, "quantile"),
    )
    known_after = GaugeMetricFamily(
        "kardia_eviction_known_after_quantile_seconds",
        "From an eviction of the last hour to its evidence, for this part of them at most.",
        labels=(*OF_CLUSTER, "quantile"),
    )
    lead = GaugeMetricFamily(
        "kardia_prediction_lead_quantile_seconds",
        "From a prediction of the last hour that came true to its timeout, for this part of them at most.",
        labels=("cluster", "kind", "quantile"),
    )
    for cluster in clusters:
        now_ms = cluster.reach.newest_ms or 0
        found = [(lasted, (), cluster.rebalance_ms), (known_after, (), cluster.eviction_known_after_ms)]
        of_kinds = [(lead, (kind,), cluster.lead_ms[kind]) for kind in PREDICTION_KINDS]
        for family, labels, durations in (*found, *of_kinds):
            for share in QUANTILES:
                duration_ms = durations.quantile_ms(share, now_ms)
                if duration_ms is not None:
                    family.add_metric((cluster.cluster_id, *labels, str(share)), duration_ms / 1000)
    yield from (lasted, known_after, lead)


def _add(family: HistogramMetricFamily, labels: tuple[str, ...], found: Distribution) -> None:
    family.add_metric(labels, found.buckets(), found.sum_ms / 1000)
