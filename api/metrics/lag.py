"""Lag as series: of groups, and of the partitions that are the farthest behind; on demand as others name them.

What is not known has no sample: an alert on lag must not fire on a guess, and one on silence can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from api.answers import lag
from api.answers.lag import Known
from api.metrics.groups import OF_GROUP, label
from api.present.current import ClusterView
from api.present.freshness import Freshness
from api.present.lagging import LagView
from api.store import Store
from kardia.story.lagging import REASONS

OF_PARTITION = (*OF_GROUP, "topic", "partition")


class _Cluster(NamedTuple):
    """A cluster at the instant of a scrape."""

    view: ClusterView
    known: Known
    freshness: Freshness
    groups: list[LagView]
    """Those that have series of their own."""
    rows: list[Any]
    """Partitions that have."""


def families(store: Store, clusters: list[ClusterView]) -> Iterator[Metric]:
    """All series of lag."""
    found = [_chosen(store, cluster) for cluster in clusters]
    yield from _of_clusters(found)
    yield from _of_groups(store, found)
    yield from _of_partitions(store, found)
    if store.settings.lag_names:
        yield from _kafka_exporter(store, found)
        yield from _kminion(store, found)


def _chosen(store: Store, cluster: ClusterView) -> _Cluster:
    """Groups and partitions with series of their own: the farthest behind, up to the caps."""
    settings, freshness = store.settings, store.freshness(cluster)
    known = lag.known(cluster, freshness, settings.lag_stale_after_ms)

    def behind(view: LagView) -> tuple[int, str]:
        return -sum(row.lag or 0 for row in view.rows.values()), view.group_id

    views = sorted(cluster.lags.groups.values(), key=behind)[: settings.metrics_groups_max]
    rows = [row for view in views for row in view.rows.values()]
    rows.sort(key=lambda row: (-(row.lag or 0), row.group_id, row.topic, row.partition))
    return _Cluster(cluster, known, freshness, views, rows[: settings.metrics_lag_partitions_max])


def _of_clusters(found: list[_Cluster]) -> Iterator[Metric]:
    at = GaugeMetricFamily(
        "kardia_lag_known_to_timestamp_seconds",
        "Commits and ends are as of then: the last look at the ends, or before it where more had changed than is "
        "written at once.",
        labels=("cluster",),
    )
    held = GaugeMetricFamily("kardia_lag_partitions", "Partitions that groups have commits for.", labels=("cluster",))
    without = GaugeMetricFamily(
        "kardia_lag_partitions_without_series",
        "Of them those that have no series of their own, because of the caps.",
        labels=("cluster",),
    )
    for one in found:
        labels = (one.view.cluster_id,)
        if one.known.as_of_ms is not None:
            at.add_metric(labels, one.known.as_of_ms / 1000)
        held.add_metric(labels, one.view.lags.count)
        without.add_metric(labels, one.view.lags.count - len(one.rows))
    yield from (at, held, without)


def _of_groups(store: Store, found: list[_Cluster]) -> Iterator[Metric]:
    records = GaugeMetricFamily(
        "kardia_group_lag_records", "Records that a group has not read, as far as is known.", labels=OF_GROUP
    )
    seconds = GaugeMetricFamily(
        "kardia_group_lag_seconds",
        "How long the first record that it has not read has waited, of the partition where that is longest; "
        "interpolated, no sample where that is not known.",
        labels=OF_GROUP,
    )
    least = GaugeMetricFamily("kardia_group_lag_least_seconds", "It has waited at least so long.", labels=OF_GROUP)
    partitions = GaugeMetricFamily(
        "kardia_group_lag_partitions",
        "Partitions of a group: with something to read (behind), without (read), and of which that is not known.",
        labels=(*OF_GROUP, "state"),
    )
    status = GaugeMetricFamily(
        "kardia_group_lag_status", "1 for the status of a group by Burrow's rules.", labels=(*OF_GROUP, "status")
    )
    why = GaugeMetricFamily(
        "kardia_group_lag_reason_partitions",
        "Partitions that fall behind, by why.",
        labels=(*OF_GROUP, "reason"),
    )
    for one in found:
        for view in one.groups:
            labels = (one.view.cluster_id, label(store.settings, view.group_id))
            told = lag.total(one.view, view, one.known, one.freshness)
            if told["lag"] is not None:
                records.add_metric(labels, told["lag"])
            for family, name in ((seconds, "time_lag_ms"), (least, "time_lag_least_ms")):
                if told[name] is not None:
                    family.add_metric(labels, told[name] / 1000)
            behind, all_known = told["partitions_behind"], told["partitions_known"]
            counts = {"behind": behind, "read": all_known - behind, "unknown": told["partitions"] - all_known}
            for state, count in counts.items():
                partitions.add_metric((*labels, state), count)
            for word in lag.STATUSES:
                status.add_metric((*labels, word), word == told["status"])
            by_reason = {entry["reason"]: entry["partitions"] for entry in told["why"]}
            for reason in REASONS:
                why.add_metric((*labels, reason), by_reason.get(reason, 0))
    yield from (records, seconds, least, partitions, status, why)


def _of_partitions(store: Store, found: list[_Cluster]) -> Iterator[Metric]:
    records = GaugeMetricFamily(
        "kardia_partition_lag_records", "Records of a partition that a group has not read.", labels=OF_PARTITION
    )
    seconds = GaugeMetricFamily(
        "kardia_partition_lag_seconds",
        "How long the first of them has waited; interpolated, no sample where that is not known.",
        labels=OF_PARTITION,
    )
    for one in found:
        for row in one.rows:
            labels = (one.view.cluster_id, label(store.settings, row.group_id), row.topic, str(row.partition))
            lag_records, (_, time_ms, _) = lag.lag_of(row, one.known), lag.time_lag(row, one.known)
            if lag_records is not None:
                records.add_metric(labels, lag_records)
            if time_ms is not None:
                seconds.add_metric(labels, time_ms / 1000)
    yield from (records, seconds)


class _Names(NamedTuple):
    """How another exporter calls things. Labels carry the cluster as well: one Kardia may serve several."""

    group: str
    topic: str
    partition: str
    lag: str
    offset: str
    lag_sum: str
    offset_sum: str
    members: str
    end: str
    start: str


_KAFKA_EXPORTER = _Names(
    group="consumergroup",
    topic="topic",
    partition="partition",
    lag="kafka_consumergroup_lag",
    offset="kafka_consumergroup_current_offset",
    lag_sum="kafka_consumergroup_lag_sum",
    offset_sum="kafka_consumergroup_current_offset_sum",
    members="kafka_consumergroup_members",
    end="kafka_topic_partition_current_offset",
    start="kafka_topic_partition_oldest_offset",
)
"""danielqsj/kafka_exporter, `kafka_exporter.go`."""

_KMINION = _Names(
    group="group_id",
    topic="topic_name",
    partition="partition_id",
    lag="kminion_kafka_consumer_group_topic_partition_lag",
    offset="",
    lag_sum="kminion_kafka_consumer_group_topic_lag",
    offset_sum="kminion_kafka_consumer_group_topic_offset_sum",
    members="kminion_kafka_consumer_group_members",
    end="kminion_kafka_topic_partition_high_water_mark",
    start="kminion_kafka_topic_partition_low_water_mark",
)
"""redpanda-data/kminion, `prometheus/exporter.go`, with its default namespace. It has no series of single commits."""


def _kafka_exporter(store: Store, found: list[_Cluster]) -> Iterator[Metric]:
    yield from _named(store, found, _KAFKA_EXPORTER)


def _kminion(store: Store, found: list[_Cluster]) -> Iterator[Metric]:
    yield from _named(store, found, _KMINION)


def _named(store: Store, found: list[_Cluster], names: _Names) -> Iterator[Metric]:
    """Series of partitions, sums by topic and members under other names; nothing of what is not known."""
    of_group = ("cluster", names.group)
    of_topic, of_partition = (*of_group, names.topic), (*of_group, names.topic, names.partition)
    here = ("cluster", names.topic, names.partition)
    lags = GaugeMetricFamily(names.lag, "Lag of a group at a partition, records.", labels=of_partition)
    offsets = GaugeMetricFamily(names.offset or "unused", "Committed offset.", labels=of_partition)
    lag_sums = GaugeMetricFamily(names.lag_sum, "Lag of a group at a topic, records.", labels=of_topic)
    offset_sums = GaugeMetricFamily(names.offset_sum, "Committed offsets of a topic, summed.", labels=of_topic)
    members = GaugeMetricFamily(names.members, "Members of a group.", labels=of_group)
    ends = GaugeMetricFamily(names.end, "End of a partition.", labels=here)
    starts = GaugeMetricFamily(names.start, "Start of the log of a partition.", labels=here)
    for one in found:
        cluster_id = one.view.cluster_id
        ends_seen: dict[tuple[str, int], Any] = {}
        for row in () if one.known.stale else one.rows:
            labels = (cluster_id, label(store.settings, row.group_id), row.topic, str(row.partition))
            if names.offset:
                offsets.add_metric(labels, row.committed_offset)
            if row.lag is not None:
                lags.add_metric(labels, row.lag)
            latest = ends_seen.get((row.topic, row.partition))
            if row.end_offset is not None and (latest is None or latest.at_ms < row.at_ms):
                ends_seen[row.topic, row.partition] = row
        for (topic, partition), row in ends_seen.items():
            ends.add_metric((cluster_id, topic, str(partition)), row.end_offset)
            if row.start_offset is not None:
                starts.add_metric((cluster_id, topic, str(partition)), row.start_offset)
        for view in () if one.known.stale else one.groups:
            group = label(store.settings, view.group_id)
            for topic, rows in _by_topic(view).items():
                known_lags = [row.lag for row in rows if row.lag is not None]
                if known_lags:
                    lag_sums.add_metric((cluster_id, group, topic), sum(known_lags))
                offset_sums.add_metric((cluster_id, group, topic), sum(row.committed_offset or 0 for row in rows))
            count = lag.around(one.view.groups.get(view.group_id), one.freshness).members
            if count is not None:
                members.add_metric((cluster_id, group), count)
    yield from (lags, *([offsets] if names.offset else ()), lag_sums, offset_sums, members, ends, starts)


def _by_topic(view: LagView) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for (topic, _), row in view.rows.items():
        found.setdefault(topic, []).append(row)
    return found
