"""What waits until a record is stored: a leader's assignments, or a static member that took over an old id.

Plain values, which a shard keeps by the number of the request; what they do when the record is stored: `stores`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardia.coordinator.classic.group import Member
from kardia.coordinator.classic.operations import Join


@dataclass(frozen=True)
class Assigned:
    """The leader of a generation has brought the assignments."""

    group_id: str
    number: int
    generation_id: int
    assignments: dict[str, bytes]


@dataclass(frozen=True)
class Replaced:
    """A static member took the place of its old id, in a Stable group that goes on. The rest is what was before."""

    group_id: str
    number: int
    member: Member
    request: Join
    old_id: str
    leader_before: str | None
    protocols: tuple[tuple[str, bytes], ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int


Store = Assigned | Replaced
