"""How far a topic that never stops growing has been read: never beyond the truth, and never long behind it."""

from __future__ import annotations

import threading
import time
from math import inf
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from hypothesis import given
from hypothesis import strategies as st

from ingest.metrics import Metrics
from ingest.offsets.complete_to import UNKNOWN, Ends
from ingest.offsets.source import OffsetsSource
from kardia.events import Kind
from tests.support.commits import is_not_yet

if TYPE_CHECKING:
    from demo.broker import Broker

FETCH_MS = 500
"""Between two fetches in the simulation."""


class Log:
    """A partition: when each offset was appended, whether it is ever delivered, and how far a consumer is."""

    def __init__(self) -> None:
        self.records: list[tuple[float, bool]] = []
        self.fetched = 0
        self.eof = -1

    def fetch(self, most: int) -> tuple[list[int], bool]:
        """Offsets that a fetch delivers, and whether it tells EOF: of what was there before, as librdkafka does."""
        end = len(self.records)
        eof = self.fetched == end and self.eof != end
        if eof:
            self.eof = end
        offsets: list[int] = []
        # A fetch of a whole MiB without a single record to deliver is left out.
        while self.fetched < end and (most > 0 or not offsets):
            most -= 1
            if self.records[self.fetched][1]:
                offsets.append(self.fetched)
            self.fetched += 1
        return offsets, eof


APPENDS = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=6)
"""(partition, whether it is delivered) of what is appended before a fetch."""


@given(st.lists(st.tuples(APPENDS, st.integers(1, 4)), max_size=30))
def test_what_is_said_to_be_read_has_been_read(steps: list[tuple[list[tuple[int, bool]], int]]) -> None:
    logs = [Log() for _ in range(3)]
    ends = Ends(range(3))
    read: set[tuple[int, int]] = set()
    for number, (appends, most) in enumerate([*steps, ([], 9), ([], 9), ([], 9)], 1):
        now_ms = float(number * FETCH_MS)
        for partition, delivered in appends:
            logs[partition].records.append((now_ms - 1, delivered))
        for partition, log in enumerate(logs):
            offsets, eof = log.fetch(most if number <= len(steps) else 1_000)
            if eof:
                ends.reached(partition, now_ms)
            if offsets:
                read |= {(partition, offset) for offset in offsets}
                ends.read(partition, offsets[-1] + 1, len(log.records), now_ms)
        read_to_ms = ends.read_to_ms(now_ms)
        for partition, log in enumerate(logs):
            for offset, (appended_ms, delivered) in enumerate(log.records):
                assert not delivered or appended_ms > read_to_ms or (partition, offset) in read
    assert ends.all_were_reached
    assert ends.read_to_ms(now_ms) == now_ms


@pytest.mark.parametrize("after", [[], [False]], ids=["records only", "each followed by the marker of a transaction"])
def test_partitions_that_never_rest_are_read_up_to_the_fetch_before(after: list[bool]) -> None:
    logs = [Log() for _ in range(3)]
    ends = Ends(range(3))
    for number in range(1, 50):
        now_ms = float(number * FETCH_MS)
        for partition, log in enumerate(logs):
            log.records += [(now_ms - 1, delivered) for delivered in (True, *after)]
            offsets, eof = log.fetch(1_000)
            assert not eof
            ends.read(partition, offsets[-1] + 1, len(log.records), now_ms)
        assert number < 2 or ends.read_to_ms(now_ms) >= now_ms - FETCH_MS


def test_without_watermarks_only_an_end_tells() -> None:
    ends = Ends([0])
    ends.read(0, 5, UNKNOWN, 1.0)
    assert not ends.all_were_reached
    ends.reached(0, 2.0)
    assert (ends.all_were_reached, ends.read_to_ms(3.0)) == (True, 3.0)
    ends.read(0, 6, UNKNOWN, 4.0)
    assert (ends.all_were_reached, ends.read_to_ms(5.0)) == (True, 2.0)


@pytest.mark.slow
def test_the_offsets_topic_is_complete_while_commits_never_cease(kafka: Broker) -> None:
    """Sixteen groups that commit all the time: no fetch is without records, so the partitions are never all at their
    ends. What was acknowledged before an instant that is said to be complete must have been seen."""
    topic, mark = f"busy-{uuid4().hex[:8]}", uuid4().hex[:8]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result()
    groups = [f"{mark}-{number}" for number in range(16)]
    done: list[tuple[float, str, int]] = []
    stop = threading.Event()

    def commit() -> None:
        clients = [Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group}) for group in groups]
        accepted = dict.fromkeys(groups, 0)
        while not stop.is_set():
            for group, client in zip(groups, clients, strict=True):
                try:
                    client.commit(offsets=[TopicPartition(topic, 0, accepted[group] + 1)], asynchronous=False)
                except KafkaException as error:
                    if not is_not_yet(error):
                        raise
                    continue
                accepted[group] += 1
                done.append((time.time() * 1_000, group, accepted[group]))
        for client in clients:
            client.close()

    source = OffsetsSource(kafka.bootstrap, {}, Metrics())
    busy = threading.Thread(target=commit)
    busy.start()
    seen = dict.fromkeys(groups, 0)
    checked = 0
    try:
        until_s = time.monotonic() + 120
        until_ms = inf
        while source.complete_to_ms < until_ms:
            assert time.monotonic() < until_s, f"complete up to {until_ms - source.complete_to_ms:.0f} ms before"
            if until_ms == inf and len(done) > 4 * len(groups):
                until_ms = time.time() * 1_000 + 4_000
            for event in source.poll(time.time() * 1_000):
                if event.group_id in seen and event.kind == Kind.OFFSET_RECORD:
                    seen[event.group_id] += 1
            while checked < len(done) and done[checked][0] <= source.complete_to_ms:
                _, group, offset = done[checked]
                assert seen[group] >= offset, f"the {offset}th commit of {group} was not seen"
                checked += 1
            time.sleep(0.01)
    finally:
        stop.set()
        busy.join()
        source.close()
    assert checked > 4 * len(groups), "commits were judged"
