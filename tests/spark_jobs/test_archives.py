"""Logs as people have them give the tables that the plain logs give, and what was damaged has its row."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kardia.observe import ObserverSettings
from kardia.tables import TABLES
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay import portions
from spark_jobs.replay.run import Inputs, replay
from tests.ingest.archives import wrapping
from tests.ingest.archives.test_unwrapping import output
from tests.spark_jobs.support import ROOT, rows, told_rows
from tests.support.stories import CORPORA

STORY = CORPORA / "c01_kill-3.9.2"
FACTORY = ObserverFactory(ObserverSettings(cluster_id="demo"))
FACTS = ("transitions", "rebalances", "members", "predictions")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the story, each log by its option."""
    tables = tmp_path_factory.mktemp("plain")
    requests, server, records = (
        [STORY / name] for name in ("kafka-request.log.gz", "server.log.gz", "offsets.jsonl.gz")
    )
    replay(Inputs(requests, server, records), tables, FACTORY, workers=1)
    return tables


def test_a_folder_with_the_output_of_a_container_gives_the_same_tables(tmp_path: Path, plain: Path) -> None:
    pod = tmp_path / "pods" / "kafka-0"
    pod.mkdir(parents=True)
    half = len(output()) // 2
    (pod / "0.log").write_bytes(wrapping.cri(output()[half:]))
    (pod / "0.log.20261120-101010.gz").write_bytes(gzip.compress(wrapping.cri(output()[:half])))
    (tmp_path / "pods" / "records").write_bytes((STORY / "offsets.jsonl.gz").read_bytes())
    found = replay(Inputs(files=[tmp_path / "pods"]), tmp_path / "t", FACTORY, workers=1)
    assert (found.archives.unwrapped, found.rejected, found.archives.left_out) == (2, 0, [])
    assert told_rows(tmp_path / "t", FACTS) == told_rows(plain, FACTS)
    assert not list((tmp_path / "t").glob(".kardia-spill-*"))


def test_a_damaged_export_is_read_and_what_was_damaged_is_listed(tmp_path: Path, plain: Path) -> None:
    documents = wrapping.elastic(output()).splitlines(keepends=True)
    documents[10:10] = [b'{"_source": {"message": "[2026\n', b'{"_source": {"host": {"name": "kafka-1"}}}\n']
    export = tmp_path / "export.json"
    export.write_bytes(b"".join(documents))
    command = (sys.executable, "-m", "cli.main", "replay", str(export), "--tables", str(tmp_path / "t"))
    more = ("--cluster", "demo", "--offsets", str(STORY / "offsets.jsonl.gz"))
    done = subprocess.run((*command, *more), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "damaged" in done.stdout
    refused = rows(tmp_path / "t", "rejected")
    assert [(row["reason"], row["source"].partition("/")[0]) for row in refused] == [
        ("bad_json", "archives"),
        ("unknown_shape", "archives"),
    ]
    reached = {source: to_ms for source, to_ms in progress_of(tmp_path / "t").items() if "offsets" not in source}
    assert len(reached) == 3
    assert len(set(reached.values())) == 1, "what was damaged near the begin holds nothing back"
    assert [row["start"] for row in refused] == [sum(map(len, documents[:10])), sum(map(len, documents[:11]))]
    assert told_rows(tmp_path / "t", FACTS) == told_rows(plain, FACTS)


def other_day(log: bytes, day: bytes, prefix: bytes) -> bytes:
    """The same on another day, about groups and members of other names."""
    return (
        log.replace(b"[2026-11-20 ", b"[2026-11-" + day + b" ").replace(b"g01", prefix + b"01").replace(b"c01-", prefix)
    )


@pytest.mark.parametrize("step", [1, 16], ids=("piece by piece", "at once"))
def test_a_request_log_of_one_day_beside_a_server_log_of_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Each day is told by what there is of it; the day with requests as if there were no other."""
    server = gzip.decompress((STORY / "server.log.gz").read_bytes())
    days = {name: tmp_path / f"server.log.{name}" for name in ("19", "20", "21")}
    days["19"].write_bytes(other_day(server, b"19", b"f"))
    days["20"].write_bytes(server)
    days["21"].write_bytes(other_day(server, b"21", b"h"))
    monkeypatch.setattr(portions.Portions.__init__, "__defaults__", (step, frozenset()))
    request = [STORY / "kafka-request.log.gz"]
    replay(Inputs(request, list(days.values())), tmp_path / "all", FACTORY, workers=1)
    replay(Inputs(request, [days["20"]]), tmp_path / "20", FACTORY, workers=1)
    for name, day in (("f01", "19"), ("h01", "21")):
        replay(Inputs((), [days[day]]), tmp_path / day, FACTORY, workers=1)
        for table in ("transitions", "rebalances", "members"):
            assert told_of(tmp_path / "all", table, name, day) == told_of(tmp_path / day, table, name, day) != []
    for table in ("rebalances", "members"):
        assert told_of(tmp_path / "all", table, "g01", "20") == told_of(tmp_path / "20", table, "g01", "20") != []


def told_of(tables: Path, name: str, group_id: str, day: str) -> list[dict[str, object]]:
    """What was said of a group on its day, without when it was known, which depends on how far the logs go, and which
    broker: alone a server.log names it by its number. (On the next day the broker starts again, and loses it.)"""
    over_ms = datetime(2026, 11, int(day) + 1, tzinfo=UTC).timestamp() * 1000
    best: dict[tuple[object, ...], dict[str, object]] = {}
    for row in sorted(rows(tables, name), key=lambda one: one["known_at_ms"]):
        if row["group_id"] == group_id and row["at_ms"] < over_ms:
            best[tuple(row[column] for column in TABLES[name].key)] = row
    left_out = {"known_at_ms", "batch_id", "broker", "evidence"}
    return [{column: value for column, value in row.items() if column not in left_out} for row in best.values()]


def progress_of(tables: Path) -> dict[str, int]:
    """How far each source is complete."""
    reached: dict[str, int] = {}
    for row in rows(tables, "progress"):
        reached[row["source"]] = max(row["complete_to_ms"], reached.get(row["source"], 0))
    return reached


def test_what_is_no_log_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing\n")
    command = (sys.executable, "-m", "cli.main", "replay", str(tmp_path / "a.txt"), "--tables", str(tmp_path / "t"))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "none of these is a log that Kardia reads" in done.stderr
    assert "a.txt" in done.stderr
