"""One law: tables up to any batch and what is ahead of that batch are, together, what lanes tell that read as far.

Nothing is shown twice and nothing is missing, wherever the job cuts its batches and wherever it stands. Method: the
records of a recorded story; the job and the follower step them in cuts of their own, drawn from a seed, and after each
of their moves rows are counted, and asked for as a question would.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from api.past.archive import up_to
from api.store import Store
from kardia.tables import LIVE_TABLES
from live import followed
from spark_jobs.batch_pacing import SAMPLED
from tests.live.following import Ahead, Job, facts, new_lanes, topic
from tests.live.test_ahead import Asked
from tests.live.test_ahead import _paths as paths_of
from tests.live.test_same_rows import FACTS
from tests.spark_jobs.support import LANES

SEEDS = (1, 2, 3)

NOW_MS = 1_795_211_000_000
"""Somewhen; the story is older or younger, which is the same for both."""


def test_the_tables_that_are_compared_are_all_but_those_that_are_sampled() -> None:
    assert {*FACTS, "surprises"} == set(LIVE_TABLES) - SAMPLED  # the job tests itself, who follows it does not


class World:
    """Records, a job and a follower."""

    def __init__(self, home: Path, seed: int) -> None:
        self.chance, self.records = random.Random(seed), topic()
        self.job = Job(home)
        self.write()
        self.ahead = Ahead(self.job, NOW_MS)

    def write(self) -> None:
        """A batch of the job: some records of some lanes."""
        some = {}
        for lane in range(LANES):
            begin = self.job.ends[lane]
            end = min(len(self.records[lane]), begin + self.chance.randrange(0, 6))
            if end > begin:
                some[lane] = self.records[lane][begin:end]
        self.job.write(some)

    def follow(self) -> None:
        """A step of the follower: some records of some lanes."""
        some = {}
        for lane, begin in enumerate(self.ahead.lanes.next_offsets()):
            begin = max(begin, 0)
            end = min(len(self.records[lane]), begin + self.chance.randrange(0, 4))
            if end > begin:
                some[lane] = self.records[lane][begin:end]
        self.ahead.lanes.take(some)

    @property
    def is_over(self) -> bool:
        return all(self.job.ends[lane] == len(records) for lane, records in enumerate(self.records)) and all(
            offset == len(records)
            for offset, records in zip(self.ahead.lanes.next_offsets(), self.records, strict=True)
        )

    def told(self, offsets: Sequence[int]) -> dict[str, Counter[str]]:
        """Rows of lanes that read, in one go, up to there."""
        found: dict[str, list[Any]] = {}
        for lane, offset in zip(new_lanes(), offsets, strict=True):
            for name, rows in lane.step(self.records[lane.lane][:offset]).items():
                found.setdefault(name, []).extend(rows)
        return facts(found)

    def compare(self) -> bool:
        """What is asked against what was read; whether both were equally far. A batch that is in the tables and was not
        looked at yet may be told, or not, where it goes beyond the follower."""
        store, offsets = self.ahead.store, self.ahead.lanes.next_offsets()
        further = [max(offset, self.job.ends[lane]) for lane, offset in enumerate(offsets)]
        least, most = self.told(offsets), self.told(further)
        for name in FACTS:
            found = asked(store, name)
            assert least[name] <= found <= most[name], name
        return further == offsets


def asked(store: Store, name: str, at: int | None = None) -> Counter[str]:
    """All rows of a table as a question about the past gets them that rests on a batch; on the present one."""
    reader, at = store.readers.get(name) or store.rejected, store.freshness().batch_id if at is None else at
    rows: list[Any] = reader.scan(
        ds.field("batch_id") <= at,
        [up_to(at)],
        lambda chunks: [row for chunk in chunks for row in chunk.drop_columns(["batch_id"]).to_pylist()],
    )
    return Counter(map(repr, rows))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_shown_twice_and_nothing_is_missing(tmp_path: Path, seed: int) -> None:
    """At every point where tables or follower have moved."""
    world = World(tmp_path, seed)
    store = world.ahead.store
    store.refresh()
    moves = ahead = equal = 0
    while not world.is_over:
        move = world.chance.random()
        if move < 0.25:
            world.write()
        elif move < 0.9:
            world.follow()
        else:
            world.ahead.look()
        store.refresh()
        moves += 1
        if not store.is_ahead:
            continue
        ahead += not store.freshness().in_tables
        if moves % 3 == 0 and not world.ahead.lanes.is_behind():
            equal += world.compare()
    world.ahead.look()
    store.refresh()
    assert store.freshness().in_tables
    assert world.ahead.followed.rows == 0
    assert world.compare()
    assert ahead > 20, "answers were ahead of the tables"
    assert equal > 5, "and the follower was ahead of them, or level"


SAMPLED_FIELDS = frozenset(
    {
        *(
            "health_at",
            "health_at_ms",
            "health_certainty",
            "health_doubts",
            "poll",
            "session",
            "poll_headroom_min_ratio",
        ),
        *("session_headroom_min_ratio", "next_poll_deadline", "next_session_deadline"),
        "text",
    }
)
"""What answers have of samples of health. The job has others: each is taken at the end of a step. A sentence may name
what the last one of a member says."""


def without_samples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_samples(one) for name, one in value.items() if name not in SAMPLED_FIELDS}
    return [without_samples(one) for one in value] if isinstance(value, list) else value


COUNTED = ("events", "lines", "ignored", "rejected", "gaps", "divergences", "not_modelled")


def ledger(store: Store) -> dict[str, int]:
    """What was counted; of it what does not depend on cuts."""
    (cluster,) = store.current.clusters.values()
    return {name: cluster.reach.ledger[name] for name in COUNTED}


def test_a_question_that_has_begun_is_answered_from_what_it_began_with(tmp_path: Path) -> None:
    """A page, or a question that waits for its turn: the job has written further meanwhile, in batches of its own."""
    world = World(tmp_path, 1)
    store = world.ahead.store
    store.refresh()
    world.ahead.look()
    for _ in range(12):
        world.follow()
        store.refresh()
    at, found = store.freshness().batch_id, {name: asked(store, name) for name in FACTS}
    assert sum(map(Counter.total, found.values())) > 0
    assert not store.freshness().in_tables
    for _ in range(followed.BATCHES - 2):
        world.write()
        world.ahead.look()
        store.refresh()
        most = world.told([max(at, world.job.ends[lane]) for lane, at in enumerate(world.ahead.lanes.next_offsets())])
        for name, rows in found.items():
            assert rows <= asked(store, name, at) <= most[name], name


def level(world: World) -> None:
    """The job writes, in several batches, to where the follower is, and that is seen."""
    for _ in range(2):
        world.job.write(
            {
                lane: world.records[lane][world.job.ends[lane] : max(0, offset)]
                for lane, offset in enumerate(world.ahead.lanes.next_offsets())
                if offset > world.job.ends[lane]
            }
        )
    world.ahead.look()


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_answers_ahead_of_the_tables_are_those_of_the_tables(tmp_path: Path, seed: int) -> None:
    """The present and the past, of a view that has taken no row of the tables since it went ahead, at many instants of
    a story: what is answered before the job has written it, and what a server of the tables alone says when it has."""
    world = World(tmp_path, seed)
    ahead, compared = Asked(world.ahead.store, lambda: NOW_MS), 0
    world.ahead.look()
    for _ in range(5):
        world.follow()
    world.write()
    world.ahead.look()  # so that some of what was told before the view goes ahead is covered by where it does
    while not world.is_over:
        for _ in range(12):
            world.follow()
            if world.chance.random() < 0.3 and not world.ahead.lanes.is_behind():
                world.write()
                world.ahead.look()
            world.ahead.store.refresh()
        if not world.ahead.store.is_ahead or world.ahead.lanes.is_behind():
            continue
        if any(world.job.ends[lane] > at for lane, at in enumerate(world.ahead.lanes.next_offsets())):
            continue
        paths = paths_of(world.ahead.store)
        told = ahead.answers(paths)
        level(world)
        assert ahead.answers(paths) == told
        behind = Asked(Store(world.ahead.store.settings, lambda: NOW_MS), lambda: NOW_MS)
        behind.store.refresh()
        written = behind.answers(paths)
        assert ledger(world.ahead.store) == ledger(behind.store), "nothing is folded twice"
        for path in paths:
            assert without_samples(told[path]) == without_samples(written[path]), path
            compared += 1
    assert compared > 20
