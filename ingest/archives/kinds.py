"""What a file is, by its content: a request log, a server.log, a capture of `__consumer_offsets` or
of the admin API, or a wrapped log.

Looks at the head and the tail of a file, never at its name, except to leave out the other logs that a broker keeps
beside these two and that say nothing of groups (`OTHER_LOGS`): their lines look like those of server.log.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from ingest.admin.samples import is_sample
from ingest.archives.envelopes import PLAIN, Form, form_of
from ingest.archives.foreign import foreign
from ingest.archives.opened import head_of, packing_of
from ingest.dialects.request_layout import MARK as REQUEST_MARK
from ingest.errors import LogFileError
from ingest.layouts.recogniser import COORDINATOR_TAG, Layouts, layouts
from ingest.offsets.dump import HEAD_BYTES as _DUMP_BYTES
from ingest.offsets.dump import is_dump

HEAD_BYTES = 4 * 1024 * 1024
"""What shows the kind of a file stands in this much of it: a broker that starts names its components at once."""

_TAIL_BYTES = 64 * 1024

SERVER_LINE = re.compile(
    rb"^\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}[,.][0-9]{3,9}\S* +(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +"
    rb"(?:\[(?:Group|KafkaServer|KafkaRaftServer|Broker|ReplicaManager|Replica|Partition|SocketServer|LogManager|"
    rb"TransactionCoordinator|KafkaApi|ExpirationReaper|ThrottledChannelReaper|ControllerServer|Share)|"
    rb"(?!Completed request:).*\((?:kafka\.(?:server|coordinator|cluster|network|raft)\.|"
    rb"org\.apache\.kafka\.(?:coordinator|server|image|raft)\.))",
    re.MULTILINE,
)
"""A line that only a broker's server.log has, from 2.0 to 4.4."""

NODE = re.compile(
    rb"^\[?[0-9][^\]\n]{18,40}?\]? +[A-Z]+ +\[(?:GroupCoordinator|GroupMetadataManager|ReplicaManager|KafkaServer|"
    rb"BrokerServer|BrokerLifecycleManager)(?: id=| brokerId=| broker=| )([0-9]{1,10})[ \]]",
    re.MULTILINE,
)
"""The node id that components of a broker say in front of their words."""

_JSON = re.compile(rb"\s*(?:\{|\[\s*(?:[\[{\"]|\Z))")

OTHER_LOGS = re.compile(r"(?:controller|state-change|log-cleaner|kafka-authorizer|kafkaServer-gc|zookeeper)\b.*")


LOKI = ".data.result[] | .stream as $s | .values[] | {stream: $s, line: .[1]}"
"""An answer of Loki's API as lines."""


class Kind(StrEnum):
    """What is done with a file."""

    REQUEST = "request"
    SERVER = "server"
    OFFSETS = "offsets"
    SAMPLES = "samples"
    WRAPPED = "wrapped"
    OTHER = "other"
    EMPTY = "empty"


class Known(NamedTuple):
    """A file and what it is."""

    path: Path
    kind: Kind
    form: Form | None = None
    """How the lines of a wrapped one are read."""
    why: str = ""
    """Why another one is left out."""
    is_foreign: bool = False
    """Whether it is known to be something else than a log of a broker."""


MIXED = Form("several logs in one", PLAIN.read, tells_origin=False)
"""Lines of both logs in one file, as a container writes them to its output."""


SEVERAL_BROKERS = Form("lines of several brokers in one log", PLAIN.read, tells_origin=False)
"""Logs of several brokers that somebody put into one file: their lines say whose they are."""


class _Record(msgspec.Struct):
    """The keys that only a capture has."""

    partition: int
    offset: int
    key: str | None


class _ShortRecord(msgspec.Struct):
    p: int
    o: int
    k: str | None


_RECORDS = (msgspec.json.Decoder(_Record).decode, msgspec.json.Decoder(_ShortRecord).decode)


def kind_of(path: Path, message_field: str = "", log_pattern: str = "") -> Known:
    """What a file is. Raises `LogFileError` for one that cannot be read, `SettingsError` for a pattern that cannot."""
    known_layouts = layouts(log_pattern)
    head = head_of(path, HEAD_BYTES)
    if not head.strip():
        return Known(path, Kind.EMPTY)
    first = next(line for line in head.split(b"\n") if line.strip())
    if _is_record(first):
        return Known(path, Kind.OFFSETS)
    if is_sample(first):
        return Known(path, Kind.SAMPLES)
    # A request log that is text names topics and offsets as a dump does.
    if is_dump(head) and REQUEST_MARK not in head[:_DUMP_BYTES] and not _is_server(head[:_DUMP_BYTES], known_layouts):
        return Known(path, Kind.OFFSETS)
    form = form_of(head, known_layouts, message_field)
    if form is not None:
        return Known(path, Kind.WRAPPED, form)
    if _JSON.match(first):
        other = foreign(head)
        return Known(path, Kind.OTHER, why=other or _no_lines(head, first), is_foreign=bool(other))
    if OTHER_LOGS.fullmatch(path.name):
        return Known(path, Kind.OTHER, why="a broker's log that says nothing of groups, by its name")
    sample = head + b"\n" + _tail(path)
    requests, server = REQUEST_MARK in sample, _is_server(sample, known_layouts)
    if requests and server:
        return Known(path, Kind.WRAPPED, MIXED)
    if server and _has_several_brokers(sample, known_layouts):
        return Known(path, Kind.WRAPPED, SEVERAL_BROKERS)
    if requests or server:
        return Known(path, Kind.REQUEST if requests else Kind.SERVER)
    other = foreign(head)
    return Known(path, Kind.OTHER, why=other or _NOTHING, is_foreign=bool(other))


_NOTHING = (
    "no line of a broker's request log or server.log in its first 4 MiB; if it is one in a layout of your own, give "
    "that with --log-pattern, as it stands in the broker's log4j file"
)

_MANY = 20_000
"""Lines that are looked at for one of a broker in another layout than Kafka's."""


def _is_server(sample: bytes, known_layouts: Layouts) -> bool:
    """Whether a line of server.log is among these, in whatever layout, or one that names the coordinator's classes."""
    if SERVER_LINE.search(sample) is not None:
        return True
    named = [line for line in sample.split(b"\n")[:_MANY] if b"afka" in line or b"Group" in line]
    laid = (known_layouts.shipped(line) for line in named)
    return any(SERVER_LINE.match(line) for line in laid if line is not None) or any(map(COORDINATOR_TAG.search, named))


def _has_several_brokers(sample: bytes, known_layouts: Layouts) -> bool:
    """Whether lines of server.log say more than one node id."""
    nodes = {found[1] for found in NODE.finditer(sample)}
    if not nodes:
        named = [line for line in sample.split(b"\n")[:_MANY] if b"Group" in line]
        laid = [known_layouts.shipped(line) for line in named]
        nodes = {found[1] for line in laid if line is not None and (found := NODE.match(line))}
    return len(nodes) > 1


def _is_record(line: bytes) -> bool:
    for decode in _RECORDS:
        try:
            decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        return True
    return False


def _tail(path: Path) -> bytes:
    try:
        if packing_of(path) is not None:
            return b""
        with path.open("rb") as opened:
            opened.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return opened.read().partition(b"\n")[2]
    except OSError as error:
        raise LogFileError(f"the file cannot be read: {error}", str(path), "a readable log", "see to it") from error


def _no_lines(head: bytes, first: bytes) -> str:
    """Why a file of JSON is of no use, with what to do about it."""
    try:
        document = msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if b'"resultType"' in head[:4096]:
        return f"JSON, but not one document per line; `jq -c '{LOKI}'` writes it so"
    if not isinstance(document, dict) or b'"hits"' in head[:4096]:
        return "JSON, but not one document per line; `jq -c '.[]'` (or '.hits.hits[]') writes it so"
    names = ", ".join(sorted(document)[:8])[:200]
    return f"JSON with no broker's line in a field that is known; its fields: {names}; name it with --message-field"
