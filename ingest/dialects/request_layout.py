"""Byte offsets in a request line of Kafka's default log layout, so that most lines need no search.

[2026-11-20 10:47:18,113] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,…} (…)
"""

from __future__ import annotations

MARK = b"Completed request:"

MARK_AT = len(b"[2026-11-20 10:47:18,113] DEBUG ")
"""Levels DEBUG and TRACE have the same length."""

JSON_AT = MARK_AT + len(MARK)
PREFIX = b'{"isForwarded":false,"requestHeader":{"requestApiKey":'
API_AT = JSON_AT + len(PREFIX)
LOGGER = b" (kafka.request.logger)"
LOGGER_BYTES = len(LOGGER)
