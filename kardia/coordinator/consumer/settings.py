"""The broker's configuration as far as the coordinator of consumer groups reads it; defaults are Kafka's."""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.classic.settings import CoordinatorSettings


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
    """Classic groups become consumer groups with "bidirectional" and "upgrade", the other way with "bidirectional" and
    "downgrade"; "disabled" allows neither."""
    group_initial_rebalance_delay_ms: int = 3_000
    """Of classic groups, as `group_max_size`."""
    group_max_size: int = 2_147_483_647
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    """For members of the classic protocol."""
    offsets_retention_ms: int = 604_800_000
    """offsets.retention.minutes: seven days."""
    offsets_retention_check_interval_ms: int = 600_000
    started_at_ms: int = 0
    """When the shard is loaded first, with nothing in it."""

    def upgrades(self) -> bool:
        """Whether a classic group with members may become a consumer group."""
        return self.group_consumer_migration_policy in ("bidirectional", "upgrade")

    def downgrades(self) -> bool:
        """Whether a consumer group with members may become a classic group."""
        return self.group_consumer_migration_policy in ("bidirectional", "downgrade")

    def of_classic_groups(self) -> CoordinatorSettings:
        """What counts for the classic groups of the same broker."""
        return CoordinatorSettings(
            self.group_initial_rebalance_delay_ms,
            self.group_min_session_timeout_ms,
            self.group_max_session_timeout_ms,
            self.group_max_size,
            self.offsets_retention_ms,
            self.offsets_retention_check_interval_ms,
            started_at_ms=self.started_at_ms,
        )
