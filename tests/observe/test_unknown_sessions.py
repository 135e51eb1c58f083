"""Groups that have epochs, by requests alone, where nothing says how long a session is: whom another one's partitions
show to be gone, and when it went.

Instants in ms from the start of a scene. The members of `three` are settled in epoch 3: s has partition 0, b 1, c 2.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.modern_scene import ModernScene, rebalances, since_start
from tests.support.scene import Known
from tests.support.stories import standing


def three(version: str = "4.1.2") -> ModernScene:
    """s, b and c, heard last at 4,000, 4,200 and 4,100."""
    scene = ModernScene(given_ms=-1, version=version)
    scene.comes(1_000, "s", 1, (0, 1, 2))
    scene.beat(1_010, "s", 1, owned=(0, 1, 2))
    scene.comes(1_100, "b", 2)
    scene.comes(1_200, "c", 3)
    scene.beat(2_000, "s", 1, 1, assigned=(0,))
    scene.beat(2_010, "s", 1, 3, owned=(0,))
    scene.beat(2_100, "b", 2, 3, assigned=(1,))
    scene.beat(2_200, "c", 3, 3, assigned=(2,))
    scene.beat(4_000, "s", 3, owned=(0,))
    scene.beat(4_100, "c", 3, owned=(2,))
    scene.beat(4_200, "b", 3, owned=(1,))
    return scene


def ends(known: Known) -> dict[str, tuple[Any, ...]]:
    """Of each member that is gone: (not before, for so long after it, how sure)."""
    rows = [row for row in standing("members", known.rows["members"]) if row["end_cause"] is not None]
    return {row["member_id"]: (since_start(row["ended_at_ms"]), row["at_bound_ms"], row["certainty"]) for row in rows}


def test_of_two_that_are_gone_the_one_that_was_heard_first_went_first() -> None:
    """Sessions of a group are of one length; the numbers of their partitions say nothing."""
    scene = three()
    scene.beats(6_000, 14_000, 3, "s")
    scene.beat(14_200, "s", 3, 4)
    scene.beats(16_000, 17_000, 4, "s")
    scene.beat(18_200, "s", 4, 5, assigned=(0, 1, 2))
    scene.tick(19_000)
    found = ends(scene.known())
    assert found["c"][0] < found["b"][0]


def test_an_epoch_from_before_a_member_was_heard_is_not_of_its_end() -> None:
    """A topic had grown at some time before 6,000, and b was heard after that."""
    scene = three()
    scene.beat(6_000, "s", 3, 4)
    scene.beat(6_100, "c", 3, 4)
    scene.beat(6_200, "b", 3, 4)
    scene.beats(8_000, 16_000, 4, "s", "c")
    scene.beat(16_300, "s", 4, 5, assigned=(0, 1))
    scene.tick(17_000)
    assert ends(scene.known()) == {"b": (14_000, 2_300, "inferred")}


def test_an_epoch_that_a_join_by_an_expression_may_have_made_is_not_surely_of_an_end() -> None:
    scene = three()
    scene.beats(6_000, 12_000, 3, "s", "c")
    scene.comes(12_500, "r", 3, topics=[], regex="t.*")
    scene.beat(14_000, "s", 3, 4)
    scene.beat(14_100, "c", 3, 4)
    scene.beat(14_200, "r", 3, 4)
    scene.beats(16_000, 20_000, 4, "s", "c", "r")
    scene.beat(20_100, "s", 4, 4, assigned=(0, 1))
    scene.tick(21_000)
    assert ends(scene.known())["b"][2] == "provisional"


def test_nobody_is_silent_for_longer_than_somebody_who_is_gone_by_it() -> None:
    """b is gone by 14,200, so that a session is 10 s at the most; the epoch of 28,000 is not of the end of z, whose
    seat is taken later."""
    scene = three()
    scene.comes(5_000, "z", 4, instance="i")
    scene.beats(6_000, 14_000, 4, "s", "c")
    scene.beat(14_200, "s", 4, 5, assigned=(0, 1))
    scene.beat(14_300, "c", 4, 5)
    scene.beats(16_000, 27_000, 5, "s", "c")
    scene.beat(28_000, "s", 5, 6)
    scene.beat(28_100, "c", 5, 6)
    scene.comes(30_000, "n", 7, instance="i")
    scene.tick(31_000)
    assert ends(scene.known())["z"][2] == "provisional"


def test_an_end_that_may_have_come_before_a_join_need_not_have_made_the_epoch_after_it() -> None:
    scene = three("4.3.1")
    scene.beats(6_000, 8_000, 3, "s", "c")
    scene.comes(12_000, "n", 3)
    scene.comes(12_400, "m", 4)
    scene.beat(12_900, "s", 3, 6)
    scene.beat(13_000, "c", 3, 6)
    scene.beat(13_100, "n", 4, 6)
    scene.beat(13_200, "m", 5, 6, assigned=(1,))
    scene.tick(14_000)
    known = scene.known()
    assert [row[2:] for row in rebalances(known) if row[2] == "session_expired"] == [("session_expired", "b")]
    [row] = [row for row in known.rebalances() if row["trigger"] == "session_expired"]
    assert row["certainty"] == "provisional"


@pytest.mark.parametrize(("back_at", "sure"), [(6_000, "exact"), (44_000, "provisional")])
def test_who_asks_for_other_topics_as_it_joins_anew_may_have_been_gone(back_at: int, sure: str) -> None:
    scene = ModernScene(given_ms=-1, version="4.3.1")
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.beat(3_000, "a", 1)
    scene.comes(back_at, "a", 2, (0, 1), topics=["t", "u"])
    scene.tick(back_at + 2_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("metadata_changed", sure)


def test_who_takes_a_seat_with_other_topics_after_a_long_silence_may_have_found_nobody_in_it() -> None:
    scene = ModernScene(given_ms=-1, version="4.4.0")
    scene.comes(1_000, "a", 1, (0, 1), instance="i")
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.goes(3_000, "a", -2, instance="i")
    scene.comes(40_000, "n", 3, (0, 1), instance="i", topics=["t", "u"])
    scene.tick(42_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("metadata_changed", "provisional")
