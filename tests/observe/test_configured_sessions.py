"""How long a session is, as the cluster's configuration says: told by a collector, from its instant on, and kept.

Instants in ms from the start of a scene. A broker takes the timeout in force when a heartbeat comes.
"""

from __future__ import annotations

from typing import Any

from kardia.observe import Observer
from tests.support.modern_scene import ModernScene, since_start
from tests.support.scene import Known
from tests.support.stories import named


def alone(**options: Any) -> ModernScene:
    """A member at epoch 1 that is heard every 2 s, of a cluster whose configuration is not known."""
    scene = ModernScene(given_ms=-1, **options)
    scene.comes(1_000, "a", 1, (0,))
    scene.beat(1_010, "a", 1, owned=(0,))
    return scene


def session_of(known: Known) -> tuple[int | None, int | None, str]:
    """(session timeout, deadline, certainty) in the last row of health."""
    row = named("health", known.rows["health"])[-1]
    return row["session_timeout_ms"], since_start(row["session_deadline_at_ms"]), row["certainty"]


def test_a_session_that_was_not_known_runs_with_what_the_cluster_says_since_its_last_heartbeat() -> None:
    scene = alone()
    scene.beats(3_000, 8_000, 1, "a")
    scene.configured(8_000, 12_000)
    scene.tick(9_000)
    known = scene.known()
    assert session_of(known) == (12_000, 19_000, "exact")
    last = named("members", known.rows["members"])[-1]
    assert (last["session_timeout_ms"], last["ended_at_ms"]) == (12_000, None)


def test_before_the_configuration_was_told_nothing_is_said_with_it() -> None:
    scene = alone()
    scene.beats(3_000, 8_000, 1, "a")
    scene.tick(8_500)
    scene.configured(9_000, 12_000)
    scene.tick(8_600)
    assert session_of(scene.known()) == (None, None, "provisional")


def test_a_change_counts_for_each_member_from_its_next_heartbeat_on() -> None:
    scene = alone()
    scene.configured(1_500, 12_000)
    scene.beats(3_000, 6_000, 1, "a")
    scene.configured(6_000, 20_000)
    scene.tick(6_500)
    assert session_of(scene.known()) == (12_000, 17_000, "exact")
    scene.beat(7_000, "a", 1)
    scene.tick(8_000)
    assert session_of(scene.known()) == (20_000, 27_000, "exact")


def test_a_group_with_a_configuration_of_its_own_has_that() -> None:
    scene = alone()
    scene.configured(1_500, 45_000, g=9_000, other=7_000)
    scene.tick(2_500)
    assert session_of(scene.known())[0] == 9_000


def test_a_group_that_is_met_later_has_it_from_the_start() -> None:
    scene = ModernScene(given_ms=-1)
    scene.configured(500, 12_000)
    scene.comes(1_000, "a", 1, (0,))
    scene.beat(1_010, "a", 1, owned=(0,))
    scene.tick(2_000)
    assert session_of(scene.known()) == (12_000, 13_010, "exact")


def test_what_an_option_gives_stands_above_it() -> None:
    scene = ModernScene(given_ms=10_000)
    scene.comes(1_000, "a", 1, (0,))
    scene.beat(1_010, "a", 1, owned=(0,))
    scene.configured(1_500, 12_000)
    scene.beat(3_000, "a", 1)
    scene.tick(4_000)
    assert session_of(scene.known()) == (10_000, 13_000, "exact")


def test_an_eviction_is_foretold_with_it() -> None:
    scene = alone()
    scene.configured(1_500, 12_000)
    scene.beats(3_000, 10_000, 1, "a")
    scene.tick(20_500)
    [row] = [row for row in named("predictions", scene.known().rows["predictions"]) if row["outcome"] == "open"][:1]
    assert (row["kind"], since_start(row["deadline_at_ms"])) == ("session", 21_000)


def test_it_is_kept_in_the_state() -> None:
    scene = alone()
    scene.configured(1_500, 12_000, other=7_000)
    scene.tick(2_500)
    first = Observer(scene.settings)
    first.step(scene.events)
    again = Observer.restore(scene.settings, 0, first.snapshot())
    assert again.told_session_ms == {"consumer": 12_000}
    assert again.told_group_session_ms == {"other": {"consumer": 7_000}}


def test_what_is_no_duration_is_passed_over() -> None:
    scene = alone()
    scene.configured(1_500, 12_000)
    event = scene.events[-1]
    scene.events[-1] = event._replace(detail={"session_ms": {"consumer": -1, "odd": 5, "share": 0}})
    scene.tick(2_500)
    known = scene.known()
    assert known.observer.told_session_ms == {}
    assert session_of(known) == (None, None, "provisional")
