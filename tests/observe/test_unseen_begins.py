"""Begins of rebalances that no line shows, and what looks like one: provisional, or within bounds. Each led to a wrong
answer in a run of the simulated fleet; instants in ms from the start of a scene."""

from __future__ import annotations

from kardia.events import Kind
from tests.observe.test_scenes import stable
from tests.observe.test_what_came_first import life
from tests.support.scene import START, Scene
from tests.support.stories import named


def test_a_late_answer_to_a_sync_that_found_the_rebalance_under_way_does_not_date_an_end() -> None:
    """n began the rebalance, unseen, at 9,001; the session of b, which never synced, was over at 13,000. The leader's
    SyncGroup of 14,600 was answered some ms later, and not because anything began then."""
    scene = Scene()
    sessions = {"a": 30_000, "b": 10_000}
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=sessions, rebalance_ms=20_000)
    scene.member_id_required(9_000, "n", session_ms=30_000)
    scene._event(Kind.SYNC, 14_606, since=14_600, member_id="a", generation_id=1, error_code=27)
    scene.joined(15_000, 2, {"n": 9_001.0, "a": 14_990.0}, leader="a", session_ms=30_000, rebalance_ms=20_000)
    scene.synced(15_010, "a", "n")
    scene.tick(17_000)
    row = life(scene.known(), "b")
    assert row["end_cause"] == "session_expired"
    assert row["ended_at_ms"] - START <= 13_000 <= row["ended_at_ms"] - START + row["at_bound_ms"]


def test_who_joins_by_another_connection_than_it_was_heard_on_may_have_joined_before() -> None:
    """a was last heard at 9,000; its JoinGroup by the connection that broke waits, and is never answered, because it
    asks again by the next one at 14,000. n joined at 10,500: which of the two began it no line tells."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 9_500, "a", "b", every=3_000)
    scene.member_id_required(10_500, "n")
    scene.heartbeat(11_000, "b", error=27)
    known_by = scene.connection
    scene.joined(15_000, 2, {"n": 10_501.0, "b": 11_010.0, "a": 14_000.0}, leader="n")
    joins = [at for at, event in enumerate(scene.events) if event.kind == Kind.JOIN and event.client_id == "a"]
    scene.events[joins[-1]] = scene.events[joins[-1]]._replace(connection=f"{known_by[:-1]}9")
    scene.synced(15_010, "n", "a", "b")
    scene.tick(18_000)
    known = scene.known()
    assert known.rebalances()[-1]["certainty"] == "provisional"


def test_who_began_it_by_another_connection_may_have_begun_it_by_the_one_that_broke() -> None:
    """b was last heard at 9,000. That it joined at 14,000 and not before by the connection that broke no line shows; a
    was answered as in a Stable group until 12,000."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 9_500, "a", "b", every=3_000)
    scene.heartbeat(12_000, "a")
    scene.heartbeat(14_500, "a", error=27)
    scene.joined(15_000, 2, {"b": 14_000.0, "a": 14_600.0}, leader="a")
    join = next(at for at, event in enumerate(scene.events) if event.kind == Kind.JOIN and event.generation_id == 2)
    scene.events[join] = scene.events[join]._replace(connection=f"{scene.connection[:-1]}9")
    scene.synced(15_010, "a", "b")
    scene.tick(18_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"]) == ("metadata_changed", "b")
    assert (row["started_at_ms"] - START, row["at_bound_ms"]) == (12_000, 2_000)


def test_who_never_synced_may_have_begun_a_rebalance_that_drops_everybody() -> None:
    """b has its generation and never sends SyncGroup; its time for that is over at 13,000. Nobody is told of the
    rebalance that begins then, as a and c fall silent before, and 10 s later they may be dropped."""
    scene = Scene()
    scene.joined(
        3_000, 1, {"a": 0.0, "b": 1.0, "c": 2.0}, session_ms=60_000, rebalance_ms=10_000, first=("a", "b", "c")
    )
    scene.synced(3_010, "a", "c")
    scene.heartbeats(6_000, 12_000, "a", "c", every=1_500)
    for at in range(13_000, 30_000, 1_000):
        scene.fetch(at - 10, "elsewhere")
        scene.tick(at)
    rows = named("health", scene.known_step_by_step().rows["health"])
    said = {row["at_ms"] - START: row["certainty"] for row in rows if row["member_id"] == "a"}
    assert {sure for at, sure in said.items() if 12_000 < at < 22_900} == {"exact"}
    assert {sure for at, sure in said.items() if at > 23_100} == {"provisional"}


def test_a_static_client_that_is_told_to_join_again_has_begun_it_maybe() -> None:
    """b never syncs, and its time for that is over at 15,200. s is told at 14,500 that it is no member, and waits in a
    JoinGroup since, of which nothing is written before it is answered."""
    scene = Scene()
    instances = {"s": "i-s"}
    scene.joined(1_000, 1, {"a": 0.0, "s": 0.0}, first=("a", "s"), instances=instances, rebalance_ms=9_000)
    scene.synced(1_010, "a", "s")
    scene.joined(6_200, 2, {"a": 6_150.0, "b": 6_000.0}, session_ms=30_000, rebalance_ms=9_000)
    scene.synced(6_300, "a")
    scene.heartbeats(9_000, 14_000, "a", every=1_000)
    scene.heartbeat(14_500, "s", error=25)
    scene.heartbeat(15_300, "a", error=27)
    scene.tick(16_000)
    assert "b" not in scene.known().ended()
