"""One law: the tables of `kardia live` are those of a replay and of the job, whatever kills it, in any number of lanes.

Method: stories of real brokers are written line by line at a virtual clock while the process follows them. Its records
are stepped once more as the job steps them, in other cuts; and the whole logs are replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ingest.wire.batches import format_of
from kardia.observe import ObserverSettings
from kardia.tables import TABLES, Row
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay
from spark_jobs.schemas import to_tables
from tests.live.living import CLUSTER, Killed, Living
from tests.spark_jobs.support import rows
from tests.support.stories import Story

STORIES = ("c04_mpi-4.1.2", "k05_leave-4.4.0")

FACTS = ("transitions", "rebalances", "members", "predictions", "rejected", "disagreements")
"""Tables whose rows do not depend on how the events came. Samples of health do, and `progress` is counted by batch."""

FACTORY = ObserverFactory(ObserverSettings(cluster_id=CLUSTER))


def facts_in(tables: Path) -> dict[str, Counter[str]]:
    return {name: _counted(rows(tables, name)) for name in FACTS}


def _counted(found: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(repr([(name, value) for name, value in row.items() if name != "batch_id"]) for row in found)


def ledger_of(tables: Path) -> dict[tuple[int, str], dict[str, int]]:
    """Lane and source -> counts and reach, added up over all batches."""
    found: dict[tuple[int, str], dict[str, int]] = {}
    for row in rows(tables, "progress"):
        place = found.setdefault((row["lane"], row["source"]), Counter())
        for name in ("events", "lines", "ignored", "rejected", "gaps", "divergences", "not_modelled"):
            place[name] += row[name]
        place["complete_to_ms"] = max(place["complete_to_ms"], row["complete_to_ms"])
    return found


def lived(directory: Path, name: str, lanes: int = 6) -> Living:
    """A story from its begin to its end without a kill."""
    directory.mkdir(exist_ok=True)
    living = Living(directory, name, lanes)
    with living.alive() as running:
        living.to_the_end(running)
    return living


def by_the_job(records: dict[int, list[bytes]], each: int) -> dict[str, Counter[str]]:
    """Rows of the same records as the job steps them, so many in a batch."""
    return stepped({lane: [data[at : at + each] for at in range(0, len(data), each)] for lane, data in records.items()})


def stepped(steps: Mapping[int, Sequence[Sequence[bytes]]]) -> dict[str, Counter[str]]:
    """Rows of these records in these steps, of lanes that nothing interrupts."""
    found: dict[str, list[Row]] = {name: [] for name in FACTS}
    for number, of_lane in steps.items():
        lane = Lane(FACTORY, "t", number, len(steps), cluster=CLUSTER)
        for values in of_lane:
            offset = max(0, lane.next_offset)
            some = [Record(offset + place, 0, format_of(one).encode(), one) for place, one in enumerate(values)]
            for name, told in lane.step(some).items():
                if name in found:
                    found[name] += told
    written = to_tables(found, 0)
    return {name: _counted(written[name].to_pylist() if name in written else []) for name in FACTS}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Living]:
    home = tmp_path_factory.mktemp("undisturbed")
    return {name: lived(home / name, name) for name in STORIES}


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("each", [1, 7, 10_000])
def test_the_job_tells_the_same_of_the_same_records(undisturbed: dict[str, Living], name: str, each: int) -> None:
    living = undisturbed[name]
    assert facts_in(living.settings.tables) == by_the_job(living.records, each)


@pytest.mark.parametrize("name", STORIES)
def test_a_replay_of_the_logs_tells_the_same(undisturbed: dict[str, Living], name: str, tmp_path: Path) -> None:
    living = undisturbed[name]
    folder = Story(name).folder
    replay(Inputs([folder / "kafka-request.log.gz"], [folder / "server.log.gz"]), tmp_path / "replayed", FACTORY)
    ends_at_ms = living.growing.ends_at_ms
    told, replayed = facts_in(living.settings.tables), facts_in(tmp_path / "replayed")
    for table in FACTS:
        if "known_at_ms" in TABLES[table].names:
            late = {row for row in told[table] if known_at(row) > ends_at_ms}
            told[table] = Counter({row: count for row, count in told[table].items() if row not in late})
        assert told[table] == replayed[table], table


def known_at(row: str) -> int:
    return int(row.partition("('known_at_ms', ")[2].partition(")")[0])


@pytest.mark.parametrize("name", STORIES)
def test_one_lane_tells_what_six_do(undisturbed: dict[str, Living], name: str, tmp_path: Path) -> None:
    one = lived(tmp_path / "one", name, lanes=1)
    assert facts_in(one.settings.tables) == facts_in(undisturbed[name].settings.tables)


STEPS = (
    "file:before",
    "file:written",
    "batch:before",
    "transitions:before",
    "transitions:written",
    "members:written",
    "health:written",
    "progress:before",
    "progress:written",
    "batch:written",
    "files:forgotten",
)
"""Numbered steps of a batch, of `live.files` and of the writer."""

KILLS = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), min_size=1, max_size=6)
"""At which step, and in how many batches from the start on."""


def killed(directory: Path, name: str, kills: Sequence[tuple[str, int]], rounds: int = 400) -> tuple[Living, list[str]]:
    """A story that was lived with all these deaths, the next after so many `rounds` at most, and at which steps they
    were."""
    living, died = Living(directory, name), list[str]()
    for step, batches in kills:
        first: list[int] = []

        def die(at: str, batch: int, step: str = step, batches: int = batches, first: list[int] = first) -> None:
            first.append(batch)
            if at == step and batch >= first[0] + batches:
                died.append(step)
                raise Killed

        with suppress(Killed), living.alive(die) as running:
            for _ in living.rounds(running, rounds):
                pass
            raise Killed
    with living.alive() as running:
        living.to_the_end(running)
    return living, died


def same(living: Living, whole: Living) -> None:
    assert facts_in(living.settings.tables) == facts_in(whole.settings.tables)
    assert ledger_of(living.settings.tables) == ledger_of(whole.settings.tables)


def test_killed_at_each_step_nothing_is_lost_and_nothing_is_told_twice(
    undisturbed: dict[str, Living], tmp_path: Path
) -> None:
    """One life with a death at every step; first those at tables that get most of their rows at the begin."""
    of_tables = [step for step in STEPS if step.partition(":")[0] in TABLES]
    others = [step for step in STEPS if step not in of_tables]
    kills = [*((step, 0) for step in of_tables), *((step, 2) for step in others)]
    living, died = killed(tmp_path, STORIES[0], kills, rounds=1 << 60)
    assert sorted(died) == sorted(STEPS)
    same(living, undisturbed[STORIES[0]])


@pytest.mark.long
@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.sampled_from(STORIES), KILLS)
def test_killed_at_any_step_nothing_is_lost_and_nothing_is_told_twice(
    undisturbed: dict[str, Living], tmp_path_factory: pytest.TempPathFactory, name: str, kills: list[tuple[str, int]]
) -> None:
    living, _ = killed(tmp_path_factory.mktemp("killed"), name, kills)
    same(living, undisturbed[name])
