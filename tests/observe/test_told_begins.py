"""A rebalance that a JoinGroup began, while it lasts: server.log says at once who joins and since when. Beside the
request log, which shows a JoinGroup when it is answered.

Instants in ms from the start of a scene; c joins at 20,000, and everybody is answered at 33,000.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.observe.test_begin_lines import JOINS, LEAVES
from tests.observe.test_scenes import stable
from tests.support.scene import START, Scene
from tests.support.stories import named

C, D = "c-00000000-0000-0000-0000-000000000001", "d-00000000-0000-0000-0000-000000000002"


def joining(*, to: float, told_late: bool = False) -> Scene:
    """Up to `to` of it. `told_late`: its members hear of it before the sentence is read."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a", "b")
    if not told_late:
        scene.prepares(20_002, 1, JOINS.format(C), C)
    scene.heartbeat(21_000, "a", error=27)
    if told_late:
        scene.prepares(20_002, 1, JOINS.format(C), C)
    scene.heartbeat(21_100, "b", error=27)
    scene.tick(to)
    return scene


def under_way(scene: Scene) -> dict[str, Any]:
    """The row of the rebalance as it stands."""
    return named("rebalances", scene.known().rows["rebalances"])[-1]


def states(scene: Scene) -> list[tuple[int, str, str, str]]:
    rows = named("transitions", scene.known().rows["transitions"])
    return [
        (row["at_ms"] - int(START), row["to_state"], row["cause"], row["certainty"])
        for row in rows
        if row["entity"] == "group"
    ]


def test_it_is_told_while_it_lasts_since_when_and_who_joined() -> None:
    row = under_way(joining(to=22_000))
    assert (row["started_at_ms"], row["joined_at_ms"], row["completed_at_ms"]) == (START + 20_002, None, None)
    assert (row["trigger"], row["trigger_member_id"], row["trigger_client_id"]) == ("member_joined", C, "c")
    assert [(one["member_id"], one["client_id"], one["joined"]) for one in row["stragglers"]] == [(C, "c", True)]
    assert states(joining(to=22_000))[-1] == (20_002, "PreparingRebalance", "member_joined", "exact")


def test_it_is_told_where_its_members_had_heard_of_it_before_the_sentence_was_read() -> None:
    row = under_way(joining(to=22_000, told_late=True))
    assert (row["started_at_ms"], row["trigger_member_id"]) == (START + 20_002, C)
    assert states(joining(to=22_000, told_late=True))[-1][:3] == (20_002, "PreparingRebalance", "member_joined")


def test_who_joins_later_is_told_as_well() -> None:
    scene = joining(to=22_000)
    scene._said(24_000, "member_added", -1, D)
    scene.tick(25_000)
    assert [(one["client_id"], one["waited_ms"]) for one in under_way(scene)["stragglers"]] == [("d", 3_998), ("c", 0)]


def test_nobody_is_a_member_before_its_answer_says_so_and_the_row_is_the_same_in_the_end() -> None:
    scene = joining(to=22_000)
    assert {row["member_id"] for row in named("members", scene.known().rows["members"])} == {"a", "b"}
    scene.joined(33_000, 2, {"a": 21_500, "b": 32_900, C: 20_000}, first=(C,))
    scene.synced(33_020, "a", "b", C)
    scene.tick(35_000)
    rows = [row for row in scene.known().rebalances() if row["generation_before"] == 1]
    assert len(rows) == 1
    assert (rows[0]["started_at_ms"], rows[0]["trigger_member_id"], rows[0]["members_after"]) == (START + 20_002, C, 3)
    assert rows[0]["certainty"] == "exact"
    assert rows[0]["stragglers"][0]["member_id"] == "b"


A = "a-00000000-0000-0000-0000-000000000003"
REJOINS = f"Leader {A} re-joining group during Stable; client reason: cached metadata has changed"


@pytest.mark.parametrize("answered", [29_000, 35_000])
def test_who_waits_in_a_join_that_was_told_is_neither_foretold_nor_evicted(answered: int) -> None:
    """The only member rejoins, and its answer takes 9 s, or more than its session: its session does not run meanwhile.
    The log lives, by another group."""
    scene = stable(A)
    scene.heartbeats(6_000, 19_000, A)
    for at in range(6_000, 40_000, 3_000):
        scene.heartbeat(at, "other", group="h", generation=1)
    scene.prepares(20_002, 1, REJOINS, A)
    scene.joined(answered, 2, {A: 20_000})
    scene.synced(answered + 20, A)
    scene.events.sort(key=lambda event: event.logged_at_ms)
    places = dict.fromkeys((event.source for event in scene.events), 0)
    for number, event in enumerate(scene.events):
        scene.events[number] = event._replace(start=places[event.source], end=places[event.source] + 100)
        places[event.source] += 100
    scene.position = places[scene.source]
    scene.tick(answered + 2_000)
    known = scene.known()
    assert [row for row in named("predictions", known.rows["predictions"]) if row["group_id"] == "g"] == []
    assert known.ended() == {}


def test_a_sentence_about_another_generation_begins_nothing() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a", "b")
    scene.prepares(20_002, 7, JOINS.format(C), C)
    scene.tick(20_500)
    assert states(scene)[-1][1] == "Stable"


def test_what_came_to_nothing_is_taken_back() -> None:
    """Another coordinator has loaded the group, which knows nothing of it."""
    scene = joining(to=22_000)
    scene.at_broker(2)
    scene.elected(22_450, 8)
    scene.loaded(22_500)
    scene.heartbeats(23_000, 28_000, "a", "b")
    for broker in (1, 2):
        scene.at_broker(broker)
        scene.tick(28_000)
    known = scene.known()
    rows = [row for row in named("rebalances", known.rows["rebalances"]) if row["generation_before"] == 1]
    assert [row["withdrawn"] for row in rows] == [None, True]


@pytest.mark.parametrize("stamp", [20_000, 20_001, 20_002])
def test_a_row_that_was_written_while_it_lasts_keeps_its_start(stamp: float) -> None:
    """A leave began it, seen to a fraction of a ms; the stamp of the sentence is whole, and may be another one. A row
    is found by its start: two of them would be two rebalances."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a")
    scene.prepares(stamp, 1, LEAVES.format("b"), "b")
    scene.leave(20_001.6, "b")
    scene.heartbeat(21_000, "a", error=27)
    scene._said(22_000, "member_added", -1, D)
    scene.tick(23_000)
    assert under_way(scene)["completed_at_ms"] is None
    scene.joined(24_000, 2, {"a": 23_500, D: 22_000}, first=(D,))
    scene.synced(24_020, "a", D)
    scene.tick(26_000)
    rows = [row for row in scene.known_step_by_step().rebalances() if row["generation_before"] == 1]
    assert [(row["trigger"], row["members_after"], row["withdrawn"]) for row in rows] == [("member_left", 2, None)]
