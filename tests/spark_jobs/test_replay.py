"""Replay of recorded stories: what it refuses, what it adds, and that both engines give the same tables."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from cli.options import spread
from cli.output import replaying
from ingest.archives.ranges import plan
from kardia.observe import ObserverSettings
from kardia.tables import LIVE_TABLES
from spark_jobs.errors import InputFileError
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay import inputs as replay_inputs
from spark_jobs.replay import run as replaying_run
from spark_jobs.replay.run import Inputs, replay
from tests.spark_jobs.support import ROOT, rows, table_names_with_rows, told_rows
from tests.support.stories import CORPORA

STORY = CORPORA / "c04_mpi-4.1.2"
THREE_BROKERS = CORPORA / "m01_coordinator_kill-4.1.2"
FACTORY = ObserverFactory(ObserverSettings(cluster_id="demo"))
FACTS = ("transitions", "rebalances", "members", "predictions", "rejected")


def inputs_of(story: Path) -> Inputs:
    return Inputs(
        sorted(story.glob("kafka-request*.log.gz")), sorted(story.glob("server*.log.gz")), [story / "offsets.jsonl.gz"]
    )


def command(tables: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "cli.main", "replay", "--tables", str(tables), "--request-log"),
            *(str(STORY / "kafka-request.log.gz"), "--cluster", "demo", *more),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_small_logs_keep_a_history_of_health_and_others_the_last_of_it(tmp_path: Path) -> None:
    """Without it there are no deadlines at an instant in the past; the facts are the same either way."""
    kept, last = tmp_path / "kept", tmp_path / "last"
    assert "every 5 s" in command(kept).stdout
    assert "the last only" in command(last, "--health-every", "0").stdout
    assert len({row["at_ms"] for row in rows(kept, "health")}) > 2 * len({row["at_ms"] for row in rows(last, "health")})
    for name in FACTS:
        assert told_rows(kept, [name]) == told_rows(last, [name]), name


def test_what_is_small_is_the_sum_of_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [tmp_path / "one", tmp_path / "two"]
    for log in logs:
        log.write_bytes(b"x" * 600)
    monkeypatch.setattr(replaying, "SMALL_BYTES", 1_000)
    assert replaying.health_every_s(None, logs[:1]) == replaying.HEALTH_EVERY_S
    assert replaying.health_every_s(None, logs) == 0.0
    assert replaying.health_every_s(1.5, logs) == 1.5


def test_a_story_becomes_tables_and_a_summary(tmp_path: Path) -> None:
    done = command(
        tmp_path / "t", "--server-log", str(STORY / "server.log.gz"), "--offsets", str(STORY / "offsets.jsonl.gz")
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"members\W+7\b", done.stdout)
    assert re.search(r"poll_timeout\W+2\b", done.stdout)
    assert {"transitions", "rebalances", "members", "health", "predictions", "progress"} <= table_names_with_rows(
        tmp_path / "t"
    )
    assert not list((tmp_path / "t").glob(".kardia-spill-*"))

    again = command(tmp_path / "t")
    assert again.returncode == 1
    assert "already hold batches up to" in again.stderr
    assert "--overwrite" in again.stderr
    before = rows(tmp_path / "t", "members")
    assert command(tmp_path / "t", "--append").returncode == 0
    after = rows(tmp_path / "t", "members")
    assert len(after) > len(before)
    assert [row for row in after if row["batch_id"] <= before[-1]["batch_id"]] == before
    assert command(tmp_path / "t", "--overwrite").returncode == 0
    assert {row["batch_id"] for row in rows(tmp_path / "t", "members")} == {0}


def test_plain_and_packed_in_one_portion_or_many_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inputs_of(STORY)
    replay(whole, tmp_path / "packed", FACTORY)
    plain = tmp_path / "plain-logs"
    plain.mkdir()
    for packed in STORY.glob("*.gz"):
        with gzip.open(packed) as source, (plain / packed.stem).open("wb") as target:
            shutil.copyfileobj(source, target)
    cut = Inputs([plain / "kafka-request.log"], [plain / "server.log"], [plain / "offsets.jsonl"])
    monkeypatch.setattr(replaying_run, "plan", partial(plan, range_bytes=200_000))
    monkeypatch.setattr(replay_inputs, "GROUP_BYTES", 400_000)
    summary = replay(cut, tmp_path / "cut", FACTORY, workers=2)
    assert summary.portions > 3
    assert told_rows(tmp_path / "cut", FACTS) == told_rows(tmp_path / "packed", FACTS)


@pytest.mark.slow
def test_both_engines_give_the_same_tables(tmp_path: Path) -> None:
    """Three brokers and a group that moves between them. Batches are the same too, so every row must be."""
    from spark_jobs.replay.on_spark import replay_on_spark

    pool = replay(inputs_of(THREE_BROKERS), tmp_path / "pool", FACTORY)
    spark = replay_on_spark(inputs_of(THREE_BROKERS), tmp_path / "spark", FACTORY)
    assert told_rows(tmp_path / "spark", LIVE_TABLES, ()) == told_rows(tmp_path / "pool", LIVE_TABLES, ())
    assert spark == pool
    assert table_names_with_rows(tmp_path / "pool") >= {"transitions", "members", "progress"}


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"no such file.*nowhere"):
        replay(Inputs([tmp_path / "nowhere"]), tmp_path / "a", FACTORY)
    torn = tmp_path / "torn.log.gz"
    torn.write_bytes((STORY / "kafka-request.log.gz").read_bytes()[:-20_000])
    with pytest.raises((InputFileError, EOFError), match=r"torn|end-of-stream"):
        replay(Inputs([torn]), tmp_path / "b", FACTORY)


def test_an_empty_log_gives_tables_without_rows(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log").write_bytes(b"")
    summary = replay(Inputs([tmp_path / "kafka-request.log"]), tmp_path / "t", FACTORY)
    assert (summary.lines, summary.groups) == (0, 0)
    assert rows(tmp_path / "t", "members") == []


def test_several_values_after_one_option() -> None:
    several = frozenset({"--x"})
    assert spread(["--x", "a", "b", "--y", "c", "--x", "d"], several) == [
        "--x",
        "a",
        "--x",
        "b",
        "--y",
        "c",
        "--x",
        "d",
    ]
    assert spread(["--x", "a", "--", "b"], several) == ["--x", "a", "--", "b"]
    assert spread(["--x=a", "--y", "-"], several) == ["--x=a", "--y", "-"]
