"""When a record came, by looks at the end of its partition: laws over drawn histories, against the true instants.

Method: records are produced at drawn instants, looks are made in between, and what is said of each offset is compared
with when it was really produced.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kardia.lag.ends import END, RUNS_MAX, PartitionEnd

PRODUCED = st.lists(st.integers(0, 100_000), max_size=60).map(sorted)
LOOKS = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 300)), min_size=1, max_size=150).map(sorted)


def seen(produced: list[int], looks: list[tuple[int, int]]) -> PartitionEnd:
    """A partition as these looks saw it: each somewhere between asking and answering, here in the middle."""
    found = PartitionEnd()
    last_ms = 0
    for asked_ms, took_ms in looks:
        asked_ms = max(asked_ms, last_ms)
        last_ms = asked_ms + took_ms
        found.see(bisect_right(produced, asked_ms + took_ms // 2), asked_ms, last_ms)
    return found


@given(PRODUCED, LOOKS)
def test_a_record_came_within_what_is_said(produced: list[int], looks: list[tuple[int, int]]) -> None:
    found = seen(produced, looks)
    assert found.end is not None
    for offset, at_ms in enumerate(produced):
        came = found.came(offset)
        assert (came is None) == (offset >= found.end)
        if came is not None:
            assert (came.from_ms is None) == (came.at_ms is None)
            assert at_ms <= came.to_ms
            if came.from_ms is not None and came.at_ms is not None:
                assert came.from_ms <= at_ms
                assert came.from_ms <= came.at_ms <= came.to_ms


@given(PRODUCED, LOOKS)
def test_later_records_came_no_earlier(produced: list[int], looks: list[tuple[int, int]]) -> None:
    found = seen(produced, looks)
    told = [came for offset in range(len(produced)) if (came := found.came(offset)) is not None]
    for before, after in pairwise(told):
        assert before.to_ms <= after.to_ms
        assert (before.from_ms or 0) <= (after.from_ms or 0)
        assert (before.at_ms or 0) <= (after.at_ms or 0)


@given(PRODUCED, LOOKS)
def test_nothing_is_placed_outside_of_what_was_seen(produced: list[int], looks: list[tuple[int, int]]) -> None:
    found = seen(produced, looks)
    first_ms, last_ms = looks[0][0], max(asked + took for asked, took in looks) + sum(took for _, took in looks)
    for offset in range(len(produced) + 3):
        came = found.came(offset)
        for at_ms in () if came is None else (came.from_ms, came.at_ms, came.to_ms):
            assert at_ms is None or first_ms <= at_ms <= last_ms
    assert found.end_at(-1) is None


@given(PRODUCED, LOOKS)
def test_what_is_kept_is_bounded(produced: list[int], looks: list[tuple[int, int]]) -> None:
    found = seen(produced, looks)
    assert len(found.runs) <= RUNS_MAX
    assert [run[END] for run in found.runs] == sorted({run[END] for run in found.runs})


def test_a_week_of_looks_is_fine_near_now_and_coarse_long_ago() -> None:
    """Ten records a second for a week, a look every ten seconds: the bounds of a record grow with its age alone."""
    found = PartitionEnd()
    week_ms, every_ms = 7 * 86_400_000, 60_000
    for at_ms in range(0, week_ms, every_ms):
        found.see(at_ms // 100, at_ms, at_ms + 5)
    now_ms = week_ms - every_ms
    for age_ms in (120_000, 3_600_000, 86_400_000, 6 * 86_400_000):
        came = found.came((now_ms - age_ms) // 100)
        assert came is not None
        assert came.from_ms is not None
        assert came.at_ms is not None
        assert came.to_ms - came.from_ms <= max(2 * every_ms, age_ms)
        assert abs(came.at_ms - (now_ms - age_ms)) <= 200  # records came evenly, so the interpolation is right


def test_an_end_that_goes_back_is_another_log() -> None:
    found = PartitionEnd()
    found.see(10, 0, 1, epoch=3)
    found.see(20, 10, 11, epoch=3)
    assert found.came(15) is not None
    found.see(4, 20, 21, epoch=4)
    assert found.end == 4
    assert found.came(3) is not None
    assert found.came(3).from_ms is None  # type: ignore[union-attr]  # it was there when this log was first seen
    found.see(40, 30, 31, epoch=0)
    assert len(found.runs) == 1, "an epoch that goes back is a topic made anew, however large it has grown"


def test_records_below_the_start_are_forgotten() -> None:
    found = PartitionEnd()
    for number in range(10):
        found.see(number * 10, number * 1_000, number * 1_000 + 1, start=0 if number < 9 else 55)
    assert found.runs[0][END] == 50
    came = found.came(57)
    assert came is not None
    assert (came.from_ms, came.to_ms) == (5_000, 6_001)
