"""A broker's own logging configuration: what is missing in it, and the whole file as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ingest.doctor import Finding, Level, remedies
from ingest.doctor.broker_logging import BYTES_MAX, examine

SERVER_LOG = {"name": "KafkaAppender", "fileName": "${sys:kafka.logs.dir}/server.log"}
ROOT = {"level": "INFO", "AppenderRef": [{"ref": "KafkaAppender"}]}


def stock(**loggers: Any) -> dict[str, Any]:
    """The shape of the file that Kafka 4 brings."""
    return {
        "Configuration": {
            "Properties": {"Property": [{"name": "kafka.logs.dir", "value": "."}]},
            "Appenders": {"Console": {"name": "STDOUT"}, "RollingFile": [SERVER_LOG, {"name": "RequestAppender"}]},
            "Loggers": {
                "Root": ROOT,
                "Logger": [
                    {"name": "kafka", "level": "INFO"},
                    {"name": "kafka.request.logger", "level": "WARN", "AppenderRef": {"ref": "RequestAppender"}},
                    {"name": "kafka.controller", "level": "INFO"},
                ],
                **loggers,
            },
        }
    }


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def only(path: Path) -> Finding:
    [found] = examine(path)
    return found


def test_the_whole_file_is_given_and_nothing_in_it_is_lost(tmp_path: Path) -> None:
    found = only(written(tmp_path / "log4j2.yaml", stock()))
    assert found.level is Level.BAD
    merged = yaml.safe_load("\n".join(found.remedy))["Configuration"]
    assert [one["name"] for one in merged["Appenders"]["RollingFile"]] == [
        "KafkaAppender",
        "RequestAppender",
        "GroupRequests",
    ]
    assert merged["Appenders"]["Console"] == {"name": "STDOUT"}
    assert merged["Loggers"]["Root"] == ROOT, "server.log is written as before"
    loggers = {one["name"]: one["level"] for one in merged["Loggers"]["Logger"]}
    assert loggers == {"kafka": "INFO", "kafka.request.logger": "DEBUG", "kafka.controller": "INFO"}
    again = written(tmp_path / "corrected.yaml", "\n".join(found.remedy))
    assert [one.level for one in examine(again)] == [Level.GOOD]


@pytest.mark.parametrize("change", ["level", "regex", "additivity"])
def test_a_logger_that_lets_other_things_pass_is_told(tmp_path: Path, change: str) -> None:
    content = yaml.safe_load("\n".join(only(written(tmp_path / "a.yaml", stock())).remedy))
    logger = content["Configuration"]["Loggers"]["Logger"][1]
    if change == "regex":
        logger["AppenderRef"][0]["RegexFilter"]["regex"] = "nothing"
    else:
        logger[change] = "INFO"
    assert only(written(tmp_path / "b.yaml", content)).level is Level.BAD


def test_sections_that_stand_twice_are_told_with_their_line(tmp_path: Path) -> None:
    """Whoever put the lines below `Configuration` as they are had no server.log from then on."""
    added = "".join(f"  {line}\n" for line in remedies.log4j2_yaml().splitlines())
    found = only(written(tmp_path / "log4j2.yaml", yaml.safe_dump(stock(), sort_keys=False) + added))
    assert found.level is Level.BAD
    assert "Appenders (line " in found.sentence
    assert "Loggers (line " in found.sentence
    assert "The later one hides the earlier" in found.sentence


def test_one_entry_that_is_no_list_is_kept(tmp_path: Path) -> None:
    content = stock(Logger={"name": "kafka", "level": "INFO"})
    content["Configuration"]["Appenders"]["RollingFile"] = SERVER_LOG
    merged = yaml.safe_load("\n".join(only(written(tmp_path / "log4j2.yaml", content)).remedy))["Configuration"]
    assert [one["name"] for one in merged["Appenders"]["RollingFile"]] == ["KafkaAppender", "GroupRequests"]
    assert [one["name"] for one in merged["Loggers"]["Logger"]] == ["kafka", "kafka.request.logger"]


@pytest.mark.parametrize(
    "content", ["", "[]", "a: [", "Configuration: 1", "Configuration: {Appenders: 3}", "[" * 9_000]
)
def test_what_is_no_such_file_is_a_sentence(tmp_path: Path, content: str) -> None:
    assert only(written(tmp_path / "log4j2.yaml", content)).level is Level.BAD


def test_a_file_has_a_bound(tmp_path: Path) -> None:
    assert "no logging configuration" in only(written(tmp_path / "log4j2.yaml", "#" * (BYTES_MAX + 1))).sentence
    assert "no logging configuration" not in only(written(tmp_path / "log4j2.yaml", "#" * BYTES_MAX)).sentence


def test_properties_are_given_whole_as_well(tmp_path: Path) -> None:
    before = "# stock\nlog4j.rootLogger=INFO, kafkaAppender\nlog4j.logger.kafka.request.logger=WARN, requestAppender\n"
    found = only(written(tmp_path / "log4j.properties", before))
    assert found.level is Level.BAD
    assert found.remedy[:2] == ("# stock", "log4j.rootLogger=INFO, kafkaAppender")
    lines = [line for line in found.remedy if line.startswith("log4j.logger.kafka.request.logger=")]
    assert lines == ["log4j.logger.kafka.request.logger=DEBUG, groupRequests"]
    again = written(tmp_path / "again.properties", "\n".join(found.remedy) + "\n")
    assert only(again).level is Level.GOOD


def test_properties_of_a_broker_that_writes_text_have_filters_of_their_own(tmp_path: Path) -> None:
    """Whoever has one such filter has a broker 2.0 to 2.7: the others are of the same kind."""
    before = "log4j.appender.groupRequests.filter.01.StringToMatch=RequestHeader(apiKey=HEARTBEAT,\n"
    found = only(written(tmp_path / "log4j.properties", before))
    assert found.level is Level.BAD
    assert not [line for line in found.remedy if "requestApiKey" in line]
    again = written(tmp_path / "again.properties", "\n".join(found.remedy) + "\n")
    assert only(again).level is Level.GOOD
