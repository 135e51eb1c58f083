"""Coordinators that move, load and come back: what their answers show, and what they do not (rules 11 and 12).

Brokers are numbered; broker 1 leads the group at first. Histories are the shortest that show it.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Kind, shard_of
from tests.observe.test_scenes import stable
from tests.support.scene import START, Known, Scene
from tests.support.stories import named

NOT_COORDINATOR, LOADING, MEMBER_ID_REQUIRED = 16, 14, 79


def health(known: Known, member: str) -> list[dict[str, Any]]:
    """Rows about a member, oldest first; `at_ms` from the start of the scene."""
    rows = [row for row in named("health", known.rows["health"]) if row["member_id"] == member]
    return [{**row, "at_ms": row["at_ms"] - int(START)} for row in rows]


def moved(at: float) -> Scene:
    """A Stable group of a and b whose coordinator is told to be another one at an instant."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, at, "a", "b")
    scene.heartbeat(at, "a", error=NOT_COORDINATOR)
    scene.tick(at + 1_000)
    scene.at_broker(2)
    return scene


def test_after_a_move_every_session_runs_from_the_load_at_the_earliest() -> None:
    """b was heard last at 6,000; without the move its session would end at 16,000."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(9_000, "a", error=NOT_COORDINATOR)
    scene.tick(30_000)
    scene.at_broker(2)
    scene.heartbeats(9_200, 19_000, "a")
    scene.heartbeats(19_300, 29_000, "a", error=27)
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {"b": (19_200, "session_expired", "provisional")}


def test_a_heartbeat_answered_by_a_coordinator_that_loads_promises_nothing() -> None:
    scene = moved(9_000)
    scene.heartbeat(9_200, "a")
    scene.heartbeat(9_300, "b")
    scene.heartbeat(12_200, "a")
    scene.tick(14_000)
    assert {row["certainty"] for row in health(scene.known(), "a") if row["at_ms"] > 10_000} == {"provisional"}


def test_any_other_answer_shows_that_it_has_loaded() -> None:
    scene = moved(9_000)
    scene.heartbeat(9_200, "a")
    scene.commit(9_400, "b", 5)
    scene.heartbeat(12_200, "a")
    scene.heartbeat(12_300, "b")
    scene.commit(13_950, "b", 6)
    scene.tick(14_000)
    assert health(scene.known(), "a")[-1]["certainty"] == "exact"


def test_what_is_refused_while_it_loads_puts_the_load_after_it() -> None:
    """The heartbeat of 9,300 was answered 0 and renewed nothing: a JoinGroup was told at 9,800 that it still loads."""
    scene = moved(9_000)
    scene.heartbeat(9_300, "b")
    scene._event(Kind.JOIN, 9_800, client_id="n", error_code=LOADING, detail={})
    scene.heartbeats(10_000, 19_900, "a")
    scene.heartbeats(20_000, 25_000, "a", error=27)
    scene.tick(26_000)
    (at, cause, certainty) = scene.known().ended()["b"]
    assert (cause, certainty) == ("session_expired", "provisional")
    assert at >= 19_800


def test_a_shard_moves_with_all_its_groups() -> None:
    """Only g asks the old coordinator; the group beside it in the shard has moved as well."""
    beside = next(name for number in range(1_000) if shard_of(name := f"h{number}") == shard_of("g"))
    scene = Scene(beside)
    scene.joined(3_000, 1, {"x": 0.0}, first=("x",))
    scene.synced(3_010, "x")
    scene.heartbeat(6_000, "x")
    scene.group = "g"
    scene.joined(6_100, 1, {"a": 6_000.0}, first=("a",))
    scene.synced(6_110, "a")
    scene.heartbeat(9_000, "a", error=NOT_COORDINATOR)
    for at in range(9_500, 24_000, 500):
        scene.fetch(at, "somebody")
    scene.tick(24_000)
    assert scene.known().ended()["x"] == (19_000, "session_expired", "provisional")


def restarted(number: int) -> Scene:
    """The broker's log is silent from 6,000 to 14,000; then a comes by the connection of that number, before by 17."""
    scene = Scene()
    scene.connects(17)
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"))
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    scene.connects(number)
    scene.heartbeats(14_000, 23_500, "a", every=1_000)
    scene.heartbeats(24_500, 27_000, "a", every=1_000, error=27)
    scene.tick(27_000, last_line=26_500, silences=[[6_000, 14_000]])
    return scene


def test_a_broker_that_counts_its_connections_anew_was_restarted() -> None:
    """b's session would have ended at 16,000; it runs from the load, at 14,000 at the earliest."""
    assert restarted(3).known().ended() == {"b": (24_000, "session_expired", "provisional")}


def test_a_broker_that_goes_on_counting_was_only_silent() -> None:
    """Then a's answers of a Stable group, long after b's deadline, say that b is a member still."""
    for number in (17, 18):
        assert restarted(number).known().ended() == {}
