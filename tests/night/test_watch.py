"""Memory that grows, a role that is too large and a log that floods are said; what is flat is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.night.watch import (
    CEILING_MB,
    GROWTH_MB_PER_HOUR,
    JUDGED_S,
    LOG_KB_PER_HOUR,
    SETTLED_S,
    STEP_MB,
    STREAM_HEAP,
    STREAM_PYTHON,
    Sample,
    floods,
    heap_samples,
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


def heap_log(path: Path, mb_per_hour: float) -> Path:
    """Two hours of a heap of which all is collected every two minutes, and the young meanwhile."""
    young, full = "Young (Allocation Failure)", "Full (System.gc())"
    path.write_text(
        "[0.010s][info][gc] Using Serial\n"
        + "".join(
            f"[{at_s}.5s][info][gc] GC({at_s}) Pause {young if at_s % 120 else full} "
            f"900M->{int(200 + at_s % 120 + mb_per_hour * at_s / 3_600)}M(1024M) 4.2ms\n"
            for at_s in range(0, 7_200, 20)
        )
    )
    return path


def test_a_heap_is_judged_by_what_collections_leave(tmp_path: Path) -> None:
    flat, grown = heap_log(tmp_path / "1.log", 5), heap_log(tmp_path / "2.log", 40)
    samples = heap_samples([flat, grown])
    assert {one.role for one in samples} == {STREAM_HEAP}
    assert len(samples) == 120
    assert memory(heap_samples([flat]))[0].faults == []
    assert len(memory(heap_samples([grown]))[0].faults) == 1
    assert memory(samples)[0].lives == 2


def test_a_jvm_is_a_part_of_its_role() -> None:
    """Its Python processes are judged by themselves, the whole by its ceiling alone."""
    growing = [Sample(at, "stream", 1, 900 + at / 10) for at in range(0, 7_200, 2)]
    python = [Sample(at, STREAM_PYTHON, 1, 300 + at / 20) for at in range(0, 7_200, 2)]
    assert memory(growing)[0].faults == []
    assert len(memory(python)[0].faults) == 1


def test_a_process_that_comes_and_goes_is_no_growth() -> None:
    """It is there in a smaller or a larger part of each third; what grows beneath it is seen."""

    def python(mb_per_hour: float) -> list[Sample]:
        share = {0: 20, 1: 100, 2: 110}
        return [
            Sample(at, STREAM_PYTHON, 1, 600 + 150 * (at % 130 < share[at // 1_300]) + mb_per_hour * at / 3_600)
            for at in range(0, 3_900, 2)
        ]

    assert memory(python(0))[0].faults == []
    assert len(memory(python(90))[0].faults) == 1


def test_a_log_that_floods_is_said() -> None:
    most = int(LOG_KB_PER_HOUR["serve"] * 1_000)
    assert floods({"serve": most, "collect": 10}, 1.0) == []
    assert floods({"serve": most, "collect": 10}, 0.4) == ["the log of serve has 1500 kB, more than 750 kB"]


def test_of_collections_that_come_soon_after_another_one_is_counted_what_they_leave(tmp_path: Path) -> None:
    """Of what the first one shows to be forgotten much goes with the second only."""
    log = tmp_path / "1.log"
    line = "[{at:.3f}s][info][gc] GC({at}) Pause Full (System.gc()) 400M->{left}M(500M) 90.000ms\n"
    pairs = [(at, left) for minute in range(0, 60, 5) for at, left in ((60 * minute, 250), (60 * minute + 15, 130))]
    log.write_text("".join(line.format(at=float(at), left=left) for at, left in pairs))
    assert {round(one.mb / 1.048_576) for one in heap_samples([log])} == {130}
