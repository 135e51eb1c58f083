"""The archive has each id that was sent once, none missing: what a real collector sends, cut and killed anywhere.

Goal: equal sets of ids, topic against table. Method: recorded stories in a growing file at a virtual clock, or found
whole; a collector that is killed between any two sends, an archive that is killed between any two steps; real files,
real Delta, no Spark (`test_stream` has the steps within Spark).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.collector import MAX_IN_FLIGHT
from ingest.wire.batches import FORMAT, MAX_EVENTS, decode_batch, encode_batch
from kardia.events import Event, Kind, event_id
from kardia.observe import ObserverSettings
from kardia.tables import TABLES
from spark_jobs.archive.rows import is_archived
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from tests.ingest.following import Following
from tests.ingest.lines import body, line
from tests.ingest.world import LANES, World
from tests.spark_jobs.archiving import ALIVE, BEFORE, WRITTEN, Archiving
from tests.support.stories import Story

MIXED = "c18_libs-4.1.2"
"""Five client libraries in groups of several lanes; two lines of three are a FETCH."""

Records = list[tuple[int, bytes]]


def ids_in(records: Records) -> set[str]:
    return {event_id(event) for lane, data in records for event in decode_batch(data) if is_archived(event, lane)}


def check_archived(directory: Path, records: Records, lanes: int, per_batch: int) -> None:
    archive = Archiving(directory, lanes)
    while archive.read < len(records):
        archive.run(records, per_batch)
    found = archive.ids()
    assert set(found) == ids_in(records)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(("way", "per_batch"), [("live", 1_000), ("catch_up", 13), ("catch_up", 5_000)])
def test_a_story_is_archived_whole(tmp_path: Path, way: str, per_batch: int) -> None:
    following = Following(tmp_path, Story(MIXED))
    with following.world as world:
        for _ in following.live() if way == "live" else following.catch_up():
            pass
        world.drain()
        kinds = Counter(event.kind for event in world.topic.events())
        assert kinds[Kind.FETCH] > 1_000
        assert kinds[Kind.GAP] == 0
        check_archived(tmp_path / "tables", world.topic.records, world.lanes, per_batch)


@pytest.mark.parametrize(("way", "every"), [("live", 40), ("catch_up", 3)])
def test_a_collector_that_is_killed_again_and_again_sends_nothing_that_is_not_archived(
    tmp_path: Path, way: str, every: int
) -> None:
    """Its answers are lost every time, so it repeats; a FETCH goes to a shard that its client was not known for."""
    following = Following(tmp_path, Story(MIXED))
    with following.world as world:
        for number in following.live() if way == "live" else following.catch_up():
            world.topic.answering = number % (2 * every) < every
            if number % every == every - 1:
                world.crash()
        world.drain()
        sent = [event_id(event) for event in world.topic.events() if event.kind < Kind.TICK]
        assert len(sent) > len(set(sent))
        check_archived(tmp_path / "tables", world.topic.records, world.lanes, 200)


@pytest.mark.parametrize("story", ["c01_kill-4.1.2", MIXED])
@pytest.mark.parametrize("per_step", [1, 7, 10_000])
def test_the_model_takes_every_event_wherever_a_batch_ends(tmp_path: Path, story: str, per_step: int) -> None:
    """The same of the live query: a batch that ends within a flush makes no event a repeat, and no gap of it."""
    following = Following(tmp_path, Story(story))
    with following.world as world:
        for _ in following.catch_up():
            pass
        world.drain()
        records = world.topic.records
    taken: Counter[str] = Counter()
    for number in range(world.lanes):
        lane = Lane(ObserverFactory(ObserverSettings(cluster_id="c")), "t", number, world.lanes)
        mine = [data for at, data in records if at == number]
        for begin in range(0, len(mine), per_step):
            some = enumerate(mine[begin : begin + per_step], begin)
            rows = lane.step([Record(offset, 0, FORMAT.encode(), data) for offset, data in some])
            for row in rows.get("progress", ()):
                told = dict(zip(TABLES["progress"].names, row, strict=True))
                taken.update({name: told[name] for name in ("events", "duplicates", "gaps")})
    assert taken["events"] == len(ids_in(records))
    assert taken["duplicates"] == taken["gaps"] == 0


class Killed(Exception):  # noqa: N818  what happened, not a mistake
    """The process is gone."""


def fetch(number: int, client: str) -> bytes:
    return line(
        number,
        requestHeader={**body()["requestHeader"], "requestApiKey": 1, "clientId": client},
        request={"maxWaitMs": 500, "sessionEpoch": 0},
        response={"errorCode": 0, "responses": []},
    )


def heartbeat(number: int, client: str, group: str) -> bytes:
    request = {"groupId": group, "generationId": 1, "memberId": f"m-{number}", "groupInstanceId": None}
    return line(number, requestHeader={**body()["requestHeader"], "clientId": client}, request=request)


LINES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), min_size=1, max_size=30)
"""Lines as (client, group): group 0 is a FETCH; a client may speak for many groups, of the same lane or of several."""


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(LINES, st.none() | st.integers(0, 6), st.booleans()), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([ALIVE, BEFORE, WRITTEN])), max_size=5),
)
def test_killed_anywhere_each_id_is_archived_once(
    tmp_path_factory: pytest.TempPathFactory,
    stretches: list[tuple[list[tuple[int, int]], int | None, bool]],
    batches: list[tuple[int, str]],
) -> None:
    """A stretch: its lines, how many records are still sent of them before the kill, and whether answers come."""
    home = tmp_path_factory.mktemp("killed")
    number = 0
    with World(home) as world:
        send = world.topic.send
        for lines, sends, answering in stretches:
            world.topic.answering = answering
            for client, group in lines:
                number += 1
                made = heartbeat(number, f"c-{client}", f"g-{group}") if group else fetch(number, f"c-{client}")
                world.file.write(made + b"\n")
            left = MAX_IN_FLIGHT if sends is None else sends

            def dying(*arguments: object) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Killed
                send(*arguments)  # type: ignore[arg-type]

            world.topic.send = dying  # type: ignore[method-assign,assignment]
            try:
                world.step(6)
            except Killed:
                world.crash()
            world.topic.send = send  # type: ignore[method-assign]
        world.drain()
        records = world.topic.records
    archive = Archiving(home / "tables", LANES)
    for size, fate in batches:
        archive.run(records, size, fate)
    while archive.read < len(records):
        archive.run(records, 50)
    assert sorted(archive.ids()) == sorted(ids_in(records))


STRANGE: dict[str, dict[str, object]] = {
    "a generation beyond 32 bits": {"generation_id": 2**40},
    "an API version beyond 32 bits": {"api_version": 2**63 - 1},
    "an error code below 32 bits": {"error_code": -(2**40)},
    "a key that is no text": {"detail": {"partitions": {None: 1}}},
    "an extension of msgpack": {"detail": {"partitions": msgspec.msgpack.Ext(1, b"x")}},
    "numbers and bytes": {"detail": {"bytes": 2**64 - 1, "ratio": float("nan"), "raw": b"\x00"}},
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
def test_an_event_that_no_row_can_hold_is_archived_with_what_shows_it(tmp_path: Path, strange: dict[str, Any]) -> None:
    """No reader of lines makes one. It may come from a writer of another hand, and stops nothing and is not missing."""
    at = 1_795_000_000_000.0
    good = [Event(int(Kind.COMMIT), 0, "b/request/x", start, start + 1, at, at, at, at, "g") for start in range(3)]
    records = [(0, encode_batch([good[0], good[1]._replace(**strange), good[2]]))]
    check_archived(tmp_path, records, LANES, 1)
    rows = {row["start"]: row for row in DeltaTable(tmp_path / "events").to_pyarrow_table().to_pylist()}
    assert {start: row["logged_at_ms"] for start, row in rows.items()} == {0: at, 1: at, 2: at}
    if "bytes" not in strange.get("detail", ()):
        assert "does_not_fit" in rows[1]["detail"]
        assert rows[0]["detail"] is rows[2]["detail"] is None


def test_copies_of_one_line_are_never_parted_by_a_record(tmp_path: Path) -> None:
    """Without that a stop between the two records would make the second copy a repeat of the first."""
    with World(tmp_path) as world:
        for group in range(1, 9):
            world.file.write(heartbeat(group, "c", f"g-{group}") + b"\n")
        world.step(3)
        for number in range(MAX_EVENTS):
            world.file.write(fetch(number, "c") + b"\n")
        world.drain()
        places = [
            {(lane, event.source, event.start) for event in decode_batch(data) if event.kind == Kind.FETCH}
            for lane, data in world.topic.records
        ]
        assert max(len(place) for place in places) < MAX_EVENTS
        assert sum(map(len, places)) == len(set().union(*places))
