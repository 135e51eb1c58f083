"""A process of the pool: parses pieces for everybody, and steps the lanes it owns. It imports neither Arrow nor Spark.

Commands and answers are tuples over one pipe, in order. A lane lives in one process from its first event to its last, so
nothing of its state ever travels.
"""

from __future__ import annotations

import gc
import itertools
import zlib
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from operator import itemgetter
from pathlib import Path

import msgspec

from ingest.errors import IngestError
from ingest.offline import FileRange, parse_pieces, tick
from kardia.events import Event
from spark_jobs.errors import InputFileError, JobError
from spark_jobs.model import LaneModel, ModelFactory
from spark_jobs.outputs import encode_rows
from spark_jobs.replay.pieces import Piece, load, spill
from spark_jobs.replay.windows import Reading, Task

COLLECT_EVERY = 32
"""Windows between two runs of Python's garbage collector; see `processor.COLLECT_EVERY`."""


class Step(msgspec.Struct, array_like=True, frozen=True):
    """One window for one lane."""

    window: int
    lane: int
    tasks: list[Task]
    readings: list[Reading]
    last: bool


class Parsed(msgspec.Struct, frozen=True):
    """Answer to a range: its pieces in order."""

    pieces: list[Piece]


class Stepped(msgspec.Struct, frozen=True):
    """Answer to a step: rows by table, encoded."""

    window: int
    lane: int
    rows: dict[str, bytes]


def run(pipe: Connection, factory: ModelFactory, spill_directory: str, name: str) -> None:
    """Serve commands until the pipe is closed or None comes."""
    gc.disable()
    worker = Worker(factory, Path(spill_directory), name)
    while True:
        try:
            command = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if command is None:
            return
        try:
            pipe.send(worker.parse(command) if isinstance(command, FileRange) else worker.step(command))
        except KeyboardInterrupt:
            return
        except (JobError, IngestError) as refusal:
            pipe.send(refusal if isinstance(refusal, JobError) else _refused(refusal))


class Worker:
    """The lanes of one process."""

    def __init__(self, factory: ModelFactory, spill_directory: Path, name: str) -> None:
        """Begin without lanes; they are made with their first step."""
        self._factory = factory
        self._directory = spill_directory
        self._name = name
        self._files = itertools.count()
        self._lanes: dict[int, LaneModel] = {}
        self._steps = 0

    def parse(self, piece: FileRange) -> Parsed:
        """Parse a range into pieces on disk."""
        try:
            return Parsed(
                [spill(parsed, self._directory / f"{self._name}-{next(self._files)}") for parsed in parse_pieces(piece)]
            )
        except (OSError, EOFError, zlib.error) as error:
            raise InputFileError(
                f"the file cannot be read to its end: {error}",
                piece.path,
                "a plain or gzip-compressed log that is complete and readable",
                "check the file (`gzip -t` for .gz) and its permissions, or leave it out",
            ) from error

    def step(self, step: Step) -> Stepped:
        """Feed one window to one lane."""
        model = self._lanes.get(step.lane)
        if model is None:
            model = self._lanes[step.lane] = self._factory.new(step.lane)
        events: list[Event] = []
        counted: Counter[str] = Counter()
        for path, tasks in itertools.groupby(step.tasks, key=lambda task: task.path):
            events.extend(_of_piece(path, list(tasks), counted))
        events.extend(
            tick(
                reading.source,
                reading.start,
                reading.end,
                reading.complete_to_ms,
                counted[reading.source],
                reading.lines,
                reading.ignored,
                reading.complete_to_ms,
            )
            for reading in step.readings
        )
        rows = {name: list(lines) for name, lines in model.step(events).items()}
        if step.last:
            for name, lines in model.finish().items():
                rows.setdefault(name, []).extend(lines)
        self._steps += 1
        if self._steps % COLLECT_EVERY == 0:
            del events
            gc.collect()
            gc.freeze()
        return Stepped(step.window, step.lane, {name: encode_rows(lines) for name, lines in rows.items() if lines})


def _of_piece(path: str, tasks: list[Task], counted: Counter[str]) -> Iterator[Event]:
    """Events of one piece for one lane, in the order of their positions."""
    loaded = load(path, [task.segment for task in tasks])
    events: list[Event] = []
    for task, found in zip(tasks, loaded, strict=True):
        counted[task.source] += task.counted
        if not task.shards:
            events.extend(found)
        for shard in task.shards:
            events.extend([Event(event[0], shard, *event[2:]) for event in found])
    if len(tasks) > 1:
        events.sort(key=itemgetter(3))  # `start`; a piece has one source
    return iter(events)


def _refused(error: IngestError) -> InputFileError:
    return InputFileError(error.what, error.where, error.expected, error.next_step)
