"""What is said of deadlines at the end of a log: a broker that is asked answers, and so logs, a moment later.

Goal: no row is sure of a session that may have been renewed by a request which is not answered yet. Method: live steps
of a second; the last row of health at the end of a log whose last line is so old, beside what is usual in it.
"""

from __future__ import annotations

import pytest

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from tests.observe.test_scenes import stable
from tests.support.restored import restored
from tests.support.scene import START, Scene
from tests.support.stories import named

BUSY, QUIET = 100, 2
"""Lines of a second."""


def logged(lines: int, silent_ms: float) -> Scene:
    """A group of two on a broker with so many lines a second, until its log is silent before the last tick."""
    scene = stable("a", "b")
    for at in range(4_000, 14_001, 1_000):
        scene.heartbeats(at - 500, at - 499, "b")
        if at % 3_000 == 0:
            scene.heartbeat(at - 400, "a")
        last = at - silent_ms if at == 14_000 else at - 5.0
        scene.tick(at, first_line=at - 990.0, last_line=last, lines=lines)
    return scene


def said(scene: Scene, at: float) -> set[str]:
    """How sure the rows of an instant are."""
    rows = named("health", scene.known_step_by_step().rows["health"])
    found = {row["certainty"] for row in rows if row["at_ms"] == START + at}
    assert found, sorted({row["at_ms"] - START for row in rows})
    return found


@pytest.mark.parametrize(
    ("lines", "silent_ms", "certainty"),
    [
        (BUSY, 5.0, "exact"),  # what it was asked up to 13,925 is answered
        (BUSY, 70.0, "inferred"),  # a commit that it was asked for just before its last line may not be
        (BUSY, 250.0, "provisional"),  # it stands still, maybe
        (QUIET, 250.0, "inferred"),  # half a second without a line is nothing there
        (QUIET, 5.0, "exact"),
    ],
)
def test_a_deadline_is_as_sure_as_the_last_line_before_it_is_old(lines: int, silent_ms: float, certainty: str) -> None:
    """The clock stands at 13,925 when the log is read up to 14,000. A member may have been renewed at 13,880 by a
    commit that is answered, and logged, when a broker goes on which stands still since 13,890."""
    assert said(logged(lines, silent_ms), 13_925) == {certainty}


def test_what_is_usual_in_a_log_survives_a_restart() -> None:
    """The observer that goes on knows that the broker is a busy one."""
    step: list[Event] = []
    observer = Observer(ObserverSettings("test"))
    for event in logged(BUSY, 250.0).events:
        step.append(event)
        if event.kind == Kind.TICK and event.logged_at_ms < START + 14_000:
            observer.step(step)
            step = []
    again = restored(observer)
    rows = named("health", again.step(step)["health"])
    assert {row["certainty"] for row in rows} == {"provisional"}
