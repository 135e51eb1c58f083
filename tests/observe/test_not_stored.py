"""Seconds in which nothing can be stored, because a replica in sync stands still: what was asked for then has taken
effect, or is undone, and the broker goes on. Found by the simulated fleet, whose coordinators do what Kafka's own
classes do (`tests/truth/test_stores.py`); instants in ms from the start of a scene.
"""

from __future__ import annotations

import pytest

from kardia.events import Kind
from tests.observe.test_scenes import stable
from tests.support.scene import START, Scene
from tests.support.stories import named

NOT_AVAILABLE, REBALANCING, TIMED_OUT = 15, 27, 7


def test_what_waits_on_the_connection_before_is_no_sign_that_the_broker_began_to_count_anew() -> None:
    """a was told 15, looked for its coordinator again and came by connection 9; a heartbeat that had waited behind the
    first one on connection 7 is answered after that."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 9_500, "a", "b")
    old, scene.connection = scene.connection, f"{scene.connection[:-1]}7"
    joined = scene.connection
    scene.heartbeat(12_000, "a")
    new = f"{old[:-1]}9"
    scene.heartbeat(20_000, "a", since=15_000, error=NOT_AVAILABLE, connection=joined)
    scene.heartbeat(20_500, "a", connection=new)
    scene.heartbeat(20_501, "a", connection=joined)
    scene.heartbeat(20_502, "b", since=18_000, connection=old)
    scene.heartbeats(22_000, 31_000, "a", "b")
    scene.tick(31_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert [row for row in named("transitions", known.rows["transitions"]) if "loaded" in row["cause"]] == []
    assert known.observer.restarted_at == {}
    assert {state for _, state in known.states()} == {"PreparingRebalance", "CompletingRebalance", "Stable"}


def test_a_heartbeat_that_was_answered_late_has_not_ended_a_rebalance_that_began_since_it_was_handled() -> None:
    """b left at 10,000. a is answered 0 at 13,000, which was right when it was handled."""
    scene = stable("a", "b", "c")
    scene.heartbeats(6_000, 9_500, "a", "b", "c", every=3_000)
    scene.leave(10_000, "b")
    scene.heartbeat(10_200, "c", error=REBALANCING)
    scene.heartbeat(13_000, "a", since=9_900)
    scene.joined(15_000, 2, {"a": 14_000.0, "c": 10_300.0})
    scene.synced(15_010, "a", "c")
    scene.tick(18_000)
    known = scene.known()
    assert [at for at, state in known.states() if state == "Stable"] == [3_010, 15_010]
    row = known.rebalances()[-1]
    assert (row["started_at_ms"] - START, row["trigger"], row["trigger_member_id"]) == (10_000, "member_left", "b")


def not_stored(coordinator: str, *, followers_first: bool) -> Scene:
    """a leads generation 2; its SyncGroup of 10,300 could not be stored by 15,300."""
    scene = stable("a", "b", coordinator=coordinator)
    scene.heartbeats(6_000, 9_500, "a", "b", every=1_500)
    scene.member_id_required(10_000, "n")
    scene.joined(10_200, 2, {"n": 10_001.0, "b": 10_150.0, "a": 10_200.0}, leader="a")
    error = NOT_AVAILABLE if coordinator == "java" else REBALANCING
    leads = ("a", {"assignments": [["a", [["t", [0]]]]]})
    waits = [leads, ("b", {"assignments": []}), ("n", {"assignments": []})]
    for member, detail in waits[::-1] if followers_first else waits:
        scene._event(
            Kind.SYNC, 15_300, since=10_300, member_id=member, generation_id=2, error_code=error, detail=detail
        )
    scene.joined(15_600, 3, {"a": 15_500.0, "b": 15_550.0, "n": 15_600.0}, leader="a")
    scene.synced(15_700, "a", "b", "n")
    scene.tick(18_000)
    return scene


@pytest.mark.parametrize("followers_first", [False, True])
@pytest.mark.parametrize("coordinator", ["java", "scala"])
def test_a_rebalance_begins_by_assignments_that_could_not_be_stored(coordinator: str, followers_first: bool) -> None:
    known = not_stored(coordinator, followers_first=followers_first).known()
    second = known.rebalances()[-1]
    assert (second["started_at_ms"] - START, second["generation_before"]) == (15_300, 2)
    assert (second["trigger"], second["trigger_member_id"], second["certainty"]) == (
        "assignment_not_stored",
        "a",
        "exact",
    )
    assert known.alive() == {"a", "b", "n"}


def test_who_is_sent_back_sooner_was_not_kept_by_what_could_not_be_stored() -> None:
    """Scala's coordinator answers a leader that waits for its record the same when somebody joins meanwhile."""
    scene = stable("a", coordinator="scala")
    scene.heartbeats(6_000, 9_500, "a", every=1_500)
    scene.joined(10_200, 2, {"a": 10_200.0})
    detail = {"assignments": [["a", [["t", [0]]]]]}
    scene._event(Kind.SYNC, 12_300, since=10_300, member_id="a", generation_id=2, error_code=REBALANCING, detail=detail)
    scene.joined(12_600, 3, {"n": 12_300.0, "a": 12_600.0}, leader="a", first=("n",))
    scene.synced(12_700, "a", "n")
    scene.tick(15_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "n")


def test_who_left_has_left_though_it_is_told_that_it_could_not_be_stored() -> None:
    scene = stable("a", "b", "c")
    scene.heartbeats(6_000, 10_000, "a", "b", "c", every=1_500)
    detail = {"members": [["c", "", "the consumer is being closed", NOT_AVAILABLE]]}
    scene._event(Kind.LEAVE, 15_100, since=10_100, member_id="c", error_code=NOT_AVAILABLE, detail=detail)
    for member in "ab":
        scene.heartbeat(15_200, member, since=10_200, error=NOT_AVAILABLE)
        scene.heartbeat(15_210, member, error=REBALANCING)
    scene.joined(15_400, 2, {"a": 15_300.0, "b": 15_400.0})
    scene.synced(15_450, "a", "b")
    scene.tick(18_000)
    known = scene.known()
    assert known.ended() == {"c": (10_100, "left", "exact")}
    row = known.rebalances()[-1]
    assert (row["started_at_ms"] - START, row["trigger"], row["trigger_member_id"]) == (10_100, "member_left", "c")


def test_a_leave_that_is_read_when_the_next_generation_is_there_began_what_led_to_it() -> None:
    """Its answer waited, those to JoinGroups did not: the others have joined without it before its line is written."""
    scene = stable("a", "b", "c")
    scene.heartbeats(6_000, 10_000, "a", "b", "c", every=1_500)
    scene.joined(10_600, 2, {"a": 10_400.0, "b": 10_600.0})
    detail = {"members": [["c", "", "the consumer is being closed", 0]]}
    scene._event(Kind.LEAVE, 12_000, since=10_100, member_id="c", detail=detail)
    scene.synced(12_001, "a", "b", since=10_700)
    scene.heartbeats(12_500, 17_000, "a", "b", every=1_500)
    scene.tick(18_000)
    known = scene.known()
    assert known.ended() == {"c": (10_100, "left", "exact")}
    assert known.alive() == {"a", "b"}
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2]


@pytest.mark.parametrize(("coordinator", "error"), [("java", NOT_AVAILABLE), ("scala", REBALANCING)])
def test_a_seat_that_could_not_be_stored_is_that_of_the_member_before(coordinator: str, error: int) -> None:
    """A twin came for the seat of b at 10,100. b, which lives, was told 82 meanwhile, and is a member again since
    15,100."""
    scene = Scene(coordinator=coordinator)
    scene.joined(4_000, 1, {"a": 1_000, "b": 1_500}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"})
    scene.synced(4_100, "a", "b")
    scene.heartbeats(5_000, 10_000, "a", "b", every=1_500)
    scene.heartbeat(12_000, "b", error=82)
    detail = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", "members": []}
    scene._event(
        Kind.JOIN, 15_100, since=10_100, client_id="b", group_instance_id="i-b", error_code=error, detail=detail
    )
    scene.heartbeats(15_500, 21_000, "a", "b", every=1_500)
    scene.tick(21_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert known.ended() == {}


@pytest.mark.parametrize(("coordinator", "error"), [("java", NOT_AVAILABLE), ("scala", REBALANCING)])
def test_whose_seat_was_taken_when_its_session_would_have_ended_has_it_again(coordinator: str, error: int) -> None:
    """A twin came for the seat of b at 12,000, and had it until 17,000. b, heard last at 4,600, was said to be evicted
    at 14,600; the twin comes once more at 18,000, in a rebalance."""
    scene = Scene(coordinator=coordinator)
    scene.joined(4_000, 1, {"a": 1_000, "b": 1_500}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"})
    scene.synced(4_100, "a", "b")
    scene.heartbeats(4_600, 4_601, "a", "b")
    scene.heartbeats(5_000, 13_000, "a", every=1_500)
    detail = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", "members": []}
    scene._event(
        Kind.JOIN, 17_000, since=12_000, client_id="b", group_instance_id="i-b", error_code=error, detail=detail
    )
    seats = {"b2": "i-b"}
    scene.joined(19_000, 2, {"n": 13_500, "b2": 18_000, "a": 19_000}, first=("n", "b2"), instances=seats, leader="a")
    scene.synced(19_010, "a", "b2", "n")
    scene.tick(22_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (18_000, "static_replaced")


def test_a_seat_goes_back_though_its_taker_was_let_in_by_the_end_of_a_join_phase() -> None:
    """b2 takes the seat of b at 10,100, and its record waits. The leader joins again meanwhile, so that both are in the
    next generation; b2 waits for its assignment until 15,100, when b has the seat again. Nobody hears of b since."""
    scene = Scene()
    quick = {"a": 8_000, "b": 8_000, "b2": 8_000}  # no SyncGroup is waited for of b
    scene.joined(
        4_000, 1, {"a": 1_000, "b": 1_500}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"}, rebalance_ms=quick
    )
    scene.synced(4_100, "a", "b")
    scene.heartbeats(5_000, 10_000, "a", "b", every=1_500)
    seats = {"b2": "i-b", "a": "i-a"}
    scene.joined(12_900, 2, {"b2": 10_100, "a": 12_900}, first=("b2",), instances=seats, leader="a", rebalance_ms=quick)
    scene._event(
        Kind.SYNC, 15_100, since=12_950, member_id="b2", generation_id=2, group_instance_id="i-b", error_code=82
    )
    scene.synced(15_200, "a", since=12_960)
    scene.heartbeats(16_000, 25_000, "a", every=1_500)
    scene.heartbeat(26_500, "a", error=REBALANCING)
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["b2"] == (15_100, "static_replaced", "provisional")
    assert known.ended()["b"][:2] == (25_100, "session_expired")
    assert known.ended()["b"][2] != "exact"
    assert known.states()[-2:] == [(15_200, "Stable"), (25_100, "PreparingRebalance")]


@pytest.mark.parametrize("error", [0, REBALANCING])
def test_a_leader_whose_assignment_waits_to_be_stored_is_not_evicted_though_it_is_alone(error: int) -> None:
    """Its session would have been over at 11,000: nobody who waits in SyncGroup is evicted. Stored in time or not."""
    scene = Scene(coordinator="scala")
    scene.joined(1_000, 1, {"a": 900})
    detail = {"assignments": [["a", [["t", [0]]]]]}
    told = 10_900 + (5_000 if error else 4_000)
    scene.tick(14_000)
    scene._event(Kind.SYNC, told, since=10_900, member_id="a", generation_id=1, error_code=error, detail=detail)
    scene.joined(told + 10, 2, {"a": told + 5}) if error else scene.heartbeat(told + 10, "a")
    scene.tick(17_000)
    known = scene.known_step_by_step()
    assert known.alive() == {"a"}
    assert {row["ended_at_ms"] for row in named("members", known.rows["members"])} == {None}, "not even for a moment"


def test_who_is_alone_and_has_not_synced_is_gone_when_nothing_can_wait_any_more() -> None:
    scene = Scene(coordinator="scala")
    scene.joined(1_000, 1, {"a": 900})
    scene.tick(15_900)
    assert scene.known_step_by_step().ended() == {}
    scene.tick(18_000)
    assert scene.known().ended()["a"] == (11_000, "session_expired", "inferred")


def test_who_has_its_seat_again_has_no_assignment_by_that() -> None:
    """As before; a, whose assignment is waited for, is silent as well, and goes first, at 20,900."""
    scene = Scene()
    scene.joined(4_000, 1, {"a": 1_000, "b": 1_500}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"})
    scene.synced(4_100, "a", "b")
    scene.heartbeats(5_000, 10_000, "a", "b", every=1_500)
    seats = {"b2": "i-b", "a": "i-a"}
    scene.joined(12_900, 2, {"b2": 10_100, "a": 12_900}, first=("b2",), instances=seats, leader="a", session_ms=8_000)
    scene._event(
        Kind.SYNC, 15_100, since=12_950, member_id="b2", generation_id=2, group_instance_id="i-b", error_code=82
    )
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["a"][:2] == (20_900, "session_expired")
    assert (12_900, "CompletingRebalance") in known.states()
    assert [at for at, state in known.states() if state == "Stable"] == [4_100]


def test_a_commit_that_could_not_be_stored_in_time_has_renewed_the_session() -> None:
    scene = stable("a", "b", coordinator="scala")
    scene.heartbeats(6_000, 10_000, "a", "b", every=3_000)
    scene.commit(15_500, "b", 1, error=TIMED_OUT, since=10_500)
    scene.heartbeats(11_000, 20_400, "a", every=3_000)
    scene.heartbeat(21_000, "a", error=REBALANCING)
    scene.tick(24_000)
    assert scene.known().ended()["b"][:2] == (20_500, "session_expired")
