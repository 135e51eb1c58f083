"""A member of a consumer group: a value that is replaced as a whole. Follows `ConsumerGroupMember`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from kardia.coordinator.consumer.operations import Partition

LEAVE = -1
LEAVE_FOR_A_WHILE = -2
"""Epochs with which a member leaves; a static member that left with the second is kept in it until it comes back."""

NOBODY = -1
"""Epoch of the holder of a partition that nobody holds. A member may have it as well: a static one that left with
`LEAVE_FOR_A_WHILE`, had something to give up, and came back as another process."""


class MemberState(StrEnum):
    """Where a member is on its way to the target."""

    STABLE = "STABLE"
    UNREVOKED = "UNREVOKED_PARTITIONS"
    """It has to give up partitions and has not said yet that it did."""
    UNRELEASED = "UNRELEASED_PARTITIONS"
    """Others have not given up yet what it is to get."""


Held = Mapping[Partition, int]
"""Partitions with the epoch in which each was assigned."""


class Classic(NamedTuple):
    """What a member of the classic protocol said in its last JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """Identity, what it asked for, and how far it is."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    regex: str | None = ""
    assignor: str | None = None
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    pending: Held = field(default_factory=dict)
    """What it has to give up."""
    classic: Classic | None = None
    """None for a member of the consumer protocol."""

    def reached(self, epoch: int) -> bool:
        """Whether it has all that the target of an epoch gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def at(self, epoch: int, state: MemberState, assigned: Held, pending: Held) -> Member:
        """The member in an epoch, with the one it had as the previous one."""
        return replace(
            self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=dict(assigned), pending=dict(pending)
        )
