"""What a broker logs of its settings when it starts, in server.log: how long sessions of the newer protocols are.

    [2026-11-20 21:58:38,615] INFO KafkaConfig values:
            group.consumer.heartbeat.interval.ms = 2000
            group.consumer.session.timeout.ms = 10000
    …

A line for each setting, without a stamp: that of the head counts. Only lines that follow such a head are settings, so
that an id with a line break in it makes none, unless it forges the head as well. Classic members name their session
timeout themselves, and the answers to heartbeats say how often they are wanted: of the settings no more is of use.
"""

from __future__ import annotations

import re

HEAD = b" KafkaConfig values:"
_SETTING = re.compile(rb"\s+group\.(consumer|share|streams)\.session\.timeout\.ms = ([0-9]{1,9})\s*\Z")


class LoggedSettings:
    """Follows one log. Whoever begins to read below a head reads no settings of it."""

    def __init__(self) -> None:
        """No head has been read."""
        self._stamped_at_ms: float | None = None

    def stamped(self, head_at_ms: float | None = None) -> None:
        """A line with a stamp ends what stood above it. `head_at_ms`: the stamp of one that is the head of settings."""
        self._stamped_at_ms = head_at_ms

    def read(self, line: bytes) -> tuple[float, dict[str, int]] | None:
        """(When it was logged, protocol -> session timeout) of a line without a stamp; None if it says none."""
        if self._stamped_at_ms is None:
            return None
        found = _SETTING.match(line)
        return None if found is None else (self._stamped_at_ms, {found[1].decode(): int(found[2])})
