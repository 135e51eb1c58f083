"""The request log: reads JSON lines of brokers 2.8 and newer, and gives text lines of older ones to `request_text`.

    [2026-11-20 10:47:18,113] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,…} (…)

States what the line says and interprets nothing. The number of the API stands at a fixed place, so lines of other
APIs cost a look at a few bytes. What a client may choose (its ids, reasons, metadata) stands inside JSON strings,
which the broker escapes: nothing a client sends can end the line or look like the head of another one, and everything
is taken from the parsed object, never found by searching the text. Lines of brokers 2.0 to 2.7 are told from these by
their first word, each by itself, because a log may hold both around an upgrade; `request_text` reads them. Lines in
another layout than Kafka's are brought into it first (`ingest.layouts`).

Instants: see `kardia.events`.
Truth: Kafka `RequestConvertToJson` and the lines of eight broker versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, NamedTuple

import msgspec

from ingest.dialects import MILLIS_NEEDED, Asked, Listener, Reading, rejection
from ingest.dialects.line_patterns import Patterns
from ingest.dialects.quiet_lines import QuietLines
from ingest.dialects.request_events import CONNECTION, MAX_CONNECTION, Builder, RequestEvents, from_follower
from ingest.dialects.request_layout import API_AT, JSON_AT, LOGGER, LOGGER_BYTES, MARK, MARK_AT, PREFIX
from ingest.dialects.request_text import RequestText
from ingest.dialects.slow_lines import note_slow
from ingest.dialects.text_layout import HEAD
from ingest.layouts.recogniser import FRONT_BYTES, layouts
from ingest.stamps import MILLIS, Stamps
from kardia.events import DEFAULT_OFFSETS_PARTITIONS, Event
from kardia.slowness import SLOW_MS, Windows

_API_KEY = re.compile(rb'\{"isForwarded":(?:true|false),"requestHeader":\{"requestApiKey":(-?\d{1,5}),')

_USUAL_FRONT = re.compile(
    rb"\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}[,.][0-9]{3,9}\]? +[A-Z]{4,5} +(?:\[[^\]]{1,200}\] +)?"
)
"""What needs no look at layouts: the stamp, the level, perhaps a thread."""

_STAMPED = "a stamp such as [2026-11-20 10:47:18,113] before the request; without times nothing can be told"


class _Api(NamedTuple):
    decode: Callable[[bytes], Any]
    build: Builder


class _Head(msgspec.Struct):
    json_at: int
    api: _Api


class RequestJson:
    """Dialect of `kafka-request.log`."""

    stream = "request"

    def __init__(
        self,
        zone: tzinfo,
        offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS,
        *,
        fold: bool = False,
        fold_from_bytes: int = 0,
        patterns: Patterns | None = None,
        log_pattern: str = "",
    ) -> None:
        """`zone`: zone of the stamps. `offsets_partitions`: partitions of `__consumer_offsets` in this cluster.
        `log_pattern`: conversion pattern of its lines, tried before those that are known.

        `fold`: put heartbeats and fetches into stretches, for who reads many lines at a time: of blocks of so many
        bytes at least. `patterns`: see `QuietLines`.
        """
        self.stamps = Stamps(zone)
        self._slow: Windows = {}
        self._layouts = layouts(log_pattern)
        self._at_ms = self.stamps.at_ms
        self._seconds = self.stamps.seconds
        builders = RequestEvents(offsets_partitions)
        self._text = RequestText(builders, self.stamps, self._slow)
        self._quiet = QuietLines(builders, self.stamps, self._text, fold_from_bytes, patterns) if fold else None
        self._apis = {
            b"%d" % key: _Api(msgspec.json.Decoder(shape).decode, build)
            for key, (shape, build) in builders.by_api.items()
        }
        self._fast = {PREFIX + key + b",": api for key, api in self._apis.items()}

    @property
    def quiet(self) -> QuietLines | None:
        """See `ingest.dialects.Dialect`."""
        return self._quiet

    @property
    def slow(self) -> Windows | None:
        """See `ingest.dialects.Dialect`."""
        return self._slow

    def stamp_ms(self, line: bytes) -> float | None:
        """Instant of the line's own stamp."""
        at_ms = self._at_ms(line)
        if at_ms is not None:
            return at_ms
        stamp = self._layouts.stamp(line)
        return None if stamp is None else self._at_ms(stamp)

    def broker_of(self, line: bytes) -> Listener | None:
        """The broker's end of the connection, None when the line does not tell."""
        at = line.find(MARK, 0, FRONT_BYTES)
        if at < 0:
            return None
        if at != MARK_AT or not line.endswith(LOGGER):
            line = self._layouts.shipped(line) or line
            at = line.find(MARK, 0, FRONT_BYTES)
        if line.startswith(HEAD, at + len(MARK)):
            return self._text.broker_of(line, at + len(MARK))
        try:
            named = _broker_decoder.decode(line[at + len(MARK) : line.rfind(b"}") + 1])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        match = CONNECTION.fullmatch(named.connection) if len(named.connection) <= MAX_CONNECTION else None
        return Listener(match[1], _asked(named)) if match else None

    def read(self, line: bytes, source: str, start: int, end: int) -> Reading:
        """Read one line. See `ingest.dialects.Dialect`."""
        # The shipped layout at level DEBUG or TRACE: everything has its place. APIs of one digit first: FETCH is one.
        api = self._fast.get(line[JSON_AT : API_AT + 2]) or self._fast.get(line[JSON_AT : API_AT + 3])
        json_at = JSON_AT
        if api is None:
            if line.startswith(HEAD, JSON_AT) and line.startswith(MARK, MARK_AT) and line.endswith(LOGGER):
                at_ms, millis = self._seconds.get(line[:21]), MILLIS.get(line[21:25])
                at_ms = self._at_ms(line) if at_ms is None or millis is None else at_ms + millis
                if at_ms is not None:
                    return self._text.read(line, JSON_AT, source, start, end, at_ms)
            if line.startswith(PREFIX, JSON_AT) and line[API_AT : line.find(b",", API_AT)].isdigit():
                return "other_api"
            found = self._head(line, source, start, end)
            if not isinstance(found, _Head):
                return found
            json_at, api = found.json_at, found.api
        # A second met before costs two look-ups; everything else goes the long way.
        at_ms = self._seconds.get(line[:21])
        millis = MILLIS.get(line[21:25])
        if at_ms is not None and millis is not None:
            at_ms += millis
        else:
            at_ms = self._at_ms(line)
            if at_ms is None:
                return rejection("bad_timestamp", _STAMPED, line, source, start, end, None)
        decode, build = api
        body = line[json_at : -LOGGER_BYTES if line.endswith(LOGGER) else line.rfind(b"}") + 1]
        try:
            parsed = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._not_understood(error, line, source, start, end, at_ms)
        if not line.isascii() and not _is_utf8(line):
            return rejection("bad_encoding", "UTF-8", line, source, start, end, at_ms)
        try:
            reading = build(parsed, source, start, end, at_ms)
        except AttributeError:
            # `request` or `response` is a string or null.
            expected = "a request and a response; logging began while this request was on its way, or it got no answer"
            return rejection("unknown_shape", expected, line, source, start, end, at_ms)
        if parsed.total_time_ms >= SLOW_MS:
            note_slow(self._slow, parsed, reading, at_ms)
        return reading

    # --- lines that are not in the shipped layout ------------------------------------------------------------------

    def _head(self, line: bytes, source: str, start: int, end: int) -> _Head | Reading:
        at = line.find(MARK, 0, FRONT_BYTES)
        if at < 0:
            if not line.strip():
                return "blank"
            return "continuation" if self._at_ms(line) is None else "other_logger"
        match = _API_KEY.match(line, at + len(MARK))
        if not (_USUAL_FRONT.fullmatch(line, 0, at) and (match or line.endswith(LOGGER))):
            laid = self._layouts.laid(line)
            if laid is not None and not laid.words.startswith(MARK):
                return "other_logger"  # what looks like a request stands within its words
            if laid is not None and not laid.has_millis:
                return rejection("bad_timestamp", MILLIS_NEEDED, line, source, start, end, None)
            if laid is not None and laid.line != line:
                return self.read(laid.line, source, start, end)
        at_ms = self._at_ms(line)
        if at_ms is None:
            return rejection("bad_timestamp", _STAMPED, line, source, start, end, None)
        at += len(MARK)
        if match is not None:
            api = self._apis.get(match[1])
            return "other_api" if api is None else _Head(at, api)
        if line.startswith(HEAD, at):
            return self._text.read(line, at, source, start, end, at_ms)
        return self._respaced(line, at, source, start, end, at_ms)

    def _respaced(self, line: bytes, at: int, source: str, start: int, end: int, at_ms: float) -> _Head | Reading:
        """Where the fields do not have their places: a tool wrote the object anew."""
        body = line[at : line.rfind(b"}") + 1]
        try:
            key = _broker_decoder.decode(body).request_header.request_api_key
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            key = None
        except msgspec.DecodeError as error:
            if body[:1] == b"{":
                return self._not_understood(error, line, source, start, end, at_ms)
            key = None
        if key is None or key < 0:
            expected = 'an object with "requestHeader":{"requestApiKey":…'
            return rejection("unknown_shape", expected, line, source, start, end, at_ms)
        api = self._apis.get(b"%d" % key)
        return "other_api" if api is None else _Head(at, api)

    @staticmethod
    def _not_understood(error: Exception, line: bytes, source: str, start: int, end: int, at_ms: float) -> Event:
        """Name the reason. msgspec's sentences say what was expected and end with the path."""
        text = str(error)[:200]
        if not _is_utf8(line):
            return rejection("bad_encoding", "UTF-8", line, source, start, end, at_ms)
        if isinstance(error, msgspec.ValidationError):
            outside = " >= " in text or " <= " in text or "out of range" in text or "length <=" in text
            return rejection("out_of_range" if outside else "unknown_shape", text, line, source, start, end, at_ms)
        if "truncated" in text:
            text = f"this one is cut after {len(line)} bytes, by who wrote or exported it"
        return rejection("bad_json", f"a whole JSON object; {text}", line, source, start, end, at_ms)


class _Asking(msgspec.Struct, rename="camel"):
    request_api_key: int = -1
    client_id: str | None = None


class _ReplicaState(msgspec.Struct, rename="camel"):
    replica_id: int = -1


class _Fetching(msgspec.Struct, rename="camel"):
    """What tells a follower's FETCH: its replica id, since 3.5 in an object of its own."""

    replica_id: int = -1
    replica_state: _ReplicaState | None = None


class _Named(msgspec.Struct, rename="camel"):
    connection: str = ""
    request_header: _Asking = msgspec.field(default_factory=_Asking)
    request: _Fetching = msgspec.field(default_factory=_Fetching)


_FETCH = 1

_ON_BROKERS_ALONE = frozenset((0, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69, 76, 77, 78, 79, 88, 89))
"""PRODUCE, METADATA, and what clients ask of group coordinators and leaders of share partitions: the message schemas of
Kafka (`"listeners"`) have them on a broker's listeners only, never on those of a controller."""

_CONTROLLERS_CLIENT = "raft-client-"
"""Client id with which controllers and brokers fetch the metadata log from the controller that leads
(`kafka.raft.KafkaRaftManager`)."""


def _asked(named: _Named) -> Asked:
    key = named.request_header.request_api_key
    if key in _ON_BROKERS_ALONE:
        return Asked.BY_CLIENTS
    if key != _FETCH or (named.request_header.client_id or "").startswith(_CONTROLLERS_CLIENT):
        return Asked.BY_ANYBODY
    return Asked.BY_BROKERS if from_follower(named.request) else Asked.BY_CLIENTS


_broker_decoder = msgspec.json.Decoder(_Named)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
