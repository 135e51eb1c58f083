"""States of groups that have epochs: what an answer shows of them, and what it does not; what a record shows.

Instants in ms from the start of a scene. The members of `pair` are a and b, settled in epoch 2.
"""

from __future__ import annotations

import pytest

from tests.support.modern_scene import STABLE, ModernScene, pair, since_start
from tests.support.scene import Known
from tests.support.stories import named


def changes(known: Known, since: float) -> list[tuple[int | None, str, str]]:
    """(at, state, certainty) of the group's changes since an instant."""
    rows = [row for row in named("transitions", known.rows["transitions"]) if row["entity"] == "group"]
    told = [(since_start(row["at_ms"]), row["to_state"], row["certainty"]) for row in rows]
    return [one for one in told if one[0] is not None and one[0] >= since]


def test_a_state_is_not_sure_while_an_expression_is_looked_up() -> None:
    """Its result makes an epoch, and from 4.3 on answers have the one before until a target is computed."""
    scene = ModernScene(version="4.3.1")
    scene.comes(1_000, "r", 1, topics=[], regex="t.*")
    scene.comes(1_010, "a", 2, (0, 1))
    scene.beat(1_050, "r", 1, 2, owned=())
    scene.beat(1_200, "a", 2, owned=(0, 1))
    scene.tick(2_000)
    assert changes(scene.known(), 1_050) == [(1_050, "Stable", "provisional")]


def test_a_state_is_not_sure_while_the_session_of_a_member_is_over() -> None:
    """b was due at 14,100: whether it is gone, and the group has another epoch, the next answers show."""
    scene = pair(version="4.3.1")
    scene.beats(6_200, 13_000, 2, "a")
    scene.beat(13_500, "a", 2, 2, assigned=())
    scene.beat(14_500, "a", 2, 2, owned=())
    scene.beat(14_600, "a", 2, 2, assigned=(0,))
    scene.tick(14_700)
    told = changes(scene._fed([scene.events]), 14_101)
    assert {certainty for _, _, certainty in told} <= {"provisional"}


def test_who_joined_since_was_not_in_the_group_when_its_only_member_went() -> None:
    """a is gone, as n is given its partitions: until n joined the group was Empty, unless a went later."""
    scene = ModernScene(given_ms=-1, version="4.1.2")
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.beats(3_000, 8_000, 1, "a")
    scene.comes(60_000, "n", 3, (0, 1))
    scene.beat(60_100, "n", 3, owned=(0, 1))
    scene.tick(62_000)
    known = scene.known()
    assert changes(known, 1_100) == [(7_000, "Empty", "provisional"), (60_000, "Stable", "inferred")]


def test_a_streams_group_of_4_1_is_not_ready_before_its_second_heartbeat() -> None:
    """The first was handled within the ms of its record, a fraction of it after the stamp."""
    scene = ModernScene(protocol="streams", version="4.1.2")
    scene.record_join(1_000, "a", 1)
    scene.comes(1_006, "a", 1, (0, 1), since=1_000.4)
    scene.beat(2_000, "a", 1, owned=(0, 1))
    scene.tick(3_000)
    assert [one[:2] for one in changes(scene.known(), 1_000)] == [(1_000, "NotReady"), (2_000, "Stable")]


@pytest.mark.parametrize("later_ms", [200, 900])
def test_what_silence_shows_late_has_the_epoch_of_its_instant(later_ms: float) -> None:
    """b was due at 15,000; a leaves after that, before anything shows that b is gone: its epoch is the second one, and
    is not sure as long as the timer of b may have been late."""
    scene = pair()
    scene.comes(4_500, "c", 3, topics=["t"])
    scene.beat(4_600, "a", 2, 3)
    scene.beat(4_700, "b", 2, 3)
    scene.beat(5_000, "b", 3)
    scene.beats(5_000, 15_000 + later_ms, 3, "a", "c", every=500)
    scene.goes(15_000 + later_ms, "a")
    scene.beat(15_600 + later_ms, "c", 3, 5, assigned=(0, 1))
    scene.beat(15_700 + later_ms, "c", 5, owned=(0, 1))
    scene.tick(20_000)
    known = scene.known()
    told = [(row["generation_after"], row["trigger"], row["trigger_member_id"]) for row in known.rebalances()]
    assert told[-2:] == [(4, "session_expired", "b"), (5, "member_left", "a")]
    assert {row["certainty"] for row in known.rebalances()[-2:]} == {"provisional"}


def test_a_join_may_have_another_epoch_where_a_session_was_over_before_it() -> None:
    """a was due at 11,010; n is answered with epoch 2 and a delay, so that its own join made the next one."""
    scene = ModernScene(protocol="streams", version="4.4.0")
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.comes(11_700, "n", 2, (), status=["ASSIGNMENT_DELAYED"])
    scene.beats(12_000, 14_000, 2, "n", every=1_000)
    scene.beat(14_700, "n", 2, 3, assigned=(0, 1))
    scene.tick(16_000)
    known = scene.known()
    told = [(row["generation_after"], row["trigger_member_id"], row["certainty"]) for row in known.rebalances()]
    assert told[-2:] == [(2, "a", "provisional"), (3, "n", "provisional")]


def test_an_epoch_that_was_read_has_no_target_before_its_record_though_none_was_ever_read() -> None:
    """The first member of a group of 4.4 that subscribes by an expression has epoch 1, and neither it nor a target of
    it has a record."""
    scene = ModernScene(version="4.4.0")
    scene.record(1_000, "member", "r", rebalance_timeout_ms=60_000, topics=[], regex="t.*")
    scene.record_current(1_000, "r", 1, STABLE, ())
    scene.record(1_040, "epoch", epoch=2)
    scene.record(1_150, "target", "r", assigned=[0, 1])
    scene.record(1_150, "computed", epoch=2)
    scene.record_current(1_150, "r", 2, STABLE, (0, 1))
    scene.records_read(3_000)
    assert changes(scene.known(), 0) == [(1_040, "Assigning", "inferred"), (1_150, "Stable", "inferred")]
