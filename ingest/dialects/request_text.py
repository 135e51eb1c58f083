"""Text lines of the request log, brokers 2.0 to 2.7: each is taken apart into what a JSON line of 2.8 holds.

    [2020-05-01 13:00:00,123] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT, apiVersion=3, clientId=c, …

The same builders then make the same events of it. What such a line does not hold stays empty, which is "not known":
the bytes of subscriptions and assignments, reasons, the client's library before 2.5. What can be read in two ways is
rejected as `ambiguous` (`text_readings`).

Instants: up to 2.5 the throttle time is a part of the whole that may overlap the others, so the answer was decided at
the stamp less the times that come after it, not at the arrival plus those before it.
Truth: recorded lines of eight releases.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ingest.dialects import Asked, Listener, Reading, rejection
from ingest.dialects.quiet_text import SIZED, VERSION_OF_2_3, QuietText, plain_fetch, size_of
from ingest.dialects.request_events import CONNECTION, MAX_CONNECTION, Builder, RequestEvents
from ingest.dialects.request_layout import JSON_AT
from ingest.dialects.slow_lines import note_slow
from ingest.dialects.text_layout import HEAD, is_forged, tail_of
from ingest.dialects.text_readings import HEADER_END, careful_reading, plain_reading, schema_of
from ingest.dialects.text_schemas import APIS
from ingest.stamps import Stamps
from kardia.slowness import SLOW_MS, Windows

FETCH = "FETCH"
_FETCH_KEY = 1
_head = re.compile(r"RequestHeader\(apiKey=([A-Z_]{1,40}), apiVersion=(\d{1,5}), clientId=").match
_fetch_begins = re.compile(HEADER_END.pattern + r"\{replica_id=(-?\d{1,10}),").search
_fetch_answers = re.compile(
    r"\},response:\{(?:throttle_time_ms=(\d{1,10}),)?(?:error_code=(-?\d{1,5}),session_id=-?\d{1,10},)?responses=\["
).search
_whole_throttle = re.compile(r" from connection .*,throttleTime:\d+,responseQueueTime:", re.DOTALL).match
_SOFTWARE = 7
"""Group of the tail that holds the name of the client's library, from 2.5 on."""

_SINCE_2_4 = {
    "FETCH": 12,
    "OFFSET_COMMIT": 8,
    "OFFSET_FETCH": 6,
    "FIND_COORDINATOR": 3,
    "JOIN_GROUP": 6,
    "SYNC_GROUP": 4,
    "HEARTBEAT": 4,
    "LEAVE_GROUP": 3,
    "TXN_OFFSET_COMMIT": 3,
    "DELETE_GROUPS": 2,
    "OFFSET_DELETE": 0,
}
"""Versions that a broker 2.3 does not answer."""

_ASKED_BY_CLIENTS = frozenset(("PRODUCE", "METADATA", "OFFSET_FETCH", "FIND_COORDINATOR", *APIS))


class _RejectedError(Exception):
    """A line cannot be read: why, and what was expected, as `rejection` has them."""

    def __init__(self, reason: str, expected: str) -> None:
        super().__init__(expected)
        self.reason, self.expected = reason, expected


class RequestText:
    """The part of the request log's dialect that reads text lines."""

    def __init__(self, builders: RequestEvents, stamps: Stamps, slow: Windows) -> None:
        """What it shares with the JSON lines of the same log."""
        self._events = builders
        self._builders: dict[int, tuple[type, Builder]] = builders.by_api
        self.quiet = QuietText()
        self._stamps = stamps
        self._slow = slow

    def broker_of(self, line: bytes, at: int) -> Listener | None:
        """See `ingest.dialects.Dialect`; `at` is where the header begins."""
        text = line.decode("utf-8", "replace")
        head = _head(text, len(line[:at].decode("utf-8", "replace")))
        tail = tail_of(text)
        connection = tail[1] if tail else ""
        match = CONNECTION.fullmatch(connection) if len(connection) <= MAX_CONNECTION else None
        if head is None or match is None:
            return None
        asked = Asked.BY_CLIENTS if head[1] in _ASKED_BY_CLIENTS else Asked.BY_ANYBODY
        if head[1] == FETCH:
            begins = _fetch_begins(text, head.end())
            asked = Asked.BY_CLIENTS if begins is not None and begins[1].startswith("-") else Asked.BY_BROKERS
        return Listener(match[1], asked)

    def read(self, line: bytes, at: int, source: str, start: int, end: int, at_ms: float) -> Reading:
        """Read one request, whose header begins at byte `at`."""
        if at == JSON_AT and line.isascii():
            quiet = self.quiet.read(line, source)
            if quiet is not None:
                event = self._events.quiet_text(quiet, start, end, at_ms)
                if event is not None:
                    return event
        try:
            text, head, tail = _laid_out(line, at)
            name, version = head[1], int(head[2])
            if not self.quiet.is_2_4:
                self.quiet.is_2_4 = _shows_2_4(name, version, text)
            if name != FETCH and name not in APIS:
                return "other_api"
            parsed = _parsed(name, version, text, head.end(), tail)
            if name == "JOIN_GROUP":
                parsed["release"] = self._release(text, tail)
            shape, build = self._builders[_FETCH_KEY if name == FETCH else APIS[name].key]
            converted = _converted(parsed, shape)
        except _RejectedError as rejected:
            return rejection(rejected.reason, rejected.expected, line, source, start, end, at_ms)
        reading = build(converted, source, start, end, at_ms)
        if parsed["totalTimeMs"] >= SLOW_MS:
            note_slow(self._slow, converted, reading, at_ms)
        return reading

    def _release(self, text: str, tail: re.Match[str]) -> str:
        """The oldest release whose lines look like this JoinGroup: by names, by the client's library, and by whether
        the throttle time has a point."""
        if _whole_throttle(text, tail.start()):
            return "2.6"
        if tail[_SOFTWARE] is not None:
            return "2.5"
        if ",session_timeout=" in text:
            return "2.0"
        return "2.4" if self.quiet.is_2_4 else "2.3"


def _laid_out(line: bytes, at: int) -> tuple[str, re.Match[str], re.Match[str]]:
    """Text of a line, the head of its request, and its tail with the times. Raises `_RejectedError`."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        expected = "UTF-8: start the JVM of the broker with -Dfile.encoding=UTF-8"
        raise _RejectedError("bad_encoding", expected) from None
    head = _head(text, at if line[:at].isascii() else text.find(HEAD.decode()))
    if head is None:
        raise _RejectedError("unknown_shape", "RequestHeader(apiKey=…, apiVersion=…, clientId=…")
    tail = tail_of(text)
    if tail is None:
        raise _RejectedError("incomplete_line", "the times and the words of the broker at the end of the request")
    if b"\n" in line and is_forged(line):
        expected = "one request; within an id of this one stands what looks like another one"
        raise _RejectedError("ambiguous", expected)
    return text, head, tail


def _parsed(name: str, version: int, text: str, at: int, tail: re.Match[str]) -> dict[str, Any]:
    """What a JSON line of this request holds; its fields begin at `at`. Raises `_RejectedError`."""
    end = tail.start()
    parsed = _fetch(text, at, end) if name == FETCH else _request(name, version, text, at, end)
    if parsed is None:
        expected = f"fields of {name} {version} as a broker 2.0 to 2.7 writes them"
        raise _RejectedError("unknown_shape", expected)
    if isinstance(parsed, str):
        raise _RejectedError("ambiguous", parsed)
    parsed["requestHeader"]["requestApiVersion"] = version
    try:
        _time(parsed, tail)
    except ValueError:
        raise _RejectedError("unknown_shape", "times in milliseconds") from None
    return parsed


def _converted(parsed: dict[str, Any], shape: type) -> Any:
    """The same as the builders take it. Raises `_RejectedError`."""
    try:
        return msgspec.convert(parsed, shape)
    except msgspec.ValidationError as error:
        raise _RejectedError("out_of_range", str(error)[:200]) from None


def _shows_2_4(name: str, version: int, text: str) -> bool:
    """Whether 2.3 does not write such a line: it answers no such version, or says something else of records."""
    if name == FETCH and version == VERSION_OF_2_3:
        return text.find(SIZED, text.rfind(",response:{")) >= 0
    return version >= _SINCE_2_4.get(name, version + 1)


def _request(name: str, version: int, text: str, at: int, end: int) -> dict[str, Any] | str | None:
    """Header, request and response; a sentence where there are several readings, None where there is none."""
    schema = schema_of(name, version)
    found = plain_reading(schema, text, at, end) or careful_reading(schema, text, at, end)
    if found is None or isinstance(found, str):
        return found
    request, response = found.request, found.response
    if "groupsNames" in request:
        request = {"groupsNames": [result["groupId"] for result in response["results"]]}
    throttled_ms = response.get("throttleTimeMs", 0)
    return _parts(found.client_id, request, response, throttled_ms)


def _fetch(text: str, at: int, end: int) -> dict[str, Any] | str | None:
    """The same of a FETCH, of which only its sender and the size of its answer are told."""
    fetch = plain_fetch(text, at, end)
    if fetch is None:
        begins = _fetch_begins(text, at, end)
        answers = _fetch_answers(text, begins.end(), end) if begins else None
        if begins is None or answers is None:
            return None
        if _fetch_begins(text, begins.start() + 1, end) is not None:
            return "a line with one meaning; the client id looks like the request itself"
        if _fetch_answers(text, answers.end(), end) is not None:
            return "a line with one meaning; a name in it looks like the answer"
        fetch = text[at : begins.start()], begins[1], answers[1], answers[2], answers.end()
    client_id, replica, throttled, error, records_at = fetch
    size = size_of(text, records_at, end)
    response = {
        "errorCode": int(error or 0),
        "responses": [{"partitions": [{"recordsSizeInBytes": size}]}] if size else [],
    }
    return _parts(client_id, {"replicaId": int(replica)}, response, int(throttled or 0))


def _parts(client_id: str, request: object, response: object, throttled_ms: int) -> dict[str, Any]:
    return {
        "requestHeader": {"clientId": client_id},
        "request": request,
        "response": response,
        "throttleTimeMs": max(throttled_ms, 0),
    }


def _time(parsed: dict[str, Any], tail: re.Match[str]) -> None:
    """Times of a line, those that its kind of reckoning needs: see the head of this file."""
    connection, total, queue, local, answer_queue, send, software, software_version = tail.groups()
    total_ms, queue_ms, local_ms = float(total), float(queue), float(local)
    parsed["connection"] = connection
    parsed["totalTimeMs"], parsed["requestQueueTimeMs"], parsed["localTimeMs"] = total_ms, queue_ms, local_ms
    parsed["remoteTimeMs"] = max(total_ms - queue_ms - local_ms - (float(answer_queue) + float(send)), 0.0)
    if software is not None:
        parsed["clientInformation"] = {"softwareName": software, "softwareVersion": software_version}
