"""Heartbeats and fetches among text lines, for `quiet_lines`: plain names only.

One look-up finds the expression of a line's API and version, and one match reads the whole line; what does not match is
handed back and read by itself, with the care that it needs. Names without any of the characters between fields leave
one reading (`text_readings`), and so does a FETCH whose only colons are those of its answer and of its end.
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
_CLIENT_BYTES = len(_CLIENT)
_NAME_MAX = 64
_MAX_KNOWN = 256
_MAX_WORDS = 4_096
_MAX_WORDS_CHARS = 512
_FROM = " from connection "
_TIME = r"([0-9.]{1,20})"
_END = (
    rf"{_FROM}([^ ;]+);totalTime:{_TIME},requestQueueTime:{_TIME},localTime:{_TIME},remoteTime:[^,]*+,"
    rf"throttleTime:[^,]*+,responseQueueTime:{_TIME},sendTime:{_TIME}(,securityProtocol:.*)"
)
"""Seven groups: connection; total, queue, local, answer queue and send times; the words of the broker after them."""

_words = re.compile(
    r",securityProtocol:\w+,principal:.*?,listener:[^,()\s]+"
    r"(?:,clientInformation:ClientInformation\(softwareName=([^,()]*), softwareVersion=([^,()]*)\))?"
    + re.escape(LOGGER.decode())
).fullmatch
_QUIET_FETCH = re.compile(
    rf"({PLAIN}){HEADER_END.pattern}\{{replica_id=-\d{{1,10}},([^:]*+)(?<=\}},response):\{{(?:throttle_time_ms=\d{{1,10}},)?"
    rf"(?:error_code=0,session_id=-?\d{{1,10}},)?responses=\[([^:]*)(?<=\}}){_END}"
)
_fetch_begins = re.compile(rf"({PLAIN}){HEADER_END.pattern}\{{replica_id=(-?\d{{1,10}}),").match
_fetch_answers = re.compile(
    r"\},response:\{(?:throttle_time_ms=(\d{1,10}),)?(?:error_code=(-?\d{1,5}),session_id=-?\d{1,10},)?responses=\["
).match
_ANSWER = "},response:{"
VERSION_OF_2_3 = 11
"""Highest version of FETCH in 2.3, and in 2.4 to 2.6 as well."""
SIZED = "Records(size="
"""How the records of a FETCH begin from 2.4 on; up to 2.3 a file stands there without its size, or nothing."""
_headers = re.compile(rb"RequestHeader\(apiKey=(FETCH|HEARTBEAT), apiVersion=(\d{1,4})").fullmatch
_Known = tuple[re.Pattern[str], int] | None
_UNSEEN: _Known = (re.compile(""), -1)


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
        self.is_2_4 = False
        """Whether a line of this log was one that 2.3 does not write: else the two differ in few."""
        self._known: dict[bytes, _Known] = {}
        """Header up to the client id -> expression of all that follows, and version; None: not quiet."""
        self._software: dict[str, tuple[str | None, str | None]] = {}
        """Words of the broker at the end of a line, the same for all of a connection -> the client's library."""

    def read(self, line: bytes, source: str) -> Quiet | None:
        """None for a line that says more than that somebody is alive, or that is not plain."""
        at = line.find(_CLIENT, JSON_AT, JSON_AT + _NAME_MAX)
        header = line[JSON_AT:at]
        known = self._known.get(header, _UNSEEN)
        if known is _UNSEEN:
            known = self._learn(header)
        if known is None:
            return None
        pattern, version = known
        match = pattern.match(line.decode("ascii"), at + _CLIENT_BYTES)
        if match is None:
            return None
        size = 0
        key: tuple[Any, ...]
        if pattern is _QUIET_FETCH:
            client_id, asked, records, connection, total, queue, local, answer_queue, send, words = match.groups()
            client = self._software.get(words) or self._client(words)
            if client is None or ") -- " in asked:
                return None
            if version == VERSION_OF_2_3 and not self.is_2_4 and SIZED in records:
                return None  # the first that tells the release is read in its turn among all lines
            if records[0] != "]":
                size = size_of(records, 0, len(records))
            key = (source, version, connection, *client, client_id)
            kind = _FETCH
        else:
            # Client, group, generation, member, the instance from version 3 on, the throttle time from 1 on, the error.
            *names, connection, total, queue, local, answer_queue, send, words = match.groups()
            client = self._software.get(words) or self._client(words)
            if client is None or names[-1] != "0" or (version and names[-2] != "0"):
                return None
            key = (source, version, connection, *client, *names[:4], names[4] if version > 2 else "")
            kind = _HEARTBEAT
        try:
            total_ms = float(total)
            if total_ms > MAX_TOTAL_MS:
                return None
            return kind, key, total_ms, float(queue), float(local), float(answer_queue) + float(send), size
        except ValueError:
            return None

    def _client(self, words: str) -> tuple[str | None, str | None] | None:
        match = _words(words) if _FROM not in words else None
        if match is None:
            return None
        client = match[1], match[2]
        if len(words) <= _MAX_WORDS_CHARS:
            if len(self._software) >= _MAX_WORDS:
                self._software.clear()
            self._software[words] = client
        return client

    def _learn(self, header: bytes) -> _Known:
        match = _headers(header)
        known: _Known = None
        if match is not None:
            version = int(match[2])
            plain = schema_of("HEARTBEAT", version).plain.pattern
            known = (_QUIET_FETCH if match[1] == b"FETCH" else re.compile(plain + _END)), version
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
    r"record_set=(?:FileRecords\((?:size=\d+, )?file=[^,)]*+, start=(\d{1,10}), end=(\d{1,10})\)"
    r"|MemoryRecords\(size=(\d{1,10}),)"
).findall
_HEARTBEAT, _FETCH = int(Kind.HEARTBEAT), int(Kind.FETCH)
