"""Errors of the collector.

    IngestError
    ├── SettingsError                  a setting is missing or contradicts another one; nothing has been started
    ├── BatchError                     a record of `kardia.events` is not a batch this version can read
    ├── RecordError                    a record of `__consumer_offsets` does not follow its schema
    ├── PositionsError
    │   ├── PositionsLockedError       another collector uses the same positions directory
    │   └── PositionsUnreadableError   neither the saved positions nor the ones before them can be read
    ├── LogFileError                   a log that is to be replayed cannot be read
    ├── AwayError                      no broker answers; waiting may mend it
    ├── RefusedError                   brokers do not take this client; waiting does not mend it
    ├── TopicError                     the topic `kardia.events` is not what this collector may write to
    └── DeliveryError                  the broker refused a record for good; positions stay where they were

A line that cannot be understood is not an error of the collector: it becomes a REJECTED event and reading goes on.
Every message is four parts: what happened, where, what was expected, what to do next.
"""

from __future__ import annotations


class IngestError(Exception):
    """Root of everything the collector raises on purpose."""

    def __init__(self, what: str, where: str, expected: str, next_step: str) -> None:
        """Build the sentence from its four parts."""
        super().__init__(f"{what} ({where}). Expected: {expected}. Next: {next_step}.")
        self.what = what
        self.where = where
        self.expected = expected
        self.next_step = next_step


class SettingsError(IngestError):
    """A setting is missing or contradicts another one."""


class BatchError(IngestError):
    """A record of `kardia.events` cannot be read."""


class RecordError(IngestError):
    """A record of `__consumer_offsets` does not follow its schema."""


class LogFileError(IngestError):
    """A log that is to be replayed cannot be read."""


class PositionsError(IngestError):
    """The saved positions cannot be used."""


class PositionsLockedError(PositionsError):
    """Another collector holds the positions directory."""


class PositionsUnreadableError(PositionsError):
    """No saved positions file can be read."""


class AwayError(IngestError):
    """No broker answers."""


class RefusedError(IngestError):
    """Brokers answer, and do not take this client: who it says it is, whom it trusts, what it may do."""


class TopicError(IngestError):
    """The topic of events is not what this collector may write to."""


class DeliveryError(IngestError):
    """A record was refused for good."""
