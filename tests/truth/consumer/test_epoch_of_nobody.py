"""A static member whose epoch is that of nobody: random histories met one in 400,000 operations.

Goal: model and Kafka's classes agree about who may have what it holds. Method: one short history is played on both, in
a process of its own. In it a static member has partitions to give up, leaves for a while (epoch -2), and comes back as
a member of the classic protocol that gives them up and has others to give up: where revoking adds to the epoch, it is
-1, that of a holder that is none.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import Join
from kardia.coordinator.consumer.operations import Beat, BeatAnswer, Partition, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from tests.truth.consumer.draw_classic import subscription
from tests.truth.consumer.lockstep import ConsumerLockstep, ConsumerStep
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move

STATIC, OTHER = "7f8dbefd-bd61-4d8f-996c-28056053ce92", "022582a1-a55a-40ec-bc52-30eff10f6c65"
ORDERS = tuple(("orders#1", number) for number in range(4))


def beat(number: int, member: str, epoch: int, instance: str | None, owned: tuple[Partition, ...] | None) -> Beat:
    """Of a member that subscribes to `orders` when it comes."""
    names = ("orders",) if epoch == 0 else None
    rebalance_ms = 60_000 if epoch == 0 else -1
    about = (instance, None, rebalance_ms, names, None, None, owned)
    return Beat(number, 1, "g", member, epoch, *about, "c", "/10.0.0.1", "")


def join(number: int, member: str, instance: str | None, topics: tuple[str, ...], owned: int) -> Join:
    """Of a classic member that owns so many partitions of `orders`."""
    metadata = subscription(3, topics, [("orders", partition) for partition in range(owned)], None)
    times = (6_000, 10_000)
    return Join(
        number, 9, "g", member, instance, "c", "/10.0.0.2", *times, "consumer", (("range", metadata),), None, ""
    )


HISTORY = [
    Move(STARTED_AT_MS, True, Topics(1, (Topic("orders", "orders#1", 4), Topic("refunds", "refunds#2", 2)))),
    Move(STARTED_AT_MS + 1_000, True, beat(2, STATIC, 0, "i1", ())),
    Move(STARTED_AT_MS + 3_000, True, join(3, OTHER, None, ("orders",), 0)),
    Move(STARTED_AT_MS + 4_000, True, beat(4, STATIC, 1, "i1", ORDERS)),
    Move(STARTED_AT_MS + 5_000, True, beat(5, STATIC, -2, "i1", None)),
    Move(STARTED_AT_MS + 6_000, True, join(6, STATIC, "i1", ("orders", "refunds"), 2)),
    Move(STARTED_AT_MS + 7_000, True, beat(7, OTHER, 0, None, ())),
]


def played(version: str) -> tuple[int, int]:
    """The epoch of the static member when it is back, and how many partitions the other one then gets; raises
    `Disagreement`."""
    answers: list[BeatAnswer] = []
    epochs: list[int] = []

    def on_step(step: ConsumerStep) -> None:
        answers.extend(one for one in step.answers if isinstance(one, BeatAnswer))
        view = step.after.get("g")
        epochs.extend(member.epoch for member in getattr(view, "members", ()) if member.member_id == STATIC)

    settings = ConsumerSettings(group_consumer_migration_policy="upgrade")
    lockstep = ConsumerLockstep(version, settings, on_step=on_step)  # type: ignore[arg-type]
    for move in HISTORY:
        lockstep.play(move)
    return epochs[-1], len(answers[-1].assignment or ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "epoch", "got"),
    [("4.0.2", -1, 3), ("4.1.2", -1, 3), ("4.2.1", -2, 2), ("4.3.1", -2, 0), ("4.4.0", -2, 0)],
)
def test_what_is_held_in_the_epoch_of_nobody_is_given_away(version: str, epoch: int, got: int) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert process.submit(played, version).result(timeout=300) == (epoch, got)
