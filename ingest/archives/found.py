"""Files of a replay as people name them: files, folders and patterns, found out by content, and made into plain logs.

`gather` gives what `ingest.archives.planning` takes. Nothing is written unless a log is wrapped.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingest.archives.kinds import Kind, Known, kind_of
from ingest.archives.refusals import RefusedFile
from ingest.archives.unwrapping import Unwrapper, Wrapped
from ingest.errors import LogFileError
from ingest.stamps import zone_named

MAX_FILES = 100_000
"""Files of all folders and patterns together; more are a folder that was not meant."""


@dataclass
class Archives:
    """What was found. Paths are plain or compressed logs of one broker each."""

    request_logs: list[Path] = field(default_factory=list)
    server_logs: list[Path] = field(default_factory=list)
    offsets: list[Path] = field(default_factory=list)
    samples: list[Path] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Sentences: a file or a writer, and why it is not read."""
    counts: Counter[str] = field(default_factory=Counter)
    """See `unwrapping.Unwrapped`."""
    unwrapped: int = 0
    """Files that were unwrapped."""


def files_of(given: Iterable[Path]) -> list[Path]:
    """Files that these names mean, each once. Raises `LogFileError` for a name that means none."""
    found: dict[Path, None] = {}
    for path in given:
        before = len(found)
        for one in _meant(path):
            found[one] = None
            if len(found) > MAX_FILES:
                raise LogFileError(
                    f"there are more than {MAX_FILES:,} files", str(path), "logs", "name the folder of the logs"
                )
        if len(found) == before and not any(True for _ in _meant(path)):
            raise LogFileError(
                "there is no such file",
                str(path),
                "a file, a folder that holds files, or a pattern that some fit",
                "check the name; a pattern in quotes may use * and **",
            )
    return list(found)


def _meant(path: Path) -> Iterable[Path]:
    if path.is_dir():
        for folder, folders, names in os.walk(path):
            folders.sort()
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))
    elif path.exists():
        yield path
    elif glob.has_magic(str(path)):
        found = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  a pattern may begin at the root
        yield from (Path(one) for one in found if Path(one).is_file())


def gather(
    files: Sequence[Path],
    request_logs: Sequence[Path],
    server_logs: Sequence[Path],
    offsets: Sequence[Path],
    *,
    zone: str,
    message_field: str,
    scratch: Path,
    log_pattern: str = "",
) -> Archives:
    """Find out what `files` are, unwrap what is wrapped, into `scratch`. Raises `LogFileError`, and `SettingsError` for
    a pattern that cannot be read."""
    found = Archives(offsets=files_of(offsets))
    by_kind = {
        Kind.REQUEST: found.request_logs,
        Kind.SERVER: found.server_logs,
        Kind.OFFSETS: found.offsets,
        Kind.SAMPLES: found.samples,
    }
    wrapped: list[Wrapped] = []
    for path in files_of(files):
        known = kind_of(path, message_field, log_pattern)
        if known.kind is Kind.WRAPPED and known.form is not None:
            wrapped.append(Wrapped(path, known.form))
        elif known.kind in by_kind:
            by_kind[known.kind].append(path)
        elif known.kind is Kind.OTHER:
            found.left_out.append(f"{path}: {known.why}")
    for given, kind in ((request_logs, Kind.REQUEST), (server_logs, Kind.SERVER)):
        for path in files_of(given):
            known = kind_of(path, message_field, log_pattern)
            if known.kind is Kind.WRAPPED and known.form is not None:
                wrapped.append(Wrapped(path, known.form))
            else:
                _check_option(known, kind)
                by_kind[kind].append(path)
    if wrapped:
        unwrapped = Unwrapper(scratch, zone_named(zone), log_pattern).unwrap(wrapped)
        found.request_logs += unwrapped.request_logs
        found.server_logs += unwrapped.server_logs
        found.refused += unwrapped.refused
        found.left_out += unwrapped.left_out
        found.counts += unwrapped.counts
        found.unwrapped = len(wrapped)
    if not (found.request_logs or found.server_logs or found.offsets or found.samples or found.refused):
        raise LogFileError(
            "none of these is a log that Kardia reads",
            "; ".join(found.left_out[:3])[:600] or "the files are empty",
            "request logs, server.log, captures of `kardia capture`, plain, compressed, or wrapped by a container "
            "runtime, the journal, Elasticsearch or Loki",
            "check the files; --message-field names the field of a JSON export that holds the line",
        )
    return found


_OPTIONS = {Kind.REQUEST: "--request-log", Kind.SERVER: "--server-log", Kind.OFFSETS: "--offsets"}


def _check_option(known: Known, kind: Kind) -> None:
    """Refuse a file that was named as one kind of log and is another one. One in which no line shows what it is may be
    the log of a quiet hour."""
    fits = known.kind in (kind, Kind.OTHER, Kind.EMPTY)
    if fits and not known.is_foreign:
        return
    right = _OPTIONS.get(known.kind)
    raise LogFileError(
        f"it is {known.why}" if known.is_foreign else f"it was given as {_OPTIONS[kind]} and is another file",
        str(known.path),
        f"what {_OPTIONS[kind]} takes: {_TAKES[kind]}",
        f"give it with {right}, or without an option: what a file is shows its content" if right else "leave it out",
    )


_TAKES = {
    Kind.REQUEST: "lines such as `[...] DEBUG Completed request:{...} (kafka.request.logger)`",
    Kind.SERVER: "lines such as `[...] INFO [GroupCoordinator 1]: ... (kafka.coordinator.group.GroupCoordinator)`",
}
