"""Members as series, off unless `metrics_members_max` asks for them.

Never by member id, which is new after every restart: by static id, or else by client id and host. Members that share
these share a series, which shows the one that has the least left. The cap is hard: of each cluster the worst are kept,
and what a scrape left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from api.metrics.groups import label
from api.present.current import ClusterView
from api.present.health import HEADROOM_OF
from api.settings import ApiSettings

Labels = tuple[str, str, str, str]


def families(settings: ApiSettings, clusters: list[ClusterView], dropped: dict[str, int]) -> Iterator[Metric]:
    """Series of members; `dropped` counts by cluster what has been left out so far, and grows."""
    headroom = {
        kind: GaugeMetricFamily(
            f"kardia_member_{kind}_headroom_ratio",
            f"Part of the {kind} timeout that was left when the member was last written.",
            labels=("cluster", "group", "member", "host"),
        )
        for kind in HEADROOM_OF
    }
    lost = CounterMetricFamily(
        "kardia_member_series_dropped", "Members that a scrape left out, beyond the cap.", labels=("cluster",)
    )
    for cluster in clusters:
        found = _members(settings, cluster)
        worst_first = sorted(found, key=lambda labels: (min(found[labels].values()), labels))
        for labels in worst_first[: settings.metrics_members_max]:
            for kind, left in found[labels].items():
                headroom[kind].add_metric(labels, left)
        dropped[cluster.cluster_id] = dropped.get(cluster.cluster_id, 0) + max(
            0, len(found) - settings.metrics_members_max
        )
        lost.add_metric((cluster.cluster_id,), dropped[cluster.cluster_id])
    yield from (*headroom.values(), lost)


def _members(settings: ApiSettings, cluster: ClusterView) -> dict[Labels, dict[str, float]]:
    """Labels -> kind of timeout -> least headroom, of members of which any is known."""
    found: dict[Labels, dict[str, float]] = {}
    for view in cluster.groups.values():
        for member_id, health in view.health.items():
            life = view.lives[member_id]
            left = {kind: ratio for kind, of in HEADROOM_OF.items() if (ratio := of(health)) is not None}
            if left:
                known = found.setdefault(
                    (cluster.cluster_id, label(settings, view.group_id), *_who(settings, life)), {}
                )
                for kind, ratio in left.items():
                    known[kind] = min(ratio, known.get(kind, ratio))
    return found


def _who(settings: ApiSettings, life: Any) -> tuple[str, str]:
    """(static id, "") of a static member, (client id, host) of any other."""
    if life.group_instance_id is not None:
        return label(settings, life.group_instance_id), ""
    return label(settings, life.client_id or ""), label(settings, life.client_host or "")
