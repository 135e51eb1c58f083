"""A rolling restart is one story; what looks like one and is none keeps its steps."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.rollouts import STEP_MAX_MS, UNEVEN_MAX, Life, Step, rollouts
from kardia.story import explain, why
from tests.story.rows import T, life, material, rebalance

Lives = list[dict[str, Any]]


def rolled(pause_ms: int = 10_000, count: int = 3) -> tuple[Lives, Lives]:
    """Lives and rebalances of a group whose members are restarted one after another: each leaves, its heir comes."""
    lives, rebalances = [], []
    for number in range(count):
        at = 60_000 + number * 2 * pause_ms
        lives += [life(f"old-{number}", 0, at, "left"), life(f"new-{number}", at + pause_ms)]
        rebalances.append(rebalance(at, at + 2_000, "member_left", f"old-{number}", member_seconds_lost=4))
        rebalances.append(rebalance(at + pause_ms, at + pause_ms + 3_000, "member_joined", f"new-{number}"))
    return sorted(lives, key=lambda one: int(one["joined_at_ms"])), rebalances


def told(lives: Lives, rebalances: Lives, **asked: Any) -> list[str]:
    return [one.text for one in explain(material(lives=lives, rebalances=rebalances), **asked).sentences]


def test_a_rolling_restart_is_told_as_one() -> None:
    texts = told(*rolled())
    (whole,) = [text for text in texts if "rolling restart" in text]
    assert "took 53 s and 6 rebalances, the longest 3 s. 3 members left (old-0, old-1 and old-2)" in whole
    assert "3 members came in their place (new-0, new-1 and new-2) and stayed" in whole
    assert "stayed. Nobody was evicted. Members had no partitions for 12 s in sum." in whole
    assert not any("A rebalance began" in text for text in texts), "its steps are not told again"
    assert not any("new-1 joined" in text for text in texts)
    assert "old-0, old-1 and old-2 were first seen here, members already." in texts, "how they came is another story"


@pytest.mark.parametrize("at_ms", [-45_000, 190_000], ids=["before it", "after it"])
def test_who_comes_for_another_reason_is_no_part_of_it(at_ms: int) -> None:
    """Two minutes and six rebalances were told of a roll-out of seventeen seconds and five: another one had joined."""
    lives, rebalances = rolled()
    lives.append(life("another", 60_000 + at_ms))
    rebalances.append(rebalance(60_000 + at_ms, 62_000 + at_ms, "member_joined", "another"))
    lives.sort(key=lambda one: int(one["joined_at_ms"]))
    rebalances.sort(key=lambda one: int(one["started_at_ms"]))
    texts = told(lives, rebalances)
    (whole,) = [text for text in texts if "rolling restart" in text]
    assert "took 53 s and 6 rebalances, the longest 3 s. 3 members left" in whole
    assert "and 6 rebalances" in whole
    assert "another" not in whole
    assert any("another" in text and "joined" in text for text in texts), "it has its own sentence"


def test_with_a_surge_the_first_heir_comes_before_anybody_goes() -> None:
    steps, lives = [], []
    for number in range(3):
        at = 60_000 + number * 20_000
        lives += [Life(f"old-{number}", 0, at + 10_000, "left"), Life(f"new-{number}", at, None, None)]
        steps.append(Step(at, at + 1_000, "member_joined", f"new-{number}"))
        steps.append(Step(at + 10_000, at + 11_000, "member_left", f"old-{number}"))
    (found,) = rollouts(steps, lives)
    assert (len(found.steps), len(found.gone), len(found.came)) == (6, 3, 3)


def test_a_member_of_it_tells_its_steps() -> None:
    texts = told(*rolled(), member="old-1")
    assert any("old-1 left" in text for text in texts)
    assert not any("rolling restart" in text for text in texts)


def test_of_a_part_of_it_the_whole_is_told_where_the_story_begins() -> None:
    lives, rebalances = rolled()
    texts = told(lives, rebalances, from_ms=T + 75_000)
    assert any(text.startswith("(It began at 08:54:20.000Z.) A rolling restart") for text in texts)
    assert not any("rolling restart" in text for text in told(lives, rebalances, from_ms=T + 120_000))


def test_why_says_that_the_last_rebalance_is_a_step_of_it() -> None:
    lives, rebalances = rolled()
    assert any("rolling restart" in one.text for one in why(material(lives=lives, rebalances=rebalances)).sentences)


def _evicted(by_name: dict[str, Any], _: Lives) -> None:
    by_name["old-1"]["end_cause"] = "session_expired"


def _silent(_: dict[str, Any], rebalances: Lives) -> None:
    rebalances[2]["trigger"] = "session_expired"


def _went_again(by_name: dict[str, Any], _: Lives) -> None:
    by_name["new-0"] |= {"ended_at_ms": T + 105_000, "end_cause": "left"}


@pytest.mark.parametrize("change", [_evicted, _silent, _went_again])
def test_what_is_none_keeps_its_steps(change: Any) -> None:
    lives, rebalances = rolled()
    change({one["member_id"]: one for one in lives}, rebalances)
    texts = told(lives, rebalances)
    assert not any("rolling restart, as a roll-out makes it, took 53 s" in text for text in texts)
    assert any("A rebalance began" in text for text in texts)


def test_a_crash_loop_is_no_roll_out() -> None:
    """One client comes and goes: of before nobody went but the first."""
    steps, lives = [], [Life("0", 0, 60_000, "left"), Life("other", 0, None, None)]
    for number in range(1, 6):
        at = 60_000 + number * 10_000
        lives.append(Life(str(number), at, at + 5_000, "left"))
        steps += [Step(at, at + 1_000, "member_joined", str(number)), Step(at + 5_000, at + 6_000, "member_left", None)]
    assert rollouts(steps, lives) == []


def test_a_group_that_grows_or_shrinks_is_not_restarted() -> None:
    joins = [Step(n * 10_000, n * 10_000 + 1_000, "member_joined", str(n)) for n in range(1, 6)]
    assert rollouts(joins, [Life(str(n), n * 10_000, None, None) for n in range(1, 6)]) == []
    leaves = [Step(n * 10_000, n * 10_000 + 1_000, "member_left", str(n)) for n in range(1, 6)]
    assert rollouts(leaves, [Life(str(n), 0, n * 10_000, "left") for n in range(1, 6)]) == []


def test_the_pause_between_two_steps_and_how_uneven_it_may_be_are_bounds() -> None:
    def of(pause_ms: int, came: int) -> int:
        lives = [Life("a", 0, 1_000, "left"), Life("b", 0, 2_000 + pause_ms, "left")]
        lives += [Life(f"n{n}", 1_500, None, None) for n in range(came)]
        steps = [Step(1_000, 2_000, "member_left", "a"), Step(2_000 + pause_ms, 3_000 + pause_ms, "member_left", "b")]
        return len(rollouts(steps, lives))

    assert [of(STEP_MAX_MS + late, 2) for late in (-1, 0, 1)] == [1, 1, 0]
    assert [of(1_000, came) for came in (1 - UNEVEN_MAX, 1, 2 + UNEVEN_MAX, 3 + UNEVEN_MAX)] == [0, 1, 1, 0]
