"""A seat that was taken, and that the coordinator gave back because it could not store who took it.

Seen on three brokers 4.4.0, in the seconds after the one that leads the offsets partition had stood still: the write of
a JoinGroup with a static id lasted longer than `offsets.commit.timeout.ms`, and the member before failed 8 s later.
"""

from __future__ import annotations

import pytest

from tests.support.scene import Scene
from tests.support.told import Told

A, B, TAKER = (f"{name}-00000000-0000-4000-8000-00000000000{number}" for number, name in enumerate("abc", 1))
FENCED = 82


def two_static() -> Scene:
    scene = Scene()
    scene.joined(4_000, 1, {"a": 1_000, "b": 1_500}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"})
    scene.synced(4_100, "a", "b")
    scene.heartbeats(7_000, 11_000, "a", "b")
    scene.heartbeat(12_000, "b", error=FENCED)  # another process has come to its seat
    return scene


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "shown by its end alone"])
def test_who_has_its_seat_again_is_a_member_until_its_session_ends(is_told: bool) -> None:
    scene = two_static()
    scene.heartbeats(13_000, 36_000, "a")
    if is_told:
        scene.gives_back(17_000, "b2", "b")
    scene.failed(27_000, "b")
    scene.tick(36_000)
    known = scene.known()
    assert known.ended()["b"][0] == 27_000
    assert known.ended()["b"][1:] == ("session_expired", "exact")
    assert known.alive() == {"a"}


def test_without_a_word_of_it_the_seat_stays_taken_and_that_is_not_sure() -> None:
    scene = two_static()
    scene.heartbeats(13_000, 36_000, "a")
    scene.tick(36_000)
    assert scene.known().ended()["b"][1:] == ("static_replaced", "provisional")


def test_by_sentences_alone_it_is_a_member_again() -> None:
    told = Told()
    told.joins(1_000, 0)
    told.becomes(4_000, 1, 2)
    told.record(4_012, 1, A, B)
    told.say(
        9_000,
        "Static member with groupInstanceId=i-b and unknown member id joins group g in Stable state. Replacing "
        f"previously mapped member {B} with this groupInstanceId.",
    )
    told.say(
        14_000,
        f"Failed to persist metadata for group g static member {TAKER} with group instance id i-b due to "
        f"CoordinatorWriteEvent(name=classic-group-join) timed out after 5000ms. Reverting to old member id {B}.",
    )
    assert told.ends() == {}
    told.expires(22_000, B, 1)
    assert told.ends() == {B: (22_000, "session_expired", "exact")}
