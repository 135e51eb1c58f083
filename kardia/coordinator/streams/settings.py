"""The broker's configuration as far as the coordinator of streams groups reads it; defaults are Kafka's."""

from __future__ import annotations

from typing import NamedTuple


class StreamsSettings(NamedTuple):
    """Durations in ms. Each field is the broker property of the same name, with dots for underscores."""

    group_streams_session_timeout_ms: int = 45_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_max_size: int = 2_147_483_647
    group_streams_num_standby_replicas: int = 0
    group_streams_initial_rebalance_delay_ms: int = 3_000
    """From 4.2."""
    group_streams_assignment_interval_ms: int = 1_000
    """From 4.3."""
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = ()
    """From 4.4."""
    offsets_retention_check_interval_ms: int = 600_000
    """How often the broker looks for groups without members, and deletes them."""
    started_at_ms: int = 0
    """When the shard is loaded first, with nothing in it."""
