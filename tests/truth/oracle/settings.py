"""What a broker would be configured with, and the releases whose classes can be driven."""

from __future__ import annotations

from typing import NamedTuple

VERSIONS = ("3.9.2", "4.1.2", "4.4.0")
"""Scala's coordinator in the last release that has it; Java's in the first and the newest release driven here."""


class Settings(NamedTuple):
    """Broker configuration that decides about classic groups. Small values by default: tests wait for none of them."""

    initial_delay_ms: int = 300
    """group.initial.rebalance.delay.ms"""
    min_session_ms: int = 100
    """group.min.session.timeout.ms"""
    max_session_ms: int = 60_000
    """group.max.session.timeout.ms"""
    max_size: int = 2**31 - 1
    """group.max.size"""
    retention_ms: int = 60_000
    """offsets.retention.minutes; a whole number of minutes."""
    expiry_interval_ms: int = 20_000
    """offsets.retention.check.interval.ms"""

    def properties(self) -> dict[str, str]:
        """As a broker reads them."""
        return {
            "group.initial.rebalance.delay.ms": str(self.initial_delay_ms),
            "group.min.session.timeout.ms": str(self.min_session_ms),
            "group.max.session.timeout.ms": str(self.max_session_ms),
            "group.max.size": str(self.max_size),
            "offsets.retention.minutes": str(self.retention_ms // 60_000),
            "offsets.retention.check.interval.ms": str(self.expiry_interval_ms),
        }
