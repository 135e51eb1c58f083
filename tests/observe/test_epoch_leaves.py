"""Why a Java consumer left a group that has epochs: by its last poll, which may have been called before its FETCH."""

from __future__ import annotations

import pytest

from tests.support.modern_scene import ModernScene


@pytest.mark.parametrize(("fetched_at", "sure"), [(9_000, "exact"), (4_000, "provisional")])
def test_a_poll_that_returned_may_have_been_called_long_enough_ago(fetched_at: int, sure: str) -> None:
    """A consumer with a poll interval of 8 s leaves at 11,000 with what it had: it closed if it had polled in time."""
    scene = ModernScene()
    scene.comes(1_010, "a", 1, (0,), since=1_000)
    for at in range(2_000, 10_500, 1_000):
        scene.beat(at, "a", 1)
        if at <= fetched_at:
            scene.fetch(at + 10, "a", data=100)
    scene.beat(11_000, "a", -1, owned=())
    scene.tick(13_000)
    assert scene.known().ended()["a"] == (11_000, "left", sure)


def silent(last_line_at: int, left_at: int) -> ModernScene:
    """a fetches from another broker than its coordinator until 3,000, and leaves as Java does when its poll interval of
    8 s is over. The other broker's log has its last line at `last_line_at`."""
    scene = ModernScene()
    scene.comes(1_010, "a", 1, (0,), since=1_000)
    scene.at_broker(2)
    for at in range(1_500, 3_100, 500):
        scene.fetch(at, "a", data=100)
    for at in range(4_000, last_line_at + 1, 1_500):
        scene.fetch(at, "somebody")
    scene.at_broker(1)
    scene.beats(2_000, left_at - 100, 1, "a", every=1_000)
    scene.beat(left_at, "a", -1, owned=())
    scene.at_broker(2)
    scene.tick(left_at + 2_000, last_line=last_line_at)
    scene.at_broker(1)
    scene.tick(left_at + 2_000)
    return scene


@pytest.mark.parametrize(("last_line_at", "sure"), [(4_000, "provisional"), (11_500, "inferred")])
def test_a_broker_that_has_fallen_silent_may_have_taken_the_polls_along(last_line_at: int, sure: str) -> None:
    assert silent(last_line_at, 11_300).known().ended()["a"] == (11_300, "poll_timeout", sure)


def test_who_stays_long_after_its_interval_has_polled_unseen() -> None:
    """It would have left at 11,000 else; when its last poll was is not known."""
    assert silent(18_000, 18_000).known().ended()["a"] == (18_000, "poll_timeout", "provisional")
