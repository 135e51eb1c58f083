"""The request log as the broker writes it: one JSON line per request that was answered, in Kafka's field order.

Shapes are those of recorded lines of 3.9 and 4.x. A stamp is cut to 1 ms; the durations are given in ms to 1 µs. The
lines of one connection are in order, those of several a little mixed: each has an instant at which it is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

API = {
    "FETCH": 1,
    "OFFSET_COMMIT": 8,
    "FIND_COORDINATOR": 10,
    "JOIN_GROUP": 11,
    "HEARTBEAT": 12,
    "LEAVE_GROUP": 13,
    "SYNC_GROUP": 14,
    "DELETE_GROUPS": 42,
    "CONSUMER_GROUP_HEARTBEAT": 68,
    "SHARE_GROUP_HEARTBEAT": 76,
    "STREAMS_GROUP_HEARTBEAT": 88,
}

_dumps = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class Times:
    """Where a request spent its time, ms: arrival to handler, in the handler, until decided, until written."""

    queue: float
    local: float
    remote: float
    response_queue: float
    send: float

    @property
    def total(self) -> float:
        """From arrival to the line."""
        return self.queue + self.local + self.remote + self.response_queue + self.send


@dataclass(frozen=True)
class Sender:
    """What a line says about who asked."""

    client_id: str
    software: tuple[str, str]
    connection: str


def stamp_of(at_ms: float) -> str:
    """Stamp as log4j prints it, in UTC, cut to 1 ms."""
    whole = int(at_ms)
    return datetime.fromtimestamp(whole // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f",{whole % 1000:03d}"


def line_of(
    at_ms: float,
    api: str,
    version: int,
    number: int,
    sender: Sender,
    request: dict[str, Any],
    response: dict[str, Any],
    times: Times,
) -> bytes:
    """One line, with its end."""
    body = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": API[api],
            "requestApiVersion": version,
            "correlationId": number,
            "clientId": sender.client_id,
            "requestApiKeyName": api,
        },
        "request": request,
        "response": response,
        "connection": sender.connection,
        "totalTimeMs": round(times.total, 3),
        "requestQueueTimeMs": round(times.queue, 3),
        "localTimeMs": round(times.local, 3),
        "remoteTimeMs": round(times.remote, 3),
        "throttleTimeMs": 0,
        "responseQueueTimeMs": round(times.response_queue, 3),
        "sendTimeMs": round(times.send, 3),
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": sender.software[0], "softwareVersion": sender.software[1]},
    }
    return f"[{stamp_of(at_ms)}] DEBUG Completed request:{_dumps(body)} (kafka.request.logger)\n".encode()


class Line(NamedTuple):
    """A line, when it reaches the file, and the stamp in it."""

    written_at_ms: float
    stamp_at_ms: int
    text: bytes


class RequestLog:
    """Lines of one broker with the instants at which they reach the file."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lines: list[Line] = []
        self.most_late_ms = 12.0
        """A thread that lost the processor writes its line that late at most."""

    def write(self, at_ms: float, late_ms: float, line: bytes) -> None:
        """Add a line that is stamped at an instant and reaches the file a little later."""
        self._lines.append(Line(at_ms + late_ms, int(at_ms), line))

    def lines(self, to_ms: float) -> list[Line]:
        """What has reached the file by an instant, in its order; a sort that keeps the order of equal instants."""
        lines = (line for line in self._lines if line.written_at_ms <= to_ms)
        return sorted(lines, key=lambda line: line.written_at_ms)
