"""What a worker leaves out of the collector's walks is looked at again, seldom: a worker lives as long as the job."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from kardia.events import DEFAULT_LANES
from spark_jobs import processor


@pytest.fixture(autouse=True)
def _collector_as_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(processor, "_steps", 0)
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


class Node:
    """Something that may refer to itself."""

    itself: Node


def test_a_cycle_that_was_left_out_while_it_lived_is_freed_in_the_end() -> None:
    node = Node()
    node.itself = node
    gone = weakref.ref(node)
    for _ in range(processor.COLLECT_EVERY):
        processor._tidy(DEFAULT_LANES)
    del node
    for _ in range(processor.COLLECT_EVERY * (processor.ALL_EVERY - 2)):
        processor._tidy(DEFAULT_LANES)
    assert gone() is not None, "it is left out of the walks until all is walked through"
    for _ in range(processor.COLLECT_EVERY):
        processor._tidy(DEFAULT_LANES)
    assert gone() is None
