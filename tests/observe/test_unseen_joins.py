"""Who may wait in a JoinGroup that is not answered yet, and what its answer, or the lack of one, proves."""

from __future__ import annotations

import pytest

from kardia.events import Kind
from kardia.tables import Row
from tests.observe.test_scenes import stable
from tests.support.scene import START, Known, Scene
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


ASKS_AND_RENEWS_NOTHING = {
    "a late SyncGroup, which renews nothing in a Stable group from 4.0 on": ("sync", 0),
    "a commit that is refused": ("commit", 27),
    "a commit of a transaction": ("transaction", 0),
    "a heartbeat of another generation": ("heartbeat", 22),
}


@pytest.mark.parametrize("asked", ASKS_AND_RENEWS_NOTHING.values(), ids=ASKS_AND_RENEWS_NOTHING)
def test_who_asks_just_before_its_deadline_may_join_unseen_right_after_though_nothing_was_renewed(
    asked: tuple[str, int],
) -> None:
    """b wakes at 15,200, joins at 15,700, before its deadline at 16,000, and a hears of that at 18,000 only."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 13_000, "a")
    kind, error = asked
    if kind == "sync":
        scene.synced(15_200, "b")
    elif kind == "commit":
        scene.commit(15_200, "b", 10, error=error)
    elif kind == "transaction":
        scene._event(Kind.TXN_COMMIT, 15_200, member_id="b", generation_id=1, detail={"offsets": []})
    else:
        scene.heartbeat(15_200, "b", error=error, generation=0)
    scene.heartbeat(15_300, "a")
    scene.tick(17_900)
    assert scene.known().ended() == {}
    scene.heartbeat(18_000, "a", error=27)
    scene.joined(18_020, 2, {"b": 15_700, "a": 18_010})
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {}
    assert certainties(known, "members", member_id="b", end_cause="session_expired") == []


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


FENCED = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}


def fenced(scene: Scene, at: float, member: str, since: float) -> None:
    """A process of the static seat i, which waited since then, is told 82: another one has come."""
    detail = FENCED | {"assigned_member_id": member, "members": []}
    scene._event(Kind.JOIN, at, since=since, client_id="s", group_instance_id="i", error_code=82, detail=detail)


def seated() -> Scene:
    """Stable, of a and s1; s1 has the static seat i. Both are heard up to 9,000."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "s1": 0.0}, first=("a", "s1"), instances={"s1": "i"})
    scene.synced(3_010, "a", "s1")
    scene.heartbeats(6_000, 9_500, "a", "s1")
    return scene


@pytest.mark.parametrize("told_at", [15_000.3, 15_000.9], ids=["told first", "told last"])
def test_of_two_processes_that_came_for_a_seat_the_one_that_is_let_in_replaced_the_other(told_at: float) -> None:
    """n joins, then s2 takes the seat of s1 and waits, s3 that of s2, which is told 82 in the ms in which a joins as
    the last and all are let in: the order of the answers in the log says nothing."""
    scene = seated()
    scene.heartbeats(12_000, 14_000, "a", error=27)
    scene.joined(
        15_000.6, 2, {"n": 9_700, "s3": 15_000.2, "a": 15_000.4}, first=("n", "s3"), leader="a", instances={"s3": "i"}
    )
    fenced(scene, told_at, "s2", since=10_000)
    scene.tick(17_000)
    known = scene.known()
    assert known.ended()["s1"] == (10_000, "static_replaced", "exact")
    assert known.ended()["s2"][1:] == ("static_replaced", "exact")
    assert known.alive() == {"a", "n", "s3"}
    assert certainties(known, "members", member_id="s3", end_cause="static_replaced") == []
    assert known.rebalances()[-1]["trigger_member_id"] == "n"


@pytest.mark.parametrize("told_at", [25_000.3, 25_000.9], ids=["told first", "told last"])
def test_a_seat_whose_session_was_over_when_the_first_of_two_processes_came_was_free(told_at: float) -> None:
    """The session of s1 ran to 19,000 and began the rebalance: who came at 22,000 replaced nobody."""
    scene = seated()
    scene.heartbeats(12_000, 18_900, "a")
    scene.heartbeats(21_000, 24_500, "a", error=27)
    scene.joined(25_000.6, 2, {"s3": 25_000.2, "a": 25_000.4}, first=("s3",), leader="a", instances={"s3": "i"})
    fenced(scene, told_at, "s2", since=22_000)
    scene.tick(27_000)
    known = scene.known()
    assert known.ended()["s1"][:2] == (19_000, "session_expired")
    assert known.ended()["s2"][1:] == ("static_replaced", "exact")
    assert known.alive() == {"a", "s3"}
    assert certainties(known, "members", member_id="s3", end_cause="static_replaced") == []
    assert known.rebalances()[-1]["trigger"] == "session_expired"


def test_a_silent_leader_may_wait_in_a_join_phase_that_nobody_else_is_heard_in() -> None:
    """Nobody has sent SyncGroup. The leader a subscribes anew at 2,000: its JoinGroup begins a rebalance and waits for
    b, which is dead and whose session is longer. No answer shows that; the broker answers others all the while, and may
    die before the join phase is over."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0.0, "b": 1.0}, session_ms={"a": 10_000, "b": 30_000})
    for at in range(2_000, 31_001, 1_000):
        scene.fetch(at - 10, "somebody")
        scene.tick(at)
    assert scene.known().ended() == {}
    scene.joined(31_000, 2, {"a": 2_000.0})
    scene.synced(31_010, "a")
    scene.tick(34_000)
    known = scene.known()
    assert list(known.ended()) == ["b"]
    assert known.divergences() == 0


def test_a_leader_that_is_silent_while_its_generation_waits_for_it_is_gone() -> None:
    """b has not sent SyncGroup either, and is told by each heartbeat that the generation stands: a was to be heard."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0.0, "b": 1.0})
    scene.heartbeats(2_000, 11_000, "b", every=1_000)
    for at in (11_100, 12_400):
        scene.fetch(at - 10, "somebody")
        scene.tick(at)
    assert scene.known().ended() == {"a": (11_000, "session_expired", "inferred")}


@pytest.mark.parametrize("synced", [False, True])
def test_who_goes_because_it_has_not_sent_sync_group_is_not_foretold_to_go_by_its_session(synced: bool) -> None:
    """a has 15 s for its SyncGroup and a session of 30 s. If it sends one after 12 s and then falls silent, its session
    is what ends, and is foretold at half of it: 12 s of silence look like its habit."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0}, session_ms=30_000, rebalance_ms=15_000)
    for at in range(4_000, 31_001, 1_000):
        if synced and at == 15_000:
            scene.synced(at, "a")
        scene.fetch(at - 10, "somebody")
        scene.tick(at)
    known = scene.known()
    rows = named("predictions", known.rows["predictions"])
    if synced:
        first = min(row["predicted_at_ms"] for row in rows)
        assert first - START == 30_000
    else:
        assert rows == []
        scene.fetch(39_990, "somebody")
        scene.tick(40_000)
        assert scene.known().ended() == {"a": (18_000, "sync_timeout", "inferred")}


def test_whose_seat_was_taken_while_it_waited_in_syncgroup_was_not_evicted_before() -> None:
    """b waits for the leader from 3,050 on, longer than its session of 10 s, and is told 82 when its seat is taken."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 2_900, "b": 2_950}, instances={"b": "i-b"}, session_ms={"a": 30_000, "b": 10_000})
    scene._event(Kind.SYNC, 15_000, since=3_050, member_id="b", generation_id=1, error_code=82)
    scene.joined(33_000, 2, {"b2": 15_000}, first=("b2",), instances={"b2": "i-b"}, session_ms=10_000)
    scene.synced(33_010, "b2")
    scene.tick(36_000)
    assert scene.known().ended()["b"][:2] == (15_000, "static_replaced")


def test_an_answer_without_a_leader_ends_no_join_phase_of_an_empty_group_either() -> None:
    """A heartbeat that is not answered yet has made a consumer group of it, and that one answers so."""
    scene = stable("a")
    scene.leave(6_000, "a")
    scene.empty_record(6_001, 2)
    scene.joined(9_000, 3, {"b": 8_000}, first=("b",))
    event = scene.events[-1]
    scene.events[-1] = event._replace(detail={**(event.detail or {}), "leader": "", "members": []})
    scene.tick(12_000)
    known = scene.known()
    assert "b" in known.alive()
    assert [(at, to) for at, to in known.states() if at >= 7_000 and to == "CompletingRebalance"] == []
