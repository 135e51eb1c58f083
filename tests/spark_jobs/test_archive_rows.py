"""Events as archive rows: each position once, whatever a collector sends again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest.wire.batches import FORMAT, encode_batch
from kardia.events import ALL_SHARDS, Event, Kind, event_id, lane_of
from kardia.tables import EVENTS
from spark_jobs.archive.deduplication import MAX_MARKS, STRAYS, Mark, Marks, Nothing, Once, moved
from spark_jobs.archive.rows import row_of, rows_of
from spark_jobs.lane import Record
from spark_jobs.schemas import to_arrow


def event(start: int, shard: int = 2, kind: Kind = Kind.FETCH, source: str = "b/request/1") -> Event:
    return Event(int(kind), shard, source, start, start + 10, 5.5, 1.0, 2.0, 3.0)


def archived(batches: list[list[Event]], lane: int = 2, once: Once | None = None) -> list[str]:
    records = [Record(number, 0, FORMAT.encode(), encode_batch(events)) for number, events in enumerate(batches)]
    at = EVENTS.names.index("event_id")
    return [row[at] for row in rows_of("c", lane, once or Once({}, Nothing()), records)]


class Rows:
    """A past of these events, which counts how often it is asked."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self.asked = 0

    def highest(self, source: str) -> int:
        self.asked += 1
        return max((event.start for event in self._events if event.source == source), default=-1)

    def starts(self, source: str, lowest: int, highest: int) -> set[tuple[int, int]]:
        self.asked += 1
        mine = [event for event in self._events if event.source == source]
        return {(event.start, event.shard) for event in mine if lowest <= event.start <= highest}


def test_what_is_sent_again_is_archived_once() -> None:
    lines = [event(start) for start in range(0, 100, 10)]
    assert archived([lines[:6], lines[3:], lines]) == [event_id(one) for one in lines]


def test_a_fetch_for_two_shards_of_a_lane_is_two_events_even_across_batches() -> None:
    here, there = event(10, shard=2), event(10, shard=8)
    assert lane_of(2) == lane_of(8) == 2
    later = Once({here.source: Mark(10)}, Rows([here]))
    assert archived([[there], [here, there]], once=later) == [event_id(there)]


def test_what_lies_above_its_mark_asks_the_table_nothing() -> None:
    past = Rows([event(10)])
    assert len(archived([[event(20), event(30)]], once=Once({event(1).source: Mark(10)}, past))) == 2
    assert past.asked == 0


def test_a_source_whose_mark_was_forgotten_is_asked_for() -> None:
    past = Rows([event(10), event(20)])
    assert archived([[event(10)], [event(15)], [event(20)], [event(30)]], once=Once({}, past)) == [
        event_id(event(15)),
        event_id(event(30)),
    ]


def test_marks_are_bounded_and_those_that_moved_last_stay() -> None:
    marks: Marks = {}
    forgotten = 0
    for number in range(MAX_MARKS + 1):
        marks, dropped = moved(marks, [("first", number), (f"s-{number}", 5)])
        forgotten += dropped
        assert len(marks) <= MAX_MARKS
        assert forgotten == max(0, number + 2 - MAX_MARKS)
    assert marks["first"] == Mark(MAX_MARKS)
    assert "s-1" not in marks
    assert "s-2" in marks


def test_many_events_behind_their_place_are_sorted_in() -> None:
    lines = [event(start) for start in range(STRAYS + 2)]
    backwards = list(reversed(lines))
    chunks = [backwards[at : at + 1000] for at in range(0, len(lines), 1000)]
    assert len(archived([*chunks, *chunks])) == len(lines)


def test_ticks_rejected_lines_foreign_records_and_copies_of_gaps_are_not_archived() -> None:
    gap = event(5, ALL_SHARDS, Kind.GAP)
    others = [event(1, ALL_SHARDS, Kind.TICK), event(2, ALL_SHARDS, Kind.REJECTED)]
    assert archived([[*others, gap]], lane=2) == []
    assert archived([[*others, gap]], lane=0) == [event_id(gap)]
    foreign = [Record(0, 0, None, b"x"), Record(1, 0, FORMAT.encode(), None), Record(2, 0, b"msgpack/9", b"\x90")]
    assert list(rows_of("c", 0, Once({}, Nothing()), foreign)) == []


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
