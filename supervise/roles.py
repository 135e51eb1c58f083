"""Which processes a machine runs for a configuration: the command line of each role and what shows that it is ready.

A new role is added here, and its keys in `up_config`. The roles are the verbs of `kardia`, exactly as an operator would
start them by hand; nothing reaches them but options, and the environment for what others must not see in a list of
processes.
"""

from __future__ import annotations

import glob
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS
from supervise.supervisor import Role
from supervise.up_config import CollectSection, UpConfig

ASK_TIMEOUT_S = 2.0

ROUNDS = "kardia_collector_rounds_total"
"""Goes on several times a second while logs are followed."""

SERVER_LOG = "server.log"
"""Name of the broker's own log in Kafka's own logging configuration."""


def kardia(*words: str) -> list[str]:
    """Command line of a verb, run by this Python."""
    return [sys.executable, "-m", "cli.main", *words]


def roles(config: UpConfig) -> list[Role]:
    """The roles in the order of the flow: collect, stream, serve, and notify if anybody is to be told; or one process
    that is all of them."""
    logs = config.data / "logs"
    if config.engine == "local":
        return [
            Role(
                "live",
                live_command(config),
                logs / "live.log",
                lambda: answers(f"{api_url(config)}/readyz"),
                environ=notify_environ(config),
                pulse=pulse(api_url(config), ROUNDS),
                means="it has read the tables, and answers from what it reads",
            )
        ]
    found = [
        Role(
            "collect",
            collect_command(config),
            logs / "collect.log",
            counted(config.collect.metrics_port, "kardia_collector_sent_records_total"),
            # It makes the topic with the right number of partitions; a broker that makes topics itself would not.
            before_others=True,
            pulse=pulse(f"http://127.0.0.1:{config.collect.metrics_port}", ROUNDS),
            means="its first records are in the topic",
        ),
        Role(
            "stream",
            stream_command(config),
            logs / "stream.log",
            counted(config.stream.metrics_port, "kardia_stream_batches_total"),
            means="its first batch is in the tables",
        ),
        Role(
            "serve",
            serve_command(config),
            logs / "serve.log",
            lambda: answers(f"{api_url(config)}/readyz"),
            means="it has read the tables and answers from them",
        ),
    ]
    if config.notify.wanted:
        found.append(
            Role(
                "notify",
                notify_command(config),
                logs / "notify.log",
                counted(config.notify.metrics_port, "kardia_notify_looks_total"),
                environ=notify_environ(config),
                means="it has looked at the tables",
            )
        )
    return found


def collect_command(config: UpConfig) -> list[str]:
    """`kardia collect` for all logs of this machine and for `__consumer_offsets`."""
    command = kardia("collect", "--events-bootstrap-server", config.events_bootstrap_server or config.bootstrap_server)
    command += ["--topic", config.topic, "--positions", str(config.positions)]
    if config.topic_client_config is not None:
        command += ["--events-client-config", str(config.topic_client_config)]
    return [*command, "--metrics-port", str(config.collect.metrics_port), *_read(config)]


def live_command(config: UpConfig) -> list[str]:
    """`kardia live` for the same, with tables and API; whom to tell is in `notify_environ`."""
    command = kardia("live", *_read(config), "--tables", str(config.tables), *_of_lanes(config), *_of_api(config))
    if config.notify.wanted:
        command += _links(config)
    return command


def _read(config: UpConfig) -> list[str]:
    """What is read: of the cluster, and the logs of this machine."""
    collect = config.collect
    options = ["--bootstrap-server", config.bootstrap_server, "--cluster", config.cluster]
    if config.client_config is not None:
        options += ["--client-config", str(config.client_config)]
    if collect.log_timezone:
        options += ["--log-timezone", collect.log_timezone]
    if collect.log_pattern:
        options += ["--log-pattern", collect.log_pattern]
    if not collect.offsets:
        options += ["--no-offsets"]
    if collect.admin:
        options += ["--admin", "--admin-every-s", str(collect.admin_every_s)]
    for path in collect.request_log:
        options += ["--request-log", path]
    for path in server_logs(collect):
        options += ["--server-log", path]
    return options


def server_logs(collect: CollectSection) -> tuple[str, ...]:
    """The server.log files to follow: those that are named, else the one beside each request log, where there is one.
    It tells what the request log cannot: that a coordinator has loaded its groups, and what its timers did."""
    if collect.server_log is not None:
        return collect.server_log
    folders = [Path(name).parent for pattern in collect.request_log for name in _files(pattern)]
    beside = (folder / SERVER_LOG for folder in folders)
    return tuple(dict.fromkeys(str(path) for path in beside if path.is_file()))


def _files(pattern: str) -> list[str]:
    return glob.glob(pattern) or [pattern]  # noqa: PTH207 - a pattern may be absolute


def stream_command(config: UpConfig) -> list[str]:
    """`kardia stream` from the topic into the tables."""
    command = kardia("stream", "--bootstrap-server", config.events_bootstrap_server or config.bootstrap_server)
    command += ["--topic", config.topic, "--cluster", config.cluster]
    if config.topic_client_config is not None:
        command += ["--client-config", str(config.topic_client_config)]
    command += ["--tables", str(config.tables), "--checkpoint", str(config.checkpoint)]
    return [*command, "--metrics-port", str(config.stream.metrics_port), *_of_lanes(config)]


def move_command(config: UpConfig) -> list[str]:
    """`kardia move` of the tables to the engine that is wanted."""
    command = kardia("move", "--to", str(config.engine), "--tables", str(config.tables), "--topic", config.topic)
    command += ["--checkpoint", str(config.checkpoint), "--positions", str(config.positions)]
    command += ["--bootstrap-server", config.events_bootstrap_server or config.bootstrap_server]
    if config.topic_client_config is not None:
        command += ["--client-config", str(config.topic_client_config)]
    return [*command, "--cluster", config.cluster, *_of_brokers(config)]


def _of_lanes(config: UpConfig) -> list[str]:
    """What whoever steps the lanes is told of the brokers, and of what to keep."""
    return ["--keep", str(config.keep.kept), *_of_brokers(config)]


def _of_brokers(config: UpConfig) -> list[str]:
    """What is known of the observed brokers."""
    options = []
    if config.stream.kafka_version:
        options += ["--kafka-version", config.stream.kafka_version]
    for protocol in PROTOCOLS_WITH_EPOCHS:
        session_ms = getattr(config.stream, f"{protocol}_session_ms")
        if session_ms > 0:
            options += [f"--{protocol}-session-ms", str(session_ms)]
    return options


def serve_command(config: UpConfig) -> list[str]:
    """`kardia serve` on the tables, and on the topic if that is wanted."""
    command = kardia("serve", "--tables", str(config.tables), *_of_api(config))
    if not config.serve.follow_topic:
        return command
    command += ["--follow-topic", config.topic, "--checkpoint", str(config.checkpoint)]
    command += ["--bootstrap-server", config.events_bootstrap_server or config.bootstrap_server]
    if config.topic_client_config is not None:
        command += ["--client-config", str(config.topic_client_config)]
    return [*command, *_of_brokers(config)]


def _of_api(config: UpConfig) -> list[str]:
    """Where the API listens, and to whom it answers."""
    options = ["--host", config.serve.host, "--port", str(config.serve.port)]
    if config.serve.token_file is not None:
        options += ["--token-file", str(config.serve.token_file)]
    return options


def notify_command(config: UpConfig) -> list[str]:
    """`kardia notify` on the tables; whom to tell is in `notify_environ`."""
    command = kardia("notify", "--tables", str(config.tables), "--state", str(config.data / "notify"))
    return [
        *(*command, "--cluster", config.cluster, "--metrics-port", str(config.notify.metrics_port)),
        *_links(config),
    ]


def _links(config: UpConfig) -> list[str]:
    """What stands in front of the links of alerts."""
    options = ["--kardia-url", config.notify.kardia_url or api_url(config)]
    if config.notify.runbooks_url:
        options += ["--runbooks-url", config.notify.runbooks_url]
    return options


def notify_environ(config: UpConfig) -> dict[str, str]:
    """Whom `kardia notify` is to tell: an address may hold a secret."""
    notify = config.notify
    return {
        "KARDIA_NOTIFY_ALERTMANAGER": json.dumps([str(url) for url in notify.alertmanager]),
        "KARDIA_NOTIFY_WEBHOOK": json.dumps([str(url) for url in notify.webhook]),
    }


def api_url(config: UpConfig) -> str:
    """Where the API answers on this machine."""
    host = "127.0.0.1" if config.serve.host in ("0.0.0.0", "::") else config.serve.host  # noqa: S104 - compared only
    return f"http://{host}:{config.serve.port}"


def counted(port: int, counter: str) -> Callable[[], bool]:
    """Whether a counter that a role of this machine serves has counted anything since its start."""
    return lambda: (_value(f"http://127.0.0.1:{port}", counter) or 0.0) > 0.0


def pulse(url: str, counter: str) -> Callable[[], float | None]:
    """A counter that a role of this machine serves."""
    return lambda: _value(url, counter)


def _value(url: str, counter: str) -> float | None:
    """Sum of the series of a counter; None if nobody answers, or has it."""
    try:
        with urllib.request.urlopen(f"{url}/metrics?name[]={counter}", timeout=ASK_TIMEOUT_S) as answer:  # noqa: S310 - to this machine
            families = text_string_to_metric_families(answer.read().decode())
            found = [one.value for family in families for one in family.samples if one.name == counter]
    except (urllib.error.URLError, OSError):
        return None
    return sum(found) if found else None


def answers(url: str) -> bool:
    """Whether a local address answers with 200."""
    try:
        with urllib.request.urlopen(url, timeout=ASK_TIMEOUT_S) as answer:  # noqa: S310 - always http to this machine
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
