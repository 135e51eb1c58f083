"""Tables that a release before has written: opened, given the columns that have come since, and read before that.

Goal: nothing that was written is lost or moved away because Kardia was upgraded, whichever part of it comes first.
Method: the tables that those releases have kept (`keep`), and tables without any column that may be null: what a
release of the future adds is one of those.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from api.settings import ApiSettings
from kardia.tables import LIVE_TABLES, TABLES
from spark_jobs.errors import TablesError
from spark_jobs.jvm import jars, java
from spark_jobs.schemas import ARROW_SCHEMAS, TABLE_VERSION, VERSION_PROPERTY, to_tables
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import PROPERTIES, open_table
from tests.api.conftest import Api, Clock, running
from tests.api.written import NOW_MS, Tables, health, member, progress, rebalance, transition
from tests.spark_jobs.support import rows as rows_in
from tests.spark_jobs.writing import APP_ID, batch
from tests.upgrade.keep import KEPT, KEPT_AT

RELEASES = sorted(folder.name for folder in KEPT.iterdir())
PROGRESS = LIVE_TABLES[-1]
OLD, NEW = range(4), range(4, 6)
"""Batches of a release before, and of this one."""

GROUP = "/api/v1/clusters/demo/groups/billing"
OF_GROUP = ("history", "rebalances", "evictions", "members", "members/m-1", "predictions", "pulse", "incident", "lag")
OF_CLUSTER = ("groups", "lag", "rejected", "disagreements", "next-evictions", "open-rebalances")
PATHS = (
    *("/metrics", "/readyz", "/api/v1/clusters", GROUP),
    *(f"{GROUP}/{name}" for name in OF_GROUP),
    *(f"/api/v1/clusters/demo/{name}" for name in OF_CLUSTER),
)

Row = dict[str, Any]
Engine = Callable[[Path, tuple[str, ...]], None]


def all_rows(root: Path, names: Sequence[str] = LIVE_TABLES) -> dict[str, list[Row]]:
    """Rows of several tables, whole."""
    return {name: rows_in(root, name) for name in names}


def job_of(release: str, place: Path) -> Path:
    """Tables and checkpoint of a job, as a release has left them, as if they had always been here: in Spark's metadata
    of the state stand whole paths."""
    with tarfile.open(KEPT / release / "job.tar.gz") as tar:
        tar.extractall(place, filter="data")
    for text in place.glob("job/checkpoint/live/*/state/*/_metadata/*/[0-9]*"):
        text.write_bytes(text.read_bytes().replace(KEPT_AT.encode(), str(place).encode()))
    return place / "job"


def without_nullable(root: Path, names: tuple[str, ...] = LIVE_TABLES) -> None:
    """Make the tables anew as an earlier release would have them, with the rows that they have."""
    for name in names:
        rows = DeltaTable(root / name).to_pyarrow_table()
        schema = pa.schema([field for field in ARROW_SCHEMAS[name] if not field.nullable])
        properties = PROPERTIES | {VERSION_PROPERTY: str(TABLE_VERSION - 1)}
        for path in sorted((root / name).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        DeltaTable.create(root / name, schema, configuration=properties, raise_if_key_not_exists=False)
        if len(rows):
            write_deltalake(root / name, rows.select(schema.names).cast(schema), mode="append")


def version_of(root: Path, name: str) -> str | None:
    """Version that a table says it has."""
    return DeltaTable(root / name).metadata().configuration.get(VERSION_PROPERTY)


def written(root: Path) -> Path:
    """Some batches of this release."""
    writer = DeltaRsWriter(root, APP_ID)
    writer.prepare()
    for number in OLD:
        writer.write(number, to_tables(batch(number), number))
    writer.close()
    return root


@pytest.mark.parametrize("release", RELEASES)
def test_tables_of_a_release_before_are_of_this_one_once_a_job_has_started(release: str, tmp_path: Path) -> None:
    root = job_of(release, tmp_path) / "tables"
    before = all_rows(root)
    writer = DeltaRsWriter(root, APP_ID)
    writer.prepare()
    writer.write(1_000, to_tables(batch(1_000), 1_000))
    writer.close()
    assert {version_of(root, name) for name in LIVE_TABLES} == {str(TABLE_VERSION)}
    after = all_rows(root)
    for name in LIVE_TABLES:
        columns = {column for row in before[name] for column in row}
        kept = [row for row in after[name] if row["batch_id"] != 1_000]
        assert [{column: row[column] for column in columns} for row in kept] == before[name]


def in_two_parts(root: Path, straight: Path, engine: Engine, names: tuple[str, ...]) -> None:
    """Batches before some columns had come, and after; against tables that have had all columns from the beginning."""
    whole = all_rows(written(root))
    without_nullable(root)
    with_delta_rs(written(straight), LIVE_TABLES)
    engine(root, names)
    for name in names:
        assert version_of(root, name) == str(TABLE_VERSION)
        open_table(root, name)
        nullable = {column.name for column in TABLES[name].columns if column.nullable}
        [found], [expected] = (all_rows(place, [name]).values() for place in (root, straight))
        assert_same(found, expected, of=NEW)
        assert_same(found, [row | dict.fromkeys(nullable) for row in whole[name]], of=OLD)


def assert_same(found: list[Row], expected: list[Row], *, of: range) -> None:
    """The same rows of some batches, in whatever order."""
    texts = [sorted(repr(sorted(row.items())) for row in rows if row["batch_id"] in of) for rows in (found, expected)]
    assert texts[0] == texts[1] != []


def with_delta_rs(root: Path, _names: tuple[str, ...]) -> None:
    """A job on one machine starts, and writes a batch."""
    writer = DeltaRsWriter(root, APP_ID)
    writer.prepare()
    for number in NEW:
        writer.write(number, to_tables(batch(number), number))
    writer.close()


def with_delta_spark(root: Path, names: tuple[str, ...]) -> None:
    """A job on several machines does; in some of the tables, as each takes its seconds."""
    from spark_jobs.spark.session import start_session
    from spark_jobs.writers.delta_spark import DeltaSparkWriter, create_or_check

    spark = start_session("upgrade", "local[1]", jars.ensure("spark"), java.find().home)
    try:
        for name in names:
            create_or_check(spark, root, name)
        writer = DeltaSparkWriter(spark, root, APP_ID)
        for number in NEW:
            rows = to_tables(batch(number), number)
            writer.write(number, {name: rows[name] for name in names if name in rows})
        writer.close()
    finally:
        spark.stop()


def test_columns_that_have_come_are_added_when_a_job_starts_and_null_in_what_was_there(tmp_path: Path) -> None:
    in_two_parts(tmp_path / "tables", tmp_path / "straight", with_delta_rs, LIVE_TABLES)


@pytest.mark.slow
@pytest.mark.long
def test_delta_spark_does_the_same(tmp_path: Path) -> None:
    in_two_parts(tmp_path / "tables", tmp_path / "straight", with_delta_spark, ("rebalances", "progress"))


def never_null(root: Path, names: tuple[str, ...]) -> None:
    """Make the tables anew as a release would have them that knew everything: no column of them may be null."""
    for name in names:
        schema = pa.schema([field.with_nullable(False) for field in ARROW_SCHEMAS[name]])
        DeltaTable.create(root / name, schema, configuration=PROPERTIES, raise_if_key_not_exists=False)


def may_be_null(root: Path, name: str) -> set[str]:
    """Columns of a table that may be null."""
    return {field.name for field in pa.schema(DeltaTable(root / name).schema().to_arrow()) if field.nullable}


@pytest.mark.parametrize(
    ("engine", "names"),
    [(with_delta_rs, LIVE_TABLES), pytest.param(with_delta_spark, ("predictions",), marks=pytest.mark.slow)],
)
def test_columns_that_may_be_null_now_may_be_once_a_job_has_started(
    engine: Engine, names: tuple[str, ...], tmp_path: Path
) -> None:
    never_null(tmp_path, names)
    engine(tmp_path, names)
    for name in names:
        assert may_be_null(tmp_path, name) == {column.name for column in TABLES[name].columns if column.nullable}


def test_tables_of_a_later_release_are_refused_in_words(tmp_path: Path) -> None:
    root = written(tmp_path)
    later = {VERSION_PROPERTY: str(TABLE_VERSION + 1)}
    DeltaTable(root / PROGRESS).alter.set_table_properties(later, raise_if_not_exists=False)
    with pytest.raises(TablesError, match=r"version \d+: a later Kardia has written it.*start the later Kardia again"):
        DeltaRsWriter(root, APP_ID).prepare()


def test_the_api_reads_tables_that_no_job_has_given_their_columns_yet(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.create()
    tables.batch(
        0,
        transition("billing", 1, "Stable"),
        member("billing", "m-1"),
        health("billing", "m-1"),
        rebalance("billing", NOW_MS - 30_000),
        progress(NOW_MS),
    )
    without_nullable(tables.root)
    with running(ApiSettings(tables=tables.root, refresh_ms=20), Clock()) as url:
        api = Api(url)
        api.wait_for_batch(0)
        for path in PATHS:
            reply = api.client.get(path)
            assert reply.status_code == 200, (path, reply.text)
        api.client.close()
