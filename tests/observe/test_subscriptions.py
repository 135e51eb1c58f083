"""Groups that have epochs: a member asks for other topics, and only its requests are read.

Instants in ms from the start of a scene. Members a and b hold partitions 0 and 1, in epoch 2.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.modern_scene import ModernScene, pair, since_start
from tests.support.scene import Known


def told(known: Known) -> list[tuple[Any, ...]]:
    """Epoch, trigger, member and certainty of what began after the two members had come."""
    rows = [row for row in known.rebalances() if row["generation_after"] > 2 and not row["withdrawn"]]
    return [(row["generation_after"], row["trigger"], row["trigger_member_id"], row["certainty"]) for row in rows]


def test_other_topics_are_a_new_epoch_which_the_answer_shows() -> None:
    scene = pair()
    scene.beat(7_000, "b", 2, 3, topics=["t", "u"])
    scene.beat(7_500, "a", 2, 3)
    scene.tick(9_000)
    known = scene.known()
    assert told(known) == [(3, "metadata_changed", "b", "exact")]
    last = known.rebalances()[-1]
    assert (since_start(last["started_at_ms"]), since_start(last["joined_at_ms"]), last["members_before"]) == (
        7_000,
        7_000,
        2,
    )


@pytest.mark.parametrize("topics", [["t"], None])
def test_the_same_topics_said_again_are_none(topics: list[str] | None) -> None:
    scene = pair()
    scene.beat(7_000, "b", 2, topics=topics)
    scene.beat(7_500, "a", 2)
    scene.tick(9_000)
    assert told(scene.known()) == []


def test_who_must_give_something_up_first_stays_in_its_epoch_and_has_made_one_all_the_same() -> None:
    scene = pair(version="4.1.2")
    scene.beat(7_000, "b", 2, 2, topics=["u"], assigned=())
    scene.beat(7_500, "a", 2, 3)
    scene.tick(9_000)
    assert told(scene.known()) == [(3, "metadata_changed", "b", "inferred")]


def test_where_targets_are_computed_at_once_an_answer_without_an_epoch_shows_that_there_is_none() -> None:
    """The coordinator knew of the change: it was asked for in a line that was lost."""
    scene = pair(version="4.1.2")
    scene.beat(7_000, "b", 2, 2, topics=["t", "u"])
    scene.beat(7_500, "a", 2, 2)
    scene.tick(9_000)
    assert told(scene.known()) == []


def test_where_targets_wait_the_epoch_is_shown_later_and_is_that_of_the_change() -> None:
    scene = pair(version="4.3.1")
    scene.beat(7_000, "b", 2, 2, topics=["t", "u"])
    scene.beat(7_500, "a", 2, 2)
    scene.beat(8_000, "a", 2, 3)
    scene.tick(9_000)
    known = scene.known()
    assert told(known) == [(3, "metadata_changed", "b", "inferred")]
    assert since_start(known.rebalances()[-1]["started_at_ms"]) == 7_000


def test_an_epoch_that_an_answer_to_another_member_has_shown_before_is_that_of_the_change() -> None:
    """b's heartbeat is handled at 7,000 and answered at 7,040, when its records are stored; a is answered before."""
    scene = pair()
    scene.beat(7_020, "a", 2, 3, since=7_010)
    scene.beat(7_040, "b", 2, 3, topics=["t", "u"], since=7_000)
    scene.tick(9_000)
    known = scene.known()
    assert [row[:3] for row in told(known)] == [(3, "metadata_changed", "b")]
    assert since_start(known.rebalances()[-1]["started_at_ms"]) == 7_000


def test_of_a_change_and_a_join_the_one_that_was_handled_first_has_the_first_epoch() -> None:
    scene = pair()
    scene.comes(7_020, "c", 4, since=7_010)
    scene.beat(7_040, "b", 2, 3, topics=["t", "u"], since=7_000)
    scene.beat(8_000, "a", 2, 4)
    scene.tick(9_500)
    rows = sorted(told(scene.known()), key=lambda row: int(row[0]))
    assert [row[:3] for row in rows] == [(3, "metadata_changed", "b"), (4, "member_joined", "c")]


def test_after_a_gap_it_may_have_changed_before() -> None:
    scene = pair()
    scene.gap(6_500, 6_800)
    scene.beat(7_000, "b", 2, 3, topics=["t", "u"])
    scene.beat(7_500, "a", 2, 3)
    scene.tick(9_000)
    assert [row[1:] for row in told(scene.known())] == [("metadata_changed", "b", "provisional")]


def test_who_is_not_known_to_have_had_topics_has_not_changed_them() -> None:
    scene = ModernScene()
    scene.beat(1_000, "a", 2)
    scene.beat(2_000, "a", 2, 3, topics=["t"])
    scene.tick(4_000)
    assert [row[1] for row in told(scene.known())] == ["unknown"]


def test_a_share_group_has_a_new_epoch_too() -> None:
    scene = ModernScene(protocol="share")
    scene.comes(1_010, "a", 1, (0,), since=1_000)
    scene.beats(2_000, 5_000, 1, "a")
    scene.beat(6_000, "a", 1, 2, topics=["t", "u"])
    scene.tick(8_000)
    rows = [row for row in scene.known().rebalances() if row["generation_after"] == 2]
    assert [(row["trigger"], row["trigger_member_id"], row["certainty"]) for row in rows] == [
        ("metadata_changed", "a", "exact")
    ]
