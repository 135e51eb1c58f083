"""Wrapped logs into plain ones: a folder per writer, in it at most a `kafka-request.log` and a `server.log`.

A writer is what the wrapper names (host, pod, unit), else the file it stands in, with its rotated parts. Entries are
divided by their text; a line without a stamp belongs to the log of the line before it. What the two readers of logs
rely on is restored here: a line that was cut in parts is joined, and a log whose stamps run back is put in order.
Lines of several brokers in one server.log are told apart by the node id that components say; a line without one is of
whoever wrote the line before it. Where nothing tells two brokers apart their lines are refused as a whole: read as one
broker's they would be told wrongly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ingest.archives.envelopes import Entry, Form, Refusal
from ingest.archives.foreign import HEAD_BYTES, foreign
from ingest.archives.kinds import NODE, SERVER_LINE
from ingest.archives.opened import UNREADABLE, open_log, unreadable
from ingest.archives.ordering import in_order
from ingest.archives.refusals import RefusedFile, line_of
from ingest.dialects import MAX_LINE_BYTES
from ingest.dialects.request_layout import MARK as REQUEST_MARK
from ingest.errors import LogFileError
from ingest.layouts.recogniser import is_shipped, layouts
from ingest.stamps import Stamps, crosses_fold
from ingest.tail.incarnation import name_of

MAX_WRITERS = 200
"""Writers of all wrapped logs together: two open files and a line of at most 1 MiB each."""

STEP_BACK_MS = 1_000.0
"""Neighbouring lines of one broker step back by less; a log whose stamps step back further is put in order."""

_LISTENS = re.compile(rb'"connection":"([^"]{1,100}?):[0-9]+-')


class Wrapped(NamedTuple):
    """A file to be unwrapped."""

    path: Path
    form: Form


@dataclass
class Unwrapped:
    """What came of them."""

    request_logs: list[Path] = field(default_factory=list)
    server_logs: list[Path] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Sentences: who is no broker."""
    counts: Counter[str] = field(default_factory=Counter)
    """Entries refused (`refused`), lines there twice (`twice`), lines dropped because they cannot be put in order
    (`unstamped`)."""


@dataclass
class _Log:
    """One plain log while it is written."""

    path: Path
    stamps: Stamps
    out: BinaryIO
    lines: int = 0
    begins: list[int] = field(default_factory=list)
    first_ms: float = 0.0
    last_ms: float = 0.0
    highest_ms: float = 0.0
    back_ms_max: float = 0.0
    down: int = 0
    up: int = 0

    def write(self, text: bytes) -> None:
        """Add the lines of one entry."""
        at_ms = self.stamps.at_ms(text)
        if at_ms is not None:
            if not self.first_ms:
                self.first_ms = self.highest_ms = self.last_ms = at_ms
            self.back_ms_max = max(self.back_ms_max, self.highest_ms - at_ms)
            self.down += at_ms < self.last_ms
            self.up += at_ms > self.last_ms
            self.first_ms = min(self.first_ms, at_ms)
            self.highest_ms = max(self.highest_ms, at_ms)
            self.last_ms = at_ms
        self.out.write(text + b"\n")
        self.lines += 1 + text.count(b"\n")


@dataclass
class _Writer:
    """One who writes logs."""

    folder: Path
    name: str
    """For a person."""
    logs: dict[str, _Log] = field(default_factory=dict)
    stream: str = "server"
    parts: dict[str, bytes] = field(default_factory=dict)
    """Begin of a line that goes on, by channel."""
    nodes: dict[bytes, _Writer] = field(default_factory=dict)
    """Brokers whose lines of server.log stand here, by node id; the first of them is this one itself."""
    speaks: bytes = b""
    """Node id that was said last."""
    listeners: set[bytes] = field(default_factory=set)
    is_broker: bool = False
    told: bool = False
    """Whether the wrapper named it, or its file did."""
    named: bool = False
    """Whether the wrapper did, beside each line."""


class Unwrapper:
    """Unwraps files into a scratch folder, which must be there and empty."""

    def __init__(self, scratch: Path, zone: tzinfo, log_pattern: str = "") -> None:
        """`zone`: of the stamps. `log_pattern`: conversion pattern of the lines, if one was given."""
        self._scratch = scratch
        self._layouts = layouts(log_pattern)
        self._zone = zone
        self._writers: dict[tuple[str, str], _Writer] = {}
        self._result = Unwrapped()

    def unwrap(self, files: Sequence[Wrapped]) -> Unwrapped:
        """Unwrap all of them. Raises `LogFileError` for a file that cannot be read, or not be told apart."""
        with ExitStack() as stack:
            first = {file: self._first_stamp(file) for file in files}
            for number, file in enumerate(sorted(files, key=lambda one: (first[one], str(one.path)))):
                for writer in self._writers.values():
                    for log in writer.logs.values():
                        log.begins.append(log.lines)
                self._read(file, number, first[file] or None, stack)
            for writer in list(self._writers.values()):
                for text in writer.parts.values():
                    self._write(writer, text, stack)  # a line whose rest never came: its reader says so
        for writer in self._writers.values():
            self._finish(writer)
        return self._result

    def _read(self, file: Wrapped, number: int, at_ms: float | None, stack: ExitStack) -> None:
        """Read one file, whose first stamp is `at_ms`."""
        refused: list[bytes] = []
        path = self._scratch / f"refused-{number}.jsonl"
        try:
            with open_log(file.path) as opened:
                for placed in file.form.read(opened):
                    if isinstance(placed.found, Refusal):
                        refused.append(line_of(placed.found, placed, at_ms))
                        if len(refused) >= 1_000:
                            _append(path, refused)
                        self._result.counts["refused"] += 1
                    elif placed.found is not None:
                        at_ms = self._take(placed.found, file, stack) or at_ms
        except UNREADABLE as error:
            raise unreadable(file.path, error) from error
        if refused or path.exists():
            _append(path, refused)
            with open_log(file.path) as opened:
                self._result.refused.append(RefusedFile(str(path), name_of(opened.readline(MAX_LINE_BYTES))))

    def _first_stamp(self, file: Wrapped) -> float:
        """The stamp of the first line that has one; 0 if there is none near the begin."""
        stamps = Stamps(self._zone)
        try:
            with open_log(file.path) as opened:
                for number, placed in enumerate(file.form.read(opened)):
                    text = placed.found.text if isinstance(placed.found, Entry) else b""
                    at_ms = stamps.at_ms(text) or stamps.at_ms(self._layouts.stamp(text) or b"")
                    if at_ms is not None:
                        return at_ms
                    if number >= 10_000:
                        break
        except UNREADABLE as error:
            raise unreadable(file.path, error) from error
        return 0.0

    def _take(self, entry: Entry, file: Wrapped, stack: ExitStack) -> float | None:
        """Take one entry; gives the stamp of its line."""
        writer = self._writer(entry, file)
        text = entry.text
        if entry.goes_on or entry.channel in writer.parts:
            text = (writer.parts.pop(entry.channel, b"") + text)[: MAX_LINE_BYTES + 1]  # its reader says: too long
        if entry.goes_on:
            writer.parts[entry.channel] = text
            return None
        return self._write(writer, text, stack)

    def _write(self, writer: _Writer, text: bytes, stack: ExitStack) -> float | None:
        """Add the lines of an entry to the log that they belong to, in the layout that Kafka ships; gives the stamp of
        the last line that has one."""
        if not is_shipped(text):
            text = self._layouts.shipped(text) or text
        request = REQUEST_MARK in text[:512]
        stamped = text[:1] == b"[" or text[:2] == b"20"
        if request or stamped:
            writer.stream = "request" if request else "server"
        stream = writer.stream
        if writer.stream == "server" and not writer.named:
            writer = self._of_node(writer, text if stamped else b"")
        log = writer.logs.get(stream) or self._open(writer, stream, stack)
        if request:
            if not writer.told and len(writer.listeners) < 50:
                writer.listeners.update(_LISTENS.findall(text[:4096])[:1])
        elif stamped and not writer.is_broker:
            writer.is_broker = SERVER_LINE.match(text) is not None
        log.write(text)
        return log.last_ms or None

    def _of_node(self, writer: _Writer, text: bytes) -> _Writer:
        """Which broker wrote a line of a server.log that may hold those of several."""
        node = NODE.match(text)
        if node is not None:
            writer.speaks = node[1]
        if not writer.speaks:
            return writer
        if writer.speaks not in writer.nodes:
            name = f"{writer.name} (node {writer.speaks.decode()})"
            other = (
                self._new((str(writer.folder), writer.speaks.decode()), name, writer.name) if writer.nodes else writer
            )
            writer.nodes[writer.speaks] = other
        return writer.nodes[writer.speaks]

    def _open(self, writer: _Writer, stream: str, stack: ExitStack) -> _Log:
        name = "kafka-request.log" if stream == "request" else "server.log"
        path = writer.folder / name
        log = _Log(path, Stamps(self._zone), stack.enter_context(path.open("wb")), begins=[0])
        writer.logs[stream] = log
        return log

    def _writer(self, entry: Entry, file: Wrapped) -> _Writer:
        key = ("", entry.origin) if entry.origin else (str(file.path.parent), _stem(file.path.name))
        writer = self._writers.get(key)
        if writer is None:
            writer = self._new(key, entry.origin or str(file.path), str(file.path))
            writer.named = bool(entry.origin)
            writer.told = writer.named or not file.form.tells_origin
        return writer

    def _new(self, key: tuple[str, str], name: str, where: str) -> _Writer:
        if len(self._writers) >= MAX_WRITERS:
            raise LogFileError(
                f"more than {MAX_WRITERS} hosts or pods wrote these lines",
                where,
                "the logs of the brokers of one cluster",
                "export the lines of the brokers alone, or replay a part of them at a time",
            )
        folder = self._scratch / str(len(self._writers))
        folder.mkdir()
        writer = self._writers[key] = _Writer(folder, name)
        return writer

    def _finish(self, writer: _Writer) -> None:
        mixed = len(writer.nodes) > 1 and "request" in writer.logs
        if mixed or (not writer.told and len(_hosts(writer.listeners)) > 1):
            names = ", ".join(sorted(one.decode("utf-8", "replace") for one in writer.nodes or writer.listeners)[:5])
            raise LogFileError(
                f"lines of several brokers ({names}) stand in one log, and no field says who wrote which",
                writer.name,
                "a field such as host.name, pod or _HOSTNAME beside each line",
                "export it with that field, or one broker at a time",
            )
        for stream, log in writer.logs.items():
            if stream == "server" and not writer.is_broker and "request" not in writer.logs:
                other = foreign(_head(log.path))
                why = other or f"no line of a broker in {log.lines:,} lines"
                self._result.left_out.append(f"{writer.name[:200]}: {why}")
                continue
            self._order(log, writer.name)
            kept = self._result.request_logs if stream == "request" else self._result.server_logs
            kept.append(log.path)

    def _order(self, log: _Log, name: str) -> None:
        if log.back_ms_max <= STEP_BACK_MS:
            return
        if crosses_fold(self._zone, log.first_ms, log.highest_ms):
            raise LogFileError(
                "the lines are not in order, and the clock was set back between them",
                name,
                "lines in the order in which they were written, where their stamps name an hour twice",
                "export them oldest first, or leave out the hours around the end of summer time",
            )
        order = in_order(
            log.path,
            Stamps(self._zone).at_ms,
            log.begins,
            newest_first=log.down > log.up,
            max_bytes=2 * MAX_LINE_BYTES,
        )
        self._result.counts["twice"] += order.twice
        self._result.counts["unstamped"] += order.unstamped


def _head(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(HEAD_BYTES)


def _append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as opened:
        opened.writelines(lines)
    lines.clear()


def _stem(name: str) -> str:
    """Name of a file without what rotation adds: `0.log.20261120-101010.gz` is `0`."""
    return re.split(r"\.(?:log|json|jsonl|ndjson|txt|export)\b", name, maxsplit=1)[0]


def _hosts(listeners: set[bytes]) -> set[bytes]:
    """Addresses that are not of the machine itself."""
    return {one for one in listeners if not one.startswith(b"127.") and one not in (b"localhost", b"::1")}
