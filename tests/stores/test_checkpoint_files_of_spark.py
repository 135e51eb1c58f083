"""Files of Spark's checkpoint in a real object store: the second attempt at a file takes the place of the first.

A batch that is repeated after a crash writes the changes of its state once more, under the same name. What the first
attempt left must not stay: what is remembered of the second goes on from there.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from demo.object_store import ObjectStore
from stores.locations import Store

pytestmark = [pytest.mark.slow]


def test_a_file_that_is_written_again_is_the_second_one(place: Store, in_environment: ObjectStore) -> None:
    command = [sys.executable, "-m", "tests.stores.written_twice", f"{place.hadoop}/state"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["second", ["13.changelog"]]
