"""A folder of its own in the real object store of the run, whose keys the environment has."""

from __future__ import annotations

import secrets

import pytest

from demo.object_store import ObjectStore
from kardia.locations import Store

BUCKET = "kardia-tests"


@pytest.fixture
def in_environment(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The server, which this process may use."""
    object_store.bucket(BUCKET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in object_store.environ.items():
        monkeypatch.setenv(name, value)
    return object_store


@pytest.fixture
def place(in_environment: ObjectStore) -> Store:
    """A folder that nobody else uses."""
    return Store(BUCKET, f"deployments/{secrets.token_hex(6)}/tables")
