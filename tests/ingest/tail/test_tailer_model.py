"""A tail against a model: random appends, rotations, restarts and crashes, in any order.

Two laws. Without truncation: every line exactly once in order (a crash may repeat, by id never). With truncation:
nothing twice by id, nothing invented, and everything written after the last truncation is there. That a loss is said
is tested case by case: a file that was filled and emptied between two looks cannot be known.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.ingest.tail.files import Reader, Writer

CALM = ("append", "append", "partial", "read", "read", "rename", "restart", "crash", "wait", "save")
WILD = (*CALM, "copytruncate", "truncate")


class Play:
    """A log that is written, its reader, and what is true of both; an action is a method."""

    def __init__(self, path: Path) -> None:
        self.writer = Writer(path)
        self.reader = Reader(path)
        self.written: list[bytes] = []
        self.since: list[bytes] = []
        """Lines since the last truncation."""
        self._saved = self.reader.tail.saved()
        self._half = b""

    def _end_line(self) -> None:
        if self._half:
            self.writer.file.write(self._half[5:] + b"\n")
            self.written.append(self._half)
            self.since.append(self._half)
            self._half = b""

    def append(self) -> None:
        self._end_line()
        lines = self.writer.append(2)
        self.written += lines
        self.since += lines

    def partial(self) -> None:
        if not self._half:
            self._half = self.writer.line()
            self.writer.file.write(self._half[:5])

    def read(self) -> None:
        self.reader.read(1)

    def wait(self) -> None:
        self.reader.wait()

    def rename(self) -> None:
        self._end_line()
        self.writer.rename()

    def save(self) -> None:
        self._saved = self.reader.tail.saved()

    def restart(self) -> None:
        self.save()
        self.crash()

    def crash(self) -> None:
        self.reader.restart(self._saved)

    def copytruncate(self, *, keep_copy: bool = True) -> None:
        self._end_line()
        self.writer.copytruncate(keep_copy=keep_copy)
        self.since = []

    def truncate(self) -> None:
        self.copytruncate(keep_copy=False)

    def end(self) -> None:
        """Finish the last line and drain the reader."""
        self._end_line()
        self.reader.wait()
        self.reader.wait()
        self.reader.tail.close()
        self.writer.file.close()


def play(actions: list[str]) -> tuple[list[bytes], list[bytes], Reader]:
    """All lines written, those written since the last truncation, and the drained reader."""
    with tempfile.TemporaryDirectory() as directory:
        log = Play(Path(directory) / "log")
        for action in actions:
            getattr(log, action)()
        log.end()
    return log.written, log.since, log.reader


def distinct(reader: Reader) -> list[bytes]:
    """Lines by id, in the order they first came; the same id must mean the same bytes."""
    by_id: dict[tuple[str, int], bytes] = {}
    for name, at, line in reader.lines:
        assert by_id.setdefault((name, at), line) == line
    return [line.rstrip(b"\n") for line in by_id.values()]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(CALM), max_size=60))
def test_without_truncation_every_line_once_and_in_order(actions: list[str]) -> None:
    written, _, reader = play(actions)
    assert distinct(reader) == written
    assert not reader.losses
    if "crash" not in actions:
        assert reader.texts == written


@settings(max_examples=500, deadline=None)
@example(
    ["append", "read", "copytruncate", "append", "rename"]
)  # emptied, filled, and its name moved, between two looks
@example(["append", "read", "truncate", "append", "rename", "restart"])
@example(["append", "read", "save", "truncate", "append", "rename", "append", "crash"])
@given(st.lists(st.sampled_from(WILD), max_size=60))
def test_with_truncation_the_loss_is_bounded_and_said(actions: list[str]) -> None:
    written, since, reader = play(actions)
    got = distinct(reader)
    assert set(got) <= set(written)
    assert set(since) <= set(got)
