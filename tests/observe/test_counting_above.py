"""Points above a place, counted: as many as a look at each of them counts, whatever is taken out in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kardia.observe.facts.counting_above import CountingAbove

NUMBERS = st.integers(0, 6).map(float)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=24)


@given(POINTS, st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans()), max_size=24), st.randoms(use_true_random=False))
def test_it_counts_what_a_look_at_each_counts(
    points: list[tuple[float, float]], asked: list[tuple[float, float, bool]], order: object
) -> None:
    counted, left = CountingAbove(points), list(range(len(points)))
    order.shuffle(left)  # type: ignore[attr-defined]
    for x, y, goes in asked:
        assert counted.above(x, y) == sum(points[place][0] > x and points[place][1] > y for place in left)
        if goes and left:
            counted.remove(left.pop())
