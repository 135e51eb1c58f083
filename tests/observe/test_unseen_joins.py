"""Who may wait in a JoinGroup that is not answered yet, and what its answer, or the lack of one, proves."""

from __future__ import annotations

from kardia.events import Kind
from kardia.tables import Row
from tests.observe.test_scenes import stable
from tests.support.scene import Known, Scene
from tests.support.stories import named


def certainties(known: Known, table: str, **wanted: object) -> list[str]:
    """Certainty of each row of a table that has these values, in the order in which they were said."""
    rows: list[Row] = known.rows[table]
    return [row["certainty"] for row in named(table, rows) if all(row[name] == one for name, one in wanted.items())]


def test_a_leader_that_rejoined_while_the_other_was_silent_was_never_evicted() -> None:
    """Nobody was heard after its JoinGroup, so nothing told that the group was preparing: no eviction is said."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.commit(7_500, "b", 10)  # accepted while the group prepares: shows nothing about its state
    scene.joined(17_500, 2, {"a": 6_010})
    scene.synced(17_510, "a")
    scene.heartbeat(20_500, "a")
    scene.tick(22_000)
    known = scene.known()
    assert set(known.ended()) == {"b"}
    assert certainties(known, "members", member_id="a", end_cause="session_expired") == []
    assert known.rebalances()[-1]["trigger_member_id"] == "a"


def test_a_member_whose_group_went_on_without_it_is_evicted_at_its_deadline() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.heartbeats(9_000, 30_000, "a")
    scene.tick(17_500)
    assert scene.known().ended()["b"][:2] == (16_000, "session_expired")


def test_all_fell_silent_at_once_and_no_answer_shows_that_nobody_waited() -> None:
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_500, "b")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["a"][:2] == (16_000, "session_expired")
    assert known.ended()["b"][:2] == (16_500, "session_expired")
    assert known.states()[-1] == (16_500, "Empty")


def test_the_last_one_leaves_and_a_join_that_waited_is_answered_so_the_group_was_never_empty() -> None:
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(9_000, "a", error=27)
    scene.leave(11_000, "a")
    scene.joined(11_000, 2, {"n": 7_000}, first=("n",))
    scene.synced(11_010, "n")
    scene.tick(13_000)
    known = scene.known()
    assert "Empty" not in [state for _, state in known.states()]
    assert [row["trigger"] for row in known.rebalances()] == ["member_joined", "member_joined"]


def test_a_new_member_that_leaves_in_the_instant_in_which_it_is_let_in_was_a_member_and_left() -> None:
    scene = Scene()
    scene.member_id_required(0.0, "a")
    scene.leave(2_999, "a")
    scene.joined(3_000, 1, {"a": 10.0})
    scene.tick(20_000)
    known = scene.known()
    assert known.ended()["a"][:2] == (3_000, "left")
    assert known.states()[-1] == (3_000, "Empty")


def test_so_it_was_if_it_waited_for_longer_than_its_id_was_held_for_it() -> None:
    """It asks at 4,010 and is let in at 24,000, when b is dropped; the time of its id was over at 14,000."""
    scene = stable("a", "b")
    scene.member_id_required(4_000.0, "n")
    scene.heartbeats(6_000, 23_000, "a", error=27)
    scene.joined(24_000, 2, {"n": 4_010.0, "a": 23_500.0})
    leave = len(scene.events)
    scene.leave(23_999.6, "n", reason="the consumer is being closed")
    scene.events.insert(leave - 2, scene.events.pop())
    scene.tick(26_000)
    known = scene.known()
    assert known.ended()["n"] == (24_000, "left", "exact")
    assert known.rebalances()[1]["trigger"] == "member_joined"
    assert known.rebalances()[1]["trigger_member_id"] == "n"


def test_whoever_is_removed_while_it_waits_was_a_member_also_if_its_own_answer_is_read_first() -> None:
    scene = stable("a", "b")
    scene.member_id_required(4_000.0, "n")
    scene.heartbeats(6_000, 12_000, "a", "b", error=27)
    detail = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "assigned_member_id": ""}
    scene._event(Kind.JOIN, 12_000.2, since=4_010, member_id="n", client_id="n", error_code=25, detail=detail)
    scene.leave(12_000.3, "n", reason="member was removed by an admin", client="admin")
    scene.tick(14_000)
    assert scene.known().ended()["n"] == (12_000, "removed_by_admin", "exact")


def test_a_timeout_is_foretold_when_a_heartbeat_is_missing_and_again_when_half_of_it_is_over() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 16_000, "a", "b")
    scene.heartbeats(18_000, 40_000, "a")
    scene.tick(26_000)
    rows = named("predictions", scene.known().rows["predictions"])
    made = [row for row in rows if row["outcome"] == "open" and row["kind"] == "session"]
    assert [row["certainty"] for row in made] == ["provisional", "inferred"]
    assert {row["deadline_at_ms"] - row["predicted_at_ms"] for row in made} == {6_200}


def test_a_heartbeat_before_half_of_the_timeout_takes_back_what_was_foretold() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 16_000, "a", "b")
    scene.heartbeats(18_000, 30_000, "a")
    scene.heartbeat(19_500, "b")
    scene.heartbeats(22_000, 30_000, "b")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {}
    assert known.predictions() == [("b", "session", "averted")]
    assert certainties(known, "predictions", outcome="open") == ["provisional"]


def test_who_is_named_by_the_line_of_its_failure_alone_waited_in_a_first_join() -> None:
    """The id of a static process that took the place of one that waited is nowhere else: its JoinGroup is answered to
    nobody. All who were ever let in are known, so it was none of them."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 30_000, "a", "b", error=27)
    scene.failed(25_000, "n")
    scene.tick(32_000)
    assert scene.known().ended()["n"] == (25_000, "join_timeout", "exact")


def test_where_a_gap_hides_who_is_a_member_it_is_not_known_what_it_waited_for() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 30_000, "a", "b")
    scene.gap(10_000, 11_000)
    scene.failed(25_000, "n")
    scene.tick(32_000)
    assert scene.known().ended()["n"] == (25_000, "session_expired", "provisional")
