"""The file of client settings: what is taken, what is refused, and that no value is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.clients import MAX_BYTES, OWN, client_settings
from ingest.errors import SettingsError
from ingest.producer import PRODUCER
from ingest.settings import CollectSettings


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return path


def test_names_and_values(tmp_path: Path) -> None:
    text = "# who\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b#c\n"
    assert client_settings(written(tmp_path, text)) == {"security.protocol": "SASL_SSL", "sasl.password": "a=b#c"}
    assert client_settings(None) == {}


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_the_promises_rest_on_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=f"line 1 sets {name}"):
        client_settings(written(tmp_path, f"{name}=x"))


def test_the_guarded_producer_settings_are_among_them() -> None:
    assert {"enable.idempotence", "acks", "message.timeout.ms", "compression.type"} <= OWN & set(PRODUCER)


@pytest.mark.parametrize("text", ["sasl.password", "=secret", "a=1\na=secret", "a=" + "x" * MAX_BYTES])
def test_wrong_lines_are_refused_without_their_values(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        client_settings(written(tmp_path, text))
    assert "secret" not in str(refused.value)
    assert "x" * 100 not in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        client_settings(tmp_path / "nothing")


def test_the_topic_on_the_observed_cluster_shares_its_settings(tmp_path: Path) -> None:
    path = written(tmp_path, "a=1")
    same = CollectSettings(bootstrap_server="b:1", client_config=path)
    other = CollectSettings(bootstrap_server="b:1", client_config=path, events_bootstrap_server="c:1")
    assert same.clients() == ({"a": "1"}, {"a": "1"})
    assert other.clients() == ({"a": "1"}, {})
