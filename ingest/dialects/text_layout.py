"""Where things stand in a text line of the request log (brokers 2.0 to 2.7), and which lines belong together.

[2020-05-01 13:00:00,123] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT, apiVersion=3, clientId=c, …

Nothing in it is quoted or escaped: a line break in an id of a client stands in the log as it is, so that a request may
take several lines. A request begins with a stamp and `MARK`, and ends with its times and the broker's own words
(`TAIL`); what begins and does not end goes on in the lines that follow it. A line break followed by a whole forged
line cannot be told from two requests in every case; where the end of the real one gives it away, all of it is refused.
"""

from __future__ import annotations

import re

from ingest.dialects.request_layout import LOGGER
from ingest.dialects.request_layout import MARK as ANY_MARK

HEAD = b"RequestHeader("
MARK = ANY_MARK + HEAD
_HEAD_BYTES = 288
"""A layout may print the thread before the mark, never anything of a client: the first mark is that of the line."""

MAX_JOINED_LINES = 4_096
"""Lines of one request: an id has 32,767 characters at most, nobody needs as many line breaks."""

_NUMBER = r"[0-9.E-]{1,24}"
_TIMES = rf";totalTime:({_NUMBER}),requestQueueTime:({_NUMBER}),localTime:({_NUMBER}),remoteTime:{_NUMBER}"
_TIMES += rf",throttleTime:{_NUMBER},responseQueueTime:({_NUMBER}),sendTime:({_NUMBER})"
_SOFTWARE = r"(?:,clientInformation:ClientInformation\(softwareName=([^,()]*), softwareVersion=([^,()]*)\))?"
_OVERHEAD = rf"(?:,temporaryMemoryBytes:\d+)?(?:,messageConversionsTime:{_NUMBER})?"
TAIL = (
    rf" from connection ([^ ;]+){_TIMES},securityProtocol:\w+,principal:.*?,listener:[^,()\s]+{_SOFTWARE}{_OVERHEAD}"
    r"(?: \([\w.$]+(?::\d+)?\))?(?: \[[^\[\]\n]{1,200}\])?\s*"
)
"""Eight groups: connection; total, queue, local, answer queue and send times; software and its version."""

_MAX_TAIL = 4_096
"""Bytes of a tail; the name of a principal is the only part of any length."""

_tail = re.compile(TAIL + r"\Z", re.DOTALL)
_tail_bytes = re.compile(TAIL.encode() + rb"\Z", re.DOTALL)
_FROM = " from connection "
_STAMPED = re.compile(rb"(?:\[?[A-Z]{4,5}\]?[ \t]+)?\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}")


def tail_of(text: str) -> re.Match[str] | None:
    """The end of a request: of what looks like one the last, because what a client chose stands before it."""
    at = text.rfind(_FROM)
    return _tail.match(text, at) if at >= 0 and len(text) - at <= _MAX_TAIL else None


def is_closed(line: bytes) -> bool:
    """Whether a line ends as a request ends."""
    at = line.rfind(_FROM.encode())
    return at >= 0 and len(line) - at <= _MAX_TAIL and _tail_bytes.match(line, at) is not None


def _begins(line: bytes) -> bool:
    at = line.find(ANY_MARK, 0, _HEAD_BYTES)
    return at >= 0 and line.startswith(HEAD, at + len(ANY_MARK))


def _is_open(line: bytes) -> bool:
    """Whether a request begins in this line and does not end in it."""
    if line.endswith(LOGGER) and b";totalTime:" in line:
        return False
    return _begins(line) and not is_closed(line)


def whole(lines: list[bytes]) -> list[bytes]:
    """Lines with the requests of several lines put together, their line breaks kept: lengths and positions stay."""
    if all(line.endswith(LOGGER) and line.rfind(b";totalTime:") > 0 for line in lines):
        return lines
    if not any(map(_is_open, lines)):
        return lines
    joined: list[bytes] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if _is_open(lines[at]):
            end = _end_of(lines, at)
        joined.append(lines[at] if end == at + 1 else b"\n".join(lines[at:end]))
        at = end
    return joined


def _end_of(lines: list[bytes], at: int) -> int:
    """Where the request that is open in line `at` ends, exclusive. The line that ends it has no stamp of its own; one
    in between that has is a forged one, and stays within what is refused."""
    forged = False
    for end in range(at + 1, min(at + MAX_JOINED_LINES, len(lines))):
        line = lines[end]
        if _STAMPED.match(line):
            forged = True
        elif is_closed(line):
            return end + 1
        if forged and end - at > 64:
            break
    if forged:
        return at + 1
    return min(at + MAX_JOINED_LINES, len(lines))


def is_forged(record: bytes) -> bool:
    """Whether a request of several lines has a line within that looks like the head of another one."""
    return any(_STAMPED.match(line) for line in record.split(b"\n")[1:])


def whole_end(data: bytes, cut: int, bound: int) -> int:
    """Where the last request that has ended ends, in data whose last line ends at `cut`. A request that is still open
    there waits for its other lines, unless it is longer than `bound` already."""
    if not cut or data.endswith(LOGGER + b"\n", 0, cut):
        return cut
    at = data.rfind(MARK, 0, cut)
    if at < 0:
        return cut
    begin = data.rfind(b"\n", 0, at) + 1
    if cut - begin > bound or is_closed(data[begin : cut - 1]):
        return cut
    first = data.find(b"\n", begin) + 1
    return begin if _is_open(data[begin : first - 1]) and not _STAMPED.match(data, first) else cut
