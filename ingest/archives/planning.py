"""Which bytes of which archived files are to be read, in which order, and who wrote them. See `ingest.archives.ranges`.

Looks at heads and tails of files only. A plain file is cut at line ends; a .gz, and a file whose stamps cross the end
of summer time, is one range. A copy of another file is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ingest.archives.kinds import HEAD_BYTES
from ingest.archives.opened import head_of, packing_of, unreadable
from ingest.archives.refusals import STREAM as ARCHIVE
from ingest.archives.refusals import RefusedFile, RefusedLines
from ingest.dialects import MAX_LINE_BYTES, UNNAMED, Asked, Dialect, Listener, better
from ingest.dialects.line_patterns import Patterns
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.dialects.text_layout import MAX_JOINED_LINES
from ingest.errors import SettingsError
from ingest.stamps import crosses_fold, zone_named
from ingest.tail.incarnation import name_of
from kardia.events import DEFAULT_LANES, DEFAULT_OFFSETS_PARTITIONS

RANGE_BYTES = 64 * 1024 * 1024
"""Size of a range of a plain file: some 60,000 lines, 0.3 s of work. Larger ranges fold better: at 10,000 lines a
second 32 MiB are three seconds, in which a member sends one heartbeat, and its head costs more than what it saves."""

ARCHIVES = f"archives/{ARCHIVE}"
"""`BROKER/STREAM` of entries that a wrapper damaged."""


class FileRange(msgspec.Struct, frozen=True):
    """Bytes of one file. `end` -1: to the end (of a .gz, whose length is not known before)."""

    path: str
    stream: str
    source: str
    start: int
    end: int
    zone: str
    first_at_ms: float
    """Stamp of the range's first stamped line; ranges are sorted by it."""
    last: bool
    """Whether this is the last range of its file."""
    lanes: int = DEFAULT_LANES
    offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS
    log_pattern: str = ""


def dialect_for(
    stream: str,
    zone: str,
    offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS,
    *,
    fold: bool = False,
    patterns: Patterns | None = None,
    log_pattern: str = "",
) -> Dialect:
    """The dialect of a stream, `request`, `server` or `archive`; see `RequestJson` for `fold`, `patterns` and
    `log_pattern`."""
    if stream == ARCHIVE:
        return RefusedLines()
    if stream == "request":
        return RequestJson(zone_named(zone), offsets_partitions, fold=fold, patterns=patterns, log_pattern=log_pattern)
    return ServerLog(zone_named(zone), offsets_partitions, log_pattern)


@dataclass(slots=True)
class _File:
    path: Path
    stream: str
    head: bytes
    incarnation: str
    broker: str
    first_at_ms: float
    last_at_ms: float
    size: int
    packed: bool
    cuts: list[int] = field(default_factory=list)


def plan(
    request_logs: Sequence[str | Path],
    server_logs: Sequence[str | Path] = (),
    *,
    zone: str = "UTC",
    broker: str = "",
    lanes: int = DEFAULT_LANES,
    offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS,
    range_bytes: int = RANGE_BYTES,
    log_pattern: str = "",
) -> list[FileRange]:
    """Ranges of these files in the order in which they are to be fed. `broker` overrides the name in the lines."""
    files = _without_copies(
        [file for path in request_logs if (file := _look(Path(path), "request", zone, broker, log_pattern)) is not None]
    )
    servers = _without_copies(
        [file for path in server_logs if (file := _look(Path(path), "server", zone, broker, log_pattern)) is not None]
    )
    _name_brokers(files)
    if not files and not broker:
        _number(servers, zone, log_pattern)
    for server in servers:
        server.broker = server.broker or (_neighbour(server, files) if files else UNNAMED)
    ranges = [
        piece
        for file in files + servers
        for piece in _ranges(file, zone, lanes, offsets_partitions, range_bytes, log_pattern)
    ]
    return sorted(ranges, key=lambda piece: piece.first_at_ms)


def refused_range(file: RefusedFile, zone: str, lanes: int) -> FileRange:
    """The entries that a wrapper damaged, as a range: a stream of no broker, fed before everything else."""
    source = f"{ARCHIVES}/{file.incarnation}"
    return FileRange(file.path, ARCHIVE, source, 0, -1, zone, 0.0, True, lanes)


def _look(path: Path, stream: str, zone: str, broker: str, log_pattern: str) -> _File | None:
    """Read the head of a file: who wrote it and when; None for an empty one."""
    head = head_of(path, HEAD_BYTES)
    if not head.strip():
        return None
    try:
        packed = packing_of(path) is not None
    except OSError as error:
        raise unreadable(path, error) from error
    dialect = dialect_for(stream, zone, log_pattern=log_pattern)
    lines = head.split(b"\n")
    first_at_ms = next((at for line in lines if (at := dialect.stamp_ms(line)) is not None), 0.0)
    if not broker and stream == "request":
        broker = _named(lines, dialect)
    last_at_ms = first_at_ms
    size = path.stat().st_size
    if not packed:
        with path.open("rb") as tail:
            tail.seek(max(0, size - 64 * 1024))
            for line in reversed(tail.read().split(b"\n")):
                at_ms = dialect.stamp_ms(line)
                if at_ms is not None:
                    last_at_ms = at_ms
                    break
    return _File(path, stream, head, name_of(head), broker, first_at_ms, last_at_ms, size, packed)


def _named(lines: Sequence[bytes], dialect: Dialect) -> str:
    """Name of the broker that wrote these lines: the listener that clients ask on, else the best there is."""
    found: Listener | None = None
    for line in lines:
        found = better(found, dialect.broker_of(line))
        if found is not None and found.asked is Asked.BY_CLIENTS:
            break
    return "" if found is None else found.address


def _without_copies(files: list[_File]) -> list[_File]:
    """Leave out a file that another one contains (a copy that copytruncate made, the same file given twice).

    Files that begin with the same line and then differ (a banner) are both kept and told apart by a number.
    """
    kept: dict[str, list[_File]] = {}
    for file in sorted(files, key=lambda one: (one.packed, -one.size)):
        same = kept.setdefault(file.incarnation, [])
        shared = [other for other in same if other.head.startswith(file.head) or file.head.startswith(other.head)]
        if shared:
            continue
        if same:
            file.incarnation = f"{file.incarnation}-{len(same) + 1}"
        same.append(file)
    chosen = {id(file) for same in kept.values() for file in same}
    return [file for file in files if id(file) in chosen]


def _name_brokers(files: list[_File]) -> None:
    """A request log without a line that names its broker belongs to the only broker, or to the one beside it."""
    names = {file.broker for file in files if file.broker}
    for file in files:
        if not file.broker:
            beside = {other.broker for other in files if other.broker and other.path.parent == file.path.parent}
            candidates = beside if len(beside) == 1 else names
            file.broker = next(iter(candidates)) if len(candidates) == 1 else UNNAMED


def _number(servers: list[_File], zone: str, log_pattern: str) -> None:
    """Brokers of `server.log` files that are read without any request log: by the node id that its components say. The
    part of a quiet hour may not say it: it belongs to the broker of the other parts in its folder, if that is one."""
    for server in servers:
        server.broker = _named(server.head.split(b"\n"), dialect_for("server", zone, log_pattern=log_pattern))
    named = [server for server in servers if server.broker]
    for server in servers:
        if not server.broker:
            parts = [other for other in named if other.path.parent == server.path.parent]
            same = [other for other in parts if _log_name(other.path) == _log_name(server.path)]
            brokers = {other.broker for other in same or parts or named}
            server.broker = brokers.pop() if len(brokers) == 1 else UNNAMED


def _log_name(path: Path) -> str:
    """Name of a log without what rotation adds."""
    return path.name.partition(".log")[0]


def _neighbour(server: _File, files: list[_File]) -> str:
    """Broker of a `server.log`: of the request log with the same numbers in its name, or of the only broker."""
    names = sorted({file.broker for file in files})
    if len(names) <= 1:
        return names[0] if names else UNNAMED
    beside = [file for file in files if file.path.parent == server.path.parent]
    if len({file.broker for file in beside}) == 1:
        return beside[0].broker
    wanted = re.findall(r"\d+", server.path.name)
    for pool in (beside, files):
        numbered = {file.broker for file in pool if re.findall(r"\d+", file.path.name)[: max(len(wanted), 1)] == wanted}
        if wanted and len(numbered) == 1:
            return next(iter(numbered))
    raise SettingsError(
        f"it is not known which of {len(names)} brokers wrote this server.log",
        str(server.path),
        "the same number in its name as in the broker's request log, or its own folder beside it",
        "rename the files as kafka-request-1.log and server-1.log, or replay one broker at a time",
    )


def _ranges(
    file: _File, zone: str, lanes: int, offsets_partitions: int, range_bytes: int, log_pattern: str
) -> Iterator[FileRange]:
    source = f"{file.broker}/{file.stream}/{file.incarnation}"
    whole = FileRange(
        str(file.path), file.stream, source, 0, -1, zone, file.first_at_ms, True, lanes, offsets_partitions, log_pattern
    )
    if file.packed or file.size <= range_bytes or crosses_fold(zone_named(zone), file.first_at_ms, file.last_at_ms):
        yield whole
        return
    dialect = dialect_for(file.stream, zone, log_pattern=log_pattern)
    starts: list[tuple[int, float]] = [(0, file.first_at_ms)]
    with file.path.open("rb") as opened:
        for aim in range(range_bytes, file.size, range_bytes):
            opened.seek(aim)
            rest = opened.readline(2 * MAX_LINE_BYTES)
            if not rest.endswith(b"\n"):
                continue  # a line without end: the range before takes it
            at = aim + len(rest)
            stamp, line = None, b""
            for _ in range(MAX_JOINED_LINES):  # a request of several lines is not cut
                line = opened.readline(MAX_LINE_BYTES)
                stamp = dialect.stamp_ms(line)
                if stamp is not None or not line.endswith(b"\n"):
                    break
                at += len(line)
            if starts[-1][0] < at < file.size:
                starts.append((at, stamp if stamp is not None else starts[-1][1]))
    # Neighbouring lines may step back by milliseconds; the ranges of a file keep their order all the same.
    at_ms = 0.0
    for number, (start, stamp) in enumerate(starts):
        last = number + 1 == len(starts)
        at_ms = max(at_ms, stamp)
        end = -1 if last else starts[number + 1][0]
        yield replace_range(whole, start=start, end=end, first_at_ms=at_ms, last=last)


def replace_range(piece: FileRange, **changes: int | float | bool | str) -> FileRange:
    """A range with other values."""
    return msgspec.structs.replace(piece, **changes)
