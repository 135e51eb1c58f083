"""Which files of a table are opened for a question, and what is remembered of those that were."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, TableFeatures
from deltalake.exceptions import DeltaError

from api import files
from api.files import Bound, Files
from tests.api.written import NOW_MS, Tables, member


@pytest.fixture
def table(tables: Tables) -> DeltaTable:
    """Three files, one a minute."""
    tables.create("members")
    for batch in range(3):
        tables.batch(batch, member("g", f"m{batch}", joined_at_ms=NOW_MS + batch * 60_000))
    return DeltaTable(tables.root / "members")


def names(dataset: ds.FileSystemDataset) -> set[str]:
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
    ],
)
def test_only_files_that_may_hold_rows_within_the_bounds_are_opened(
    table: DeltaTable, tmp_path: Path, bounds: list[Bound], expected: set[str]
) -> None:
    assert names(Files(Path(table.table_uri.removeprefix("file://"))).chosen(table, bounds)) == expected


def test_footers_are_kept_up_to_a_bound_and_forgotten_with_their_files(
    tables: Tables, table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Files(tables.root / "members")
    first = found.chosen(table, [])
    list(first.to_batches())
    found.keep(first.get_fragments())
    again = found.chosen(table, [])
    assert {one.path for one in again.get_fragments()} == set(found._kept)
    monkeypatch.setattr(files, "PIECES_MAX", 2)
    found.keep(again.get_fragments())
    assert len(found._kept) == 2
    tables.compact("members")
    newest = DeltaTable(tables.root / "members")
    assert names(found.chosen(newest, [])) == {"m0", "m1", "m2"}
    assert found._kept == {}


def test_a_table_that_needs_more_than_this_reader_is_refused(tables: Tables, table: DeltaTable) -> None:
    table.alter.add_feature([TableFeatures.DeletionVectors], allow_protocol_versions_increase=True)
    newest = DeltaTable(tables.root / "members")
    with pytest.raises(DeltaError, match="deletionVectors"):
        Files(tables.root / "members").chosen(newest, [])
