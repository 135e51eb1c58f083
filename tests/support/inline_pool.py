"""The pool of a replay without processes: what is asked for is done when the answers are taken, in this process.

Starting processes takes longer than a replay of a few lines; the work is that of the same `Worker`.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType

from ingest.archives.ranges import FileRange
from ingest.errors import IngestError
from spark_jobs.errors import InputFileError
from spark_jobs.lane_model import ModelFactory
from spark_jobs.replay.portions import Portion
from spark_jobs.replay.worker import Parsed, Stepped, Worker


class InlinePool:
    """In the place of `spark_jobs.replay.run.Pool`."""

    size = 1

    def __init__(
        self,
        factory: ModelFactory,
        spill_directory: Path,
        _size: int,
        lanes: int,
        *,
        with_care: bool = False,
        recognises: bool = False,
    ) -> None:
        """As `Pool`; there is one process, whatever is asked for."""
        own = list(range(lanes))
        self._worker = Worker(
            factory, spill_directory, "inline", own, lanes, with_care=with_care, recognises=recognises
        )
        self._steps: deque[Portion] = deque()
        self._ranges: deque[tuple[int, FileRange]] = deque()

    def step(self, portion: Portion) -> None:
        """Queue a portion."""
        self._steps.append(portion)

    def parse(self, number: int, piece: FileRange) -> None:
        """Queue a range; its answer carries the number."""
        self._ranges.append((number, piece))

    def take(self) -> list[tuple[int | None, Parsed | Stepped]]:
        """Do what is next: a portion before a range, as a process of the pool does."""
        if self._steps:
            return [(None, self._worker.step(self._steps.popleft()))]
        number, piece = self._ranges.popleft()
        try:
            return [(number, self._worker.parse(piece))]
        except IngestError as refusal:
            raise InputFileError(refusal.what, refusal.where, refusal.expected, refusal.next_step) from refusal

    def __enter__(self) -> InlinePool:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is left to be stopped."""
