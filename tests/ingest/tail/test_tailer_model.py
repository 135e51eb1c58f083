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


def play(actions: list[str]) -> tuple[list[bytes], list[bytes], Reader, Writer]:
    """All lines written, those written since the last truncation, and the drained reader."""
    directory = tempfile.TemporaryDirectory()
    path = Path(directory.name) / "log"
    writer = Writer(path)
    reader = Reader(path)
    written: list[bytes] = []
    since: list[bytes] = []
    saved = reader.tail.saved()
    half = b""

    def ended() -> None:
        nonlocal half
        if half:
            writer.file.write(half[5:] + b"\n")
            written.append(half)
            since.append(half)
            half = b""

    for action in actions:
        if action == "append":
            ended()
            lines = writer.append(2)
            written += lines
            since += lines
        elif action == "partial" and not half:
            half = writer.line()
            writer.file.write(half[:5])
        elif action == "read":
            reader.read(1)
        elif action == "wait":
            reader.wait()
        elif action == "rename":
            ended()
            writer.rename()
        elif action == "save":
            saved = reader.tail.saved()
        elif action == "restart":
            saved = reader.tail.saved()
            reader.restart(saved)
        elif action == "crash":
            reader.restart(saved)
        elif action in ("copytruncate", "truncate"):
            ended()
            writer.copytruncate(keep_copy=action == "copytruncate")
            since = []
    ended()
    reader.wait()
    reader.wait()
    reader.tail.close()
    writer.file.close()
    directory.cleanup()
    return written, since, reader, writer


def distinct(reader: Reader) -> list[bytes]:
    """Lines by id, in the order they first came; the same id must mean the same bytes."""
    by_id: dict[tuple[str, int], bytes] = {}
    for name, at, line in reader.lines:
        assert by_id.setdefault((name, at), line) == line
    return [line.rstrip(b"\n") for line in by_id.values()]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(CALM), max_size=60))
def test_without_truncation_every_line_once_and_in_order(actions: list[str]) -> None:
    written, _, reader, _ = play(actions)
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
    written, since, reader, _ = play(actions)
    got = distinct(reader)
    assert set(got) <= set(written)
    assert set(since) <= set(got)
