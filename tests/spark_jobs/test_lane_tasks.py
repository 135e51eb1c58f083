"""How many cores step lanes, and that a job which has more than it can use says so."""

from __future__ import annotations

import pytest

from spark_jobs.spark.session import idle_cores, lane_tasks


@pytest.mark.parametrize(
    ("cores", "lanes", "tasks"), [(1, 6, 2), (2, 6, 2), (3, 6, 2), (4, 6, 3), (7, 6, 6), (64, 6, 6), (4, 1, 1)]
)
def test_one_core_is_left_to_the_archive_and_no_lane_is_stepped_by_two(cores: int, lanes: int, tasks: int) -> None:
    assert lane_tasks(cores, lanes) == tasks


def test_cores_without_a_lane_are_told_of() -> None:
    assert [bool(idle_cores(cores, 6)) for cores in (1, 6, 7, 8)] == [False, False, False, True]
    assert "12 cores for 6 lanes: 5 of them have nothing to do" in idle_cores(12, 6)
