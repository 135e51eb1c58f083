"""The file of client settings: which names are taken, how, and that no value is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.clients.settings import MAX_BYTES, OWN, client_config, client_settings
from ingest.errors import SettingsError
from ingest.security.rendering import GENTLE
from ingest.settings import CollectSettings
from ingest.wire.producer import PRODUCER


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return path


def test_names_and_values(tmp_path: Path) -> None:
    text = "# who\n\nsecurity.protocol = sasl_ssl\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=a=b#c\\\n"
    assert client_settings(written(tmp_path, text)) == GENTLE | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "a=b#c\\",
        "ssl.endpoint.identification.algorithm": "https",
    }
    assert client_settings(None) == GENTLE
    assert client_settings(written(tmp_path, "reconnect.backoff.ms=700"))["reconnect.backoff.ms"] == "700"


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
    path = written(tmp_path, "client.id=a")
    same = CollectSettings(bootstrap_server="b:1", client_config=path)
    other = CollectSettings(bootstrap_server="b:1", client_config=path, events_bootstrap_server="c:1")
    assert [one.get("client.id") for one in same.clients()] == ["a", "a"]
    assert [one.get("client.id") for one in other.clients()] == ["a", None]
    assert other.clients()[1] == GENTLE


JAAS = "org.apache.kafka.common.security"
SCRAM = f'{JAAS}.scram.ScramLoginModule required username="u" password="top-secret";'

REFUSED = {
    "sasl.username=u\nsasl.password=top-secret": "line 1 sets sasl.username, but security.protocol is PLAINTEXT",
    "security.protocol=SASL_SSL\nsasl.username=u": "no sasl.mechanism",
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=u": "no sasl.password",
    "security.protocol=top-secret": "line 1 sets security.protocol to none of PLAINTEXT",
    "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM": "line 2 sets sasl.mechanism to a mechanism that",
    "security.protocol=SSL\nssl.certificate.pem=x": "without a key: ssl.key.location",
    "security.protocol=SSL\nssl.ca.location=nowhere.pem": "line 2 sets ssl.ca.location, whose file",
    "security.protocol=SSL\nssl.ca.pem=top-secret": "line 2 sets ssl.ca.pem, whose file",
    "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.method=default": "oidc is the one",
    "ssl.trustore.location=x": "did you mean ssl.truststore.location?",
    f"sasl.username=u\nsasl.jaas.config={SCRAM}": "mixes two libraries: line 1 sets sasl.username",
    f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={SCRAM}": "not for PLAIN",
    f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={SCRAM[:-1]}": "semicolon",
    f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={SCRAM[:-2]}": "quote",
    f"sasl.jaas.config={SCRAM}": "by which nobody logs in",
    f"security.protocol=SASL_SSL\nsasl.jaas.config={SCRAM}\nsasl.mechanism=SCRAM-SHA-512\n"
    "sasl.login.callback.handler.class=com.x.Own": "only Java can load",
    f"security.protocol=SASL_SSL\nsasl.jaas.config={SCRAM}\nsasl.mechanism=SCRAM-SHA-512\n"
    "ssl.enabled.protocols=TLSv1.3": "less than TLSv1.2,TLSv1.3",
    "ssl.truststore.type=BKS\nsecurity.protocol=SSL": "only Java can open",
    "ssl.truststore.certificates=x\nmax.poll.records=5": "line 2 sets max.poll.records, which Kardia does not take",
    "security.protocol=PLAINTEXT\nssl.keystore.key=top-secret": "without ssl.keystore.certificate.chain",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_means_nothing_or_cannot_be_translated_is_a_sentence_without_values(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        client_config(written(tmp_path, text))
    assert REFUSED[text] in str(refused.value)
    assert "top-secret" not in str(refused.value)
    assert ". Expected: " in str(refused.value)
    assert ". Next: " in str(refused.value)


def test_no_secret_is_in_what_is_printed_of_settings(tmp_path: Path) -> None:
    text = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=top-secret\n"
    path = written(tmp_path, text)
    assert "top-secret" not in f"{client_config(path)} {client_settings(path)}"
    assert client_settings(path)["sasl.password"] == "top-secret"
