"""A consumer group that memory has lost and the log has not: OffsetFetch sees it, also under a classic group.

Goal: model and Kafka's classes agree about what is answered until something is written. Method: one short history is
played on both, in a process of its own. In it a JoinGroup with an unknown id takes an empty consumer group from memory,
a commit that is refused makes a classic group of the name, and somebody fetches offsets with an epoch and without a
name. Random histories met it once in nine million operations (4.4.0, `--seed 1404 --history 19737`).
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import Commit, Join
from kardia.coordinator.consumer.operations import Beat, Fetch, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from tests.truth.consumer.lockstep import ConsumerLockstep, ConsumerStep
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move

MEMBER, UNKNOWN = "7f8dbefd-bd61-4d8f-996c-28056053ce92", "022582a1-a55a-40ec-bc52-30eff10f6c65"
TIMES = (6_000, 10_000)


def beat(number: int, epoch: int, names: tuple[str, ...] | None) -> Beat:
    """Of the only member, that comes or goes."""
    rebalance_ms, owned = (60_000, ()) if epoch == 0 else (-1, None)
    return Beat(number, 1, "g", MEMBER, epoch, None, None, rebalance_ms, names, None, None, owned, "c", "/10.0.0.1", "")


HISTORY = [
    Move(STARTED_AT_MS, True, Topics(1, (Topic("orders", "orders#1", 4),))),
    Move(STARTED_AT_MS + 1_000, True, beat(2, 0, ("orders",))),
    Move(STARTED_AT_MS + 2_000, True, beat(3, -1, None)),
    Move(
        STARTED_AT_MS + 3_000,
        True,
        Join(4, 5, "g", UNKNOWN, None, "c", "/10.0.0.2", *TIMES, "consumer", (("range", b""),), None, ""),
    ),
    Move(STARTED_AT_MS + 4_000, True, Commit(5, 9, "g", -1, "", None, "orders", 1, 27, too_large=True)),
    Move(STARTED_AT_MS + 5_000, True, Fetch(6, "g", None, 1)),
    Move(STARTED_AT_MS + 6_000, True, Commit(7, 9, "g", -1, "", None, "orders", 1, 28)),
    Move(STARTED_AT_MS + 7_000, True, Fetch(8, "g", None, 1)),
]


def played(version: str) -> list[int]:
    """The error codes of all operations, by their numbers; raises `Disagreement`."""
    codes: dict[int, int] = {}

    def on_step(step: ConsumerStep) -> None:
        codes.update((answer.number, answer.error_code) for answer in step.answers)

    lockstep = ConsumerLockstep(version, ConsumerSettings(), on_step=on_step)  # type: ignore[arg-type]
    for move in HISTORY:
        lockstep.play(move)
    return [codes[number] for number in range(4, 9)]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"])
def test_a_fetch_sees_a_lost_group_until_something_is_written(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert process.submit(played, version).result(timeout=300) == [25, 12, -1, 0, 0]
