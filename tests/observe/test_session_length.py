"""How long a session of a newer protocol is, where no configuration was asked for: learned from an eviction, told by
the start lines of a broker, borrowed from another group, or not known.

Instants in ms from the start of a scene. Members a and b are settled at epoch 2; b was last heard at 4,100 and a at
4,200. Sessions are 10 s.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import ALL_SHARDS, shard_of
from kardia.observe import Observer, lanes
from kardia.observe.modern import session_length
from tests.observe.test_epoch_lines import EXPIRED, line
from tests.support.modern_scene import ModernScene, both, health, pair, since_start
from tests.support.scene import START, Known
from tests.support.stories import named

SAME_SHARD = "g13"
"""Another group of the shard of g, and one of another shard."""
OTHER_SHARD = "h"


def predictions(known: Known) -> list[dict[str, Any]]:
    return named("predictions", known.rows["predictions"])


def foretold(known: Known, member: str) -> list[tuple[int, int | None, str]]:
    """(Foretold at, deadline, certainty) of each row about the session of a member that is open."""
    rows = [row for row in predictions(known) if (row["member_id"], row["kind"]) == (member, "session")]
    return [
        (since_start(row["predicted_at_ms"]) or 0, since_start(row["deadline_at_ms"]), row["certainty"])
        for row in rows
        if row["outcome"] == "open"
    ]


def shown(known: Known, member: str) -> tuple[int | None, int | None, str]:
    """(Session timeout, deadline, certainty) in the last row of health of a member."""
    row = health(known, member)
    return row["session_timeout_ms"], since_start(row["session_deadline_at_ms"]), row["certainty"]


def slowly(scene: ModernScene, at: float, member: str, *, arrived: float) -> None:
    """A heartbeat that waited for a handler from `arrived` on."""
    scene.beat(at, member, 2)
    event = scene.events[-1]
    scene.events[-1] = event._replace(arrived_at_ms=START + arrived)


def settings_logged(scene: ModernScene, at: float, session_ms: int) -> None:
    """What a broker that starts logs of its settings."""
    line(scene, at, "configured")
    event = scene.events[-1]
    detail = {**(event.detail or {}), "session_ms": {scene.protocol: session_ms}}
    scene.events[-1] = event._replace(shard=ALL_SHARDS, group_id="", detail=detail)


def second_group(scene: ModernScene, group: str, at: float) -> None:
    """A member m of another group, at epoch 1, heard once."""
    scene.group = group
    scene.comes(at, "m", 1, (0,))
    scene.beat(at + 10, "m", 1, owned=(0,))
    scene.events[-2:] = [event._replace(shard=shard_of(group)) for event in scene.events[-2:]]
    scene.group = "g"


def test_the_groups_of_the_scenes_share_a_shard_or_do_not() -> None:
    assert shard_of(SAME_SHARD) == shard_of("g") != shard_of(OTHER_SHARD)


# --- a busy broker


@pytest.mark.parametrize("late_ms", [20, 400])
def test_the_first_eviction_on_a_busy_broker_is_one_and_shows_how_long_a_session_is(late_ms: int) -> None:
    """The last heartbeat of b stood long before it was handled: that puts its deadline in doubt, and no leave."""
    scene = both()
    slowly(scene, 5_000 + late_ms, "b", arrived=5_000)
    scene.beats(6_200, 24_000, 2, "a")
    scene.record_gone(15_003, "b", 3)
    scene.beat(15_300, "a", 2, 3)
    scene.tick(25_000)
    known = scene.known()
    (at, cause, _) = known.ended()["b"]
    assert cause == "session_expired"
    assert abs(at - 15_003) <= late_ms
    assert shown(known, "a")[0] == 10_000


def test_with_a_doubt_of_more_than_a_second_it_shows_no_length() -> None:
    scene = both()
    slowly(scene, 6_500, "b", arrived=5_000)
    scene.beats(6_600, 24_000, 2, "a")
    scene.record_gone(15_003, "b", 3)
    scene.tick(25_000)
    assert shown(scene.known(), "a")[0] is None


# --- server.log


def test_the_line_about_a_fenced_member_teaches_how_long_sessions_are() -> None:
    scene = pair(given_ms=-1)
    scene.beats(6_200, 17_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(17_000)
    assert shown(scene.known(), "a") == (10_000, 26_200, "inferred")


def test_with_records_beside_it_it_teaches_the_same() -> None:
    scene = both()
    scene.beats(6_200, 17_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.record_gone(14_102, "b", 3)
    scene.tick(17_000)
    assert shown(scene.known(), "a")[:2] == (10_000, 26_200)


def test_the_settings_that_a_broker_logs_count_and_are_no_fact_of_a_group() -> None:
    """A group may have a setting of its own."""
    scene = ModernScene(given_ms=-1)
    settings_logged(scene, 100, 10_000)
    scene.comes(1_000, "a", 1, (0,))
    scene.beat(1_010, "a", 1, owned=(0,))
    scene.tick(8_000)
    known = scene.known()
    assert shown(known, "a") == (10_000, 11_010, "inferred")
    assert {(deadline, certainty) for _, deadline, certainty in foretold(known, "a")} <= {
        (11_010, "provisional"),
        (11_010, "inferred"),
    }
    assert foretold(known, "a")


def test_an_eviction_stands_above_what_the_broker_has_logged() -> None:
    scene = pair(given_ms=-1)
    settings_logged(scene, 4_300, 30_000)
    scene.beats(6_200, 17_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(17_000)
    assert shown(scene.known(), "a")[0] == 10_000


def test_who_is_silent_for_longer_and_stays_shows_that_its_group_has_its_own() -> None:
    scene = pair(given_ms=-1)
    settings_logged(scene, 4_300, 10_000)
    scene.beats(6_100, 17_000, 2, "b")
    scene.beat(17_000, "a", 2)
    scene.tick(18_000)
    known = scene.known()
    assert "a" not in known.ended()
    assert shown(known, "a")[:2] == (None, None)


# --- other groups


def test_what_one_group_has_shown_serves_the_others_of_its_shard_provisionally() -> None:
    scene = pair(given_ms=-1)
    second_group(scene, SAME_SHARD, 5_000)
    second_group(scene, OTHER_SHARD, 5_500)
    scene.beats(6_200, 17_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(14_600)
    known = scene.known()
    rows = {row["group_id"]: row for row in named("health", known.rows["health"]) if row["member_id"] == "m"}
    served, other = rows[SAME_SHARD], rows[OTHER_SHARD]
    assert (served["session_timeout_ms"], since_start(served["session_deadline_at_ms"])) == (10_000, 15_010)
    assert served["certainty"] == "provisional"
    assert (other["session_timeout_ms"], other["session_deadline_at_ms"]) == (None, None)


def test_it_ends_nobody_and_is_told_of_no_life() -> None:
    scene = pair(given_ms=-1)
    second_group(scene, SAME_SHARD, 5_000)
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.beats(14_200, 40_000, 2, "a")
    scene.tick(40_000)
    known = scene.known()
    assert "m" not in known.ended()
    assert health(known, "m")["status"] == "overdue"
    assert {
        row["session_timeout_ms"] for row in named("members", known.rows["members"]) if row["member_id"] == "m"
    } == {None}


def test_a_group_that_contradicts_is_served_no_more_nor_is_any_other() -> None:
    scene = pair(given_ms=-1)
    second_group(scene, SAME_SHARD, 5_000)
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.beats(14_200, 40_000, 2, "a")
    scene.group = SAME_SHARD
    scene.beat(30_000, "m", 1)
    scene.group = "g"
    scene.tick(31_000)
    known = scene.known()
    assert shown(known, "m")[:2] == (None, None)
    assert known.observer.shared_session_ms == {str(shard_of("g")): {"consumer": session_length.DIFFERENT}}
    assert shown(known, "a")[0] == 10_000


def test_what_is_shared_goes_with_its_shard_to_other_lanes() -> None:
    scene = pair(given_ms=-1)
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    settings_logged(scene, 14_500, 30_000)
    scene.tick(15_000)
    before = Observer(scene.settings)
    before.step(scene.events)
    kept = Observer.restore(scene.settings, 0, before.snapshot())
    after = lanes.regrouped([kept], scene.settings, 7)
    shared = {str(shard_of("g")): {"consumer": 10_000}}
    assert [one.shared_session_ms for one in after if one.shared_session_ms] == [shared]
    assert all(one.logged_session_ms == {"10.0.0.1:9092": {"consumer": 30_000}} for one in after)


def test_a_state_without_it_is_taken_up() -> None:
    scene = pair(given_ms=-1)
    scene.tick(5_000)
    before = Observer(scene.settings)
    before.step(scene.events)
    state: dict[str, Any] = before.snapshot()
    del state["shared_session_ms"], state["logged_session_ms"]
    assert Observer.restore(scene.settings, 0, state).shared_session_ms == {}


# --- what whoever reads the logs has seen of any group


def shown_in_a_tick(scene: ModernScene, at: float, session_ms: int) -> None:
    """What the tick of a collector says of an eviction in another lane."""
    scene.tick(at)
    event = scene.events[-1]
    sign = {"session_shown": [[scene.protocol, session_ms, START + at]]}
    scene.events[-1] = event._replace(detail={**(event.detail or {}), **sign})


def test_it_serves_groups_of_which_nothing_else_says_it_provisionally() -> None:
    scene = pair(given_ms=-1)
    shown_in_a_tick(scene, 5_000, 10_000)
    scene.tick(6_000)
    known = scene.known()
    assert shown(known, "b") == (10_000, 14_100, "provisional")
    assert {row["session_timeout_ms"] for row in named("members", known.rows["members"])} == {None}
    scene.tick(20_000)
    assert "b" not in scene.known().ended(), "it ends nobody"


def test_what_a_group_has_shown_of_itself_stands_above_it() -> None:
    scene = pair(given_ms=-1)
    shown_in_a_tick(scene, 5_000, 30_000)
    scene.beats(6_200, 17_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(17_000)
    assert shown(scene.known(), "a") == (10_000, 26_200, "inferred")


def test_it_ends_when_two_have_contradicted_each_other() -> None:
    scene = pair(given_ms=-1)
    shown_in_a_tick(scene, 5_000, 10_000)
    shown_in_a_tick(scene, 6_000, session_length.DIFFERENT)
    scene.tick(7_000)
    assert shown(scene.known(), "b")[:2] == (None, None)


def test_a_group_that_contradicts_it_ends_it_for_its_own_shard() -> None:
    """By shard, so that it is the same in any number of lanes."""
    scene = pair(given_ms=-1)
    second_group(scene, SAME_SHARD, 5_000)
    second_group(scene, OTHER_SHARD, 5_500)
    shown_in_a_tick(scene, 6_000, 10_000)
    scene.beats(6_200, 19_000, 2, "a")
    scene.beat(18_500, "b", 2)
    scene.tick(19_000)
    known = scene.known()
    rows = {row["group_id"]: row for row in named("health", known.rows["health"]) if row["member_id"] == "m"}
    assert rows[SAME_SHARD]["session_timeout_ms"] is None
    assert (rows[OTHER_SHARD]["session_timeout_ms"], rows[OTHER_SHARD]["status"]) == (10_000, "overdue")


def test_it_goes_to_all_lanes_and_is_kept() -> None:
    scene = pair(given_ms=-1)
    shown_in_a_tick(scene, 5_000, 10_000)
    scene.tick(6_000)
    before = Observer(scene.settings)
    before.step(scene.events)
    kept = Observer.restore(scene.settings, 0, before.snapshot())
    told = {"10.0.0.1:9092": {"consumer": 10_000}}
    assert [one.shown_session_ms for one in lanes.regrouped([kept], scene.settings, 3)] == [told] * 3


# --- nothing says it


def test_who_misses_its_heartbeats_is_foretold_without_a_deadline_that_nothing_says() -> None:
    scene = pair(given_ms=-1)
    scene.beats(6_200, 10_000, 2, "a")
    scene.tick(10_000)
    known = scene.known()
    assert foretold(known, "b") == [(9_100, None, "provisional")]
    row = health(known, "b")
    assert (row["session_timeout_ms"], row["session_deadline_at_ms"], row["status"]) == (None, None, "late")
    assert "how long that is, is not known" in row["reasons"][0]
    assert foretold(known, "a") == []


def test_when_it_is_learned_the_deadline_is_said() -> None:
    scene = pair(given_ms=-1)
    scene.tick(14_000)
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(14_150)
    assert foretold(scene.known(), "a")[-1][:2] == (9_200, 14_200)


def test_it_came_true_without_an_error_that_could_be_told() -> None:
    scene = pair(given_ms=-1)
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(15_000)
    (row,) = [row for row in predictions(scene.known()) if row["outcome"] == "came_true"]
    assert (row["member_id"], row["deadline_at_ms"], row["error_ms"], row["lead_ms"]) == ("b", None, None, 5_002)


def test_who_is_killed_before_its_first_heartbeat_is_foretold() -> None:
    """The answer to its join says how often a heartbeat is wanted."""
    scene = ModernScene(given_ms=-1)
    scene.comes(1_000, "a", 1, (0,))
    scene.tick(7_000)
    assert foretold(scene.known(), "a") == [(6_000, None, "provisional")]


def test_who_is_heard_again_was_foretold_in_vain() -> None:
    scene = pair(given_ms=-1)
    scene.beats(6_200, 12_000, 2, "a")
    scene.beat(10_000, "b", 2)
    scene.tick(12_000)
    rows = [row for row in predictions(scene.known()) if row["outcome"] == "averted"]
    assert [(row["member_id"], since_start(row["outcome_at_ms"])) for row in rows] == [("b", 10_000)]
