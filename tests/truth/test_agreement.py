"""The model agrees with Kafka's own coordinator in random histories, and the comparison would notice if it did not.

Goal: not one difference in 100,000 operations per release (`make truth` plays millions), and nearly every kind of
situation among them; in twice as many every one. Method: `run` plays each release in a process of its own, all side by
side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from kardia.coordinator.classic.behaviour import SWITCHES
from kardia.coordinator.classic.operations import Answer, Heartbeat, Join
from kardia.kafka.releases import JAVA_ONLY, SCALA_ONLY
from tests.truth import canaries, run
from tests.truth.coverage import ABSENT, Cell, judge, rules, universe
from tests.truth.draw import SETTINGS
from tests.truth.histories import Found, text
from tests.truth.lockstep import Disagreement, Followed, Move
from tests.truth.oracle import EVERY_VERSION, VERSIONS
from tests.truth.report import Result, part

OPERATIONS = 100_000

EACH_TIME = (VERSIONS[0], VERSIONS[-1])
"""What `make test` plays: a release of either coordinator."""

UNNOTICED = {
    "sync_is_25_when_empty": "an Empty group has no members, so both orders of checks end with 25",
    "overfull_rebalances_before_arming": "the order shows only where a session and the rebalance of a group that was "
    "loaded over its size end in one instant; `test_rare` notices it",
    "join_phase_ends_once": "its hostile JoinGroups are not drawn; `test_stuck` notices it",
    "offset_records_bring_group": "a group that has nothing but offsets that are gone is seldom loaded before it dies; "
    "`test_rare` notices it",
    "absent_rebalance_timeout_is_session": "few members ask for -1 and live to see the coordinator move; "
    "`test_rare` notices it",
}
"""Rows in which Scala and Java differ and that a short run does not notice."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_either_coordinator_agrees_with_the_model() -> None:
    _holds(EACH_TIME, OPERATIONS, seed=7, missing_max=5)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_releases_agree_and_every_situation_is_met() -> None:
    _holds(EVERY_VERSION, 2 * OPERATIONS, seed=2, missing_max=0)


def _holds(versions: Sequence[str], operations: int, seed: int, missing_max: int) -> None:
    results = run.agree(operations, seed, versions)
    assert [result.version for result in results] == list(versions)
    for result in results:
        verdict = judge(result.counts, result.version)
        assert result.operations >= operations
        assert not result.disagreements, "\n".join(result.disagreements)
        said = f"{result.version}: not reached, and not on the list of what cannot be: {verdict.missing}"
        assert len(verdict.missing) <= missing_max, said
        assert not verdict.impossible, f"{result.version}: on the list of what cannot be reached, but reached"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_mistakes_in_the_model_are_noticed() -> None:
    differences = [name for name, row in SWITCHES.items() if row.spans in (SCALA_ONLY, JAVA_ONLY)]
    names = [*canaries.EVERY, *(name for name in differences if name not in UNNOTICED)]

    caught = run.finish(run.start("4.1.2", "--operations", "20000", "--canaries", *names))

    assert set(caught) == set(names)
    assert {name for name, operations in caught.items() if operations < 0} == set()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_disagreement_is_told_with_a_short_history_and_the_command_that_shows_it_again() -> None:
    process = run.start("4.1.2", "--operations", "3000", "--shrink", "a JoinGroup renews the session")

    told = run.finish(process)["told"]

    assert "session_deadline_at_ms: Kafka " in told
    assert "Again: python -m tests.truth.run --version 4.1.2 --seed 1 --history " in told
    assert told.count(" ms  ") <= 8


def test_cells_of_the_list_are_in_the_universe_and_no_rule_is_idle() -> None:
    cells = universe()
    assert len(cells) == len(set(cells))
    for rule in rules():
        assert rule.reason.endswith(".")
        assert any(rule.covers(cell, version) for cell in cells for version in EVERY_VERSION), rule


def test_a_cell_that_is_missing_or_impossible_is_told() -> None:
    nothing = judge(Counter(), "4.4.0")
    assert Cell("Stable", "Heartbeat", "leader", "0") in nothing.missing
    assert Cell(ABSENT, "Heartbeat", "stranger", "0") not in nothing.missing

    wrong = Cell(ABSENT, "Heartbeat", "stranger", "0")
    assert list(judge(Counter({wrong: 1}), "4.4.0").impossible) == [wrong]


def test_the_page_depends_on_nothing_but_the_counts() -> None:
    counts = Counter({Cell("Stable", "Heartbeat", "leader", "0"): 5})
    slow = Result("4.4.0", 1, 5, 1, 9.0, (), counts)
    assert part([slow]) == part([slow._replace(seconds=1.0)])
    assert "| Heartbeat | 0: 5 |" in part([slow])


def test_a_history_reads_without_random_ids() -> None:
    new_id = "c1-8d3cbcf0-1c7b-4d24-a7df-a8e27f379de3"
    join = Join(1, 4, "g", "", None, "c1", "/10.0.0.1", 10_000, 10_000, "consumer", (), None, new_id)
    beat = Heartbeat(2, 3, "g", 1, new_id, None)
    start_ms = SETTINGS[0].started_at_ms
    moves = [Move(start_ms + 5, True, join), Move(start_ms + 7, False, beat)]
    found = Found(3, 4, SETTINGS[0], moves, (0, 9), Disagreement(start_ms + 7, "Heartbeat 2", "answers: ..."))

    told = text(found, "4.4.0")

    assert new_id not in told
    assert "member_id='c1#1'" in told
    assert "(before timers of this ms)" in told
    assert "--seed 3 --history 4 --keep 0,9" in told


def test_the_referee_tells_each_group_its_own_tie() -> None:
    """Two groups complete a join phase in one instant; each has two protocols with equally many votes."""
    followed = Followed()
    followed.asked = {1: "g", 2: "h"}
    followed.answers = [Answer(1, 5, 0, protocol_name="range"), Answer(2, 5, 0, protocol_name="sticky")]
    assert followed.protocol("h", ("range", "sticky")) == "sticky"
    assert followed.protocol("g", ("range", "sticky")) == "range"
