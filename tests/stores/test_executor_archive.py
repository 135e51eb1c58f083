"""What a cluster is given: an archive that is whole by itself, settings without a secret, refusals before all else.

The job on a real cluster is in `test_cluster.py`.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from spark_jobs import executor_archive
from spark_jobs.spark import cluster
from tests.story.conftest import kardia

IMPORTED = (
    "import kardia.observe.observer, ingest.wire.batches, spark_jobs.archive.marks, spark_jobs.lane; "
    "print(kardia.__file__)"
)


@pytest.mark.slow
@pytest.mark.long
def test_the_archive_has_all_that_its_modules_import(tmp_path: Path) -> None:
    archive = tmp_path / "executors.tar.gz"
    assert executor_archive.pack(archive) == archive.stat().st_size > 10_000_000
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    said = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTED],  # -S: nothing that is installed here is found
        env={"PYTHONPATH": str(tmp_path / "unpacked"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip().startswith(str(tmp_path / "unpacked"))


def test_the_archive_has_our_rooms_and_what_their_libraries_require() -> None:
    names = {name.split("/")[0] for _, name in executor_archive.files()}
    assert {
        *executor_archive.ROOMS,
        "msgspec",
        "pyarrow",
        "pandas",
        "numpy",
        "deltalake",
        "duckdb",
        "dateutil",
    } <= names
    assert not {"pyspark", "api", "cli", "fastapi"} & names


STREAM = ("stream", "--bootstrap-server", "127.0.0.1:1", "--tables", "t", "--checkpoint", "c")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--master", "spark://127.0.0.1:1"), "there is nothing to give to the executors"),
        (("--master", "spark://127.0.0.1:1", "--executors", "none.tar.gz"), "there is no such archive"),
        (("--conf", "executor.memory=1g"), "is no setting of Spark"),
        (("--conf", "spark.executor.memory"), "is no setting of Spark"),
    ],
)
def test_what_a_cluster_needs_is_asked_for_before_anything_runs(
    more: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = kardia(*STREAM, *more)
    assert (said.code, expected in said.err, "Next: " in said.err) == (2, True, True), said
    assert not list(tmp_path.iterdir())


def test_settings_of_executors_name_the_archive_and_no_folder_of_the_driver(tmp_path: Path) -> None:
    archive = tmp_path / "executors.tar.gz"
    archive.touch()
    found = cluster.settings([Path("/jars/a.jar"), Path("/jars/b.jar")], archive, ("OMP_NUM_THREADS",))
    assert found == {
        "spark.jars": "/jars/a.jar,/jars/b.jar",
        "spark.archives": f"{archive}#{cluster.FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{cluster.FOLDER}",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
    }
    assert cluster.given(["spark.a=1", "spark.b=x=y"]) == {"spark.a": "1", "spark.b": "x=y"}
