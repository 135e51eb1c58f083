"""A log that is copied and emptied (logrotate's `copytruncate`): what was copied is read, what may be lost has bounds.

Between the copy and the emptying a writer may have written what is in neither: that is told as a gap, from the last
line of the copy to the first that was written after, and not up to the instant at which somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kardia.events import Kind
from tests.ingest.lines import START_MS, line
from tests.ingest.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, lanes=1) as world:
        yield world


def copytruncate(world: World, *, keep: bool = True, lost: int = 0) -> tuple[int, int]:
    """Older copies move on, as logrotate has them. `lost`: lines that are written between copy and emptying. Gives the
    stamps around them, from the first line on."""
    if keep:
        for number in (2, 1):
            older = world.path.with_name(f"{world.path.name}.{number}")
            if older.exists():
                older.rename(world.path.with_name(f"{world.path.name}.{number + 1}"))
        world.path.with_name(f"{world.path.name}.1").write_bytes(world.path.read_bytes())
    copied_to = world.number
    world.write(lost)
    world.truncate()
    return copied_to, world.number + 1


def gaps(world: World) -> list[tuple[float, float]]:
    """Bounds of the gaps, from the first line on."""
    found: list[dict[str, Any]] = [event.detail or {} for event in world.topic.events(0) if event.kind == Kind.GAP]
    return [(detail["from_ms"] - START_MS, detail["to_ms"] - START_MS) for detail in found]


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("again", [1, 3, 40], ids=["smaller", "as large", "larger"])
@pytest.mark.parametrize("keep", [True, False])
def test_a_gap_has_the_bounds_that_are_known(world: World, stopped: bool, again: int, keep: bool) -> None:
    world.write(3)
    world.step(20)
    world.write(2)
    copytruncate(world, keep=keep)
    world.write(again)
    if stopped:
        world.clock.now_s += 3_600
        world.crash()
    world.drain()
    assert gaps(world) == [(5 if keep else 3, 6)]
    lost = set() if keep else {"m-4", "m-5"}
    assert set(world.members()) == set(world.expected()) - lost


@pytest.mark.parametrize(("back_ms", "bound_ms"), [(0, 0), (40, 40), (3_600_000, 0)], ids=["", "threads", "clock set"])
def test_lines_out_of_the_order_of_their_stamps_make_the_bounds_wider(
    world: World, back_ms: int, bound_ms: int
) -> None:
    """What a thread stamped first another one may have written later: a lost line as well. An hour is another clock."""
    for number, at_ms in enumerate((1_000, 1_050, 1_050 - back_ms, 1_060)):
        world.file.write(line(number, at_ms=START_MS + at_ms) + b"\n")
    world.step(20)
    copytruncate(world)
    world.file.write(line(9, at_ms=START_MS + 1_100) + b"\n")
    world.drain()
    assert gaps(world) == [(1_060 - bound_ms, 1_100 + bound_ms)]


def test_nothing_written_since_leaves_it_open_to_now(world: World) -> None:
    world.write(3)
    world.step(20)
    copytruncate(world)
    at = world.clock.wall_ms() - START_MS
    world.step(2)
    ((begin, end),) = gaps(world)
    assert begin == 3
    assert at <= end <= world.clock.wall_ms() - START_MS


@pytest.mark.parametrize("read", [0, 3])
def test_two_copies_that_were_made_while_nobody_looked_are_read(world: World, read: int) -> None:
    """The first goes on where reading had stopped; the second no one has begun. Of a file of which nothing was read no
    copy can be recognised: what is younger than it was is read."""
    world.step(20)
    world.write(read)
    world.step(20)
    world.write(4)
    copytruncate(world)
    world.write(5)
    copytruncate(world)
    world.write(6)
    world.crash()
    world.drain()
    assert sorted(world.members()) == sorted(world.expected())
    assert gaps(world) == [(read + 4, read + 5), (read + 9, read + 10)]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_each_copy_that_was_made_while_nobody_looked_may_lack_lines(world: World, is_renamed: bool) -> None:
    """A writer that goes on in a new file loses nothing by that, and no gap tells of it."""
    world.write(3)
    world.step(20)
    world.write(2)
    expected = [copytruncate(world, lost=2)]
    world.write(2)
    if is_renamed:
        world.rename()
        world.write(2)
    expected.append(copytruncate(world))
    world.write(3)
    expected.append(copytruncate(world, lost=1))
    world.write(4)
    world.crash()
    world.drain()
    assert gaps(world) == expected
    lost = {f"m-{number}" for begin, end in expected for number in range(int(begin) + 1, int(end))}
    assert len(lost) == 3
    assert set(world.members()) == set(world.expected()) - lost


def test_a_copy_of_what_was_read_is_not_read_again(world: World) -> None:
    world.write(5)
    world.step(20)
    copytruncate(world)
    world.step(20)
    world.write(3)
    world.step(40)
    world.crash()
    world.drain()
    sent = [event.member_id for event in world.topic.events(0) if event.kind == Kind.HEARTBEAT]
    assert sorted(sent) == sorted(world.expected())
