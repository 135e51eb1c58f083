"""What the doctor says of real logs, of logs that are wrong in one way, and of a real broker."""

from __future__ import annotations

import gzip
import json
import os
import shlex
from datetime import UTC, timedelta, timezone, tzinfo
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from typer.testing import CliRunner

from cli.main import app
from demo.broker import NEWEST, Broker, BrokerSettings
from ingest.dialects.request_json import RequestJson
from ingest.doctor import Finding, Level, answerable, broker_logging, cluster, loggers, logs, remedies
from ingest.security.rendering import kafka_python
from supervise import process

ROOT = Path(__file__).parents[3]
CORPORA = ROOT / "tests" / "corpora"
DOCS = ROOT / "docs" / "request-logging.md"


def copied(tmp_path: Path, story: str, name: str = "kafka-request.log") -> Path:
    """A recorded log."""
    path = tmp_path / name
    path.write_bytes(gzip.decompress((CORPORA / story / f"{name}.gz").read_bytes()))
    return path


def touched(path: Path, zone: tzinfo) -> None:
    """Let the file have changed last at its last stamp, which was written in `zone`: so a broker leaves it."""
    dialect = RequestJson(zone)
    last_ms = max(at_ms for line in path.read_bytes().splitlines() if (at_ms := dialect.stamp_ms(line)) is not None)
    os.utime(path, (last_ms / 1000, last_ms / 1000))


def levels(findings: list[Finding]) -> set[Level]:
    return {finding.level for finding in findings}


def test_a_recorded_request_log_is_good_and_its_zone_is_named(tmp_path: Path) -> None:
    path = copied(tmp_path, "c01_kill-4.1.2")
    touched(path, UTC)
    found = logs.examine(path, None)
    assert Level.BAD not in levels(found)
    assert any(finding.remedy == ("--log-timezone UTC",) for finding in found)
    assert Level.BAD not in levels(logs.examine(path, UTC))


@pytest.mark.parametrize("minutes", [-660, -90, 60, 345, 840])
def test_a_wrong_zone_is_found_and_the_right_one_named(tmp_path: Path, minutes: int) -> None:
    path = copied(tmp_path, "c01_kill-4.1.2")
    written_in = timezone(timedelta(minutes=minutes))
    touched(path, written_in)
    [wrong] = [finding for finding in logs.examine(path, UTC) if finding.level is Level.BAD]
    sign, rest = "+" if minutes > 0 else "-", abs(minutes)
    assert wrong.remedy == (f"--log-timezone {sign}{rest // 60:02d}:{rest % 60:02d}",)
    assert Level.BAD not in levels(logs.examine(path, written_in))


def test_one_line_of_the_future_is_named_and_does_not_change_the_zone(tmp_path: Path) -> None:
    path = copied(tmp_path, "c01_kill-4.1.2")
    touched(path, UTC)
    changed = path.stat()
    lines = path.read_bytes().splitlines(keepends=True)
    ahead = lines[9].replace(b"[2026-", b"[2027-", 1)
    assert ahead != lines[9]
    path.write_bytes(b"".join([*lines[:9], ahead, *lines[9:]]))
    os.utime(path, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    found = logs.examine(path, UTC)
    [bad] = [finding for finding in found if finding.level is Level.BAD]
    assert bad.sentence.startswith("One line is stamped")
    assert "future_timestamp" in bad.sentence
    assert any("fit the zone" in finding.sentence for finding in found)


def test_a_copy_whose_time_of_change_tells_nothing_leaves_the_zone_unknown(tmp_path: Path) -> None:
    found = logs.examine(copied(tmp_path, "c01_kill-4.1.2"), None)
    assert Level.UNKNOWN in levels(found)
    assert not any("UTC" in finding.sentence for finding in found)


def test_what_is_no_request_log_is_told_with_the_lines_to_add(tmp_path: Path) -> None:
    switch_on = ("these", "lines")
    server = copied(tmp_path, "c01_kill-4.1.2", "server.log")
    empty = tmp_path / "empty.log"
    empty.touch()
    for path in (server, empty):
        assert any(f.level is Level.BAD and f.remedy == switch_on for f in logs.examine(path, UTC, switch_on))
    [gone] = logs.examine(tmp_path / "nowhere.log", UTC, switch_on)
    assert gone.level is Level.BAD
    assert "no such file yet" in gone.sentence
    assert gone.remedy == switch_on, "it is to be written first"
    [elsewhere] = logs.examine(tmp_path / "nowhere.log", UTC, switch_on, server=True)
    assert "not the broker's machine" in elsewhere.sentence, "every broker writes server.log"
    assert "kafka.logs.dir" in elsewhere.remedy[0]
    assert logs.examine(server, UTC, server=True)[0].level is Level.GOOD


def test_text_lines_of_old_brokers_are_read_and_named_as_such(tmp_path: Path) -> None:
    findings = logs.examine(copied(tmp_path, "o25_odd-2.3.1"), UTC)
    [said] = [finding for finding in findings if "of a broker 2.0 to 2.7" in finding.sentence]
    assert said.level is Level.NOTE
    assert said.sentence.startswith("264 of them are text")
    assert not [finding for finding in findings if "refused" in finding.sentence]


def test_a_text_line_that_is_cut_is_told(tmp_path: Path) -> None:
    path = tmp_path / "old.log"
    head = b"[2020-11-20 10:47:18,113] DEBUG Completed request:"
    path.write_bytes(head + b"RequestHeader(apiKey=HEARTBEAT, apiVersion=3) (kafka.request.logger)\n")
    assert [finding.level for finding in logs.examine(path, UTC) if "can read" in finding.sentence] == [Level.BAD]


def test_a_log_without_a_filter_is_told_so(tmp_path: Path) -> None:
    path = copied(tmp_path, "c01_kill-4.1.2")
    lines = path.read_bytes().splitlines(keepends=True)
    other = lines[0].replace(b'"requestApiKey":10', b'"requestApiKey":3')
    path.write_bytes(b"".join(lines) + other * (2 * len(lines)))
    assert any("a filter saves the disk" in finding.sentence for finding in logs.examine(path, UTC))


def test_the_documentation_shows_the_same_lines() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert f"```yaml\n{remedies.log4j2_yaml()}```" in text
    assert f"```properties\n{remedies.log4j1_properties()}```" in text
    assert f"```properties\n{remedies.log4j1_text_properties()}```" in text
    [logger] = yaml.safe_load(remedies.log4j2_yaml())["Loggers"]["Logger"]
    assert logger["name"] == "kafka.request.logger"


def test_the_whole_file_of_the_documentation_is_good_and_keeps_server_log(tmp_path: Path) -> None:
    [whole] = [block for block in DOCS.read_text(encoding="utf-8").split("```yaml\n")[1:] if "Configuration:" in block]
    path = tmp_path / "log4j2.yaml"
    path.write_text(whole.partition("```")[0])
    assert levels(broker_logging.examine(path)) == {Level.GOOD}
    found = yaml.safe_load(path.read_text())["Configuration"]
    assert [one["name"] for one in found["Appenders"]["RollingFile"]] == ["KafkaAppender", "GroupRequests"]
    assert {"ref": "KafkaAppender"} in found["Loggers"]["Root"]["AppenderRef"]


def test_a_cluster_that_is_not_there_is_one_finding() -> None:
    examined = cluster.examine("127.0.0.1:1", timeout_s=2)
    assert [finding.level for finding in examined.findings] == [Level.BAD]
    assert "kardia doctor --bootstrap-server" in examined.switch_on[0], "the lines of all releases are two hundred"


@pytest.mark.slow
def test_a_real_broker_and_its_log_from_the_command_line(kafka: Broker) -> None:
    options = ["doctor", "--bootstrap-server", kafka.bootstrap, "--request-log", str(kafka.request_log)]
    said = CliRunner().invoke(app, [*options, "-o", "json"])
    findings = json.loads(said.stdout)
    assert {finding["subject"] for finding in findings} >= {kafka.bootstrap, str(kafka.request_log)}
    assert any("group.max.session.timeout.ms=" in finding["sentence"] for finding in findings)
    assert "One broker answers: 1. It needs" in CliRunner().invoke(app, options).stdout
    examined = cluster.examine(kafka.bootstrap)
    assert not any("log4j.properties" in line for line in examined.switch_on)  # a broker 4.x logs by log4j 2


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST, pytest.param("3.9.2", marks=pytest.mark.long)])
def test_a_broker_as_kafka_ships_it_is_nothing_wrong_and_what_a_request_log_brings_and_costs_is_said(
    release: str, tmp_path: Path
) -> None:
    """With logging off it once said that nothing is wrong, and no more; then that something is wrong, though much can
    be asked without it."""
    with Broker(tmp_path / "broker", BrokerSettings(version=release)) as broker:
        options = ["doctor", "--bootstrap-server", broker.bootstrap]
        on = CliRunner().invoke(app, options)
        assert "kafka.request.logger is at DEBUG: it logs completed requests." in on.stdout
        assert "no request log was named" in on.stdout
        assert on.exit_code == 0, on.stdout
        assert "__consumer_offsets" not in broker.server_log.read_text(), "what only looks made the topic"
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        logger = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1", {"kafka.request.logger": "WARN"})
        admin.alter_configs([logger])
        admin.close()
        off = CliRunner().invoke(app, options)
        assert "kafka.request.logger is at WARN, as Kafka ships it: it logs no request" in off.stdout
        assert off.stdout.count("--add-config kafka.request.logger=DEBUG") == 1
        assert ("log4j2.yaml" in off.stdout, "log4j.properties" in off.stdout) == (
            (True, False) if release == NEWEST else (False, True)
        )
        assert "apiKey=FETCH" not in off.stdout, "lines of releases that it is not"
        assert "“who is next?” cannot be answered yet" in off.stdout
        assert off.exit_code == 0, off.stdout
        assert "by the default intervals of 0 members and 0 replicating brokers" in off.stdout
        named = CliRunner().invoke(app, [*options, "--request-log", str(broker.request_log)])
        assert "it logs no request, so no heartbeat is seen. Expected DEBUG." in named.stdout
        assert named.exit_code == 1


@pytest.mark.slow
def test_where_nobody_asks_for_rights_none_are_printed_and_nothing_is_promised_that_does_not_follow(
    kafka: Broker,
) -> None:
    """librdkafka makes an empty list of the answer that there is no security, so a broker without an authorizer got
    lines of kafka-acls.sh that it refuses."""
    said = CliRunner().invoke(app, ["doctor", "--bootstrap-server", kafka.bootstrap]).stdout
    assert "The brokers have no authorizer" in said
    assert "kafka-acls.sh" not in said
    lines = said.splitlines()
    for line, after in pairwise(lines):
        assert not line.endswith(":") or after.startswith("         "), line


@pytest.mark.slow
def test_the_commands_at_the_end_lead_to_an_answer(kafka: Broker, tmp_path: Path) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "doctors", "log_level": 0})
    kafka.create_topic("doctored", 1)
    consumer.subscribe(["doctored"])
    process.until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), 60, lambda: "no assignment")
    consumer.close()
    options = ["doctor", "--bootstrap-server", kafka.bootstrap, "--server-log", str(kafka.server_log), "-o", "json"]
    findings = json.loads(CliRunner().invoke(app, options).stdout)
    [now] = [finding for finding in findings if finding["subject"] == answerable.NOW]
    assert "level 4 of 6" in now["sentence"]
    for line in now["remedy"]:
        words = shlex.split(line.replace("GROUP", "doctors"))[1:]
        placed = [str(tmp_path / word) if word in ("offsets.jsonl", answerable.TABLES) else word for word in words]
        done = CliRunner().invoke(app, placed)
        assert done.exit_code == 0, (line, done.output)
    assert "doctors" in done.stdout
    assert "left" in done.stdout


@pytest.mark.parametrize(
    ("apis", "expected"),
    [
        ({1: (4, 18), 60: (0, 2)}, "log4j 2"),
        ({1: (0, 17), 60: (0, 1)}, "log4j 1, JSON"),
        ({1: (0, 12)}, "log4j 1, text"),
    ],
)
def test_how_a_broker_logs_is_known_by_the_requests_that_it_takes(
    apis: dict[int, tuple[int, int]], expected: str
) -> None:
    assert loggers.writes(apis) == expected


def test_in_the_middle_of_an_upgrade_the_lines_of_both_releases_are_printed() -> None:
    lines = cluster.switch_on({"log4j 2", "log4j 1, JSON"}, "b:9092", (1, 2))
    assert sum(line.startswith("Kafka ") for line in lines) == 2
    assert lines[-1].startswith(
        "kafka-configs.sh --bootstrap-server b:9092 --entity-type broker-loggers --entity-name 2"
    )


def test_the_least_cost_says_what_it_rests_on() -> None:
    found = loggers.cost(300, 3)
    assert found.sentence.startswith("At least about 657 requests/s for each broker")
    assert "300 members and 2 replicating brokers: heartbeats and commits 53.3, fetches up to 604" in found.sentence
    assert "without JMX" in found.sentence
    assert loggers.cost(None, 3).level is Level.UNKNOWN


def test_what_is_not_told_about_levels_is_unknown() -> None:
    told = loggers.Told({1: None, 2: "DEBUG", 3: "INFO"})
    found = loggers.findings(told, "b:9092", wanted=True)
    assert [one.level for one in found] == [Level.UNKNOWN, Level.GOOD, Level.BAD]
    assert told.logs_requests is None
    [one] = loggers.findings(loggers.ask("127.0.0.1:1", {}, (1,), 0.5), "127.0.0.1:1", wanted=False)
    assert one.level is Level.UNKNOWN


def test_security_settings_reach_the_client_that_asks_for_levels_or_are_named() -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": "u"}
    assert kafka_python({**given, "sasl.password": "p", "linger.ms": "5"}) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }
    assert "GSSAPI" in kafka_python({"security.protocol": "SASL_SSL", "sasl.mechanisms": "GSSAPI"})
    assert kafka_python({"linger.ms": "5"}) == {"security_protocol": "PLAINTEXT"}
    open_host = kafka_python({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"})
    assert isinstance(open_host, dict)
    assert not open_host["ssl_context"].check_hostname


def test_nothing_to_look_at_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["doctor"]).exit_code == 2
