"""Rests of long work in threads: everything comes through, in order, and bursts of two threads never overlap."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from api.background_work import BURST_S, REST_S, RestingList, Turns, resting


def test_everything_comes_through_in_order() -> None:
    assert list(resting(range(50_000))) == list(range(50_000))
    once_more = RestingList(range(10))
    assert (list(once_more), list(once_more), len(once_more)) == ([*range(10)], [*range(10)], 10)


def test_bursts_of_two_threads_have_a_rest_between_them() -> None:
    turns, found = Turns(), list[float]()

    def work() -> None:
        for _ in range(20):
            found.append(turns.wait() - BURST_S)

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(work) for _ in range(2)]:
            one.result()
    booked = turns.booked_to_s - BURST_S - REST_S
    assert len(found) == 40
    assert booked - min(found) >= 38 * (BURST_S + REST_S), "bursts were given out side by side"
