"""The archive of the job's classes: a JVM takes it where it fits, and goes on without it where it does not."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.jvm import classes, jars, java
from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.errors import JvmError
from spark_jobs.spark.session import JAVA_OPTIONS, _on_this_machine

CLASSES = b"java/lang/Object\norg/apache/kafka/common/TopicPartition\norg/apache/kafka/NoSuchClass\n"
"""Few, so that it is made at once."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Jars of a job, whose archive is to lie in a cache of its own."""
    found = jars.ensure("spark")
    monkeypatch.setattr(classes, "cache_dir", lambda: tmp_path)
    return found


def maps(archive: Path, class_path: str, how: str) -> int:
    """Exit status of a JVM that is given the archive: with `on` it does not start without one that fits."""
    command = [str(java.find().path), f"-Xshare:{how}", f"-XX:SharedArchiveFile={archive}", "-cp", class_path]
    return subprocess.run([*command, "-version"], capture_output=True, check=False).returncode


def test_a_jvm_takes_it_where_it_fits_and_starts_without_it_where_it_does_not(files: list[Path]) -> None:
    runtime = java.find()
    archive, class_path = classes.place(files, runtime.home), os.pathsep.join(map(str, files))
    assert classes.options(files, runtime.home) == ""
    classes.make(CLASSES, class_path, runtime.path, archive)
    assert [path.name for path in archive.parent.iterdir()] == [archive.name], "nothing else is left"
    assert maps(archive, class_path, "on") == 0
    others = os.pathsep.join(map(str, files[1:]))
    assert (maps(archive, others, "on"), maps(archive, others, "auto")) == (1, 0)
    assert f"-XX:SharedArchiveFile={archive}" in _on_this_machine(files, runtime.home)[JAVA_OPTIONS]
    assert classes.place(files[1:], runtime.home) != archive, "other jars have an archive of their own"


def test_one_that_cannot_be_made_is_a_sentence_and_leaves_nothing(files: list[Path], tmp_path: Path) -> None:
    archive = classes.place(files, None)
    with pytest.raises(JvmError, match=r"cannot be made: .*Next: the job starts without it"):
        classes.make(CLASSES, "", tmp_path / "nowhere" / "java", archive)
    assert not list(archive.parent.iterdir())


def test_the_list_holds_what_the_job_loads() -> None:
    named = {line.split(b" ", 1)[0] for line in gzip.decompress(classes.LIST.read_bytes()).splitlines()}
    assert {b"org/apache/spark/SparkContext", b"org/apache/spark/sql/kafka010/KafkaMicroBatchStream"} <= named


@pytest.mark.long
def test_the_command_makes_it_once(tmp_path: Path) -> None:
    (tmp_path / "jars").symlink_to(cache_dir() / "jars")
    environment = {**os.environ, "KARDIA_CACHE": str(tmp_path)}

    def run() -> str:
        command = [sys.executable, "-m", "spark_jobs.class_archive"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "Jobs on this machine start with it." in run()
    assert "is there already" in run()
