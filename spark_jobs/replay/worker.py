"""A process of the pool: parses pieces for everybody, and steps the lanes it owns. It imports neither Arrow nor Spark.

Commands and answers go over one pipe, in order. A lane lives in one process from its first event to its last, so
nothing of its state ever travels.
"""

from __future__ import annotations

import gc
import itertools
import os
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread

import msgspec

from ingest.archives.opened import UNREADABLE, unreadable
from ingest.archives.ranges import FileRange, ParsedRange, parse_pieces
from ingest.dialects.line_patterns import Patterns
from ingest.errors import IngestError
from ingest.router import Directory
from spark_jobs import safe_step
from spark_jobs.errors import InputFileError, JobError, TablesError
from spark_jobs.lane_model import LaneModel, ModelFactory
from spark_jobs.outputs import encode_rows
from spark_jobs.replay.feeding import Feed
from spark_jobs.replay.pieces import ParsedPiece, spill
from spark_jobs.replay.portions import Entries, Portion

COLLECT_EVERY = 32
"""Portions between two runs of Python's garbage collector; see `processor.COLLECT_EVERY`."""


class Parsed(msgspec.Struct, array_like=True, frozen=True):
    """Answer to a range: its pieces in order, and the clients this process has not told of before."""

    pieces: list[ParsedPiece]
    learned: Entries


class Stepped(msgspec.Struct, array_like=True, frozen=True):
    """Answer to a portion: (lane, table, encoded rows) of the lanes of one process."""

    portion: int
    outputs: list[tuple[int, str, bytes]]
    unattributed: int


def run(
    pipe: Connection,
    factory: ModelFactory,
    spill_directory: str,
    name: str,
    own: list[int],
    lanes: int,
    with_care: bool = False,
    recognises: bool = False,
) -> None:
    """Serve commands until the pipe is closed or None comes. The last arguments are those of `Worker`."""
    gc.disable()
    Thread(target=_end_with_parent, daemon=True).start()
    worker = Worker(factory, Path(spill_directory), name, own, lanes, with_care=with_care, recognises=recognises)
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
        except JobError as refusal:
            pipe.send(refusal)
        except IngestError as refusal:
            pipe.send(InputFileError(refusal.what, refusal.where, refusal.expected, refusal.next_step))


def _end_with_parent() -> None:
    """A parent that was killed closes the pipe, which is seen only when a command is done: that may be an hour."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Worker:
    """The lanes of one process."""

    def __init__(
        self,
        factory: ModelFactory,
        spill_directory: Path,
        name: str,
        own: list[int],
        lanes: int,
        *,
        fold: bool = True,
        with_care: bool = False,
        recognises: bool = False,
    ) -> None:
        """Begin with lanes that have seen nothing; `fold` as in `ingest.archives.ranges.parse_range`.

        `with_care`: keep the state before each portion, so that an event that cannot be applied is left out. Else it is
        a `NotAppliedError`. `recognises`: see `ingest.dialects.line_patterns`.
        """
        self._directory = spill_directory
        self._name = name
        self._files = itertools.count()
        self._of = lanes
        self._lanes: dict[int, LaneModel] = {lane: factory.new(lane) for lane in own}
        self._clients = Directory()
        self._told: dict[tuple[str, str], set[int]] = {}
        self._fold = fold
        self._patterns = Patterns() if recognises else None
        self._factory = factory
        self._with_care = with_care
        self._steps = 0

    def parse(self, piece: FileRange) -> Parsed:
        """Parse a range into pieces on disk."""
        try:
            try:
                return self._parse(piece, fold=self._fold)
            except (*UNREADABLE, JobError, IngestError):
                raise
            except Exception:
                if not self._fold:
                    raise
                return self._parse(piece, fold=False)  # a line that folding raises at is read by itself
        except UNREADABLE as error:
            said = unreadable(piece.path, error)
            raise InputFileError(said.what, said.where, said.expected, said.next_step) from error

    def _parse(self, piece: FileRange, *, fold: bool) -> Parsed:
        pieces: list[ParsedPiece] = []
        learned: Entries = []
        try:
            for parsed in parse_pieces(piece, fold=fold, patterns=self._patterns):
                pieces.append(self._spilled(parsed))
                learned.extend(parsed.directory)
        except Exception:
            for spilled in pieces:
                Path(spilled.path).unlink()
            raise
        return Parsed(pieces, self._news(learned))

    def _spilled(self, parsed: ParsedRange) -> ParsedPiece:
        """Write a piece; a disk that is full is no fault of the file that is read."""
        try:
            return spill(parsed, self._directory / f"{self._name}-{next(self._files)}")
        except OSError as error:
            raise TablesError(
                f"parsed lines cannot be written: {error.strerror or error}",
                str(self._directory),
                "room beside the tables for what is parsed ahead, about as much as the logs of one portion",
                "make room, or give --tables on a larger disk",
            ) from error

    def step(self, portion: Portion) -> Stepped:
        """Feed one portion to every lane of this process."""
        self._clients.merge(portion.learned)
        feed = Feed(list(self._lanes), self._of)
        for piece in portion.pieces:
            feed.add(piece, self._clients)
        feed.end(portion.streams)
        outputs: list[tuple[int, str, bytes]] = []
        for lane, model in list(self._lanes.items()):
            state = safe_step.kept(model) if self._with_care else safe_step.NEW
            self._lanes[lane], rows = safe_step.step(
                model,
                self._factory,
                lane,
                feed.events.pop(lane),
                feed.stretches.pop(lane),
                finish=portion.last,
                before=(lambda state=state: state) if self._with_care else None,  # type: ignore[misc]
            )
            outputs.extend((lane, name, encode_rows(lines)) for name, lines in rows.items() if lines)
        self._steps += 1
        if self._steps % COLLECT_EVERY == 0:
            gc.collect()
            gc.freeze()
        return Stepped(portion.number, outputs, feed.unattributed)

    def _news(self, entries: Entries) -> Entries:
        """Entries that say more than this process has told before: a client is in every piece of its life."""
        news: Entries = []
        for client_id, host, shards in entries:
            told = self._told.setdefault((client_id, host), set())
            if not told.issuperset(shards):
                told.update(shards)
                news.append((client_id, host, shards))
        return news
