"""Upkeep lays rows by group: the same rows, once, in fewer files, of which one group is a small part.

Tables are written by the job's writer, a commit a batch, every group in each of them, and kept by `Maintenance`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError

from api.files.counted import counting
from api.files.follower import Follower
from api.files.reader import TableReader
from api.past import archive
from api.past.cursor import Place
from spark_jobs.schemas import to_tables
from spark_jobs.upkeep import compaction, maintenance
from spark_jobs.upkeep.compaction import lay
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers.delta_rs import DeltaRsWriter
from tests.api.written import CLUSTER, NOW_MS, health, transition

GROUPS, BATCHES = 2_000, 25


class Grown:
    """Tables that grow by a batch with a row of each group, in an order by chance."""

    def __init__(self, root: Path, groups: int = GROUPS) -> None:
        self.root = root
        self.writer = DeltaRsWriter(root, "test")
        self.writer.prepare()
        self.batches = 0
        self._groups = [f"group-{number}" for number in range(groups)]
        self._chance = random.Random(5)

    def grow(self, batches: int) -> None:
        for _ in range(batches):
            at_ms = NOW_MS + self.batches * 1_000
            self._chance.shuffle(self._groups)
            # A member id of its own for each: rows that are all alike would fit into any bound.
            rows = {
                "health": [
                    health(group, f"{self._chance.getrandbits(128):032x}", at_ms=at_ms)[1] for group in self._groups
                ],
                "transitions": [transition(group, self.batches, "Stable", at_ms=at_ms)[1] for group in self._groups],
            }
            self.writer.write(self.batches, to_tables(rows, self.batches))
            self.batches += 1

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.root / name)

    def rows(self, name: str) -> Counter[str]:
        return Counter(map(repr, self.table(name).to_pyarrow_table().to_pylist()))

    def footers(self, name: str) -> list[pq.FileMetaData]:
        uris = self.table(name).file_uris()
        return [pq.read_metadata(uri.removeprefix("file://")) for uri in uris]


@pytest.fixture
def grown(tmp_path: Path) -> Iterator[Grown]:
    made = Grown(tmp_path / "tables")
    yield made
    made.writer.close()


def test_upkeep_lays_rows_by_group_and_changes_none(grown: Grown) -> None:
    grown.grow(BATCHES)
    before = {name: grown.rows(name) for name in ("health", "transitions")}
    assert Maintenance(grown.root).run_once().failures == ()
    assert {name: grown.rows(name) for name in before} == before
    for name in before:
        [footer] = grown.footers(name)
        assert footer.num_rows == GROUPS * BATCHES
        limits = [_limits(footer.row_group(at), "group_id") for at in range(footer.num_row_groups)]
        assert len(limits) > 2
        assert all(high <= low for (_, high), (low, _) in pairwise(limits)), limits


def _limits(group: pq.RowGroupMetaData, name: str) -> tuple[Any, Any]:
    [stated] = [
        chunk.statistics for chunk in map(group.column, range(group.num_columns)) if chunk.path_in_schema == name
    ]
    return stated.min, stated.max


def test_a_question_about_one_group_reads_a_small_part_of_the_files(grown: Grown) -> None:
    """Of 50,000 rows in each table those of a group are 25; without laying they are one in every piece."""
    grown.grow(BATCHES)
    Maintenance(grown.root).run_once()
    knowledge = archive.Knowledge(grown.batches)
    about = (CLUSTER, "group-1234")
    readers = {name: TableReader(grown.root, name) for name in ("health", "transitions")}
    part = archive.HistoryPart(None, None, 100, True, Place(grown.batches, ()))
    with counting() as first:
        assert len(archive.transitions(readers["transitions"], *about, part, None).rows) == BATCHES
        at_ms = NOW_MS + 12_000
        assert len(archive.health_at(readers["health"], *about, knowledge, at_ms, 60_000, 1_000)) == 13
    size = sum(file.stat().st_size for name in readers for file in (grown.root / name).glob("laid-*.parquet"))
    assert first.footers == 2
    assert first.row_groups <= 4  # two where a group begins in one and ends in the next
    assert first.bytes < min(2_000_000, size / 4)
    with counting() as again:
        archive.transitions(readers["transitions"], *about, part, None)
    assert again.footers == 0  # kept


def test_rows_that_are_laid_anew_are_no_news_to_a_follower(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    grown.grow(2)
    follower = Follower(TableReader(grown.root, "transitions"))
    follower.look(-1)
    assert len(follower.waiting) == 2 * GROUPS
    follower.forget(1)
    monkeypatch.setattr(follower.reader, "_newest", lambda: pytest.fail("the table was opened again"))
    lay(grown.table("transitions"), grown.root / "transitions", compaction.ROWS_MAX)
    grown.grow(1)
    follower.look(1)
    assert {row.batch_id for row in follower.waiting} == {2}


def test_two_that_lay_the_same_files_do_not_write_rows_twice(grown: Grown) -> None:
    """The library would take both: neither reads what the other has written."""
    grown.grow(3)
    before = grown.rows("health")
    first, second = grown.table("health"), grown.table("health")
    wanted = compaction._files(second)
    assert lay(first, grown.root / "health", compaction.ROWS_MAX) == 3
    assert not compaction._replace(second, grown.root / "health", wanted)
    assert grown.rows("health") == before
    assert len(list((grown.root / "health").glob("laid-*.parquet"))) == 1  # what was written for nothing is gone


def test_commits_of_the_writer_in_between_are_met_with_another_look(
    grown: Grown, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown.grow(3)
    commit = DeltaTable.create_write_transaction
    tried: list[int | None] = []

    def beside(table: DeltaTable, *given: Any, commit_properties: CommitProperties, **more: Any) -> None:
        tried.append(commit_properties.max_commit_retries)
        if len(tried) < 3:
            grown.grow(1)
        commit(table, *given, commit_properties=commit_properties, **more)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", beside)
    assert lay(grown.table("health"), grown.root / "health", compaction.ROWS_MAX) == 3
    assert tried == [0, 0, 0]
    assert sum(grown.rows("health").values()) == 5 * GROUPS
    monkeypatch.setattr(compaction, "COMMITS_MAX", 1)
    tried.clear()
    with pytest.raises(CommitFailedError):
        lay(grown.table("health"), grown.root / "health", compaction.ROWS_MAX)


def test_files_are_stretches_of_time_and_a_large_one_is_left_as_it_is(grown: Grown) -> None:
    grown.grow(9)
    assert lay(grown.table("health"), grown.root / "health", 4 * GROUPS) == 8
    assert sorted(footer.num_rows for footer in grown.footers("health")) == [GROUPS, 4 * GROUPS, 4 * GROUPS]
    spans = sorted(_span(footer) for footer in grown.footers("health"))
    assert [high - low for low, high in spans] == [3_000, 3_000, 0]
    assert lay(grown.table("health"), grown.root / "health", 4 * GROUPS) == 0
    grown.grow(1)
    assert lay(grown.table("health"), grown.root / "health", 4 * GROUPS) == 2


def _span(footer: pq.FileMetaData) -> tuple[int, int]:
    found = [_limits(footer.row_group(at), "at_ms") for at in range(footer.num_row_groups)]
    return min(low for low, _ in found), max(high for _, high in found)


def test_a_file_waits_until_what_came_after_it_weighs_as_much(tmp_path: Path) -> None:
    """Else a table that grows by some rows a minute is written anew in each of them."""
    grown = Grown(tmp_path / "tables", groups=10)
    grown.grow(50)
    folder = grown.root / "health"
    assert lay(grown.table("health"), folder, 10_000) == 50
    grown.grow(2)
    assert lay(grown.table("health"), folder, 10_000) == 2
    assert sorted(footer.num_rows for footer in grown.footers("health")) == [20, 500]
    grown.grow(11)
    assert lay(grown.table("health"), folder, 10_000) == 13
    grown.writer.close()


def test_the_log_states_of_a_laid_file_what_questions_bound(grown: Grown) -> None:
    grown.grow(3)
    lay(grown.table("health"), grown.root / "health", compaction.ROWS_MAX)
    [stated] = pa.table(grown.table("health").get_add_actions(flatten=True)).to_pylist()
    assert stated["num_records"] == 3 * GROUPS
    assert (stated["min.at_ms"], stated["max.at_ms"]) == (NOW_MS, NOW_MS + 2_000)
    assert (stated["min.group_id"], stated["max.group_id"]) == ("group-0", "group-999")
    assert (stated["min.cluster_id"], stated["max.cluster_id"]) == (CLUSTER, CLUSTER)


@pytest.mark.parametrize(
    "text",
    ["", "é" * 300, "\U0010ffff" * 70, "a" * 64 + "z", 'quo"te\n'],
    ids=["empty", "longer than is stated", "last character", "cut short", "quoted"],
)
def test_groups_of_any_name_are_found_in_laid_files(tmp_path: Path, text: str) -> None:
    grown = Grown(tmp_path / "tables", groups=50)
    for batch_id in (0, 1):
        rows = [health(group, "m", at_ms=NOW_MS)[1] for group in ("a", text, "zz")]
        grown.writer.write(batch_id, to_tables({"health": rows}, batch_id))
        reader = TableReader(grown.root, "health")
        found = archive.health_at(reader, CLUSTER, text, archive.Knowledge(5), NOW_MS, 1_000, 100)
        assert [row.group_id for row in found] == [text]
        lay(grown.table("health"), grown.root / "health", compaction.ROWS_MAX)
    assert len(grown.footers("health")) == 1
    assert archive.health_at(reader, CLUSTER, text, archive.Knowledge(5), NOW_MS, 1_000, 100)
    grown.writer.close()


def test_samples_are_laid_in_larger_files_once_an_hour(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "ROWS_MAX", 3 * GROUPS)
    monkeypatch.setattr(maintenance, "HOUR_ROWS_MAX", 9 * GROUPS)
    now_ms = [0]
    upkeep = Maintenance(grown.root, ("health", "transitions"), now_ms=lambda: now_ms[0])
    grown.grow(1)
    upkeep.run_once()
    grown.grow(24)
    upkeep.run_once()
    assert max(footer.num_rows for footer in grown.footers("health")) == 3 * GROUPS
    grown.grow(1)
    now_ms[0] = maintenance.LARGE_EVERY_MS
    upkeep.run_once()
    assert max(footer.num_rows for footer in grown.footers("health")) == 9 * GROUPS
    assert max(footer.num_rows for footer in grown.footers("transitions")) == 3 * GROUPS
