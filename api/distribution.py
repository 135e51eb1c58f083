"""Counts of durations by bucket: what a histogram of Prometheus is made of, folded from rows and never from history."""

from __future__ import annotations

from bisect import bisect_left

REBALANCE_BOUNDS_MS = (100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000)
"""A quick cooperative round to the five minutes that a consumer's default poll interval lets a group wait."""

KNOWN_AFTER_BOUNDS_MS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 300_000)
"""From the eviction to its evidence: at once where the log says so, a whole rebalance where it must be awaited."""

LEAD_BOUNDS_MS = (250, 500, 1_000, 2_500, 5_000, 10_000, 22_500, 60_000, 150_000)
"""Half of the usual session timeouts (6 s, 10 s, 45 s) and poll intervals (5 min) are among them."""


class Distribution:
    """Durations in ms, counted by the first bound that is not below them."""

    __slots__ = ("_counts", "bounds_ms", "sum_ms")

    def __init__(self, bounds_ms: tuple[int, ...]) -> None:
        self.bounds_ms = bounds_ms
        self.sum_ms = 0
        self._counts = [0] * (len(bounds_ms) + 1)

    def heir(self) -> Distribution:
        """The same, for more durations to be counted in."""
        heir = Distribution(self.bounds_ms)
        heir._counts, heir.sum_ms = self._counts.copy(), self.sum_ms
        return heir

    def add(self, duration_ms: int) -> None:
        """Count a duration; one below zero, where two instants are known to some ms only, counts as zero."""
        self._counts[bisect_left(self.bounds_ms, max(0, duration_ms))] += 1
        self.sum_ms += max(0, duration_ms)

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
