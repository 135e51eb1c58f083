"""Lag as it is told against what was produced minus what was committed, once a second, on a real broker.

Goal: a healthy group under load, and after its producer has stopped, is told the lag that it had, in records and in
time, and as of when; and at the instant of telling that is no further from the truth than what came and was read since
the last look at the ends. Method: this process produces and commits, and notes when; the same numbers told to a person
by the command line's questions, and scraped, are held against the notes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from demo.broker import Broker
from tests.support.commits import commit
from tests.support.lagging import Watching

pytestmark = pytest.mark.slow

LOOK_S, BEHIND = 2.0, 40
LOAD_S, IDLE_S = 20, 12
CLOCKS_MS = 2
"""Instants are cut to milliseconds on the way."""

LATE_MS = 3_000
"""From a look to its row in a table, on a machine with other things to do."""


class Notes:
    """How a number grew: (before the request, after its answer, what it is then), epoch ms."""

    def __init__(self) -> None:
        self.entries: list[tuple[float, float, int]] = [(0.0, 0.0, 0)]

    def note(self, began_s: float, value: int) -> None:
        self.entries.append((began_s * 1_000, time.time() * 1_000, value))

    def least(self, at_ms: float) -> int:
        return max(value for _, done_ms, value in self.entries if done_ms <= at_ms - CLOCKS_MS)

    def most(self, at_ms: float) -> int:
        return max(value for began_ms, _, value in self.entries if began_ms <= at_ms + CLOCKS_MS)

    def reached(self, value: int) -> tuple[float, float]:
        """Between which instants the number came to be more than a value."""
        return next((began_ms, done_ms) for began_ms, done_ms, found in self.entries if found > value)


class Loaded:
    """A group that stays some records behind its producer, and catches up when that stops."""

    def __init__(self, kafka: Broker, name: str) -> None:
        self.name, self.place = name, TopicPartition(f"{name}-topic", 0)
        kafka.create_topic(self.place.topic, 1)
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        self._consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": name, "log_level": 0})
        self.produced, self.committed = Notes(), Notes()

    def turn(self, records: int) -> None:
        """Produce and commit once."""
        came = self.produced.entries[-1][2] + records
        if records:
            began_s = time.time()
            for number in range(records):
                self._producer.produce(self.place.topic, str(number).encode(), partition=0)
            assert self._producer.flush(60) == 0
            self.produced.note(began_s, came)
        offset = max(0, came - (BEHIND if records else 0))
        if offset > self.committed.entries[-1][2]:
            began_s = time.time()
            commit(self._consumer, TopicPartition(self.place.topic, 0, offset))
            self.committed.note(began_s, offset)


@pytest.fixture
def watching(kafka: Broker, tmp_path: Path) -> Iterator[Watching]:
    found = Watching(kafka.bootstrap, tmp_path, every_s=LOOK_S)
    yield found
    found.stop()


def test_what_is_told_is_what_was_produced_minus_what_was_committed(kafka: Broker, watching: Watching) -> None:
    group = Loaded(kafka, "loaded")
    for _ in range(20):
        group.turn(5)
    watching.until(lambda: bool(watching.latest(group.name)), "it is known")
    questions, told = watching.ask(), 0
    until_s = time.monotonic() + LOAD_S + IDLE_S
    next_s = time.monotonic() + 1
    while time.monotonic() < until_s:
        group.turn(5 if until_s - time.monotonic() > IDLE_S else 0)
        watching.step()
        if time.monotonic() < next_s:
            continue
        next_s += 1
        asked_ms = time.time() * 1_000
        found = questions.lag_of(group.name, 10)
        _holds(group, found, asked_ms)
        told += 1
    assert told >= (LOAD_S + IDLE_S) / 2
    assert (found["group"]["lag"], found["group"]["status"]) == (0, "OK"), "it has caught up"


def _holds(group: Loaded, found: dict[str, Any], asked_ms: float) -> None:
    (one,) = found["partitions"]
    at_ms, looked_ms = one["as_of_ms"], one["looked_at_ms"]
    committed = group.committed.least(at_ms), group.committed.most(at_ms)
    assert committed[0] <= one["committed_offset"] <= committed[1], "of the instant that is told"
    assert group.produced.least(looked_ms) <= one["end_offset"] <= group.produced.most(at_ms), "and so is the end"
    # Clocks lie apart: a commit of about the instant of a look may be beyond the end that it saw, and lags by nothing.
    assert one["lag"] == max(0, one["end_offset"] - one["committed_offset"])
    assert one["lag_most"] in (one["lag"], None)
    if one["lag"]:
        began_ms, done_ms = group.produced.reached(one["committed_offset"])
        assert one["time_lag_least_ms"] - CLOCKS_MS <= at_ms - began_ms
        assert one["time_lag_most_ms"] is None or at_ms - done_ms <= one["time_lag_most_ms"] + CLOCKS_MS
    assert found["known"]["as_of_ms"] <= at_ms
    assert asked_ms - at_ms <= 2 * LOOK_S * 1_000 + LATE_MS
    now = group.produced.most(asked_ms) - group.committed.least(asked_ms)
    came = group.produced.most(asked_ms) - group.produced.least(looked_ms)
    read = group.committed.most(asked_ms) - group.committed.least(at_ms)
    assert now - came <= one["lag"] <= now + read, "within what came, and was read, since the last look"
