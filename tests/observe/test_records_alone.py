"""Groups that `__consumer_offsets` alone tells of, as a collector sends it: records in pieces, and now and then up to
when all have been read.

Instants in ms from the start of a scene; nothing is read of any log.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Kind
from kardia.observe import Observer
from tests.support.modern_scene import STABLE, UNRELEASED, UNREVOKED, ModernScene, since_start
from tests.support.scene import START
from tests.support.stories import named


class Topic(ModernScene):
    """The topic as its reader sends it."""

    def stored(self, at: float, generation: int, *members: str) -> None:
        """The record of a classic group."""
        entries = [[name, "", name, "10.0.0.1", 10_000, 60_000, []] for name in members]
        said: dict[str, Any] = {
            "tombstone": False,
            "protocol_type": "consumer",
            "generation": generation,
            "protocol_name": "range",
            "leader": members[0] if members else "",
            "state_at_ms": int(START + at),
            "members": entries,
        }
        self._from_topic(Kind.GROUP_RECORD, at, said, generation)

    def buried(self, at: float) -> None:
        """The tombstone of a classic group."""
        self._from_topic(Kind.GROUP_RECORD, at, {"tombstone": True}, -1)

    def read(self) -> Steps:
        """An observer that is fed step by step."""
        return Steps(self)


class Steps:
    """Feeds what a scene has gained since the last step, and tells the rows of it."""

    def __init__(self, scene: Topic) -> None:
        self._scene, self._fed, self._observer = scene, 0, Observer(scene.settings)

    def step(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of a step, by table."""
        events, self._fed = self._scene.events[self._fed :], len(self._scene.events)
        return {name: named(name, rows) for name, rows in self._observer.step(events).items()}


def test_a_rebalance_is_told_a_second_after_it_began_by_the_clock_of_the_records() -> None:
    """Nothing more came of the group, and so nothing was said of it: for ever, if it stayed so."""
    scene = Topic()
    steps = scene.read()
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.record_join(2_000, "b", 2, state=UNRELEASED)
    scene.records_read(2_200)
    assert [row["generation_after"] for row in steps.step()["rebalances"]] == [1]
    scene.records_read(2_400)
    assert "b" in {row["member_id"] for row in steps.step()["members"]}, "the operation is understood a moment later"
    scene.records_read(3_200)
    (row,) = steps.step()["rebalances"]
    assert (row["generation_after"], row["trigger_member_id"], row["completed_at_ms"]) == (2, "b", None)


def test_an_operation_whose_records_come_in_two_pieces_is_one() -> None:
    """The first piece alone says that a member is gone, and not that it came back under another id."""
    scene = Topic()
    steps = scene.read()
    scene.record_join(1_000, "a", 1, (0, 1), instance="i")
    scene.records_read(1_500)
    steps.step()
    for what in ("current", "target", "member"):
        scene.record(5_000, what, "a")
    scene.records_read(4_900)
    early = steps.step()
    scene.record(5_000, "member", "a2", rebalance_timeout_ms=8_000, topics=["t"], instance="i")
    scene.record(5_000, "target", "a2", assigned=[0, 1])
    scene.record_current(5_000, "a2", 1, STABLE, (0, 1))
    scene.records_read(5_600)
    rows = steps.step()
    assert [row["end_cause"] for row in (*early["members"], *rows["members"]) if row["end_cause"]] == [
        "static_replaced"
    ]


def test_a_reader_that_stands_still_does_not_hold_an_operation_back_for_ever() -> None:
    """A log goes on while no record is read any more: what has been read of an operation is all there will be."""
    scene = Topic()
    steps = scene.read()
    scene.comes(500, "z", 1, (0,))
    scene.records_read(600)
    scene.tick(700)
    steps.step()
    scene.record_join(1_000, "a", 2, (1,))
    scene.tick(1_500)
    waits = steps.step()
    assert "a" not in {row["member_id"] for row in waits["members"]}
    scene.tick(6_000)
    assert "a" in {row["member_id"] for row in steps.step()["members"]}


def test_a_group_that_changes_its_protocol_has_its_last_generation_and_no_epoch_for_it() -> None:
    """The assignment of generation 2 never came, so that no record has it; the epoch of the conversion does."""
    scene = Topic(version="4.1.2")
    scene.stored(1_000, 1, "a")
    scene.buried(9_000)
    scene.record(9_000, "member", "a", rebalance_timeout_ms=60_000, topics=["t"], classic_session_ms=10_000)
    scene.record(9_000, "epoch", epoch=2)
    scene.record(9_000, "target", "a", assigned=[0, 1])
    scene.record(9_000, "computed", epoch=2)
    scene.record_current(9_000, "a", 2, STABLE, (0, 1))
    scene.record_join(9_000, "b", 3, state=UNRELEASED)
    scene.record_current(10_000, "a", 2, UNREVOKED, (0,), (1,))
    scene.records_read(12_000)
    rows = named("rebalances", scene.known_live().rows["rebalances"])
    began = {(row["generation_before"], since_start(row["started_at_ms"]), row["trigger_member_id"]) for row in rows}
    assert began == {(0, 1_000, None), (2, 9_000, "b")}


def test_what_a_classic_group_was_before_it_had_epochs_bounds_nothing_after_them() -> None:
    """The group of the name that came after it began when its first record says, not when the old one was last told."""
    scene = Topic(version="4.1.2")
    scene.stored(500, 0)
    scene.stored(1_000, 1, "a")
    scene.stored(3_000, 2)
    scene.buried(20_000)
    scene.record_join(20_000, "b", 1, (0, 1))
    scene.record_gone(25_000, "b", 2)
    scene.record(30_000, "computed")
    scene.record(30_000, "epoch")
    scene.stored(30_000, 0)
    scene.stored(30_400, 1, "c")
    scene.records_read(40_000)
    rows = named("rebalances", scene.known_live().rows["rebalances"])
    (last,) = [row for row in rows if row["completed_at_ms"] == int(START + 30_400)]
    assert since_start(last["started_at_ms"]) == 30_000
    assert last["generation_before"] == 0
