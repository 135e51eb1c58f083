"""Events as archive rows: each position once, whatever a collector sends again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest.wire import FORMAT, encode_batch
from kardia.events import ALL_SHARDS, Event, Kind, event_id, lane_of
from kardia.tables import EVENTS
from spark_jobs.archive_rows import Marks, row_of, rows_of
from spark_jobs.lane import Record
from spark_jobs.schemas import to_arrow


def event(start: int, shard: int = 2, kind: Kind = Kind.FETCH, source: str = "b/request/1") -> Event:
    return Event(int(kind), shard, source, start, start + 10, 5.5, 1.0, 2.0, 3.0)


def archived(batches: list[list[Event]], lane: int = 2, marks: Marks | None = None) -> list[str]:
    records = [Record(number, 0, FORMAT.encode(), encode_batch(events)) for number, events in enumerate(batches)]
    at = EVENTS.names.index("event_id")
    return [row[at] for row in rows_of("c", lane, {} if marks is None else marks, records)]


def test_what_is_sent_again_is_archived_once() -> None:
    lines = [event(start) for start in range(0, 100, 10)]
    assert archived([lines[:6], lines[3:], lines]) == [event_id(one) for one in lines]


def test_a_fetch_for_two_shards_of_a_lane_is_two_events_even_across_batches() -> None:
    here, there = event(10, shard=2), event(10, shard=8)
    assert lane_of(2) == lane_of(8) == 2
    marks: Marks = {}
    assert archived([[here]], marks=marks) == [event_id(here)]
    assert archived([[there], [here, there]], marks=marks) == [event_id(there)]


def test_ticks_rejected_lines_foreign_records_and_copies_of_gaps_are_not_archived() -> None:
    gap = event(5, ALL_SHARDS, Kind.GAP)
    others = [event(1, ALL_SHARDS, Kind.TICK), event(2, ALL_SHARDS, Kind.REJECTED)]
    assert archived([[*others, gap]], lane=2) == []
    assert archived([[*others, gap]], lane=0) == [event_id(gap)]
    foreign = [Record(0, 0, None, b"x"), Record(1, 0, FORMAT.encode(), None), Record(2, 0, b"msgpack/9", b"\x90")]
    assert list(rows_of("c", 0, {}, foreign)) == []


def test_a_row_fits_its_table() -> None:
    found = to_arrow(EVENTS, [row_of("c", event(3)._replace(detail={"bytes": 1}, group_id="g"))], 4).to_pylist()[0]
    assert (found["kind"], found["logged_at_ms"], found["at_ms"], found["detail"]) == ("fetch", 5.5, 2, '{"bytes":1}')
    assert found["member_id"] is None


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), max_size=12))
def test_any_repeats_of_any_stretches_give_each_event_once(stretches: list[tuple[int, int]]) -> None:
    """A collector goes on where it is or goes back to a saved position; it never jumps ahead."""
    lines = [event(start) for start in range(0, 240, 10)]
    sent = 0
    batches = []
    for back, count in stretches:
        begin = max(0, sent - back)
        batches.append(lines[begin : begin + count])
        sent = max(sent, min(len(lines), begin + count))
    assert archived(batches) == [event_id(one) for one in lines[:sent]]
