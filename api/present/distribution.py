"""Durations by bucket, what a histogram of Prometheus is made of, and the latest of them as they are: a quantile of a
histogram is an edge of a bucket or a guess between two. Folded from rows and never from history."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from math import ceil

REBALANCE_BOUNDS_MS = (100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000)
"""A quick cooperative round to the five minutes that a consumer's default poll interval lets a group wait."""

KNOWN_AFTER_BOUNDS_MS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 300_000)
"""From the eviction to its evidence: at once where the log says so, a whole rebalance where it must be awaited."""

LEAD_BOUNDS_MS = (250, 500, 1_000, 2_500, 5_000, 10_000, 22_500, 60_000, 150_000)
"""Half of the usual session timeouts (6 s, 10 s, 45 s) and poll intervals (5 min) are among them."""


LATEST_KEPT = 1_000
"""Durations that quantiles are of, at most: the latest."""

QUANTILES_OF_MS = 3_600_000
"""And of those the ones of the last hour."""


class Distribution:
    """Durations in ms, counted by the first bound that is not below them."""

    __slots__ = ("_counts", "_latest", "bounds_ms", "sum_ms")

    def __init__(self, bounds_ms: tuple[int, ...]) -> None:
        self.bounds_ms = bounds_ms
        self.sum_ms = 0
        self._counts = [0] * (len(bounds_ms) + 1)
        self._latest: deque[tuple[int, int]] = deque(maxlen=LATEST_KEPT)

    def copied_on_write(self) -> Distribution:
        """The same, for more durations to be counted in."""
        other = Distribution(self.bounds_ms)
        other._counts, other.sum_ms, other._latest = self._counts.copy(), self.sum_ms, self._latest.copy()
        return other

    def add(self, duration_ms: int, at_ms: int) -> None:
        """Count a duration that was over at an instant; one below zero, where two instants are known to some ms only,
        counts as zero."""
        self._latest.append((at_ms, max(0, duration_ms)))
        self._counts[bisect_left(self.bounds_ms, max(0, duration_ms))] += 1
        self.sum_ms += max(0, duration_ms)

    def quantile_ms(self, share: float, now_ms: int) -> int | None:
        """The least duration that `share` of those of the last hour do not exceed; None of none."""
        found = sorted(duration_ms for at_ms, duration_ms in self._latest if at_ms > now_ms - QUANTILES_OF_MS)
        return found[max(0, ceil(share * len(found)) - 1)] if found else None

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def buckets(self) -> list[tuple[str, float]]:
        """(bound in seconds, how many were not above it), the last for all of them."""
        found, so_far = [], 0
        for bound, count in zip((*(str(bound / 1000) for bound in self.bounds_ms), "+Inf"), self._counts, strict=True):
            so_far += count
            found.append((bound, float(so_far)))
        return found
