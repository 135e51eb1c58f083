"""Points of a plane, and how many of them lie above and to the right of a place: without a look at each of them.

A Fenwick tree over the points in the order of x, the largest first; each of its nodes has the y of its points in order.
A count or a removal takes the square of the logarithm of the number of points. It knows no member.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class CountingAbove:
    """Points (x, y), each under its place in what was given."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        """Put them into order."""
        order = sorted(range(len(points)), key=lambda place: -points[place][0])
        self._xs = [-points[place][0] for place in order]
        self._ranks = [0] * len(points)
        self._ys = [y for _, y in points]
        self._nodes: list[list[float]] = [[] for _ in range(len(points) + 1)]
        for rank, place in enumerate(order, start=1):
            self._ranks[place] = rank
            at = rank
            while at < len(self._nodes):
                self._nodes[at].append(self._ys[place])
                at += at & -at
        for node in self._nodes:
            node.sort()

    def above(self, x: float, y: float) -> int:
        """How many points have both larger than these."""
        at, found = bisect_left(self._xs, -x), 0
        while at:
            node = self._nodes[at]
            found += len(node) - bisect_right(node, y)
            at -= at & -at
        return found

    def remove(self, place: int) -> None:
        """Take a point out, once."""
        at, y = self._ranks[place], self._ys[place]
        while at < len(self._nodes):
            node = self._nodes[at]
            del node[bisect_left(node, y)]
            at += at & -at
