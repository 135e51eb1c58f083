"""The broker's configuration as far as the coordinator of share groups reads it; defaults are Kafka's."""

from __future__ import annotations

from typing import NamedTuple


class ShareSettings(NamedTuple):
    """Durations in ms. Each field is the broker property of the same name, with dots for underscores."""

    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_max_size: int = 200
    group_share_assignment_interval_ms: int = 1_000
    """From 4.3."""
    group_share_initialize_retry_interval_ms: int = 30_000
    """From 4.2; before, twice `offsets_commit_timeout_ms`."""
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_check_interval_ms: int = 600_000
    """How often 4.0 looks for groups without members, and deletes them."""
    started_at_ms: int = 0
    """When the shard is loaded first, with nothing in it."""
