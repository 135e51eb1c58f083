"""Instants as people and programs write them: epoch milliseconds and RFC 3339, both ways, in integers.

Reads no clock, and calculates with no float: `datetime.fromtimestamp` rounds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

INSTANT_MAX_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z: the last instant that RFC 3339 can write."""

_EPOCH_MS = re.compile(r"[0-9]{1,15}")
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def to_rfc3339(at_ms: float | None) -> str | None:
    """UTC with milliseconds and `Z`; None for what is not known and for what no calendar holds. Instants of events have
    fractions of a millisecond, which are left out."""
    if at_ms is None or not 0 <= at_ms <= INSTANT_MAX_MS:
        return None
    second, ms = divmod(int(at_ms), 1000)
    return f"{_to_second(second)}.{ms:03d}Z"


@lru_cache(8_192)
def _to_second(at_s: int) -> str:
    """Many instants of an answer lie within the same seconds, and the calendar is most of the work."""
    return (_EPOCH + timedelta(seconds=at_s)).isoformat(timespec="seconds").removesuffix("+00:00")


def parse_instant(text: str) -> int:
    """Epoch milliseconds of `1760000000000` or `2026-11-21T10:00:00.123Z`; ValueError for all else.

    A number is always milliseconds. A time without a zone is refused: nobody knows whose noon it is. In a query string
    `+` is a blank, so `...T10:00:00 02:00` arrives where `+02:00` was typed; it is read as what was meant.
    """
    if _EPOCH_MS.fullmatch(text):
        at_ms = int(text)
    else:
        meant = re.sub(r" ([0-9]{2}:[0-9]{2})$", r"+\1", text) if text.count(":") == 3 else text
        if not _RFC_3339.fullmatch(meant):
            raise ValueError("neither epoch milliseconds nor RFC 3339 with a zone")
        fraction = re.search(r"\.([0-9]+)", meant)
        whole = meant.replace(fraction.group(0), "") if fraction else meant
        moment = datetime.fromisoformat(whole.upper().replace(" ", "T"))
        at_ms = (moment - _EPOCH) // _MILLISECOND + (int(fraction.group(1)[:3].ljust(3, "0")) if fraction else 0)
    if not 0 <= at_ms <= INSTANT_MAX_MS:
        raise ValueError("outside 1970 to 9999")
    return at_ms
