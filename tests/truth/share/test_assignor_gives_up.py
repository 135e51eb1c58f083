"""The assignor of share groups that finds nobody for a partition, which random histories seldom meet.

Goal: model and Kafka's classes agree on what is answered and on what stays as it was, also when it is asked again.
Method: one short history is played on both, in a process of its own. Of four members one is gone and one is new when
the topic grows: by the order of its hash map the assignor counts for each of them what it is to have, and it has nobody
left for the last partition.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.consumer.operations import Topic, Topics
from kardia.coordinator.share.operations import ShareBeat
from kardia.coordinator.share.settings import ShareSettings
from kardia.kafka.states import ErrorCode
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move
from tests.truth.share.lockstep import ShareLockstep, ShareStep

SETTINGS = ShareSettings(group_share_session_timeout_ms=6_000)
FIRST, SECOND = "651a99c3-540b-45f5-bb72-d477358fc945", "91d9c494-fb88-4f03-8a43-3e687e87de22"
THIRD, FOURTH = "4139d014-368f-402b-b34f-3cff1ef39b0f", "60d7a932-8590-4b2d-9957-084fecb82a83"


def beat(number: int, member_id: str, epoch: int, *names: str) -> ShareBeat:
    """A heartbeat of a member."""
    return ShareBeat(number, "g", member_id, epoch, None, names or None, "c", "/10.0.0.1")


HISTORY = [
    Move(STARTED_AT_MS + at_ms, True, operation)
    for at_ms, operation in (
        (0, Topics(1, (Topic("orders", "orders#1", 4),))),
        (996, beat(2, FIRST, 0, "orders")),
        (996, beat(3, SECOND, 0, "orders")),
        (998, beat(4, THIRD, 0, "orders")),
        (1_959, beat(5, FIRST, 1)),
        (6_997, beat(6, THIRD, 3)),
        (7_779, beat(7, FOURTH, 0, "orders")),
        (7_780, Topics(8, (Topic("orders", "orders#1", 6),))),
        (7_781, beat(9, THIRD, 5)),
        (7_783, beat(10, FIRST, 3)),
        (7_784, beat(11, FIRST, 3)),
    )
]


def played(version: str) -> list[tuple[int, int]]:
    """Error code and epoch of each answer; raises `Disagreement`."""
    steps: list[ShareStep] = []
    lockstep = ShareLockstep(version, SETTINGS, on_step=steps.append)  # type: ignore[arg-type]
    for move in HISTORY:
        lockstep.play(move)
    return [(answer.error_code, answer.member_epoch) for step in steps for answer in step.answers]


@pytest.mark.slow
def test_who_asks_when_it_gives_up_is_refused_and_nothing_has_changed() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        told = process.submit(played, "4.1.2").result(timeout=300)
    assert told[-2:] == [(int(ErrorCode.UNKNOWN_SERVER_ERROR), 0)] * 2
