"""The broker's configuration as far as the coordinator reads it; defaults are Kafka's."""

from __future__ import annotations

from typing import NamedTuple


class CoordinatorSettings(NamedTuple):
    """Durations in ms. Each field is the broker property of the same name unless it says otherwise."""

    initial_rebalance_delay_ms: int = 3_000
    """group.initial.rebalance.delay.ms. The server.properties that Kafka ships sets 0."""
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    offsets_retention_ms: int = 604_800_000
    """offsets.retention.minutes: seven days."""
    offsets_retention_check_interval_ms: int = 600_000
    appends_take_time: bool = False
    """No property: a record is stored when the operation `Stored` says so, and not at once."""
    started_at_ms: int = 0
    """When the broker started: a Scala broker looks for expired offsets every interval from here. The shard is loaded
    at this instant, with nothing in it."""
