"""A lane that is read back from its base and its journal goes on as if nothing had happened, wherever it was stopped.

Goal: the same rows and the same state, byte for byte, as a lane that lives through it all. Method: recorded stories
in batches of any size through a store in memory, of which a batch is written whole or not at all; stopped
and read back anywhere, with bases written often, seldom and never; with events that cannot be applied; then damage,
bounds, and an observer of a later version that raises where the one before did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.wire.batches import batches, encode_batch
from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.observe.careful import Careful
from spark_jobs.checkpoint import journal, state_codec
from spark_jobs.checkpoint.journal import InMemory, Kept
from spark_jobs.errors import StateError
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import LaneModel, ModelFactory, ObserverFactory, Rows
from tests.spark_jobs.support import requests_in
from tests.support.stories import lanes_of, read_live, stamps_of

FACTORY = ObserverFactory(ObserverSettings("test"))
NAMES = ("c01_kill-4.1.2", "c04_mpi-4.1.2", "c06_static-3.9.2", "d03_stand_still-4.4.0", "o10_slow-2.7.2")
GOOD = b"msgpack/1"


@dataclass(frozen=True)
class Way:
    """How a story is taken."""

    stops: frozenset[int] = frozenset()
    """Batches before which the process dies."""
    repeated: frozenset[int] = frozenset()
    """Batches that are stepped through, and then not written."""
    min_bytes: int = journal.MIN_BYTES
    waits: frozenset[int] = frozenset()
    """Batches in which it is another lane's turn to write a base."""


NOTHING = Way()


def begin(lane: int, factory: ModelFactory = FACTORY) -> Callable[[], Lane]:
    return lambda: Lane(factory, "kardia.events", lane, 6)


@cache
def busiest(name: str) -> int:
    return max(range(6), key=lambda lane: len(lanes_of(name)[lane]))


@cache
def story(name: str) -> tuple[tuple[Record, ...], ...]:
    """Batches of the busiest lane of a story, as a job reads them that follows it."""
    found, offset = [], 0
    for events in read_live(lanes_of(name)[busiest(name)], 1_000, stamps_of(name)):
        values = [value for value, _ in batches(events)]
        found.append(tuple(Record(offset + at, 0, GOOD, value) for at, value in enumerate(values)))
        offset += len(values)
    return tuple(found)


def joined(steps: Sequence[Sequence[Record]], sizes: Iterable[int]) -> list[list[Record]]:
    """The same records in batches of so many steps each, the last size again and again."""
    found: list[list[Record]] = []
    rest, size = list(steps), 1
    given = iter(sizes)
    while rest:
        size = next(given, size)
        found.append([record for step in rest[:size] for record in step])
        rest = rest[size:]
    return found


def taken(
    steps: Sequence[Sequence[Record]], way: Way, lane: int, factory: ModelFactory = FACTORY
) -> tuple[list[Rows], bytes, InMemory]:
    """(Rows of each batch, state at the end, the store)."""
    store = InMemory()
    kept, rows = journal.read(store, begin(lane, factory)), []
    for number, records in enumerate(steps):
        if number in way.stops:
            kept = journal.read(store, begin(lane, factory))
        if number in way.repeated:
            kept.lane.step(records, before(store, lane, factory))
            kept = journal.read(store, begin(lane, factory))
        rows.append(kept.lane.step(records, before(store, lane, factory)))
        turn = number not in way.waits
        journal.write(store, kept, records, b"%16d" % number, way.min_bytes, turn=turn)
        assert_bounded(kept, records, way.min_bytes)
    return rows, kept.lane.save(), store


def before(store: InMemory, lane: int, factory: ModelFactory) -> Callable[[], bytes]:
    return lambda: journal.read(store, begin(lane, factory)).lane.save()


def assert_bounded(kept: Kept, records: Sequence[Record], min_bytes: int) -> None:
    most = min(journal.MAX_BYTES // kept.lane.lanes, int(journal.GROWN * kept.base_bytes))
    assert kept.journal_bytes <= journal.HARD * max(min_bytes, most)
    assert kept.steps <= journal.HARD * journal.MAX_STEPS


def numbers(most: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(0, most), max_size=8)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_stopped_anywhere_it_says_the_same_and_holds_the_same(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    steps = joined(story(name), sizes)
    some = numbers(len(steps) - 1)
    least = data.draw(st.sampled_from([0, 1, 2_000, 20_000, journal.MIN_BYTES]))
    way = Way(data.draw(some), data.draw(some), least, data.draw(some))
    lane = busiest(name)
    rows, state, _ = taken(steps, way, lane)
    plainly, wanted, _ = taken(steps, NOTHING, lane)
    assert rows == plainly
    assert state == wanted


def test_the_stories_have_bases_and_journals_of_several_steps() -> None:
    """Else the law above would be about nothing."""
    for name in NAMES:
        steps = story(name)
        store = taken(steps, Way(min_bytes=20_000), busiest(name))[2]
        assert store.said is not None
        assert store.said.pieces == 1, name
        assert len(steps) > 20
        never = taken(steps, NOTHING, busiest(name))[2].said
        assert never is not None
        assert (never.pieces, never.steps) == (0, len(steps))


def test_what_is_written_follows_what_came_and_not_what_is_held() -> None:
    """Batches of nothing but a tick write the same few bytes, whatever the lane has learnt before."""
    name = NAMES[0]
    steps = story(name)
    store = InMemory()
    kept = journal.read(store, begin(busiest(name)))
    sizes = []
    for half in (0, len(steps)):
        for number, records in enumerate(steps[:half]):
            kept.lane.step(records)
            journal.write(store, kept, records, b"%16d" % number, 0)
        tick = next(event for event in reversed(lanes_of(name)[busiest(name)]) if event.kind == Kind.TICK)
        record = Record(max(0, kept.lane.next_offset), 0, GOOD, encode_batch([tick]))
        kept.base_bytes = 1 << 30  # no base is due
        written = store.written
        kept.lane.step([record])
        journal.write(store, kept, [record], b"t", 0)
        sizes.append(store.written - written)
    assert sizes[0] == sizes[1] < 400


def poisoned(name: str) -> list[list[Record]]:
    """A story with events that cannot be applied behind a request in each tenth batch."""
    lane = busiest(name)
    shard = next(event.shard for event in lanes_of(name)[lane] if event.shard >= 0)
    steps: list[list[Record]] = []
    offset = 0
    for number, records in enumerate(story(name)):
        values = [record.value for record in records]
        near = max((event for value in values for event in requests_in(value)), key=lambda one: one.end, default=None)
        if number % 10 == 3 and near is not None:
            leave: dict[str, Any] = {"start": near.end, "group_id": "poison", "kind": int(Kind.LEAVE), "shard": shard}
            values.append(encode_batch([near._replace(**leave, detail={"members": [[]]})]))
        steps.append([Record(offset + at, 0, GOOD, value) for at, value in enumerate(values)])
        offset += len(values)
    return steps


@settings(max_examples=4, deadline=None)
@given(st.data())
def test_what_cannot_be_applied_is_refused_once_wherever_it_is_stopped(data: st.DataObject) -> None:
    steps = poisoned("c04_mpi-4.1.2")
    some = numbers(len(steps) - 1)
    lane = busiest("c04_mpi-4.1.2")
    way = Way(data.draw(some), data.draw(some), data.draw(st.sampled_from([0, 20_000, journal.MIN_BYTES])))
    rows, state, _ = taken(steps, way, lane)
    plainly, wanted, _ = taken(steps, NOTHING, lane)
    assert rows == plainly
    assert state == wanted
    assert sum(len(step["rejected"]) for step in rows) == sum(
        len(records) - len(plain) for records, plain in zip(steps, story("c04_mpi-4.1.2"), strict=True)
    )


class _Later(Observer):
    """An observer of a later version with a defect."""

    def _handle(self, event: Event, at: float) -> None:
        if event.kind == Kind.COMMIT and event.start % 3 == 0:
            raise ZeroDivisionError("a defect")
        super()._handle(event, at)


class _LaterCareful(Careful, _Later):
    pass


@dataclass(frozen=True)
class LaterFactory(ObserverFactory):
    def new(self, lane: int) -> LaneModel:
        return _Later(self.settings, lane=lane)

    def restore(self, lane: int, state: Any) -> LaneModel:
        return _Later.restore(self.settings, lane, state)

    def careful(self, lane: int, state: Any) -> Careful:
        if state is None:
            return _LaterCareful(self.settings, lane)
        return _LaterCareful.restore(self.settings, lane, state)


def test_a_later_version_with_a_defect_reads_the_journal_of_the_one_before() -> None:
    """It goes on from where it would be if it had taken everything itself."""
    name = "c04_mpi-4.1.2"
    steps, lane = story(name), busiest(name)
    store = taken(steps, NOTHING, lane)[2]
    later = LaterFactory(FACTORY.settings)
    rows, state, _ = taken(steps, NOTHING, lane, later)
    assert sum(len(step["rejected"]) for step in rows) > 3
    read = journal.read(store, begin(lane, later)).lane
    assert read.next_offset == sum(map(len, steps))
    assert (
        state_codec.decode(read.save(), "lane").observer["groups"]
        == state_codec.decode(state, "lane").observer["groups"]
    )


@pytest.mark.parametrize("part", ["pieces", "steps"])
@pytest.mark.parametrize("damage", [None, b"", b"\x00\x00", b"\x09\x00\x00\x00nothing"])
def test_a_store_with_a_part_that_is_missing_or_damaged_is_refused(part: str, damage: bytes | None) -> None:
    name = NAMES[0]
    store = taken(story(name)[:24], Way(min_bytes=12_000), busiest(name))[2]
    parts: dict[int, bytes] = getattr(store, part)
    assert parts
    if damage is None:
        del parts[0]
    else:
        parts[0] = damage
    with pytest.raises(StateError, match=rf"damaged.*lane {busiest(name)}.*--new-generation"):
        journal.read(store, begin(busiest(name)))


@pytest.mark.parametrize("version", [state_codec.OLDEST - 1, state_codec.VERSION + 1])
def test_a_journal_of_another_version_is_refused(version: int) -> None:
    store = taken(story(NAMES[0])[:5], NOTHING, busiest(NAMES[0]))[2]
    assert store.said is not None
    store.said = store.said._replace(version=version)
    with pytest.raises(StateError, match=f"has version {version}.*to {state_codec.VERSION}.*--new-generation"):
        journal.read(store, begin(busiest(NAMES[0])))


def test_a_journal_ends_at_its_bounds() -> None:
    kept = Kept(begin(0)(), base_bytes=1_000)
    record = Record(0, 0, GOOD, b"x" * (100 - journal.OF_RECORD))
    kept.journal_bytes = int(journal.GROWN * 1_000) - 100
    assert not kept.is_full([record], 0)
    kept.journal_bytes += 1
    assert kept.is_full([record], 0)
    assert not kept.is_full([record], 0, journal.HARD)
    assert not kept.is_full([record], 2_000)
    kept.journal_bytes, kept.steps = 0, journal.MAX_STEPS - 1
    assert not kept.is_full([record], 0)
    kept.steps = journal.MAX_STEPS
    assert kept.is_full([record], 0)
    kept.base_bytes, kept.journal_bytes, kept.steps = 1 << 30, journal.MAX_BYTES // kept.lane.lanes - 100, 0
    assert not kept.is_full([record], 0)
    kept.journal_bytes += 1
    assert kept.is_full([record], 0)


def test_a_base_of_many_bytes_is_stored_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_codec, "PIECE_BYTES", 64)
    name = NAMES[0]
    way = Way(min_bytes=0, stops=frozenset(range(0, 30, 3)))
    rows, state, store = taken(story(name)[:30], way, busiest(name))
    assert store.said is not None
    assert store.said.pieces > 3
    assert max(map(len, store.pieces.values())) == 64
    assert (rows, state) == taken(story(name)[:30], NOTHING, busiest(name))[:2]
