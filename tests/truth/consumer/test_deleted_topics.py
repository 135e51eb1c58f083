"""Offsets of a topic that is deleted, which random histories meet with such a partition twice in a million operations.

Goal: model and Kafka's classes agree about what is left. Method: one short history is played on both, in a process of
its own: an offset is committed for a partition that the topic does not have when it comes, and goes.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import Commit
from kardia.coordinator.consumer.operations import Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.operations import Load, Unload
from tests.truth.consumer.lockstep import ConsumerLockstep
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move


def commit(number: int, partition: int) -> Commit:
    """By somebody who is no member, as a tool does."""
    return Commit(number, 1, "g", -1, "", None, "refunds", partition, 50)


HISTORY = [
    Move(STARTED_AT_MS + 1_000, True, commit(1, 0)),
    Move(STARTED_AT_MS + 2_000, True, commit(2, 1)),
    Move(STARTED_AT_MS + 3_000, True, Topics(3, (Topic("refunds", "refunds#3", 1),))),
    Move(STARTED_AT_MS + 4_000, True, Topics(4, ())),
    Move(STARTED_AT_MS + 5_000, True, Unload(5)),
    Move(STARTED_AT_MS + 6_000, True, Load(6)),
]


def played(version: str) -> list[int]:
    """Partitions whose offsets are left; raises `Disagreement`."""
    lockstep = ConsumerLockstep(version, ConsumerSettings())  # type: ignore[arg-type]
    for move in HISTORY:
        lockstep.play(move)
    return sorted(partition for _, partition in lockstep._model.committed("g"))


@pytest.mark.slow
@pytest.mark.parametrize(("version", "left"), [("4.2.1", [1]), ("4.4.0", [])])
def test_the_offset_of_a_partition_that_the_topic_did_not_have_stays_up_to_4_2(version: str, left: list[int]) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert process.submit(played, version).result(timeout=300) == left
