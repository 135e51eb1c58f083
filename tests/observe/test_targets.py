"""When the target of an epoch was computed: an answer shows that it was, by then; whether it was then depends on who
may have been answered before.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

import pytest

from tests.support.modern_scene import ModernScene, pair, since_start
from tests.support.stories import named


def target(scene: ModernScene, epoch: int) -> int | None:
    """When the target of an epoch was computed, by the rebalance as it stands at last, in ms from the start."""
    rows = [row for row in named("rebalances", scene.known().rows["rebalances"]) if row["generation_after"] == epoch]
    last = max(rows, key=lambda row: row["known_at_ms"])
    assert last["completed_at_ms"] is not None
    return since_start(last["joined_at_ms"])


@pytest.mark.parametrize(("protocol", "computed"), [("share", 5_600), ("streams", None)])
def test_a_target_that_is_shown_later_is_dated_where_heartbeats_alone_compute_it(
    protocol: str, computed: int | None
) -> None:
    """c joins and is answered the epoch before, as from 4.3 on a target is computed once in a while."""
    scene = ModernScene(protocol=protocol, version="4.3.1")
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.comes(4_500, "c", 1)
    scene.beat(5_600, "a", 1, 2)
    scene.beat(5_800, "c", 1, 2)
    scene.tick(7_000)
    assert target(scene, 2) == computed


@pytest.mark.parametrize("protocol", ["consumer", "streams"])
def test_the_answer_to_what_began_an_epoch_dates_its_target(protocol: str) -> None:
    scene = pair(protocol=protocol, version="4.3.1")
    scene.comes(4_500, "c", 3)
    scene.beat(5_600, "a", 2, 3)
    scene.beat(5_700, "b", 2, 3)
    scene.tick(7_000)
    assert target(scene, 3) == 4_500


def test_the_first_heartbeat_after_an_eviction_computes_the_target() -> None:
    """b is silent and due at 14,100."""
    scene = pair()
    scene.beats(5_600, 13_600, 2, "a")
    scene.beat(15_600, "a", 2, 3)
    scene.tick(17_000)
    assert target(scene, 3) == 15_600


def test_a_member_that_has_partitions_to_give_up_may_have_hidden_it() -> None:
    """a must give up 0 for c, as b is evicted at 14,100: its heartbeat at 14,600 computes the target that nobody is
    shown before 15,600."""
    scene = pair(version="4.2.1")
    scene.beats(5_600, 12_600, 2, "a")
    scene.comes(13_000, "c", 3, assigned=())
    scene.beat(13_600, "a", 2, 2, assigned=())
    scene.beat(14_600, "a", 2, 2)
    scene.beat(15_600, "c", 3, 4)
    scene.beat(15_700, "a", 2, 4, owned=(), assigned=(1,))
    scene.tick(17_000)
    assert target(scene, 4) is None
