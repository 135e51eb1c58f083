"""Groups that change their protocol: what came first, and since when, where two things fall together.

Instants in ms from the start of a scene. Members x and y speak the classic protocol, c the consumer protocol.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import Kind
from tests.observe.test_fleet_scenes import classic, upgraded
from tests.observe.test_migration_scenes import JOINED, sent_back
from tests.support.modern_scene import STABLE, ModernScene, since_start
from tests.support.stories import named


def test_who_never_sent_its_syncgroup_may_come_again_by_a_joingroup_that_waits() -> None:
    """y is silent since it was let in, while x is answered as in a Stable group. y joins again at 11,500, and that is
    answered at 13,600: by 13,100 nothing shows more than that somebody has begun a rebalance."""
    scene = ModernScene()
    scene.joined(1_000, 1, {"x": 900, "y": 950})
    scene.synced(1_100, "x", "y")
    scene.joined(2_000, 2, {"x": 1_900, "y": 1_950})
    scene.synced(2_100, "x")
    scene.heartbeats(4_000, 11_000, "x", every=2_000)
    scene.heartbeat(12_050, "x", error=27)
    scene.tick(13_100)
    scene.joined(13_600, 3, {"y": 11_500, "x": 12_060})
    scene.synced(13_610, "x", "y")
    scene.tick(15_000)
    known = scene.known()
    rows = named("members", known.rows["members"])
    assert {row["certainty"] for row in rows if row["end_cause"] == "session_expired"} <= {"provisional"}
    assert known.alive() == {"x", "y"}
    [last] = [row for row in known.rebalances() if row["generation_after"] == 3]
    assert (since_start(last["started_at_ms"]), last["trigger_member_id"]) == (11_500, "y")


@pytest.mark.parametrize(("apart_ms", "sure"), [(0, "provisional"), (1, "provisional"), (10, "exact")])
def test_of_two_joins_of_one_instant_that_a_conversion_sends_back_neither_is_sure(apart_ms: int, sure: str) -> None:
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(2_000, 3_000, "x", "y")
    for member, since in (("y", 3_000), ("x", 3_000 + apart_ms)):
        detail = JOINED | {"assigned_member_id": member, "protocols": [["range", "changed"]]}
        scene._event(Kind.JOIN, 3_999, since=since, member_id=member, error_code=27, detail=detail)
    upgraded(scene, 4_000, "x", "y")
    scene.tick(6_000)
    [row] = [row for row in scene.known().rebalances() if since_start(row["started_at_ms"]) == 3_000]
    assert row["certainty"] == sure
    assert row["generation_before"] == 1


def test_an_epoch_that_an_answer_shows_did_not_begin_before_the_group_was_converted() -> None:
    """c joins at 4,000 by an expression, without an epoch, and its next answer has the one that the resolution made."""
    scene = ModernScene(version="4.3.1")
    classic(scene)
    scene.heartbeats(2_000, 3_500, "x", "y")
    sent_back(scene, 4_009, "x", 3_600)
    scene.comes(4_010, "c", 1, since=4_000, topics=[], regex="t.*")
    scene.beat(4_060, "c", 1, 2, assigned=(0,), since=4_050)
    scene.tick(8_000)
    rows = [row for row in scene.known().rebalances() if row["generation_after"] == 2 and not row["withdrawn"]]
    assert {row["protocol"] for row in rows} == {"consumer"}
    assert all((since_start(row["started_at_ms"]) or 0) >= 4_000 for row in rows), rows


def test_who_joins_right_before_a_timer_converts_a_group_did_not_convert_it() -> None:
    """x, of the classic protocol, joins again at 12,990 and is answered at 13,040; c's session ends at 13,012."""
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(1_500, 3_000, "x", "y")
    upgraded(scene, 3_000, "x", "y")
    scene.heartbeats(3_500, 12_900, "x", "y")
    scene.record_current(12_990, "x", 2, STABLE, (0,))
    detail: dict[str, Any] = JOINED | {"assigned_member_id": "x"}
    scene.record_downgraded(13_012, 2, {"x": 10_000, "y": 10_000}, "c")
    scene._event(Kind.JOIN, 13_040, since=12_990, member_id="x", generation_id=2, detail=detail)
    scene.heartbeat(13_500, "y", error=27, generation=2)
    scene.tick(15_000)
    known = scene.known()
    assert known.ended()["c"][:2] == (13_012, "session_expired")
    [row] = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "downgraded"]
    assert (since_start(row["at_ms"]), row["at_bound_ms"]) == (13_012, 0)


def test_a_group_that_begins_anew_with_a_lower_epoch_had_no_members_any_more() -> None:
    """x, the last member, never sends its SyncGroup: it is taken out unseen, and the Empty group becomes another."""
    scene = ModernScene()
    scene.joined(1_000, 3, {"x": 900, "y": 950}, rebalance_ms=9_000, session_ms=30_000)
    scene.synced(1_100, "x", "y")
    scene.leave(2_000, "y")
    scene.joined(3_000, 4, {"x": 2_500}, rebalance_ms=9_000, session_ms=30_000)
    scene.comes(20_010, "c", 1, (0, 1), since=20_000)
    scene.beats(21_000, 26_000, 1, "c")
    scene.tick(27_000)
    known = scene.known()
    assert known.alive() == {"c"}
    assert known.ended()["x"][1] in ("sync_timeout", "unknown")
    told = [(row["generation_before"], row["generation_after"], row["trigger_member_id"]) for row in known.rebalances()]
    assert told[-1] == (0, 1, "c")
    assert "Empty" in [state for _, state in known.states()]


def test_who_leaves_as_it_is_sent_back_has_left() -> None:
    """x waits since 3,500; c converts the group at 4,000, by which x is sent back, and x leaves in the same instant."""
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(2_000, 3_000, "x", "y")
    scene.leave(4_000, "x")
    sent_back(scene, 4_001, "x", 3_500)
    scene.comes(4_009, "c", 2, since=4_000)
    scene.beats(6_000, 9_000, 3, "c")
    scene.heartbeat(5_000, "y", generation=1)
    scene.tick(9_500)
    known = scene.known_live()
    assert known.ended()["x"][1] == "left"
    assert "x" not in known.alive()
    [row] = [row for row in named("members", known.rows["members"]) if row["member_id"] == "x" and row["ended_at_ms"]]
    assert row["end_cause"] == "left"


def test_the_epoch_of_a_join_is_its_own_where_the_answer_to_another_one_is_read_first() -> None:
    """n joins at 6,000 and a's heartbeat is handled after it; both answers wait, and that to a is written first."""
    scene = ModernScene(version="4.1.2")
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.beats(2_000, 6_000, 1, "a")
    scene.beat(6_030, "a", 1, 2, since=6_008)
    scene.comes(6_031, "n", 2, since=6_000)
    scene.beats(7_000, 9_000, 2, "a", "n")
    scene.tick(9_500)
    told = [
        (row["generation_after"], row["trigger"], row["trigger_member_id"], row["certainty"])
        for row in scene.known().rebalances()
        if not row["withdrawn"]
    ]
    assert told[-1] == (2, "member_joined", "n", "exact")
    assert {epoch for epoch, *_ in told} == {1, 2}


def test_of_several_whom_silence_ended_any_may_be_the_one_that_is_there() -> None:
    """a, b and n are silent since 5,000; the epochs that are answered are one fewer than their ends would have made."""
    scene = ModernScene()
    for number, member in enumerate(("a", "b", "n", "w"), 1):
        scene.comes(1_000 * number, member, number)
    scene.beats(4_500, 5_000, 4, "a", "b", "n", "w")
    scene.beats(6_000, 14_000, 4, "w")
    scene.beat(15_000, "w", 4, 6)
    scene.beats(17_000, 29_000, 6, "w")
    scene.tick(30_000)
    known = scene.known()
    rows = named("members", known.rows["members"])
    back = [row for row in rows if row["member_id"] in "abn" and row["ended_at_ms"] is None]
    returned = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "still a member"]
    assert {row["certainty"] for row in returned} <= {"provisional"}, returned
    assert back


def test_a_group_that_was_emptied_before_it_changes_its_protocol_says_so() -> None:
    """x, the only member, leaves, and c comes before anybody else is seen."""
    scene = ModernScene()
    scene.joined(1_000, 1, {"x": 900})
    scene.synced(1_100, "x")
    scene.leave(3_000, "x")
    scene.comes(3_510, "c", 1, (0, 1), since=3_500)
    scene.beats(5_000, 8_000, 1, "c")
    scene.tick(8_500)
    known = scene.known()
    assert (3_000, "Empty") in known.states()
    told = [(row["generation_after"], row["trigger"]) for row in known.rebalances()]
    assert told == [(1, "member_joined"), (2, "member_left"), (1, "member_joined")]


def test_a_group_is_stable_when_the_last_member_came_whoever_is_read_last() -> None:
    """n's heartbeat is handled after a's, and its answer is written before."""
    scene = ModernScene()
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.comes(2_010, "n", 2, since=2_000)
    scene.beat(2_511, "n", 2, 2, assigned=(), since=2_510)
    scene.beat(3_000, "a", 1, 2, assigned=(0, 1))
    scene.comes(4_001, "w", 3, (), since=4_000)
    scene.beat(4_059, "n", 2, 3, since=4_050)
    scene.beat(4_061, "a", 2, 3, since=4_020)
    scene.tick(6_000)
    assert [state for state in scene._fed([scene.events]).states() if state[0] > 4_000] == [(4_050, "Stable")]


def test_two_seats_that_are_taken_with_joingroup_rebalance_nothing() -> None:
    """a, away, was the last of the consumer protocol: h takes its seat; then z that of y. Both are answered at once,
    with the epoch of the group."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"x": 900, "y": 950}, instances={"y": "j"})
    scene.synced(1_100, "x", "y")
    scene.comes(2_010, "a", 2, (0,), since=2_000, instance="i")
    for one in ("x", "y"):
        detail = JOINED | {"assigned_member_id": one}
        seat = "j" if one == "y" else ""
        event = {"member_id": one, "group_instance_id": seat, "generation_id": 2, "detail": detail}
        scene._event(Kind.JOIN, 2_500, since=2_495, **event)
    scene.goes(3_000, "a", -2, instance="i")
    for at, one, seat in ((4_005, "h", "i"), (6_005, "z", "j")):
        detail = JOINED | {"assigned_member_id": one}
        detail |= {"leader": "x", "members": [["x", ""]]} if one == "z" else {}
        scene._event(Kind.JOIN, at, since=at - 5, group_instance_id=seat, generation_id=2, detail=detail)
    scene.heartbeat(7_000, "x", generation=2)
    scene.tick(8_000)
    known = scene.known()
    assert known.alive() == {"x", "h", "z"}
    assert known.ended()["y"][:2] == (6_000, "static_replaced")
    assert max(row["generation_after"] or 0 for row in known.rebalances()) == 2
    assert "CompletingRebalance" not in [state for at, state in known.states() if at > 2_000]


@pytest.mark.parametrize("others", [0, 1])
def test_of_a_group_whose_leader_was_not_seen_whoever_joins_again_may_lead_it(others: int) -> None:
    """c's end made it a classic group again, which elects nobody that an answer names."""
    scene = seat_of_the_last(others)
    known = scene.known()
    last = known.rebalances()[-1]
    assert last["trigger"] == "leader_rejoined" if not others else last["certainty"] == "provisional", last


def seat_of_the_last(others: int) -> ModernScene:
    """h takes the seat of a, the last of the consumer protocol, at 5,000, and joins again at 6,000."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    for number in range(others):
        detail = JOINED | {"assigned_member_id": f"y{number}"}
        event = {"member_id": f"y{number}", "generation_id": 2 + number, "detail": detail}
        scene._event(Kind.JOIN, 2_010 + 10 * number, since=2_000 + 10 * number, **event)
    epoch = 1 + others
    detail = JOINED | {"assigned_member_id": "h"}
    scene._event(Kind.JOIN, 5_010, since=5_000, group_instance_id="i", generation_id=epoch, detail=detail)
    joins = {"h": 6_000.0} | {f"y{number}": 6_090.0 for number in range(others)}
    scene.joined(6_100 if others else 6_000, epoch + 1, joins, instances={"h": "i"})
    scene.synced(6_110, *joins)
    scene.tick(8_000)
    return scene


def test_a_syncgroup_renews_in_a_consumer_group_and_need_not_have_in_the_classic_one_that_it_was() -> None:
    """h takes the seat of a, the last of the consumer protocol, and is answered its SyncGroup at 5,040: that the group
    was a Stable classic one by then, in which this renews nothing, is known at 16,100 only."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    detail = JOINED | {"assigned_member_id": "y"}
    scene._event(Kind.JOIN, 2_010, since=2_000, member_id="y", generation_id=2, detail=detail)
    detail = JOINED | {"assigned_member_id": "h"}
    scene._event(Kind.JOIN, 5_010, since=5_000, group_instance_id="i", generation_id=2, detail=detail)
    scene._event(Kind.SYNC, 5_040, member_id="h", generation_id=2, detail={"assignment": []})
    for at in range(5_500, 16_000, 2_500):
        scene.heartbeat(at, "y", generation=2)
    scene.joined(16_100, 3, {"y": 16_100.0})
    scene.synced(16_110, "y")
    scene.tick(18_000)
    at_ms, cause, certainty = scene.known().ended()["h"]
    assert cause == "session_expired"
    assert certainty != "exact" or at_ms <= 15_000


def test_an_answer_without_a_leader_ends_no_join_phase_though_it_is_read_before_what_converted_the_group() -> None:
    """c's heartbeat makes it a consumer group at 4,000, whose answer is stored until 4,051. x is sent back then, joins
    again, and is answered in the same ms, with an epoch and without a leader, as y is with the one after it."""
    scene = ModernScene()
    scene.joined(1_000, 1, {"x": 900, "y": 950})
    scene.synced(1_100, "x", "y")
    scene.heartbeats(2_000, 3_900, "x", "y")
    for member, since, epoch in (("y", 4_020, 3), ("x", 4_005, 2)):
        scene._event(
            Kind.JOIN,
            4_051,
            since=since,
            member_id=member,
            generation_id=epoch,
            detail=JOINED | {"assigned_member_id": member, "protocols": [["range", "y"]], "leader": "", "members": []},
        )
    scene.comes(4_051, "c", 2, since=4_000)
    scene.beats(6_000, 12_000, 3, "c")
    scene.tick(13_000)
    known = scene.known()
    assert not any(row["generation_after"] > 3 for row in known.rebalances())
    states = [row for row in named("transitions", known.rows["transitions"]) if row["entity"] == "group"]
    converted = next(place for place, row in enumerate(states) if row["cause"] == "upgraded")
    assert since_start(states[converted]["at_ms"]) == 4_000
    assert not any(row["cause"] == "join phase completed" for row in states[converted - 1 :])
