"""Instants as people write them at a prompt: whole ones, a time of day, or how long ago. Pure; reads no clock.

What is relative is relative to what was read last, not to this machine's clock: so it also means something for the
tables of an archived log, and for a live job the two are a second apart.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from kardia.instants import parse_instant

DAY_MS = 86_400_000

_AGO = re.compile(r"([0-9]{1,6})(s|m|min|h|d)")
_UNIT_MS = {"s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": DAY_MS}
_TIME_OF_DAY = re.compile(r"([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})")

EXPECTED = (
    "an instant such as 2026-11-20T21:51:37.312Z, 21:51:37Z (the last one), 10m (ago) or 1795211497312 (epoch ms)"
)
"""For messages."""


def is_relative(text: str) -> bool:
    """Whether it takes a look at the tables to know the instant."""
    return bool(_AGO.fullmatch(text) or _TIME_OF_DAY.fullmatch(text))


def instant(text: str, reached_ms: int, not_before_ms: int | None = None) -> int:
    """Epoch milliseconds; ValueError says what the text is instead of an instant.

    `10m` is so long before `reached_ms`. `21:51Z` and `21:51:37.312+02:00` are the last such time of day that is not
    after `reached_ms`, or the first that is not before `not_before_ms`. A zone is needed: nobody knows whose noon it
    is otherwise.
    """
    if found := _AGO.fullmatch(text):
        return max(0, reached_ms - int(found[1]) * _UNIT_MS[found[2]])
    if found := _TIME_OF_DAY.fullmatch(text):
        today = datetime.fromtimestamp(reached_ms // 1000, UTC).date().isoformat()
        same_day_ms = parse_instant(f"{today}T{found[1]}{found[2] or ':00'}{found[3]}")
        if not_before_ms is not None:
            return same_day_ms + DAY_MS * -((same_day_ms - not_before_ms) // DAY_MS)
        return same_day_ms - DAY_MS * -((reached_ms - same_day_ms) // DAY_MS)
    return parse_instant(text)
