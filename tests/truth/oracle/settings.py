"""The releases whose classes can be driven, and the broker properties they read."""

from __future__ import annotations

from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.share.settings import ShareSettings
from kardia.coordinator.streams.settings import StreamsSettings

VERSIONS = ("3.9.2", "4.1.2", "4.4.0")
"""Scala's coordinator in the last release that has it; Java's in an older and in the newest release driven here."""

OLD_VERSIONS = ("2.3.1", "2.5.1", "2.7.2")
"""Scala's coordinator before there was an adapter in front of it and a timer for SyncGroup; their request log is
text."""

EVERY_VERSION = (*OLD_VERSIONS, "3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""Every release whose classes run here, oldest first. Those beyond `VERSIONS` are some 16 MB of jars each, and are
fetched for long runs only."""

_MINUTE_MS = 60_000


AnySettings = CoordinatorSettings | ConsumerSettings | ShareSettings | StreamsSettings


def properties(settings: AnySettings) -> dict[str, str]:
    """Settings as a Java broker reads them. Raises ValueError when the retention is not a whole number of minutes."""
    if isinstance(settings, ShareSettings):
        return _of_share_groups(settings)
    if isinstance(settings, StreamsSettings):
        return _of_streams_groups(settings)
    if settings.offsets_retention_ms % _MINUTE_MS:
        raise ValueError(f"offsets_retention_ms {settings.offsets_retention_ms}: the broker counts in minutes")
    if isinstance(settings, ConsumerSettings):
        return _of_consumer_groups(settings)
    return {
        "group.initial.rebalance.delay.ms": str(settings.initial_rebalance_delay_ms),
        "group.min.session.timeout.ms": str(settings.group_min_session_timeout_ms),
        "group.max.session.timeout.ms": str(settings.group_max_session_timeout_ms),
        "group.max.size": str(settings.group_max_size),
        "offsets.retention.minutes": str(settings.offsets_retention_ms // _MINUTE_MS),
        "offsets.retention.check.interval.ms": str(settings.offsets_retention_check_interval_ms),
    }


def _of_consumer_groups(settings: ConsumerSettings) -> dict[str, str]:
    consumer = "group.consumer."
    bounds = {
        # Kafka's own bounds would make every history last for minutes.
        consumer + "min.session.timeout.ms": "1",
        consumer + "max.session.timeout.ms": "1800000",
        consumer + "min.heartbeat.interval.ms": "1",
        consumer + "max.assignment.interval.ms": "600000",
    }
    return bounds | {
        consumer + "session.timeout.ms": str(settings.group_consumer_session_timeout_ms),
        consumer + "heartbeat.interval.ms": str(settings.group_consumer_heartbeat_interval_ms),
        consumer + "max.size": str(settings.group_consumer_max_size),
        consumer + "assignors": ",".join(settings.group_consumer_assignors),
        consumer + "assignment.interval.ms": str(settings.group_consumer_assignment_interval_ms),
        consumer + "regex.refresh.interval.ms": str(settings.group_consumer_regex_refresh_interval_ms),
        "group.initial.rebalance.delay.ms": str(settings.group_initial_rebalance_delay_ms),
        "group.max.size": str(settings.group_max_size),
        consumer + "migration.policy": settings.group_consumer_migration_policy,
        "group.min.session.timeout.ms": str(settings.group_min_session_timeout_ms),
        "group.max.session.timeout.ms": str(settings.group_max_session_timeout_ms),
        "offsets.retention.minutes": str(settings.offsets_retention_ms // _MINUTE_MS),
        "offsets.retention.check.interval.ms": str(settings.offsets_retention_check_interval_ms),
    }


def _of_share_groups(settings: ShareSettings) -> dict[str, str]:
    share = "group.share."
    return {
        share + "min.session.timeout.ms": "1",
        share + "max.session.timeout.ms": "1800000",
        share + "min.heartbeat.interval.ms": "1",
        share + "max.assignment.interval.ms": "600000",
        share + "session.timeout.ms": str(settings.group_share_session_timeout_ms),
        share + "heartbeat.interval.ms": str(settings.group_share_heartbeat_interval_ms),
        share + "max.size": str(settings.group_share_max_size),
        share + "assignment.interval.ms": str(settings.group_share_assignment_interval_ms),
        share + "initialize.retry.interval.ms": str(settings.group_share_initialize_retry_interval_ms),
        "offsets.commit.timeout.ms": str(settings.offsets_commit_timeout_ms),
        "offsets.retention.check.interval.ms": str(settings.offsets_retention_check_interval_ms),
        "group.max.size": "2147483647",
    }


def _of_streams_groups(settings: StreamsSettings) -> dict[str, str]:
    streams = "group.streams."
    return {
        streams + "min.session.timeout.ms": "1",
        streams + "max.session.timeout.ms": "1800000",
        streams + "min.heartbeat.interval.ms": "1",
        streams + "max.assignment.interval.ms": "600000",
        streams + "session.timeout.ms": str(settings.group_streams_session_timeout_ms),
        streams + "heartbeat.interval.ms": str(settings.group_streams_heartbeat_interval_ms),
        streams + "max.size": str(settings.group_streams_max_size),
        streams + "num.standby.replicas": str(settings.group_streams_num_standby_replicas),
        streams + "initial.rebalance.delay.ms": str(settings.group_streams_initial_rebalance_delay_ms),
        streams + "assignment.interval.ms": str(settings.group_streams_assignment_interval_ms),
        streams + "rack.aware.assignment.tags": ",".join(settings.group_streams_rack_aware_assignment_tags),
        "offsets.retention.check.interval.ms": str(settings.offsets_retention_check_interval_ms),
        "group.max.size": "2147483647",
    }


CONSUMER_VERSIONS = tuple(version for version in EVERY_VERSION if version.startswith("4."))
"""Releases that coordinate consumer groups."""

STREAMS_VERSIONS = CONSUMER_VERSIONS[1:]
"""Releases that coordinate streams groups; 4.0 has none."""
