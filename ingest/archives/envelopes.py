"""Lines of a log as others wrap them: container runtimes, the journal, exports of Elasticsearch, Loki and their like.

One form per file, chosen by its head (`form_of`). A form gives entries: the text as the broker wrote it, who wrote it
as far as the wrapper says (host, pod, unit), and whether the line goes on in the next entry. An entry that its wrapper
damaged is a `Refusal`. Reads no line of Kafka's beyond its stamp.

Truth, all of it documented by those who write the forms: Docker's json-file driver (`{"log","stream","time"}`; a text
without line end goes on), the CRI log format of Kubernetes (`TIME STREAM TAG TEXT`, tag P goes on, F ends), systemd's
Journal Export Format and `journalctl -o json` (a field that is not UTF-8 is a list of bytes; one over 4,096 bytes is
null without `--all`; `_LINE_BREAK=line-max` goes on), the Elastic Common Schema, `logcli -o jsonl`. Text
with a prefix has no form of its own: what stands before the broker's own part is left out (`journalctl`, `docker
compose logs`, `kubectl logs --timestamps --prefix`, `logcli`, syslog, columns of an export). What the broker's own
layout is, `ingest.layouts` knows.
"""

from __future__ import annotations

import csv
import io
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import msgspec

from ingest.dialects import MAX_LINE_BYTES
from ingest.layouts.recogniser import Layouts

MAX_ENTRY_BYTES = 8 * MAX_LINE_BYTES
"""Longest entry read. JSON writes a byte as six at worst (`\\u001b`), and what stands around the text has some kB."""

MESSAGE_FIELDS = (
    *("MESSAGE", "log", "line", "event.original", "message", "msg", "_raw", "textPayload", "body"),
    *("@message", "Message", "short_message"),
)
"""Names under which the text of a line is looked for, the surer ones first: the journal; Docker, Fluent Bit; Loki; what
Elastic's agents keep of the original; Filebeat, Vector, Logstash; Splunk; Google Cloud; OpenTelemetry; CloudWatch,
GELF."""

ORIGIN_FIELDS = (
    ("kubernetes.pod.name", "kubernetes.pod_name", "labels.pod", "labels.pod_name", "stream.pod", "pod", "pod_name"),
    ("resource.labels.pod_name", "k8s.pod.name", "resource.k8s.pod.name", "CONTAINER_NAME", "container.name"),
    ("host.name", "host.hostname", "hostname", "_HOSTNAME", "labels.hostname", "labels.host", "labels.instance"),
    ("host", "agent.hostname", "agent.name", "instance", "resource.host.name", "logStreamName", "@logStream"),
    ("source_host",),
)
"""Names under which the writer of a line is looked for. A pod says more than its host, on which others may run."""

UNIT_FIELD = "_SYSTEMD_UNIT"
"""Beside the host: two brokers of one machine are two units."""

_TIME_FIELDS = ("instant", "timeMillis", "@timestamp", "timestamp", "time")
_LEVEL_FIELDS = ("log.level", "level", "levelname", "severity")
_LOGGER_FIELDS = ("log.logger", "logger_name", "loggerName", "logger", "_logger")

_STAMPED = re.compile(rb"\s*\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}")
_OWN = re.compile(
    rb"\s*\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}[,.][0-9]{3,9}\S* +"
    rb"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
"""How a line begins that nothing stands before."""
_MARKS = re.compile(rb"[\s>*+#`'\"-]*")
"""Indents, and marks of Markdown: no prefix that says who wrote."""
_NAME = re.compile(rb"[@\w.\- ]{1,80}")
_VARIES = re.compile(
    rb"\x1b\[[0-9;]*[A-Za-z]|<[0-9]{1,3}>|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}(?:[.,][0-9]+)?(?:Z|[+-][0-9:]{4,5})?|"
    rb"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s|"
    rb"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 0-9][0-9](?: [0-9]{4})? [0-9:]{8}(?:[.,][0-9]+)?|"
    rb"\[[0-9]+\]|[|:]"
)
"""What changes from line to line in a prefix: colours, priority, times, the process id. What is left says who wrote."""

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}[.,][0-9]{3,9}(?:Z|[+-][0-9]{2}:?[0-9]{2})")
_CRI = re.compile(
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2}) (stdout|stderr) ([FP])[^ ]* ?"
)
_EXPORTED = re.compile(rb"(?:__CURSOR|[A-Z_][A-Z0-9_]{0,63})=")
_BULK_ACTIONS = frozenset(("index", "create", "update", "delete"))
_LENGTH = struct.Struct("<Q")
_decode = msgspec.json.Decoder().decode


class Entry(NamedTuple):
    """What one entry wraps."""

    text: bytes
    """Without the line end that closes it; may hold others."""
    origin: str = ""
    """Who wrote it, "" where the wrapper does not say."""
    channel: str = ""
    """stdout or stderr: a line goes on within one of them."""
    goes_on: bool = False


class Refusal(NamedTuple):
    """An entry that cannot be used: reason of `kardia.events.REJECT_REASONS`, and what was expected."""

    reason: str
    expected: str


class Placed(NamedTuple):
    """An entry, where it stands in the file, and its first bytes."""

    found: Entry | Refusal | None
    """None: it belongs to the wrapper (an action of a bulk file, a blank line)."""
    start: int
    end: int
    head: bytes


class Form(NamedTuple):
    """How the lines of one file are wrapped."""

    name: str
    read: Callable[[BinaryIO], Iterator[Placed]]
    tells_origin: bool = True
    """Whether entries of several brokers may stand in one file."""


Reader = Callable[[bytes], Entry | Refusal | None]


def container_form(head: bytes) -> Form | None:
    """The form of a file that a container runtime writes, by its first line; None for any other."""
    first = head.lstrip(b"\xef\xbb\xbf\0\r\n\t ").partition(b"\n")[0]
    if _CRI.match(first):
        return Form("CRI", _by_line(_read_cri), tells_origin=False)
    document = _document(first) if first.startswith(b"{") else None
    return _json_file_form(document) if isinstance(document, dict) else None


def _json_file_form(document: dict[str, Any]) -> Form | None:
    if {"log", "stream", "time"} <= document.keys() <= {"log", "stream", "time", "attrs"}:
        return Form("json-file", _by_line(_read_json_file), tells_origin=False)
    return None


def form_of(head: bytes, layouts: Layouts, message_field: str = "") -> Form | None:
    """The form of a file by its head, None for plain lines. `message_field` overrides `MESSAGE_FIELDS`."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    if not lines:
        return None
    first = lines[0].lstrip(b"\xef\xbb\xbf \t")
    if _CRI.match(first):
        return Form("CRI", _by_line(_read_cri), tells_origin=False)
    if _EXPORTED.match(first) and b"\n" in head:
        return Form("journal export", _read_export)
    if not first.startswith(b"{"):
        column = message_column(head, layouts, message_field)
        if column:
            return Form(f"CSV, {column}", partial(_read_csv, column))
        prefixed = _is_prefixed(lines, layouts)
        return Form("text with a prefix", _by_line(partial(_read_prefixed, layouts))) if prefixed else None
    documents = [document for line in lines[:2_000] if isinstance(document := _document(line), dict)]
    if documents and (json_file := _json_file_form(documents[0])) is not None:
        return json_file
    field = message_field or _best_field(documents, layouts)
    return Form(f"JSON, {field}", _by_line(_JsonEntries(field, layouts).read)) if field else None


def _best_field(documents: list[dict[str, Any]], layouts: Layouts) -> str:
    """The field that holds lines of a log most often; "" if none does."""
    counts: Counter[str] = Counter()
    for document in documents:
        for name in MESSAGE_FIELDS:
            text = _text(_field(_body(document), name))
            if isinstance(text, bytes) and (_is_stamped(text, layouts) or _rebuilt(_body(document), text) is not None):
                counts[name] += 1
    return max(MESSAGE_FIELDS, key=lambda name: counts[name]) if counts else ""


def _is_stamped(text: bytes, layouts: Layouts) -> bool:
    return _STAMPED.match(text) is not None or layouts.laid(text) is not None


# --- forms of one line per entry --------------------------------------------------------------------------------


def _by_line(read: Reader) -> Callable[[BinaryIO], Iterator[Placed]]:
    def entries(opened: BinaryIO) -> Iterator[Placed]:
        at = 0
        while line := opened.readline(MAX_ENTRY_BYTES + 1):
            start, at = at, at + len(line)
            if len(line) > MAX_ENTRY_BYTES:
                while line[-1:] != b"\n" and (rest := opened.readline(MAX_ENTRY_BYTES)):
                    at += len(rest)
                    line = line[:1024] + rest[-1:]
                yield Placed(Refusal("line_too_long", f"at most {MAX_ENTRY_BYTES} bytes"), start, at, line[:1024])
                continue
            bare = line.rstrip(b"\r\n")
            yield Placed(read(bare) if bare.strip() else None, start, at, bare[:1024])

    return entries


PLAIN = Form("plain", _by_line(Entry))
"""Lines that nothing wraps."""


def _read_cri(line: bytes) -> Entry | Refusal:
    match = _CRI.match(line)
    if match is None:
        return Refusal("unknown_shape", "`TIME stdout|stderr F|P TEXT`, as container runtimes write it")
    return Entry(line[match.end() :], "", match[1].decode(), match[2] == b"P")


def message_column(head: bytes, layouts: Layouts, message_field: str = "") -> str:
    """The column of a file with commas or semicolons that holds a line of a broker; "" if it is no such file."""
    text = head[: 1 << 20].decode("utf-8-sig", "replace")
    try:
        rows = list(islice(csv.reader(io.StringIO(text), _dialect_of(head)), 200))
    except csv.Error:
        return ""
    names = rows[0] if rows else []
    if len(names) < 2 or not all(_NAME.fullmatch(name.encode()) for name in names):
        return ""
    if message_field in names:
        return message_field
    whole = [row for row in rows[1:] if len(row) == len(names)]
    for number, name in enumerate(names):
        lines = sum(_is_alone(row[number].encode("utf-8", "replace"), layouts) for row in whole)
        if 2 * lines > len(rows) - 1:
            return name
    return ""


def _is_alone(text: bytes, layouts: Layouts) -> bool:
    """Whether a field holds a line of a broker and nothing before it."""
    return _prefix(text, layouts) == b""


def _dialect_of(head: bytes) -> type[csv.Dialect]:
    first = head.partition(b"\n")[0]

    class Export(csv.excel):
        delimiter = max(",;\t", key=lambda one: first.count(one.encode()))

    return Export


def _read_csv(column: str, opened: BinaryIO) -> Iterator[Placed]:
    """Rows; a field in quotes may hold line ends."""
    at = 0

    def lines() -> Iterator[str]:
        nonlocal at
        while line := opened.readline(MAX_ENTRY_BYTES):
            at += len(line)
            yield line.decode("utf-8-sig" if at == len(line) else "utf-8", "surrogateescape")

    csv.field_size_limit(MAX_ENTRY_BYTES)
    source = lines()
    first = next(source, "")
    dialect = _dialect_of(first.encode("utf-8", "surrogateescape"))
    names = next(csv.reader([first], dialect), [])
    start = at
    rows = csv.reader(source, dialect)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Placed(Refusal("unknown_shape", f"a row of CSV: {error}"[:200]), start, at, b"")
            start = at
            continue
        fields: dict[str, Any] = dict(zip(names, row, strict=False))
        text = fields.get(column, "").encode("utf-8", "surrogateescape")
        found = Entry(text.rstrip(b"\r\n"), _origin(fields)) if text.strip() else None
        yield Placed(found, start, at, text[:1024])
        start = at


def has_plain_lines(head: bytes) -> bool:
    """Whether some lines begin with the stamp and level of a broker."""
    return any(_OWN.match(line) for line in head.split(b"\n"))


def _is_prefixed(lines: list[bytes], layouts: Layouts) -> bool:
    """Whether most lines of a broker have something before their own part."""
    found = [_prefix(line, layouts) for line in lines[:2_000]]
    return sum(bool(prefix) for prefix in found) > sum(prefix == b"" for prefix in found)


def _prefix(line: bytes, layouts: Layouts) -> bytes | None:
    """What stands before the broker's own part; None if there is none."""
    if _OWN.match(line):
        return b""
    laid = layouts.laid(line)
    return None if laid is None else _MARKS.sub(b"", laid.before, count=1)


def _read_prefixed(layouts: Layouts, line: bytes) -> Entry | None:
    """A line without a stamp of the broker goes on with another one, which its prefix does not show."""
    if _OWN.match(line):
        return Entry(line)
    laid = layouts.laid(line)
    if laid is None:
        return None
    words = _VARIES.sub(b" ", _MARKS.sub(b"", laid.before, count=1)).split()
    origin = b" ".join(word for word in words if not word.isdigit())
    return Entry(laid.own, origin.decode("utf-8", "replace")[:200])


def _read_json_file(line: bytes) -> Entry | Refusal:
    document = _document(line)
    if isinstance(document, Refusal):
        return document
    text = _text(document.get("log"))
    if not isinstance(text, bytes):
        return Refusal("unknown_shape", 'a text under "log"')
    channel = document.get("stream")
    return Entry(text.rstrip(b"\r\n"), "", channel if isinstance(channel, str) else "", not text.endswith(b"\n"))


class _JsonEntries:
    """Documents with the text in a named field."""

    def __init__(self, field: str, layouts: Layouts) -> None:
        self._field = field
        self._layouts = layouts

    def read(self, line: bytes) -> Entry | Refusal | None:
        """One document."""
        document = _document(line)
        if isinstance(document, Refusal):
            return document
        if len(document) == 1 and _BULK_ACTIONS.issuperset(document):
            return None
        body = _body(document)
        value = _field(body, self._field)
        text = _text(value)
        if value is None and self._field == "MESSAGE" and "MESSAGE" in body:
            return Refusal("incomplete_line", "a message; journalctl leaves out those over 4,096 bytes without --all")
        if isinstance(text, Refusal):
            return Refusal(text.reason, f"{text.expected} under {self._field!r}"[:200])
        ends = text.rstrip(b"\r\n")
        whole = ends if _is_stamped(ends, self._layouts) else _rebuilt(body, ends) or ends
        return Entry(whole, _origin(body), str(body.get("stream", ""))[:16], _goes_on(body))


def _document(line: bytes) -> dict[str, Any] | Refusal:
    try:
        document = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Refusal("bad_json", f"one JSON document per line: {error}"[:200])
    return document if isinstance(document, dict) else Refusal("bad_json", "one JSON object per line")


def _body(document: dict[str, Any]) -> dict[str, Any]:
    """The document as it was indexed: exports of Elasticsearch put it under `_source`, those of Splunk `result`."""
    for name in ("_source", "result"):
        inner = document.get(name)
        if isinstance(inner, dict):
            return inner
    return document


def _field(document: dict[str, Any], name: str) -> Any:
    """A field by its name, which is written whole or as a path."""
    if name in document:
        return document[name]
    head, dot, rest = name.partition(".")
    inner = document.get(head)
    return _field(inner, rest) if dot and isinstance(inner, dict) else None


def _text(value: Any) -> bytes | Refusal:
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, list) and all(isinstance(one, int) and 0 <= one <= 255 for one in value):
        return bytes(value)
    return Refusal("unknown_shape", "a text")


def _named(document: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value[:200] for name in names if isinstance(value := _field(document, name), str) and value), "")


def _origin(document: dict[str, Any]) -> str:
    for names in ORIGIN_FIELDS:
        found = _named(document, names)
        if found:
            unit = document.get(UNIT_FIELD)
            return f"{found}/{unit[:200]}" if isinstance(unit, str) else found
    return ""


def _goes_on(document: dict[str, Any]) -> bool:
    if document.get("_LINE_BREAK") == "line-max" or document.get("CONTAINER_PARTIAL_MESSAGE") == "true":
        return True
    return document.get("_p", document.get("logtag")) == "P"  # Fluent Bit's names of the CRI tag


def _rebuilt(document: dict[str, Any], text: bytes) -> bytes | None:
    """A line of a broker whose own layout is JSON, as the shipped layout writes it; None if the parts are not there."""
    at, logger = _instant(document), _named(document, _LOGGER_FIELDS)
    if not logger or not at:
        return None
    level = _named(document, _LEVEL_FIELDS).upper()
    return b"[%s] %s %s (%s)" % (
        at.encode(),
        (_LEVELS.get(level, level) or "INFO").encode(),
        text,
        logger.encode(),
    )


_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL", "NOTICE": "INFO"}


def _instant(document: dict[str, Any]) -> str:
    """When a document says that it was written; "" if it does not, or not to the millisecond."""
    for name in _TIME_FIELDS:
        value = _field(document, name)
        if isinstance(value, str) and _ISO.fullmatch(value):
            return value
        if isinstance(value, dict):
            second, nano = value.get("epochSecond"), value.get("nanoOfSecond", 0)
            value = second * 1000 + nano // 1_000_000 if isinstance(second, int) and isinstance(nano, int) else None
        elif isinstance(value, float):
            value = round(value * 1000)  # seconds, as GELF has them
        if isinstance(value, int) and _MILLIS_FROM <= value < _MILLIS_TO:
            at = datetime.fromtimestamp(value // 1000, UTC)
            return f"{at:%Y-%m-%dT%H:%M:%S}.{value % 1000:03d}Z"
    return ""


_MILLIS_FROM, _MILLIS_TO = 10**11, 7 * 10**12
"""Numbers that are epoch milliseconds, of the years 1973 to 2191."""


# --- the journal's export format --------------------------------------------------------------------------------


_KEPT = frozenset((b"MESSAGE", b"_HOSTNAME", b"_SYSTEMD_UNIT", b"CONTAINER_NAME", b"_LINE_BREAK", b"_TRANSPORT"))
_KEPT |= {b"CONTAINER_PARTIAL_MESSAGE"}


def _read_export(opened: BinaryIO) -> Iterator[Placed]:
    """Fields line by line, a blank line between entries; a field that is not plain text has its length before it."""
    at = start = 0
    fields: dict[bytes, bytes] = {}
    trouble: Refusal | None = None
    begun = False
    while line := opened.readline(MAX_ENTRY_BYTES + 1):
        at += len(line)
        if line == b"\n":
            if begun:
                yield Placed(trouble or _exported(fields), start, at, fields.get(b"MESSAGE", b"")[:1024])
            fields, trouble, begun, start = {}, None, False, at
            continue
        begun = True
        name, equals, value = line.rstrip(b"\n").partition(b"=")
        if not line.endswith(b"\n"):
            trouble = Refusal("incomplete_line", "a whole entry; the file ends in the middle of this one")
        elif not equals:
            size = opened.read(_LENGTH.size)
            at += len(size)
            value, read, whole = _sized(opened, size)
            at += read
            if not whole:
                trouble = Refusal("incomplete_line", "a field as long as it says")
        if name in _KEPT:
            fields[name] = value
    if begun:
        yield Placed(trouble or _exported(fields), start, at, fields.get(b"MESSAGE", b"")[:1024])


def _sized(opened: BinaryIO, size: bytes) -> tuple[bytes, int, bool]:
    """A field with its length before it: what is kept of it, bytes read, and whether it was whole."""
    if len(size) < _LENGTH.size:
        return b"", 0, False
    (length,) = _LENGTH.unpack(size)
    kept = opened.read(min(length, MAX_ENTRY_BYTES))
    read = len(kept)
    while read < length:
        more = opened.read(min(length - read, MAX_ENTRY_BYTES))
        if not more:
            return kept, read, False
        read += len(more)
    end = opened.read(1)
    return kept, read + len(end), end == b"\n"


def _exported(fields: dict[bytes, bytes]) -> Entry | Refusal | None:
    text = fields.get(b"MESSAGE")
    if text is None:
        return None  # an entry of the journal itself
    document: dict[str, Any] = {name.decode(): value.decode("utf-8", "replace") for name, value in fields.items()}
    return Entry(text, _origin(document), "", _goes_on(document))
