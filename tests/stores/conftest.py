"""A folder of its own in the real object store of the run, whose keys the environment has; and a story in a topic, with
the tables that a job on a disk makes of it."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from demo.broker import Broker
from demo.object_store import ObjectStore
from stores.locations import Store
from tests.spark_jobs.support import story_topic, straight_run

BUCKET = "kardia-tests"
TOPIC = "stored.events"


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


@pytest.fixture(scope="session")
def straight(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables on a disk, of a run over the story in `TOPIC` that nothing interrupted. Once for each broker: a topic that
    is there is left as it is, and a second writer would put the story into it twice."""
    return straight_run(kafka, story_topic(kafka, TOPIC), tmp_path_factory.mktemp("straight"))
