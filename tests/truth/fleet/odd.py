"""Clients that do what most never do, and an administrator who removes members: each of it is seen in the wild.

A client.id that another one uses as well, JoinGroup from version 0 on, several protocols of which the group votes for
one, a thread of heartbeats that begins before SyncGroup.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kardia.coordinator.classic.operations import Leave, Leaving
from tests.truth.fleet.broker import Asked, Connection
from tests.truth.fleet.clients import Client, Habits
from tests.truth.fleet.cluster import Cluster

STATIC_FROM = 5
"""Version of JoinGroup that knows static members."""

REMOVES_FROM = 3
"""Version of LeaveGroup from which on an administrator may remove members, by their instance ids too (2.4)."""

MAX_SIZE = 7
"""`group.max.size` of the broker that they ask."""

LIBRARIES = (
    Habits("sarama-2", ("unknown", "unknown"), (2, 1, 1, 1, 2, 11), False, False, False, True),
    Habits("java-2.2", ("unknown", "unknown"), (4, 2, 2, 2, 5, 10), True, True, False, False),
)
"""JoinGroup 2 is given its id with the first answer of the join phase; from version 4 on it is sent away with it."""

OLD_LIBRARIES = (
    Habits("java-0.9", ("unknown", "unknown"), (0, 0, 0, 0, 2, 4), True, False, False, False),
    Habits("java-0.10.1", ("unknown", "unknown"), (1, 0, 0, 0, 2, 4), True, True, False, False),
)
"""JoinGroup 0 has no rebalance timeout of its own. From 4.0 on brokers do not know versions 0 and 1."""

ADMIN_REASON = "member was removed by an admin"


def make(client: Client, others: Sequence[Client], chance: random.Random) -> None:
    """Draw what is odd about a client."""
    if others and chance.random() < 0.25:
        twin = chance.choice(others)
        client.client_id = twin.client_id
        if chance.random() < 0.5:
            client.host = twin.host
    client.protocols = chance.choice(
        (("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("sticky", "range"))
    )
    client.beats_before_sync = chance.random() < 0.5


def remove(cluster: Cluster, client: Client) -> bool:
    """An administrator removes a member, a static one by its instance id alone. Whether there is one to remove."""
    broker = cluster.coordinator_of(client.group_id)
    version = 5 if cluster.text is None else cluster.text.leave_group
    if broker is None or not client.member_id or version < REMOVES_FROM:
        return False
    connection = broker.connect("adminclient-7", ("apache-kafka-java", "4.1.2"), "10.9.9.9", _nothing)
    reason = ADMIN_REASON if cluster.text is None else None
    leaving = Leaving("" if client.instance else client.member_id, client.instance, reason)
    operation = Leave(cluster.number(), version, client.group_id, (leaving,))
    cluster.truths[client.group_id].causes[operation.number] = "removed_by_admin"
    broker.send(Asked(connection, version, operation, lambda _: None))
    return True


def _nothing(_connection: Connection) -> None:
    """An admin client does not care for its connection."""
