"""Where tables, checkpoints and files lie: what is meant by `file://`, and that no other scheme becomes a folder.

Goal: a store that Kardia cannot use, or one where a file of this machine is wanted, is refused by every option and
every setting that takes a place, at once, with a sentence and exit status 2, and nothing is made on the disk. `s3://`
is taken for tables and checkpoints alone. That paths and `file://` work is in `test_paths.py`, that stores do in
`tests/stores`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from api.notify.settings import NotifySettings
from api.settings import ApiSettings
from ingest.settings import CollectSettings
from spark_jobs.settings import StreamSettings
from stores.locations import LocationError, Store, folder, local, shown
from supervise.up_config import ConfigError, load
from tests.kardia.test_paths import TESTED
from tests.story.conftest import kardia

STORES = ("s3a://bucket/tables", "abfss://box@account.dfs.core.windows.net/t", "gs://bucket/t", "hdfs://name:8020/t")
SENTENCE = r"\w+:// is a place in a store that cannot be used (here|yet) \(.*\)\. Expected: a folder .*\. Next: "
IN_STORES = {"tables", "checkpoint"}
"""Names of options and settings that a folder in a store can be given to."""


def refused(name: str) -> tuple[str, ...]:
    """The places that are refused for an option or a setting of this name."""
    return STORES[1:] if name in IN_STORES else STORES


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a/b", "a/b"),
        ("/var/lib/kardia/", "/var/lib/kardia"),
        ("Kärdia Daten 1/100%25", "Kärdia Daten 1/100%25"),
        ("file:///K%C3%A4rdia%20Daten%201/100%25", "/Kärdia Daten 1/100%"),
        ("file:///Kärdia Daten 1", "/Kärdia Daten 1"),
        ("file:/a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("FILE:///a?b#c", "/a?b#c"),
        ("/s3a:/b", "/s3a:/b"),
        ("C:/a", "C:/a"),
    ],
)
def test_a_path_stays_and_file_is_read(given: str, meant: str) -> None:
    assert local(given) == Path(meant)
    assert local(local(given)) == Path(meant)


@pytest.mark.parametrize("given", [*STORES, "s3a:/bucket/tables", "S3A://bucket", Path("s3a://bucket/tables")])
def test_a_store_is_refused(given: str | Path) -> None:
    with pytest.raises(LocationError, match=SENTENCE):
        local(given)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3a://bucket/", "s3://bucket"),
        ("S3://my.bucket-1/a/b=1/", "s3://my.bucket-1/a/b=1"),
        ("/s3:/b", "/s3:/b"),
        ("file:///a", "/a"),
    ],
)
def test_a_folder_may_be_in_a_store(given: str, meant: str) -> None:
    assert str(folder(given)) == meant
    assert folder(folder(given)) == folder(given)
    assert str(folder(given) / "members") == f"{meant}/members"


@pytest.mark.parametrize(
    "given",
    [
        *("s3:/bucket/t", "s3://", "s3://b", "s3://key:secret@bucket/t", "s3://bucket//t", "s3://bucket/../t"),
        *("s3://bucket/a b", "s3://bucket/t?sig=secret", "s3://bucket/ü", "s3://bucket/a%20b", Path("s3://bucket/t")),
    ],
)
def test_what_is_no_folder_in_a_store_is_refused_and_no_secret_is_shown(given: str | Path) -> None:
    with pytest.raises(LocationError, match=r"not a folder in a store that speaks S3 \(.*\)\. .*write s3://") as said:
        folder(given)
    assert "secret@" not in str(said.value)
    assert "sig=" not in str(said.value)


@pytest.mark.parametrize("given", STORES[1:])
def test_a_store_that_speaks_something_else_is_refused(given: str) -> None:
    with pytest.raises(LocationError, match=SENTENCE):
        folder(given)


@pytest.mark.parametrize("given", ["file://", "file://host/a", "file:////a", "file:///a%00b"])
def test_a_file_that_is_not_of_this_machine_is_refused(given: str) -> None:
    with pytest.raises(LocationError, match=r"not a file of this machine \(.*\)\. Expected: .*\. Next: write three"):
        local(given)


def test_a_folder_that_is_called_so_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local("./s3a:/b") == tmp_path / "s3a:" / "b"
    assert local(local("./s3a:/b")) == tmp_path / "s3a:" / "b"
    assert local("s3a:") == tmp_path / "s3a:"


def test_what_is_shown_has_no_secret_and_no_control_character() -> None:
    assert shown("s3a://key:secret@bucket/t") == "s3a://…@bucket/t"
    assert shown("abfss://box@account/t?sig=secret") == "abfss://box@account/t"
    assert shown("s3a://a\x1b[31m") == "s3a://a\N{REPLACEMENT CHARACTER}[31m"


PATHS = [(verb, name) for verb, names in TESTED.items() for name in sorted(names)]
LOGS = [(verb, name) for verb in ("collect", "doctor") for name in ("request_log", "server_log")]


@pytest.mark.parametrize("slashes", ["//", "/"])
@pytest.mark.parametrize(("verb", "name"), [*PATHS, *LOGS])
def test_no_option_of_any_verb_takes_a_store_that_it_cannot_use(
    verb: str, name: str, slashes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = f"{'gs' if name in IN_STORES else 's3a'}:{slashes}bucket/tables"
    option = (
        [store]
        if (verb, name) in (("trace", "file"), ("replay", "files"), ("surprises", "files"))
        else [f"--{name.replace('_', '-')}", store]
    )
    said = kardia(verb, *option)
    assert said.code == 2, said
    assert store in said.err
    assert "is a place in a store" in " ".join(said.err.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_the_environment_is_refused_as_an_option_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KARDIA_TABLES", "gs://bucket/tables")
    assert kardia("groups").code == 2
    monkeypatch.setenv("KARDIA_TABLES", "file:///nowhere")
    said = kardia("groups", "--api", "http://127.0.0.1:1")
    assert said.code == 1, "the address on the command line comes before the tables of the environment"


SETTINGS: list[tuple[type[BaseSettings], str, dict[str, Any]]] = [
    (ApiSettings, "tables", {}),
    (ApiSettings, "token_file", {"tables": "t"}),
    (ApiSettings, "tls_certificate", {"tables": "t", "tls_key": "k"}),
    (ApiSettings, "tls_key", {"tables": "t", "tls_certificate": "c"}),
    (NotifySettings, "tables", {"state": "s"}),
    (NotifySettings, "state", {"tables": "t"}),
    (StreamSettings, "tables", {"bootstrap_server": "b", "checkpoint": "c"}),
    (StreamSettings, "checkpoint", {"bootstrap_server": "b", "tables": "t"}),
    (StreamSettings, "executors", {"bootstrap_server": "b", "tables": "t", "checkpoint": "c"}),
    (StreamSettings, "client_config", {"bootstrap_server": "b", "tables": "t", "checkpoint": "c"}),
    (CollectSettings, "positions", {}),
    (CollectSettings, "client_config", {}),
    (CollectSettings, "events_client_config", {}),
]


@pytest.mark.parametrize(("kind", "name", "others"), SETTINGS)
def test_no_setting_takes_a_store_that_it_cannot_use(
    kind: type[BaseSettings], name: str, others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{kind.model_config['env_prefix']}{name.upper()}"
    for store in refused(name):
        monkeypatch.setenv(variable, store)
        with pytest.raises(ValidationError, match=SENTENCE):
            kind(**others)
    monkeypatch.setenv(variable, "file:///K%C3%A4rdia%20Daten%201")
    assert getattr(kind(**others), name) == Path("/Kärdia Daten 1")
    if name in IN_STORES:
        monkeypatch.setenv(variable, "s3a://bucket/t/")
        assert getattr(kind(**others), name) == Store("bucket", "t")


def test_every_setting_that_is_a_path_is_tested() -> None:
    tested = {(kind, name) for kind, name, _ in SETTINGS}
    for kind in {kind for kind, _, _ in SETTINGS}:
        paths = {name for name, field in kind.model_fields.items() if "Path" in str(field.annotation)}
        assert {name for one, name in tested if one is kind} == paths


YAML = """
cluster: demo
bootstrap_server: 127.0.0.1:1
data: {data}
collect:
  request_log: {request_log}
  log_timezone: UTC
stream:
  tables: {tables}
serve:
  token_file: {token_file}
"""
PLACES = {"data": "/d", "request_log": "/r/*.log", "tables": "/t", "token_file": "/k"}


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("data", "data"),
        ("request_log", "collect.request_log"),
        ("tables", "stream.tables"),
        ("token_file", "serve.token_file"),
    ],
)
def test_the_file_of_up_takes_no_store(key: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "kardia.yaml"
    for store in STORES:
        file.write_text(YAML.format_map(PLACES | {key: store}))
        with pytest.raises(ConfigError, match=rf"{where}: {SENTENCE}.*[^.]\.$"):
            load(file)
        said = kardia("up", "--config", file, "--check")
        assert (said.code, store in said.err) == (2, True)
    file.write_text(YAML.format_map(PLACES | {key: "file:///K%C3%A4rdia%20Daten%201"}))
    found = load(file)
    values = {
        "data": found.data,
        "request_log": Path(found.collect.request_log[0]),
        "tables": found.tables,
        "token_file": found.serve.token_file,
    }
    assert values[key] == Path("/Kärdia Daten 1")
