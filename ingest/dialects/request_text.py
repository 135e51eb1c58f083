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
from ingest.dialects import request_shapes as shapes
from ingest.dialects.request_events import CONNECTION, MAX_CONNECTION, Builder, RequestEvents
from ingest.dialects.slow_lines import note_slow
from ingest.dialects.text_layout import HEAD, is_forged, tail_of
from ingest.dialects.text_readings import HEADER_END, PLAIN, careful_reading, plain_reading, schema_of
from ingest.dialects.text_schemas import APIS
from ingest.stamps import Stamps
from kardia.slowness import SLOW_MS, Windows

FETCH = "FETCH"
_FETCH_KEY = 1
_head = re.compile(r"RequestHeader\(apiKey=([A-Z_]{1,40}), apiVersion=(\d{1,5}), clientId=").match
_fetch_begins = re.compile(HEADER_END.pattern + r"\{replica_id=(-?\d{1,10}),").search
FETCH_ANSWER = (
    r"\},response:\{(?:throttle_time_ms=(\d{1,10}),)?(?:error_code=(-?\d{1,5}),session_id=-?\d{1,10},)?responses=\["
)
_fetch_answers = re.compile(FETCH_ANSWER).search
_records = re.compile(
    r"record_set=(?:FileRecords\((?:size=\d+, )?file=[^)]*?, start=(\d{1,10}), end=(\d{1,10})\)|MemoryRecords\(size=(\d{1,10}),)"
)
_whole_throttle = re.compile(r" from connection .*,throttleTime:\d+,responseQueueTime:", re.DOTALL).match
_SOFTWARE = 7
"""Group of the tail that holds the name of the client's library, from 2.5 on."""
_plain_client = re.compile(PLAIN).fullmatch

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


class RequestText:
    """The part of the request log's dialect that reads text lines."""

    def __init__(self, builders: RequestEvents, stamps: Stamps, slow: Windows) -> None:
        """What it shares with the JSON lines of the same log."""
        self._builders: dict[int, tuple[type, Builder]] = builders.by_api
        self._stamps = stamps
        self._slow = slow
        self._is_2_4 = False
        """Whether a line of this log was one that 2.3 does not write: else the two differ in few."""

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

        def refused(reason: str, expected: str) -> Reading:
            return rejection(reason, expected, line, source, start, end, at_ms)

        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            return refused("bad_encoding", "UTF-8: the broker's JVM with -Dfile.encoding=UTF-8")
        head = _head(text, at if line[:at].isascii() else text.find(HEAD.decode()))
        if head is None:
            return refused("unknown_shape", "RequestHeader(apiKey=…, apiVersion=…, clientId=…")
        tail = tail_of(text)
        if tail is None:
            return refused("incomplete_line", "the times and the broker's own words at the end of the request")
        if b"\n" in line and is_forged(line):
            return refused("ambiguous", "one request; within an id of this one stands what looks like another one")
        name, version = head[1], int(head[2])
        self._is_2_4 = self._is_2_4 or version >= _SINCE_2_4.get(name, version + 1)
        if name != FETCH and name not in APIS:
            return "other_api"
        parsed: dict[str, Any] | str | None
        if name == FETCH:
            parsed = _fetch(text, head.end(), tail.start())
        else:
            parsed = _request(name, version, text, head.end(), tail.start())
        if parsed is None:
            expected = f"fields of {name} {version} as a broker 2.0 to 2.7 writes them"
            return refused("unknown_shape", expected)
        if isinstance(parsed, str):
            return refused("ambiguous", parsed)
        parsed["requestHeader"]["requestApiVersion"] = version
        _time(parsed, tail)
        if name == "JOIN_GROUP":
            parsed["release"] = self._release(text, tail)
        shape, build = self._builders[_FETCH_KEY if name == FETCH else APIS[name].key]
        try:
            converted = msgspec.convert(parsed, shape)
        except msgspec.ValidationError as error:
            return refused("out_of_range", str(error)[:200])
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
        return "2.4" if self._is_2_4 else "2.3"


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
    begins = _fetch_begins(text, at, end)
    if begins is None:
        return None
    answers = _fetch_answers(text, begins.end(), end)
    if answers is None:
        return None
    if _plain_client(text, at, begins.start()) is None and _fetch_begins(text, begins.start() + 1, end) is not None:
        return "a line with one meaning; the client id looks like the request itself"
    if _fetch_answers(text, answers.end(), end) is not None:
        return "a line with one meaning; a name in it looks like the answer"
    size = fetched(text, answers.end(), end)
    response = {
        "errorCode": int(answers[2] or 0),
        "responses": [{"partitions": [{"recordsSizeInBytes": size}]}] if size else [],
    }
    return _parts(text[at : begins.start()], {"replicaId": int(begins[1])}, response, int(answers[1] or 0))


def fetched(text: str, at: int, end: int) -> int:
    """Size of the records in an answer to a FETCH, which begins at `at`."""
    size = 0
    for first, last, whole in _records.findall(text, at, end):
        size += int(whole) if whole else max(int(last) - int(first), 0)
    return size


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
    parsed["remoteTimeMs"] = max(total_ms - queue_ms - local_ms - float(answer_queue) - float(send), 0.0)
    if software is not None:
        parsed["clientInformation"] = {"softwareName": software, "softwareVersion": software_version}
