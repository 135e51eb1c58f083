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
