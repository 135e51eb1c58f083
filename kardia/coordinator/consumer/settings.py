"""The broker's configuration as far as the coordinator of consumer groups reads it; defaults are Kafka's."""

from __future__ import annotations

from typing import NamedTuple


class ConsumerSettings(NamedTuple):
    """Durations in ms. Each field is the broker property of the same name, with dots for underscores."""

    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is taken while no member names one."""
    group_consumer_assignment_interval_ms: int = 1_000
    """From 4.3."""
    group_consumer_regex_refresh_interval_ms: int = 600_000
    """From 4.1."""
    group_consumer_migration_policy: str = "bidirectional"
    """Groups whose last member of the consumer protocol goes become classic ones with "bidirectional" and "downgrade":
    that is not modelled."""
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    """For members of the classic protocol."""
    offsets_retention_ms: int = 604_800_000
    """offsets.retention.minutes: seven days."""
    offsets_retention_check_interval_ms: int = 600_000
    started_at_ms: int = 0
    """When the shard is loaded first, with nothing in it."""
