"""Topics that a group is told changes of though it subscribes to them no more, which random histories meet once in a
million operations.

Goal: model and Kafka's classes agree about a new epoch. Method: one short history is played on both, in a process of
its own. A group becomes a classic one with a member that names a topic, and dies out; a consumer group of the same name
looks at its subscription again when that topic comes, and finds that it has changed.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import Join
from kardia.coordinator.consumer.operations import Beat, BeatAnswer, Resolve, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from tests.truth.consumer.lockstep import ConsumerLockstep, ConsumerStep
from tests.truth.draw import STARTED_AT_MS, subscription
from tests.truth.lockstep import Move

SETTINGS = ConsumerSettings(
    group_consumer_session_timeout_ms=6_000,
    group_consumer_assignors=("range",),
    group_consumer_regex_refresh_interval_ms=30_000,
    offsets_retention_ms=60_000,
    offsets_retention_check_interval_ms=20_000,
)
REFUNDS, ORDERS = Topic("refunds", "refunds#2", 2), Topic("orders", "orders#3", 1)
FIRST, SECOND = "1b0d10df-5bd4-4109-a948-833b58c2662b", "3b001c74-d8f7-4fe6-84cb-0611693c6843"


def beat(number: int, member_id: str, regex: str) -> Beat:
    """A heartbeat with which a member joins."""
    return Beat(number, 1, "g", member_id, 0, None, None, 3_000, (), regex, None, (), "c", "/10.0.0.1", "")


def join(number: int) -> Join:
    """A classic member of the same group, which names 'orders'."""
    protocols = (("range", subscription("orders")),)
    return Join(number, 9, "g", "", "i", "c", "/10.0.0.1", 10_000, 60_000, "consumer", protocols, None, NEW_ID)


NEW_ID = "zt3ohPVaT5OBOGvbuQTmVQ"

HISTORY = [
    Move(STARTED_AT_MS + at_ms, True, operation)
    for at_ms, operation in (
        (18_645, beat(1, FIRST, "orders|refunds")),
        (18_646, join(2)),
        (21_387, Topics(3, (REFUNDS,))),
        (37_408, Resolve(4)),
        (57_408, beat(5, SECOND, "[or].*")),
        (57_896, Resolve(6)),
        (58_200, Topics(7, (REFUNDS, ORDERS))),
        (58_200, beat(8, SECOND, "nothing.*")),
    )
]


def played(listed: bool) -> list[int]:
    """The epoch in each answer; raises `Disagreement`. `listed`: whether 'orders' comes at the end."""
    steps: list[ConsumerStep] = []
    lockstep = ConsumerLockstep("4.4.0", SETTINGS, on_step=steps.append)  # type: ignore[arg-type]
    for move in HISTORY if listed else [*HISTORY[:-2], HISTORY[-1]]:
        lockstep.play(move)
    return [answer.member_epoch for step in steps for answer in step.answers if isinstance(answer, BeatAnswer)]


@pytest.mark.slow
@pytest.mark.parametrize(("listed", "epoch"), [(True, 3), (False, 2)])
def test_a_topic_of_the_classic_group_before_makes_a_consumer_group_look_again(listed: bool, epoch: int) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        told = process.submit(played, listed).result(timeout=300)
    assert told[-1] == epoch
