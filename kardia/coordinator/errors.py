"""What ends a request early: an error code for the client, or our own limits."""

from __future__ import annotations

from kardia.kafka.states import ErrorCode


class RefusedError(Exception):
    """The request is answered with this error code, and nothing has changed."""

    def __init__(self, code: ErrorCode) -> None:
        """Keep the code."""
        super().__init__(str(code))
        self.code = code


class NotModelledError(Exception):
    """The model does not know what Kafka does here, and says so instead of guessing."""
