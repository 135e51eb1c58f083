"""State that a release before has saved: read, gone on from, and nothing is begun anew.

Goal: a job that is upgraded in the middle of a rebalance gives the rows of one that was not. Method: lanes as those
releases have written them (`keep`), in groups of every protocol; the rest of their stories goes through this version,
and must give the rows that this version gives where it has read all of it. Where this version had said something else
by then than that release, the rows that cannot but differ are named, one by one (`SAID_EARLIER`).
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from kardia.observe import ObserverSettings
from kardia.tables import TABLES
from spark_jobs.checkpoint import journal, state_codec
from spark_jobs.checkpoint.journal import InMemory
from spark_jobs.errors import StateError
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory, Rows
from tests.upgrade.keep import KEPT, LANES, TOPIC, KeptLane, by_position

RELEASES = sorted(folder.name for folder in KEPT.iterdir())
LANES_KEPT = sorted(KEPT.glob("*/lanes/*"))
FACTORY = ObserverFactory(ObserverSettings("test"))


@cache
def kept_in(path: Path) -> KeptLane:
    """A lane as it was kept."""
    return msgspec.msgpack.decode(gzip.decompress(path.read_bytes()), type=KeptLane)


def begin(kept: KeptLane) -> Lane:
    """The lane before its first record."""
    return Lane(FACTORY, TOPIC, kept.lane, LANES)


@cache
def unbroken(path: Path) -> tuple[Rows, ...]:
    """Rows of each batch after the cut, where this version has read all."""
    kept = kept_in(path)
    lane = begin(kept)
    rows = [lane.step(records) for records in kept.batches]
    return tuple(rows[kept.cut :])


class Earlier(NamedTuple):
    """What a later version had said before the cut otherwise than the release whose state it is given; it shows after
    the cut, and cannot be made up for."""

    predicted: frozenset[tuple[str, int]] = frozenset()
    """(Member, when it was said) of predictions that the release had not made; what became of them is told after."""
    sampled: frozenset[str] = frozenset()
    """Members in good health whose last row the release wrote at another instant: a row comes every five seconds, so
    all that follow come at other instants too."""


SAID_EARLIER = {
    # It foretells a static member that has left for good, 5 s after its last heartbeat.
    "26-e01_lives-4.4.0": Earlier(predicted=frozenset({("T9SNYft_TyibcZ2OTbaZaQ", 1_795_517_814_039)})),
    # That release wrote a row of this member 2 s before one was due, when it had not been heard for 3.8 s.
    "26-c06_static-3.9.2": Earlier(sampled=frozenset({"i-c-39536aa5-343d-48de-84dc-bd2d45ea8668"})),
}
"""Of these lanes something was said earlier; of all others every row is the same, in every batch and in its order."""

NO_LOOKS = "no_end"
"""State of rows of lag that are written half a minute after the first commit if nobody looks at ends: the release did
not keep since when it knew commits, so they come later, and which of them come until then is another question."""

WHENEVER = ("group_id", "member_id", "group_state", "session_timeout_ms", "status")
"""Columns of health that do not depend on when a member is sampled."""


def comparable(
    rows: tuple[Rows, ...], earlier: Earlier
) -> tuple[list[dict[str, list[Any]]], Earlier, set[tuple[Any, ...]]]:
    """Rows by batch without those that must differ, which these were, and what is the same of them still."""
    predicted, sampled, health = set[tuple[str, int]](), set[str](), set[tuple[Any, ...]]()
    found = []
    for batch in rows:
        kept: dict[str, list[Any]] = {name: [] for name in batch}
        for name, some in batch.items():
            place = TABLES[name].names.index
            for row in some:
                if (
                    name == "predictions"
                    and (key := (row[place("member_id")], row[place("predicted_at_ms")])) in earlier.predicted
                ):
                    predicted.add(key)
                elif name == "health" and row[place("member_id")] in earlier.sampled:
                    sampled.add(row[place("member_id")])
                    health.add(tuple(row[place(column)] for column in WHENEVER))
                elif not (name == "lag" and row[place("state")] == NO_LOOKS):
                    kept[name].append(row)
        found.append(kept)
    return found, Earlier(frozenset(predicted), frozenset(sampled)), health


def assert_equal(rows: tuple[Rows, ...], path: Path) -> None:
    """Rows after the cut are those of a lane that was never cut, but for what must differ, and that does."""
    earlier = SAID_EARLIER.get(named(path), Earlier())
    said, _, health = comparable(rows, earlier)
    all_said, differs, all_health = comparable(unbroken(path), earlier)
    assert said == all_said
    assert health == all_health
    assert differs == earlier, "what is left out is there"
    if earlier != Earlier():
        assert rows != unbroken(path), "nothing needs to be left out any more"


def named(path: Path) -> str:
    """A kept file as the name of a test."""
    return f"{path.parent.parent.name}-{path.name.partition('.msgpack')[0]}"


def test_every_release_since_the_oldest_is_kept() -> None:
    assert [str(version) for version in range(state_codec.OLDEST, state_codec.VERSION)] == RELEASES


@pytest.mark.parametrize("path", LANES_KEPT, ids=named)
def test_a_base_of_a_release_before_goes_on(path: Path) -> None:
    kept = kept_in(path)
    lane = begin(kept)
    lane.load(kept.state)
    rows = tuple(lane.step(records) for records in kept.batches[kept.cut :])
    assert_equal(rows, path)


@pytest.mark.parametrize("path", LANES_KEPT, ids=named)
def test_a_store_of_a_release_before_goes_on_and_is_of_this_one_then(path: Path) -> None:
    kept = kept_in(path)
    store = InMemory()
    store.said, store.pieces, store.steps = kept.mark, dict(kept.pieces), dict(kept.steps)
    read = journal.read(store, lambda: begin(kept))
    rows = []
    for number, records in enumerate(kept.batches[kept.cut :]):
        rows.append(read.lane.step(records))
        journal.write(store, read, records, b"%16d" % number, journal.MIN_BYTES)
        assert store.said is not None
        assert store.said.version == state_codec.VERSION
        read = journal.read(store, lambda: begin(kept))
    assert_equal(tuple(rows), path)


def test_there_is_an_open_rebalance_of_each_protocol() -> None:
    """Else the tests above say nothing of what is held then."""
    found: set[str] = set()
    for path in LANES_KEPT:
        lane = begin(kept_in(path))
        lane.load(kept_in(path).state)
        groups: list[Any] = list(lane.model.groups.values())  # type: ignore[attr-defined]
        found |= {one.protocol for one in groups if one.rebalance is not None}
        found |= {one.protocol for one in groups if one.modern is not None and one.modern.bumps}
    assert found >= {"classic", "consumer", "share", "streams"}


RENAMED = {"certainty": "doubts"}
"""Field of state 26 -> what it is called since the step to 27."""


@pytest.mark.parametrize("release", RELEASES)
def test_fields_that_are_kept_by_position_stay_where_they_are(release: str) -> None:
    """One that has come since stands behind them, with a default. Where a step of `state_codec.STEPS` gives a field
    another meaning, and with it a name, it does so here as well."""
    kept = msgspec.json.decode((KEPT / release / "fields.json").read_bytes(), type=dict[str, list[str]])
    before = {name: [RENAMED.get(field, field) for field in fields] for name, fields in kept.items()}
    now = by_position()
    assert {name: now.get(name, [])[: len(fields)] for name, fields in before.items()} == before


def test_state_of_a_later_release_is_refused_in_words() -> None:
    """Whoever goes back to a release before is told what leads back."""
    later = bytes((state_codec.VERSION + 1,)) + b"\x94"
    with pytest.raises(StateError, match=r"a later Kardia has written it.*start the later Kardia again; or restore"):
        state_codec.decode(later, "lane 0")


def test_state_of_no_release_that_is_read_is_refused_in_words() -> None:
    with pytest.raises(StateError, match=r"by way of a release that reads it; or rebuild: .*--new-generation"):
        state_codec.decode(bytes((state_codec.OLDEST - 1,)), "lane 0")


@pytest.mark.parametrize("version", range(state_codec.OLDEST, state_codec.VERSION))
def test_what_a_step_cannot_read_is_damage(version: int) -> None:
    damaged = state_codec.encode(state_codec.LaneState(0, 0.0, {}, {"streams": 3}))
    with pytest.raises(StateError, match=r"saved state is damaged"):
        state_codec.decode(bytes((version,)) + damaged[1:], "lane 0")
