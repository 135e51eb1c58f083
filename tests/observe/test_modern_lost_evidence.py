"""Groups that have epochs where evidence is lost, comes late, twice, or not at all: nothing is invented.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kardia.observe.modern
from kardia.observe import Observer
from tests.support.modern_scene import (
    STABLE,
    ModernScene,
    both,
    health,
    pair,
    rebalances,
)
from tests.support.scene import START, Known
from tests.support.stories import named
from tests.support.work import Lines

ROOM = Path(kardia.observe.modern.__file__).parent

UNKNOWN_MEMBER, NOT_COORDINATOR = 25, 16


# --- the worst evidence


def test_a_gap_hides_who_was_heard_and_who_has_what() -> None:
    scene = pair()
    scene.gap(5_000, 9_000)
    scene.beats(9_100, 30_000, 2, "a")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {}
    assert (health(known, "b")["status"], health(known, "b")["partitions"]) == ("unknown", None)
    assert (5_000, "Unknown") in known.states()


def test_an_epoch_after_a_gap_is_nobodys_eviction() -> None:
    scene = pair()
    scene.gap(5_000, 20_000)
    scene.beat(20_100, "a", 2, 4, assigned=(0, 1))
    scene.tick(22_000)
    known = scene.known()
    assert known.ended() == {}
    assert rebalances(known)[-1][2] == "unknown"
    assert known.rebalances()[-1]["certainty"] in ("unknown", "inferred", "provisional")


def test_a_broker_that_logs_nothing_evicts_nobody() -> None:
    scene = pair()
    scene.tick(4_300, last_line=4_200)
    for at in range(5_300, 60_000, 1_000):
        scene.tick(at, last_line=4_200)
    known = scene.known()
    assert known.ended() == {}
    assert health(known, "b")["status"] == "overdue"


def test_a_load_begins_every_session_anew() -> None:
    """A coordinator that moved: b ends a session after the load, if it stays silent."""
    scene = pair()
    scene.beat(6_200, "a", 2, error=NOT_COORDINATOR)
    scene.tick(30_000)
    scene.at_broker(2)
    scene.beats(7_000, 17_000, 2, "a")
    scene.beat(17_100, "a", 2, 3, assigned=(0, 1))
    scene.beats(19_000, 30_000, 3, "a")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {"b": (17_000, "session_expired", "provisional")}
    assert (7_000, "Stable") in known.states()


def test_a_second_time_the_same_lines_say_nothing_new() -> None:
    scene = both()
    scene.record_gone(14_101, "b", 3)
    scene.tick(20_000)
    once = scene.known()
    scene.events += scene.events[:-1]
    twice = scene.known()
    assert twice.rows["transitions"] == once.rows["transitions"]
    assert twice.rows["members"] == once.rows["members"]


def test_a_late_timer_is_no_second_eviction() -> None:
    """The tombstone comes 400 ms after the deadline, on a busy broker."""
    scene = pair(given_ms=10_000)
    scene.record_current(6_000, "a", 2, STABLE, (0,))
    scene.beats(6_200, 14_000, 2, "a")
    scene.record_gone(14_500, "b", 3)
    scene.tick(20_000)
    known = scene.known()
    ((at, cause, _),) = [known.ended()["b"]]
    assert (at, cause) == (14_500, "session_expired")
    assert sum(row["cause"] == "session_expired" and row["entity"] == "member" for row in _transitions(known)) == 1


def _transitions(known: Known) -> list[dict[str, Any]]:
    return named("transitions", known.rows["transitions"])


def test_records_that_come_late_correct_what_requests_had_shown() -> None:
    """The topic is read some seconds behind the log: the epoch is there already, and the end has its instant."""
    scene = pair(given_ms=-1, version="4.1.2")
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3, assigned=(0, 1))
    scene.tick(18_000)
    before = len(scene.events)
    scene.record_gone(14_101, "b", 3)
    scene.tick(20_000)
    known = scene._fed([scene.events[:before], scene.events[before:]])
    assert known.alive() == {"a"}
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2, 3]
    assert is_between(known, "b", 14_101)


def is_between(known: Known, member: str, at: float) -> bool:
    """Whether the end of a member was at an instant, by what its row says."""
    rows = [row for row in named("members", known.rows["members"]) if row["member_id"] == member]
    begin = rows[-1]["ended_at_ms"] - START
    return bool(begin <= at <= begin + rows[-1]["at_bound_ms"])


def test_an_answer_25_of_a_member_whose_session_was_over_confirms_it() -> None:
    scene = pair()
    scene.beats(6_100, 14_000, 2, "b")
    scene.beat(15_500, "a", 2, error=UNKNOWN_MEMBER)
    scene.tick(17_000)
    assert scene.known().ended() == {"a": (14_200, "session_expired", "exact")}


def test_an_answer_25_that_nothing_explains_is_an_end_of_which_the_cause_is_unknown() -> None:
    scene = pair(given_ms=-1)
    scene.beat(6_200, "a", 2, error=UNKNOWN_MEMBER)
    scene.tick(8_000)
    known = scene.known()
    assert known.ended()["a"][1:] == ("unknown", "unknown")


def test_a_log_that_is_off_does_not_make_a_leave_an_eviction() -> None:
    """The last line stands at 4,200; b leaves at 20,000, and no line says so."""
    scene = both()
    scene.tick(5_000, last_line=4_200)
    scene.record_gone(20_000, "b", 3)
    for at in range(6_000, 40_000, 1_000):
        scene.tick(at, last_line=4_200)
    known = scene._fed([scene.events])
    assert known.ended().get("b", (0, "unknown", ""))[1] == "unknown"
    assert health(known, "a")["session_timeout_ms"] != 15_800


def test_one_epoch_too_many_is_found_out() -> None:
    """A join that was answered with the epoch there was: from 4.3 on the group may have the next one. It has not."""
    scene = pair()
    scene.comes(5_000, "c", 2)
    scene.beats(6_000, 22_000, 2, "a", "b", "c")
    scene.tick(22_000)
    known = scene.known()
    assert known.observer.groups["g"].generation == 2
    assert known.states()[-1][1] == "Stable"
    assert known.ended() == {}


def test_a_heartbeat_of_a_member_that_is_well_costs_the_same_in_a_large_group() -> None:
    def lines(members: int) -> int:
        scene = ModernScene(given_ms=45_000)
        names = [f"m{number}" for number in range(members)]
        for number, name in enumerate(names):
            scene.comes(1_000 + number, name, number + 1)
        for name in names:
            scene.beat(3_000, name, 1, members)
        scene.beats(5_000, 7_500, members, *names)
        scene.tick(8_000)
        observer = Observer(scene.settings)
        observer.step(scene.events)
        more = ModernScene(given_ms=45_000)
        more.position = scene.position
        more.beats(9_000, 15_000, members, "m0", "m1")
        more.tick(16_000)
        with Lines(ROOM) as counted:
            observer.step(more.events)
        return counted.done

    assert lines(200) <= 1.2 * lines(20)
