"""Collectors that are killed and started again make no gap, and change no row.

Goal: whatever of a flush had reached the topic when a collector died, wherever its positions stood, and however a job
cuts into steps what then lies in the topic: nothing is lost, so nothing is said to be, and the rows are those of a
collector that nothing happened to. Method: the log of a recorded story, followed at a virtual clock by real collectors,
and real lanes behind a topic in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ingest.wire.batches import format_of
from kardia.observe import ObserverSettings
from kardia.tables import TABLES, Row
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from tests.ingest.following import Following
from tests.support.stories import Story

STORIES = ("c01_kill-3.9.2", "k05_leave-4.4.0")

OF_ALL = ("transitions", "rebalances", "members")
"""Tables that say what happened, and not how it was read."""

NOT_TOLD = ("known_at_ms", "evidence")

Kill = tuple[int, int, tuple[int, ...], bool]
"""Rounds of the collector until the topic answers no more, rounds from there to the kill, for each lane how many of the
records without an answer have reached the topic, and whether the log is rotated before the kill."""

KILLS = st.lists(
    st.tuples(st.integers(1, 300), st.integers(0, 40), st.tuples(*[st.integers(0, 60)] * 6), st.booleans()),
    min_size=1,
    max_size=8,
)

STEPS = st.lists(st.integers(1, 60), min_size=1, max_size=10)
"""Records of one step after another, over and over."""


def followed(directory: Path, name: str, kills: Sequence[Kill], *, fold: bool) -> list[list[bytes]]:
    """What lies in each lane of the topic in the end."""
    following = Following(directory, Story(name), fold=fold)
    left = list(kills)
    mute_at, die_at = _next(left, 0)
    with following.world as world:
        for number in following.live():
            world.topic.answering = not mute_at <= number < die_at
            if number == die_at:
                _, _, reached, rotated = left.pop(0)
                if rotated:
                    world.rename()
                _lose(world.topic.records, world.topic.in_flight, reached)
                world.crash()
                mute_at, die_at = _next(left, number)
        world.drain()
        return [[data for at, data in world.topic.records if at == lane] for lane in range(world.lanes)]


def _next(left: Sequence[Kill], number: int) -> tuple[int, int]:
    if not left:
        return 1 << 60, 1 << 60
    alive, mute, _, _ = left[0]
    return number + alive, number + alive + mute


def _lose(records: list[tuple[int, bytes]], in_flight: int, reached: Sequence[int]) -> None:
    """Of the records that are not acknowledged, each lane has only so many."""
    sent = records[len(records) - in_flight :]
    del records[len(records) - in_flight :]
    there = list(reached)
    for lane, data in sent:
        if there[lane] > 0:
            there[lane] -= 1
            records.append((lane, data))


def rows_of(lanes: Sequence[Sequence[bytes]], sizes: Sequence[int], *, restart: bool = False) -> dict[str, list[Row]]:
    """What a job makes of it, in steps of so many records, perhaps from its saved state each time."""
    factory = ObserverFactory(ObserverSettings(cluster_id="c"))
    found: dict[str, list[Row]] = {name: [] for name in (*OF_ALL, "progress")}
    for number, data in enumerate(lanes):
        lane = Lane(factory, "t", number, len(lanes))
        for records in _cut(data, sizes):
            if restart:
                saved, lane = lane.save(), Lane(factory, "t", number, len(lanes))
                lane.load(saved)
            for name, rows in lane.step(records).items():
                if name in found:
                    found[name] += rows
        for name, rows in lane.model.finish().items():
            if name in found:
                found[name] += rows
    return found


def _cut(data: Sequence[bytes], sizes: Sequence[int]) -> Iterator[list[Record]]:
    at, turn = 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield [
            Record(offset, 0, format_of(data[offset]).encode(), data[offset]) for offset in range(at, len(data))[:size]
        ]
        at, turn = at + size, turn + 1


def told(rows: dict[str, list[Row]]) -> dict[str, Any]:
    """Rows in an order that steps have no part in, without the instant at which they became known, and without the
    position that showed it: a rotation gives lines another one."""
    return {
        name: sorted(
            (
                tuple(value for place, value in enumerate(row) if TABLES[name].names[place] not in NOT_TOLD)
                for row in rows[name]
            ),
            key=repr,
        )
        for name in OF_ALL
    }


def gaps(rows: dict[str, list[Row]]) -> int:
    return sum(dict(zip(TABLES["progress"].names, row, strict=True))["gaps"] for row in rows["progress"])


@cache
def undisturbed(name: str, directory: Path) -> dict[str, Any]:
    lanes = followed(directory, name, (), fold=False)
    rows = rows_of(lanes, [10])
    assert gaps(rows) == 0
    return told(rows)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("undisturbed")


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.sampled_from(STORIES), KILLS, STEPS, st.booleans(), st.booleans())
def test_a_collector_killed_anywhere_makes_no_gap_and_changes_no_row(
    tmp_path_factory: pytest.TempPathFactory,
    home: Path,
    name: str,
    kills: list[Kill],
    sizes: list[int],
    fold: bool,
    restart: bool,
) -> None:
    lanes = followed(tmp_path_factory.mktemp("killed"), name, kills, fold=fold)
    rows = rows_of(lanes, sizes, restart=restart)
    assert gaps(rows) == 0
    (home / name).mkdir(exist_ok=True)
    assert told(rows) == undisturbed(name, home / name)
