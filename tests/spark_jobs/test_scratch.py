"""The folder of a run: gone with it, or with the next one if it was killed; never that of a run that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spark_jobs.errors import RefusedError
from spark_jobs.spark.scratch import PREFIX, YOUNG_S, java_option, of_spark, remove_left, scratch

HOLDS = """
import sys
from spark_jobs.spark.scratch import scratch
with scratch() as folder:
    (folder / "secret").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TMPDIR of the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def aged(folder: Path) -> None:
    """Let it have been made long ago."""
    then_s = folder.stat().st_mtime - YOUNG_S - 1
    os.utime(folder, (then_s, then_s))


def test_it_is_private_and_gone_in_the_end(place: Path) -> None:
    with scratch() as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "a").mkdir()
    assert list(place.iterdir()) == []


def test_a_killed_run_leaves_nothing_for_longer_than_to_the_next_one(place: Path) -> None:
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        folder = Path(other.stdout.readline().strip())
        aged(folder)
        remove_left()
        assert (folder / "secret").exists()
        other.send_signal(signal.SIGKILL)
        other.wait()
        with scratch() as own:
            assert list(place.iterdir()) == [own]


def test_one_that_is_just_being_made_stays(place: Path) -> None:
    young = place / f"{PREFIX}young"
    young.mkdir()
    remove_left()
    assert young.exists()
    aged(young)
    remove_left()
    assert not young.exists()


def test_a_link_of_that_name_is_left_alone(place: Path) -> None:
    target = place / "else"
    target.mkdir()
    (place / f"{PREFIX}link").symlink_to(target)
    aged(target)
    remove_left()
    assert target.exists()


def test_where_none_can_be_made_a_sentence_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place / "nowhere"))
    with pytest.raises(RefusedError, match="no folder for temporary files can be made: No such file"), scratch():
        pass


def test_sockets_lie_elsewhere_where_their_paths_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = Path("/short/kardia-run-abcdefgh"), Path("/" + "x" * 90)
    sockets = "spark.python.unix.domain.socket.dir"
    assert of_spark(short) == {sockets: str(short)}
    monkeypatch.setattr(tempfile, "tempdir", "/another")
    assert of_spark(long)[sockets] == "/another"
    monkeypatch.setattr(tempfile, "tempdir", str(long.parent / ("y" * 90)))
    assert len(of_spark(long)[sockets]) < 10


def test_a_folder_with_spaces_and_quotes_is_one_option() -> None:
    assert java_option(Path('/a b/c"d')) == '-Djava.io.tmpdir="/a b/c\\"d"'
