"""Groups that change their protocol: the shortest history of each thing that was said wrongly of one, or not at all.

Instants in ms from the start of a scene. Members x and y speak the classic protocol, c and a the consumer protocol.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import Kind
from tests.observe.test_fleet_scenes import classic, upgraded
from tests.support.modern_scene import STABLE, ModernScene, both, rebalances, since_start
from tests.support.scene import START
from tests.support.stories import named, standing

JOINED: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}


def seat(*, records: bool, generation: int, in_two: bool = False, **answered: str) -> ModernScene:
    """The static member a is the last one of the consumer protocol; h takes its seat with JoinGroup at 5,000, and is
    answered with a generation. `in_two`: the records are read, and something after them, before the answer."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    if records:
        scene.record_join(1_000, "a", 1, (0, 1), instance="i")
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    if records:
        for what in ("current", "target", "member"):
            scene.record(5_000, what, "a")
        scene.record(5_000, "computed")
        scene.record(5_000, "epoch")
        scene.group_record(5_000, 1, {"h": 10_000})
        (scene.events[-1].detail or {})["members"][0][1] = "i"
    if in_two:
        scene.commit(5_005, "h", 7)
        scene.records_read(5_100)
        scene.tick(5_200)
    detail = JOINED | {"assigned_member_id": "h"} | answered
    scene._event(Kind.JOIN, 5_010, since=5_000, group_instance_id="i", generation_id=generation, detail=detail)
    scene.tick(8_000)
    return scene


@pytest.mark.parametrize("records", [True, False])
def test_a_seat_that_is_taken_with_epoch_0_makes_a_classic_group_that_rebalances(records: bool) -> None:
    """Kafka answers with the epoch that the member has then; 0 is no generation of anybody."""
    known = seat(records=records, generation=0).known()
    assert known.ended()["a"][:2] == (5_000, "static_replaced")
    assert known.alive() == {"h"}
    assert known.states()[-1] == (5_000, "PreparingRebalance")
    [row] = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "downgraded"]
    assert row["certainty"] == ("exact" if records else "inferred")


@pytest.mark.parametrize(("generation", "state"), [(0, "PreparingRebalance"), (1, "Stable")])
def test_what_a_seat_begins_its_answer_says_also_when_the_records_are_read_before(generation: int, state: str) -> None:
    known = seat(records=True, generation=generation, in_two=True).known_live()
    assert known.states()[-1] == (5_000, state)
    assert known.ended()["a"][:2] == (5_000, "static_replaced")


def test_a_seat_that_is_taken_with_the_epoch_of_the_group_rebalances_nothing() -> None:
    known = seat(records=True, generation=1).known()
    assert known.states()[-1] == (5_000, "Stable")
    [row] = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "downgraded"]
    assert row["certainty"] == "exact"


def left_behind(later_ms: float, *, becomes_classic: bool, waited_ms: float = 0.0) -> ModernScene:
    """x and y speak the classic protocol; c, the last one of the consumer protocol, leaves at 5,000, its request having
    waited for a thread of the broker. Its records have a stamp so much later: of a classic group, or, where the broker
    does not allow that, of one more epoch."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x", "y")
    scene.heartbeats(2_500, 5_000, "x", "y")
    scene.goes(5_002, "c", since=5_000 - waited_ms)
    scene.events[-1] = scene.events[-1]._replace(handled_at_ms=float(START + 5_000))
    at = 5_000 + later_ms
    for what in ("current", "target", "member"):
        for one in ("x", "y", "c") if becomes_classic else ("c",):
            scene.record(at, what, one)
    if becomes_classic:
        scene.record(at, "computed")
        scene.record(at, "epoch")
        scene.group_record(at, 2, {"x": 10_000, "y": 10_000})
    else:
        scene.record(at, "epoch", epoch=3)
    if becomes_classic:
        scene.heartbeat(5_500, "x", error=27, generation=2)
        scene.joined(5_700, 3, {"x": 5_510, "y": 5_600})
        scene.synced(5_710, "x", "y")
    scene.tick(9_000)
    return scene


@pytest.mark.parametrize("later_ms", [0, 1, 3])
def test_who_leaves_a_group_to_classic_members_makes_no_epoch_but_a_classic_group_that_rebalances(
    later_ms: float,
) -> None:
    """The stamp of the records is that of the write, the request was handled before: `make demo` met 3 ms."""
    known = left_behind(later_ms, becomes_classic=True).known()
    told = [(row["generation_after"], row["protocol"], row["trigger_member_id"]) for row in known.rebalances()]
    assert told == [(1, "classic", "x"), (2, "consumer", "c"), (3, "classic", "c")]
    assert known.ended()["c"][:2] == (5_000 + later_ms if later_ms < 2 else 5_000, "left")
    rows = [row for row in named("transitions", known.rows["transitions"]) if row["at_ms"] >= START + 5_000]
    assert [row["cause"] for row in rows if row["entity"] == "group"][:2] == ["downgraded", "member_left"]
    assert known.states()[-3:] == [
        (5_000 + later_ms, "PreparingRebalance"),
        (5_700, "CompletingRebalance"),
        (5_710, "Stable"),
    ]


def test_a_leave_that_waited_for_a_thread_took_effect_at_the_stamp_of_its_records() -> None:
    """Between its arrival and the stamp a broker may load classes; not between its arrival and its handling."""
    known = left_behind(0, becomes_classic=True, waited_ms=29.4).known()
    assert known.ended()["c"][:2] == (5_000, "left")
    assert known.rebalances()[-1]["started_at_ms"] == START + 5_000


@pytest.mark.parametrize("later_ms", [0, 3])
def test_where_the_broker_keeps_it_a_consumer_group_it_is_an_epoch(later_ms: float) -> None:
    known = left_behind(later_ms, becomes_classic=False).known()
    assert rebalances(known)[-1][0] == 3
    assert rebalances(known)[-1][2:] == ("member_left", "c")


def test_an_epoch_that_comes_after_the_assignment_of_a_member_is_of_another_operation() -> None:
    """The member joined by an expression that was known; in the same millisecond a topic had grown."""
    scene = both()
    scene.record(5_000, "member", "n", rebalance_timeout_ms=8_000, topics=[], regex="t.*")
    scene.record_current(5_000, "n", 2, STABLE, ())
    scene.record(5_000, "epoch", epoch=3)
    scene.tick(6_000)
    assert rebalances(scene.known())[-1][2:] == ("topic_metadata", None)


@pytest.mark.parametrize(("error", "cause"), [(69, "upgrade_refused"), (-1, "upgrade_failed")])
def test_a_classic_group_that_does_not_become_a_consumer_group_says_so_once(error: int, cause: str) -> None:
    scene = ModernScene()
    classic(scene)
    for at in (3_000, 3_500):
        detail = {"protocol": "consumer", "member_epoch": 0, "answered_epoch": -1, "interval_ms": 0}
        scene._event(Kind.MODERN_HEARTBEAT, at, member_id="c", error_code=error, detail=detail)
    scene.tick(4_000)
    known = scene.known()
    rows = [row for row in named("transitions", known.rows["transitions"]) if row["member_id"] == "c"]
    assert [(row["cause"], since_start(row["at_ms"]), row["certainty"]) for row in rows] == [(cause, 3_000, "exact")]
    assert known.alive() == {"x", "y"}


def live(kind: Kind, error: int, **more: Any) -> dict[str, Any]:
    """Health of x, of the classic protocol in a consumer group, last heard at 5,000, as a request of it of 6,000 waits
    for the records of its time."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 3_000, "x", "y")
    scene.heartbeat(5_000, "x", generation=1)
    scene.records_read(5_500)
    scene._event(kind, 6_000, member_id="x", error_code=error, generation_id=1, **more)
    scene.tick(6_200)
    rows = named("health", scene.known_live().rows["health"])
    return [row for row in rows if row["member_id"] == "x" and row["status"] != "ended"][-1]


def test_a_refused_sync_that_waits_for_records_renews_no_session() -> None:
    row = live(Kind.SYNC, 27, detail={"protocol_name": "range", "assignments": [], "assignment": []})
    assert (since_start(row["session_deadline_at_ms"]), row["certainty"]) == (15_000, "provisional")


def test_a_leave_that_waits_for_records_makes_its_member_unsure() -> None:
    row = live(Kind.LEAVE, 0, detail={"members": [["x", "", "", 0]]})
    assert row["certainty"] == "provisional"


def test_a_conversion_ends_what_was_foretold_of_sessions() -> None:
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(1_500, 8_000, "y")
    upgraded(scene, 8_500, "x", "y")
    scene.heartbeat(9_000, "y", generation=1)
    scene.tick(9_500)
    assert ("x", "session", "averted") in scene.known().predictions()


@pytest.mark.parametrize(("given_ms", "sure"), [(-1, "provisional"), (10_000, "provisional"), (45_000, "exact")])
def test_a_seat_that_is_taken_late_may_have_been_nobodys(given_ms: int, sure: str) -> None:
    """a left for a moment at 3,000 and is replaced at 20,000: its session may have been over, unless that is known to
    be longer."""
    scene = ModernScene(given_ms=given_ms)
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    scene.comes(1_510, "b", 2, since=1_500)
    scene.goes(3_000, "a", -2, instance="i")
    scene.beats(3_500, 19_900, 2, "b", every=1_000)
    scene.comes(20_010, "a2", 2, (0, 1), since=20_000, instance="i")
    scene.beats(20_900, 22_000, 2, "b", every=1_000)
    scene.tick(23_000)
    rows = {row["member_id"]: row for row in named("members", scene.known().rows["members"])}
    if rows["a"]["end_cause"] == "static_replaced":
        assert rows["a"]["certainty"] == sure
    else:
        assert (given_ms, rows["a"]["end_cause"]) == (10_000, "session_expired")


def sent_back(scene: ModernScene, at: float, member: str, since: float) -> None:
    """A JoinGroup that waited since then is answered 27."""
    detail = JOINED | {"assigned_member_id": member}
    scene._event(Kind.JOIN, at, since=since, member_id=member, error_code=27, detail=detail)


def asks(scene: ModernScene, at: float, member: str, error: int) -> None:
    """A heartbeat that joins and is refused."""
    detail = {"protocol": "consumer", "member_epoch": 0, "answered_epoch": -1, "interval_ms": 0}
    scene._event(Kind.MODERN_HEARTBEAT, at, member_id=member, error_code=error, detail=detail)


def test_who_is_sent_back_as_a_conversion_fails_was_let_in_and_began_the_rebalance() -> None:
    """4.0 to 4.4 send back whoever waits before they know that they cannot convert a group that prepares out of Empty:
    n asks again and again until the delay of the first rebalance is over."""
    scene = ModernScene()
    classic(scene)
    scene.leave(2_000, "x")
    scene.leave(2_100, "y")
    scene.member_id_required(3_000, "n")
    for at in (4_000, 4_300, 4_600):
        sent_back(scene, at + 1, "n", 3_005 if at == 4_000 else at - 200)
        asks(scene, at, "c", -1)
    scene.joined(6_005, 3, {"n": 4_700})
    scene.synced(6_020, "n")
    scene.tick(8_000)
    known = scene.known()
    last = known.rebalances()[-1]
    told = (since_start(last["started_at_ms"]), last["trigger"], last["trigger_member_id"], last["certainty"])
    assert told == (3_005, "member_joined", "n", "exact")
    assert since_start(last["joined_at_ms"]) == 6_005
    rows = [row for row in named("members", known.rows["members"]) if row["member_id"] == "n"]
    assert {since_start(row["joined_at_ms"]) for row in rows} == {3_005}
    assert known.states()[-3:] == [(3_005, "PreparingRebalance"), (6_005, "CompletingRebalance"), (6_020, "Stable")]


def test_a_seat_that_is_taken_in_a_rebalance_whose_joins_are_sent_back_is_its_takers() -> None:
    """s has the instance id i; its process comes again without a member id, waits, and is sent back."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"s": 900, "y": 950}, instances={"s": "i"})
    scene.synced(1_100, "s", "y")
    scene.heartbeats(2_000, 3_000, "y")
    scene.leave(3_000, "y")
    detail = JOINED | {"assigned_member_id": "s2"}
    scene._event(Kind.JOIN, 3_400, since=3_100, group_instance_id="i", error_code=27, detail=detail)
    scene.tick(5_000)
    known = scene.known()
    assert known.ended()["s"][:2] == (3_100, "static_replaced")
    assert known.alive() == {"s2"}


def waits_as_it_is_converted(*, records: bool) -> ModernScene:
    """x and y are in generation 1; n waits in a JoinGroup since 3,000 when c makes a consumer group of it at 4,000."""
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(2_000, 3_000, "x", "y")
    scene.member_id_required(2_990, "n")
    scene.heartbeats(3_100, 4_000, "x", "y", error=27)
    if records:
        upgraded(scene, 4_000, "x", "y", "n")
    else:
        scene.comes(4_010, "c", 2, since=4_000)
    sent_back(scene, 4_010, "n", 3_000)
    scene.generation = 1
    for one in ("x", "y", "n"):
        at = 4_100 + 10 * len(one)
        detail = JOINED | {"assigned_member_id": one}
        scene._event(Kind.JOIN, at, since=at - 5, member_id=one, generation_id=2, detail=detail)
        scene._event(Kind.SYNC, at + 5, member_id=one, generation_id=2, detail={"assignment": []})
        if records:
            scene.record_current(at - 5, one, 2, STABLE, ())
    scene.tick(6_000)
    return scene


@pytest.mark.parametrize("records", [True, False])
def test_who_waits_in_a_joingroup_as_the_group_is_converted_is_a_member_and_makes_no_epoch(records: bool) -> None:
    known = waits_as_it_is_converted(records=records).known()
    assert known.alive() == {"x", "y", "n", "c"}
    told = [(row["generation_after"], row["protocol"], row["trigger_member_id"]) for row in known.rebalances()]
    assert told[-1] == (2, "consumer", "c")
    joined = {row["member_id"]: since_start(row["joined_at_ms"]) for row in named("members", known.rows["members"])}
    assert joined["n"] == 3_000 or records


@pytest.mark.parametrize("cut", [True, False])
def test_a_join_that_is_sent_back_by_a_conversion_did_not_begin_it(cut: bool) -> None:
    """x waits since 3,500 and is answered before c is, by whose heartbeat the group became a consumer group."""
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(2_000, 3_000, "x", "y")
    upgraded(scene, 4_000, "x", "y")
    beat = scene.events.pop()
    sent_back(scene, 4_001, "x", 3_500)
    scene.events.append(beat)
    scene.tick(6_000)
    known = scene.known_live() if cut else scene._fed([scene.events])
    assert rebalances(known)[-1][2:] == ("member_joined", "c")
    assert since_start(known.rebalances()[-1]["started_at_ms"]) == 4_000
    [row] = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "upgraded"]
    assert (since_start(row["at_ms"]), row["at_bound_ms"], row["certainty"]) == (4_000, 0, "exact")


def test_whoever_was_in_the_generation_before_may_have_begun_what_a_conversion_ends() -> None:
    """x, who had joined the generation before, joins again with other metadata at 3,000, and n joins at 3,300. Both are
    sent back as c's heartbeat converts the group at 4,000."""
    scene = ModernScene()
    classic(scene)
    scene.heartbeats(2_000, 3_000, "x", "y")
    scene.member_id_required(3_290, "n")
    detail = JOINED | {"assigned_member_id": "x", "protocols": [["range", "changed"]]}
    scene._event(Kind.JOIN, 3_999, since=3_000, member_id="x", error_code=27, detail=detail)
    sent_back(scene, 3_999, "n", 3_300)
    upgraded(scene, 4_000, "x", "y", "n")
    scene.tick(6_000)
    known = scene.known()
    started = [since_start(row["started_at_ms"]) for row in known.rebalances() if not row["withdrawn"]]
    assert 3_300 not in started
    assert started[-2:] == [3_000, 4_000]


def test_what_comes_while_a_leave_is_handled_has_the_epoch_before_it() -> None:
    """y's leave came at 5,000 and its records have the stamp 5,080; at 5,040 an expression was resolved."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 4_000, "x", "y")
    scene.record(5_040, "epoch", epoch=3)
    scene.record_gone(5_080, "y", 4)
    detail = {"members": [["y", "", "", 0]]}
    scene._event(Kind.LEAVE, 5_090, since=5_000, client_id="y", detail=detail)
    scene.record(5_200, "computed", epoch=4)
    scene.record_current(5_200, "x", 4, STABLE, (0, 1))
    scene.tick(7_000)
    known = scene._fed([scene.events])
    told = [(row["generation_after"], row["trigger"], row["trigger_member_id"]) for row in known.rebalances()]
    assert told[-2:] == [(3, "topic_metadata", None), (4, "member_left", "y")]


def test_a_leave_that_is_answered_around_a_conversion_made_no_epoch_if_its_record_names_who_left() -> None:
    """y's LeaveGroup was handled at 4,999 and waited for the coordinator until c's leave had made a classic group."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x", "y")
    scene.heartbeats(2_500, 5_000, "x", "y")
    scene.record_downgraded(5_000, 2, {"x": 10_000, "y": 10_000}, "c")
    scene._event(Kind.LEAVE, 5_004, since=4_999, client_id="y", detail={"members": [["y", "", "", 0]]})
    scene.events[-1] = scene.events[-1]._replace(handled_at_ms=float(START + 4_999))
    scene.goes(5_005, "c", since=5_000)
    scene.tick(8_000)
    for known in (scene._fed([scene.events]), scene.known_live()):
        told = [row for row in standing("rebalances", known.rows["rebalances"]) if not row["withdrawn"]]
        assert "y" not in {row["trigger_member_id"] for row in told if row["generation_before"] >= 2}
        assert known.alive() == {"x"}


def test_a_leave_says_why_somebody_was_gone_not_before_it_was_handled() -> None:
    """d is gone by a record of 5,000, c by those of 5,022, which make a classic group. The answers come later."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x")
    scene.record_join(2_500, "d", 3)
    scene.comes(2_510, "d", 3, since=2_500)
    scene.heartbeats(3_000, 5_000, "x")
    scene.record_gone(5_000, "d", 4)
    scene.record_downgraded(5_022, 4, {"x": 10_000}, "c")
    scene.goes(5_035, "d", since=5_000)
    scene.goes(5_052, "c", since=5_022)
    scene.tick(9_000)
    known = scene._fed([scene.events])
    ended = {
        row["member_id"]: row["ended_at_ms"] - START
        for row in standing("members", known.rows["members"])
        if row["ended_at_ms"]
    }
    assert (ended["d"], ended["c"]) == (5_000, 5_022)


@pytest.mark.parametrize("leaves_ms", [5_002, 5_050, 5_400])
def test_who_is_gone_by_a_record_is_no_member_before_the_next_leave(leaves_ms: float) -> None:
    """d is gone by a record of 5,000, and why is not known for a second; y leaves by LeaveGroup meanwhile."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x", "y")
    scene.record_join(2_500, "d", 3)
    scene.comes(2_510, "d", 3, since=2_500)
    scene.heartbeats(3_000, 5_000, "x", "y")
    scene.record_gone(5_000, "d", 4)
    scene._event(Kind.LEAVE, leaves_ms, since=leaves_ms, client_id="y", detail={"members": [["y", "", "", 0]]})
    scene.tick(leaves_ms + 400)
    scene.record_gone(leaves_ms + 1, "y", 5)
    scene.tick(9_000)
    for known in (scene._fed([scene.events]), scene.known_live()):
        rows = standing("rebalances", known.rows["rebalances"])
        [row] = [one for one in rows if one["trigger_member_id"] == "y" and one["generation_before"] == 4]
        assert (row["generation_after"], row["members_before"]) == (5, 3)


def test_whose_session_was_over_before_a_conversion_went_before_it_and_made_no_epoch() -> None:
    """x and y were due at 11,100 and c comes at 11,300, sooner than silence alone is taken for an end; z was heard."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"x": 900, "y": 950, "z": 960})
    scene.synced(1_100, "x", "y", "z")
    scene.heartbeats(3_000, 11_200, "z")
    scene.comes(11_310, "c", 2, since=11_300)
    scene.heartbeats(11_500, 30_000, "z")
    scene.beats(13_000, 30_000, 2, "c")
    scene.tick(30_000)
    known = scene.known()
    assert {member: entry[:2] for member, entry in known.ended().items()} == {
        "x": (11_100, "session_expired"),
        "y": (11_100, "session_expired"),
    }
    assert [row["generation_after"] for row in known.rebalances() if row["protocol"] == "consumer"] == [2]


@pytest.mark.parametrize(
    ("since", "cause", "sure"),
    [(11_000, "static_replaced", "exact"), (13_050, "static_replaced", "provisional"), (13_300, "session_expired", "")],
)
def test_a_seat_that_is_taken_by_joingroup_when_its_session_was_over_may_have_been_nobodys(
    since: float, cause: str, sure: str
) -> None:
    """a, the only member, was heard at 3,000 and leaves for a moment; its session runs until 13,000. Whose seat is
    taken right after that is told with a doubt; later than timers are late the group had been empty."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    scene.beat(3_000, "a", 1, owned=(0, 1), instance="i")
    scene.goes(3_200, "a", -2, instance="i")
    detail = JOINED | {"assigned_member_id": "h", "leader": "h", "members": [["h", "i"]], "protocol_name": "range"}
    scene._event(Kind.JOIN, since + 1, since=since, group_instance_id="i", generation_id=1, detail=detail)
    scene.generation = 1
    scene.synced(since + 10, "h")
    scene.tick(since + 3_000)
    known = scene.known()
    at, why, how_sure = known.ended()["a"]
    assert (at, why) == (since if cause == "static_replaced" else 13_000, cause)
    assert how_sure == (sure or "provisional")
    exact = [row["trigger"] for row in known.rebalances() if row["certainty"] == "exact" and row["started_at_ms"]]
    assert ("static_replaced" in exact) <= (sure == "exact")
    assert known.alive() == {"h"}


def test_whose_session_was_over_before_the_rebalance_that_a_conversion_ends_went_before_it() -> None:
    """y was due at 11,100; x leaves at 11,400, and c comes at 11,600. z was heard all the while."""
    scene = ModernScene()
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.joined(1_000, 1, {"x": 900, "y": 950, "z": 960})
    scene.synced(1_100, "x", "y", "z")
    scene.heartbeats(3_000, 11_200, "x", "z")
    scene.leave(11_400, "x")
    scene.comes(11_610, "c", 2, since=11_600)
    scene.heartbeats(12_000, 30_000, "z")
    scene.beats(13_000, 30_000, 2, "c")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["y"][:2] == (11_100, "session_expired")
    assert [row["generation_after"] for row in known.rebalances() if row["protocol"] == "consumer"] == [2]
    assert known.alive() == {"z", "c"}


def test_the_session_of_whoever_makes_a_classic_group_by_taking_a_seat_begins_with_it() -> None:
    """h is answered at once and without a leader, as in a consumer group, sends its SyncGroup, and is silent."""
    scene = seat(records=True, generation=1, leader="")
    scene.generation = 1
    scene.synced(8_010, "h")
    scene.tick(17_000)
    known = scene.known()
    assert known.ended()["h"][:2] == (15_000, "session_expired")
    assert ("h", "session", "came_true") in known.predictions()


@pytest.mark.parametrize(("alone", "sure"), [("classic", "provisional"), ("consumer", "inferred")])
def test_a_group_whose_last_member_spoke_the_classic_protocol_was_a_classic_one_before_it_was_empty(
    alone: str, sure: str
) -> None:
    """The seat of a is taken by h, of the classic protocol; the last one leaves at 5,000, and x comes to nobody."""
    scene = ModernScene(version="4.1.2")
    scene.connection = "10.0.0.1:9092-10.0.0.9:50000-1-1"
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    if alone == "classic":
        scene.goes(2_000, "a", -2, instance="i")
        detail = JOINED | {"assigned_member_id": "h", "leader": "", "members": []}
        scene._event(Kind.JOIN, 3_001, since=3_000, group_instance_id="i", generation_id=1, detail=detail)
        scene.leave(5_000, "h")
    else:
        scene.goes(5_000, "a")
    scene.joined(9_000, 3, {"x": 8_900}, first=("x",))
    scene.tick(11_000)
    rows = named("transitions", scene.known().rows["transitions"])
    assert {row["certainty"] for row in rows if row["cause"] == "downgraded"} == {sure}


def test_of_two_that_are_over_in_one_instant_the_last_makes_a_classic_group_and_begins_its_rebalance() -> None:
    """The first one has made an epoch: only a group without members of the consumer protocol becomes a classic one."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x", "y")
    scene.record_join(2_500, "a", 3)
    scene.comes(2_510, "a", 3, since=2_500)
    scene.beat(4_000, "c", 3)
    scene.beat(4_040, "a", 3)
    scene.heartbeats(4_500, 14_050, "x", "y")
    scene.record_gone(14_050, "c", 4)
    scene.record_downgraded(14_050, 4, {"x": 10_000, "y": 10_000}, "a")
    scene.heartbeat(14_500, "x", error=27, generation=4)
    scene.joined(14_700, 5, {"x": 14_510, "y": 14_600})
    scene.synced(14_710, "x", "y")
    scene.tick(18_000)
    begun = [(row["generation_before"], row["trigger_member_id"]) for row in scene.known().rebalances()]
    assert begun[-2:] == [(3, "c"), (4, "a")]


def test_a_classic_member_that_is_over_in_the_instant_before_made_an_epoch_and_ended_what_waited_for_it() -> None:
    """y had not come to epoch 2 yet; c, the last one of the consumer protocol, goes in the same instant after it."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 2_000, "x", "y")
    scene.heartbeat(4_000, "y", error=27, generation=1)
    scene.record_current(4_010, "x", 2, STABLE, (0,))
    scene.beat(4_040, "c", 2)
    scene.heartbeats(4_500, 14_050, "x")
    scene.record_gone(14_050, "y", 3)
    scene.record_downgraded(14_050, 3, {"x": 10_000}, "c")
    scene.heartbeat(14_500, "x", error=27, generation=3)
    scene.joined(14_700, 4, {"x": 14_510})
    scene.synced(14_710, "x")
    scene.tick(18_000)
    known = scene.known()
    begun = [(row["generation_before"], row["trigger_member_id"]) for row in known.rebalances()]
    assert begun[-2:] == [(2, "y"), (3, "c")]
    assert (2, 14_050, "member_joined", "c") in rebalances(known)


def test_who_was_waited_for_stays_so_when_it_is_gone_as_the_rebalance_is_told_once_more() -> None:
    """y joins generation 2 late and no assignment comes; c makes a consumer group of it, and y leaves at once."""
    scene = ModernScene()
    classic(scene)
    scene.heartbeat(2_500, "y", error=27)
    scene.joined(5_000, 2, {"x": 2_000, "y": 5_000})
    scene.tick(5_500)
    upgraded(scene, 6_000, "x", "y", generation=2)
    scene.leave(6_100, "y")
    scene.record_gone(6_100, "y", 4)
    scene.tick(9_000)
    rows = [row for row in named("rebalances", scene.known_live().rows["rebalances"]) if row["generation_after"] == 2]
    assert len(rows) > 1
    assert [[one["member_id"] for one in row["stragglers"]] for row in rows] == [["y"]] * len(rows)


def test_a_rebalance_whose_joins_were_answered_had_begun_though_a_conversion_came_before_its_assignment() -> None:
    """y leaves without a word about why; x is answered with generation 2, and 20 ms later c makes a consumer group."""
    scene = ModernScene()
    classic(scene)
    scene.leave(2_000, "y")
    scene.heartbeat(2_300, "x", error=27)
    scene.joined(2_400, 2, {"x": 2_310})
    upgraded(scene, 2_420, "x", generation=2)
    scene.tick(6_000)
    told = {row["generation_after"]: row["trigger_member_id"] for row in scene.known().rebalances()}
    assert told == {1: "x", 2: "y", 3: "c"}
