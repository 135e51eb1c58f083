"""A Python worker that Spark has started and that did not report within ten seconds: what to do then.

Spark waits no longer (`PythonWorkerFactory.createSimpleWorker`, of 4.2; no setting changes it) and ends the query, on a
machine on which everything is slow: while others start on it, or after it was stopped. Nothing was written then; so the
query is started again, some times in a row, before the job gives up as it does for any other error.
"""

from __future__ import annotations

MARK = "Python worker failed to connect back"

TIMES = 5
"""In a row, without a batch in between: a minute and more."""


class LateError(Exception):
    """The query is to be started again; the text says so to a person."""


class LateWorkers:
    """How often it happened since the last batch."""

    def __init__(self) -> None:
        self._count = 0

    def committed(self) -> None:
        """A batch was written."""
        self._count = 0

    def look(self, error: BaseException, failure: BaseException | None) -> None:
        """Raise a LateError if what ended a query was this, and not for too often; `failure` is one of the sink."""
        if failure is None and MARK in str(error) and self._count < TIMES:
            self._count += 1
            raise LateError(
                f"a Python worker of Spark did not start within 10 s ({self._count} of {TIMES}): this machine is busy; "
                "the query is started again, nothing was written"
            )
