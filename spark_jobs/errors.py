"""Errors of the job.

    JobError
    ├── TablesError        the table directory is not one this job may write to
    ├── CheckpointError    checkpoint and tables do not belong together, or the checkpoint is of another deployment
    ├── LeaseError         another run holds the directory
    ├── StateError         saved state of a lane cannot be read by this version
    │   └── DamagedError   it is not what was written
    ├── RowsError          rows of the observer do not fit their table
    ├── NotAppliedError    the observer raised, and nobody has kept the state before it
    ├── TopicLossError     the topic no longer has records that were not read yet
    ├── TopicError         the topic cannot be read as `kardia.events`
    ├── RefusedError       brokers do not take this client, or its settings are wrong; waiting does not mend it
    ├── InputFileError     a file given to replay cannot be read
    └── StoppedError       the query, or a process of the pool, ended by an error of its own

Each message has four parts: what happened, where, what was expected, what to do next. A record that is not a batch of
events is not an error of the job: it becomes a row of `rejected` and the job goes on. So does an
event that the observer raises at (`spark_jobs.safe_step`).
"""

from __future__ import annotations


class JobError(Exception):
    """Root of everything the job raises on purpose."""

    def __init__(self, what: str, where: str, expected: str, next_step: str) -> None:
        """Build the sentence from its four parts."""
        super().__init__(f"{what} ({where}). Expected: {expected}. Next: {next_step}.")
        self.what = what
        self.where = where
        self.expected = expected
        self.next_step = next_step

    def __reduce__(self) -> tuple[type[JobError], tuple[str, str, str, str]]:
        """Survive the way between two processes with all four parts."""
        return type(self), (self.what, self.where, self.expected, self.next_step)


class TablesError(JobError):
    """The table directory is not one this job may write to."""


class CheckpointError(JobError):
    """Checkpoint and tables do not belong together."""


class LeaseError(JobError):
    """Another run holds the directory."""


class StateError(JobError):
    """Saved state of a lane cannot be read by this version."""


class DamagedError(StateError):
    """Saved state of a lane is not what was written: the next start builds the lane again
    (`spark_jobs.checkpoint.damaged_lanes`)."""


class RowsError(JobError):
    """Rows of the observer do not fit their table."""


class NotAppliedError(JobError):
    """The observer raised at an event, and nobody has kept the state before it."""


class TopicLossError(JobError):
    """The topic no longer has records that were not read yet."""


class TopicError(JobError):
    """The topic cannot be read as `kardia.events`."""


class RefusedError(JobError):
    """Brokers do not take this client, or its settings are wrong."""


class InputFileError(JobError):
    """A file given to replay cannot be read."""


class StoppedError(JobError):
    """The query, or a process of the pool, ended by an error of its own."""
