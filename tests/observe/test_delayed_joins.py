"""A join phase out of Empty waits for more members (`group.initial.rebalance.delay.ms`), and no leave ends it: the only
one that joined leaves as its JoinGroup was sent back by an upgrade that failed, as 4.0 to 4.4 do there.

Instants in ms from the start of a scene; the group was Empty in generation 2.
"""

from __future__ import annotations

import pytest

from tests.observe.test_fleet_scenes import classic
from tests.observe.test_migration_scenes import asks, sent_back
from tests.support.modern_scene import ModernScene, rebalances, since_start
from tests.support.stories import named


def joined_and_gone() -> ModernScene:
    """n joins at 3,005, is sent back at 4,001 and leaves at 4,700."""
    scene = ModernScene()
    classic(scene)
    scene.leave(2_000, "x")
    scene.leave(2_100, "y")
    scene.member_id_required(3_000, "n")
    sent_back(scene, 4_001, "n", 3_005)
    asks(scene, 4_000, "c", -1)
    scene.leave(4_700, "n")
    return scene


def test_the_group_becomes_empty_when_its_delay_is_over() -> None:
    """At any time up to the rebalance timeout of n, 60 s."""
    scene = joined_and_gone()
    scene.tick(20_000)
    scene.tick(70_000)
    known = scene.known()
    row = known.rebalances()[-1]
    told = (since_start(row["started_at_ms"]), row["trigger"], row["trigger_member_id"], row["generation_after"])
    assert told == (3_005, "member_joined", "n", 3)
    assert (since_start(row["completed_at_ms"]), row["completed_bound_ms"]) == (4_700, 63_005 - 4_700)


@pytest.mark.parametrize("records", [False, True])
def test_a_group_that_is_converted_meanwhile_had_no_generation_more(records: bool) -> None:
    """c asks again at 6,500, and its epoch follows the generation that was Empty."""
    scene = joined_and_gone()
    scene.tick(6_300)
    if records:
        scene.record_join(6_500, "c", 3)
    scene.comes(6_501, "c", 3, since=6_500)
    scene.beat(7_000, "c", 3)
    scene.tick(70_000)
    known = scene.known()
    assert [one for one in rebalances(known) if one[0] == 3] == [(3, 6_500, "member_joined", "c")]
    states = [(at, state) for at, state in known.states() if 2_100 < at < 10_000]
    assert states == [(6_500, "Empty"), (6_500, "Stable")]
    assert {row["protocol"] for row in named("members", known.rows["members"]) if row["member_id"] == "c"} == {
        "consumer"
    }
