"""A group that changes its protocol as a live job reads it: records soon after the lines, their ticks a second behind.

Instants in ms from the start of a scene. Members a and b speak the classic protocol, c the consumer protocol.
"""

from __future__ import annotations

from tests.support.modern_scene import ModernScene, since_start
from tests.support.stories import named, standing

BEHIND_MS = 1_000.0
CLASSIC = {"a": 10_000, "b": 10_000}


def read(scene: ModernScene, at: float) -> None:
    """Everything written so far has been read, and the collector tells how far that is sure."""
    scene.records_read(at - BEHIND_MS)
    scene.tick(at)


def converted() -> ModernScene:
    """A classic group of two that c has made a consumer group; all three have come to epoch 2."""
    scene = ModernScene()
    scene.joined(1_000, 1, {"a": 10, "b": 20}, first=("a", "b"))
    scene.synced(1_010, "a", "b", partitions={"a": 2, "b": 2})
    scene.group_record(1_005, 1, CLASSIC)
    read(scene, 2_500)
    scene.deleted(5_000)
    for member in CLASSIC:
        scene.record(5_000, "member", member, rebalance_timeout_ms=10_000, topics=["t"], classic_session_ms=10_000)
    scene.record(5_000, "epoch", epoch=1)
    for member, owned in (("a", [0, 1]), ("b", [2, 3])):
        scene.record(5_000, "target", member, assigned=owned)
        scene.record(5_000, "current", member, epoch=1, state=0, assigned=owned, revoking=[])
    scene.record_join(5_000, "c", 2, ())
    scene.comes(5_010, "c", 2, since=4_990)
    read(scene, 7_000)
    for member, owned in (("a", [0]), ("b", [2])):
        scene.record_current(7_100, member, 2, 0, owned)
    scene.record_current(7_110, "c", 2, 0, [1, 3])
    scene.beat(7_115, "c", 2, owned=(), assigned=(1, 3))
    for at in range(8_000, 19_000, 1_000):
        scene.generation = 2
        scene.heartbeat(at, "a")
        scene.heartbeat(at, "b")
        scene.beat(at, "c", 2)
        read(scene, at + 200)
    return scene


def test_the_leave_that_makes_it_classic_again_is_known_by_its_heartbeat_whatever_is_read_before_that() -> None:
    scene = converted()
    for member in ("a", "b", "c"):
        for what in ("current", "target", "member"):
            scene.record(20_000, what, member)
    scene.record(20_000, "epoch")
    scene.group_record(20_000, 2, CLASSIC)
    scene.goes(20_015, "c", since=19_990)
    read(scene, 20_100)
    scene.commit(20_180, "a", 7)
    read(scene, 20_300)
    read(scene, 20_600)
    scene.leave(20_700, "b")
    scene.leave(20_800, "a")
    scene.empty_record(20_800, 3)
    for at in range(21_000, 25_000, 400):
        read(scene, at)
    known = scene.known_live()

    ends = {row["member_id"]: row for row in standing("members", known.rows["members"])}
    assert {name: (row["end_cause"], since_start(row["ended_at_ms"])) for name, row in ends.items()} == {
        "c": ("left", 20_000),
        "b": ("left", 20_700),
        "a": ("left", 20_800),
    }
    told = [row["end_cause"] for row in named("members", known.rows["members"]) if row["member_id"] == "c"]
    assert [cause for cause in told if cause is not None] == ["left"], "said once, and not as unknown before"
    last = max(standing("rebalances", known.rows["rebalances"]), key=lambda row: row["generation_after"])
    assert (last["trigger"], last["trigger_member_id"], since_start(last["started_at_ms"])) == (
        "member_left",
        "c",
        20_000,
    )


def test_a_step_that_ends_between_the_records_of_a_conversion_makes_no_deletion() -> None:
    """The first record is read, and a heartbeat of a member, before the others: they were written in one batch."""
    scene = ModernScene()
    scene.joined(1_000, 1, {"a": 10, "b": 20}, first=("a", "b"))
    scene.synced(1_010, "a", "b", partitions={"a": 2, "b": 2})
    scene.group_record(1_005, 1, CLASSIC)
    read(scene, 2_500)
    scene.deleted(5_000)
    scene.heartbeat(5_020, "a")
    read(scene, 5_100)
    for member in CLASSIC:
        scene.record(5_000, "member", member, rebalance_timeout_ms=10_000, topics=["t"], classic_session_ms=10_000)
    scene.record(5_000, "epoch", epoch=1)
    for member, owned in (("a", [0, 1]), ("b", [2, 3])):
        scene.record(5_000, "target", member, assigned=owned)
        scene.record(5_000, "current", member, epoch=1, state=0, assigned=owned, revoking=[])
    scene.record_join(5_000, "c", 2, ())
    scene.comes(5_010, "c", 2, since=4_990)
    for at in range(5_200, 9_000, 400):
        read(scene, at)
    known = scene.known_live()

    told = [(since_start(row["at_ms"]), row["cause"]) for row in named("transitions", known.rows["transitions"])]
    assert "deleted" not in {cause for _, cause in told}
    assert (5_000, "upgraded") in told
    assert known.alive() == {"a", "b", "c"}


def test_what_is_read_may_end_within_a_conversion() -> None:
    scene = ModernScene()
    scene.joined(1_000, 1, {"a": 10, "b": 20}, first=("a", "b"))
    scene.synced(1_010, "a", "b", partitions={"a": 2, "b": 2})
    scene.group_record(1_005, 1, CLASSIC)
    scene.tick(4_990)
    scene.deleted(5_000)
    scene.tick(5_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert known.ended() == {}


def test_a_leave_whose_answer_is_read_late_began_the_rebalance_of_the_group_that_it_made_classic() -> None:
    """Until then nothing says why c is gone; and n, who asked for a member id meanwhile, began nothing."""
    scene = converted()
    for member in ("a", "b", "c"):
        for what in ("current", "target", "member"):
            scene.record(20_000, what, member)
    scene.record(20_000, "epoch")
    scene.group_record(20_000, 2, CLASSIC)
    for at in range(20_100, 23_000, 400):
        read(scene, at)
    scene.goes(23_100, "c", since=19_990)
    scene.joined(23_300, 3, {"a": 23_200, "b": 23_250, "n": 20_030}, first=("n",))
    scene.synced(23_310, "a", "b", "n")
    for at in range(23_400, 27_000, 400):
        read(scene, at)
    last = max(standing("rebalances", scene.known_live().rows["rebalances"]), key=lambda row: row["generation_after"])
    assert (last["trigger"], last["trigger_member_id"], since_start(last["started_at_ms"])) == (
        "member_left",
        "c",
        20_000,
    )


def test_an_epoch_that_a_leave_makes_is_not_sure_before_its_record_while_one_member_could_have_gone_before() -> None:
    """In one millisecond c left, which made it a classic group, and then b. The lines were written the other way
    round, and a step ended between them."""
    scene = converted()
    scene.leave(20_000, "b")
    read(scene, 20_060)
    scene.goes(20_030, "c", since=20_000)
    scene.record_downgraded(20_000, 2, CLASSIC, "c")
    for at in range(20_400, 25_000, 400):
        read(scene, at)
    rows = [row for row in named("transitions", scene.known_live().rows["transitions"]) if row["entity"] == "group"]
    told = [(row["to_state"], row["certainty"]) for row in rows if (since_start(row["at_ms"]) or 0) >= 19_999]
    assert told[:2] == [("Assigning", "provisional"), ("Stable", "exact")]


def test_of_two_that_leave_in_one_instant_the_second_leaves_one_member_less_whichever_line_is_read_first() -> None:
    """The line of b is read before any record; by the records c left first."""
    scene = converted()
    scene.record_join(19_200, "d", 3, ())
    scene.comes(19_210, "d", 3, since=19_200)
    read(scene, 19_500)
    scene.leave(20_000, "b")
    read(scene, 20_060)
    scene.record_gone(20_000, "c", 4)
    scene.record_gone(20_000, "b", 5)
    scene.goes(20_070, "c", since=20_000)
    for at in range(20_400, 25_000, 400):
        read(scene, at)
    rows = standing("rebalances", scene.known_live().rows["rebalances"])
    told = sorted((row["generation_after"], row["trigger_member_id"], row["members_before"]) for row in rows)
    assert told[-2:] == [(4, "c", 4), (5, "b", 3)]
