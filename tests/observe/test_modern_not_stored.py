"""Seconds in which nothing of a group with epochs can be stored, and loads that begin no session: who is a member then.

Found by the simulated fleet, whose coordinators do what Kafka's own classes do (`tests/truth/test_refused_at_once.py`).
Instants in ms from the start of a scene; an answer 15 comes 5 s after what was asked was done.
"""

from __future__ import annotations

import pytest

from tests.support.modern_scene import ModernScene, pair
from tests.support.scene import START, Known
from tests.support.stories import named, standing

NOT_AVAILABLE, LOADING, FENCED_EPOCH = 15, 14, 110


def ends(known: Known) -> list[tuple[str, str]]:
    """Members that are said to have ended, and of what."""
    return [
        (row["member_id"], row["end_cause"])
        for row in standing("members", known.rows["members"])
        if row["ended_at_ms"] is not None
    ]


def asked_by_others(scene: ModernScene, begin: float, end: float) -> None:
    """The log goes on, and has nothing of the group."""
    at = begin
    while at < end:
        scene.fetch(at, "somebody")
        at += 300
    scene.tick(end)


def test_a_heartbeat_that_could_not_be_answered_in_time_has_renewed_the_session() -> None:
    """b's session would have been over at 14,300, and its heartbeat was done at 13,500."""
    scene = pair(version="4.1.2")
    scene.beats(4_300, 13_000, 2, "a")
    scene.beat(4_300, "b", 2)
    asked_by_others(scene, 13_000, 18_400)
    scene.beat(18_500, "b", 2, since=13_500, error=NOT_AVAILABLE)
    scene.beat(18_600, "a", 2, since=14_000)
    scene.tick(19_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert ends(known) == []


def test_who_is_refused_for_its_epoch_is_a_member_still() -> None:
    """b was silent for longer than its session, and was then refused for its epoch: who is no member is told another
    error (25)."""
    scene = pair(version="4.1.2")
    scene.beats(4_300, 13_000, 2, "a")
    scene.beat(4_500, "b", 2)
    asked_by_others(scene, 13_000, 17_000)
    scene.beat(17_100, "b", 1, error=FENCED_EPOCH)
    scene.tick(18_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}


def test_who_is_told_that_its_join_could_not_be_stored_is_a_member_and_has_made_an_epoch() -> None:
    """c joined at 6,000, was told 15 at 11,000, and left at 12,000 without asking again."""
    scene = pair(version="4.1.2")
    scene.beats(4_500, 6_000, 2, "a", "b", every=1_000)
    scene.comes(11_000, "c", 0, since=6_000, error=NOT_AVAILABLE)
    scene.goes(12_500, "c", since=12_000)
    scene.beat(12_600, "a", 2, 4, since=12_100)
    scene.beat(12_610, "b", 2, 4, since=12_200)
    scene.beats(13_000, 16_000, 4, "a", "b")
    scene.tick(16_000)
    known = scene.known()
    rows = standing("rebalances", known.rows["rebalances"])
    made = [(row["generation_after"], row["trigger"], row["trigger_member_id"]) for row in rows]
    assert made[-2:] == [(3, "member_joined", "c"), (4, "member_left", "c")]
    joined = next(row for row in named("transitions", known.rows["transitions"]) if row["member_id"] == "c")
    assert (joined["cause"], joined["certainty"]) == ("member_joined", "inferred")


@pytest.mark.parametrize(("version", "stays"), [("4.0.2", True), ("4.1.2", False)])
def test_before_kafka_4_1_a_load_begins_no_session_of_a_share_group(version: str, stays: bool) -> None:
    """The coordinator loads its groups at 5,000. b is not heard any more: up to 4.0 it stays a member for ever."""
    scene = ModernScene(protocol="share", version=version)
    scene.comes(1_000, "a", 1)
    scene.comes(1_500, "b", 2)
    scene.beats(2_000, 5_000, 2, "a", "b", every=1_000)
    scene.beat(5_000, "a", 2, error=LOADING)
    scene.beats(5_500, 14_000, 2, "a")
    asked_by_others(scene, 14_000, 18_000)
    known = scene.known()
    assert ends(known) == ([] if stays else [("b", "session_expired")])
    assert known.alive() == ({"a", "b"} if stays else {"a"})


def test_a_join_that_could_not_be_stored_is_no_later_one_of_the_same_id() -> None:
    """c joined at 6,000, was told 15, was answered as a member, fell silent, and came back under its id at 40,000."""
    scene = pair(version="4.1.2")
    scene.beats(4_500, 6_000, 2, "a", "b", every=1_000)
    scene.comes(11_000, "c", 0, since=6_000, error=NOT_AVAILABLE)
    scene.beat(11_100, "c", 3)
    for at in range(11_200, 39_000, 2_000):
        epoch = 3 if at < 21_100 else 4
        scene.beats(at, at + 100, epoch, "a", "b")
    scene.comes(40_000, "c", 5)
    scene.beats(40_100, 42_000, 5, "a", "b")
    scene.tick(43_000)
    rows = standing("members", scene.known().rows["members"])
    assert sorted(row["joined_at_ms"] - int(START) for row in rows if row["member_id"] == "c") == [6_000, 40_000]
