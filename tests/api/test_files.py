"""Which files of a table are opened for a question, and what is remembered of those that were."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, TableFeatures, WriterProperties
from deltalake.exceptions import DeltaError

from api.files import data_files, reader
from api.files.counted import Read, counting
from api.files.data_files import Bound, Files
from api.files.reader import TableReader
from spark_jobs.schemas import to_tables
from spark_jobs.writers import delta_rs
from spark_jobs.writers import tables as tables_of_writer
from spark_jobs.writers.delta_rs import DeltaRsWriter
from tests.api.written import NOW_MS, Tables, member


@pytest.fixture
def table(tables: Tables) -> DeltaTable:
    """Three files, one a minute."""
    tables.create("members")
    for batch in range(3):
        tables.batch(batch, member("g", f"m{batch}", joined_at_ms=NOW_MS + batch * 60_000))
    return DeltaTable(tables.root / "members")


def names(found: Files, table: DeltaTable, bounds: list[Bound]) -> set[str]:
    """Members in the files and row groups that are left over."""
    fragments = [one.within(bounds) for one in found.chosen(table, bounds)]
    dataset = found.dataset([fragment for fragment in fragments if fragment is not None])
    return {row["member_id"] for row in dataset.to_table(columns=["member_id"]).to_pylist()}


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([], {"m0", "m1", "m2"}),
        ([Bound("joined_at_ms", "<=", NOW_MS)], {"m0"}),
        ([Bound("joined_at_ms", "<", NOW_MS)], set()),
        ([Bound("joined_at_ms", ">=", NOW_MS + 120_000)], {"m2"}),
        ([Bound("joined_at_ms", ">", NOW_MS), Bound("joined_at_ms", "<", NOW_MS + 120_000)], {"m1"}),
        ([Bound("ended_at_ms", ">", NOW_MS)], {"m0", "m1", "m2"}),  # null in all of them: the log does not say
        ([Bound("no_such_column", ">", 0)], {"m0", "m1", "m2"}),
        ([Bound("group_id", "=", "g")], {"m0", "m1", "m2"}),
        ([Bound("group_id", "=", "another")], set()),
    ],
)
def test_only_files_that_may_hold_rows_within_the_bounds_are_opened(
    table: DeltaTable, tmp_path: Path, bounds: list[Bound], expected: set[str]
) -> None:
    assert names(Files(Path(table.table_uri.removeprefix("file://"))), table, bounds) == expected


@pytest.mark.parametrize(("chunk_rows", "expected"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (100, [3])])
def test_rows_of_many_small_files_come_in_few_chunks(
    table: DeltaTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int, expected: list[int]
) -> None:
    """What a chunk costs beside its rows was most of reading a live table."""
    monkeypatch.setattr(reader, "CHUNK_ROWS", chunk_rows)
    found = TableReader(Path(table.table_uri.removeprefix("file://")).parent, "members")
    chunks = found.scan(None, [], lambda some: [list(found.rows(chunk)) for chunk in some])
    assert [len(chunk) for chunk in chunks] == expected
    assert {row.member_id for chunk in chunks for row in chunk} == {"m0", "m1", "m2"}


def test_footers_are_kept_up_to_a_bound_and_forgotten_with_their_files(
    tables: Tables, table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Files(tables.root / "members")
    first = found.chosen(table, [])
    found.keep(first)
    assert found.chosen(table, []) == first  # the same objects, with their footers
    monkeypatch.setattr(data_files, "ROW_GROUPS_MAX", 2)
    found.keep(first)
    assert found.chosen(table, [])[1:] == first[1:]
    assert found.chosen(table, [])[0] != first[0]
    tables.compact("members")
    newest = DeltaTable(tables.root / "members")
    assert names(found, newest, []) == {"m0", "m1", "m2"}
    gone = first[0].within([])
    assert gone is not None
    with pytest.raises(FileNotFoundError):
        gone.to_table()


def test_only_row_groups_that_hold_the_group_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [member(f"g{number:03}", f"m{number}")[1] for number in range(300)]
    monkeypatch.setattr(tables_of_writer, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(tables_of_writer, "SMALL_ROW_GROUPS", WriterProperties(max_row_group_size=10))
    monkeypatch.setattr(delta_rs, "SMALL_ROW_GROUPS", WriterProperties(max_row_group_size=10))
    writer = DeltaRsWriter(tmp_path, "test")
    writer.prepare()
    writer.write(0, to_tables({"members": random.Random(1).sample(rows, 300)}, 0))
    writer.close()
    [file] = Files(tmp_path / "members").chosen(DeltaTable(tmp_path / "members"), [])
    assert file.count == 30
    found = file.within([Bound("group_id", "=", "g123")])
    assert found is not None
    assert found.num_row_groups == 1
    assert found.count_rows(filter=ds.field("group_id") == "g123") == 1


def test_a_table_that_needs_more_than_this_reader_is_refused(tables: Tables, table: DeltaTable) -> None:
    table.alter.add_feature([TableFeatures.DeletionVectors], allow_protocol_versions_increase=True)
    newest = DeltaTable(tables.root / "members")
    with pytest.raises(DeltaError, match="deletionVectors"):
        Files(tables.root / "members").chosen(newest, [])


def test_files_whose_groups_the_log_names_are_passed_over_unopened(tables: Tables) -> None:
    """Of ids that are longer than what a log states of one, those with one beginning are opened."""
    tables.create("members")
    common = "a-name-of-a-team-and-of-its-service-that-is-longer-than-what-is-stated-in-a-log/"
    for batch, group in enumerate((f"{common}1", f"{common}2", "b", "c")):
        tables.batch(batch, member(group, f"m{batch}"))
    table = DeltaTable(tables.root / "members")
    found = Files(tables.root / "members")
    assert len(found.chosen(table, [Bound("group_id", "=", "b")])) == 1
    assert found.chosen(table, [Bound("group_id", "=", "d")]) == []
    assert names(found, table, [Bound("group_id", "=", f"{common}2")]) == {"m0", "m1"}


@pytest.mark.skipif(not Path("/proc/thread-self/io").exists(), reason="only Linux says what a process has read")
def test_what_is_counted_is_what_the_system_was_asked_for(tmp_path: Path) -> None:
    writer = DeltaRsWriter(tmp_path, "test")
    writer.prepare()
    rows = [member(f"g{number:05}", f"m{number * 7919 % 30_000}")[1] for number in range(30_000)]
    writer.write(0, to_tables({"members": rows}, 0))
    writer.close()
    found = TableReader(tmp_path, "members")
    found.refresh()
    where = ds.field("group_id") == "g12345"
    bound = [Bound("group_id", "=", "g12345")]

    def question() -> tuple[int, Read]:
        before = _asked_for()
        with counting() as counted:
            assert found.scan(where, bound, lambda chunks: sum(chunk.num_rows for chunk in chunks)) == 1
        return _asked_for() - before, counted

    asked, counted = question()
    assert (counted.footers, counted.row_groups) == (1, 1)
    assert counted.bytes == pytest.approx(asked, rel=0.1)
    asked, counted = question()
    assert (counted.footers, counted.row_groups) == (0, 1)
    assert counted.bytes == pytest.approx(asked, rel=0.1)


def _asked_for() -> int:
    """Bytes that this process has read so far, from whatever cache."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])
