"""Every path that a verb takes: relative, absolute and as `file://`, below a folder with spaces and umlauts.

Goal: no path option of any verb is left out (the first test says so), and each is used. The verbs run as a person calls
them, in this process where they end by themselves; `stream` is in `tests/spark_jobs/test_stream.py`, whose live job has
relative paths of this kind.
"""

from __future__ import annotations

import gzip
import importlib
import os
import subprocess
import sys
import time
import typing
from pathlib import Path

import httpx
import pytest
import typer.main
from confluent_kafka.admin import AdminClient

from cli.main import VERBS, app
from tests.api.conftest import WAIT_S
from tests.notify.conftest import free_port, until
from tests.spark_jobs.support import ROOT
from tests.story.conftest import Said, kardia
from tests.support.stories import CORPORA

HOME = "Kärdia Daten 1"
STORY = CORPORA / "c01_kill-3.9.2"
WAYS = ("relative", "absolute", "location")

ASKED = (
    *("explain", "why", "history", "incident", "groups", "group", "member", "check", "rejected", "disagreements"),
    "watch",
    "lag",
)
TESTED = {
    **{verb: {"tables", "token_file"} for verb in ASKED},
    "replay": {"files", "tables", "request_log", "server_log", "offsets"},
    "surprises": {"files", "request_log", "tables", "token_file"},  # the latter: tests/api/test_surprises.py
    "trace": {"file"},
    "doctor": {"broker_logging", "client_config"},
    "up": {"config"},
    "collect": {"positions", "client_config", "events_client_config"},
    "live": {
        *("tables", "state", "client_config", "events_client_config"),
        *("token_file", "tls_certificate", "tls_key"),
    },
    "move": {"tables", "checkpoint", "positions", "state", "client_config"},
    "capture": {"out", "client_config"},
    "stream": {"tables", "checkpoint", "executors", "client_config"},
    "serve": {  # the pair: `tests/api/test_serve.py`
        *("tables", "token_file", "tls_certificate", "tls_key"),
        *("checkpoint", "client_config"),
    },
    "notify": {"tables", "state"},
    "demo": {"directory"},  # handed to `kardia up`'s own roles, which are started with absolute paths
    "bench": {"json", "work", "history"},  # opened as they are; nothing but this process sees them
}


def test_no_path_option_is_left_out() -> None:
    found = {}
    for verb in VERBS:
        hints = typing.get_type_hints(getattr(importlib.import_module(f"cli.verbs.{verb}"), verb))
        found[verb] = {name for name, hint in hints.items() if "Path" in str(hint) or "Folder" in str(hint)}
    assert found == TESTED


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with logs, configuration and, replayed by relative paths, tables."""
    home = tmp_path_factory.mktemp("paths") / HOME
    (home / "Lögs 2").mkdir(parents=True)
    for name in ("kafka-request.log", "server.log"):
        (home / "Lögs 2" / name).write_bytes(gzip.decompress((STORY / f"{name}.gz").read_bytes()))
    (home / "Lögs 2" / "öffsets.jsonl.gz").write_bytes((STORY / "offsets.jsonl.gz").read_bytes())
    (home / "ein träce.trace").write_bytes((ROOT / "tests/golden/walk-3-crash.trace").read_bytes())
    (home / "clïent config").write_text("# nothing\n")
    before = Path.cwd()
    os.chdir(home)
    try:
        said = replayed("relative", home, "Täb ellen")
    finally:
        os.chdir(before)
    assert said.code == 0, said
    return home


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    return home


def path(way: str, home: Path, name: str) -> str:
    """The path as it is written in one of the ways; in `file://` spaces and umlauts are written as % and digits."""
    return {"relative": name, "absolute": str(home / name), "location": (home / name).as_uri()}[way]


MUST: dict[str, list[str]] = {
    "live": [],
    "move": ["--to", "spark", "--bootstrap-server", "b:1"],
    "serve": ["--follow-topic", "t", "--bootstrap-server", "b:1"],
}
"""Verbs whose paths are read and not used here -> what else they must be told; `tests/live` uses them."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", MUST)
def test_each_path_is_taken_in_every_way(here: Path, verb: str, way: str) -> None:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    words = [word for name in sorted(TESTED[verb]) for word in (f"--{name.replace('_', '-')}", path(way, here, name))]
    with command.make_context(verb, [*words, *MUST[verb]]) as context:
        assert {name: context.params[name].absolute() for name in TESTED[verb]} == {
            name: here / name for name in TESTED[verb]
        }


def replayed(way: str, home: Path, tables: str) -> Said:
    logs = ["--request-log", path(way, home, "Lögs 2/kafka-request.log")]
    logs += ["--server-log", path(way, home, "Lögs 2/server.log")]
    logs += ["--offsets", path(way, home, "Lögs 2/öffsets.jsonl.gz")]
    return kardia("replay", "--tables", path(way, home, tables), *logs, "--cluster", "demo", "--workers", "1")


@pytest.mark.parametrize("way", WAYS[1:])
def test_replay_takes_them_in_other_ways_as_well(here: Path, way: str) -> None:
    assert replayed(way, here, f"Andere Täbellen {way}").code == 0
    assert {one.name for one in (here / f"Andere Täbellen {way}").glob("*")} == {
        one.name for one in (here / "Täb ellen").glob("*")
    }


@pytest.mark.parametrize("way", WAYS)
def test_replay_finds_a_folder_and_a_pattern_in_every_way(here: Path, way: str) -> None:
    for number, name in enumerate(("Lögs 2", "L*/**/*")):
        tables = f"Gefunden {way} {number}"
        given = path(way, here, name)
        assert kardia("replay", given, "--tables", tables, "--cluster", "demo", "--workers", "1").code == 0
        assert {one.name for one in (here / tables).glob("*")} == {one.name for one in (here / "Täb ellen").glob("*")}


def group_of(here: Path) -> str:
    groups = kardia("groups", "--tables", here / "Täb ellen", "-o", "json").json()
    return str(groups[0]["group_id"])


def member_of(here: Path) -> str:
    group = kardia("group", group_of(here), "--tables", here / "Täb ellen", "-o", "json").json()
    return str(group["members"][0]["member_id"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", ASKED)
def test_a_question_finds_its_tables(here: Path, way: str, verb: str) -> None:
    more = {"groups": (), "rejected": (), "watch": ("--for", "0")}
    about = more.get(verb, (group_of(here),))
    if verb == "member":
        about = (*about, member_of(here))
    said = kardia(verb, *about, "--tables", path(way, here, "Täb ellen"))
    assert said.code == (3 if verb == "check" else 0), said  # an old recording: unknown is the right answer
    assert "is no directory" not in said.err
    assert said.out


@pytest.mark.parametrize("way", WAYS)
def test_surprises_finds_its_logs(here: Path, way: str) -> None:
    for given in ([path(way, here, "Lögs 2")], ["--request-log", path(way, here, "Lögs 2/kafka-request.log")]):
        said = kardia("surprises", *given)
        assert said.code == 0, said
        assert "69 answers predicted, 0 surprises." in said.out


@pytest.mark.parametrize("way", WAYS)
def test_trace_doctor_and_up_find_their_files(here: Path, way: str) -> None:
    assert kardia("trace", path(way, here, "ein träce.trace")).code == 0
    log, client = path(way, here, "Lögs 2/kafka-request.log"), path(way, here, "clïent config")
    assert "cannot be read" not in kardia("doctor", "--request-log", log, "--client-config", client).err
    (here / "lög4j2.yaml").write_text("Configuration: {Appenders: {}, Loggers: {}}\n")
    assert "GroupRequests" in kardia("doctor", "--broker-logging", path(way, here, "lög4j2.yaml")).out
    (here / "kärdia conf.yaml").write_text(
        f"cluster: demo\nbootstrap_server: 127.0.0.1:1\ndata: '{path(way, here, 'Meine Däten')}'\n"
        f"collect:\n  request_log: '{log}'\n  log_timezone: UTC\n"
    )
    said = kardia("up", "--config", path(way, here, "kärdia conf.yaml"), "--check")
    assert said.code == 0, said
    assert "Meine Däten/tables" in said.out


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_roles_find_their_folders(here: Path, way: str) -> None:
    """The API with a token file asked by a verb with another one, and the notifier: as processes."""
    token = "a" * 40
    (here / "tökens of all").write_text(f"{token}\n")
    (here / "mein töken").write_text(token)
    port = free_port()
    verbs = [sys.executable, "-m", "cli.main"]
    tables = path(way, here, "Täb ellen")
    serve = ["serve", "--tables", tables, "--port", str(port), "--token-file", path(way, here, "tökens of all")]
    state = f"Zu stand {way}"
    notify = ["notify", "--tables", tables, "--state", path(way, here, state), "--webhook", "http://127.0.0.1:1/"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (here / f"{way}.log").open("wb") as log:
        running = [
            subprocess.Popen([*verbs, *words], cwd=here, env=environment, stdout=log, stderr=log)
            for words in (serve, notify)
        ]
        try:
            ready = f"http://127.0.0.1:{port}/readyz"
            until(lambda: httpx.get(ready, trust_env=False, timeout=60).is_success, "the API")
            mine = path(way, here, "mein töken")
            said = kardia("groups", "--api", f"http://127.0.0.1:{port}", "--token-file", mine)
            assert said.code == 0, said
            until(lambda: list((here / state).glob("*")), "the notifier's folder")
        finally:
            for process in running:
                process.terminate()
                process.wait(WAIT_S)


def make_offsets_topic(bootstrap: str) -> None:
    """A broker has none before somebody asks for a group's coordinator."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.describe_consumer_groups(["paths"])["paths"].exception(WAIT_S)
    until(lambda: "__consumer_offsets" in admin.list_topics(timeout=WAIT_S).topics, "the offsets topic")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_collect_and_capture_find_their_folders(kafka: typing.Any, here: Path, way: str) -> None:
    make_offsets_topic(kafka.bootstrap)
    client = path(way, here, "clïent config")
    out = f"mit schnitt {way}.jsonl.gz"
    assert kardia("capture", "--bootstrap-server", kafka.bootstrap, "--out", path(way, here, out)).code == 0
    assert (here / out).exists()
    words = ["collect", "--bootstrap-server", kafka.bootstrap, "--topic", f"paths.{way}", "--log-timezone", "UTC"]
    words += ["--request-log", path(way, here, "Lögs 2/kafka-request.log"), "--client-config", client]
    words += ["--events-client-config", client, "--positions", path(way, here, f"Pos itionen {way}")]
    with (here / "collect.log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *words],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )
        try:
            saved = here / f"Pos itionen {way}" / "positions"
            end_s = time.monotonic() + WAIT_S
            while not saved.exists():
                assert time.monotonic() < end_s, (here / "collect.log").read_text()
                assert running.poll() is None, (here / "collect.log").read_text()
                time.sleep(0.1)
        finally:
            running.terminate()
            running.wait(WAIT_S)
