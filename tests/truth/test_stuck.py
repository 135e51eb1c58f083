"""Groups that a client can bring to a stop: Kafka throws where the join phase would complete, and so does the model.

Goal: the hostile JoinGroups that are known behave in the model as in Kafka's classes, step by step. Method: one short
history for each, played on both (`Lockstep`), in a process of its own for each release. They are not among the random
histories, where a group that stands still would be all that is seen.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.operations import Join, View
from tests.truth.canaries import flipped
from tests.truth.draw import SETTINGS, STARTED_AT_MS, subscription
from tests.truth.lockstep import Disagreement, Lockstep, Move

LATER_MS = STARTED_AT_MS + 100_000
ORDERS = subscription("orders")
HOSTILE: dict[str, tuple[tuple[str, bytes], ...]] = {
    "a name twice": (("range", ORDERS), ("range", ORDERS)),
    "2^31-1 topics": (("range", b"\x00\x00\x7f\xff\xff\xff"),),
    "-1 topics": (("range", b"\x00\x00\xff\xff\xff\xff"),),
    "a topic longer than the rest": (("range", b"\x00\x00\x00\x00\x00\x01\x00\x7fab"),),
    "user data longer than the rest": (("range", ORDERS[:-4] + b"\x00\x00\x00\x09a"),),
}


def join(number: int, protocols: tuple[tuple[str, bytes], ...], again: Join | None = None) -> Join:
    """A static member's JoinGroup: its first, without a member id, or the next one of who sent `again`."""
    new_id = f"i{number}-8d3cbcf0-1c7b-4d24-a7df-a8e27f379d{number:02}"
    instance, member_id = (again.group_instance_id, again.new_id) if again else (f"i{number}", "")
    return Join(
        number, 9, "g", member_id, instance, "c", "/10.0.0.1", 10_000, 60_000, "consumer", protocols, None, new_id
    )


def histories(protocols: tuple[tuple[str, bytes], ...]) -> tuple[tuple[Move, ...], ...]:
    """The first member of a group is hostile, and the join phase ends by its timer; the only member of a group becomes
    so, and the join phase ends by its request; another member is so, and the join phase ends by the first one's end."""
    whole = (("range", ORDERS),)
    first, well = join(1, protocols), join(1, whole)
    return (
        (
            Move(STARTED_AT_MS, True, first),
            Move(STARTED_AT_MS + 100_000, True, None),
            Move(LATER_MS, True, join(2, whole)),
        ),
        (
            Move(STARTED_AT_MS, True, well),
            Move(STARTED_AT_MS + 3_001, True, join(3, protocols, well)),
            Move(STARTED_AT_MS + 9_000, True, join(4, whole, well)),
        ),
        (
            Move(STARTED_AT_MS, True, well),
            Move(STARTED_AT_MS + 3_001, True, join(3, protocols)),
            Move(STARTED_AT_MS + 9_000, True, join(4, whole)),
        ),
    )


def played(version: str, switch: str = "") -> list[tuple[str, str, View | None]]:
    """The case, its disagreement ("" for none) and the group after its second move. `switch`: a row of the release
    table that is turned around."""
    found = []
    behaviour = flipped(behaviour_of(version), switch) if switch else None
    for name, protocols in HOSTILE.items():
        for moves in histories(protocols):
            lockstep, told, view = Lockstep(version, SETTINGS[0], behaviour), "", None
            try:
                for number, move in enumerate(moves):
                    lockstep.play(move)
                    view = lockstep.views["g"] if number == 1 else view
                lockstep.play(Move(STARTED_AT_MS + 700_000, True, None))
            except Disagreement as disagreement:
                told = str(disagreement)
            found.append((name, told, view))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2"])
def test_a_hostile_join_stops_the_model_where_it_stops_kafka(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        found = process.submit(played, version).result(timeout=300)
    assert [(name, disagreement) for name, disagreement, _ in found if disagreement] == []
    assert len(found) == 3 * len(HOSTILE)
    for _, _, view in found[::3]:
        assert view is not None
        assert (view.state, view.join_deadline_at_ms) == ("PreparingRebalance", -1)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2"])
def test_it_is_noticed_which_coordinator_tries_again(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        found = process.submit(played, version, "join_phase_ends_once").result(timeout=300)
    assert any(disagreement for _, disagreement, _ in found)
