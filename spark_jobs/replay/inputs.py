"""Files of a replay: the plan of the logs in groups, and what was captured of the offsets topic and of the admin API as
pieces.

A group is what is parsed before the next portions are made. Groups follow from the files alone, never from which
process was faster, so the same files always give the same portions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ingest.admin.samples import STREAM, ReadSamples
from ingest.archives.opened import UNREADABLE, open_log
from ingest.archives.ranges import MAX_RECORD_LINE_BYTES, FileRange, ParsedRange, read_offsets_file
from ingest.offsets.records import SOURCE
from ingest.router import Directory
from kardia.events import ALL_SHARDS, DEFAULT_OFFSETS_PARTITIONS, Event, Kind, lane_of
from spark_jobs.errors import InputFileError
from spark_jobs.replay.pieces import ParsedPiece, spill
from spark_jobs.replay.portions import Entries

REJECTED_LANE = 0
"""Lane that takes the refused records, as in the live topic."""

GROUP_BYTES = 192 << 20
"""Log bytes of one group, about: what one portion holds, three ranges of a plain file."""

PACKED = (".gz", ".zst", ".xz", ".bz2")
"""Ends of names of compressed logs."""

GZIP_RATIO = 15
"""A request log shrinks to a twenty-fifth at best; taken lower, so that a group of archives is rather too small."""


def size_of(piece: FileRange) -> int:
    """Bytes of a range on disk."""
    return (Path(piece.path).stat().st_size if piece.end < 0 else piece.end) - piece.start


def groups_of(ranges: Sequence[FileRange]) -> list[list[int]]:
    """Numbers of the ranges in groups, in order of time. A range ends with a line and is a little longer than it was
    to be, so a group takes one more if half of it has room."""
    groups: list[list[int]] = [[]]
    filled = 0
    for number, piece in enumerate(ranges):
        size = size_of(piece) * (GZIP_RATIO if piece.path.endswith(PACKED) else 1)
        if groups[-1] and filled + size // 2 > GROUP_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(number)
        filled += size
    return groups


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What cannot be read of a captured file, as a sentence."""
    try:
        yield
    except UNREADABLE as error:
        raise InputFileError(
            f"the file cannot be read to its end: {error}",
            str(path),
            "JSON lines as `kardia capture` writes them, plain or compressed",
            "capture it again, or check the file (`gzip -t` for .gz, `zstd -t` for .zst) and its permissions",
        ) from error


def captured_pieces(
    offsets: Sequence[Path], samples: Sequence[Path], lanes: int, spill_directory: Path
) -> tuple[list[ParsedPiece], Entries]:
    """Files of `kardia capture` as pieces that come before every line."""
    pieces, entries = _offsets_pieces(offsets, lanes, spill_directory)
    return [*pieces, *_samples_pieces(samples, lanes, spill_directory)], entries


def _samples_pieces(paths: Sequence[Path], lanes: int, spill_directory: Path) -> list[ParsedPiece]:
    """Recorded samples, one piece for each run of a sampler in a file; positions are their numbers."""
    pieces: list[ParsedPiece] = []
    for number, path in enumerate(paths):
        by_source: dict[str, list[list[Event]]] = {}
        with _readable(path), open_log(path) as opened:
            read = ReadSamples(iter(lambda: opened.readline(MAX_RECORD_LINE_BYTES), b""), DEFAULT_OFFSETS_PARTITIONS)
            for event in read:
                held = by_source.setdefault(event.source, [[] for _ in range(lanes)])
                for lane in _lanes_of(event, lanes):
                    held[lane].append(event)
        if not by_source:  # nobody was there: it was asked all the same
            by_source[f"{STREAM}/none"] = [[] for _ in range(lanes)]
        for source, events in by_source.items():
            found = [event for lane in events for event in lane]
            rejected = sum(event.kind == Kind.REJECTED for event in found)
            end = max((event.end for event in found), default=0)
            refused = {"bad_json": rejected} if rejected else {}
            parsed = ParsedRange(source, 0, end, events, [], [], len(found), {}, refused, 0.0, read.known_to_ms)
            pieces.append(spill(parsed, spill_directory / f"samples-{number}-{len(pieces)}"))
    return pieces


def _lanes_of(event: Event, lanes: int) -> Iterable[int]:
    """Where an event of a recorded file goes: what is about all shards to every lane, what was refused to one."""
    if event.kind == Kind.REJECTED:
        return (REJECTED_LANE,)
    return range(lanes) if event.shard == ALL_SHARDS else (lane_of(event.shard, lanes),)


def _offsets_pieces(paths: Sequence[Path], lanes: int, spill_directory: Path) -> tuple[list[ParsedPiece], Entries]:
    """Captured files as pieces that come before every line: the observer holds a record until its own instant."""
    pieces = []
    directory = Directory()
    for number, path in enumerate(paths):
        events: list[list[Event]] = [[] for _ in range(lanes)]
        count = rejected = 0
        last_at_ms = 0.0
        unknown: dict[int, int] = {}
        with _readable(path):
            for event in read_offsets_file(path, unknown):
                count += 1
                lane = REJECTED_LANE if event.shard == ALL_SHARDS else lane_of(event.shard, lanes)
                events[lane].append(event)
                rejected += event.kind == Kind.REJECTED
                last_at_ms = max(last_at_ms, event.logged_at_ms)
                directory.learn(event)
        if count and rejected == count:
            raise InputFileError(
                f"none of its {count:,} lines is a record",
                str(path),
                "JSON lines as `kardia capture` writes them",
                "give logs as --request-log and --server-log; --offsets is for captures of __consumer_offsets",
            )
        skipped = sum(unknown.values())
        if not count and not skipped:
            continue
        source = next((event.source for lane in events for event in lane), f"{SOURCE}/file")
        ignored = {"unknown_record": skipped} if skipped else {}
        refused = {"bad_record": rejected}
        parsed = ParsedRange(source, 0, count, events, [], [], count + skipped, ignored, refused, 0.0, last_at_ms)
        pieces.append(spill(parsed, spill_directory / f"offsets-{number}"))
    return pieces, list(directory.entries())
