"""A topic that is deleted and made again, through a real broker and real Spark state.

Goal: nothing of the new topic is skipped, however long it is; what may be lost is told, by the job and as a gap with
bounds; what was known of the groups stays. Method: a recorded story, its first part in a topic that goes, the rest in
one of the same name that is shorter than what was read, as long, or longer.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from demo.broker import Broker
from ingest.wire.batches import decode_batch
from ingest.wire.topic_id import UNKNOWN, topic_id
from kardia.events import Event, Kind, event_id
from spark_jobs.archive.rows import is_archived
from spark_jobs.checkpoint import checkpoint_directory
from spark_jobs.writers.faults import VARIABLE
from supervise import process
from tests.spark_jobs.support import (
    LANES,
    MAX_RECORDS,
    ROOT,
    SLICES,
    Message,
    produce,
    rows,
    run_stream,
    story_messages,
    stream_command,
)

pytestmark = [pytest.mark.slow]

READ_TIMEOUT_S = 240.0


def _make_again(kafka: Broker, topic: str, messages: list[Message]) -> None:
    kafka.delete_topic(topic)
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, messages)


def _events(messages: list[Message]) -> list[tuple[int, Event]]:
    return [(lane, event) for lane, value, _ in messages for event in decode_batch(value or b"")]


def _archived(messages: list[Message]) -> set[str]:
    return {event_id(event) for lane, event in _events(messages) if is_archived(event, lane)}


def _progress(home: Path, since: int) -> list[dict[str, Any]]:
    return [row for row in rows(home / "tables", "progress") if row["batch_id"] >= since]


@pytest.mark.parametrize(
    ("read", "again"),
    [
        (SLICES // 3, (SLICES // 3, SLICES)),
        pytest.param(SLICES // 2, (SLICES // 2, SLICES), marks=pytest.mark.long),
        pytest.param(20, (20, SLICES), marks=pytest.mark.long),
    ],
    ids=["longer", "equal", "shorter"],
)
def test_a_topic_made_again_is_read_from_its_beginning(
    kafka: Broker, tmp_path: Path, request: pytest.FixtureRequest, read: int, again: tuple[int, int]
) -> None:
    topic = f"again.{request.node.callspec.id}"
    first, second = story_messages(end=read), story_messages(begin=again[0], end=again[1])
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, first)
    command = stream_command(kafka.bootstrap, topic, tmp_path, "--once")
    assert run_stream(command).returncode == 0
    before = max(row["batch_id"] for row in rows(tmp_path / "tables", "progress"))

    _make_again(kafka, topic, second)
    if len(second) > len(first):  # once is enough
        killed = run_stream(command, {VARIABLE: f"anew:written@{before}"})
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-3_000:]
    done = run_stream(command)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert f"archive: {topic} is another topic than the one that was read" in done.stderr

    told = _progress(tmp_path, before + 1)
    requests = sum(event.kind < Kind.TICK for _, event in _events(second))
    assert sum(row["events"] + row["duplicates"] for row in told) == requests
    gaps = Counter[int]()
    for row in told:
        gaps[row["lane"]] += row["gaps"]
        if row["gaps"]:
            assert row["gap_from_ms"] <= row["gap_to_ms"]
    assert set(gaps) == set(range(LANES))
    assert all(gaps.values())
    assert {row["event_id"] for row in rows(tmp_path / "tables", "events")} == _archived([*first, *second])

    quiet = run_stream(command)
    assert quiet.returncode == 0
    assert "another topic" not in quiet.stderr
    live = checkpoint_directory.load(tmp_path / "checkpoint" / "live")
    assert live is not None
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assert live.topic_id == topic_id(admin, topic, 30.0) != UNKNOWN


def test_a_job_that_runs_ends_with_what_happened_and_its_next_start_reads_the_new_topic(
    kafka: Broker, tmp_path: Path
) -> None:
    """Spark meets offsets that the new topic does not have before anybody asks which topic it is: neither retention nor
    `--accept-loss` is spoken of."""
    topic = "again.running"
    first, second = story_messages(end=20), story_messages(begin=20)
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, first)
    requests = sum(event.kind < Kind.TICK for _, event in _events(first))

    def has_read() -> bool:
        told = _progress(tmp_path, 0)
        return bool(sum(row["events"] for row in told) >= requests)

    said = tmp_path / "said"
    with said.open("w") as errors:
        job = subprocess.Popen(
            stream_command(kafka.bootstrap, topic, tmp_path, "--no-archive"),
            cwd=ROOT,
            env={**os.environ, "KARDIA_STREAM_MAX_RECORDS": str(MAX_RECORDS)},
            stderr=errors,
        )
        try:
            process.until(has_read, READ_TIMEOUT_S, said.read_text)
            _make_again(kafka, topic, second)
            assert job.wait(READ_TIMEOUT_S) != 0
        finally:
            job.kill()
            job.wait()
    assert f"the topic {topic} was deleted and made again while it was read" in said.read_text()
    assert "--accept-loss" not in said.read_text()

    before = max(row["batch_id"] for row in rows(tmp_path / "tables", "progress"))
    done = run_stream(stream_command(kafka.bootstrap, topic, tmp_path, "--no-archive", "--once"))
    assert done.returncode == 0, done.stderr[-3_000:]
    told = _progress(tmp_path, before + 1)
    assert sum(row["events"] for row in told) == sum(event.kind < Kind.TICK for _, event in _events(second))
    assert {row["lane"] for row in told if row["gaps"]} == set(range(LANES))
