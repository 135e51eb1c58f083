"""Processes of a replay and what each of them does next: step a portion of its lanes before parsing ahead.

A lane belongs to one process. A process that dies takes the replay with it: a replay is repeated, not repaired.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType

from ingest.archives.ranges import FileRange
from spark_jobs.errors import JobError, StoppedError
from spark_jobs.lane_model import ModelFactory
from spark_jobs.replay import worker
from spark_jobs.replay.portions import Portion
from spark_jobs.replay.worker import Parsed, Stepped

STOP_PATIENCE_S = 5.0


class Pool:
    """A fixed number of processes."""

    def __init__(
        self,
        factory: ModelFactory,
        spill_directory: Path,
        size: int,
        lanes: int,
        *,
        with_care: bool = False,
        recognises: bool = False,
    ) -> None:
        """Start the processes; lane i belongs to process i modulo their number. `with_care`, `recognises`: see
        `worker.Worker`."""
        self.size = size
        # spawn: the parent has threads (Delta's, the progress bar's), and a fork of it may inherit a held lock.
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for number in range(size):
            here, there = context.Pipe()
            process = context.Process(
                target=worker.run,
                args=(
                    *(there, factory, str(spill_directory), str(number)),
                    *(list(range(number, lanes, size)), lanes, with_care, recognises),
                ),
                daemon=True,
            )
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)
        self._steps: list[deque[Portion]] = [deque() for _ in range(size)]
        self._ranges: deque[tuple[int, FileRange]] = deque()
        self._busy: dict[int, int | None] = {}

    def step(self, portion: Portion) -> None:
        """Queue a portion with every process."""
        for queue in self._steps:
            queue.append(portion)
        self._feed()

    def parse(self, number: int, piece: FileRange) -> None:
        """Queue a range; its answer carries the number."""
        self._ranges.append((number, piece))
        self._feed()

    def take(self) -> list[tuple[int | None, Parsed | Stepped]]:
        """Wait for answers; each with the number of its range, None for a step."""
        by_pipe = {self._pipes[index]: index for index in self._busy}
        answers: list[tuple[int | None, Parsed | Stepped]] = []
        for pipe in wait(list(by_pipe)):
            index = by_pipe[pipe]  # type: ignore[index]
            number = self._busy.pop(index)
            answers.append((number, self._receive(index)))
        self._feed()
        return answers

    def _receive(self, index: int) -> Parsed | Stepped:
        try:
            answer = self._pipes[index].recv()
        except (EOFError, ConnectionError) as error:
            process = self._processes[index]
            process.join(STOP_PATIENCE_S)
            raise StoppedError(
                f"process {index + 1} of the pool ended with exit code {process.exitcode}",
                "replay",
                "a process that lives until the last line",
                "look at the error it printed; -9 means that the system ran out of memory: use fewer --workers",
            ) from error
        if isinstance(answer, JobError):
            raise answer
        if not isinstance(answer, Parsed | Stepped):
            raise TypeError(f"a worker answered with {type(answer)}")
        return answer

    def _feed(self) -> None:
        for index, pipe in enumerate(self._pipes):
            if index in self._busy:
                continue
            if self._steps[index]:
                pipe.send(self._steps[index].popleft())
                self._busy[index] = None
            elif self._ranges:
                number, piece = self._ranges.popleft()
                pipe.send(piece)
                self._busy[index] = number

    def __enter__(self) -> Pool:
        """Give the running pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the processes: kindly after success, at once otherwise."""
        for index, pipe in enumerate(self._pipes):
            if kind is None and index not in self._busy:
                pipe.send(None)
            else:
                self._processes[index].terminate()
        for process, pipe in zip(self._processes, self._pipes, strict=True):
            process.join(STOP_PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()
