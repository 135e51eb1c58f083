"""A topic of which an assignment gives nothing, which random histories meet once in some 150,000 operations.

Goal: model and Kafka's classes agree about what is news to a member. Method: one short history is played on both, in a
process of its own. The assignment interval keeps an older target, the member subscribes to other topics meanwhile, and
what is left of the target is a topic without a partition, which is deleted.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.consumer.operations import Topic, Topics
from kardia.coordinator.share.operations import ShareBeat
from kardia.coordinator.share.settings import ShareSettings
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move
from tests.truth.share.lockstep import ShareLockstep, ShareStep

SETTINGS = ShareSettings(group_share_initialize_retry_interval_ms=9_000, offsets_commit_timeout_ms=2_000)
ORDERS, REFUNDS = Topic("orders", "orders#1", 4), Topic("refunds", "refunds#2", 2)
FIRST, SECOND = "fa2c9634-2156-4376-bb90-ba2e6041dabb", "808214b9-f6b8-4a69-9379-d183ca61d59f"
OTHERS = ("refunds", "parcels")


def beat(number: int, member_id: str, epoch: int, names: tuple[str, ...] | None = None) -> ShareBeat:
    """A heartbeat."""
    return ShareBeat(number, "g", member_id, epoch, None, names, "c", "/10.0.0.1")


HISTORY = [
    Move(STARTED_AT_MS + at_ms, True, operation)
    for at_ms, operation in (
        (0, Topics(1, (ORDERS, REFUNDS))),
        (767, beat(2, FIRST, 0, ("orders",))),
        (769, beat(3, FIRST, 2)),
        (770, beat(4, SECOND, 0, ("orders",))),
        (1_311, beat(5, FIRST, 2, OTHERS)),
        (2_092, beat(6, FIRST, 2)),
        (3_091, beat(7, SECOND, 2)),
        (3_093, beat(8, SECOND, 5, OTHERS)),
        (4_402, beat(9, SECOND, 0, ("orders",))),
        (4_403, beat(10, SECOND, 0, OTHERS)),
        (6_434, Topics(11, (ORDERS,))),
        (6_434, beat(12, SECOND, 7)),
    )
]


def played() -> list[object]:
    """The assignment in each answer; raises `Disagreement`."""
    steps: list[ShareStep] = []
    lockstep = ShareLockstep("4.4.0", SETTINGS, on_step=steps.append)  # type: ignore[arg-type]
    for move in HISTORY:
        lockstep.play(move)
    return [answer.assignment for step in steps for answer in step.answers]


@pytest.mark.slow
def test_a_topic_without_a_partition_that_goes_from_an_assignment_is_news() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        told = process.submit(played).result(timeout=300)
    assert told[-2:] == [(), ()], "nothing before, nothing now, and told all the same"
