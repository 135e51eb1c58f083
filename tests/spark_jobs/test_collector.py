"""What a worker holds between two batches is left out by Python's garbage collector, which PySpark's daemon runs after
each task: it would walk through every member of a large fleet in each batch."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kardia.events import DEFAULT_LANES
from spark_jobs import processor


@pytest.fixture
def collector() -> Iterator[None]:
    """The collector as a worker has it, and afterwards as it was."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.collect()
    if enabled:
        gc.enable()


@pytest.mark.usefixtures("collector")
def test_what_a_step_builds_is_left_out_at_once() -> None:
    built = [[number] for number in range(2 * processor.FRESH)]
    processor._tidy(DEFAULT_LANES)
    assert gc.get_freeze_count() >= len(built)


@pytest.mark.usefixtures("collector")
def test_little_is_left_out_later_so_that_what_a_task_leaves_is_still_collected() -> None:
    processor._tidy(DEFAULT_LANES)
    before = gc.get_freeze_count()
    built = [[number] for number in range(processor.FRESH // 10)]
    processor._tidy(DEFAULT_LANES)
    assert gc.get_freeze_count() <= before < len(built) + gc.get_freeze_count()


@pytest.mark.usefixtures("collector")
def test_little_by_little_is_much() -> None:
    built = []
    for _ in range(30):
        built.append([[number] for number in range(processor.FRESH // 10)])
        processor._tidy(DEFAULT_LANES)
        gc.collect()  # as the daemon does
    assert gc.get_freeze_count() >= 10 * processor.FRESH // 10
