"""Commits where nobody looks at ends, and who committed: what a request log alone shows of both."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import Event, Kind
from kardia.lag import book
from kardia.lag.book import COMMITS_EVERY_MS, UNLOOKED_MS
from kardia.tables import LAG
from tests.lag.test_book import START_MS, Lane, commit, look, named
from tests.support.stories import lanes_of, observe

FIRST_MS = START_MS + UNLOOKED_MS


def asks(
    lane: Lane,
    at_ms: int,
    offset: int,
    *partitions: int,
    error: int = 0,
    has_records: bool = False,
    member: str = "m",
) -> None:
    """A member asks to commit, of partition 0 if no other is named."""
    at = float(at_ms)
    place = ("b/request/i", at_ms, at_ms + 1, at, at, at, at, "g", member, "", "app")
    offsets = [["t", partition, offset, error] for partition in partitions or (0,)]
    event = Event(int(Kind.COMMIT), 7, *place, detail={"offsets": offsets})
    assert lane.book.asked(event, at_ms, has_records=has_records) == []
    lane.restart()


def told(lane: Lane, at_ms: int, **how: Any) -> list[tuple[int, int, int, str | None]]:
    """(Partition, committed offset, when, by whom) of the rows that are written by an instant."""
    rows = named(lane.book.tell(at_ms, has_records=False, **how))
    lane.restart()
    assert {(row["state"], row["lag"], row["end_offset"], row["certainty"]) for row in rows} <= {
        ("no_end", None, None, "unknown")
    }
    return [
        (row["partition"], row["committed_offset"], row["committed_at_ms"] - START_MS, row["committed_by"])
        for row in rows
    ]


def begun(**how: Any) -> Lane:
    """Nobody has looked since."""
    lane = Lane(restarts=True, **how)
    asks(lane, START_MS, 10)
    assert told(lane, START_MS) == []
    return lane


def test_the_newest_commit_of_each_partition_is_written_with_who_made_it() -> None:
    lane = begun()
    asks(lane, START_MS + 100, 12)
    asks(lane, START_MS + 200, 5, 1)
    assert told(lane, FIRST_MS - 1) == []
    assert told(lane, FIRST_MS) == [(0, 12, 100, "m"), (1, 5, 200, "m")]
    assert told(lane, FIRST_MS + COMMITS_EVERY_MS) == [], "nothing has changed"


def test_what_changes_is_written_every_few_seconds() -> None:
    lane = begun()
    written = []
    for second in range(31, 60):
        asks(lane, START_MS + second * 1_000, second)
        written += told(lane, START_MS + second * 1_000)
    assert [offset for _, offset, _, _ in written] == [31, 41, 51]


def test_at_the_end_of_what_is_read_it_is_written_at_once() -> None:
    lane = begun()
    assert told(lane, START_MS + 1_000, is_last=True) == [(0, 10, 0, "m")]


def test_what_was_refused_is_no_commit() -> None:
    lane = begun()
    asks(lane, START_MS + 100, 99, error=27)
    assert told(lane, FIRST_MS) == [(0, 10, 0, "m")]


def test_who_commits_other_partitions_each_time_loses_none_of_them() -> None:
    lane = begun()
    asks(lane, START_MS + 100, 20, 0, 1, 3)
    asks(lane, START_MS + 200, 30, 0, 2, 3)
    assert sorted(told(lane, FIRST_MS)) == [(0, 30, 200, "m"), (1, 20, 100, "m"), (2, 30, 200, "m"), (3, 30, 200, "m")]


def test_whoever_has_a_partition_next_commits_it() -> None:
    lane = begun()
    asks(lane, START_MS + 100, 20, member="heir")
    assert told(lane, FIRST_MS) == [(0, 20, 100, "heir")]


def test_of_more_than_may_be_written_those_that_wait_longest_come_first() -> None:
    lane = begun(rows_per_s=1)
    for partition in range(1, 100):
        asks(lane, START_MS + partition, 5, partition)
    seen: set[int] = set()
    for turn in range(20):
        written = told(lane, FIRST_MS + turn * COMMITS_EVERY_MS)
        assert len(written) <= 10
        asks(lane, FIRST_MS + turn * COMMITS_EVERY_MS, 6 + turn)
        seen |= {partition for partition, *_ in written}
    assert seen == set(range(100))


def test_what_waits_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "ASKED_MAX", 3)
    lane = begun()
    for partition in range(1, 10):
        asks(lane, START_MS + partition, 5, partition)
    assert len(lane.book.snapshot()[-1]) == 3
    assert len(told(lane, FIRST_MS)) == 10


def test_a_group_that_is_deleted_has_committed_nothing() -> None:
    lane = begun()
    assert told(lane, FIRST_MS) == [(0, 10, 0, "m")]
    asks(lane, FIRST_MS + 1, 11)
    (row,) = named(lane.book.deleted("g", FIRST_MS + 2))
    assert (row["state"], row["partition"]) == ("gone", 0)
    assert told(lane, FIRST_MS + 60_000) == []


def test_one_that_is_read_late_does_not_take_a_newer_ones_place() -> None:
    lane = begun()
    asks(lane, START_MS - 500, 3)
    asks(lane, START_MS - 400, 4, 0, 1)
    assert sorted(told(lane, FIRST_MS)) == [(0, 10, 0, "m"), (1, 4, -400, "m")]


def test_where_records_are_read_a_request_only_says_who() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS, 10))
    asks(lane, START_MS, 10, has_records=True)
    asks(lane, START_MS + 5, 7, 1, has_records=True)
    (row,) = lane.take(look(0, START_MS + 10_000, {0: 12}))
    assert (row["committed_offset"], row["committed_by"], row["committed_by_client_id"]) == (10, "m", "app")
    lane.take(commit(1, START_MS + 11_000, 12))
    (row,) = lane.take(look(1, START_MS + 20_000, {}))
    assert (row["committed_offset"], row["committed_by"]) == (12, None), "who committed that one is not read"


def test_where_somebody_looks_nothing_is_written_without_a_look() -> None:
    lane = begun()
    lane.take(look(0, START_MS + 1_000, {0: 12}))
    asks(lane, START_MS + 2_000, 11)
    assert told(lane, FIRST_MS + 60_000, is_last=True) == []


def test_a_state_of_before_has_nobody_who_committed() -> None:
    lane = begun()
    assert told(lane, FIRST_MS) == [(0, 10, 0, "m")]
    *kept, _ = lane.book.snapshot()
    kept[0][0][2][0] = kept[0][0][2][0][:8]
    kept[3] = kept[3][:3]
    restored = Lane()
    restored.book.restore(kept)
    asks(restored, FIRST_MS + 1, 7, 1)
    (_, old) = named(restored.book.tell(FIRST_MS + book.REPEAT_MS, has_records=False, is_last=True))
    assert (old["committed_offset"], old["committed_by"]) == (10, None)


@pytest.mark.parametrize("name", ["c13_commit-3.9.2", "o13_commit-2.3.1"])
def test_a_replay_of_a_request_log_shows_what_was_committed_and_by_whom(name: str) -> None:
    asked: dict[tuple[str, str, int], tuple[int, str | None]] = {}
    lanes = lanes_of(name, offsets=False)
    commits = [event for lane in lanes for event in lane if event.kind == Kind.COMMIT and event.error_code == 0]
    for event in sorted(commits, key=lambda event: event.decided_at_ms):
        for topic, partition, offset, error in (event.detail or {})["offsets"]:
            if not error:
                asked[event.group_id, topic, partition] = (offset, event.member_id or None)
    rows = [dict(zip(LAG.names, row, strict=True)) for row in observe(lanes).get("lag", ())]
    found = {
        (row["group_id"], row["topic"], row["partition"]): (row["committed_offset"], row["committed_by"])
        for row in sorted(rows, key=lambda row: row["known_at_ms"])
    }
    assert found == asked != {}
