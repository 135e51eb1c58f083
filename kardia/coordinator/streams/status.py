"""What an answer may tell beside its error code: the numbers are on the wire."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """A condition of the group that its members are to know. Follows `StreamsGroupHeartbeatResponse.Status`."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
