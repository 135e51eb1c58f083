"""Of one row of `health`: whether its status is known, and which one is shown. Reads no clock."""

from __future__ import annotations

from typing import Any

from kardia.statuses import NOT_KNOWN, shown


def is_known(health: Any) -> bool:
    """Whether what is left of the timeouts of a member can be told. Not since a gap, and not of one that is silent in a
    rebalance: it may wait in a JoinGroup, where no timeout runs."""
    return shown(health.status, health.group_state, health.awaited_since_at_ms) not in NOT_KNOWN
