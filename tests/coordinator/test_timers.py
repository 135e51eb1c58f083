"""The coordinator model's queue of timers alone: order, replacement, bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kardia.coordinator.timers import Key, TimerKind, Timers


def key(name: str) -> Key:
    return TimerKind.SESSION, "g", name


def drain(timers: Timers, to_ms: int) -> list[tuple[int, str]]:
    fired = []
    while (timer := timers.pop_due(to_ms)) is not None:
        fired.append((timer.deadline_at_ms, timer.key[2]))
    return fired


def test_equal_deadlines_fire_in_the_order_of_arming() -> None:
    timers = Timers()
    for name, delay_ms in (("c", 10), ("a", 10), ("b", 5)):
        timers.arm(key(name), 0, delay_ms)
    assert drain(timers, 9) == [(5, "b")]
    assert drain(timers, 10) == [(10, "c"), (10, "a")]


def test_arming_again_replaces_and_goes_to_the_end() -> None:
    timers = Timers()
    timers.arm(key("a"), 0, 10)
    timers.arm(key("b"), 0, 10)
    timers.arm(key("a"), 5, 5)
    assert timers.deadline(key("a")) == 10
    assert drain(timers, 10) == [(10, "b"), (10, "a")]


def test_a_cancelled_timer_does_not_fire() -> None:
    timers = Timers()
    timers.arm(key("a"), 0, 10)
    timers.cancel(key("a"))
    timers.cancel(key("never armed"))
    assert (timers.deadline(key("a")), timers.next(), drain(timers, 100)) == (-1, None, [])


def test_void_timers_do_not_pile_up() -> None:
    timers = Timers()
    for now_ms in range(10_000):
        timers.arm(key("a"), now_ms, 1_000_000)
    assert len(timers._queue) <= 65
    assert drain(timers, 2_000_000) == [(1_009_999, "a")]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 20), st.booleans()), max_size=300))
def test_fires_what_a_plain_list_would(steps: list[tuple[str, int, bool]]) -> None:
    timers, plain, now_ms = Timers(), dict[str, tuple[int, int]](), 0
    for number, (name, delay_ms, cancels) in enumerate(steps):
        now_ms += delay_ms % 3
        expected = sorted((at, order, one) for one, (at, order) in plain.items() if at <= now_ms)
        assert drain(timers, now_ms) == [(at, one) for at, _, one in expected]
        for _, _, one in expected:
            del plain[one]
        if cancels:
            timers.cancel(key(name))
            plain.pop(name, None)
        else:
            timers.arm(key(name), now_ms, delay_ms)
            plain[name] = (now_ms + delay_ms, number)
