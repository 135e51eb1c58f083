"""Lines as brokers write them: the recorded ones, and one that is built for a test. Recorded in `data/`, by version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
STORIES = Path(__file__).parent.parent / "corpora"
CONTROLLERS = "10.0.0.1:9093"
"""Listener of the controllers, on a broker that is one as well."""
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


def _fetch(number: int, client: str, version: int, **changes: Any) -> bytes:
    header = {**body()["requestHeader"], "requestApiKey": 1, "requestApiVersion": version, "clientId": client}
    response = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": []}
    return line(number, requestHeader={**header, "requestApiKeyName": "FETCH"}, response=response, **changes)


def fetched_by_a_controller(number: int = 0) -> bytes:
    """What brokers of 3.x and 4.x that are controllers as well write first, and twice a second for ever: another
    controller, or broker, fetches the metadata log."""
    request = {
        "clusterId": "32ruVqXzHV1z5EGogn2dgw",
        "replicaState": {"replicaId": 3, "replicaEpoch": -1},
        "maxWaitMs": 500,
        "topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [{"partition": 0, "fetchOffset": 0}]}],
    }
    at = {"connection": f"{CONTROLLERS}-10.0.0.3:43122-0-0", "listener": "CONTROLLER"}
    return _fetch(number, "raft-client-3", 18, request=request, **at)


def fetched_by_a_follower(number: int = 0) -> bytes:
    """Another broker follows a partition."""
    request = {"replicaState": {"replicaId": 2, "replicaEpoch": 10}, "maxWaitMs": 500, "topics": []}
    return _fetch(number, "broker-2-fetcher-0", 18, request=request)
