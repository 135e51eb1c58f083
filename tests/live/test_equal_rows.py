"""One law, at large: rows of `kardia live`, killed at times, are those of lanes that nothing stops, and of a replay.

Method: recorded stories, of one broker and of three, and a simulated fleet, whose logs are written line by line at a
virtual clock while the process follows them. It is killed several times on the way. Then its records are stepped once
more as the job steps them, and the whole logs are replayed. A handful always, all stories and a thousand groups with
`-m long`.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.replay.run import Inputs, replay
from tests.live.living import REQUESTS, SERVER, Killed, Living, Logs, logs_of_a_run
from tests.live.test_same_rows import FACTORY, FACTS, facts_in, stepped
from tests.spark_jobs.support import rows
from tests.support.stories import CORPORA
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS

KILLS = 3

ALL = tuple(sorted(path.parent.name for path in CORPORA.glob("*/meta.json")))

FEW = ("c18_libs-4.1.2", "k11_migration-4.1.2", "o05_leave-2.0.1")
"""Of libraries of three languages; of a group that changes its protocol; of a request log that is text."""

LAST_MS = 1_000
"""What is known so shortly before the end of a log depends on the next tick, which a replay has not."""

SURE = ("certainty", "fault", "fault_certainty", "fault_signs")
"""Columns that say how sure a row is. While a log is silent, a collector that reads it has ticks: a replay has not."""

FORETOLD = "predictions"
"""Table of what was foretold. What turned out otherwise is not compared with a replay where logs are silent or late: a
process that follows them foretells what a replay, which has the lines that come a moment later, does not."""

SILENT = frozenset(
    {
        *("c18_libs-4.1.2", "d01_kill_long-3.9.2", "d02_kill_short-4.4.0", "d03_stand_still-3.9.2"),
        *("d03_stand_still-4.4.0", "d04_asleep-3.9.2", "d04_asleep-4.4.0", "d05_three_stand_still-3.9.2"),
        "drawn-10-4.2.1",
    }
)
"""Stories in whose logs nothing is written for a while."""

BUSY = frozenset(
    {
        *("d01_kill_long-4.4.0", "d02_kill_short-3.9.2", "d03_coordkill_classic-3.9.2"),
        *("d03_coordkill_modern-4.2.1", "d04_broker_frozen-4.4.0", "drawn-2-4.4.0", "e06_breaks-4.4.0"),
        *("e08_restarts-4.3.1", "n01_broker_kill-3.9.2", "o01_kill-2.7.2", "s01_share-4.1.2"),
    }
)
"""Stories, most of them of brokers that were starved, frozen or killed, in which some rows depend on what comes first:
two logs come in another order to a replay, and an instant, a cause or a row that is provisional differs by it. What is
compared is who was a member, how that ended, and which generations there were."""

LATE = frozenset({"d01_busy_s202-3.9.2", "outages"})
"""A story and a scenario in which lines come so late that a replay has other lives of some members."""

GROUPS = 65
"""Of one run of the fleet."""

STARVED = frozenset({"starved", "restarts", "failover", "stops", "stalls", "stalls with records", "moves"})
"""Scenarios like those stories."""

FLEETS = tuple(
    (scenario, ("3.9.2", "4.1.2", "4.4.0")[place % 3], place)
    for place, scenario in enumerate(
        one for one in SCENARIOS.values() if not one.loses and not one.asleep and not one.protocol and one.requests
    )
)
"""Scenario, release and seed; together more than a thousand groups."""


def restarted(directory: Path, told: str | Logs, seed: str) -> Living:
    """Lived from begin to end, and killed on the way, in the middle of whatever it does."""
    living, chance = Living(directory, told), random.Random(seed)
    rounds = int((living.growing.ends_at_ms - living.growing.begins_at_ms) / 1000 * 20 / (KILLS + 1))
    for _ in range(KILLS):
        with suppress(Killed), living.alive() as running:
            for _ in living.rounds(running, chance.randrange(1, max(2, rounds))):
                pass
            raise Killed
    with living.alive() as running:
        living.to_the_end(running)
    return living


def replayed(living: Living, directory: Path) -> Path:
    """Tables of the whole logs."""
    requests, servers = ([Path(path) for path in living.growing.named(name)] for name in (REQUESTS, SERVER))
    replay(Inputs(requests, servers, zone=living.settings.log_timezone), directory / "replayed", FACTORY, workers=1)
    return directory / "replayed"


def known(tables: Path, before_ms: float, *, silent: bool) -> dict[str, Counter[str]]:
    """Rows of all facts that were known by an instant; of `silent` logs without what depends on ticks."""
    left_out = ("batch_id", *SURE) if silent else ("batch_id",)

    def counts(name: str, row: dict[str, Any]) -> bool:
        foretold_in_vain = silent and name == FORETOLD and row["outcome"] != "came_true"
        return not foretold_in_vain and ("known_at_ms" not in row or row["known_at_ms"] <= before_ms)

    return {
        name: Counter(
            repr([(column, value) for column, value in row.items() if column not in left_out])
            for row in rows(tables, name)
            if counts(name, row)
        )
        for name in FACTS
    }


def outlines(tables: Path, before_ms: float) -> dict[str, set[Any]]:
    """Who was a member and how that ended, and which generations there were."""
    found = {name: [row for row in rows(tables, name) if row["known_at_ms"] <= before_ms] for name in FACTS[:3]}
    return {
        "members": {(row["group_id"], row["member_id"], row["end_cause"]) for row in found["members"]},
        "rebalances": {(row["group_id"], row["generation_after"]) for row in found["rebalances"]},
    }


def holds(name: str, living: Living, directory: Path, *, silent: bool, busy: bool) -> None:
    """Both halves of the law; the second as far as it goes for a story of that `name`."""
    tables = living.settings.tables
    assert facts_in(tables) == stepped(living.steps)
    assert rows(tables, "progress")
    if name in LATE:
        return
    other, before_ms = replayed(living, directory), living.growing.ends_at_ms - LAST_MS
    if busy:
        assert outlines(tables, before_ms) == outlines(other, before_ms)
        return
    expected = known(other, before_ms, silent=silent)
    for name, found in known(tables, before_ms, silent=silent).items():
        assert found == expected[name], name


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FEW else pytest.mark.long) for name in ALL])
def test_of_a_recorded_story(name: str, tmp_path: Path) -> None:
    holds(name, restarted(tmp_path, name, name), tmp_path, silent=name in SILENT, busy=name in BUSY)


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "version", "seed"), FLEETS, ids=lambda value: str(getattr(value, "name", value)))
def test_of_a_simulated_fleet(scenario: Any, version: str, seed: int, tmp_path: Path) -> None:
    run = play(version, seed, GROUPS, scenario)
    living = restarted(tmp_path, logs_of_a_run(run), f"{seed}")
    holds(scenario.name, living, tmp_path, silent=True, busy=scenario.name in STARVED)
