"""Lines as brokers write them: the recorded ones, and one that is built for a test. Recorded in `data/`, by version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
STORIES = Path(__file__).parent.parent / "corpora"
VERSIONS = ("2.8.2", "3.3.2", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
START_MS = 1_795_000_000_000


def recorded(version: str) -> Iterator[tuple[str, bytes]]:
    """Title and line of every recorded request of a broker version."""
    title = ""
    for line in (DATA / f"request-lines-{version}.txt").read_bytes().splitlines():
        if line.startswith(b"# "):
            title = line[2:].decode()
        else:
            yield title, line


def stamp(at_ms: int) -> str:
    """A stamp as log4j prints it, in UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"[{at:%Y-%m-%d %H:%M:%S},{at_ms % 1000:03d}]"


def body(number: int = 0, **changes: Any) -> dict[str, Any]:
    """The JSON object of a heartbeat; `changes` replace top-level parts."""
    parts: dict[str, Any] = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 12,
            "requestApiVersion": 4,
            "correlationId": number,
            "clientId": "c-1",
            "requestApiKeyName": "HEARTBEAT",
        },
        "request": {"groupId": "g-1", "generationId": 5, "memberId": "m-1", "groupInstanceId": None},
        "response": {"throttleTimeMs": 0, "errorCode": 0},
        "connection": "10.0.0.1:9092-10.0.0.7:51234-0-17",
        "totalTimeMs": 2.5,
        "requestQueueTimeMs": 0.25,
        "localTimeMs": 0.5,
        "remoteTimeMs": 1.0,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.25,
        "sendTimeMs": 0.5,
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "4.1.1"},
    }
    return {**parts, **changes}


def line(number: int = 0, *, at_ms: int | None = None, **changes: Any) -> bytes:
    """A whole line without its line end; `number` makes it different from the others."""
    at = START_MS + number if at_ms is None else at_ms
    text = json.dumps(body(number, **changes), separators=(",", ":"))
    return f"{stamp(at)} DEBUG Completed request:{text} (kafka.request.logger)".encode()
