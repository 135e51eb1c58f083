"""One law: of a story that one engine began and the other went on with, the tables are those of one that told it all.

Method: a recorded story is written while it is followed. It is told by one process, moved to a collector and the job in
its middle, and moved back; each move is killed at each of its steps and begun again, with the engine before going on
for a while in between, and the collector killed or stopped in order before it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from spark_jobs.checkpoint import checkpoint_directory
from spark_jobs.errors import CheckpointError
from spark_jobs.leases import table_owner
from tests.live.living import Killed, Living
from tests.live.other_engine import Outgrown
from tests.live.test_same_rows import FACTORY, facts_in, ledger_of, lived

STORY = "k05_leave-4.4.0"

STEPS = ("positions:before", "positions:written", "lanes:written", "owner:before", "owner:written")
"""Of a move, in their order."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Living:
    return lived(tmp_path_factory.mktemp("undisturbed") / "one", STORY)


class Death:
    """Kills at a step."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.passed: list[str] = []

    def __call__(self, step: str, batch: int) -> None:  # noqa: ARG002
        self.passed.append(step)
        if step == self.step:
            raise Killed


def begun(directory: Path, rounds: int, begins_at: int = 0, of_process: int = 6, of_topic: int = 6) -> Outgrown:
    """A process that was killed after so many rounds; lanes of the process and of the topic to come."""
    directory.mkdir(exist_ok=True)
    living = Living(directory, STORY, of_process)
    with suppress(Killed), living.alive() as running:
        for _ in living.rounds(running, rounds):
            pass
        raise Killed
    return Outgrown(living, FACTORY, begins_at, of_topic)


def some_rounds(living: Living, rounds: int) -> None:
    """The process goes on, and is killed again."""
    with suppress(Killed), living.alive() as running:
        for _ in living.rounds(running, rounds):
            pass
        raise Killed


def same(told: Outgrown, undisturbed: Living, *, killed: bool) -> None:
    """Rows of all facts, and the counts of every source; a collector that is `killed` says some of its lines twice."""
    tables, whole = told.settings.tables, undisturbed.settings.tables
    assert facts_in(tables) == facts_in(whole)
    ledger, expected = ledger_of(tables), ledger_of(whole)
    assert ledger.keys() == expected.keys()
    for place, counts in expected.items():
        for name in ("gaps", "not_modelled", "complete_to_ms", *(() if killed else ("events", "lines", "ignored"))):
            assert ledger[place][name] == counts[name], (place, name)


@pytest.mark.parametrize(("step", "goes_on"), [(step, place % 2 == 0) for place, step in enumerate(STEPS)])
def test_killed_at_a_step_and_moved_there_and_back(
    undisturbed: Living, tmp_path: Path, step: str, goes_on: bool
) -> None:
    told = begun(tmp_path / "told", 300, begins_at=7)
    death = Death(step)
    with pytest.raises(Killed):
        told.to_spark(death)
    if step != "owner:written":
        assert table_owner.engine_of(told.settings.tables) == "local"
        if goes_on:
            some_rounds(told.living, 60)
        told.to_spark()
    else:
        told.batch = told._generation().generation.first_batch - 1
    assert table_owner.engine_of(told.settings.tables) == "spark"
    with pytest.raises(CheckpointError, match=r"belong to `kardia stream`.*Next: .*`kardia move --to local`"):
        some_rounds(told.living, 1)
    told.collect(250, killed=goes_on)
    with pytest.raises(Killed):
        told.to_local(Death(step))
    if step != "owner:written":
        assert table_owner.engine_of(told.settings.tables) == "spark"
        if goes_on:
            told.collect(60)
        told.to_local()
    with pytest.raises(CheckpointError, match=r"belong to `kardia live`.*Next: .*`kardia move --to spark`"):
        told.job()
    with told.living.alive() as running:
        told.living.to_the_end(running)
    same(told, undisturbed, killed=goes_on)


def test_every_step_is_a_step_of_both_moves(tmp_path: Path) -> None:
    told = begun(tmp_path / "told", 100)
    there, back = Death("none"), Death("none")
    told.to_spark(there)
    told.collect(30)
    told.to_local(back)
    for passed in (there.passed, back.passed):
        assert [step for step in passed if step in STEPS] == list(STEPS)


def test_the_job_can_end_what_one_process_began(undisturbed: Living, tmp_path: Path) -> None:
    """Moved three times, so that each engine has old state of its own to pass over."""
    told = begun(tmp_path / "told", 200)
    told.to_spark()
    told.collect(150)
    told.to_local()
    some_rounds(told.living, 150)
    told.to_spark()
    told.collect(beyond=60)
    same(told, undisturbed, killed=False)


def test_one_lane_becomes_as_many_as_the_topic_has(undisturbed: Living, tmp_path: Path) -> None:
    """One process has one, if nobody says otherwise, and a topic six; back, there are as many as there were there."""
    told = begun(tmp_path / "told", 300, begins_at=3, of_process=1)
    told.to_spark()
    told.collect(250)
    told.to_local()
    with told.living.alive() as running:
        assert len(running.engine.next_offsets()) == 6
        told.living.to_the_end(running)
    assert facts_in(told.settings.tables) == facts_in(undisturbed.settings.tables)


def test_first_moved_from_the_job_it_is_written_down_whose_the_tables_were(tmp_path: Path) -> None:
    """Before there is state of both, of tables that nobody has ever moved."""
    told = begun(tmp_path / "told", 100)
    told.to_spark()
    told.collect(30)
    (told.settings.tables / table_owner.FILE).unlink()
    (told.settings.folder / table_owner.GENERATION).unlink()
    with pytest.raises(Killed):
        told.to_local(Death("owner:before"))
    assert table_owner.engine_of(told.settings.tables) == "spark", "its state is there, the move is not done"
    told.job()
    told.to_local()
    assert table_owner.engine_of(told.settings.tables) == "local"


def test_state_of_another_cluster_is_not_replaced(tmp_path: Path) -> None:
    told = begun(tmp_path / "told", 60)
    told.to_spark()
    directory = told.checkpoint / "live"
    found = checkpoint_directory.load(directory)
    assert found is not None
    told.to_local()
    other = msgspec.structs.replace(found.agreement, cluster="other")
    checkpoint_directory.save(directory, msgspec.structs.replace(found, agreement=other))
    with pytest.raises(CheckpointError, match="the state is of the cluster 'other'"):
        told.to_spark()


def test_a_file_that_says_whose_they_are_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / table_owner.FILE).write_text('{"version": 1, "engine": "sp')
    with pytest.raises(CheckpointError, match="which engine the tables belong to cannot be read"):
        table_owner.check(tmp_path, table_owner.SPARK)
