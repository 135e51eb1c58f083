"""The assignor `uniform` that leaves partitions to nobody, which random histories seldom meet.

Goal: model and Kafka's classes agree that the heartbeat is answered -1 and that nothing has changed. Method: one short
history is played on both, in a process of its own. A static member of a consumer group, the only one, comes back with
JoinGroup under the id that it has; its topic is deleted and made anew; then somebody joins.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import Join
from kardia.coordinator.consumer.operations import Beat, BeatAnswer, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.kafka.states import ErrorCode
from tests.truth.consumer.lockstep import ConsumerLockstep, ConsumerStep
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move
from tests.truth.oracle.settings import CONSUMER_VERSIONS

SETTINGS = ConsumerSettings(group_initial_rebalance_delay_ms=500)
FIRST, SECOND = "dbbbefb2-30ec-4fca-9c95-a3834746d05e", "765b6a18-c91a-4c79-8d69-217b311b9adb"
REFUNDS = Topic("refunds", "refunds#2", 3)


def beat(number: int, member_id: str, instance_id: str | None, rack_id: str | None) -> Beat:
    """A heartbeat with which a member joins."""
    return Beat(
        number, 1, "h", member_id, 0, instance_id, rack_id, 3_000, ("orders",), None, None, (), "c", "/10.0.0.1", ""
    )


SUBSCRIPTION = (
    b"\x00\x03\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x01\x00\x00\x00"
    b"\x00\x00\x00\x00\x01\xff\xff"
)
"""Of version 3: it has partition 0 of 'orders'."""


def join(number: int) -> Join:
    """The static member again, with the classic protocol."""
    protocols = (("sticky", SUBSCRIPTION), ("range", SUBSCRIPTION))
    return Join(number, 9, "h", FIRST, "i1", "c", "/10.0.0.1", 30_000, 3_000, "consumer", protocols, None, "")


HISTORY = [
    Move(STARTED_AT_MS + at_ms, True, operation)
    for at_ms, operation in (
        (0, Topics(1, (Topic("orders", "orders#1", 4), REFUNDS))),
        (144_699, beat(2, FIRST, "i1", "r1")),
        (147_869, join(3)),
        (148_807, Topics(4, (REFUNDS, Topic("orders", "orders#3", 2)))),
        (149_894, beat(5, SECOND, None, None)),
        (149_895, beat(6, SECOND, None, None)),
    )
]


def played(version: str) -> list[int]:
    """Error codes of the heartbeats; raises `Disagreement`."""
    steps: list[ConsumerStep] = []
    lockstep = ConsumerLockstep(version, SETTINGS, on_step=steps.append)  # type: ignore[arg-type]
    for move in HISTORY:
        lockstep.play(move)
    return [answer.error_code for step in steps for answer in step.answers if isinstance(answer, BeatAnswer)]


@pytest.mark.slow
@pytest.mark.parametrize("version", CONSUMER_VERSIONS)
def test_who_joins_when_it_gives_up_is_refused_and_nothing_has_changed(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        told = process.submit(played, version).result(timeout=300)
    assert told == [0, int(ErrorCode.UNKNOWN_SERVER_ERROR), int(ErrorCode.UNKNOWN_SERVER_ERROR)]
