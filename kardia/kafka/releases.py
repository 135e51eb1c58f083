"""Releases of Kafka as numbers that compare, and spans of them.

Knows nothing of what a release does; that is `behaviour`.
"""

from __future__ import annotations

from typing import NamedTuple

Version = tuple[int, int, int]

OLDEST: Version = (2, 0, 0)
"""Older brokers speak another record format and are not modelled."""
JAVA: Version = (4, 0, 0)
"""First release in which the Java coordinator is the only one. Up to 3.9 it could be switched on; that is not
modelled."""
_END: Version = (9999, 0, 0)


class Span(NamedTuple):
    """Releases from `first` on, before `end`."""

    first: Version
    end: Version = _END


SCALA_ONLY = (Span(OLDEST, JAVA),)
JAVA_ONLY = (Span(JAVA),)


def since(*firsts: Version) -> tuple[Span, ...]:
    """From each release to the end of its minor line, from the last one for good: how fixes are carried back."""
    lines = tuple(Span(first, (first[0], first[1] + 1, 0)) for first in firsts[:-1])
    return (*lines, Span(firsts[-1]))


def version_of(kafka_version: str) -> Version:
    """Numbers of a release such as "3.9.2" or "4.1" (a missing number is 0, a suffix after "-" is dropped).

    Raises ValueError when it is not made of numbers with dots, or older than 2.0.
    """
    parts = kafka_version.split("-", 1)[0].split(".")
    if not all(part.isdigit() for part in parts) or len(parts) > 3:
        raise ValueError(
            f"kafka version {kafka_version!r}: expected numbers with dots such as 3.9.2; give the broker's release"
        )
    major, minor, patch = (*(int(part) for part in parts), 0, 0)[:3]
    if (major, minor, patch) < OLDEST:
        raise ValueError(f"kafka version {kafka_version!r}: expected 2.0 or later; older brokers are not modelled")
    return major, minor, patch
