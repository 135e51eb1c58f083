"""What histories of 2.3 to 2.7 must have met: each answer that a release has for an operation, and each of its timers.

Which of them each state has is written down for the releases with a timer for SyncGroup only (`unreachable.json`): the
older ones differ from each other in nearly every line of that list.
"""

from __future__ import annotations

from kardia.coordinator.classic.behaviour import behaviour_of
from tests.truth.draw_old import takes_several

_ALWAYS: dict[str, tuple[str, ...]] = {
    "Join": ("waits", "0", "-1", "16", "23", "24", "25", "26", "79", "81", "82"),
    "Sync": ("waits", "0", "16", "22", "24", "25", "27", "82"),
    "Heartbeat": ("0", "16", "22", "24", "25", "27", "82"),
    "Leave": ("0", "16", "24", "25"),
    "Commit": ("0", "12", "16", "22", "25", "27", "82"),
    "TxnCommit": ("0", "16"),
    "TxnEnd": ("0",),
    "DeleteGroups": ("0", "16", "68", "69"),
    "late answer": ("0", "16", "25", "27", "82"),
    "timer": (
        "pending_expired",
        "session_expired",
        "join_timeout",
        "rebalance_timeout",
        "nobody_rejoined",
        "generation",
        "offsets_expired",
        "died",
    ),
}


def outcomes(kafka_version: str) -> set[tuple[str, str]]:
    """Operation and outcome."""
    found = {(operation, one) for operation, some in _ALWAYS.items() for one in some}
    behaviour = behaviour_of(kafka_version)
    if behaviour.sync_names_protocol:
        found.add(("Sync", "23"))
    if behaviour.txn_commit_is_checked:
        found |= {("TxnCommit", one) for one in ("22", "25", "82")}
    if takes_several(kafka_version):
        found |= {("Leave", "82"), ("Leave", "-1")}
        found |= {("OffsetDelete", one) for one in ("0", "16", "24", "69", "86")}
    return found
