"""Groups of the newer protocols, and those that migrate: evidence about one thing is none about another.

Instants in ms from the start of a scene. Members x and y speak the classic protocol, the others the consumer protocol.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Kind
from tests.observe.test_fleet_scenes import classic, upgraded
from tests.observe.test_migration_scenes import JOINED
from tests.support.modern_scene import ModernScene, since_start
from tests.support.scene import START
from tests.support.stories import named


def by_epoch(scene: ModernScene, *, live: bool = False) -> dict[int, tuple[str, str]]:
    """Who began the rebalance of each epoch, and how sure that is, by what was said last."""
    known = scene.known_live() if live else scene._fed([scene.events])
    rows = [row for row in known.rebalances() if not row["withdrawn"]]
    return {row["generation_after"]: (row["trigger_member_id"], row["certainty"]) for row in rows}


def leaves(scene: ModernScene, at: float, member: str, since: float) -> None:
    """A LeaveGroup that is answered at `at`."""
    scene._event(Kind.LEAVE, at, since=since, client_id=member, detail={"members": [[member, "", "", 0]]})


def several() -> ModernScene:
    """Members x, y and c of a consumer group, all of them in epoch 2; n joins with epoch 3."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x", "y")
    scene.record_join(3_000, "n", 3)
    scene.comes(3_010, "n", 3, since=3_000)
    return scene


def test_of_two_leaves_of_one_instant_records_show_the_order() -> None:
    """y's LeaveGroup is read before x's, and came after it: the records of both have one stamp."""
    scene = several()
    leaves(scene, 5_008, "y", 4_999.6)
    scene.tick(5_100)
    scene.record_gone(5_000, "x", 4)
    scene.record_gone(5_000, "y", 5)
    leaves(scene, 5_009, "x", 4_999.4)
    scene.record(5_200, "computed", epoch=5)
    scene.tick(7_000)
    assert {epoch: who for epoch, (who, _) in by_epoch(scene, live=True).items() if epoch > 3} == {4: "x", 5: "y"}


def test_a_leave_that_took_long_comes_after_all_that_was_written_meanwhile() -> None:
    """y's leave is handled from 4,990 on, and those of x and n are written before it."""
    scene = several()
    leaves(scene, 5_010, "y", 4_980)
    scene.record_gone(5_000, "x", 4)
    scene.record_gone(5_000, "n", 5)
    scene.record_gone(5_004, "y", 6)
    leaves(scene, 5_011, "x", 5_000)
    scene.record(5_200, "computed", epoch=6)
    scene.tick(7_000)
    assert {epoch: who for epoch, (who, _) in by_epoch(scene).items() if epoch > 3} == {4: "x", 5: "n", 6: "y"}


def test_whose_session_ended_in_a_group_that_was_deleted_began_nothing_in_the_next_one() -> None:
    scene = ModernScene(given_ms=6_000)
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.record_gone(7_010, "a", 2)
    scene.record(9_000, "computed")
    scene.record(9_000, "epoch")
    scene.member_id_required(10_000, "x")
    scene.joined(10_010, 1, {"x": 10_005})
    scene.synced(10_020, "x")
    scene.tick(12_000)
    last = scene.known().rebalances()[-1]
    assert (last["protocol"], last["trigger"], last["trigger_member_id"]) == ("classic", "member_joined", "x")
    assert since_start(last["started_at_ms"]) >= 10_000  # type: ignore[operator]


def test_a_seat_that_is_taken_as_the_group_is_converted_was_its_holders() -> None:
    """y has the instance id j; c comes with it and makes a consumer group of it, whose records do not name y."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"x": 900, "y": 950}, instances={"y": "j"})
    scene.synced(1_100, "x", "y")
    scene.group_record(1_095, 1, {"x": 10_000, "y": 10_000})
    (scene.events[-1].detail or {})["members"][1][1] = "j"
    scene.heartbeats(2_000, 4_000, "x", "y")
    scene.deleted(4_000)
    scene.record(4_000, "member", "x", rebalance_timeout_ms=60_000, topics=["t"], classic_session_ms=10_000)
    scene.record(4_000, "epoch", epoch=1)
    scene.record(4_000, "computed", epoch=1)
    scene.record_join(4_000, "c", 2, instance="j")
    scene.comes(4_010, "c", 2, since=4_000, instance="j")
    scene.tick(6_000)
    known = scene.known()
    assert known.ended()["y"][:2] == (4_000, "static_replaced")
    joined = [row for row in named("transitions", known.rows["transitions"]) if row["member_id"] == "c"]
    assert [row["cause"] for row in joined] == ["static_replaced"]


def test_who_was_told_of_a_rebalance_before_somebody_joined_shows_that_it_had_begun() -> None:
    """c, the last of the consumer protocol, has the instance id i; its session ends at 12,000, x is answered 27 at
    12,300, and z comes with that instance id at 12,700 and waits."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"x": 900, "y": 950}, session_ms=30_000)
    scene.synced(1_100, "x", "y")
    scene.comes(2_010, "c", 2, since=2_000, instance="i")
    for one in ("x", "y"):
        detail: dict[str, Any] = JOINED | {"assigned_member_id": one, "session_timeout_ms": 30_000}
        scene._event(Kind.JOIN, 2_500, since=2_495, member_id=one, generation_id=2, detail=detail)
        scene._event(Kind.SYNC, 2_510, member_id=one, generation_id=2, detail={"assignment": []})
    scene.generation = 2
    scene.heartbeats(4_000, 11_500, "x", "y", every=2_000)
    scene.heartbeat(12_300, "x", error=27)
    scene.heartbeat(13_000, "y", error=27)
    scene.joined(14_000, 3, {"z": 12_700, "x": 12_400, "y": 13_010}, first=("z",), instances={"z": "i"}, leader="x")
    scene.synced(14_010, "x", "y", "z")
    scene.tick(16_000)
    [last] = {row["started_at_ms"]: row for row in scene.known().rebalances() if row["generation_after"] == 3}.values()
    assert since_start(last["started_at_ms"]) <= 12_300  # type: ignore[operator]
    assert last["certainty"] != "exact"


def back_and_forth(*, leaves_unseen: bool, answered: int) -> ModernScene:
    """c is the last member of the consumer protocol and goes at 5,000, or is silent since 3,000 and due at 13,000; d
    comes at 13,020 and is answered with an epoch."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"x": 900}, session_ms=30_000)
    scene.synced(1_100, "x")
    scene.comes(2_010, "c", 2, (0,), since=2_000)
    detail: dict[str, Any] = JOINED | {"assigned_member_id": "x", "session_timeout_ms": 30_000}
    scene._event(Kind.JOIN, 2_500, since=2_495, member_id="x", generation_id=2, detail=detail)
    scene._event(Kind.SYNC, 2_510, member_id="x", generation_id=2, detail={"assignment": []})
    scene.generation = 2
    scene.beat(3_000, "c", 2)
    if not leaves_unseen:
        scene.goes(5_008, "c", since=5_000)
    scene.heartbeats(4_000, 12_500, "x", every=2_000, error=0)
    scene.comes(13_030, "d", answered, (0,), since=13_020)
    scene.beats(15_000, 20_000, answered, "d")
    scene.tick(21_000)
    return scene


def test_a_group_that_was_a_classic_one_between_two_members_of_the_consumer_protocol_made_no_epoch_by_that() -> None:
    for leaves_unseen, began in ((False, 5_000), (True, 13_000)):
        known = back_and_forth(leaves_unseen=leaves_unseen, answered=3).known()
        rows = {row["started_at_ms"]: row for row in known.rebalances()}.values()
        told = [(since_start(row["started_at_ms"]), row["generation_after"]) for row in rows if not row["withdrawn"]]
        assert told[-2:] == [(began, None), (13_020, 3)], told
        conversions = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "downgraded"]
        assert [row["certainty"] for row in conversions] == ["provisional"]
        assert known.alive() == {"x", "d"}


def test_an_answer_with_room_for_its_epoch_leaves_the_end_of_the_last_one_an_epoch() -> None:
    known = back_and_forth(leaves_unseen=False, answered=4).known()
    rows = {row["started_at_ms"]: row for row in known.rebalances()}.values()
    assert [row["generation_after"] for row in rows if not row["withdrawn"]][-2:] == [3, 4]


def test_a_seat_that_is_taken_in_a_group_of_one_makes_an_epoch_as_the_group_is_converted() -> None:
    """y, the only member, has the instance id j; nobody is left to be named before the epoch that c makes."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"y": 950}, instances={"y": "j"})
    scene.synced(1_100, "y")
    scene.group_record(1_095, 1, {"y": 10_000})
    (scene.events[-1].detail or {})["members"][0][1] = "j"
    scene.heartbeats(2_000, 4_000, "y")
    scene.deleted(4_000)
    scene.record_join(4_000, "c", 2, instance="j")
    scene.comes(4_010, "c", 2, since=4_000, instance="j")
    scene.tick(6_000)
    known = scene.known()
    assert known.ended()["y"][:2] == (4_000, "static_replaced")
    rows = [row for row in known.rebalances() if row["generation_after"] == 2]
    assert {since_start(row["started_at_ms"]) for row in rows} == {4_000}


def test_who_comes_by_the_consumer_protocol_to_classic_members_may_convert_the_group_back() -> None:
    """c's seat is taken with JoinGroup at 4,000, and all members speak the classic protocol then: the group may be a
    classic one until n comes at 5,000, and then their sessions begin anew."""
    scene = ModernScene(version="4.2.1")
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.comes(1_010, "c", 1, (0, 1), since=1_000, instance="i")
    scene.goes(3_000, "c", -2, instance="i")
    joined = JOINED | {"assigned_member_id": "h"}
    scene._event(Kind.JOIN, 4_010, since=4_000, group_instance_id="i", generation_id=1, detail=joined)
    scene.synced(4_020, "h")
    scene.comes(5_010, "n", 2, since=5_000)
    scene.beats(7_000, 13_000, 2, "n")
    scene.tick(13_500)
    rows = named("health", scene.known().rows["health"])
    sure = {row["certainty"] for row in rows if row["member_id"] == "h" and row["at_ms"] > START + 5_010}
    assert sure, "h is told of"
    assert "exact" not in sure
