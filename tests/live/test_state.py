"""State and tables of one process: what does not belong together is refused with a sentence, a full disk stops the
reading and loses nothing, and an event that cannot be applied is left out alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ingest.tail.positions import SAVE_MS, Positions
from kardia.events import Kind
from kardia.observe import observer
from kardia.tables import LIVE_TABLES
from live.engine import QUIET_SAVE_MS
from live.files import BatchFiles
from live.settings import LiveSettings
from spark_jobs.batch_pacing import SAMPLED
from spark_jobs.errors import CheckpointError, StateError
from tests.live.living import Living
from tests.live.test_same_rows import facts_in, lived
from tests.spark_jobs.support import rows

STORY = "c04_mpi-4.1.2"


def _some(living: Living, rounds: int = 600) -> None:
    with living.alive() as running:
        for _ in living.rounds(running, rounds):
            pass
        assert running.source.stop()
        running.engine.await_tables()


def _changed(living: Living, **changes: Any) -> None:
    living.settings = LiveSettings(**(living.settings.model_dump() | changes))


def _files(living: Living) -> list[Path]:
    return sorted(living.settings.folder.glob("*/batch-*"), key=lambda path: int(path.name.removeprefix("batch-")))


def test_tables_without_their_state_are_refused(tmp_path: Path) -> None:
    living = Living(tmp_path, STORY)
    _some(living)
    shutil.rmtree(living.settings.folder)
    with pytest.raises(CheckpointError, match=r"no state of `kardia live`, but the tables .* hold batches up to \d+"):
        _some(living)


@pytest.mark.parametrize(("name", "changes"), [("cluster", {"cluster": "other"}), ("lanes", {"lanes": 3})])
def test_the_state_of_another_deployment_is_refused(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    living = Living(tmp_path, STORY)
    _some(living, 50)
    _changed(living, **changes)
    with pytest.raises(CheckpointError, match=f"belongs to another deployment: {name} is"):
        _some(living)


def test_a_state_has_its_number_of_lanes(tmp_path: Path) -> None:
    """That of a topic, where the tables came from the job: nobody has to name it."""
    living = Living(tmp_path, STORY, lanes=3)
    _some(living, 50)
    given = living.settings.model_dump(exclude_unset=True)
    del given["lanes"]
    living.settings = LiveSettings(**given)
    with living.alive() as running:
        assert len(running.engine.next_offsets()) == 3
        for _ in living.rounds(running, 50):
            pass
        assert running.source.stop()
        running.engine.await_tables()


def test_tables_and_state_of_two_moments_are_refused(tmp_path: Path) -> None:
    living = Living(tmp_path, STORY)
    _some(living, 300)
    kept = tmp_path / "kept"
    shutil.copytree(living.settings.tables, kept)
    _some(living, 300)
    # The state of before beside the tables of now, and the tables of before beside the state of now.
    state, now = living.settings.folder, tmp_path / "now"
    shutil.move(state, now)
    shutil.copytree(kept / state.name, state)
    with pytest.raises(CheckpointError, match=r"the tables hold batches up to \d+, the state ends at \d+"):
        _some(living)
    shutil.rmtree(living.settings.tables)
    shutil.copytree(kept, living.settings.tables)
    shutil.rmtree(state)
    shutil.move(now, state)
    with pytest.raises(CheckpointError, match=r"the state is at batch \d+, the tables hold batches up to \d+"):
        _some(living)


def test_a_damaged_batch_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    living = Living(tmp_path, STORY)
    _some(living)
    first, *_, last = _files(living)
    whole = last.read_bytes()
    last.write_bytes(whole[:-7])
    with pytest.raises(StateError, match=r"a batch cannot be read: its digest is of something else .*batch-\d+"):
        _some(living)
    last.write_bytes(whole)
    numbers = BatchFiles(first.parent).numbers()
    assert len(numbers) > 2
    missing = first.with_name(f"batch-{numbers[1]}")
    missing.unlink()
    with pytest.raises(StateError, match=f"it is missing .*{missing.name}"):
        _some(living)


def test_files_that_no_lane_needs_are_removed(tmp_path: Path) -> None:
    """A lane that is stepped ten times a second has a base every half minute: what is kept is bounded by that."""
    living = lived(tmp_path, STORY)
    numbers = BatchFiles(_files(living)[0].parent).numbers()
    assert numbers[0] > 0
    assert len(numbers) < numbers[-1]


def test_batches_come_less_often_while_nothing_happens(tmp_path: Path) -> None:
    living = Living(tmp_path, STORY)
    due_ms: dict[int, float] = {}
    """Of each batch how long after the one before it was due, as of the instant at which it was written."""
    with living.alive() as running:
        engine, save = running.engine, running.engine.save

        def noted(positions: Positions) -> None:
            due_ms[len(due_ms)] = engine.save_ms
            save(positions)

        engine.save = noted  # type: ignore[method-assign]
        living.to_the_end(running)
    folder = living.settings.tables
    facts = {row["batch_id"] for name in LIVE_TABLES if name not in SAMPLED for row in rows(folder, name)}
    assert {number for number, ms in due_ms.items() if ms == SAVE_MS} == facts
    assert {ms for number, ms in due_ms.items() if number not in facts} == {QUIET_SAVE_MS}
    assert len(due_ms) < living.growing.lasts_ms / SAVE_MS


def test_a_full_disk_stops_the_reading_and_loses_nothing(tmp_path: Path) -> None:
    whole = lived(tmp_path / "whole", STORY)
    (tmp_path / "full").mkdir()
    living = Living(tmp_path / "full", STORY)
    with living.alive() as running:
        for _ in living.rounds(running, 400):
            pass
        last = _files(living)[-1]
        number = int(last.name.removeprefix("batch-"))
        obstacles = [last.with_name(f"batch-{number + more}.new") for more in range(1, 4)]
        for obstacle in obstacles:
            obstacle.mkdir()
        for _ in living.rounds(running, 200):
            pass
        assert any("positions cannot be saved" in said for said in living.said)
        assert len(living.said) < 10
        for obstacle in obstacles:
            obstacle.rmdir()
        living.to_the_end(running)
    assert any("reading goes on" in said for said in living.said)
    assert facts_in(living.settings.tables) == facts_in(whole.settings.tables)


def test_an_event_that_cannot_be_applied_is_left_out_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after a restart: the base that follows it holds nothing of it."""
    living = Living(tmp_path, STORY)
    leaves = observer.HANDLERS[Kind.SYNC]
    raised: list[int] = []

    def raises(facts: Any, event: Any, at: float) -> None:
        if not raised or event.start in raised:
            raised.append(event.start)
            raise ValueError("no such thing")
        leaves(facts, event, at)

    monkeypatch.setitem(observer.HANDLERS, Kind.SYNC, raises)
    _some(living)
    _some(living)
    with living.alive() as running:
        living.to_the_end(running)
    refused = [row for row in rows(living.settings.tables, "rejected") if row["reason"] == "not_applied"]
    assert len(set(raised)) == len(refused) == 1
    assert rows(living.settings.tables, "members")
