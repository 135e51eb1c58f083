"""What ends a request early: an error code for the client, or our own limits."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Answers of the coordinator to requests about consumer groups."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_METADATA_TOO_LARGE = 12
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_REGULAR_EXPRESSION = 128


class RefusedError(Exception):
    """The request is answered with this error code, and nothing has changed."""

    def __init__(self, code: Code) -> None:
        """Keep the code."""
        super().__init__(str(code))
        self.code = code


class NotModelledError(Exception):
    """The model does not know what Kafka does here, and says so instead of guessing."""
