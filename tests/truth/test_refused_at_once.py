"""What Kafka's Java coordinator refuses it refuses at once, also while nothing can be stored.

Goal: an answer that waited, or that says after seconds that something could not be stored in time, was not a refusal:
the simulated brokers and the observer's reading of such answers rest on it. Method: nothing that is appended is
committed; heartbeats that write, that write nothing and that are refused are put to Kafka's classes, in a process of
its own.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.consumer.operations import Beat, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.kafka.states import ErrorCode
from tests.truth.draw import STARTED_AT_MS
from tests.truth.oracle.consumer import ConsumerOracle

FIRST, SECOND, THIRD = (f"{letter * 8}-540b-45f5-bb72-d477358fc945" for letter in "abc")


def beat(number: int, member_id: str, epoch: int, instance_id: str | None = None) -> Beat:
    """A heartbeat that joins, with epoch 0, or only says that its member lives."""
    if epoch:
        return Beat(
            number, 0, "g", member_id, epoch, instance_id, None, -1, None, None, None, None, "c", "/10.0.0.1", ""
        )
    return Beat(
        number, 0, "g", member_id, 0, instance_id, None, 3_000, ("orders",), None, None, (), "c", "/10.0.0.1", ""
    )


def played(version: str) -> tuple[dict[int, int], list[int]]:
    """Error codes by the number of the heartbeat as nothing is stored, and the numbers answered when it is."""
    oracle = ConsumerOracle(version, ConsumerSettings())
    oracle.perform(Topics(1, (Topic("orders", "orders#1", 4),)), STARTED_AT_MS)
    (first,) = oracle.perform(beat(2, FIRST, 0, "i"), STARTED_AT_MS)
    oracle.hold_appends()
    asked = (
        beat(3, SECOND, 0),  # makes an epoch, and waits until that is stored
        beat(4, FIRST, first.member_epoch, "i"),  # has to wait until then as well, as it is told of it
        beat(5, FIRST, first.member_epoch + 9, "i"),
        beat(6, THIRD, 7),
        beat(7, THIRD, 0, "i"),
    )
    at_once = {
        one.number: one.error_code for each in asked for one in oracle.perform(each, STARTED_AT_MS + each.number)
    }
    return at_once, [one.number for one in oracle.store()]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["4.0.2", "4.4.0"])
def test_refusals_wait_for_nothing(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        at_once, stored = process.submit(played, version).result(timeout=300)
    assert at_once == {
        5: ErrorCode.FENCED_MEMBER_EPOCH,
        6: ErrorCode.UNKNOWN_MEMBER_ID,
        7: ErrorCode.UNRELEASED_INSTANCE_ID,
    }
    assert stored == [3, 4]
