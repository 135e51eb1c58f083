"""An instance id that a load brings back: random histories met one in 400,000 operations.

Goal: model and Kafka's classes agree about who has an instance id after a load. Method: one short history is played on
both, in a process of its own. In it a static member changes its instance id, which leaves the first one behind, and is
evicted; a classic member that nobody knows makes memory lose the group without a record; somebody makes it anew. The
load reads the records of both groups as if they were one.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import Join
from kardia.coordinator.consumer.operations import Beat, BeatAnswer, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.operations import Load, Unload
from tests.truth.consumer.draw_classic import subscription
from tests.truth.consumer.lockstep import ConsumerLockstep, ConsumerStep
from tests.truth.draw import STARTED_AT_MS
from tests.truth.lockstep import Move

FIRST, OTHER, UNKNOWN, LAST = (f"{number}f8dbefd-bd61-4d8f-996c-28056053ce92" for number in ("7", "8", "9", "a"))


def beat(number: int, member: str, instance: str | None) -> Beat:
    """Of a member that comes."""
    about = (instance, None, 60_000, ("orders",), None, None, ())
    return Beat(number, 1, "g", member, 0, *about, "c", "/10.0.0.1", "")


def join(number: int, member: str) -> Join:
    """Of a classic member by an id of its own."""
    metadata = subscription(3, ("orders",), [], None)
    return Join(
        number, 9, "g", member, None, "c", "/10.0.0.2", 6_000, 10_000, "consumer", (("range", metadata),), None, ""
    )


def history(*anew: Beat) -> list[Move]:
    """The story, with those who make the group anew."""
    begin = [
        Move(STARTED_AT_MS, True, Topics(1, (Topic("orders", "orders#1", 4),))),
        Move(STARTED_AT_MS + 1_000, True, beat(2, FIRST, "i1")),
        Move(STARTED_AT_MS + 2_000, True, beat(3, FIRST, "i2")),
        Move(STARTED_AT_MS + 60_000, True, join(4, UNKNOWN)),
    ]
    middle = [Move(STARTED_AT_MS + 60_000 + one.number, True, one) for one in anew]
    end = [
        Move(STARTED_AT_MS + 120_000, True, Unload(20)),
        Move(STARTED_AT_MS + 121_000, True, Load(21)),
        Move(STARTED_AT_MS + 122_000, True, beat(22, LAST, "i1")),
    ]
    return [*begin, *middle, *end]


def all_played(version: str, histories: list[list[Move]]) -> list[int]:
    """Of each history the error code of the last heartbeat; raises `Disagreement`."""
    return [played(version, moves) for moves in histories]


def played(version: str, moves: list[Move]) -> int:
    """The error code of the last heartbeat; raises `Disagreement`."""
    answers: list[BeatAnswer] = []

    def on_step(step: ConsumerStep) -> None:
        answers.extend(one for one in step.answers if isinstance(one, BeatAnswer))

    settings = ConsumerSettings(group_consumer_migration_policy="upgrade")
    lockstep = ConsumerLockstep(version, settings, on_step=on_step)  # type: ignore[arg-type]
    for move in moves:
        lockstep.play(move)
    return answers[-1].error_code


ANEW: tuple[tuple[Beat, ...], ...] = ((), (beat(5, OTHER, None),), (beat(5, OTHER, "i1"),))
"""Who makes the group anew."""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"])
def test_a_load_brings_an_instance_id_back_that_was_left_behind(version: str) -> None:
    """4.4 forgets the first instance id where a member changes it."""
    codes = [0, 0, 0] if version == "4.4.0" else [25, 25, 0]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        told = process.submit(all_played, version, [history(*anew) for anew in ANEW]).result(timeout=300)
    assert told == codes
