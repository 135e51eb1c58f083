"""Burrow's rules, one case for each: its own test cases as facts, told as commits of a consumer.

Sources: `core/internal/evaluator/caching_test.go` of linkedin/Burrow at ced55ba90f for what each rule is about.
"""

from __future__ import annotations

import pytest

from kardia.lag.commits import MERGED_MS, OK, RECENT_MS, REWIND, STALL, STOP, WARN, WINDOW, Commits, status

EVERY_MS = 10_000


def window(offsets: list[int], lags: list[int]) -> list[list[int]]:
    return [[offset, number * EVERY_MS, lag] for number, (offset, lag) in enumerate(zip(offsets, lags, strict=True))]


@pytest.mark.parametrize(
    ("offsets", "lags", "lag", "said"),
    [
        ([10, 20, 30, 40], [5, 5, 5, 5], 0, OK),  # it has read everything now
        ([10, 20, 30, 40], [5, 0, 7, 9], 9, OK),  # or had, at some time in the window
        ([10, 20, 30, 40], [5, 6, 5, 9], 9, OK),  # its lag fell somewhere
        ([10, 20, 30, 40], [5, 5, 6, 6], 6, WARN),  # it goes forward, and its lag never fell
        ([10, 10, 10, 10], [5, 6, 7, 8], 8, STALL),  # it commits the same again and again
        ([10, 10, 10, 10], [0, 0, 0, 8], 8, OK),  # nothing was there for most of that time
        ([10, 20, 5, 15], [5, 5, 5, 5], 5, REWIND),  # it went back
        ([10, 20, 5, 25], [5, 5, 5, 5], 5, WARN),  # it went back, and has come to where it was
        ([10, 20, 5, 15], [0, 0, 9, 9], 9, REWIND),  # although it had read everything
        ([10], [5], 5, OK),  # one commit repeats nothing
        ([10, 20, 30], [-1, -1, 7], 7, OK),  # lag that is not known is none that rose
    ],
)
def test_a_window_of_commits(offsets: list[int], lags: list[int], lag: int, said: str) -> None:
    found = window(offsets, lags)
    last_ms = found[-1][1]
    assert status(found, lag, last_ms, 0, last_ms) == said


def test_who_commits_no_more_has_stopped_after_the_time_that_its_last_commits_took() -> None:
    found = window([10, 20, 30, 40], [5, 5, 6, 6])
    last_ms, long_ago = found[-1][1], -10 * RECENT_MS
    assert status(found, 6, last_ms, long_ago, 2 * last_ms) == WARN
    assert status(found, 6, last_ms, long_ago, 2 * last_ms + 1) == STOP
    assert status(found, 0, last_ms, long_ago, 100 * last_ms) == OK


def test_who_had_read_everything_a_moment_ago_has_not_stopped() -> None:
    found = window([10, 20, 30, 40], [0, 0, 0, 0])
    last_ms = found[-1][1]
    behind_ms = 10 * last_ms
    assert status(found, 3, last_ms, behind_ms, behind_ms + RECENT_MS) == OK
    assert status(found, 3, last_ms, behind_ms, behind_ms + RECENT_MS + 1) == STOP


def test_the_window_holds_ten_and_merges_what_comes_within_a_second() -> None:
    found = Commits(0, 0)
    for number in range(50):
        found.take(number, number * MERGED_MS // 4, 1)
    assert len(found.window) == WINDOW
    assert [entry[1] for entry in found.window] == [second * MERGED_MS for second in range(3, 13)]
    assert found.window[-1][0] == found.offset == 49
