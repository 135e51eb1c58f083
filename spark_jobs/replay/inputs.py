"""Files of a replay: the plan of the logs in groups, and captured records of `__consumer_offsets` as a piece.

A group is what is parsed before the next portions are made. Groups follow from the files alone, never from which
process was faster, so the same files always give the same portions.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from ingest.offline import FileRange, ParsedRange, read_offsets_file
from ingest.offsets_records import SOURCE
from ingest.router import Directory
from kardia.events import ALL_SHARDS, Event, Kind, lane_of
from spark_jobs.errors import InputFileError
from spark_jobs.replay.pieces import ParsedPiece, spill
from spark_jobs.replay.portions import Entries

REJECTED_LANE = 0
"""Lane that takes the refused records, as in the live topic."""

GROUP_BYTES = 128 << 20
"""Log bytes of one group: what one portion holds."""

GZIP_RATIO = 15
"""A request log shrinks to a twenty-fifth at best; taken lower, so that a group of archives is rather too small."""


def check_files(paths: Sequence[Path]) -> None:
    """Refuse files that are not there before anything is started."""
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise InputFileError(
            f"there is no such file: {', '.join(missing[:5])}{' and others' if len(missing) > 5 else ''}",
            "the files to replay",
            "request logs, server logs and captures, plain or .gz",
            "check the names",
        )


def size_of(piece: FileRange) -> int:
    """Bytes of a range on disk."""
    return (Path(piece.path).stat().st_size if piece.end < 0 else piece.end) - piece.start


def groups_of(ranges: Sequence[FileRange]) -> list[list[int]]:
    """Numbers of the ranges in groups, in order of time."""
    groups: list[list[int]] = [[]]
    filled = 0
    for number, piece in enumerate(ranges):
        size = size_of(piece) * (GZIP_RATIO if piece.path.endswith(".gz") else 1)
        if groups[-1] and filled + size > GROUP_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(number)
        filled += size
    return groups


def offsets_pieces(paths: Sequence[Path], lanes: int, spill_directory: Path) -> tuple[list[ParsedPiece], Entries]:
    """Captured files as pieces that come before every line: the observer holds a record until its own instant."""
    pieces = []
    directory = Directory()
    for number, path in enumerate(paths):
        events: list[list[Event]] = [[] for _ in range(lanes)]
        count = rejected = 0
        last_at_ms = 0.0
        unknown: dict[int, int] = {}
        try:
            for event in read_offsets_file(path, unknown):
                count += 1
                lane = REJECTED_LANE if event.shard == ALL_SHARDS else lane_of(event.shard, lanes)
                events[lane].append(event)
                rejected += event.kind == Kind.REJECTED
                last_at_ms = max(last_at_ms, event.logged_at_ms)
                directory.learn(event)
        except (OSError, EOFError, zlib.error) as error:
            raise InputFileError(
                f"the file cannot be read to its end: {error}",
                str(path),
                "JSON lines as `kardia capture` writes them, plain or .gz",
                "capture it again, or check the file (`gzip -t` for .gz) and its permissions",
            ) from error
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
