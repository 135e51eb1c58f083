"""A seat that was taken, and that the coordinator gave back because it could not store who took it.

Seen on three brokers 4.4.0, in the seconds after the one that leads the offsets partition had stood still: the write of
a JoinGroup with a static id lasted longer than `offsets.commit.timeout.ms`, and the member before failed 8 s later.
"""

from __future__ import annotations

import pytest

from kardia.events import Kind
from tests.support.scene import START, Scene
from tests.support.told import Told

A, B, TAKER = (f"{name}-00000000-0000-4000-8000-00000000000{number}" for number, name in enumerate("abc", 1))
FENCED = 82


def two_static() -> Scene:
    scene = Scene()
    scene.joined(4_000, 1, {"a": 1_000, "b": 1_500}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"})
    scene.synced(4_100, "a", "b")
    scene.heartbeats(7_000, 11_000, "a", "b")
    scene.heartbeat(12_000, "b", error=FENCED)  # another process has come to its seat
    return scene


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "shown by its end alone"])
def test_who_has_its_seat_again_is_a_member_until_its_session_ends(is_told: bool) -> None:
    scene = two_static()
    scene.heartbeats(13_000, 36_000, "a")
    if is_told:
        scene.gives_back(17_000, "b2", "b")
    scene.failed(27_000, "b")
    scene.tick(36_000)
    known = scene.known()
    assert known.ended()["b"][0] == 27_000
    assert known.ended()["b"][1:] == ("session_expired", "exact")
    assert known.alive() == {"a"}


def test_without_a_word_of_it_the_seat_stays_taken_and_that_is_not_sure() -> None:
    scene = two_static()
    scene.heartbeats(13_000, 36_000, "a")
    scene.tick(36_000)
    assert scene.known().ended()["b"][1:] == ("static_replaced", "provisional")


def test_by_sentences_alone_it_is_a_member_again() -> None:
    told = Told()
    told.joins(1_000, 0)
    told.becomes(4_000, 1, 2)
    told.record(4_012, 1, A, B)
    told.say(
        9_000,
        "Static member with groupInstanceId=i-b and unknown member id joins group g in Stable state. Replacing "
        f"previously mapped member {B} with this groupInstanceId.",
    )
    told.say(
        14_000,
        f"Failed to persist metadata for group g static member {TAKER} with group instance id i-b due to "
        f"CoordinatorWriteEvent(name=classic-group-join) timed out after 5000ms. Reverting to old member id {B}.",
    )
    assert told.ends() == {}
    told.expires(22_000, B, 1)
    assert told.ends() == {B: (22_000, "session_expired", "exact")}


SEATS = {"a": "i-a", "b": "i-b", "c": "i-c"}


def stalled(*, told: bool = False, slow: list[list[float]] | None = None) -> Scene:
    """a, b and c have seats. From 11,000 on nothing can be stored for 5 s: a2 takes the seat of a at 16,500, half a
    second before the session of a is over, and c2 that of c; they are answered at 22,000."""
    scene = Scene()
    scene.joined(4_000, 7, {"a": 1_000, "b": 1_500, "c": 1_600}, instances=SEATS, session_ms=8_000)
    scene.synced(4_100, "a", "b", "c")
    scene.group_record(4_090, 7, {"a": 8_000, "b": 8_000, "c": 8_000})
    scene.heartbeats(6_000, 9_100, "a", "b", "c", every=3_000)
    scene.heartbeat(10_000, "b")
    if told:
        scene.takes_seat(16_500, "a")
    scene.tick(16_700, slow=slow)
    if told:
        scene.takes_seat(16_800, "c")
    scene.tick(19_500)
    scene.group_record(21_500, 7, {"a2": 8_000, "b": 8_000, "c2": 8_000})
    detail = {"session_timeout_ms": 8_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", "members": []}
    for member, since, leader in (("c2", 16_800, "a"), ("a2", 16_500, "a")):
        answer = detail | {"assigned_member_id": member, "leader": leader}
        instance = f"i-{member[0]}"
        scene._event(Kind.JOIN, 22_000, since=since, group_instance_id=instance, generation_id=7, detail=answer)
    scene.heartbeats(22_100, 30_000, "a2", "b", "c2", every=2_000)
    scene.tick(30_000)
    return scene


@pytest.mark.parametrize("told", [True, False], ids=["with server.log", "by requests and records"])
def test_nobody_was_evicted_while_nothing_could_be_stored(told: bool) -> None:
    known = stalled(told=told).known()
    assert known.alive() == {"a2", "b", "c2"}
    ended = known.ended()
    assert {member: entry[1] for member, entry in ended.items()} == {"a": "static_replaced", "c": "static_replaced"}
    assert [row for row in known.rebalances() if row["generation_after"] != 7 and not row["withdrawn"]] == []
    assert {row["members_after"] for row in known.rebalances() if not row["withdrawn"]} == {3}
    outcomes = {outcome for _, kind, outcome in known.predictions() if kind == "session"}
    assert "came_true" not in outcomes


def test_a_seat_that_is_taken_before_its_session_is_over_foretells_no_eviction() -> None:
    """Live, before any answer: what server.log says of the seat is enough."""
    scene = stalled(told=True)
    scene.events = [event for event in scene.events if event.decided_at_ms <= START + 19_500]
    assert not {"a", "c"} & set(scene.known().ended())


def test_where_answers_wait_for_seconds_silence_is_none_yet() -> None:
    """An answer took 5 s that had been handled at once: so long a heartbeat may be hidden. Nothing else is needed to
    know better than to evict, before any other line."""
    scene = stalled(slow=[[15_000, 5_002, 0, 0, 5_001]])
    scene.events = [event for event in scene.events if event.decided_at_ms <= START + 19_500]
    assert scene.known().ended() == {}


def test_who_is_silent_for_longer_than_that_is_evicted_all_the_same() -> None:
    scene = stalled(slow=[[15_000, 5_002, 0, 0, 5_001]])
    scene.events = [event for event in scene.events if event.decided_at_ms <= START + 19_500]
    scene.tick(25_000)
    assert {member: entry[:2] for member, entry in scene.known().ended().items()} == {
        "a": (17_000, "session_expired"),
        "b": (18_000, "session_expired"),
        "c": (17_000, "session_expired"),
    }


def test_who_took_a_seat_as_the_session_of_another_was_over_need_not_have_begun_the_rebalance() -> None:
    """b2 takes the seat of b at 10,990, and its record takes 10 ms to be stored; the session of a is over before that,
    and ends a join phase in which nobody is left to be waited for."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), instances={"a": "i-a", "b": "i-b"})
    scene.synced(1_010, "a", "b")
    scene.heartbeats(4_000, 10_500, "b", every=1_500)
    scene.joined(11_010, 2, {"b2": 10_990.0}, first=("b2",), instances={"b2": "i-b"})
    scene.synced(11_020, "b2")
    scene.tick(15_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("static_replaced", "provisional")


def restarted(*, told_at: float | None = None) -> Scene:
    """The broker falls after 8,000 and is back at 20,000; a2 takes the seat of a at 21,000, who was not heard since.
    `told_at`: when the sentence about it is read, if there is one."""
    scene = Scene()
    scene.connects(17)
    scene.joined(4_000, 7, {"a": 1_000, "b": 1_500, "c": 1_600}, instances=SEATS)
    scene.synced(4_100, "a", "b", "c")
    scene.heartbeats(6_000, 8_001, "a", "b", "c", every=2_000)
    scene.connects(3)
    scene.heartbeats(20_000, 21_000, "b", "c", every=500)
    if told_at is not None and told_at <= 21_000:
        scene.takes_seat(21_000, "a")
    scene.replaced(21_002, "a2", "i-a")
    scene.tick(22_000, last_line=21_002, silences=[[8_000, 20_000]])
    if told_at is not None and told_at > 21_000:
        scene.takes_seat(21_000, "a")
        scene.events[-1] = scene.events[-1]._replace(logged_at_ms=START + told_at)
    scene.heartbeats(22_100, 30_000, "a2", "b", "c", every=2_000)
    scene.tick(30_000)
    return scene


def test_somebody_may_have_had_a_seat_meanwhile_whose_holder_was_not_heard_since_its_broker_is_back() -> None:
    known = restarted().known()
    assert known.ended()["a"] == (21_002, "static_replaced", "provisional")


@pytest.mark.parametrize("told_at", [21_000, 22_500], ids=["read before the answer", "read after it"])
def test_whom_the_sentence_names_had_the_seat_until_then(told_at: float) -> None:
    known = restarted(told_at=told_at).known_step_by_step()
    at, cause, certainty = known.ended()["a"]
    assert (cause, certainty) == ("static_replaced", "exact")
    assert abs(at - 21_000) <= 2
    assert known.alive() == {"a2", "b", "c"}


def test_a_sentence_about_a_seat_that_was_given_back_says_nothing_of_the_next_one_who_takes_it() -> None:
    scene = restarted(told_at=21_000)
    place = next(place for place, event in enumerate(scene.events) if event.decided_at_ms == START + 21_002)
    answer = scene.events.pop(place)
    scene.gives_back(21_400, "a2", "a")
    back = scene.events.pop()
    at = START + 21_700
    later = answer._replace(logged_at_ms=at, arrived_at_ms=at, handled_at_ms=at, decided_at_ms=at)
    scene.events[place:place] = [back, later]
    assert scene.known().ended()["a"][1:] == ("static_replaced", "provisional")
