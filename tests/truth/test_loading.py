"""A coordinator that still loads its shard: what it answers to each request, by Kafka's own classes of every release.

Goal: the brokers of the simulated fleet answer the same while they load, and the group comes back unchanged. Method: a
Stable group is loaded again, and each request is put in the middle of the load (`Oracle.load_while`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.operations import (
    Answer,
    Commit,
    DeleteGroups,
    Heartbeat,
    Join,
    Leave,
    Leaving,
    OffsetDelete,
    Operation,
    Sync,
    TxnCommit,
    View,
)
from kardia.coordinator.operations import Unload
from tests.truth.draw import SETTINGS, STARTED_AT_MS, subscription
from tests.truth.fleet.cluster import while_loading
from tests.truth.oracle import EVERY_VERSION, VERSIONS, Oracle

LOADED_MS = STARTED_AT_MS + 20_000
MEMBER = "c-8d3cbcf0-1c7b-4d24-a7df-a8e27f379d01"
RANGE = (("range", subscription("orders")),)


def join(number: int, version: int, member_id: str, instance_id: str | None = None) -> Join:
    """A JoinGroup of the member, of a new one, or of a static one."""
    new_id = f"{instance_id or 'c'}-8d3cbcf0-1c7b-4d24-a7df-a8e27f379d{number:02}"
    where = ("c", "/10.0.0.1")
    timeouts = (10_000, 10_000)
    return Join(number, version, "g", member_id, instance_id, *where, *timeouts, "consumer", RANGE, None, new_id)


ASKED: tuple[Operation, ...] = (
    join(11, 9, ""),
    join(12, 3, ""),
    join(13, 9, MEMBER),
    join(14, 9, "", "i1"),
    Sync(15, 5, "g", 1, MEMBER, None, "consumer", "range", ()),
    Sync(16, 3, "g", 7, "nobody", None, None, None, ()),
    Heartbeat(17, 4, "g", 1, MEMBER, None),
    Heartbeat(18, 0, "unknown", 1, "nobody", None),
    Leave(19, 5, "g", (Leaving(MEMBER, None, "bye"),)),
    Leave(20, 1, "g", (Leaving(MEMBER, None, None),)),
    Commit(21, 8, "g", 1, MEMBER, None, "orders", 0, 5),
    Commit(22, 2, "g", -1, "", None, "orders", 0, 5),
    TxnCommit(23, 3, "g", 7, 0, 1, MEMBER, None, "orders", 0, 5),
    OffsetDelete(24, "g", (("orders", 0),)),
    DeleteGroups(25, ("g",)),
)


def played(version: str) -> tuple[Sequence[Answer], View | None, View | None]:
    """Answers given in the middle of a load, and the group before the unload and after the load."""
    oracle = Oracle(version, SETTINGS[1])
    oracle.perform(join(1, 3, ""), STARTED_AT_MS)
    oracle.advance(STARTED_AT_MS + 1)
    oracle.perform(Sync(2, 5, "g", 1, MEMBER, None, "consumer", "range", ((MEMBER, b"a"),)), STARTED_AT_MS + 2)
    before = oracle.view("g")
    oracle.perform(Unload(3), LOADED_MS - 1_000)
    answers = oracle.load_while(ASKED, LOADED_MS)
    return answers, before, oracle.view("g")


@pytest.mark.slow
@pytest.mark.parametrize(
    "version",
    [pytest.param(one, marks=() if one in VERSIONS else pytest.mark.long) for one in EVERY_VERSION],
)
def test_brokers_of_the_fleet_answer_as_kafka_does_while_a_shard_loads(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        answers, before, after = process.submit(played, version).result(timeout=300)
    java = version.startswith("4.")
    assert sorted(answers) == sorted(while_loading(one, LOADED_MS, java=java) for one in ASKED)
    assert before is not None
    assert after is not None
    (member,) = after.members
    assert (after.state, after.generation_id, member.session_deadline_at_ms) == ("Stable", 1, LOADED_MS + 10_000)
