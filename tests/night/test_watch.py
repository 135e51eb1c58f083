"""Memory that grows, a role that is too large and a log that floods are said; what is flat is not."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from tests.night.watch import (
    CEILING_MB,
    GROWTH_MB_PER_HOUR,
    JUDGED_S,
    LOG_KB_PER_HOUR,
    SETTLED_S,
    STEP_MB,
    Sample,
    floods,
    memory,
    memory_of,
)

KEPT = 64_000_000


def life(mb_per_hour: float, seconds: float = SETTLED_S + 5_400, pid: int = 1) -> list[Sample]:
    """A collector that grows evenly from 80 MB: so long that a growth at its limit is more than a step."""
    return [Sample(at, "collect", pid, 80 + mb_per_hour * at / 3_600) for at in range(0, int(seconds), 2)]


def test_growth_is_said_and_a_flat_role_is_not() -> None:
    limit = GROWTH_MB_PER_HOUR["collect"]
    (flat,), (grown,) = memory(life(limit * 0.9)), memory(life(limit * 1.1))
    assert flat.faults == []
    assert grown.growth_mb_per_hour is not None
    assert abs(grown.growth_mb_per_hour - limit * 1.1) < 0.1
    assert len(grown.faults) == 1


def test_a_step_of_the_allocator_is_no_growth() -> None:
    seconds, limit = SETTLED_S + JUDGED_S + 60, STEP_MB["collect"]
    per_hour = 3_600 / (2 / 3 * (seconds - SETTLED_S))
    (step,), (more,) = (memory(life(mb * per_hour, seconds)) for mb in (limit * 0.9, limit * 1.1))
    assert step.growth_mb_per_hour is not None
    assert step.growth_mb_per_hour > GROWTH_MB_PER_HOUR["collect"]
    assert step.faults == []
    assert len(more.faults) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs the proportional set size of Linux")
def test_what_several_processes_share_counts_once() -> None:
    """A forked worker shares what its parent had."""
    forks = "other = os.fork(); other and os.write(1, b'%d\\n' % other)"
    program = f"import os, sys; kept = b'x' * {KEPT}; {forks}; sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdout is not None
        both = [psutil.Process(pid) for pid in (parent.pid, int(parent.stdout.readline()))]
        assert sum(map(memory_of, both)) < sum(one.memory_info().rss for one in both) - KEPT * 0.9
        assert parent.stdin is not None
        parent.stdin.close()


def test_a_short_life_is_not_judged_by_its_growth_and_each_life_is_its_own() -> None:
    (short,) = memory(life(500, seconds=SETTLED_S + JUDGED_S - 10))
    assert short.growth_mb_per_hour is None
    assert [one.lives for one in memory(life(0) + life(0, pid=2))] == [2]


def test_a_role_that_is_too_large_is_said_however_short_it_lived() -> None:
    (large,) = memory([Sample(0, "serve", 1, CEILING_MB["serve"] + 1)])
    assert large.faults == ["serve had 451 MB of memory, more than 450 MB"]


def test_a_log_that_floods_is_said() -> None:
    most = int(LOG_KB_PER_HOUR["serve"] * 1_000)
    assert floods({"serve": most, "collect": 10}, 1.0) == []
    assert floods({"serve": most, "collect": 10}, 0.4) == ["the log of serve has 1500 kB, more than 750 kB"]
