"""The committed lock of all jar files: sets of coordinates, and for each coordinate its sha256 and size.

It holds no address: where files come from is the business of `ivy`. Coordinates are `group:artifact:version`, the file
is `artifact-version.jar`. The set that was measured to work together is described in docs/adr/0006-libraries.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("jars.lock.json")
_COORDINATE = re.compile(r"[A-Za-z0-9_.\-]+:[A-Za-z0-9_.\-]+:[A-Za-z0-9_.\-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class Artifact:
    """One jar file: what it is called, how large it is and what it must hash to."""

    group: str
    name: str
    version: str
    sha256: str
    size: int

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`."""
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        """Name in a repository of Maven's layout."""
        return f"{self.name}-{self.version}.jar"


def parse(text: str) -> dict[str, tuple[Artifact, ...]]:
    """Sets by name; raises ValueError with the offending coordinate if the lock contradicts itself."""
    data = json.loads(text)
    known: dict[str, Artifact] = {}
    for coordinate, facts in data["artifacts"].items():
        if not _COORDINATE.fullmatch(coordinate) or not _SHA256.fullmatch(facts["sha256"]) or facts["size"] <= 0:
            raise ValueError(f"jars.lock.json: {coordinate} needs group:artifact:version, a sha256 and a size")
        group, name, version = coordinate.split(":")
        known[coordinate] = Artifact(group, name, version, facts["sha256"], facts["size"])
    used = {coordinate for names in data["sets"].values() for coordinate in names}
    if used != set(known):
        raise ValueError(f"jars.lock.json: sets and artifacts differ in {sorted(used ^ set(known))}")
    return {name: tuple(known[coordinate] for coordinate in names) for name, names in data["sets"].items()}


@cache
def sets() -> dict[str, tuple[Artifact, ...]]:
    """The committed sets: `spark`; `broker-VERSION` for each broker that the demo and the tests can start; and what
    tests/truth adds to run coordinator classes without a broker."""
    return parse(LOCK_FILE.read_text(encoding="utf-8"))
