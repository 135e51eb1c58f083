"""How long sessions are, as a real cluster is configured: asked, told in ticks of the offsets topic, followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from demo.broker import Broker
from ingest.admin.session_config import SessionConfig
from ingest.collector import OFFSETS_SOURCE
from kardia.events import Event, Kind
from tests.ingest.world import World

EPOCH_OF_CONSUMER_GROUP = 3


def epoch_record(group: str, **detail: Any) -> Event:
    """A record that says the epoch of a group."""
    said = {"record_type": EPOCH_OF_CONSUMER_GROUP, "tombstone": False, **detail}
    return Event(int(Kind.OTHER_RECORD), 0, "offsets-topic/offsets/0", 0, 1, 0, 0, 0, 0, group, detail=said)


def configure(bootstrap: str, group: str, session_ms: int) -> None:
    entry = ConfigEntry("consumer.session.timeout.ms", str(session_ms), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


@contextmanager
def asking(bootstrap: str, said: Callable[[str], None] = lambda _: None) -> Iterator[SessionConfig]:
    config = SessionConfig(bootstrap, {"log_level": 0}, said, every_s=0.2)
    try:
        yield config
    finally:
        config.close()


def told(config: SessionConfig, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What is told, once it is as it should be."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        found = config.take()
        if found is not None and until(found):
            return found
        time.sleep(0.05)
    raise AssertionError("it was not told")


@pytest.mark.slow
def test_the_brokers_setting_and_that_of_a_group_are_told_and_followed(kafka: Broker) -> None:
    group = f"own-{uuid4().hex[:8]}"
    configure(kafka.bootstrap, group, 17_000)
    with asking(kafka.bootstrap) as config:
        first = told(config, lambda _: True)
        assert first == {
            "session_ms": {"consumer": 45_000, "share": 45_000, "streams": 45_000},
            "group_session_ms": {},
        }
        assert config.take() is None  # told already, and nothing has changed
        config.heard(epoch_record(group))
        config.heard(epoch_record("has-none-of-its-own"))
        assert told(config, lambda found: found != first)["group_session_ms"] == {group: {"consumer": 17_000}}
        configure(kafka.bootstrap, group, 19_000)
        changed = told(config, lambda found: found["group_session_ms"].get(group) != {"consumer": 17_000})
        assert changed["group_session_ms"] == {group: {"consumer": 19_000}}
        config.heard(epoch_record(group, tombstone=True))
        assert told(config, lambda found: found != changed)["group_session_ms"] == {}


@pytest.mark.slow
def test_a_group_of_the_consumer_protocol_is_known_by_its_records(kafka: Broker) -> None:
    """From the records as a collector reads them: nobody lists groups."""
    from ingest.metrics import Metrics
    from ingest.offsets.source import OffsetsSource

    group, topic = f"met-{uuid4().hex[:8]}", f"topic-{uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    configure(kafka.bootstrap, group, 21_000)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": group, "group.protocol": "consumer", "log_level": 0}
    )
    consumer.subscribe([topic])
    records = OffsetsSource(kafka.bootstrap, {}, Metrics(), {"log_level": 0})
    try:
        with asking(kafka.bootstrap) as config:

            def read(found: dict[str, Any]) -> bool:
                consumer.poll(0.05)
                for event in records.poll(time.time() * 1_000):
                    config.heard(event)
                return group in found["group_session_ms"]

            end_s = time.monotonic() + 60
            found: dict[str, Any] = {"group_session_ms": {}}
            while not read(found) and time.monotonic() < end_s:
                found = config.take() or found
            assert found["group_session_ms"] == {group: {"consumer": 21_000}}
    finally:
        records.close()
        consumer.close()


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_said_once_and_nothing_is_told() -> None:
    said: list[str] = []
    with asking("127.0.0.1:1", said.append) as config:
        end_s = time.monotonic() + 60
        while not said and time.monotonic() < end_s:
            time.sleep(0.05)
        assert config.take() is None
    [sentence] = said
    assert sentence.startswith("session timeouts of groups with epochs cannot be read: ")
    assert "Next: " in sentence


class Told:
    """Tells a configuration once."""

    def __init__(self) -> None:
        self.heard_of: list[Event] = []
        self._left: list[dict[str, Any]] = [{"session_ms": {"consumer": 9_000}, "group_session_ms": {}}]

    def heard(self, event: Event) -> None:
        self.heard_of.append(event)

    def take(self) -> dict[str, Any] | None:
        return self._left.pop() if self._left else None


class Records:
    """An offsets topic with one record."""

    bootstrapped = True
    complete_to_ms = 1_790_000_000_000.0
    position = 1

    def __init__(self) -> None:
        self._left = [epoch_record("g")]

    def poll(self, wall_ms: float) -> list[Event]:  # noqa: ARG002
        left, self._left = self._left, []
        return left

    def positions(self) -> dict[int, int]:
        return {0: 1}

    def distrust(self, wall_ms: float) -> None: ...


def test_a_collector_tells_it_in_every_lane_and_lets_the_records_be_heard(tmp_path: Any) -> None:
    sessions = Told()
    with World(tmp_path) as world:
        world.collector.records, world.collector.sessions = Records(), sessions
        world.step(20)
        assert [event.group_id for event in sessions.heard_of] == ["g"]
        for lane in range(world.lanes):
            ticks = [event for event in world.topic.events(lane) if event.source == OFFSETS_SOURCE]
            details = [event.detail or {} for event in ticks if "session_ms" in (event.detail or {})]
            assert [detail["session_ms"] for detail in details] == [{"consumer": 9_000}]
            assert len(ticks) > 1
