"""Records that are stored late, or not in time: what a coordinator holds back meanwhile and what it undoes then.

Goal: `kardia/coordinator/classic/stores.py` does what Kafka's own classes do, step by step. Method: short histories of
a group of static members, played on both with appends that take time; after each step views and the answers to
JoinGroup and SyncGroup are compared. That a record is not stored in time the Java coordinator finds out by its own
timer, five seconds after the append; the Scala one is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from multiprocessing import get_context
from operator import itemgetter

import pytest

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import Join, Operation, Stored, Sync
from tests.truth.draw import SETTINGS, STARTED_AT_MS, subscription
from tests.truth.oracle import Oracle

SETTLED = SETTINGS[1]._replace(appends_take_time=True)
IN_TIME_MS = 5_000
"""`offsets.commit.timeout.ms`."""
BOTH = (("range", subscription("orders")), ("roundrobin", subscription("orders")))
RANGE = BOTH[:1]

Moves = Sequence[tuple[int, Operation]]


def join(
    number: int,
    place: int,
    life: int,
    member_id: str = "",
    protocols: tuple[tuple[str, bytes], ...] = RANGE,
    group_id: str = "g",
) -> Join:
    """A JoinGroup of static member `place` in one of its lives."""
    where = ("c", "/10.0.0.1", 10_000 + life, 20_000 + life)
    return Join(number, 9, group_id, member_id, f"i{place}", *where, "consumer", protocols, None, named(place, life))


def named(place: int, life: int) -> str:
    """The id that a static member is given."""
    return f"i{place}-8d3cbcf0-1c7b-4d24-a7df-{place:06}{life:06}"


def sync(number: int, place: int, life: int, generation: int, leads: bool = False) -> Sync:
    """A SyncGroup; the leader assigns to both members."""
    assigned = tuple((named(one, 1), b"%d" % one) for one in (1, 2)) if leads else ()
    return Sync(number, 5, "g", generation, named(place, life), f"i{place}", "consumer", "range", assigned)


def stored(number: int, of: int) -> Stored:
    """It is stored in time."""
    return Stored(number, "g", of)


def lost(number: int, of: int, version: str) -> Stored:
    """It is not stored in time; with the error that a release makes of that."""
    return Stored(number, "g", of, 15 if version[0] == "4" else 27)


def stable() -> Moves:
    """Two static members, Stable in generation 2; their leader is the first."""
    return (
        (0, join(1, 1, 1)),
        (10, stored(2, 1)),
        (20, sync(3, 1, 1, 1, leads=True)),
        (30, stored(4, 3)),
        (1_000, join(5, 2, 1)),
        (1_100, join(6, 1, 1, named(1, 1))),
        (1_200, sync(7, 1, 1, 2, leads=True)),
        (1_210, sync(8, 2, 1, 2)),
        (1_220, stored(9, 7)),
    )


def histories(version: str) -> dict[str, Moves]:
    """By what befalls them."""
    late = 3_000 + IN_TIME_MS
    taken = (*stable(), (3_000, join(10, 2, 2)))
    led = (*stable(), (3_000, join(10, 1, 2)))
    again = (*stable(), (2_000, join(10, 1, 1, named(1, 1))), (2_100, join(11, 2, 1, named(2, 1))))
    assigned = (*again, (3_000, sync(12, 1, 1, 3, leads=True)), (3_100, sync(13, 2, 1, 3)))
    return {
        "a seat is taken": (*taken, (4_000, stored(11, 10))),
        "a seat is not taken in time": (*taken, (late, lost(11, 10, version)), (9_000, join(12, 2, 3))),
        "the leader's seat is taken": (*led, (4_000, stored(11, 10))),
        "the leader's seat is not taken in time": (*led, (late, lost(11, 10, version)), (late + 9_000, stored(12, 10))),
        "other protocols are given back": (
            *stable(),
            (3_000, join(10, 2, 2, protocols=BOTH)),
            (late, lost(11, 10, version)),
            (9_000, join(12, 1, 1, named(1, 1), BOTH)),
            (9_100, join(13, 2, 1, named(2, 1))),
        ),
        "a seat is taken twice": (*taken, (4_000, join(11, 2, 3)), (4_500, stored(12, 10)), (4_500, stored(13, 11))),
        "the group prepares meanwhile": (*taken, (4_000, join(11, 1, 1, named(1, 1))), (5_000, stored(12, 10))),
        "the join phase ends meanwhile": (
            *stable(),
            (3_000, join(10, 2, 2)),
            (4_000, join(11, 1, 1, named(1, 1))),
            (late, lost(12, 10, version)),
        ),
        "assignments are stored late": (*assigned, (6_000, stored(14, 12))),
        "assignments are not stored in time": (*assigned, (late, lost(14, 12, version)), (9_000, stored(15, 12))),
        "a member comes before they are stored": (*assigned, (4_000, join(14, 3, 1)), (6_000, stored(15, 12))),
        "a JoinGroup waits behind a seat": (
            *taken,
            (3_500, join(11, 3, 1)),
            (late, lost(12, 10, version)),
            *(((3_500 + IN_TIME_MS, lost(13, 11, version)),) if version[0] == "4" else ()),
            (9_000, join(14, 1, 1, named(1, 1))),
            (9_500, join(15, 2, 1, named(2, 1))),
        ),
        "a SyncGroup waits behind another's seat": (
            *again,
            (3_000, join(12, 4, 1, group_id="h")),
            (3_100, sync(13, 2, 1, 3)),
            *(((3_100 + IN_TIME_MS, lost(14, 13, version)),) if version[0] == "4" else ()),
            (9_000, sync(15, 1, 1, 3, leads=True)),
            (9_100, stored(16, 15)),
        ),
        "the group cannot be created in time": (
            (0, join(1, 1, 1)),
            *(((IN_TIME_MS, lost(2, 1, version)),) if version[0] == "4" else ()),
        ),
    }


def played(version: str) -> dict[str, tuple[list[object], list[object]]]:
    """By history: what Kafka's classes did, and what the model did."""
    return {name: _played(version, name, moves) for name, moves in histories(version).items()}


def _played(version: str, name: str, moves: Moves) -> tuple[list[object], list[object]]:
    settings = SETTLED._replace(initial_rebalance_delay_ms=8_000) if "created" in name else SETTLED
    oracle, model = Oracle(version, settings), Coordinator(behaviour_of(version), settings)
    by_timer = version[0] == "4"
    kafka: list[object] = []
    ours: list[object] = []
    for after_ms, together in groupby((*moves, (30_000, None)), key=itemgetter(0)):
        at_ms = STARTED_AT_MS + 1 + after_ms
        operations = [operation for _, operation in together if operation is not None]
        found_out = by_timer and any(isinstance(one, Stored) and one.error_code for one in operations)
        answers = oracle.advance(at_ms if found_out or not operations else at_ms - 1)
        said = model.advance(at_ms - 1 if operations else at_ms)
        for operation in operations:
            answers += oracle.perform(operation, at_ms)
            said += model.perform(operation, at_ms)
        kafka += [*sorted(answers), oracle.view("g")]
        ours += [*sorted(said), model.view("g")]
    return kafka, ours


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2", "4.4.0"])
def test_a_record_that_is_stored_late_or_not_in_time(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        found = process.submit(played, version).result(timeout=300)
    assert len(found) == len(histories(version))
    for name, (kafka, ours) in found.items():
        assert kafka == ours, name
