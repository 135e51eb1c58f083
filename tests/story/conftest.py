"""Recorded stories in one table directory, a cluster each; a server over it; the command line as a person calls it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from api.settings import ApiSettings
from cli.main import app
from kardia.observe import ObserverSettings
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay
from tests.api.conftest import Api, running
from tests.support.stories import Story

STORIES = {
    "c01": "c01_kill-3.9.2",
    "c04": "c04_mpi-3.9.2",
    "c05": "c05_leave-3.9.2",
    "c06": "c06_static-3.9.2",
    "c09": "c09_join-3.9.2",
    "c10": "c10_slow-3.9.2",
    "c13": "c13_commit-3.9.2",
    "m01": "m01_coordinator_kill-4.1.2",
}
"""Cluster and the recording that was replayed into it."""


class Said(NamedTuple):
    """What a verb said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.out)


def kardia(*arguments: str | Path) -> Said:
    """Run a verb in this process."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], prog_name="kardia")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


def wall_ms() -> int:
    """The clock of the server under test: the same as that of the verbs."""
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All stories, replayed once."""
    root = tmp_path_factory.mktemp("stories") / "tables"
    for cluster in STORIES:
        replayed(root, cluster)
    return root


def replayed(root: Path, cluster: str) -> None:
    """Replay a story into tables, beside what they hold."""
    story = Story(STORIES[cluster])
    inputs = Inputs(
        sorted(story.folder.glob("kafka-request*.log.gz")), (), [story.folder / "offsets.jsonl.gz"], story.zone
    )
    replay(inputs, root, ObserverFactory(ObserverSettings(cluster, sample_within_ms=5_000)), workers=1, append=True)


@pytest.fixture(scope="session")
def url(tables: Path) -> Iterator[str]:
    """A server over the stories."""
    with running(ApiSettings(tables=tables), wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


@cache
def sentences(tables: Path, cluster: str, group: str, *options: str) -> list[dict[str, Any]]:
    """Sentences of a story as JSON."""
    said = kardia("explain", "--tables", tables, "--cluster", cluster, "--group", group, "-o", "json", *options)
    assert said.code == 0, said.err
    found: list[dict[str, Any]] = said.json()["sentences"]
    return found
