"""Following a file: one test per fault of the catalogue, on real files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.tail.tailer import MAX_OPEN
from tests.ingest.tail.files import Reader, Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kafka-request.log"


@pytest.fixture
def log(path: Path) -> Iterator[Writer]:
    writer = Writer(path)
    yield writer
    writer.file.close()


@pytest.fixture
def reader(path: Path) -> Iterator[Reader]:
    reader = Reader(path)
    yield reader
    reader.tail.close()


def once(reader: Reader) -> None:
    ids = list(reader.ids())
    assert len(ids) == len(set(ids))


def test_a_rename_with_the_writer_still_in_the_old_file(log: Writer, reader: Reader) -> None:
    lines = log.append(2)
    reader.read()
    old = log.file
    log.path.rename(log.path.with_name("kafka-request.log.1"))
    late = log.line()
    os.write(os.dup(old.fileno()), late + b"\n")
    log.file = log.path.open("ab", buffering=0)
    old.close()
    lines += [late, *log.append(2)]
    reader.wait()
    assert reader.texts == lines
    once(reader)
    assert not reader.losses


def test_three_rotations_between_two_looks(log: Writer, reader: Reader) -> None:
    lines = log.append(2)
    reader.read()
    for at in range(3):
        lines += log.append(2)
        os.utime(log.rename(), ns=(0, log.path.stat().st_mtime_ns + at))
    lines += log.append(2)
    reader.wait()
    assert reader.texts == lines
    once(reader)


def test_old_rotated_files_are_not_read_at_a_first_start(log: Writer, path: Path) -> None:
    log.append(2)
    log.rename()
    lines = log.append(1)
    reader = Reader(path)
    reader.wait()
    assert reader.texts == lines


@pytest.mark.parametrize("keep_copy", [True, False])
def test_copytruncate_while_running(log: Writer, reader: Reader, keep_copy: bool) -> None:
    first = log.append(3)
    reader.read()
    unread = log.append(2)
    log.copytruncate(keep_copy=keep_copy)
    after = log.append(1)
    reader.wait()
    assert reader.texts == first + (unread if keep_copy else []) + after
    assert [loss.reason for loss in reader.losses] == ["truncated"]
    assert reader.losses[0].position == 3 * len(first[0] + b"\n")
    once(reader)
    assert len({name for name, _, _ in reader.lines}) == 2


def test_copytruncate_and_filled_again_beyond_the_position(log: Writer, reader: Reader) -> None:
    first = log.append(2)
    reader.read()
    log.copytruncate(keep_copy=False)
    after = log.append(20)
    reader.read()
    assert reader.texts == first + after
    once(reader)


@pytest.mark.parametrize("count", [1, 20])
def test_truncated_while_stopped(log: Writer, reader: Reader, count: int) -> None:
    """Filled again shorter or longer than the position: from 0 once, and not again at the restart after."""
    first = log.append(5)
    reader.read()
    saved = reader.tail.saved()
    log.copytruncate(keep_copy=False)
    after = log.append(count)
    reader.restart(saved)
    reader.read()
    assert reader.texts == first + after
    assert [loss.reason for loss in reader.losses] == ["truncated"]
    reader.restart()
    more = log.append(1)
    reader.read()
    assert reader.texts == first + after + more
    assert len(reader.losses) == 1
    once(reader)


def test_the_same_first_line_after_a_truncate_gives_other_ids(log: Writer, reader: Reader) -> None:
    log.file.write(b"banner\none\n")
    reader.read()
    log.copytruncate(keep_copy=False)
    reader.read()
    log.file.write(b"banner\ntwo\n")
    reader.read()
    assert reader.texts == [b"banner", b"one", b"banner", b"two"]
    once(reader)


def test_an_inode_that_comes_back(log: Writer, reader: Reader) -> None:
    first = log.append(3)
    reader.read()
    saved = reader.tail.saved()
    reader.tail.close()
    log.file.close()
    log.path.unlink()
    log.file = log.path.open("ab", buffering=0)
    after = log.append(9)
    stat = log.path.stat()
    for entry in saved:
        entry.device, entry.inode = stat.st_dev, stat.st_ino
    reader.restart(saved)
    reader.read()
    assert reader.texts == first + after
    once(reader)


def test_rotated_while_stopped(log: Writer, reader: Reader) -> None:
    lines = log.append(3)
    reader.read()
    saved = reader.tail.saved()
    lines += log.append(2)
    log.rename()
    lines += log.append(2)
    log.rename()
    lines += log.append(1)
    reader.restart(saved)
    reader.wait()
    assert reader.texts == lines
    assert not reader.losses
    once(reader)


def test_rotated_and_deleted_while_stopped_is_said(log: Writer, reader: Reader) -> None:
    first = log.append(3)
    reader.read()
    saved = reader.tail.saved()
    log.rename().unlink()
    after = log.append(2)
    reader.restart(saved)
    reader.read()
    assert reader.texts == first + after
    assert [loss.reason for loss in reader.losses] == ["file_vanished"]


def test_a_moved_directory_is_recognised_by_content(log: Writer, path: Path, reader: Reader, tmp_path: Path) -> None:
    lines = log.append(4)
    reader.read()
    saved = reader.tail.saved()
    reader.tail.close()
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    copy.replace(path)  # another inode, the same bytes
    with path.open("ab") as file:
        file.write(b"more\n")
    reader.restart(saved)
    reader.read()
    assert reader.texts == [*lines, b"more"]
    assert not reader.losses


def test_a_tiny_file_that_grows(path: Path, reader: Reader) -> None:
    path.write_bytes(b"x")
    reader.read()
    reader.restart()
    with path.open("ab") as file:
        file.write(b"y\nz\n")
    reader.read()
    reader.restart()
    reader.read()
    assert reader.texts == [b"xy", b"z"]
    once(reader)


@pytest.mark.parametrize("cut", range(1, 8))
def test_half_a_line_at_a_restart(log: Writer, reader: Reader, cut: int) -> None:
    log.file.write(b"one\n" + b"two-two"[:cut])
    reader.read()
    assert reader.texts == [b"one"]
    reader.restart()
    log.file.write(b"two-two"[cut:] + b"\n")
    reader.read()
    assert reader.texts == [b"one", b"two-two"]


def test_the_rest_of_a_file_that_ended_in_a_line(log: Writer, reader: Reader) -> None:
    log.file.write(b"one\nhalf")
    reader.read()
    log.rename()
    log.append(1)
    reader.wait()
    assert reader.rests == [b"half"]


def test_a_deleted_file_and_its_successor(log: Writer, reader: Reader) -> None:
    lines = log.append(2)
    reader.read()
    log.path.unlink()
    lines += log.append(1)  # into the deleted file
    reader.read()
    assert reader.tail.trouble == "gone"
    reader.wait()
    log.file.close()
    log.file = log.path.open("ab", buffering=0)
    lines += log.append(2)
    reader.wait()
    assert reader.texts == lines
    assert not reader.tail.trouble


def test_a_missing_file_is_awaited(path: Path, reader: Reader) -> None:
    reader.read()
    assert not reader.tail.at_end
    path.write_bytes(b"one\n")
    reader.read()
    assert reader.texts == [b"one"]
    assert reader.tail.at_end


@pytest.mark.parametrize(("text", "at_end"), [(b"", True), (b"one\n", True), (b"one\nhalf", False), (b"half", False)])
def test_at_end_means_whole_lines(log: Writer, reader: Reader, text: bytes, at_end: bool) -> None:
    log.file.write(text)
    reader.read()
    assert reader.tail.at_end is at_end


def test_a_compressed_sibling_is_never_read(log: Writer, reader: Reader) -> None:
    lines = log.append(2)
    reader.read()
    rotated = log.rename()
    lines += log.append(1)
    reader.read()
    with gzip.open(str(rotated) + ".gz", "wb") as file:
        file.write(rotated.read_bytes())
    rotated.unlink()
    reader.wait()
    assert reader.texts == lines


def test_nuls_before_a_line_are_skipped(log: Writer, reader: Reader) -> None:
    """A writer that keeps its offset over a truncate leaves a hole of NUL bytes."""
    log.append(5)
    reader.read()
    log.file.close()
    with log.path.open("r+b", buffering=0) as stale:
        stale.seek(0, 2)
        offset = stale.tell()
        os.truncate(log.path, 0)
        stale.write(b"after\n")
    assert log.path.stat().st_size == offset + 6
    log.file = log.path.open("ab", buffering=0)
    reader.read()
    assert reader.texts[-1] == b"after"
    assert reader.lines[-1][1] == offset
    assert [loss.reason for loss in reader.losses] == ["truncated"]


def test_a_link_that_is_turned_to_another_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n")
    (tmp_path / "b").write_bytes(b"two\n")
    path.symlink_to(tmp_path / "a")
    reader = Reader(path)
    reader.read()
    fresh = tmp_path / "link"
    fresh.symlink_to(tmp_path / "b")
    fresh.replace(path)
    reader.wait()
    assert reader.texts == [b"one", b"two"]


def test_a_loop_of_links_is_unreadable_and_no_crash(path: Path) -> None:
    path.symlink_to(path)
    reader = Reader(path)
    reader.read()
    assert reader.tail.trouble == "unreadable"


def test_open_files_are_bounded(log: Writer, reader: Reader) -> None:
    for _ in range(MAX_OPEN + 5):
        log.append(1)
        reader.read(1)
        log.rename()
        reader.now_s -= 0.05  # no time passes: none is closed
    log.append(1)
    reader.read()
    assert len(list(Path("/proc/self/fd").iterdir())) < MAX_OPEN + 100
    assert len(reader.tail.saved()) <= 2 * MAX_OPEN
