"""What began a rebalance: who, when, why, and how sure that is. Plain data; NEVER is the instant that is not known."""

from __future__ import annotations

from kardia.doubts import SURE, Doubts
from kardia.observe.state.compact import Compact

NEVER = -1.0
"""An instant that is not known, or that does not come."""


class Cause(Compact):
    """Something that makes a Stable group prepare a rebalance, or raises the epoch of a group, at its instant."""

    at: float
    trigger: str
    member_id: str = ""
    client_id: str = ""
    instance_id: str = ""
    reason: str = ""
    doubts: Doubts = SURE
    by: float | None = None
    """The latest that it can have been, as `Ended.by`."""
    named: bool = False
    """The coordinator itself said, in server.log, that it was this and nobody else."""
