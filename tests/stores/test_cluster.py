"""The job on a real Spark cluster: a master and two workers, which share nothing with the driver but the store.

Goal: executors take Kardia from the archive that the job brings; tables, checkpoint and archive lie in the object
store; with an executor, a worker and the driver killed, the driver also between the steps of a commit, the tables are
those of a run on one machine that nothing disturbed: every row once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.broker import Broker
from demo.object_store import ObjectStore
from demo.spark_cluster import SparkCluster
from kardia.tables import EVENTS, LIVE_TABLES
from spark_jobs.executor_archive import pack
from spark_jobs.writers.faults import VARIABLE
from spark_jobs.writers.tables import highest_batch
from stores.locations import Store
from tests.spark_jobs.support import ROOT, all_rows, run_stream, stream_command
from tests.stores.conftest import TOPIC

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7_200)]

WAIT_S = 900.0


@pytest.fixture(scope="module")
def executors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive for the executors."""
    target = tmp_path_factory.mktemp("packed") / "executors.tar.gz"
    assert pack(target) > 10_000_000
    return target


@pytest.fixture
def cluster(in_environment: ObjectStore, tmp_path: Path) -> Iterator[SparkCluster]:
    """A master and two workers."""
    with SparkCluster(tmp_path / "cluster", 2, in_environment.environ) as found:
        yield found


def command_of(kafka: Broker, cluster: SparkCluster, executors: Path, place: Store) -> list[str]:
    checkpoint = Store(place.bucket, place.prefix.replace("/tables", "/checkpoint"))
    return [
        *stream_command(kafka.bootstrap, TOPIC, Path("unused"), "--once"),
        *("--tables", str(place), "--checkpoint", str(checkpoint)),
        *("--master", cluster.master, "--executors", str(executors), "--conf", "spark.executor.memory=1g"),
    ]


@contextmanager
def driving(command: list[str], log: Path, fault: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """The driver as a process of its own."""
    environment = {
        **os.environ,
        "KARDIA_STREAM_MAX_RECORDS": "20",
        "KARDIA_STREAM_ARCHIVE_MAX_RECORDS": "40",
        "SPARK_LOCAL_IP": "127.0.0.1",
        VARIABLE: fault,
    }
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def wait_until(reached: Callable[[], bool], what: str, log: Path) -> None:
    end_s = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < end_s, f"{what}: {log.read_text()[-3_000:]}"
        time.sleep(0.5)


def has_batch(place: Store, number: int) -> bool:
    highest = highest_batch(place, ("progress",))
    return highest is not None and highest >= number


def test_executor_worker_and_driver_killed_every_row_is_there_once(
    kafka: Broker, straight: Path, cluster: SparkCluster, executors: Path, place: Store, tmp_path: Path
) -> None:
    command, log = command_of(kafka, cluster, executors, place), tmp_path / "driver.log"
    with driving(command, log, "members:written@8") as process:
        wait_until(lambda: has_batch(place, 1), "the first batches", log)
        cluster.workers[0].executors()[0].kill()
        wait_until(lambda: has_batch(place, 2), "batches after an executor was killed", log)
        cluster.workers[1].kill()
        wait_until(lambda: has_batch(place, 4), "batches after a worker was killed", log)
        cluster.start_worker(1)
        process.wait(WAIT_S)
        assert process.returncode == -signal.SIGKILL, log.read_text()[-3_000:]
    with driving(command, log) as process:
        wait_until(lambda: has_batch(place, 9), "batches of the second driver", log)
        process.kill()
    assert "driver" not in {path.name for path in (tmp_path / "cluster").rglob("*")}
    with driving(command, log, "progress:before@12") as process:
        process.wait(WAIT_S)
        assert process.returncode == -signal.SIGKILL, log.read_text()[-3_000:]
    done = run_stream(command, {"SPARK_LOCAL_IP": "127.0.0.1"}, timeout_s=WAIT_S)
    assert done.returncode == 0, done.stderr[-3_000:]
    names = (*LIVE_TABLES, EVENTS.name)
    assert all_rows(place, names) == all_rows(straight, names)
