"""A disk that is full or read-only, met on a real one: a small file system in memory that is mounted for the test.

Goal: whenever it refuses, at creation, in spilling or at a commit, a sentence names the directory of the tables and
what the disk said, and never blames the input. Both engines of a replay; the job before it starts anything.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kardia.observe import ObserverSettings
from spark_jobs.errors import TablesError
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, Told, replay
from spark_jobs.settings import StreamSettings
from tests.ingest.lines import line
from tests.spark_jobs.support import STORY
from tests.support.stories import Story

FACTORY = ObserverFactory(ObserverSettings("c"))
LOG = Story(STORY).folder / "kafka-request.log.gz"
FULL = r"cannot be written: No space left on device \(.*disk.*\)\. Expected: .*room"
READ_ONLY = r"cannot be written: Read-only file system \(.*disk.*\)\. Expected: .*right to write"

Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a file system of so many kilobytes; and mounts it read-only."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = False

    def run(*words: str) -> bool:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def mount(kilobytes: int = 0) -> Path:
        nonlocal mounted
        if kilobytes:
            if not run("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)):
                pytest.skip("file systems may not be mounted here: that takes root, and the right to")
            mounted = True
        else:
            assert run("mount", "-o", "remount,ro", str(path))
        return path

    yield mount
    if mounted:
        assert run("umount", str(path))


def fill(disk: Path) -> None:
    """To the last byte."""
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)
    assert shutil.disk_usage(disk).free == 0


def test_full_at_the_creation_of_the_tables(mount: Mount) -> None:
    disk = mount(12)
    with pytest.raises(TablesError, match=FULL):
        replay(Inputs([LOG]), disk / "tables", FACTORY, workers=1)


def test_full_before_the_directory_can_be_made(mount: Mount) -> None:
    disk = mount(1_024)
    fill(disk)
    with pytest.raises(TablesError, match=FULL):
        replay(Inputs([LOG]), disk / "tables", FACTORY, workers=1)


def test_full_in_spilling(mount: Mount, tmp_path: Path) -> None:
    disk = mount(128)
    log = tmp_path / "kafka-request.log"
    log.write_bytes(b"".join(line(number) + b"\n" for number in range(2_000)))
    with pytest.raises(
        TablesError, match=r"parsed lines cannot be written: No space left on device \(.*disk.*make room"
    ):
        replay(Inputs([log]), disk / "tables", FACTORY, workers=1)
    assert not list((disk / "tables").glob(".kardia-spill-*")), "nothing is left behind"


def test_full_at_a_commit(mount: Mount) -> None:
    disk = mount(1_024)
    told = Told(advanced=lambda _bytes, lines: None if lines else fill(disk))  # parsed and spilled, nothing stepped yet
    with pytest.raises(TablesError, match=FULL):
        replay(Inputs([LOG]), disk / "tables", FACTORY, workers=1, told=told)
    (disk / "filler").unlink()
    assert replay(Inputs([LOG]), disk / "tables", FACTORY, workers=1, overwrite=True).members


def test_read_only_at_creation_and_with_tables_in_it(mount: Mount) -> None:
    disk = mount(1_024)
    replay(Inputs([LOG]), disk / "tables", FACTORY, workers=1)
    mount()
    for tables, append in (("others", False), ("tables", True)):
        with pytest.raises(TablesError, match=READ_ONLY):
            replay(Inputs([LOG]), disk / tables, FACTORY, workers=1, append=append)


def test_the_job_names_a_directory_that_it_may_not_write_to(mount: Mount, tmp_path: Path) -> None:
    from spark_jobs.job import run

    disk = mount(1_024)
    mount()
    for tables, checkpoint in ((disk / "tables", tmp_path / "checkpoint"), (tmp_path / "tables", disk / "checkpoint")):
        settings = StreamSettings(bootstrap_server="127.0.0.1:1", cluster="c", tables=tables, checkpoint=checkpoint)
        with pytest.raises(TablesError, match=READ_ONLY):
            run(settings, lambda: True, lambda _: None)


@pytest.mark.slow
def test_with_spark_it_is_the_same_sentence(mount: Mount, tmp_path: Path) -> None:
    from spark_jobs.replay.on_spark import replay_on_spark

    log = tmp_path / "kafka-request.log"
    log.write_bytes(b"".join(line(number) + b"\n" for number in range(2_000)))
    disk = mount(128)
    with pytest.raises(TablesError, match=r"No space left on device \(.*disk"):  # its tasks spill
        replay_on_spark(Inputs([log]), disk / "tables", FACTORY, master="local[1]")
    mount()
    with pytest.raises(TablesError, match=READ_ONLY):
        replay_on_spark(Inputs([log]), disk / "others", FACTORY, master="local[1]")
