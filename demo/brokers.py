"""Several brokers of one cluster on this machine, each with its own directory, each a controller as well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from demo.broker import Broker, BrokerSettings, new_cluster_id
from demo.ports import HOST, free_ports


def cluster(settings: BrokerSettings, folder: Path, nodes: int) -> list[Broker]:
    """Brokers that know each other, not started yet; everything is on all of them. Start them side by side: none is
    ready before most of them are."""
    ports = free_ports(2 * nodes)
    voters = ",".join(f"{number}@{HOST}:{controller}" for number, controller in enumerate(ports[nodes:], 1))
    shared = {
        **settings.extra,
        "controller.quorum.voters": voters,
        "offsets.topic.replication.factor": str(nodes),
        "default.replication.factor": str(nodes),
    }
    name, brokers = settings.cluster_id or new_cluster_id(), []
    for number, own in enumerate(zip(ports[:nodes], ports[nodes:], strict=True), 1):
        extra = shared | {"node.id": str(number)}
        one = replace(settings, ports=own, cluster_id=name, extra=extra)
        brokers.append(Broker(folder / f"broker-{number}", one))
    return brokers
