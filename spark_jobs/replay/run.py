"""A replay from files to tables. Clocks, progress bars and sentences are the command line's business.

Steps of a portion: (1) its pieces are parsed and spilled, (2) every lane is stepped with them, (3) the writer's steps
(`spark_jobs.writers`), (4) the spilled files are removed. Nothing is resumed: a replay that was interrupted is started
again with --overwrite, which costs less than keeping the state of it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ingest.archives.found import Archives, files_of, gather
from ingest.archives.missing_files import after_holes
from ingest.archives.planning import refused_range
from ingest.archives.ranges import FileRange, plan
from ingest.dialects.line_patterns import COMPILES, WORTH_BYTES
from ingest.errors import LogFileError, SettingsError
from kardia.events import DEFAULT_LANES
from kardia.observe.careful import REASON as NOT_APPLIED
from kardia.tables import TABLES
from spark_jobs.errors import InputFileError, NotAppliedError, TablesError
from spark_jobs.lane_model import ModelFactory
from spark_jobs.leases.disk_lease import held
from spark_jobs.outputs import merge
from spark_jobs.replay.inputs import captured_pieces, groups_of, size_of
from spark_jobs.replay.pieces import ParsedPiece
from spark_jobs.replay.pool import Pool
from spark_jobs.replay.portions import Entries, Portion, Portions
from spark_jobs.replay.summary import Summary, count_tables
from spark_jobs.replay.worker import Parsed
from spark_jobs.schemas import to_tables
from spark_jobs.storage_errors import disk_named
from spark_jobs.writers import fence
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import highest_batch, is_there, path_of, take_back, versions_of
from stores import delta
from stores.locations import Folder, Store

PARSED_SHARE = 0.4
"""Share of a range's progress that parsing it is; the rest is stepping and writing its portion."""


SPILL_PREFIX = ".kardia-spill-"
"""Directories beside the tables that hold what is parsed ahead."""


@dataclass(frozen=True)
class Inputs:
    """Files of a replay and how to read them."""

    request_logs: Sequence[Path] = ()
    server_logs: Sequence[Path] = ()
    offsets: Sequence[Path] = ()
    zone: str = "UTC"
    lanes: int = DEFAULT_LANES
    files: Sequence[Path] = ()
    """Files, folders and patterns that are to be known by their content."""
    message_field: str = ""
    """Field of JSON exports that holds the line; "": found out."""
    log_pattern: str = ""
    """Conversion pattern of the logs; "": of a layout that is known."""

    def given(self) -> list[Path]:
        """All files that are meant; refuses a name that means none, before anything is started."""
        with _refused():
            return files_of([*self.files, *self.request_logs, *self.server_logs, *self.offsets])

    def opened(self, scratch: Path) -> Opened:
        """Find out what the files are and plan them; what is wrapped is unwrapped into `scratch`."""
        with _refused():
            found = gather(
                self.files,
                self.request_logs,
                self.server_logs,
                self.offsets,
                zone=self.zone,
                message_field=self.message_field,
                scratch=scratch,
                log_pattern=self.log_pattern,
            )
            ranges = plan(
                found.request_logs,
                found.server_logs,
                zone=self.zone,
                lanes=self.lanes,
                log_pattern=self.log_pattern,
            )
            refused = [refused_range(file, self.zone, self.lanes) for file in found.refused]
        return Opened([*refused, *ranges], found)


@dataclass(frozen=True)
class Opened:
    """What a replay reads."""

    ranges: list[FileRange]
    """Of the logs, in order of time."""
    archives: Archives

    @property
    def offsets(self) -> list[Path]:
        """Captures."""
        return self.archives.offsets

    @property
    def samples(self) -> list[Path]:
        """Captures of the admin API."""
        return self.archives.samples


@contextmanager
def _refused() -> Iterator[None]:
    """What is refused of a file, as an error of a replay."""
    try:
        yield
    except (LogFileError, SettingsError) as refusal:
        raise InputFileError(refusal.what, refusal.where, refusal.expected, refusal.next_step) from refusal


@dataclass(frozen=True)
class Told:
    """What a progress bar needs."""

    total_bytes: Callable[[int], None] = lambda _total: None
    advanced: Callable[[float, int], None] = lambda _bytes, _lines: None
    again: Callable[[str], None] = lambda _why: None
    """The replay begins again from the first line, with care: why."""


@dataclass
class _Flight:
    """A portion that is being stepped."""

    portion: Portion
    outputs: list[tuple[int, str, bytes]] = field(default_factory=list)
    missing: int = 0
    unattributed: int = 0


def prepare_tables(tables: Folder, *, append: bool, overwrite: bool) -> int:
    """First batch of a replay into this directory; refuses to mix with what is there unless told how."""
    names = tuple(TABLES)
    if overwrite:
        for name in names:
            path = path_of(tables, name)
            if is_there(tables, name):
                if isinstance(path, Store):
                    delta.remove(path)
                else:
                    shutil.rmtree(path)
        return 0
    highest = highest_batch(tables, names)
    if highest is None:
        return 0
    if not append:
        raise TablesError(
            f"the tables already hold batches up to {highest}",
            str(tables),
            "an empty directory, so that one replay is one truth",
            "give another directory, or --overwrite to replace them, or --append to add to them (what is there of the "
            "same logs is then there twice; later rows supersede)",
        )
    return highest + 1


def spill_parent(tables: Folder) -> Path | None:
    """Where the directory for what is parsed ahead is made: beside the tables, and not in a system directory that may
    be small or in memory; where they lie in a store there is no other (TMPDIR names another one)."""
    return tables if isinstance(tables, Path) else None


def replay(
    inputs: Inputs,
    tables: Folder,
    factory: ModelFactory,
    *,
    workers: int = 0,
    append: bool = False,
    overwrite: bool = False,
    told: Told | None = None,
) -> Summary:
    """Replay files into tables with a pool of processes."""
    told = told or Told()
    inputs.given()
    with ExitStack() as stack:
        stack.enter_context(disk_named(tables))
        stack.enter_context(held(tables, "writer of these tables"))
        if isinstance(tables, Path):
            for left in tables.glob(f"{SPILL_PREFIX}*"):  # by a run that was killed; the lease says that none goes on
                shutil.rmtree(left)
        opened = inputs.opened(scratch_folder(stack, tables))
        first_batch = prepare_tables(tables, append=append, overwrite=overwrite)
        size = min(workers or os.cpu_count() or 1, inputs.lanes)
        attempt = partial(_attempt, opened, inputs.lanes, tables, factory, size, first_batch, told)
        try:
            summary = attempt(with_care=False)
        except NotAppliedError as error:
            told.again(str(error))
            summary = attempt(with_care=True)
    summary.archives = opened.archives
    return count_tables(summary, tables, first_batch)


def scratch_folder(stack: ExitStack, tables: Folder) -> Path:
    """A folder that is removed with the stack: see `spill_parent`."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=SPILL_PREFIX, dir=spill_parent(tables))))


def _attempt(
    opened: Opened,
    lanes: int,
    tables: Folder,
    factory: ModelFactory,
    size: int,
    first_batch: int,
    told: Told,
    *,
    with_care: bool,
) -> Summary:
    """One run over all files. An event that cannot be applied ends it, what it wrote is taken back, and it is run again
    with care: only then the state before each portion is kept, which costs time and memory."""
    with ExitStack() as stack:
        writer = DeltaRsWriter(tables, f"kardia-replay/{secrets.token_hex(4)}")
        stack.callback(writer.close)
        writer.prepare()
        if isinstance(tables, Store):
            fence.check_alone(tables, tuple(TABLES), writer.app_id, first_batch)
        versions = versions_of(tables)
        spill = scratch_folder(stack, tables)
        recognises = COMPILES and sum(map(size_of, opened.ranges)) >= WORTH_BYTES * size
        pool = stack.enter_context(Pool(factory, spill, size, lanes, with_care=with_care, recognises=recognises))
        run = _Run(opened.ranges, pool, writer, first_batch, told)
        try:
            return run.run(*captured_pieces(opened.offsets, opened.samples, lanes, spill))
        except NotAppliedError:
            take_back(tables, versions)
            raise


class _Run:
    """The loop of one replay."""

    def __init__(
        self,
        ranges: list[FileRange],
        pool: Pool,
        writer: DeltaRsWriter,
        first_batch: int,
        told: Told,
    ) -> None:
        self._ranges = ranges
        self._groups = groups_of(ranges)
        self._pool = pool
        self._writer = writer
        self._first_batch = first_batch
        self._told = told
        self._portions = Portions(after_holes=after_holes(ranges))
        self._parsed: dict[int, Parsed] = {}
        self._asked = 0
        self._formed = 0
        self._flights: deque[_Flight] = deque()
        self._by_number: dict[int, _Flight] = {}
        self._lines: dict[str, tuple[int, float]] = {}
        self._summary = Summary()

    def run(self, captured: list[ParsedPiece], learned: Entries) -> Summary:
        """Run to the last line."""
        self._told.total_bytes(sum(map(size_of, self._ranges)))
        for piece in captured:
            self._count(piece, 0.0)
        self._portions.add(captured, learned)
        self._ask()
        if not self._ranges:
            self._form()
        while self._flights or self._formed < len(self._groups):
            for number, answer in self._pool.take():
                if isinstance(answer, Parsed) and number is not None:
                    self._take_parsed(number, answer)
                elif not isinstance(answer, Parsed):
                    flight = self._by_number[answer.portion]
                    flight.outputs.extend(answer.outputs)
                    flight.missing -= 1
                    # Every process sees the whole directory and so counts the same.
                    flight.unattributed = answer.unattributed
            while self._flights and not self._flights[0].missing:
                self._commit(self._flights.popleft())
                self._ask()
        self._summary.span_ms = self._portions.span()
        return self._summary

    def _ask(self) -> None:
        """Have the group after the one that is stepped parsed, and no further ahead."""
        if not self._ranges:
            self._formed = len(self._groups)
            return
        while self._asked < len(self._groups) and self._asked <= self._formed + (0 if len(self._flights) > 1 else 1):
            for number in self._groups[self._asked]:
                self._pool.parse(number, self._ranges[number])
            self._asked += 1

    def _take_parsed(self, number: int, answer: Parsed) -> None:
        self._parsed[number] = answer
        share = size_of(self._ranges[number]) / max(1, len(answer.pieces))
        for piece in answer.pieces:
            self._count(piece, share)
            self._told.advanced(share * PARSED_SHARE, 0)
        while self._formed < len(self._groups) and all(one in self._parsed for one in self._groups[self._formed]):
            for one in self._groups[self._formed]:
                parsed = self._parsed.pop(one)
                self._portions.add(parsed.pieces, parsed.learned)
            self._formed += 1
            self._form()
            self._ask()

    def _count(self, piece: ParsedPiece, share: float) -> None:
        self._lines[piece.path] = piece.lines, share
        self._summary.lines += piece.lines
        self._summary.events += piece.events
        self._summary.ignored += sum(piece.ignored.values())
        self._summary.rejected += sum(piece.rejected.values())

    def _form(self) -> None:
        """Make the portions that are ready now that a group is parsed."""
        first = self._groups[self._formed][0] if self._formed < len(self._groups) else len(self._ranges)
        coming = [(piece.source, piece.first_at_ms) for piece in self._ranges[first:]]
        for portion in self._portions.ready(coming):
            flight = _Flight(portion, missing=self._pool.size)
            self._flights.append(flight)
            self._by_number[portion.number] = flight
            self._pool.step(portion)

    def _commit(self, flight: _Flight) -> None:
        portion = flight.portion
        batch_id = self._first_batch + portion.number
        tables = to_tables(merge(flight.outputs), batch_id)
        self._writer.write(batch_id, tables)
        if "rejected" in tables:
            self._summary.not_applied += tables["rejected"]["reason"].to_pylist().count(NOT_APPLIED)
        del self._by_number[portion.number]
        self._summary.portions += 1
        self._summary.unattributed += flight.unattributed
        for piece in portion.pieces:
            Path(piece.path).unlink()
            lines, share = self._lines.pop(piece.path)
            self._told.advanced(share * (1 - PARSED_SHARE), lines)
