"""Heartbeats and fetches of text lines (brokers 2.0 to 2.7) as numbers, for `quiet_lines`: plain names only.

One look-up finds the expression of a line's API and version; what does not match it is handed back and read by itself,
with the care that it needs. Names without any of the characters between fields leave one reading (`text_readings`).
"""

from __future__ import annotations

import re
from typing import Any

from ingest.dialects.request_layout import JSON_AT, LOGGER
from ingest.dialects.text_layout import HEAD
from ingest.dialects.text_readings import HEADER_END, PLAIN, schema_of
from kardia.events import Kind

HEAD_END = JSON_AT + len(HEAD)
_CLIENT = b", clientId="
_NAME_MAX = 64
_MAX_KNOWN = 256
_FROM = " from connection "
_TIME = r"([0-9.]{1,20})"
_END = re.compile(
    rf"{_FROM}([^ ;]+);totalTime:{_TIME},requestQueueTime:{_TIME},localTime:{_TIME},remoteTime:[^,]*,"
    rf"throttleTime:[^,]*,responseQueueTime:{_TIME},sendTime:{_TIME},securityProtocol:\w+,principal:.*?,listener:[^,()\s]+"
    r"(?:,clientInformation:ClientInformation\(softwareName=([^,()]*), softwareVersion=([^,()]*)\))?"
    + re.escape(LOGGER.decode())
    + r"\Z"
).match
_fetch_begins = re.compile(rf"({PLAIN}){HEADER_END.pattern}\{{replica_id=(-?\d{{1,10}}),").match
_fetch_answers = re.compile(
    r"\},response:\{(?:throttle_time_ms=(\d{1,10}),)?(?:error_code=(-?\d{1,5}),session_id=-?\d{1,10},)?responses=\["
).match
_ANSWER = "},response:{"
_headers = re.compile(rb"RequestHeader\(apiKey=(FETCH|HEARTBEAT), apiVersion=(\d{1,4})").fullmatch


Quiet = tuple[int, tuple[Any, ...], float, float, float, float, int]
"""What is left of a line: its kind; what the lines of one sender have in common (`FETCH_KEY`, `HEARTBEAT_KEY`); total,
queue and local times, and that from the decision to the stamp; bytes of records."""

FETCH_KEY = ("source", "api_version", "connection", "software", "software_version", "client_id")
HEARTBEAT_KEY = (*FETCH_KEY, "group_id", "generation_id", "member_id", "group_instance_id")

MAX_TOTAL_MS = 1e10
"""As the bound of a duration in a JSON line."""


class QuietText:
    """Reads what is quiet among text lines."""

    def __init__(self) -> None:
        """Knows no version yet."""
        self._known: dict[bytes, tuple[re.Pattern[str] | None, int] | None] = {}
        """Header up to the client id -> expression of a heartbeat, or None of a fetch, and version."""

    def read(self, line: bytes, source: str) -> Quiet | None:
        """None for a line that says more than that somebody is alive, or that is not plain."""
        at = line.find(_CLIENT, JSON_AT, JSON_AT + _NAME_MAX)
        header = line[JSON_AT:at]
        known = self._known[header] if header in self._known else self._learn(header)
        if known is None:
            return None
        pattern, version = known
        text = line.decode("ascii")
        end = text.rfind(_FROM)
        tail = _END(text, end) if end > 0 else None
        if tail is None:
            return None
        at += len(_CLIENT)
        connection, total, queue, local, answer_queue, send, software, software_version = tail.groups()
        size = 0
        key: tuple[Any, ...]
        if pattern is None:
            fetch = plain_fetch(text, at, end)
            if fetch is None:
                return None
            client_id, replica, _, error, records_at = fetch
            if replica[0] != "-" or (error is not None and error != "0"):
                return None
            if text[records_at] != "]":
                size = size_of(text, records_at, end)
            key = (source, version, connection, software, software_version, client_id)
            kind = _FETCH
        else:
            found = pattern.fullmatch(text, at, end)
            if found is None:
                return None
            # Client, group, generation, member, the instance from version 3 on, the throttle time from 1 on, the error.
            names = found.groups()
            if names[-1] != "0" or (version and names[-2] != "0"):
                return None
            key = (source, version, connection, software, software_version, *names[:4], names[4] if version > 2 else "")
            kind = _HEARTBEAT
        try:
            total_ms = float(total)
            if total_ms > MAX_TOTAL_MS:
                return None
            return kind, key, total_ms, float(queue), float(local), float(answer_queue) + float(send), size
        except ValueError:
            return None

    def _learn(self, header: bytes) -> tuple[re.Pattern[str] | None, int] | None:
        match = _headers(header)
        if match is None:
            return None
        version = int(match[2])
        known = (None if match[1] == b"FETCH" else schema_of("HEARTBEAT", version).plain), version
        if len(self._known) < _MAX_KNOWN:
            self._known[header] = known
        return known


Fetch = tuple[str, str, str | None, str | None, int]
"""What a FETCH says: client id, replica id, throttle time and error as they stand there, where its records begin."""


def plain_fetch(text: str, at: int, end: int) -> Fetch | None:
    """The only reading of a FETCH without odd names; `at` is where the client id begins, `end` where the tail does."""
    begins = _fetch_begins(text, at, end)
    answer_at = text.find(_ANSWER, at, end)
    if begins is None or answer_at < 0:
        return None
    answers = _fetch_answers(text, answer_at, end)
    if answers is None or text.find(") -- ", begins.end(), answer_at) >= 0:
        return None
    if text.find(_ANSWER, answers.end(), end) >= 0 or text[end - 1] != "}":
        return None
    return *begins.groups(), *answers.groups(), answers.end()  # type: ignore[return-value]


def size_of(text: str, at: int, end: int) -> int:
    """Bytes of the records in an answer to a FETCH, whose partitions begin at `at`."""
    size = 0
    for first, last, whole in _records(text, at, end):
        size += int(whole) if whole else max(int(last) - int(first), 0)
    return size


_records = re.compile(
    r"record_set=(?:FileRecords\((?:size=\d+, )?file=[^,)]*, start=(\d{1,10}), end=(\d{1,10})\)"
    r"|MemoryRecords\(size=(\d{1,10}),)"
).findall
_HEARTBEAT, _FETCH = int(Kind.HEARTBEAT), int(Kind.FETCH)
