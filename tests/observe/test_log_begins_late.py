"""Groups with epochs whose request log begins in the middle of their lives, as where a collector has just been started:
`__consumer_offsets` tells of them from long before.

Goal: what a member asked before the log began is not taken for nothing, whether the first thing that is read of the log
is a line or that it is silent. Method: member a is known by its records, b is heard as well. The simulated fleet has
the same (`consumer, middle`).
"""

from __future__ import annotations

import pytest

from tests.support.modern_scene import ModernScene, health, since_start


def late(first_line: float | None) -> ModernScene:
    """A member that records know since 11,000; the log is read from the line at `first_line` on, or, silent, from
    18,000."""
    scene = ModernScene()
    scene.record_join(11_000, "a", 1, (0, 1))
    scene.record_join(12_000, "b", 2)
    scene.records_read(18_000)
    if first_line is None:
        scene.tick(18_000)
        scene.events[-1] = scene.events[-1]._replace(detail={"lines": 0})
    for at in (18_500, 19_500):
        scene.beat(at, "b", 2)
        scene.records_read(at + 500)
        scene.tick(at + 500, first_line=first_line if at == 18_500 else at - 480.0, last_line=at + 495.0, lines=50)
    return scene


@pytest.mark.parametrize("first_line", [18_010.0, None])
def test_a_session_may_have_been_renewed_before_the_log_began(first_line: float | None) -> None:
    row = health(late(first_line).known_live(), "a")
    assert (row["status"], row["certainty"]) == ("imminent", "provisional")


@pytest.mark.parametrize("first_line", [18_010.0, None])
def test_it_is_known_as_soon_as_its_member_was_heard(first_line: float | None) -> None:
    scene = late(first_line)
    for at in (20_400, 21_400):
        scene.beat(at, "a", 1)
        scene.beat(at + 50, "b", 2)
    for at in range(21_000, 31_001, 1_000):  # then a is silent for long
        if at > 22_000:
            scene.beat(at - 500, "b", 2)
        scene.records_read(at)
        scene.tick(at, first_line=at - 990.0, last_line=at - 5.0, lines=50)
    row = health(scene.known_live(), "a")
    deadline = since_start(row["session_deadline_at_ms"])
    # Inferred, as any deadline at the last line of a log.
    assert (row["status"], row["certainty"], deadline) == ("imminent", "inferred", 31_400)
