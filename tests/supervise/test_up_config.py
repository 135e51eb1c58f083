"""The one file of `kardia up`: every mistake is a sentence, all of them at once, and nothing is started."""

from __future__ import annotations

import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import typer.main
from prometheus_client import start_http_server

from api.notify.settings import NotifySettings
from cli.main import app
from ingest.metrics import Metrics
from scripts.config_page import EXAMPLES, config_page
from spark_jobs.leases import table_owner
from supervise import process
from supervise.roles import ROUNDS, collect_command, move_command, pulse, roles, serve_command
from supervise.up_config import (
    CollectSection,
    ConfigError,
    KeepSection,
    NotifySection,
    ServeSection,
    StreamSection,
    UpConfig,
    busy_ports,
    load,
)

FOLDER = Path(__file__).resolve().parents[2] / "docs"

GOOD = """
cluster: prod-eu
engine: spark
bootstrap_server: 127.0.0.1:9092
data: {data}
collect:
  request_log: [/var/log/kafka/kafka-request.log]
  log_timezone: Europe/Berlin
serve:
  port: 18765
"""

LOCAL, UNNAMED = (GOOD.replace("engine: spark\n", line) for line in ("engine: local\n", ""))


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kardia.yaml"
    path.write_text(text.format(data=tmp_path))
    return path


def test_a_good_file_and_its_defaults(tmp_path: Path) -> None:
    config = load(_write(tmp_path, GOOD))
    assert config.tables == tmp_path / "tables"
    assert config.topic == "kardia.events"
    assert config.collect.request_log == ("/var/log/kafka/kafka-request.log",)
    assert config.collect.metrics_port == 9464
    assert config.serve.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (("cluster:", "clustr:"), ["clustr is not a known key; did you mean cluster?", "cluster is missing"]),
        (("request_log", "reqest_log"), ["collect.reqest_log is not a known key; did you mean request_log?"]),
        (
            ("  port: 18765", "  zzz: 1"),
            ["serve.zzz is not a known key; known are host, port, token_file, follow_topic."],
        ),
        (("port: 18765", "port: '18080'"), ["serve.port: Input should be a valid integer, not '18080'."]),
        (("port: 18765", "port: 70000"), ["serve.port: Input should be less than or equal to 65535, not 70000."]),
        (("port: 18765", "port: 9464"), ["collect.metrics_port and serve.port are both 9464"]),
        (("port: 18765", "port: 9465"), ["stream.metrics_port and serve.port are both 9465"]),
        (("Europe/Berlin", "Berlin"), ["'Berlin' is no time zone; expected UTC"]),
        (("  log_timezone: Europe/Berlin\n", ""), ["log_timezone is missing: the stamps of the logs carry no zone"]),
        (("data: {data}\n", ""), ["data is missing; expected the directory"]),
        (("[/var/log/kafka/kafka-request.log]", "[]"), ["nothing is named to read; name request_log or server_log"]),
        (("collect:", "collect: ["), ["is not YAML"]),
        (("serve:", "notify: {{webhok: []}}\nserve:"), ["notify.webhok is not a known key; did you mean webhook?"]),
        (("serve:", "notify: {{webhook: pager}}\nserve:"), ["notify.webhook.0: Input should be a valid URL"]),
        (
            ("serve:", "notify: {{alertmanager: 'http://127.0.0.1:9093', metrics_port: 9464}}\nserve:"),
            ["collect.metrics_port and notify.metrics_port are both 9464"],
        ),
    ],
)
def test_each_mistake_is_a_sentence(tmp_path: Path, change: tuple[str, str], sentences: list[str]) -> None:
    assert change[0] in GOOD
    path = _write(tmp_path, GOOD.replace(*change))
    with pytest.raises(ConfigError) as refused:
        load(path)
    for sentence in sentences:
        assert f"{path}" in str(refused.value)
        assert sentence in str(refused.value)


@pytest.mark.parametrize("source", ["offsets: true", "server_log: /var/log/kafka/server.log"])
def test_each_source_is_enough_by_itself(tmp_path: Path, source: str) -> None:
    """__consumer_offsets alone was refused, though the collector follows it alone."""
    alone = GOOD.replace("  request_log: [/var/log/kafka/kafka-request.log]\n", f"  {source}\n")
    assert alone != GOOD
    load(_write(tmp_path, alone))


def test_the_admin_api_alone_needs_no_log(tmp_path: Path) -> None:
    alone = GOOD.replace("  request_log: [/var/log/kafka/kafka-request.log]\n", "  admin: true\n  offsets: false\n")
    config = load(_write(tmp_path, alone.replace("  log_timezone: Europe/Berlin\n", "")))
    command = collect_command(config)
    assert command[-4:] == ["--no-offsets", "--admin", "--admin-every-s", "10.0"]
    assert "--log-timezone" not in command


def test_all_mistakes_come_together(tmp_path: Path) -> None:
    text = GOOD.replace("cluster:", "clustr:").replace("18765", "0").replace("Europe/Berlin", "Nowhere")
    with pytest.raises(ConfigError) as refused:
        load(_write(tmp_path, text))
    assert len(str(refused.value).splitlines()) == 4


@pytest.mark.parametrize(
    ("content", "expected"), [(None, "cannot be read"), ("", "holds no settings"), ("- a", "holds")]
)
def test_a_file_without_settings(tmp_path: Path, content: str | None, expected: str) -> None:
    path = tmp_path / "kardia.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=expected):
        load(path)


def test_a_taken_port_is_named_with_its_key(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = load(_write(tmp_path, GOOD.replace("18765", str(port))))
        assert [
            sentence for sentence in busy_ports(config) if f"serve.port: 127.0.0.1:{port} cannot be had" in sentence
        ]


def test_the_notifier_runs_if_there_is_somebody_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [role.name for role in roles(load(_write(tmp_path, GOOD)))] == ["collect", "stream", "serve"]
    nobody = GOOD + "notify: {{metrics_port: 9464}}\n"
    assert "notify" not in [role.name for role in roles(load(_write(tmp_path, nobody)))]
    somebody = GOOD + (
        "notify: {{alertmanager: ['http://127.0.0.1:9093', 'http://127.0.0.1:9094/am'], "
        "webhook: 'http://127.0.0.1:9/x?y=1', kardia_url: 'https://kardia.example'}}\n"
    )
    config = load(_write(tmp_path, somebody))
    last = roles(config)[-1]
    assert last.name == "notify"
    verb, *words = last.command[3:]
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    with command.make_context(verb, words) as context:
        given = context.params
    assert (given["tables"], given["state"]) == (tmp_path / "tables", tmp_path / "notify")
    assert (given["cluster"], given["kardia_url"]) == ("prod-eu", "https://kardia.example")
    # An address may hold a secret: it is not in the list of processes, nor in what is printed.
    assert "x?y=1" not in " ".join(last.command) + repr(last)
    for name, value in last.environ.items():
        monkeypatch.setenv(name, value)
    told = NotifySettings(tables=tmp_path, state=tmp_path)
    assert [str(url) for url in told.alertmanager] == ["http://127.0.0.1:9093/", "http://127.0.0.1:9094/am"]
    assert [str(url) for url in told.webhook] == ["http://127.0.0.1:9/x?y=1"]
    assert given["metrics_port"] == config.ports["notify.metrics_port"][1] == 9466


def test_the_server_follows_the_topic_if_that_is_wanted(tmp_path: Path) -> None:
    """With all that the job is told of topic and brokers: its rows are to be the same."""
    more = "  follow_topic: true\nevents_bootstrap_server: e:1\ntopic: t\nstream: {{kafka_version: 3.9.2}}\n"
    config = load(_write(tmp_path, GOOD + more))
    found = {role.name: role for role in roles(config)}
    verb, *words = found["serve"].command[3:]
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    with command.make_context(verb, words) as context:
        given = context.params
    assert (given["follow_topic"], given["bootstrap_server"], given["kafka_version"]) == ("t", "e:1", "3.9.2")
    assert given["checkpoint"] == config.checkpoint
    assert "--follow-topic" not in serve_command(load(_write(tmp_path, GOOD)))


def test_one_process_is_one_role_with_all_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LOCAL + (
        "notify: {{webhook: 'http://127.0.0.1:9/x?y=1', kardia_url: 'https://kardia.example'}}\n"
        "stream: {{kafka_version: 3.9.2, consumer_session_ms: 10000}}\nkeep: {{health: 2d}}\n"
    )
    config = load(_write(tmp_path, text))
    assert list(config.ports) == ["serve.port"]
    (role,) = roles(config)
    verb, *words = role.command[3:]
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    with command.make_context(verb, words) as context:
        given = context.params
    assert (role.name, verb, given["tables"], given["port"]) == ("live", "live", tmp_path / "tables", 18_765)
    assert list(given["request_log"]) == ["/var/log/kafka/kafka-request.log"]
    assert (given["kafka_version"], given["consumer_session_ms"]) == ("3.9.2", 10_000)
    assert (given["log_timezone"], given["kardia_url"]) == ("Europe/Berlin", "https://kardia.example")
    assert "health=2d" in given["keep"]
    assert "x?y=1" not in " ".join(role.command) + repr(role)
    for name, value in role.environ.items():
        monkeypatch.setenv(name, value)
    assert [str(url) for url in NotifySettings(tables=tmp_path, state=tmp_path).webhook] == ["http://127.0.0.1:9/x?y=1"]


@pytest.mark.parametrize("key", ["topic: x", "events_bootstrap_server: e:1"])
def test_one_process_has_no_topic(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key.partition(':')[0]}.*`engine: local` has no topic"):
        load(_write(tmp_path, f"{key}\n{LOCAL}"))


def _generation(folder: Path) -> None:
    """A folder that an engine has begun to keep its state in."""
    folder.mkdir(parents=True)
    (folder / table_owner.GENERATION).write_text("{}")


@pytest.mark.parametrize(
    ("left", "keys", "engine"),
    [
        ((), "", "local"),
        ((), "topic: x\n", "spark"),
        ((), "events_bootstrap_server: e:1\n", "spark"),
        (("checkpoint/live",), "", "spark"),
        (("checkpoint/live",), "topic: x\n", "spark"),
        (("tables/_live",), "", "local"),
        (("checkpoint/live", "tables/_live"), "", "local"),
    ],
)
def test_where_no_engine_is_named_it_is_that_of_the_tables(
    tmp_path: Path, left: tuple[str, ...], keys: str, engine: str
) -> None:
    """A file from before there was a choice goes on with Spark."""
    for name in left:
        _generation(tmp_path / name)
    assert load(_write(tmp_path, keys + UNNAMED)).engine == engine


def test_what_a_collector_has_sent_is_read(tmp_path: Path) -> None:
    """Its positions are there, and the job had not begun."""
    (tmp_path / "positions").mkdir()
    (tmp_path / "positions" / "positions").touch()
    assert load(_write(tmp_path, UNNAMED)).engine == "spark"


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_after_a_move_the_tables_are_whose_it_made_them(tmp_path: Path, engine: table_owner.Engine) -> None:
    _generation(tmp_path / "checkpoint/live")
    _generation(tmp_path / "tables/_live")
    table_owner.save(tmp_path / "tables", table_owner.Owner(table_owner.VERSION, engine, 7))
    assert load(_write(tmp_path, UNNAMED)).engine == engine
    assert load(_write(tmp_path, f"topic: x\n{LOCAL}")).topic == "x", "the way back needs it"


def test_it_is_not_guessed_whose_tables_are(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / table_owner.FILE).write_text("{")
    with pytest.raises(ConfigError, match="which engine the tables belong to cannot be read"):
        load(_write(tmp_path, UNNAMED))


def test_another_engine_than_that_of_the_tables_moves_them_first(tmp_path: Path) -> None:
    _generation(tmp_path / "checkpoint/live")
    text = "topic: x\nstream: {{kafka_version: 3.9.2, share_session_ms: 9000}}\n" + LOCAL
    path = _write(tmp_path, text)
    verb, *words = move_command(load(path))[3:]
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    with command.make_context(verb, words) as context:
        given = context.params
    assert (verb, given["to"], given["tables"], given["topic"]) == ("move", "local", tmp_path / "tables", "x")
    assert (given["checkpoint"], given["positions"]) == (tmp_path / "checkpoint", tmp_path / "positions")
    assert (given["kafka_version"], given["share_session_ms"]) == ("3.9.2", 9_000)
    assert (given["cluster"], given["bootstrap_server"]) == ("prod-eu", "127.0.0.1:9092")
    shown = subprocess.run(
        [sys.executable, "-m", "cli.main", "up", "--check", "--config", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=process.environ(),
    )
    assert [line.split(":")[0].split(",")[0] for line in shown.stdout.splitlines()] == ["first", "live"]


def test_a_move_that_is_refused_starts_nothing(tmp_path: Path) -> None:
    """With the sentence of the move, and the tables as they were."""
    _generation(tmp_path / "checkpoint/live")
    path = _write(tmp_path, LOCAL)
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "up", "--config", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=process.environ(),
    )
    assert done.returncode == 1
    assert "could not be moved, and are as they were" in done.stderr
    assert "generation.json cannot be read" in done.stderr
    assert not (tmp_path / "logs" / "live.log").exists()


def test_check_shows_the_roles_and_starts_nothing(tmp_path: Path) -> None:
    path = _write(tmp_path, GOOD)
    command = [sys.executable, "-m", "cli.main", "up", "--check", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=process.environ())
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["collect", "stream", "serve"]
    assert "--log-timezone Europe/Berlin" in done.stdout
    assert list(tmp_path.iterdir()) == [path]
    path.write_text("clustr: x\n")
    refused = subprocess.run(command, capture_output=True, text=True, check=False, env=process.environ())
    assert refused.returncode == 2
    assert "did you mean cluster?" in refused.stderr


def test_the_server_log_beside_a_request_log_is_followed_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    logs = tmp_path / "broker logs"
    logs.mkdir()
    text = GOOD.replace("/var/log/kafka/kafka-request.log", f"{logs}/kafka-request*.log")

    def followed(more: str = "") -> list[str]:
        config = load(_write(tmp_path, text.replace("  log_timezone", f"{more}  log_timezone")))
        command = roles(config)[0].command
        return [name for option, name in pairwise(command) if option == "--server-log"]

    (logs / "kafka-request.log").touch()
    (logs / "kafka-request-old.log").touch()
    assert followed() == []
    (logs / "server.log").touch()
    assert followed() == [str(logs / "server.log")]
    assert followed("  server_log: []\n") == []
    assert followed("  server_log: /elsewhere/server.log\n") == ["/elsewhere/server.log"]


@pytest.mark.parametrize("file", sorted(EXAMPLES.values()))
def test_the_examples_of_the_documentation_can_be_used(file: str) -> None:
    config = load(FOLDER / "examples" / file)
    assert config.cluster == "prod"
    assert all(isinstance(path, Path) for path in (config.data, config.tables))
    if config.serve.host == "0.0.0.0":  # noqa: S104 - the example of a server for others
        assert config.serve.token_file == Path("/etc/kardia/tokens")


def test_the_page_of_all_keys_is_what_the_settings_say() -> None:
    page = (FOLDER / "reference" / "kardia-yaml.md").read_text(encoding="utf-8")
    assert page == config_page(), "kardia-yaml.md is old: run scripts/write_reference.py"
    for model in (UpConfig, CollectSection, StreamSection, KeepSection, ServeSection, NotifySection):
        for name, field in model.model_fields.items():
            assert f"`{name}`" in page
            assert field.description or name in ("collect", "stream", "keep", "serve", "notify"), (
                "every key has a meaning"
            )


def test_the_file_of_client_settings_reaches_every_role_that_speaks_to_kafka(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.properties", tmp_path / "theirs.properties"
    ours.write_text("client.id=a\n")
    theirs.write_text("client.id=b\n")

    def given(more: str) -> dict[str, list[tuple[str, str]]]:
        config = load(_write(tmp_path, f"{more}{GOOD}"))
        return {
            role.name: sorted(pair for pair in pairwise(role.command) if pair[0].endswith("client-config"))
            for role in roles(config)
        }

    same = given(f"client_config: {ours}\n")
    assert same["collect"] == [("--client-config", str(ours)), ("--events-client-config", str(ours))]
    assert same["stream"] == [("--client-config", str(ours))]
    assert same["serve"] == []
    other = given(f"client_config: {ours}\nevents_bootstrap_server: e:1\n")
    assert other["collect"] == [("--client-config", str(ours))]
    assert other["stream"] == [], "other brokers may want another login: nothing is sent to them unasked"
    both = given(f"client_config: {ours}\nevents_bootstrap_server: e:1\nevents_client_config: {theirs}\n")
    assert both["collect"] == [("--client-config", str(ours)), ("--events-client-config", str(theirs))]
    assert both["stream"] == [("--client-config", str(theirs))]


def test_a_wrong_file_of_client_settings_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("security.protocol=SASL_SSL\nsasl.username=u\nsasl.password=top-secret\n")
    with pytest.raises(ConfigError, match=r"client_config: .*no sasl\.mechanism") as refused:
        load(_write(tmp_path, f"client_config: {wrong}\n{GOOD}"))
    assert "top-secret" not in str(refused.value)


def test_the_pulse_of_a_collector_is_a_counter_that_it_has() -> None:
    metrics = Metrics()
    server, thread = start_http_server(0, "127.0.0.1", metrics.registry)
    rounds = pulse(f"http://127.0.0.1:{server.server_port}", ROUNDS)
    assert rounds() == 0.0
    metrics.rounds.inc()
    assert rounds() == 1.0
    server.shutdown()
    server.server_close()
    thread.join()
    assert rounds() is None


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_whoever_reads_logs_is_watched_for_its_rounds(tmp_path: Path, engine: str) -> None:
    given = tmp_path / "kardia.yaml"
    given.write_text(GOOD.format(data=tmp_path).replace("engine: spark", f"engine: {engine}"))
    watched = {role.name for role in roles(load(given)) if role.pulse is not None}
    assert watched == ({"collect"} if engine == "spark" else {"live"})
