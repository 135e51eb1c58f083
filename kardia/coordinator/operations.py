"""What the cluster does to a coordinator of any kind: it gives it a shard, or takes it away.

What clients ask is in `operations` of each kind of group.
"""

from __future__ import annotations

from typing import NamedTuple


class Load(NamedTuple):
    """The broker becomes coordinator of the shard and replays its records. `group_max_size`: it is configured with
    another one than the coordinator before it; None when with the same."""

    number: int
    group_max_size: int | None = None


class Unload(NamedTuple):
    """The broker is coordinator of the shard no longer."""

    number: int
