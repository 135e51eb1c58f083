"""Which request renews a member's session timer, and at which instant of the request the coordinator does it.

For every part of Kardia; the model's other differences between releases are in
`kardia/coordinator/classic/behaviour.py`. A table, because this is where models of the coordinator go wrong: a
JoinGroup of an existing member never renews, an OffsetCommit does, and it does so before its record is written; a
SyncGroup that is served while the group is Stable renews in the Scala coordinator and not in the Java one. The duration
is always the member's session timeout as stored at that moment. Sources: `completeAndScheduleNextHeartbeatExpiration`
(Scala, up to 3.9), `rescheduleClassicGroupMemberHeartbeat` (Java, from 4.0).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

POLL_INTERVAL_MS = 300_000
"""Default `max.poll.interval.ms` of the Java client, five minutes: how soon a client that was gone polls again if it is
the same story."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a brand-new member may wait in its first JoinGroup; its own session timeout does not run yet. Kafka's
constant `NewMemberJoinTimeoutMs`, five minutes, in every version."""


class Coordinator(StrEnum):
    """Which implementation answers. Scala: every broker up to 3.6, default up to 3.9. Java: 4.0 and later."""

    SCALA = "scala"
    JAVA = "java"


class Renewal(NamedTuple):
    """One row: who renews, on which answer, at which instant of the request's line (`decided` or `handled`)."""

    cause: str
    instant: str
    coordinators: frozenset[Coordinator]


_BOTH = frozenset(Coordinator)

RENEWALS: dict[str, Renewal] = {
    "heartbeat": Renewal("Heartbeat answered 0 or 27", "decided", _BOTH),
    "commit": Renewal("OffsetCommit accepted while Stable or PreparingRebalance", "handled", _BOTH),
    "join_completed": Renewal("join phase completed: every member, also absent static ones", "decided", _BOTH),
    "sync_propagated": Renewal("waiting SyncGroup answered when the leader's assignment is stored", "decided", _BOTH),
    "sync_turned_away": Renewal("waiting SyncGroup answered 27 because a rebalance begins", "decided", _BOTH),
    "sync_served_stable": Renewal(
        "SyncGroup answered at once because the group is Stable", "decided", frozenset({Coordinator.SCALA})
    ),
    "static_replaced": Renewal("static member replaced, with the old session timeout", "handled", _BOTH),
    "loaded": Renewal("group loaded by a new coordinator: every member", "decided", _BOTH),
}
"""Everything that renews a session. What is not here does not."""


def coordinator_of(kafka_version: str) -> Coordinator | None:
    """Implementation of a broker version as configured ("3.9.2", "4.1"), None when no version is given.

    Raises ValueError for a version that does not begin with a number.
    """
    if not kafka_version:
        return None
    major = kafka_version.split(".", 1)[0]
    if not major.isdigit():
        raise ValueError(
            f"kafka version {kafka_version!r}: expected numbers with dots such as 3.9.2; give the broker's release"
        )
    return Coordinator.JAVA if int(major) >= 4 else Coordinator.SCALA


def coordinator_of_connection(connection: str) -> Coordinator | None:
    """Implementation as shown by how the broker prints a connection: `local-remote-N` up to 3.9, with one more number
    (the network processor) from 4.0. None when the text has another shape.
    """
    parts = connection.rsplit("-", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return Coordinator.JAVA
    if len(parts) >= 2 and parts[-1].isdigit():
        return Coordinator.SCALA
    return None
