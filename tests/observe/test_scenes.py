"""What the observer concludes from short histories; each names the rule of the coordinator that it shows."""

from __future__ import annotations

import pytest

from kardia.events import Kind
from kardia.observe import Observer, ObserverSettings
from tests.support.scene import START, Known, Scene
from tests.support.stories import named


def stable(*members: str, **options: object) -> Scene:
    """A Stable group of generation 1: joined from 0, completed at 3,000, synced at 3,010."""
    scene = Scene(**options)  # type: ignore[arg-type]
    scene.joined(3_000, 1, dict.fromkeys(members, 0.0), first=members)
    scene.synced(3_010, *members)
    return scene


def survives(scene: Scene, member: str, evicted_at: float, end: float) -> None:
    """Heartbeats of a member before another one is evicted, and told of the rebalance after."""
    at = 6_000.0
    while at < end:
        scene.heartbeat(at, member, error=0 if at < evicted_at else 27)
        at += 1_500


def test_a_silent_member_is_evicted_one_session_after_its_last_renewal() -> None:
    scene = stable("a", "b")
    survives(scene, "a", 16_000, 20_000)
    scene.heartbeat(6_000, "b")
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (16_000, "session_expired", "inferred")}
    assert (16_000, "PreparingRebalance") in known.states()


def test_an_eviction_that_the_other_members_contradict_is_taken_back() -> None:
    """Heartbeats answered 0 long after it say that no rebalance began, so nobody was evicted."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a")
    scene.heartbeat(6_000, "b")
    scene.tick(20_000)
    assert scene.known().ended() == {}


def test_the_list_of_the_next_generation_confirms_an_eviction() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 16_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(17_000, "a", error=27)
    scene.joined(17_100, 2, {"a": 17_050})
    scene.synced(17_110, "a")
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (16_000, "session_expired", "exact")}
    (_, rebalance) = known.rebalances()
    assert (rebalance["trigger"], rebalance["trigger_member_id"]) == ("session_expired", "b")
    assert rebalance["started_at_ms"] == START + 16_000
    assert (rebalance["members_before"], rebalance["members_after"]) == (2, 1)


def test_nobody_is_evicted_while_the_log_is_not_read() -> None:
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.tick(12_000)
    assert scene.known().ended() == {}


def test_nobody_is_evicted_while_the_whole_log_is_silent() -> None:
    """The collector reads on and on, but the broker may be down: its last line decides."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.tick(60_000, last_line=6_000)
    assert scene.known().ended() == {}


def test_a_deadline_inside_a_silence_of_the_whole_log_evicts_nobody() -> None:
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(30_000, "a")
    scene.tick(31_000, last_line=30_500, silences=[[6_000, 30_000]])
    assert scene.known().ended() == {}


def test_a_silence_of_server_log_is_none_of_the_request_log() -> None:
    """The coordinator writes nothing to server.log while all is well; where it is read, its silences mean nothing."""
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.tick(30_000, silences=[[6_000, 29_000]])
    scene.events[-1] = scene.events[-1]._replace(source="10.0.0.1:9092/server/one")
    scene.tick(31_000)
    assert scene.known().ended()["a"][:2] == (16_000, "session_expired")


def test_a_commit_renews_the_session_when_it_is_handled_not_when_it_is_answered() -> None:
    scene = stable("a", "b")
    survives(scene, "a", 15_000, 20_000)
    scene.commit(5_007, "b", 1, since=5_000)
    scene.tick(20_000)
    assert scene.known().ended()["b"][0] == 15_000


def test_a_refused_commit_does_not_renew() -> None:
    scene = stable("a", "b")
    survives(scene, "a", 13_010, 20_000)
    scene.commit(5_000, "b", 1, error=22)
    scene.tick(20_000)
    assert scene.known().ended()["b"][0] == 13_010


@pytest.mark.parametrize(("coordinator", "evicted_at"), [("scala", 17_000), ("java", 13_010)])
def test_a_sync_served_in_stable_renews_with_scala_only(coordinator: str, evicted_at: int) -> None:
    scene = stable("a", "b", coordinator=coordinator)
    survives(scene, "a", evicted_at, 20_000)
    scene.synced(7_000, "b")
    scene.tick(20_000)
    assert scene.known().ended()["b"][0] == evicted_at


@pytest.mark.parametrize(("beat_at", "evicted_at"), [(15_999, 25_999), (16_000, 26_000), (16_005, 26_005)])
def test_a_heartbeat_answered_at_the_deadline_came_before_it(beat_at: float, evicted_at: int) -> None:
    """The answer decides on which side of the deadline the request was: 0 means that the member was still there."""
    scene = stable("a", "b")
    survives(scene, "a", evicted_at, 30_000)
    scene.heartbeat(6_000, "b")
    scene.heartbeat(beat_at, "b")
    scene.tick(30_000)
    assert scene.known().ended()["b"][0] == evicted_at


def test_a_heartbeat_answered_25_means_it_was_evicted_at_its_deadline() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 16_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(16_003, "b", error=25)
    scene.tick(20_000)
    assert scene.known().ended()["b"] == (16_000, "session_expired", "exact")


def test_a_member_that_waits_in_a_join_is_not_evicted() -> None:
    """Its session deadline passes while the group prepares; its JoinGroup is logged when it is answered."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(9_000, "a", error=27)
    scene.heartbeat(9_000, "b", error=27)
    scene.heartbeats(12_000, 30_000, "b", error=27)
    scene.joined(30_000, 2, {"a": 9_100, "c": 8_000, "b": 29_990}, first=("c",))
    scene.synced(30_010, "a", "b", "c")
    scene.heartbeats(33_000, 36_000, "a", "b", "c")
    scene.tick(36_000)
    known = scene.known()
    assert known.ended() == {}
    (_, rebalance) = known.rebalances()
    assert (rebalance["trigger"], rebalance["trigger_member_id"]) == ("member_joined", "c")
    assert rebalance["started_at_ms"] == START + 8_000
    assert rebalance["stragglers"][0] == {
        "member_id": "b",
        "client_id": "b",
        "waited_ms": 21_990,
        "joined": True,
        "pending": False,
        "partitions": None,
    }


def test_a_member_killed_during_a_rebalance_was_evicted_at_its_deadline() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.heartbeat(9_000, "a", error=27)
    scene.joined(16_000, 2, {"a": 9_100, "c": 8_000}, first=("c",))
    scene.synced(16_010, "a", "c")
    scene.tick(20_000)
    assert scene.known().ended() == {"b": (16_000, "session_expired", "exact")}


def test_a_member_that_never_rejoins_is_dropped_when_the_rebalance_timeout_is_over() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.heartbeat(9_000, "a", error=27)
    scene.heartbeats(9_000, 68_000, "b", error=27)
    scene.joined(68_000, 2, {"a": 9_100, "c": 8_000}, first=("c",))
    scene.synced(68_010, "a", "c")
    scene.tick(70_000)
    known = scene.known()
    assert known.ended() == {"b": (68_000, "rebalance_timeout", "exact")}
    assert ("b", "rebalance", "came_true") in known.predictions()
    assert known.rebalances()[-1]["stragglers"][0]["joined"] is False


def test_the_last_member_leaves_and_the_group_is_empty_in_the_same_instant() -> None:
    scene = stable("a")
    scene.leave(9_000, "a", reason="the consumer is being closed")
    scene.tick(12_000)
    known = scene.known()
    assert known.ended() == {"a": (9_000, "left", "exact")}
    assert known.states()[-2:] == [(9_000, "PreparingRebalance"), (9_000, "Empty")]
    assert known.rebalances()[-1]["generation_after"] == 2


def test_a_poll_timeout_that_says_so_is_exact() -> None:
    scene = stable("a", "b")
    scene.leave(9_000, "b", reason="consumer poll timeout has expired.")
    scene.tick(12_000)
    assert scene.known().ended()["b"] == (9_000, "poll_timeout", "exact")


def test_an_instance_removed_by_name_was_removed_by_an_admin() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0}, first=("a",), instances={"a": "one"})
    scene.synced(3_010, "a")
    scene.leave(9_000, "", instance="one", client="admin")
    scene.tick(12_000)
    assert scene.known().ended()["a"] == (9_000, "removed_by_admin", "exact")


def test_a_static_member_that_returns_in_time_causes_no_rebalance_and_keeps_its_old_timeout_once() -> None:
    """Kafka arms the session with the timeout stored before the JoinGroup, and stores the new one after."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), instances={"a": "i", "b": "j"}, session_ms=10_000)
    scene.synced(3_010, "a", "b")
    survives(scene, "a", 19_000, 30_000)
    scene.replaced(9_000, "b2", "j", session_ms=45_000)
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["b"] == (9_000, "static_replaced", "exact")
    assert known.ended()["b2"][:2] == (19_000, "session_expired")
    assert [row["trigger"] for row in known.rebalances()] == ["member_joined"]


def test_a_static_member_is_replaced_even_if_the_next_request_of_the_new_one_seems_to_come_first() -> None:
    """Stamps are cut to 1 ms: the SyncGroup that follows the answer to the JoinGroup may be put before it."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), instances={"a": "i", "b": "j"}, session_ms=10_000)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 30_000, "a")
    scene.synced(8_999, "b2")
    scene.events[-1] = scene.events[-1]._replace(group_instance_id="j", detail={"assignments": []})
    scene.replaced(9_000, "b2", "j")
    scene.heartbeats(12_000, 30_000, "b2")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {"b": (9_000, "static_replaced", "exact")}
    assert [row["trigger"] for row in known.rebalances()] == ["member_joined"]


def test_whoever_joins_first_is_the_cause_and_not_who_was_answered_first() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.joined(9_000, 2, {"a": 8_900, "b": 8_500, "n": 8_000}, first=("n",))
    scene.synced(9_010, "a", "b", "n")
    scene.tick(12_000)
    (_, rebalance) = scene.known().rebalances()
    assert (rebalance["trigger"], rebalance["trigger_member_id"]) == ("member_joined", "n")


@pytest.mark.parametrize(("first", "trigger"), [("a", "leader_rejoined"), ("b", "metadata_changed")])
def test_a_member_that_joins_again_by_itself_is_the_leader_or_changed_its_metadata(first: str, trigger: str) -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    waits = {"a": 8_500.0, "b": 8_500.0} | {first: 8_000.0}
    scene.joined(9_000, 2, waits, leader="a", reason="cached metadata has changed")
    scene.synced(9_010, "a", "b")
    scene.tick(12_000)
    (_, rebalance) = scene.known().rebalances()
    assert (rebalance["trigger"], rebalance["trigger_member_id"]) == (trigger, first)
    assert rebalance["reason"] == "cached metadata has changed"


def test_a_transition_carries_the_generation_in_force_after_it() -> None:
    scene = stable("a")
    scene.joined(9_000, 2, {"a": 8_900, "n": 8_000}, first=("n",))
    scene.synced(9_010, "a", "n")
    scene.tick(12_000)
    rows = named("transitions", scene.known().rows["transitions"])
    assert [(row["to_state"], row["generation_id"]) for row in rows if row["at_ms"] >= START + 8_000] == [
        ("PreparingRebalance", 1),
        ("Member", 1),
        ("CompletingRebalance", 2),
        ("Stable", 2),
    ]


def test_a_rebalance_whose_cause_cannot_be_seen_is_unknown() -> None:
    """A member is told of a rebalance before anything visible could have started it."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.heartbeat(7_000, "a", error=27)
    scene.joined(9_000, 2, {"a": 8_000, "b": 8_500})
    scene.synced(9_010, "a", "b")
    scene.tick(12_000)
    (_, rebalance) = scene.known().rebalances()
    assert rebalance["trigger"] == "unknown"
    assert rebalance["certainty"] != "exact"


def test_across_a_gap_nobody_expires_and_the_verdict_is_unknown() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.gap(7_000, 20_000)
    scene.heartbeats(21_000, 24_000, "a")
    scene.tick(24_000)
    known = scene.known()
    assert known.ended() == {}
    member = known.observer.group("g").members["b"]  # type: ignore[union-attr]
    assert member.unknown_since_at_ms == START + 7_000


def test_a_member_seen_first_in_the_middle_of_its_life_has_no_deadline_until_its_timeout_is_known() -> None:
    scene = Scene()
    scene.generation = 7
    scene.heartbeat(1_000, "a")
    scene.heartbeats(1_000, 60_000, "b")
    scene.tick(60_000)
    known = scene.known()
    assert known.ended() == {}
    assert known.alive() == {"a", "b"}


def test_a_group_record_gives_the_timeouts_of_members_that_joined_before_the_log_began() -> None:
    scene = Scene()
    scene.group_record(0, 7, {"a": 10_000, "b": 10_000})
    scene.generation = 7
    scene.heartbeats(1_000, 2_000, "b")
    for at in range(1_000, 30_000, 1_500):
        scene.heartbeat(at, "a", error=0 if at < 11_000 else 27)
    scene.tick(30_000)
    assert scene.known().ended()["b"][:2] == (11_000, "session_expired")


def test_the_empty_record_confirms_that_the_last_member_was_evicted() -> None:
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.empty_record(16_001, 2)
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"a": (16_000, "session_expired", "exact")}
    assert known.states()[-1] == (16_001, "Empty")


@pytest.mark.parametrize("late", [False, True])
def test_a_record_that_confirms_is_named_also_when_it_comes_late(late: bool) -> None:
    """A record comes from the topic, not from the log, and mostly when its instant has passed."""
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.empty_record(16_001, 2)
    record = scene.events.pop()
    if not late:
        scene.events.append(record)
    scene.tick(20_000)
    observer = Observer(ObserverSettings("test"))
    rows = observer.step(scene.events)
    scene.tick(21_000)
    for step in (observer.step([record, scene.events[-1]] if late else [scene.events[-1]]), observer.finish()):
        for table, more in step.items():
            rows[table].extend(more)
    assert named("transitions", rows["transitions"])[-1]["evidence"] == f"{record.source}@{record.start}"
    assert Known(rows, observer).ended()["a"] == (16_000, "session_expired", "exact")
    assert sum(row["late"] for row in named("progress", rows["progress"])) == 0


@pytest.mark.parametrize("late", [False, True])
def test_how_a_group_that_was_left_became_empty_is_told_alike_with_a_late_record(late: bool) -> None:
    scene = stable("a")
    scene.leave(9_000, "a", reason="the consumer is being closed")
    scene.empty_record(9_000, 2)
    record = scene.events.pop()
    scene.tick(10_000)
    observer = Observer(ObserverSettings("test"))
    rows = observer.step([record, *scene.events] if not late else scene.events)
    scene.tick(11_000)
    for step in (observer.step([record, scene.events[-1]] if late else [scene.events[-1]]), observer.finish()):
        for table, more in step.items():
            rows[table].extend(more)
    emptied = named("transitions", rows["transitions"])[-1]
    left = next(event for event in scene.events if event.kind == Kind.LEAVE)
    assert (emptied["to_state"], emptied["evidence"]) == ("Empty", f"{left.source}@{left.start}")


def test_a_deleted_group_begins_a_new_life_at_generation_one() -> None:
    scene = stable("a")
    scene.leave(9_000, "a", reason="the consumer is being closed")
    scene.deleted(12_000)
    scene.joined(20_000, 1, {"n": 17_000}, first=("n",))
    scene.synced(20_010, "n")
    scene.tick(22_000)
    known = scene.known()
    assert [state for _, state in known.states()][-4:] == [
        "Dead",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
    ]
    assert known.alive() == {"n"}


def test_a_consumer_that_heartbeats_and_does_not_poll_is_predicted_to_leave() -> None:
    """Java fetches only inside poll: silence of FETCH while heartbeats go on is the zombie."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0}, first=("a",), rebalance_ms=20_000)
    scene.synced(3_010, "a")
    for second in range(4, 10):
        scene.fetch(second * 1_000, "a")
    scene.heartbeats(6_000, 29_000, "a")
    scene.leave(29_050, "a", reason="consumer poll timeout has expired.")
    scene.tick(31_000)
    known = scene.known()
    assert known.ended()["a"] == (29_050, "poll_timeout", "exact")
    assert known.predictions() == [("a", "poll", "came_true")]


def test_librdkafka_leaves_without_a_reason_but_its_commits_had_stopped_while_data_came() -> None:
    scene = Scene(software="confluent-kafka-python/2.16.1-rdkafka-2.16.0")
    scene.joined(3_000, 1, {"a": 0.0}, first=("a",), rebalance_ms=10_000)
    scene.synced(3_010, "a")
    for second in range(4, 20):
        scene.fetch(second * 1_000, "a", data=100)
        if second < 9:
            scene.commit(second * 1_000 + 10, "a", second)
    scene.heartbeats(4_000, 18_000, "a")
    scene.leave(18_100, "a")
    scene.tick(20_000)
    assert scene.known().ended()["a"] == (18_100, "poll_timeout", "inferred")


def test_librdkafka_that_closes_commits_first() -> None:
    scene = Scene(software="confluent-kafka-python/2.16.1-rdkafka-2.16.0")
    scene.joined(3_000, 1, {"a": 0.0}, first=("a",), rebalance_ms=10_000)
    scene.synced(3_010, "a")
    for second in range(4, 19):
        scene.fetch(second * 1_000, "a", data=100)
        scene.commit(second * 1_000 + 10, "a", second)
    scene.leave(18_100, "a")
    scene.tick(20_000)
    assert scene.known().ended()["a"] == (18_100, "left", "inferred")


def test_an_idle_librdkafka_consumer_that_closes_is_not_called_a_poll_timeout() -> None:
    scene = Scene(software="librdkafka/2.16.0")
    scene.joined(3_000, 1, {"a": 0.0}, first=("a",), rebalance_ms=10_000)
    scene.synced(3_010, "a")
    scene.commit(4_000, "a", 1)
    for second in range(5, 40):
        scene.fetch(second * 1_000, "a", data=0)
    scene.heartbeats(6_000, 40_000, "a")
    scene.leave(40_000, "a")
    scene.tick(41_000)
    assert scene.known().ended()["a"][1] == "left"


def test_a_pending_id_that_is_never_used_is_no_member() -> None:
    scene = stable("a")
    scene.member_id_required(5_000, "ghost", session_ms=6_000)
    scene.heartbeats(6_000, 20_000, "a")
    scene.tick(20_000)
    known = scene.known()
    assert known.alive() == {"a"}
    assert known.observer.group("g").pending == {}  # type: ignore[union-attr]


def test_the_same_lines_twice_say_nothing_twice() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a")
    scene.tick(20_000)
    once = scene.known()
    scene.events += scene.events[:-1]
    twice = scene.known()
    assert twice.rows["transitions"] == once.rows["transitions"]
    assert twice.rows["members"] == once.rows["members"]


def test_events_that_were_sent_and_did_not_arrive_are_a_gap() -> None:
    """A tick counts what was sent to the lane since the one before; fewer arrived: nobody expires in between."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 7_000, "a", "b")
    scene.tick(7_000, sent=6)
    scene.heartbeats(9_000, 20_000, "a")
    scene.tick(20_000, sent=9)
    known = scene.known()
    assert known.ended() == {}
    assert sum(row["gaps"] for row in named("progress", known.rows["progress"])) == 1


def test_a_record_of_the_group_shows_that_the_broker_was_alive_when_nothing_else_was_logged() -> None:
    """Everybody is dead and the request log has ended; the empty record is written by the coordinator that evicted."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(7_000, "b")
    scene.empty_record(17_001, 2)
    scene.tick(30_000, last_line=7_000)
    known = scene.known()
    assert known.ended() == {"a": (16_000, "session_expired", "exact"), "b": (17_000, "session_expired", "exact")}
    assert known.states()[-1][1] == "Empty"


def test_a_timeout_is_predicted_from_silence_alone_even_where_nothing_else_is_logged() -> None:
    """The eviction itself waits for a sign of life of the broker; the deadline is known without it."""
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.tick(30_000, last_line=6_000)
    known = scene.known()
    assert known.ended() == {}
    assert known.predictions() == [("a", "session", "open")]


def test_who_leaves_right_after_a_join_phase_begins_a_rebalance_of_its_own_though_the_next_answers_come_at_once() -> (
    None
):
    """The next generation is answered before the last one is settled; each has its own row, and every instant is one.
    Found by the simulated fleet."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0})
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 9_001, "a", "b")
    scene.leave(9_999, "b")
    scene.joined(10_000, 2, {"a": 9_500.0, "b": 9_600.0})
    scene.joined(10_012, 3, {"a": 10_010.0})
    scene.synced(10_020, "a")
    scene.tick(12_000)
    known = scene.known()
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2, 3]
    assert all(at >= 0 for at, _ in known.states())
    assert known.ended()["b"][1] == "left"


def test_who_has_just_joined_is_not_late() -> None:
    """Its first requests came within milliseconds of each other, which is no habit; a second of silence is none yet."""
    scene = stable("a")
    for at in (6_000, 6_010, 6_020):
        scene.heartbeat(at, "a")
    scene.tick(6_900)
    observer = Observer(ObserverSettings("test", health_sample_ms=100.0, sample_within_ms=100.0))
    rows = named("health", observer.step(scene.events)["health"])
    assert any(row["session_timeout_ms"] is not None for row in rows)
    assert {row["status"] for row in rows if row["session_timeout_ms"] is not None} == {"ok"}
