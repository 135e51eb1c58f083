"""Counts of the HTTP side. Labels come from closed sets: method, route template, status, setting."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from api.access.token_file import OUTCOMES
from api.errors import LIMITS
from api.files.counted import Read

CLOSED = ("idle", "refused", "no_request", "unread")
"""Why the server closed a connection: it was idle and its place was needed; all places were taken by requests; no
request came in time; it did not take what it was sent, in time, or as its place was needed."""

READ_BYTES = tuple(62_500.0 * (1 << power) for power in range(12))
"""Buckets of bytes that a question has read: 62.5 kB to 128 MB, the bound of 2 MB among them."""


class RequestMetrics:
    """Requests answered, and the time they took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "kardia_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "kardia_http_request_duration_seconds",
            "Time to answer a request.",
            ("route",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=registry,
        )
        self._read = Histogram(
            "kardia_http_read_bytes",
            "Bytes of files that a question about the past has read, from the disk or from memory.",
            buckets=READ_BYTES,
            registry=registry,
        )
        self._limited = Counter(
            "kardia_http_limited", "Requests that met the bound of a setting.", ("limit",), registry=registry
        )
        for limit in LIMITS:
            self._limited.labels(limit)
        self._closed = Counter(
            "kardia_http_connections_closed",
            "Connections that the server closed: idle and their place was needed, refused because all places were "
            "taken by requests, without a request in time, or not taking what they were sent.",
            ("why",),
            registry=registry,
        )
        for why in CLOSED:
            self._closed.labels(why)
        self._token_file = Counter(
            "kardia_token_file_changes",
            "Changes of the token file: taken, or kept as it was before because the new one cannot be used.",
            ("outcome",),
            registry=registry,
        )
        for outcome in OUTCOMES:
            self._token_file.labels(outcome)

    def read(self, read: Read) -> None:
        """Count what a question has read of files."""
        self._read.observe(read.bytes)

    def limit(self, limit: str) -> None:
        """Count a request that met a bound."""
        self._limited.labels(limit).inc()

    def connection_closed(self, why: str) -> None:
        """Count a connection that the server closed."""
        self._closed.labels(why).inc()

    def token_file(self, outcome: str) -> None:
        """Count a change of the token file."""
        self._token_file.labels(outcome).inc()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one finished request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
