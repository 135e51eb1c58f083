"""A real broker with real consumers: it boots, logs what Kardia reads and nothing else, stops, and comes back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from demo import broker_logging, server_log
from demo.broker import Broker, BrokerSettings
from demo.consumer_processes import Cast
from demo.director import Director
from demo.scenario import FAULTS, PARTITIONS, TOPIC
from supervise import process
from supervise.process import ProcessError

pytestmark = pytest.mark.slow

WAIT_S = 30.0


def test_a_story_happens_for_real_and_the_broker_says_so(tmp_path: Path) -> None:
    """One member leaves; the broker is stopped, started again, and its logs go on where they ended."""
    told: list[str] = []
    with Broker(tmp_path / "broker") as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        broker.create_topic(TOPIC, PARTITIONS)  # a topic that is there already is left as it is
        with Cast(broker.bootstrap, tmp_path / "consumers") as cast:
            director = Director(cast, ["leave"])
            director.raise_groups(told.append)
            assert director.play(lambda cue: told.append(cue.step.told), lambda: None) == 1
            assert cast.ended_early(director.expected) == []
            assert cast.up == {"checkout-1"}
        facts = server_log.read(broker.server_log)
        [left] = [fact for fact in facts if fact.what == server_log.MEMBER_LEFT]
        assert left.group_id == "checkout"
        assert left.member_id.startswith("checkout-2-")
        names = {
            json.loads(line[line.index("{") : line.rindex("}") + 1])["requestHeader"]["requestApiKeyName"]
            for line in broker.request_log.read_text().splitlines()
        }
        assert {"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT", "FETCH"} <= names
        assert names <= set(broker_logging.APIS.values())
        size = broker.request_log.stat().st_size
        assert broker.stop() == 143
        assert not broker.running
        broker.start()
        assert broker.request_log.stat().st_size >= size
        with pytest.raises(ProcessError, match="is running already"):
            broker.start()
        broker.kill()
        assert not broker.running
    assert told[-1] == FAULTS["leave"].steps[-1].told


def test_an_older_broker_logs_the_same(tmp_path: Path) -> None:
    from confluent_kafka import Consumer

    with Broker(tmp_path, BrokerSettings(version="3.9.2", offsets_partitions=3)) as broker:
        broker.create_topic("t", 1)
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "g",
                "client.id": "c",
                "session.timeout.ms": 1_500,
                "heartbeat.interval.ms": 300,
                "log_level": 0,
            }
        )
        consumer.subscribe(["t"])

        def beating() -> bool:
            consumer.poll(0.1)
            return '"requestApiKeyName":"HEARTBEAT"' in broker.request_log.read_text()

        process.until(beating, WAIT_S, lambda: broker.request_log.read_text())
        consumer.close()
        assert server_log.MEMBER_LEFT in [fact.what for fact in server_log.read(broker.server_log)]
        for line in broker.request_log.read_text().splitlines():
            assert re.match(r'\[.{23}\] DEBUG Completed request:\{.*"requestApiKey":(1|8|1[1-4]),', line)


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match=r"(?s)(before it was ready|could not be formatted).*log\.retention\.ms"):
        Broker(tmp_path, BrokerSettings(extra={"log.retention.ms": "often"})).start()


def test_a_broker_that_was_never_started_has_no_process(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    assert broker.stop() == 0
    with pytest.raises(ProcessError, match="has not been started"):
        _ = broker.pid


@pytest.mark.parametrize("version", ["3.9.2", "4.4.0"])
def test_a_request_log_that_has_its_size_goes_on_in_a_new_file(tmp_path: Path, version: str) -> None:
    older = version.startswith("3.")
    say = broker_logging.log4j1_properties if older else broker_logging.log4j2_xml
    assert "Rolling" not in say(tmp_path)
    rolls = say(tmp_path, 512)
    assert rolls.count("RollingFileAppender" if older else "<RollingFile ") == 1
    assert ("MaxFileSize=512KB" if older else 'size="512 KB"') in rolls
    both = say(tmp_path, 512, 64)
    assert both.count("RollingFileAppender" if older else "<RollingFile ") == 2
    assert ("server.MaxFileSize=64KB" if older else 'size="64 KB"') in both


def test_a_server_log_that_went_on_in_new_files_is_read_whole_and_in_its_order(tmp_path: Path) -> None:
    """And a start is seen whose line stands in the new file, or in the old one right before."""
    broker = Broker(tmp_path)
    broker.logs.mkdir()
    for name, text in (
        ("server.log.10", "a\n"),
        ("server.log.2", "b\n"),
        ("server.log.1", "123c\n"),
        ("server.log", "d\n"),
    ):
        (broker.logs / name).write_text(text, encoding="utf-8")
    assert broker.server_log_text() == "a\nb\n123c\nd\n"
    assert broker._since(3) == b"c\nd\n"
    assert broker._since(1) == b"\n"
