"""Which endpoint and region are taken, and that no option of delta-rs holds a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.spark import s3a
from stores import access, store_errors

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}

CONFIG = """
[default]
region = eu-central-1
[profile lab]
region = eu-west-9
endpoint_url = http://127.0.0.1:9000
aws_secret_access_key = secret
"""


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    (tmp_path / "config").write_text(CONFIG)
    return {"AWS_CONFIG_FILE": str(tmp_path / "config"), **more}


@pytest.mark.parametrize(
    ("given", "region", "endpoint"),
    [
        ({}, "eu-central-1", ""),
        ({"AWS_REGION": "us-2"}, "us-2", ""),
        ({"AWS_DEFAULT_REGION": "us-3"}, "us-3", ""),
        ({"AWS_PROFILE": "lab"}, "eu-west-9", "http://127.0.0.1:9000"),
        ({"AWS_PROFILE": "lab", "AWS_ENDPOINT_URL": "https://s3.lab"}, "eu-west-9", "https://s3.lab"),
        ({"AWS_ENDPOINT_URL": "https://a", "AWS_ENDPOINT_URL_S3": "https://b"}, "eu-central-1", "https://b"),
        ({"AWS_PROFILE": "lab", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "eu-west-9", ""),
        ({"AWS_PROFILE": "none"}, access.DEFAULT_REGION, ""),
    ],
)
def test_the_environment_comes_before_the_profile(
    tmp_path: Path, given: dict[str, str], region: str, endpoint: str
) -> None:
    found = access.delta_options(environ(tmp_path, **given))
    assert (found["aws_region"], found.get("aws_endpoint", "")) == (region, endpoint)
    assert ("aws_allow_http" in found) == endpoint.startswith("http://")
    assert ("AWS_FORCE_CREDENTIAL_LOAD" in found) == bool(endpoint)


def test_no_secret_is_an_option(tmp_path: Path) -> None:
    given = environ(tmp_path, AWS_PROFILE="lab", **KEYS)
    everything = str(access.delta_options(given)) + str(s3a.settings(given))
    assert "AWS_FORCE_CREDENTIAL_LOAD" not in everything
    assert not [secret for secret in ("key'", "secret", "token") if secret in everything.lower()]


def test_a_config_that_cannot_be_read_is_left_to_the_client(tmp_path: Path) -> None:
    given = environ(tmp_path)
    (tmp_path / "config").write_bytes(b"\xff\xfe no config")
    assert access.delta_options(given)["aws_region"] == access.DEFAULT_REGION


ANSWER = (
    "Generic S3 error: Error performing GET http://127.0.0.1:1/b/t in 3ms - Server returned non-2xx status code: "
    '403 Forbidden: <?xml version="1.0"?><Error><Code>{code}</Code><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>'
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (ANSWER.format(code="SignatureDoesNotMatch"), "the store answered SignatureDoesNotMatch"),
        (ANSWER.format(code="NewCodeOfTomorrow"), "the store answered AccessDenied"),
        ("error sending request for url (http://127.0.0.1:1/)", "the store cannot be reached"),
        ("the credential provider was not enabled: no providers in chain", "no credentials for the store were found"),
        ("something with AKIASECRET", "the store failed with OSError"),
    ],
)
def test_what_is_said_comes_from_a_closed_list(text: str, what: str) -> None:
    found = store_errors.of(OSError(text))
    assert found.what == what
    assert "AKIASECRET" not in "".join(found)
    assert found.next_step
