"""Errors of the job.

    JobError
    ├── TablesRefused        the table directory is not one this job may write to
    ├── CheckpointRefused    checkpoint and tables do not belong together, or the checkpoint is of another deployment
    ├── CheckpointInUse      another run holds the checkpoint
    ├── StateRefused         saved state of a lane cannot be read by this version
    ├── RowsRefused          rows of the observer do not fit their table
    ├── TopicLost            the topic no longer has records that were not read yet
    ├── TopicRefused         the topic cannot be read as `kardia.events`
    ├── InputRefused         a file given to replay cannot be read
    └── JobStopped           the query ended by an error of its own

Each message has four parts: what happened, where, what was expected, what to do next. A record that is not a batch of
events is not an error of the job: it becomes a row of `rejected` and the job goes on.
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


class TablesRefused(JobError):
    """The table directory is not one this job may write to."""


class CheckpointRefused(JobError):
    """Checkpoint and tables do not belong together."""


class CheckpointInUse(JobError):
    """Another run holds the checkpoint."""


class StateRefused(JobError):
    """Saved state of a lane cannot be read by this version."""


class RowsRefused(JobError):
    """Rows of the observer do not fit their table."""


class TopicLost(JobError):
    """The topic no longer has records that were not read yet."""


class TopicRefused(JobError):
    """The topic cannot be read as `kardia.events`."""


class InputRefused(JobError):
    """A file given to replay cannot be read."""


class JobStopped(JobError):
    """The query ended by an error of its own."""
