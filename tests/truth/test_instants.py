"""What Kafka's own timer says about an instant: a task without delay runs although no time passes.

Goal: the model fires such a timer when its instant is advanced to again, and no later. Method: the real `SystemTimer`
of a release, with its own clock and thread, is given a task of 0 ms and told to advance by 0 ms.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.truth.oracle import VERSIONS, jvm

PATIENCE_S = 60
"""How long to wait for the timer's thread before it is said that the task never ran."""


def runs_without_time(version: str) -> bool:
    """Whether a task of 0 ms runs when the timer is advanced by 0 ms. Starts Java in this process."""
    jvm.start(version)
    ran = jvm.jclass("java.util.concurrent.CountDownLatch")(1)
    latch = "java.util.concurrent.CountDownLatch"
    # Made without a constructor: its delay is 0.
    task = jvm.MadeUp("org.apache.kafka.server.util.timer.TimerTask").passes("run", ran, latch, "countDown").make()
    timer = jvm.jclass("org.apache.kafka.server.util.timer.SystemTimer")("instant")
    timer.add(task)
    timer.advanceClock(0)
    try:
        return bool(ran.await_(PATIENCE_S, jvm.jclass("java.util.concurrent.TimeUnit").SECONDS))
    finally:
        timer.close()  # Its thread would keep the process.


@pytest.mark.slow
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_a_timer_without_delay_fires_in_the_instant_it_is_armed(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert process.submit(runs_without_time, version).result(timeout=2 * PATIENCE_S)
