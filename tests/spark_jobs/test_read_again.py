"""A law: every reader of a table survives its upkeep between any two of its steps, the writer's own looks included.

Goal: the same rows and no error, whenever a table is compacted, checkpointed, and rid of all that these have replaced.
Method: a real table whose upkeep keeps nothing for anybody; a reader runs again and again, with a whole pass of upkeep
before its first call of the library, before its second, and so on to its last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from api.files.follower import Follower as ApiFollower
from api.files.reader import TableReader
from demo.tables import Follower, Tables
from kardia.tables import EVENTS
from spark_jobs.archive.marks import ArchivedEvents, advanced
from spark_jobs.replay.summary import Summary, count_tables
from spark_jobs.schemas import to_arrow, to_tables
from spark_jobs.upkeep.compaction import LAID, ROWS_MAX, lay
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers import delta_rs
from spark_jobs.writers import tables as tables_module
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import SMALL_ROW_GROUPS, create_or_open, highest_batch, last_version, open_table
from stores.read_again import LOOKS, surviving
from tests.spark_jobs.writing import APP_ID, batch, row_of

NOTHING_KEPT = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 0 seconds",
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
BATCHES = 6

CALLS = (
    "__init__",
    "update_incremental",
    "transaction_version",
    "version",
    "metadata",
    "protocol",
    "schema",
    "get_add_actions",
    "file_uris",
    "to_pyarrow_dataset",
    "to_pyarrow_table",
)


KEPT = ("progress", "members", "rebalances", EVENTS.name)
"""Tables that have upkeep here: those that the readers read."""


def upkeep(path: Path, *, alone: bool = True) -> None:
    """All of it, with nothing kept back. Alone it begins with a commit of its own, to have something to remove."""
    table = DeltaTable(path)
    if alone:
        table.alter.set_table_properties({"delta.appendOnly": "false"})
    if path.name in LAID:
        lay(table, path, ROWS_MAX)
    else:
        table.optimize.compact(writer_properties=SMALL_ROW_GROUPS)
    table.create_checkpoint()
    time.sleep(0.002)  # entries older than now are removed, by their time stamps in ms
    table.cleanup_metadata()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


class Between:
    """A pass of upkeep before the call of a number; counts the calls."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = -1
        self.calls = 0
        self._directory = directory
        self._busy = False
        for name in CALLS:
            monkeypatch.setattr(DeltaTable, name, self._before(getattr(DeltaTable, name)))
        monkeypatch.setattr(DeltaTable, "is_deltatable", staticmethod(self._before(DeltaTable.is_deltatable)))
        monkeypatch.setattr(pq.ParquetFile, "__init__", self._before(pq.ParquetFile.__init__))
        monkeypatch.setattr(delta_rs, "write_deltalake", self._before(write_deltalake))

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **more: Any) -> Any:
            if not self._busy:
                self.calls += 1
                if self.calls == self.at:
                    self._busy = True
                    for name in KEPT:
                        upkeep(self._directory / name)
                    self._busy = False
            return call(*arguments, **more)

        return stepped

    def everywhere(self, read: Callable[[], Any]) -> None:
        """Run a reader with upkeep before each of its calls in turn; it must always say the same."""
        self.at = self.calls = 0
        expected = read()
        for at in count(1):
            self.at, self.calls = at, 0
            assert read() == expected, f"after upkeep before call {at}"
            if self.calls < at:
                break
        assert at > 1, "the reader makes no call that is watched"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Live tables and an archive of some batches."""
    monkeypatch.setattr(tables_module, "PROPERTIES", {**tables_module.PROPERTIES, **NOTHING_KEPT})
    root = tmp_path / "tables"
    writer = DeltaRsWriter(root, APP_ID)
    writer.prepare()
    for batch_id in range(BATCHES):
        writer.write(batch_id, to_tables(batch(batch_id), batch_id))
    writer.close()
    create_or_open(root, EVENTS.name)
    for batch_id in range(BATCHES):
        rows = to_arrow(EVENTS, [row_of(EVENTS, 10 * batch_id + number) for number in (1, 2)], batch_id)
        write_deltalake(root / EVENTS.name, rows, mode="append")
    return root


@pytest.fixture
def between(written: Path, monkeypatch: pytest.MonkeyPatch) -> Between:
    return Between(written, monkeypatch)


def batches_in(directory: Path, name: str) -> list[int]:
    def look() -> list[int]:
        rows = open_table(directory, name).to_pyarrow_dataset().to_table(columns=["batch_id"])
        return sorted(rows.column(0).to_pylist())

    return surviving(look)


READERS: dict[str, Callable[[Path], Any]] = {
    "rows": lambda root: batches_in(root, "progress"),
    "highest batch": lambda root: highest_batch(root, ("members", "progress")),
    "last version": lambda root: last_version(root, "progress", APP_ID),
    "archive: highest": lambda root: ArchivedEvents(root).highest("x"),
    "archive: starts": lambda root: ArchivedEvents(root).starts("x", 0, 30),
    "archive: marks": lambda root: advanced({}, root, BATCHES - 1, 6),
    "summary of a replay": lambda root: count_tables(Summary(), root, 0),
    "demo": lambda root: Tables(root).rows("progress"),
    "demo, following": lambda root: sorted(map(str, Follower(root, ["members"]).look()["members"])),
    "API, scanning": lambda root: api_rows(TableReader(root, "progress")),
    "API, following": lambda root: follow(root),
}


def api_rows(reader: TableReader) -> list[str]:
    reader.refresh()
    return sorted(
        str(row) for row in reader.scan(None, [], lambda found: [row for piece in found for row in reader.rows(piece)])
    )


def follow(root: Path) -> list[str]:
    follower = ApiFollower(TableReader(root, "members"))
    follower.look(-1, None)
    return sorted(map(str, follower.waiting))


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_survives_upkeep_between_any_two_steps(written: Path, between: Between, reader: str) -> None:
    between.everywhere(lambda: READERS[reader](written))


def test_a_reader_that_stays_open_survives_it(written: Path, between: Between) -> None:
    kept, followed = TableReader(written, "progress"), Follower(written, ["members"])
    followed.look()
    between.everywhere(lambda: api_rows(kept))
    between.everywhere(lambda: {row["batch_id"] for row in followed.look()["members"]} <= set(range(BATCHES)))
    archived = ArchivedEvents(written)
    highest, starts = archived.highest("x"), archived.starts("x", 0, 30)
    for _ in range(2):
        upkeep(written / EVENTS.name)
        assert (archived.highest("x"), archived.starts("x", 0, 30)) == (highest, starts)
    assert starts


def test_the_writer_survives_it_and_writes_each_batch_once(written: Path, between: Between) -> None:
    writer = DeltaRsWriter(written, APP_ID)
    writer.prepare()
    number = count(BATCHES)

    def write() -> bool:
        batch_id = next(number)
        writer.write(batch_id, {"progress": to_tables(batch(batch_id), batch_id)["progress"]})
        writer.write(batch_id, {"progress": to_tables(batch(batch_id), batch_id)["progress"]})
        return writer.written() == batch_id

    between.everywhere(write)
    writer.close()
    assert batches_in(written, "progress") == sorted(list(range(next(number))) * 2)


def test_upkeep_survives_upkeep(written: Path, between: Between) -> None:
    """What fails of it is said and tried again, whatever it was: the thread must not end."""

    def keep() -> None:
        Maintenance(written, ("progress",)).run_once()

    between.everywhere(keep)


@pytest.mark.long
def test_all_of_them_at_once(written: Path) -> None:
    """The same without an order: a thread keeps the table, another writes, the readers read, for ten seconds."""
    ending = threading.Event()
    failures: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        while not ending.is_set():
            try:
                work()
            except Exception as error:
                failures.append(error)
                ending.set()

    def keep() -> None:
        for name in ("progress", "members"):
            try:
                upkeep(written / name, alone=False)
            except Exception as error:
                assert str(error)  # noqa: PT017  it may lose against the writer, that is its lot
            time.sleep(0.2)

    writer = DeltaRsWriter(written, APP_ID)
    writer.prepare()
    number = count(BATCHES)

    def write() -> None:
        batch_id = next(number)
        writer.write(batch_id, to_tables(batch(batch_id), batch_id))

    works = [keep, write, *((lambda read=read: read(written)) for read in READERS.values())]
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    ending.wait(10)
    ending.set()
    for thread in threads:
        thread.join()
    writer.close()
    assert not failures


def test_a_file_that_is_truly_lost_is_an_error(written: Path) -> None:
    """After so many looks: a damaged table must not be looked at for ever."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        raise FileNotFoundError(written / "progress" / "_delta_log" / "00000000000000000007.json")

    with pytest.raises(FileNotFoundError):
        surviving(look)
    assert looks == LOOKS
