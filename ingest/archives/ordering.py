"""Puts the lines of an unwrapped log in the order of their stamps: exports are often newest first, or in pieces.

A sort on disk: sorted chunks of bounded size, merged. Lines of one instant keep the order that they have, or the
opposite where the export is newest first. A line without a stamp continues another one and cannot be put anywhere: it
is dropped and counted, and the request that it was a part of is rejected by its reader. The same line from two files
was exported twice and is kept once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

CHUNK_BYTES = 64 * 1024 * 1024
"""Bytes of one chunk, held in memory; half a GB of objects for the shortest lines of a log, some 100 bytes."""

MAX_CHUNKS = 256
"""Merged at a time, one open file each: more are merged in two steps."""


class Sorted(NamedTuple):
    """What a sort left out."""

    unstamped: int
    twice: int


class _Line(NamedTuple):
    """A line to be sorted. Compared from the left."""

    at_ms: float
    number: int
    file: int
    text: bytes


def in_order(
    log: Path, stamp_ms: Callable[[bytes], float | None], begins: list[int], *, newest_first: bool, max_bytes: int
) -> Sorted:
    """Sort a log in place. `begins`: number of the first line of each file that was unwrapped into it."""
    unstamped = 0
    chunks: list[Path] = []
    held: list[_Line] = []
    size = 0

    def spill() -> None:
        nonlocal size
        held.sort()
        chunk = log.with_name(f"{log.name}.{len(chunks)}")
        with chunk.open("wb") as opened:
            opened.writelines(map(_packed, held))
        chunks.append(chunk)
        held.clear()
        size = 0

    file = 0
    with log.open("rb") as opened:
        number = 0
        while text := opened.readline(max_bytes):
            while file + 1 < len(begins) and begins[file + 1] <= number:
                file += 1
            at_ms = stamp_ms(text)
            if at_ms is None:
                unstamped += 1
            else:
                held.append(_Line(at_ms, -number if newest_first else number, file, text.rstrip(b"\n")))
                size += len(text)
                if size >= CHUNK_BYTES:
                    spill()
            number += 1
    spill()
    twice = _merge(chunks, log)
    return Sorted(unstamped, twice)


def _merge(chunks: list[Path], log: Path) -> int:
    """Merge chunks into the log, and remove them; the lines that were there twice."""
    while len(chunks) > MAX_CHUNKS:
        merged = log.with_name(f"{log.name}.{chunks[0].suffix[1:]}m")
        with merged.open("wb") as opened:
            opened.writelines(map(_packed, heapq.merge(*map(_read, chunks[:MAX_CHUNKS]))))
        for chunk in chunks[:MAX_CHUNKS]:
            chunk.unlink()
        chunks = [*chunks[MAX_CHUNKS:], merged]
    twice = 0
    whole = log.with_name(f"{log.name}.sorted")
    with whole.open("wb") as opened:
        at_ms, there = -1.0, {}
        for line in heapq.merge(*map(_read, chunks)):
            if line.at_ms != at_ms:
                at_ms, there = line.at_ms, dict[bytes, int]()
            if there.setdefault(line.text, line.file) != line.file:
                twice += 1
                continue
            opened.write(line.text + b"\n")
    for chunk in chunks:
        chunk.unlink()
    whole.replace(log)
    return twice


def _packed(line: _Line) -> bytes:
    return b"%r %d %d %s\n" % (line.at_ms, line.number, line.file, line.text)


def _read(chunk: Path) -> Iterator[_Line]:
    with chunk.open("rb") as opened:
        for line in opened:
            at_ms, number, file, text = line.rstrip(b"\n").split(b" ", 3)
            yield _Line(float(at_ms), int(number), int(file), text)
