"""What is kept how long: rows go by age, and nothing goes that says what is so now, or that came meanwhile.

Goal: the present that the API shows is the same before and after, the counts of the ledger too; rows of health and of
history are there as far as the setting says and no further; a cluster that was switched off, or a clock that is ahead,
empties nothing; every reader survives. Method: tables of a made-up fleet with a past, by the project's own writer, the
clock as an argument.
"""

from __future__ import annotations

import copy
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from api.settings import ApiSettings
from api.store import Store
from bench.crowd import CLUSTER, Crowd, row
from kardia.retention_setting import DAY_MS, FOREVER_MS, HOUR_MS, KINDS, SUMMED_AFTER_MS, Keep, KeepError, keep_of
from kardia.tables import LIVE_TABLES, PROGRESS, TABLES
from spark_jobs.schemas import to_tables
from spark_jobs.upkeep import retention
from spark_jobs.upkeep.maintenance import LARGE_EVERY_MS, Maintenance
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import open_table

NOW_MS = 1_790_000_000_000
HOURS = 10
KEEP = Keep(health_ms=2 * HOUR_MS, history_ms=5 * HOUR_MS)


class Written:
    """Tables with a past of ten hours."""

    def __init__(self, directory: Path, batch: int = 0, crowd: Crowd | None = None) -> None:
        self.directory = directory
        self.writer = DeltaRsWriter(directory, "kardia-test/1")
        self.writer.prepare()
        self.batch = batch
        self.crowd = crowd or Crowd(8, 1, hours=HOURS)

    def copied(self, directory: Path) -> Written:
        shutil.copytree(self.directory, directory)
        return Written(directory, self.batch, copy.deepcopy(self.crowd))

    def write(self, rows: dict[str, list[Any]]) -> None:
        self.writer.write(self.batch, to_tables(rows, self.batch))
        self.batch += 1

    def kept(self, now_ms: int = NOW_MS, keep: Keep = KEEP) -> list[str]:
        said: list[str] = []
        assert Maintenance(self.directory, keep=keep, said=said.append, now_ms=lambda: now_ms).run_once().failures == ()
        return said

    def column(self, name: str, column: str) -> list[Any]:
        table = open_table(self.directory, name).to_pyarrow_dataset().to_table(columns=[column])
        return list(table.column(0).to_pylist())

    def counts(self) -> dict[str, int]:
        return {name: open_table(self.directory, name).to_pyarrow_dataset().count_rows() for name in LIVE_TABLES}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Written:
    found = Written(tmp_path_factory.mktemp("written") / "tables")
    for hour in found.crowd.hours(NOW_MS):
        found.write(hour)
    found.write(found.crowd.present(NOW_MS))
    return found


@pytest.fixture
def written(once: Written, tmp_path: Path) -> Written:
    return once.copied(tmp_path / "tables")


def present(directory: Path, cluster: str = CLUSTER) -> dict[str, Any]:
    """What is so now, as the API has it after a start."""
    store = Store(ApiSettings(tables=directory), lambda: NOW_MS + 1_000)
    store.refresh()
    view = store.cluster(cluster)
    return {
        "reach": (view.reach.complete_as_of_ms, view.reach.last_gap_at_ms, view.reach.sources()),
        "ledger": (view.reach.ledger, view.reach.disagreements),
        "batch": store.current.batch_id,
    } | {
        name: (
            group.state and (group.state.to_state, group.state.at_ms),
            group.lives,
            group.health,
            group.predictions,
            group.rebalance,
        )
        for name, group in view.groups.items()
    }


def test_the_present_is_the_same_and_the_past_ends_where_the_setting_says(written: Written) -> None:
    gap = row("progress", "", NOW_MS - 8 * HOUR_MS, shard=-1, lane=2, source="b1:9092/request", gaps=1, divergences=2)
    written.write({"progress": [gap]})
    before, rows = present(written.directory), written.counts()
    written.kept()
    assert present(written.directory) == before
    after = written.counts()
    assert after["health"] < rows["health"] / 4
    assert all(after[name] < rows[name] for name in ("transitions", "rebalances", "members", "progress"))
    reached = NOW_MS
    assert min(written.column("health", "known_at_ms")) >= reached - 2 * HOUR_MS
    old = [at for at in written.column("rebalances", "known_at_ms") if at < reached - 5 * HOUR_MS]
    assert len(old) <= len(written.crowd.groups), "the last rebalance of a group stays"
    places = set(zip(written.column("progress", "lane"), written.column("progress", "source"), strict=True))
    summed = [at for at in written.column("progress", "known_at_ms") if at < reached - SUMMED_AFTER_MS]
    assert len(summed) <= 2 * len(places)


def test_once_more_changes_nothing_and_a_pass_has_its_hour(written: Written) -> None:
    now_ms = NOW_MS
    upkeep = Maintenance(written.directory, keep=KEEP, now_ms=lambda: now_ms)
    assert upkeep.run_once().tables > 0
    versions = {name: open_table(written.directory, name).version() for name in LIVE_TABLES}
    assert upkeep.run_once().tables == 0, "nothing was written since"
    now_ms += LARGE_EVERY_MS
    assert upkeep.run_once().tables == len(LIVE_TABLES)
    assert {name: open_table(written.directory, name).version() for name in LIVE_TABLES} == versions


def test_a_member_that_joined_long_ago_stays_and_one_that_left_goes(written: Written) -> None:
    long_ago, table = NOW_MS - 9 * HOUR_MS, TABLES["members"].names
    named = {"member_id": "m", "protocol": "classic", "joined_at_ms": long_ago}
    for number, more in enumerate(({}, {"ended_at_ms": long_ago + 9, "end_cause": "left"})):
        versions = [row("members", f"old-{number}", long_ago, **named)]
        versions += [row("members", f"old-{number}", long_ago + 10, **(named | more))] if more else []
        written.write({"members": versions, "progress": written.crowd.reached(NOW_MS)})
    written.kept()
    groups = written.column("members", table[1])
    assert groups.count("old-0") == 1
    assert groups.count("old-1") == 0


def test_an_old_version_of_a_life_that_ended_lately_goes_and_its_end_stays(written: Written) -> None:
    joined, ended = NOW_MS - 9 * HOUR_MS, NOW_MS - HOUR_MS
    named = {"member_id": "m", "protocol": "classic", "joined_at_ms": joined}
    over = row("members", "g", ended, **named, ended_at_ms=ended, end_cause="left")
    written.write({"members": [row("members", "g", joined, **named)], "progress": written.crowd.reached(NOW_MS)})
    written.write({"members": [over], "progress": written.crowd.reached(NOW_MS)})
    written.kept()
    assert written.column("members", "group_id").count("g") == 1
    assert "g" not in present(written.directory) or not present(written.directory)["g"][1]


def test_the_last_state_of_a_group_stays_unless_it_is_empty_or_dead(written: Written) -> None:
    long_ago = NOW_MS - 9 * HOUR_MS
    for state in ("Stable", "PreparingRebalance", "Empty", "Dead"):
        moves = [("Absent", "Empty", 1), ("Empty", state, 2)]
        written.write(
            {
                "transitions": [
                    row("transitions", f"is-{state}", long_ago + seq, seq=seq, entity="group", from_state=a, to_state=b)
                    for a, b, seq in moves
                ],
                "progress": written.crowd.reached(NOW_MS),
            }
        )
    written.kept()
    kept = [name for name in written.column("transitions", "group_id") if name.startswith("is-")]
    assert sorted(kept) == ["is-PreparingRebalance", "is-Stable"]


def test_a_cluster_that_was_switched_off_and_a_clock_that_is_ahead_empty_nothing(written: Written) -> None:
    year_ago, ahead = NOW_MS - 365 * DAY_MS, NOW_MS + 365 * DAY_MS
    named = {"cluster_id": "it's off", "member_id": "m", "group_state": "Stable", "status": "ok"}
    reached = {"shard": -1, "source": "b9:9092/request"}
    written.write(
        {
            "health": [row("health", "g", year_ago, **named)],
            "progress": [
                row("progress", "", year_ago, cluster_id="it's off", complete_to_ms=year_ago, **reached),
                row("progress", "", ahead, complete_to_ms=ahead, **reached),
            ],
        }
    )
    before = written.column("health", "cluster_id").count("it's off")
    written.kept()
    assert written.column("health", "cluster_id").count("it's off") == before == 1
    assert written.column("health", "cluster_id").count(CLUSTER) > 0


def test_forever_is_forever(written: Written) -> None:
    rows = written.counts()
    written.kept(keep=Keep(FOREVER_MS, FOREVER_MS, FOREVER_MS, FOREVER_MS))
    after = written.counts()
    assert {name: count for name, count in after.items() if name != PROGRESS.name} == {
        name: count for name, count in rows.items() if name != PROGRESS.name
    }


def test_a_reader_can_ask_from_when_on_a_table_is_whole(written: Written) -> None:
    assert retention.kept_from(open_table(written.directory, "rebalances"), CLUSTER) is None
    written.kept()
    assert retention.kept_from(open_table(written.directory, "rebalances"), CLUSTER) == NOW_MS - KEEP.history_ms
    assert retention.kept_from(open_table(written.directory, "health"), CLUSTER) == NOW_MS - KEEP.health_ms
    written.kept(keep=Keep())
    assert retention.kept_from(open_table(written.directory, "health"), CLUSTER) == NOW_MS - KEEP.health_ms


@pytest.mark.parametrize("name", ["health", "members"])
def test_old_rows_that_come_meanwhile_are_not_lost(name: str, written: Written) -> None:
    """A gap that is filled late brings old rows: what was not looked at must not go."""
    late = row("members", "late", NOW_MS - 9 * HOUR_MS, member_id="m", protocol="classic", joined_at_ms=1)
    if name == "health":
        late = row("health", "late", NOW_MS - 9 * HOUR_MS, member_id="m", group_state="Stable", status="ok")
    table = open_table(written.directory, name)
    written.write({name: [late], "progress": written.crowd.reached(NOW_MS)})
    with pytest.raises(CommitFailedError):
        retention.let_go(table, name, {CLUSTER: NOW_MS - 5 * HOUR_MS})
    assert "late" in written.column(name, "group_id")


def test_commits_between_look_and_commit_stay_and_the_writer_goes_on(written: Written) -> None:
    table = open_table(written.directory, "members")
    written.write(written.crowd.second(NOW_MS + 1_000, 0))
    new = written.counts()["members"]
    assert retention.let_go(table, "members", {CLUSTER: NOW_MS - 5 * HOUR_MS}) > 0
    written.write(written.crowd.second(NOW_MS + 2_000, 1))
    assert written.writer.written() == written.batch - 1
    found = written.column("members", "known_at_ms")
    assert len([at for at in found if at > NOW_MS]) > 0
    assert len(found) < new


def test_what_goes_between_a_writers_look_and_its_commit_does_not_end_the_writer(written: Written) -> None:
    """A night found it: rows went once an hour, and the job with them when that fell into its commit."""
    gone: dict[str, int] = {}

    def meanwhile(step: str, _batch_id: int) -> None:
        name, _, where = step.partition(":")
        if where == "before" and name in LIVE_TABLES and name not in gone:
            gone[name] = retention.let_go(open_table(written.directory, name), name, {CLUSTER: NOW_MS - 3 * HOUR_MS})

    writer = DeltaRsWriter(written.directory, "kardia-test/1", meanwhile)
    writer.prepare()
    writer.write(written.batch, to_tables(written.crowd.second(NOW_MS + 1_000, 0), written.batch))
    assert gone["progress"] > 0
    assert sum(rows > 0 for rows in gone.values()) > 1
    assert writer.written() == written.batch
    for name in gone:
        batches = written.column(name, "batch_id")
        assert written.batch in batches
    writer.close()


def test_files_without_old_rows_are_not_rewritten(written: Written) -> None:
    """Old files go as they are; of the others at most the one in which the cutoff falls is written anew."""
    before = set(open_table(written.directory, "health").file_uris())
    retention.let_go(open_table(written.directory, "health"), "health", {CLUSTER: NOW_MS - 5 * HOUR_MS - 1_800_000})
    after = set(DeltaTable(written.directory / "health").file_uris())
    assert len(after - before) <= 1
    assert len(after) < len(before)


def test_what_is_left_of_a_file_has_the_types_of_the_table(written: Written) -> None:
    """delta-rs' own `delete` leaves texts that Arrow does not compare with others: no question could be answered."""
    for name in ("health", "rebalances", "progress"):
        retention.let_go(open_table(written.directory, name), name, {CLUSTER: NOW_MS - 5 * HOUR_MS - 1_800_000})
        for file in open_table(written.directory, name).file_uris():
            found = pq.read_schema(file.removeprefix("file://"))
            assert {found.field(column).type for column in ("cluster_id", "group_id")} == {pa.string()}, name


def test_files_that_no_log_names_go_when_nobody_can_be_writing_them_any_more(written: Written) -> None:
    """A writer that was killed between its file and its commit leaves one."""
    left, new = (written.directory / "health" / f"part-{name}.parquet" for name in ("left", "new"))
    for path, age_s in ((left, 3_600), (new, 60)):
        path.write_bytes(b"torn")
        os.utime(path, (time.time() - age_s, time.time() - age_s))
    written.kept()
    assert (left.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Keep()),
        ("health=36h", Keep(health_ms=36 * HOUR_MS)),
        ("health=2d, history=90d,events=4w ,rejected=forever", Keep(2 * DAY_MS, 90 * DAY_MS, FOREVER_MS, 28 * DAY_MS)),
    ],
)
def test_the_setting(text: str, expected: Keep) -> None:
    assert keep_of(text) == expected
    assert keep_of(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("health", "names nothing that is kept"),
        ("helth=7d", "names nothing that is kept; expected health, history, rejected, events"),
        ("health=7", "is no age; expected 36h, 7d, 4w or forever"),
        ("health=1h", "is less than what readers look back; expected 2h or more"),
        ("history=0d", "expected 2d or more"),
        ("events=7d,events=8d", "given twice"),
    ],
)
def test_a_setting_that_says_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(KeepError, match=said):
        keep_of(text)


def test_every_table_is_kept_for_a_time_that_is_said() -> None:
    said = [name for kind in KINDS.values() for name in kind.tables]
    assert sorted([*said, "progress"]) == sorted(TABLES)
