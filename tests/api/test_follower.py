"""A table followed from entry to entry: every row once, whatever is compacted, cleaned or made anew meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from api.errors import TablesMissing, TableUnreadable
from api.files.follower import ENTRIES_MAX, Follower, appended
from api.files.reader import TableReader
from tests.api.written import NOW_MS, Tables, member


@pytest.fixture
def follower(tables: Tables) -> Follower:
    """Has read the first of the batches of `members`."""
    tables.create("members")
    write(tables, 0)
    found = Follower(TableReader(tables.root, "members"))
    found.look(-1)
    return found


def write(tables: Tables, *batches: int) -> None:
    for batch in batches:
        tables.batch(batch, member("g", f"m{batch}", joined_at_ms=NOW_MS))


def waiting(follower: Follower) -> list[str]:
    return sorted(row.member_id for row in follower.waiting)


def test_what_was_appended_is_read_without_opening_the_table_again(
    tables: Tables, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tables, 1, 2)
    monkeypatch.setattr(follower.reader, "_newest", lambda: pytest.fail("the table was opened again"))
    assert follower.has_moved()
    follower.look(-1)
    assert not follower.has_moved()
    assert waiting(follower) == ["m0", "m1", "m2"]
    assert [row.member_id for row in follower.rows(0, 1)] == ["m1"]
    follower.forget(1)
    tables.compact("members")
    follower.look(1)
    assert waiting(follower) == ["m2"]


def vacuumed(tables: Tables) -> None:
    tables.compact("members")


def cleaned(tables: Tables) -> None:
    tables.clean("members")


def far_behind(tables: Tables) -> None:
    write(tables, *range(3, 4 + ENTRIES_MAX))


def torn(tables: Tables) -> None:
    """An entry that is not whole yet is what an object store without atomic names would show."""
    entry = max((tables.root / "members" / "_delta_log").glob("*.json"))
    entry.write_bytes(entry.read_bytes()[:40])


def half_cleaned(tables: Tables) -> None:
    """A cleanup takes entries away in any order; here one that the follower has not read is gone before older ones."""
    tables.clean("members", only=2)


@pytest.mark.parametrize("happened", [vacuumed, cleaned, half_cleaned, far_behind])
def test_what_cannot_be_followed_is_read_anew_from_the_batch_that_was_folded(
    tables: Tables, follower: Follower, happened: Callable[[Tables], None]
) -> None:
    write(tables, 1, 2)
    happened(tables)
    assert follower.has_moved()
    follower.look(0)
    expected = {f"m{batch}" for batch in range(1, 4 + ENTRIES_MAX if happened is far_behind else 3)}
    assert {row.member_id for row in follower.waiting if row.batch_id > 0} == expected
    assert len(follower.rows(0, 1 << 62)) == len(expected)


def test_a_torn_entry_is_an_error_and_nothing_is_lost(tables: Tables, follower: Follower) -> None:
    write(tables, 1)
    entry = max((tables.root / "members" / "_delta_log").glob("*.json"))
    whole = entry.read_bytes()
    torn(tables)
    with pytest.raises(TableUnreadable):
        follower.look(0)
    entry.write_bytes(whole)
    follower.look(0)
    assert [row.member_id for row in follower.rows(0, 9)] == ["m1"]


def test_another_table_under_the_old_name_is_told_by_its_identity(tables: Tables, follower: Follower) -> None:
    before = follower.reader.identity
    shutil.rmtree(tables.root)
    with pytest.raises(TablesMissing):
        follower.look(0)
    tables.create("members")
    write(tables, 0)
    follower.look(-1)
    assert follower.reader.identity != before
    assert waiting(follower) == ["m0"]


ADD = {"path": "part-0.parquet", "dataChange": True, "partitionValues": {}, "size": 1, "modificationTime": 1}


@pytest.mark.parametrize(
    ("actions", "names"),
    [
        ([{"add": ADD}, {"txn": {"appId": "a", "version": 1}}, {"commitInfo": {}}], ["part-0.parquet"]),
        ([{"add": {**ADD, "path": "part%201.parquet"}}], ["part 1.parquet"]),
        ([{"add": {**ADD, "dataChange": False}}, {"remove": {"path": "x", "dataChange": False}}], []),
        ([{"remove": {"path": "x", "dataChange": True}}], None),
        ([{"metaData": {}}], None),
        ([{"protocol": {}}, {"add": ADD}], None),
        ([{"add": {**ADD, "deletionVector": {}}}], None),
        ([{"add": {**ADD, "path": "s3://else/where.parquet"}}], None),
        ([{"add": {**ADD, "path": "/else/where.parquet"}}], None),
    ],
)
def test_an_entry_names_the_files_it_added_or_is_left_to_the_library(
    actions: list[dict[str, Any]], names: list[str] | None
) -> None:
    assert appended(b"\n".join(json.dumps(action).encode() for action in actions)) == names


@pytest.mark.parametrize("entry", [b'{"add":{"path":"part', b"\xff"])
def test_a_torn_entry_is_refused(entry: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        appended(entry)
