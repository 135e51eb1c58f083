"""Partitions on their way in a group that has epochs: whose they are, whose they are to be, and the name of the topic.

Instants in ms from the start of a scene. Members a and b are settled at epoch 2: a has partition 0, b has 1.
"""

from __future__ import annotations

from typing import Any

from kardia.observe.output.in_motion import MOVING_MAX
from tests.support.modern_scene import TOPIC, UNRELEASED, UNREVOKED, ModernScene, both, health, pair
from tests.support.scene import Known


def moves(known: Known, member: str) -> list[tuple[str, int, str | None, str | None]] | None:
    """(topic, partition, from, to) of the last row of health of a member."""
    found = health(known, member)["moving"]
    if found is None:
        return None
    return [(one["topic"], one["partition"], one["from_member_id"], one["to_member_id"]) for one in found]


def c_is_to_have_what_b_has(**more: Any) -> ModernScene:
    """The records of the join of c, whose target has the partition of b; nobody has told b."""
    scene = both(given_ms=10_000)
    scene.record_join(5_000, "c", 3, state=UNRELEASED, **more)
    scene.record(5_000, "target", "c", assigned=[1])
    scene.record(5_000, "target", "b", assigned=[])
    scene.record(5_000, "target", "a", assigned=[0])
    scene.comes(5_010, "c", 3, since=5_000, **more)
    return scene


def test_target_and_assignment_of_all_members_say_what_is_on_its_way_before_its_owner_is_told() -> None:
    scene = c_is_to_have_what_b_has()
    scene.tick(6_000)
    known = scene.known()
    assert moves(known, "b") == moves(known, "c") == [("t", 1, "b", "c")]
    assert moves(known, "a") is None
    row = health(known, "b")
    assert (row["partitions"], row["partitions_target"], row["partitions_revoking"]) == (1, 0, 0)
    assert (row["assigned"], row["assigned_target"]) == ("t:1", ""), "which it has, and which it is to have"
    assert [health(known, "c")[name] for name in ("assigned", "assigned_target")] == ["", "t:1"]
    assert row["awaited_until_at_ms"] is None, "its time runs from when it is told"


def test_whoever_was_told_must_give_it_up_and_the_other_waits_until_it_has() -> None:
    scene = c_is_to_have_what_b_has()
    scene.record_current(6_100, "b", 2, UNREVOKED, (), (1,))
    scene.beat(6_110, "b", 2, 2, assigned=(), since=6_100)
    scene.tick(7_000)
    told = scene.known()
    assert moves(told, "b") == moves(told, "c") == [("t", 1, "b", "c")]
    assert health(told, "b")["partitions_revoking"] == 1
    assert health(told, "b")["assigned"] == "t:1", "it has it still"
    scene.record_current(8_100, "b", 3, 0, ())
    scene.beat(8_110, "b", 2, 3, owned=(), since=8_100)
    scene.tick(14_000)
    given_up = scene.known()
    assert moves(given_up, "b") is None
    assert moves(given_up, "c") == [("t", 1, None, "c")], "nobody has it, and c has not asked since"


def test_answers_alone_say_what_must_be_given_up_and_not_for_whom() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.tick(9_000)
    known = scene.known()
    assert moves(known, "a") == [("t", 0, "a", None)]
    assert moves(known, "c") is None, "what it is to have is in records only"


def test_a_topic_has_its_name_only_where_a_member_that_never_had_another_shows_it() -> None:
    scene = c_is_to_have_what_b_has(topics=["t", "u"])
    scene.tick(6_000)
    assert moves(scene.known(), "b") == [("t", 1, "b", "c")], "b has never had another"
    scene = ModernScene(given_ms=10_000)
    scene.comes(1_000, "a", 1, (0, 1), topics=["t", "u"])
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.comes(2_000, "b", 2, topics=["t", "u"])
    scene.beat(3_010, "a", 1, 1, assigned=(0,))
    scene.tick(4_000)
    assert moves(scene.known(), "a") == [(TOPIC, 1, "a", None)]


def test_a_member_that_changed_its_topics_shows_no_name() -> None:
    scene = ModernScene(given_ms=10_000)
    scene.comes(1_000, "a", 1, topics=["old"])
    scene.beat(1_500, "a", 1, 1, topics=["new"])
    scene.beat(2_000, "a", 1, 2, assigned=(0, 1))
    scene.comes(2_100, "b", 3, topics=["new", "other"])
    scene.beat(3_010, "a", 2, 2, assigned=(0,))
    scene.tick(4_000)
    assert moves(scene.known(), "a") == [(TOPIC, 1, "a", None)], "it may be one of the old topic still"


def test_in_a_share_group_nobody_has_to_give_anything_up() -> None:
    scene = ModernScene(protocol="share", given_ms=10_000)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.record_join(2_000, "b", 2)
    scene.record(2_000, "target", "b", assigned=[1])
    scene.record(2_000, "target", "a", assigned=[0])
    scene.comes(2_010, "b", 2, since=2_000)
    scene.tick(3_000)
    known = scene.known()
    assert moves(known, "a") is None
    assert moves(known, "b") == [("t", 1, None, "b")]


def test_a_row_tells_of_so_many_and_counts_all() -> None:
    for many in (MOVING_MAX - 1, MOVING_MAX, MOVING_MAX + 1):
        scene = ModernScene(given_ms=10_000)
        scene.comes(1_000, "a", 1, range(many))
        scene.beat(1_010, "a", 1, owned=range(many))
        scene.comes(2_000, "b", 2)
        scene.beat(3_010, "a", 1, 1, assigned=())
        scene.tick(4_000)
        row = health(scene.known(), "a")
        assert row["partitions_revoking"] == many
        assert len(row["moving"]) == min(many, MOVING_MAX)
