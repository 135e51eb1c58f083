"""Each group: its state, the least headroom of its members, what runs and what was counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from api.answers import as_dicts, evidence
from api.background_work import resting
from api.metrics.births import GroupCounts
from api.metrics.clusters import PRESENT_STATUSES
from api.metrics.totals import state_label
from api.present import deadlines, storms
from api.present.current import STATES, ClusterView, GroupView
from api.present.health import HEADROOM_OF, least
from api.present.member_counts import THRESHOLDS
from api.present.shown_status import in_danger
from api.settings import ApiSettings
from api.store import Store
from kardia.tables import EVICTION_CAUSES, PREDICTION_KINDS, TRIGGERS

OF_GROUP = ("cluster", "group")


class Shown(NamedTuple):
    """A group that has series, and its labels."""

    cluster: ClusterView
    view: GroupView
    labels: tuple[str, str]


def label(settings: ApiSettings, value: str) -> str:
    """A name that a stranger chose as a label: as it is, unless it is too long."""
    longest = settings.metrics_label_chars_max
    if len(value) <= longest:
        return value
    digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{value[: longest - 13]}~{digest}"


def families(
    store: Store,
    clusters: list[ClusterView],
    shown: dict[str, list[GroupView]],
    counted: dict[str, list[GroupCounts]],
) -> Iterator[Metric]:
    """Series of groups; counters are read off `counted`, one for each of `shown`."""

    def labels_of(cluster: ClusterView, group_id: str) -> tuple[str, str]:
        return cluster.cluster_id, label(store.settings, group_id)

    found = [
        Shown(cluster, view, labels_of(cluster, view.group_id))
        for cluster in clusters
        for view in shown[cluster.cluster_id]
    ]
    yield from _present(found)
    yield from _deadlines(found)
    yield from _running(store, clusters, shown)
    yield from _counted(
        (labels_of(cluster, counts.group_id), counts) for cluster in clusters for counts in counted[cluster.cluster_id]
    )


def _present(found: list[Shown]) -> Iterator[Metric]:
    members = GaugeMetricFamily(
        "kardia_group_members",
        "Present members of a group by state of health, as it is shown.",
        labels=(*OF_GROUP, "state"),
    )
    zombies = GaugeMetricFamily(
        "kardia_group_zombie_members",
        "Members whose heartbeats go on although they hold a rebalance up or are past their poll deadline.",
        labels=OF_GROUP,
    )
    pending = GaugeMetricFamily(
        "kardia_group_pending_members",
        "Ids handed out to clients that did not come back: a rebalance waits for them.",
        labels=OF_GROUP,
    )
    danger = GaugeMetricFamily(
        "kardia_group_members_in_danger",
        "Members that lose their membership, or hold a rebalance up, unless something comes of them.",
        labels=OF_GROUP,
    )
    state = GaugeMetricFamily("kardia_group_state", "1 for the state a group is in.", labels=(*OF_GROUP, "state"))
    generation = GaugeMetricFamily("kardia_group_generation", "Generation of a group, or its epoch.", labels=OF_GROUP)
    rung = GaugeMetricFamily(
        "kardia_group_evidence_rung",
        "What is read of a group: 1 the admin API, 2 __consumer_offsets, 3 server.log of its broker, 4 both, 5 its "
        "request log, 6 with FETCH or telemetry; 0 nothing now.",
        labels=OF_GROUP,
    )
    for cluster, view, labels in resting(found):
        rung.add_metric(labels, evidence.read_of(cluster, view).rung)
        statuses = view.shown_by_status()
        for status in PRESENT_STATUSES:
            members.add_metric((*labels, status), statuses[status])
        zombies.add_metric(labels, len(deadlines.zombies(view)))
        pending.add_metric(labels, view.pending_members)
        danger.add_metric(labels, in_danger(view))
        for name in STATES:
            state.add_metric((*labels, name), name == state_label(view))
        if (generation_id := as_dicts.generation(view)) is not None:
            generation.add_metric(labels, generation_id)
    yield from (members, zombies, pending, danger, state, generation, rung)


def _deadlines(found: list[Shown]) -> Iterator[Metric]:
    headroom = {
        kind: GaugeMetricFamily(
            f"kardia_group_{kind}_headroom_min_ratio",
            f"Least part of a {kind} timeout that was left when a member was last written.",
            labels=OF_GROUP,
        )
        for kind in HEADROOM_OF
    }
    low = GaugeMetricFamily(
        "kardia_group_members_below_headroom",
        "Members with less than this part of a timeout left when they were last written.",
        labels=(*OF_GROUP, "kind", "threshold"),
    )
    imminent = {
        kind: GaugeMetricFamily(
            f"kardia_group_{kind}_timeout_imminent_members",
            f"Members of a group with an open prediction of a {kind} timeout.",
            labels=OF_GROUP,
        )
        for kind in PREDICTION_KINDS
    }
    for _, view, labels in resting(found):
        lows = view.tally().low
        for kind, left in HEADROOM_OF.items():
            ratio = least(map(left, view.health.values()))
            if ratio is not None:
                headroom[kind].add_metric(labels, ratio)
            for threshold in THRESHOLDS:
                low.add_metric((*labels, kind, str(threshold)), lows[kind, threshold])
        kinds = Counter(row.kind for row in deadlines.endangered(view))
        for kind, family in imminent.items():
            family.add_metric(labels, kinds[kind])
    yield from (*headroom.values(), low, *imminent.values())


def _running(store: Store, clusters: list[ClusterView], shown: dict[str, list[GroupView]]) -> Iterator[Metric]:
    running = GaugeMetricFamily(
        "kardia_group_rebalance_running_seconds", "Age of a running rebalance, 0 if there is none.", labels=OF_GROUP
    )
    stormy = GaugeMetricFamily(
        "kardia_group_storm_rebalances",
        f"Occasions on which a group has rebalanced within the last {storms.WITHIN_MS // 60_000} minutes: roll-outs "
        "are left out, and what belongs to one start-up, or to one restart of everybody, counts once.",
        labels=OF_GROUP,
    )
    for cluster in clusters:
        freshness = store.freshness(cluster)
        for view in resting(shown[cluster.cluster_id]):
            since_ms = None if freshness.stale else view.rebalancing_since_ms
            running.add_metric(
                (cluster.cluster_id, label(store.settings, view.group_id)),
                0 if since_ms is None else max(0, freshness.now_ms - since_ms) / 1000,
            )
            stormy.add_metric(
                (cluster.cluster_id, label(store.settings, view.group_id)), len(storms.recent(view, freshness.now_ms))
            )
    yield from (running, stormy)


def _counted(found: Iterable[tuple[tuple[str, str], GroupCounts]]) -> Iterator[Metric]:
    rebalances = CounterMetricFamily(
        "kardia_rebalances", "Completed rebalances of a group.", labels=(*OF_GROUP, "trigger")
    )
    evictions = CounterMetricFamily(
        "kardia_evictions", "Memberships of a group taken away.", labels=(*OF_GROUP, "cause")
    )
    fenced = CounterMetricFamily(
        "kardia_static_members_fenced",
        "Static members that went on sending after another process had taken their group.instance.id.",
        labels=OF_GROUP,
    )
    lost = CounterMetricFamily(
        "kardia_rebalance_member_lost_seconds",
        "Time without an assignment in completed rebalances, summed over members.",
        labels=OF_GROUP,
    )
    for labels, counts in resting(found):
        # From zero on: a counter that appears with its first event has no increase for it.
        for trigger in TRIGGERS:
            rebalances.add_metric((*labels, trigger), counts.rebalances[trigger])
        for cause in EVICTION_CAUSES:
            evictions.add_metric((*labels, cause), counts.evictions[cause])
        fenced.add_metric(labels, counts.fenced)
        lost.add_metric(labels, counts.member_seconds_lost)
    yield from (rebalances, evictions, fenced, lost)
