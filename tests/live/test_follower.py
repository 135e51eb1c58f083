"""When a follower is ahead, when it stops, and that it begins anew: at a virtual clock, with a topic in memory.

Everything but the reading of the topic, and of Spark's state, is that of the product; what the job does is a script.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.settings import ApiSettings
from api.store import Store
from kardia.tables import LIVE_TABLES
from live import follower as module
from live.followed import Followed
from live.followed_store import FollowedStore
from live.follower import Around, Follower
from live.handed import Handed
from live.metrics import FollowMetrics
from live.settings import FollowSettings
from live.topic import Where
from spark_jobs.checkpoint.checkpoint_directory import look_at, save
from spark_jobs.errors import CheckpointError
from tests.ingest.world import ManualClock
from tests.live.following import TOPIC, Job, copied, topic
from tests.live.living import CLUSTER
from tests.live.test_ahead import Asked
from tests.live.test_ahead import _paths as paths_of
from tests.spark_jobs.support import LANES, ROOT

ROUND_S = 0.25


class World:
    """A job, a topic that grows, and a follower that is run in this thread."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.records, self.clock, self.said = topic(), ManualClock(0.0), list[str]()
        self.job = Job(home)
        self.there = dict.fromkeys(range(LANES), 0)
        """How many records of each lane are in the topic."""
        self.is_read = True
        self.followed, self.metrics = Followed(), FollowMetrics()
        self._script: Iterator[None] = iter(())
        self._is_over = False
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while the lanes are taken over."""
        patch.setattr(module, "handed", self._handed)
        patch.setattr(Where, "lanes", lambda _: LANES)
        patch.setattr(module, "_Reading", self._reading)
        settings = FollowSettings(follow_topic=TOPIC, bootstrap_server="localhost:1", checkpoint=home / "checkpoint")
        around = Around(
            self.clock, self.followed, self.said.append, self.metrics, lambda: self._is_over, lambda _: self.passes()
        )
        self.follower = Follower(settings, self.job.tables, None, around)

    def _handed(self, *_: Any) -> Handed:
        found = Handed(self.job.number, copied(self.job.lanes))
        self.meanwhile()
        return found

    def _reading(self, _: Any, lanes: Any, *__: Any) -> Any:
        world = self

        class Reading:
            def step(self) -> bool:
                some = {
                    lane: world.records[lane][max(0, begin) : world.there[lane]]
                    for lane, begin in enumerate(lanes.next_offsets())
                    if world.is_read and world.there[lane] > max(0, begin)
                }
                if some:
                    lanes.take(some)
                return bool(some)

            def rest(self) -> None:
                world.passes()

            def close(self) -> None:
                """Nothing is open."""

        return Reading()

    def passes(self) -> None:
        """A quarter of a second; the script goes on."""
        self.clock.now_s += ROUND_S
        if next(self._script, self) is self:
            self._is_over = True

    def run(self, script: Iterator[None]) -> None:
        self._script = script
        self.follower.run()

    def sent(self, count: int) -> None:
        for lane in self.there:
            self.there[lane] = min(len(self.records[lane]), self.there[lane] + count)

    def write(self) -> None:
        """The job writes what there is."""
        self.job.write({lane: self.records[lane][self.job.ends[lane] : end] for lane, end in self.there.items()})

    def stops(self, reason: str) -> float:
        return float(self.metrics.registry.get_sample_value("kardia_follow_stops_total", {"reason": reason}) or 0)

    def ahead(self) -> bool:
        return self.metrics.registry.get_sample_value("kardia_follow_ahead") == 1


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path, monkeypatch)
    made.sent(5)
    made.write()
    return made


def waits(is_so: Callable[[], bool], rounds: int = 4_000) -> Iterator[None]:
    """Rounds until something is so; too many of them are a failure."""
    for _ in range(rounds):
        if is_so():
            return
        yield
    raise AssertionError("it never came")


def test_it_is_ahead_when_it_has_all_that_the_tables_have(world: World) -> None:
    def meanwhile() -> None:
        world.is_read = False
        for _ in range(3):
            world.sent(1)
            world.write()

    def script() -> Iterator[None]:
        for _ in range(20):
            assert not world.ahead()
            yield
        world.is_read = True
        yield from waits(lambda: world.ahead())
        assert world.followed.rows == 0
        world.sent(5)
        yield from waits(lambda: world.followed.rows > 0)
        world.write()
        yield from waits(lambda: world.followed.rows == 0)

    world.meanwhile = meanwhile
    world.run(script())
    taken, is_ahead = world.said
    assert "taken over" in taken
    assert "ahead of the tables" in is_ahead


def test_a_job_that_stands_still_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a bound of rows, one below it and at one more."""

    def script() -> Iterator[None]:
        yield from waits(lambda: world.ahead())
        world.sent(5)
        yield from waits(lambda: world.followed.rows > 0)
        monkeypatch.setattr(module, "ROWS_MAX", world.followed.rows)
        for _ in range(200):
            yield
        assert world.ahead(), "at the bound"
        monkeypatch.setattr(module, "ROWS_MAX", world.followed.rows - 1)
        yield from waits(lambda: not world.ahead())
        for _ in range(4_000):
            yield
        assert (world.stops("job"), world.followed.rows) == (1, 0), "it waits"
        world.write()
        yield from waits(lambda: world.ahead())

    world.run(script())
    assert ["rows yet" in text for text in world.said] == [False, False, True, False, False]


def test_it_stops_when_the_tables_are_ahead_of_it_for_long(world: World) -> None:
    def script() -> Iterator[None]:
        yield from waits(lambda: world.ahead())
        world.is_read = False
        world.sent(2)
        world.write()
        for _ in range(int((module.BEHIND_S - 1) / ROUND_S)):
            yield
        assert world.ahead()
        yield from waits(lambda: world.stops("behind") == 1, 20)
        assert not world.ahead()
        world.is_read = True
        yield from waits(lambda: world.ahead())

    world.run(script())


def test_another_generation_is_taken_up(world: World) -> None:
    def script() -> Iterator[None]:
        yield from waits(lambda: world.ahead())
        other = Job(world.job.tables.parent / "other")
        world.sent(2)
        directory = world.job.checkpoint.directory
        other.generation = type(other.generation)(
            **{name: getattr(world.job.generation, name) for name in world.job.generation.__struct_fields__}
            | {"name": "efgh", "first_batch": 50}
        )
        save(directory, other.generation)
        yield from waits(lambda: world.stops("generation") == 1)
        for _ in range(200):
            yield
        assert not world.ahead(), "it has no batch yet"

    world.run(script())


def test_a_mistake_of_ours_is_told_and_tried_again(world: World) -> None:
    def fails() -> None:
        world.meanwhile = lambda: None
        raise ZeroDivisionError

    world.meanwhile = fails
    world.run(waits(world.ahead))
    assert world.stops("refused") == 1
    assert "a defect of Kardia, ZeroDivisionError" in world.said[0]
    assert "ahead of the tables" in world.said[-1]


def test_a_view_that_was_ahead_begins_over_the_tables_when_it_stops(world: World) -> None:
    store = FollowedStore(ApiSettings(tables=world.job.tables), lambda: 1, world.followed)

    def script() -> Iterator[None]:
        store.refresh()
        yield from waits(lambda: world.ahead())
        world.sent(10)
        yield from waits(lambda: world.followed.rows > 0)
        for _ in range(2):
            store.refresh()
        assert store.is_ahead
        assert not store.freshness().in_tables

    world.run(script())
    assert store.is_behind()
    assert not store.freshness().in_tables, "what is shown is of the follower still"
    for _ in range(2):
        store.refresh()
    assert store.freshness().in_tables
    alone = Store(store.settings, lambda: 1)
    alone.refresh()
    paths = paths_of(store)
    assert Asked(store, lambda: 1).answers(paths) == Asked(alone, lambda: 1).answers(paths)
    world.write()
    store.refresh()
    alone.refresh()
    assert Asked(store, lambda: 1).answers(paths) == Asked(alone, lambda: 1).answers(paths), "and follows them"


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


def test_a_checkpoint_that_is_looked_at_stays_as_it_is(world: World) -> None:
    directory = world.job.checkpoint.directory
    assert isinstance(directory, Path)
    (directory / "abcd" / "commits" / "0").write_text("")  # of a job that is just writing it
    before = files_of(directory)
    assert look_at(directory, world.job.tables, TOPIC, None, LIVE_TABLES) is not None
    world.follower.check()
    assert files_of(directory) == before


@pytest.mark.parametrize(
    ("topic_name", "cluster", "sentence"),
    [
        ("other", None, "topic is 'other', was 'kardia.events'"),
        (TOPIC, "other", f"cluster is 'other', was '{CLUSTER}'"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(
    world: World, topic_name: str, cluster: str | None, sentence: str
) -> None:
    with pytest.raises(CheckpointError, match=sentence):
        look_at(world.job.checkpoint.directory, world.job.tables, topic_name, cluster, LIVE_TABLES)


def test_a_server_that_follows_loads_no_module_of_spark() -> None:
    loaded = (
        "import sys; from cli.asking.left_out import BY_READERS, leave_out; leave_out(BY_READERS);"
        "import api.app, live.follower, live.followed_store, live.settings;"
        "print([name for name in ('pyspark', 'pandas', 'py4j', 'delta') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
