"""Every trace by Kafka's own coordinator classes, in the releases that can be driven; one process for each release.

Goal: no trace says anything about Kafka that Kafka does not do. Why a member went is not asked here: the classes do
not say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import traces
from tests.golden.kafka import VERSIONS
from tests.truth.oracle.settings import OLD_VERSIONS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", [*VERSIONS, *(pytest.param(one, marks=pytest.mark.long) for one in OLD_VERSIONS)])
def test_kafka_does_what_the_traces_say(version: str) -> None:
    command = [sys.executable, "-m", "tests.golden.kafka", version]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, list[str]] = json.loads(said)
    assert set(found) == {trace.name for trace in traces() if version in trace.versions}
    differences = [one for some in found.values() for one in some]
    assert not differences, "\n" + "\n".join(differences)
