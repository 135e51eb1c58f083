"""What `make release` makes: a wheel, a list of the parts that it was tested with, and digests that fit."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from kardia import __version__
from scripts.install import REQUIREMENTS
from scripts.release import DIGESTS, release


@pytest.mark.slow
def test_a_release_has_its_wheel_its_parts_and_their_digests(tmp_path: Path) -> None:
    wheel, parts, digests = release(tmp_path / "dist")
    assert wheel.name == f"kafka_kardia-{__version__}-py3-none-any.whl"
    listed = json.loads(parts.read_text(encoding="utf-8"))
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "kafka-kardia")
    locked = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;\\]+)", REQUIREMENTS.read_text(encoding="utf-8")))
    assert {part["name"]: part["version"] for part in listed["components"]} == locked
    for line in digests.read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((digests.parent / name).read_bytes()).hexdigest() == digest
    assert {path.name for path in digests.parent.iterdir()} == {wheel.name, parts.name, DIGESTS}
