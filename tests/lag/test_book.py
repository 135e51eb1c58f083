"""What the book of a lane writes: who is behind as of a look, what is written and how seldom, and what is not known.

Method: commits and looks are given as events; a restart in between must change nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.archives.ranges import tick
from kardia.events import ALL_SHARDS, Event, Kind
from kardia.lag import book
from kardia.lag.book import REPEAT_MS, LagBook
from kardia.observe import Observer, ObserverSettings
from kardia.tables import LAG, Row

START_MS = 1_700_000_000_000
EVERY_MS = 10_000


def commit(number: int, at_ms: int, offset: int | None, group: str = "g", partition: int = 0) -> Event:
    detail: dict[str, Any] = {"tombstone": offset is None, "topic": "t", "partition": partition}
    if offset is not None:
        detail |= {"offset": offset, "commit_at_ms": at_ms}
    source = "offsets-topic/offsets/7"
    return Event(
        int(Kind.OFFSET_RECORD), 7, source, number, number + 1, at_ms, at_ms, at_ms, at_ms, group, detail=detail
    )


def look(number: int, at_ms: int, ends: dict[int, int], run: str = "a", start: int = 0, **more: Any) -> Event:
    told = [["t", [[partition, start, end, 0] for partition, end in ends.items()]]] if ends else []
    at = float(at_ms)
    source = f"offsets-topic/ends/{run}.0"
    detail = {"ends": told, **({"begins": True} if number == 0 else {}), **more}
    return Event(int(Kind.ENDS), ALL_SHARDS, source, number, number + 1, at + 4, at, at + 4, at + 4, detail=detail)


def read_to(number: int, at_ms: int) -> Event:
    return tick("offsets-topic/offsets/all", number, number, at_ms, 0, 0, {}, at_ms)


def named(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows about partitions."""
    found = [dict(zip(LAG.names, row, strict=True)) for row in rows]
    return [row for row in found if row["state"] != "looked"]


class Lane:
    """A book that is fed, and restarted after each event if asked to."""

    def __init__(self, *, rows_per_s: float = 1_000.0, restarts: bool = False) -> None:
        self._rows_per_s, self._restarts = rows_per_s, restarts
        self.book = self._new()
        self.as_of_ms = -1
        """Of the last look."""

    def _new(self) -> LagBook:
        return LagBook("c", 0, self._rows_per_s)

    def restart(self) -> None:
        """Go on with what the book says of itself, if it is to be restarted."""
        if self._restarts:
            kept = msgspec.msgpack.decode(msgspec.msgpack.encode(self.book.snapshot()))
            self.book = self._new()
            self.book.restore(kept)

    def take(self, event: Event) -> list[dict[str, Any]]:
        rows = self.book.look(event) if event.kind == Kind.ENDS else list(self.book.commit(event))
        self.restart()
        looks = [dict(zip(LAG.names, row, strict=True)) for row in rows]
        self.as_of_ms = max([self.as_of_ms, *(row["at_ms"] for row in looks if row["state"] == "looked")])
        return named(rows)


def test_a_partition_is_written_by_each_look_that_finds_it_changed() -> None:
    """Else lag would be of one instant, and the ends, or the commits, of another."""
    lane = Lane()
    lane.take(commit(0, START_MS - 20_000, 10))
    written = []
    for number in range(10):
        at_ms, ends = START_MS + number * EVERY_MS, {0: 10 + number} if number < 6 else {}
        written += [(number, row["lag"], row["verdict"]) for row in lane.take(look(number, at_ms, ends))]
    assert written == [(number, number, "OK") for number in range(6)], "no commit, no end, no row"
    (stopped,) = lane.take(look(10, START_MS + 10 * EVERY_MS, {}))
    assert stopped["verdict"] == "STOP", "by time alone"


def test_a_commit_beyond_the_end_is_told_by_the_first_look_that_can_tell() -> None:
    """Clocks may be 5 s apart: within them the commit may have come after the look."""
    lane = Lane()
    lane.take(commit(0, START_MS, 50))
    written = [
        (number, row["state"], row["lag"])
        for number in range(12)
        for row in lane.take(look(number, START_MS + 1 + number * 1_000, {0: 10} if number == 0 else {}))
    ]
    assert written == [(0, "known", 0), (5, "beyond_end", None)]


def test_that_is_told_soon_though_it_was_to_be_looked_at_later_for_something_else() -> None:
    """It is behind, so that it may stop minutes later; then it commits too much; and so on, for an hour."""
    lane, told = Lane(), []
    for second in range(3_600):
        at_ms = START_MS + second * 1_000
        if second % 10 in (0, 8):
            lane.take(commit(second, at_ms - 500, 10 if second % 10 else 50))
        told += [row["state"] for row in lane.take(look(second, at_ms, {0: 20} if second == 0 else {}))]
    assert told.count("beyond_end") == 360, "each time"
    assert len(lane.book._checks) < 50


def test_a_quiet_partition_is_written_once_an_hour() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 1_000, 10))
    written = [
        number
        for number in range(2 * REPEAT_MS // EVERY_MS + 2)
        for _ in lane.take(look(number, START_MS + number * EVERY_MS, {0: 10} if number == 0 else {}))
    ]
    assert written == [0, REPEAT_MS // EVERY_MS, 2 * REPEAT_MS // EVERY_MS]


def test_the_budget_is_kept_and_the_one_written_longest_ago_comes_first() -> None:
    lane = Lane(rows_per_s=0.1)  # three in half a minute
    partitions = range(30)
    for partition in partitions:
        lane.take(commit(partition, START_MS - 1_000, 5, partition=partition))
    seen: list[int] = []
    for number in range(400):
        ends = dict.fromkeys(partitions, 100 + number)
        seen += [row["partition"] for row in lane.take(look(number, START_MS + number * EVERY_MS, ends))]
    # 30 at once because they are new, which is paid back; then one every ten seconds, in turn.
    assert 370 <= len(seen) <= 440
    counts = [seen.count(partition) for partition in partitions]
    assert max(counts) - min(counts) <= 3


@pytest.mark.parametrize("restarts", [False, True])
def test_what_the_budget_leaves_unwritten_is_told_by_as_of_when_lag_is(restarts: bool) -> None:
    """Two partitions change with every look, and one may be written: its row holds, that of the other does no more."""
    lane = Lane(rows_per_s=1_000 / EVERY_MS, restarts=restarts)
    for partition in range(2):
        lane.take(commit(partition, START_MS - 1_000, 0, partition=partition))
    truth: dict[int, list[int]] = {0: [], 1: []}
    shown: dict[int, dict[str, Any]] = {}
    for number in range(60):
        at_ms = START_MS + number * EVERY_MS
        ends = {partition: 10 + number * (partition + 1) for partition in truth}
        for row in lane.take(look(number, at_ms, ends)):
            shown[row["partition"]] = row
        for partition, known in truth.items():
            known.append(ends[partition])
        for partition, row in shown.items():
            as_of_ms = max(lane.as_of_ms, row["at_ms"])
            assert row["lag"] == truth[partition][(as_of_ms - START_MS) // EVERY_MS]
            assert as_of_ms >= at_ms - 2 * EVERY_MS
    assert {row["at_ms"] - lane.as_of_ms for row in shown.values()} == {0, EVERY_MS}, "one of them waits for its turn"


def test_of_state_that_does_not_say_since_when_something_is_unwritten_it_is_the_last_look() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 1_000, 10))
    lane.take(look(0, START_MS, {0: 10}))
    lane.take(commit(1, START_MS + 5_000, 12))
    state = lane.book.snapshot()
    state[5] = [entry[:3] for entry in state[5]]
    other = Lane().book
    other.restore(state)
    assert other.snapshot() == lane.book.snapshot()


def test_an_end_that_is_told_again_is_no_change() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 20_000, 10))
    assert len(lane.take(look(0, START_MS, {0: 15}))) == 1
    assert lane.take(look(1, START_MS + EVERY_MS, {0: 15})) == []


def test_what_one_look_does_not_answer_is_not_known_until_it_is() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 20_000, 10))
    assert lane.take(look(0, START_MS, {0: 15}))[0]["lag"] == 5
    (lost,) = lane.take(look(1, START_MS + EVERY_MS, {}, unreadable=[["t", [0]]]))
    assert (lost["state"], lost["lag"], lost["end_offset"], lost["certainty"]) == ("no_end", None, None, "unknown")
    assert lane.take(look(2, START_MS + 2 * EVERY_MS, {})) == []
    assert lane.take(look(3, START_MS + 3 * EVERY_MS, {0: 16}))[0]["lag"] == 6


def test_a_missing_look_leaves_unknown_what_is_not_told_anew() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 20_000, 10))
    lane.take(commit(1, START_MS - 20_000, 10, partition=1))
    lane.take(look(0, START_MS, {0: 15, 1: 15}))
    rows = lane.take(look(2, START_MS + 2 * EVERY_MS, {0: 15}))  # number 1 was lost in the topic
    assert [(row["partition"], row["state"]) for row in rows] == [(0, "known"), (1, "no_end")]
    assert lane.take(look(3, START_MS + 3 * EVERY_MS, {1: 15}))[0]["state"] == "known"


def test_a_commit_beyond_the_end_has_no_lag_unless_it_may_have_come_after_the_look() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 1_000, 20))
    assert lane.take(look(0, START_MS, {0: 15}))[0]["lag"] == 0
    (row,) = lane.take(look(1, START_MS + EVERY_MS, {0: 15}))
    assert (row["state"], row["lag"], row["verdict"]) == ("beyond_end", None, None)


def test_a_commit_that_is_gone_is_told_once_and_a_repeat_of_its_tombstone_never() -> None:
    lane = Lane()
    lane.take(commit(0, START_MS - 1_000, 10))
    lane.take(look(0, START_MS, {0: 15}))
    (row,) = lane.take(commit(1, START_MS + 5_000, None))
    assert (row["state"], row["lag"], row["committed_offset"]) == ("gone", None, None)
    assert lane.take(commit(2, START_MS + 6_000, None)) == []
    assert lane.take(look(1, START_MS + EVERY_MS, {0: 16})) == []
    assert lane.book.snapshot()[:2] == [[], []], "nothing is left of it"


def test_more_commits_than_a_lane_takes_put_the_one_out_that_was_written_longest_ago(monkeypatch: Any) -> None:
    monkeypatch.setattr(book, "COMMITS_MAX", 2)
    lane = Lane()
    for partition in range(2):
        assert lane.take(commit(partition, START_MS - 1_000, 10, partition=partition)) == []
    (row,) = lane.take(commit(2, START_MS, 10, partition=2))
    assert (row["partition"], row["state"]) == (0, "forgotten")
    assert sorted(place for place in lane.book.groups["g"]) == [("t", 1), ("t", 2)]


OFFSETS = st.one_of(st.none(), st.integers(0, 200))
STEPS = st.lists(st.tuples(st.integers(0, 25_000), st.integers(0, 2), OFFSETS, st.booleans()), min_size=1, max_size=40)


@given(STEPS)
def test_a_restart_after_every_event_changes_nothing_and_each_row_holds_together(
    steps: list[tuple[int, int, int | None, bool]],
) -> None:
    lanes = Lane(), Lane(restarts=True)
    at_ms, looks, end = START_MS, 0, 0
    for number, (passed_ms, partition, offset, is_look) in enumerate(steps):
        at_ms += passed_ms
        if is_look:
            end += offset or 0
            event = look(looks, at_ms, {partition: end})
            looks += 1
        else:
            event = commit(number, at_ms, offset, partition=partition)
        rows, others = (lane.take(event) for lane in lanes)
        assert rows == others
        for row in rows:
            known = [row[name] for name in ("behind_from_ms", "behind_at_ms", "behind_to_ms") if row[name] is not None]
            assert known == sorted(known)
            assert all(START_MS <= at <= row["at_ms"] for at in known)
            assert bool(row["lag"]) == (row["behind_to_ms"] is not None)
            if row["lag"] is not None:
                assert row["lag"] == max(0, row["end_offset"] - row["committed_offset"])


def test_a_look_waits_for_the_commits_up_to_it_whatever_the_steps() -> None:
    """The commit of before the look is read after it, as by a collector that is behind."""
    settings = ObserverSettings("c")
    events = [
        commit(0, START_MS - 60_000, 5),
        look(0, START_MS, {0: 10}),
        commit(1, START_MS - 10_000, 9),
        read_to(2, START_MS + 2_000),
    ]
    whole = Observer(settings)
    rows = named(whole.step(events)["lag"])
    assert [(row["committed_offset"], row["lag"]) for row in rows] == [(9, 1)]
    bit_by_bit = Observer(settings)
    found: list[dict[str, Any]] = []
    for event in events:
        found += named(bit_by_bit.step([event])["lag"])
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(bit_by_bit.snapshot()))
        bit_by_bit = Observer.restore(settings, 0, kept)
    assert found == rows
