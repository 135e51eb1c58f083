"""From a log through a collector and the topic to rows: the same whether quiet requests travel folded or one by one,
also when a collector is killed and sends again from an older position, with other cuts of the stretches.

The same history of writing, reading, killing and stepping is run with and without folding; every row of every table of
every step has to be equal, and what is archived.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.wire import batches
from ingest.wire.folded_batch import is_folded
from kardia.observe import ObserverSettings
from kardia.tables import Row
from spark_jobs.archive.deduplication import Nothing, Once
from spark_jobs.archive.rows import rows_of
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from tests.ingest.lines import STORIES
from tests.ingest.world import ManualClock, World

LANES = 2
AFTER_ALL_MS = 1_796_000_000_000.0
"""No line is of the future."""
FACTORY = ObserverFactory(ObserverSettings(cluster_id="c"))
ACTIONS = ("write", "write", "read", "read", "step", "crash", "mute", "answer", "wait")
SOFTWARE = 20
"""Column of `events`: a connection tells its software once, and a stretch has that of its first line."""


class Pipeline:
    """A collector in a world, and the lanes behind its topic."""

    def __init__(self, directory: Path, lines: Sequence[bytes], *, fold: bool) -> None:
        directory.mkdir()
        self.world = World(directory, lanes=LANES, fold=fold, clock=ManualClock(AFTER_ALL_MS))
        self.lanes = [Lane(FACTORY, "t", lane, LANES) for lane in range(LANES)]
        self.rows: list[dict[str, list[Row]]] = []
        self.folded = 0
        self._lines = lines
        self._written = self._taken = 0

    def act(self, action: str, amount: int) -> None:
        world = self.world
        if action == "write":
            chosen = self._lines[self._written : self._written + amount]
            self._written += len(chosen)
            world.file.write(b"".join(line + b"\n" for line in chosen))
        elif action == "read":
            world.step(2)
        elif action == "crash":
            world.crash()
        elif action in ("mute", "answer"):
            world.topic.answering = action == "answer"
        elif action == "wait":
            world.clock.now_s += 2
        else:
            self.step()

    def step(self) -> None:
        """Everything that was sent since the last step, as one batch."""
        new = self.world.topic.records[self._taken :]
        self._taken += len(new)
        self.folded += sum(is_folded(data) for _, data in new)
        for number, lane in enumerate(self.lanes):
            values = [data for at, data in new if at == number]
            first = max(lane.next_offset, 0)
            records = [Record(first + at, 0, batches.format_of(data).encode(), data) for at, data in enumerate(values)]
            self.rows.append({name: list(rows) for name, rows in lane.step(records).items() if rows})

    def finish(self) -> list[list[Row]]:
        """Bring everything to its end; gives the archive, by lane."""
        self.world.file.write(b"".join(line + b"\n" for line in self._lines[self._written :]))
        self.world.drain()
        self.step()
        archived: list[list[Row]] = []
        for number in range(LANES):
            values = [data for at, data in self.world.topic.records if at == number]
            records = [Record(at, 0, batches.format_of(data).encode(), data) for at, data in enumerate(values)]
            found = rows_of("c", number, Once({}, Nothing()), records)
            archived.append(sorted((*row[:SOFTWARE], *row[SOFTWARE + 1 :]) for row in found))
        return archived


def lines_of(story: str) -> list[bytes]:
    (path,) = STORIES.glob(f"{story}/kafka-request*.log.gz")
    return gzip.decompress(path.read_bytes()).splitlines()[:900]


@pytest.mark.parametrize("story", ["c04_mpi-4.1.2", "c01_kill-3.9.2"])
@settings(max_examples=5, deadline=None)
@given(history=st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(1, 400)), max_size=30))
def test_rows_are_the_same_folded_or_not(
    tmp_path_factory: pytest.TempPathFactory, story: str, history: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "MAX_BYTES", 20_000)  # several records of one range
        compared(tmp_path_factory.mktemp("worlds"), lines_of(story), history)


def compared(directory: Path, lines: Sequence[bytes], history: Sequence[tuple[str, int]]) -> Pipeline:
    single, folding = (Pipeline(directory / str(fold), lines, fold=fold) for fold in (False, True))
    archives = []
    for pipeline in (single, folding):
        with pipeline.world:
            for action, amount in history:
                pipeline.act(action, amount)
            archives.append(pipeline.finish())
    assert single.folded == 0
    assert folding.folded > 0
    for mine, other in zip(single.rows, folding.rows, strict=True):
        assert other == mine
    assert archives[0] == archives[1]
    return folding


@pytest.mark.parametrize("apart", [True, False], ids=["in the next step", "in the same step"])
def test_what_is_sent_again_with_other_cuts_is_recognised(tmp_path: Path, apart: bool) -> None:
    """The topic has what was sent, the process that would have saved its position is gone."""
    history = [("write", 500), ("read", 1), ("mute", 1), ("write", 300), ("read", 1), ("write", 300), ("read", 1)]
    history += [("step", 1)] * apart + [("crash", 1), ("answer", 1), ("write", 200), ("read", 1), ("step", 1)]
    folding = compared(tmp_path, lines_of("c04_mpi-4.1.2"), history)
    told = [row for rows in folding.rows for row in rows.get("progress", ())]
    assert told
