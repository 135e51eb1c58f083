"""Both writers, killed with -9 between every two numbered steps and repeated: nothing lost, nothing doubled.

The delta-rs sweep kills at every step; that of delta-spark at two of them, and at all of them in `make test-long`,
because each of its starts is a JVM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kardia.tables import LIVE_TABLES
from spark_jobs.errors import LeaseError, TablesError
from spark_jobs.leases.disk_lease import Lease
from spark_jobs.schemas import ARROW_SCHEMAS, to_tables
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.faults import VARIABLE
from spark_jobs.writers.tables import create_or_open, highest_batch, last_version
from tests.spark_jobs.support import ROOT, all_rows
from tests.spark_jobs.writing import APP_ID, batch, write

BATCHES = 4
FAULT_BATCH = 2
STEPS = [
    "batch:before",
    *(f"{name}:{moment}" for name in batch(FAULT_BATCH) for moment in ("before", "written")),
    "batch:written",
]
AT_ONCE = 2
"""Steps at a time: each is two processes, one after the other, that mostly start."""

SOME_STEPS = ["batch:before", "members:written", "progress:before", "progress:written"]


def run(kind: str, directory: Path, fault: str = "") -> int:
    return subprocess.run(
        [sys.executable, "-m", "tests.spark_jobs.writing", kind, str(directory), str(BATCHES)],
        cwd=ROOT,
        env={**os.environ, VARIABLE: fault, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=600,
        check=False,
    ).returncode


def expected(directory: Path) -> dict[str, list[dict[str, Any]]]:
    writer = DeltaRsWriter(directory, APP_ID)
    write(writer, BATCHES)
    return all_rows(directory)


def sweep(kind: str, steps: list[str], tmp_path: Path) -> None:
    """Kill at one step after the other, each on tables of its own; then repeat and compare."""
    wanted = expected(tmp_path / "straight")

    def kill_and_repeat(step: str) -> None:
        directory = tmp_path / step.replace(":", "-")
        assert run(kind, directory, f"{step}@{FAULT_BATCH}") == -signal.SIGKILL, step
        half = all_rows(directory)
        trusted = max((row["batch_id"] for row in half["progress"]), default=-1)
        assert trusted == (FAULT_BATCH if step in ("progress:written", "batch:written") else FAULT_BATCH - 1), step
        for name in LIVE_TABLES:
            before = [row for row in wanted[name] if row["batch_id"] <= trusted]
            assert [row for row in half[name] if row["batch_id"] <= trusted] == before, (step, name)
        assert run(kind, directory) == 0, step
        assert all_rows(directory) == wanted, step

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(kill_and_repeat, steps))


def test_every_kind_of_step_is_swept() -> None:
    assert set(SOME_STEPS) < set(STEPS)
    assert len(STEPS) == 2 + 2 * len(batch(FAULT_BATCH)) >= 10


def test_delta_rs_killed_between_every_two_steps(tmp_path: Path) -> None:
    sweep("delta-rs", STEPS, tmp_path)


@pytest.mark.slow
@pytest.mark.long
def test_delta_spark_killed_in_the_midst_of_a_batch(tmp_path: Path) -> None:
    sweep("delta-spark", SOME_STEPS[1:2], tmp_path)


@pytest.mark.slow
@pytest.mark.long
def test_delta_spark_killed_between_every_two_steps(tmp_path: Path) -> None:
    sweep("delta-spark", STEPS, tmp_path)


def test_a_table_of_another_shape_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "health", ARROW_SCHEMAS["members"])
    with pytest.raises(TablesError, match="health has another shape"):
        create_or_open(tmp_path, "health")


def test_a_table_whose_log_is_torn_is_refused_by_name(tmp_path: Path) -> None:
    """One that has rows; a creation that was cut off is done again (test_cut_off_creation)."""
    table = create_or_open(tmp_path, "health")
    table.alter.set_table_properties({"kardia.of": "a test"}, raise_if_not_exists=False)
    (tmp_path / "health" / "_delta_log" / "00000000000000000000.json").write_text('{"protocol":{"minRe')
    with pytest.raises(TablesError, match="health cannot be opened"):
        create_or_open(tmp_path, "health")


def test_maintenance_changes_no_row_and_forgets_no_transaction(tmp_path: Path) -> None:
    writer = DeltaRsWriter(tmp_path, APP_ID)
    writer.prepare()
    for batch_id in range(30):
        writer.write(batch_id, to_tables(batch(batch_id), batch_id))
    before = all_rows(tmp_path)
    said: list[str] = []
    upkeep = Maintenance(tmp_path, said=said.append)
    done = upkeep.run_once()
    assert (done.failures, said) == ((), [])
    assert done.tables >= 5
    assert len(DeltaTable(tmp_path / "progress").file_uris()) == 1
    assert all_rows(tmp_path) == before
    assert last_version(tmp_path, "progress", APP_ID) == 29
    assert highest_batch(tmp_path) == 29
    writer.write(29, to_tables(batch(29), 29))
    assert all_rows(tmp_path) == before
    writer.write(30, to_tables(batch(30), 30))
    assert len(all_rows(tmp_path)["progress"]) == 62
    assert upkeep.run_once().tables == 0
    writer.close()


def test_the_second_run_on_a_directory_is_refused_with_the_holder(tmp_path: Path) -> None:
    with Lease(tmp_path, "run on this checkpoint"), pytest.raises(LeaseError, match=f'"pid": {os.getpid()}'):
        Lease(tmp_path, "run on this checkpoint").take()
    with Lease(tmp_path, "run on this checkpoint"):
        pass


def test_a_lease_ends_with_its_process(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from spark_jobs.leases.disk_lease import Lease; "
        "Lease(Path(sys.argv[1]), 'x').take(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    with Lease(tmp_path, "x"):
        pass
