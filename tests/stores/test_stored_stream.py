"""The live job with its tables in a real object store: killed between its steps, it writes what it writes undisturbed.

Goal: tables, then checkpoint and archive as well, in the store; every kind of step killed; the same rows as a job on a
disk, each event archived once. A driver that goes on although a newer one has begun writes nothing more.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from demo.broker import Broker
from demo.object_store import ObjectStore
from kardia.tables import EVENTS, LIVE_TABLES
from spark_jobs.writers.faults import VARIABLE
from stores.locations import Folder, Store
from tests.spark_jobs.support import all_rows, kill_and_finish, run_stream, stream_command
from tests.stores.conftest import TOPIC

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3_600)]

KILLS = ("members:before@2", "members:written@3", "progress:before@4", "batch:written@5", "batch:before@7")
ARCHIVE_KILLS = ("events:before@0", "events:written@1", "marks:written@2")


def command_of(kafka: Broker, tables: Folder, checkpoint: Folder, *more: str) -> list[str]:
    return [
        *stream_command(kafka.bootstrap, TOPIC, Path("unused"), "--once", *more),
        *("--tables", str(tables), "--checkpoint", str(checkpoint)),
    ]


def test_tables_in_a_store_and_the_checkpoint_on_a_disk(
    kafka: Broker, straight: Path, place: Store, tmp_path: Path
) -> None:
    kill_and_finish(command_of(kafka, place, tmp_path / "checkpoint", "--no-archive"), KILLS)
    assert all_rows(place) == all_rows(straight)


def test_tables_checkpoint_and_archive_in_a_store(
    kafka: Broker, straight: Path, place: Store, object_store: ObjectStore
) -> None:
    """The archive has a checkpoint of its own, so that its first batches come when the live tables are on their way."""
    checkpoint = Store(place.bucket, place.prefix.replace("/tables", "/checkpoint"))
    for kill in KILLS[1::2]:
        killed = run_stream(command_of(kafka, place, checkpoint, "--no-archive"), {VARIABLE: kill})
        assert killed.returncode == -signal.SIGKILL, (kill, killed.stderr[-3_000:])
    kill_and_finish(command_of(kafka, place, checkpoint), ARCHIVE_KILLS)
    names = (*LIVE_TABLES, EVENTS.name)
    assert all_rows(place, names) == all_rows(straight, names)
    said = run_stream(command_of(kafka, place, checkpoint)).stderr
    assert object_store.secret_key not in said
