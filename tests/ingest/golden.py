"""Golden events of the recorded lines: `python -m tests.ingest.golden` writes them anew, the test compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ingest.dialects import Reading
from ingest.dialects.request_json import RequestJson
from ingest.stamps import zone_named
from kardia.events import Kind
from tests.ingest.lines import VERSIONS, recorded

GOLDEN = Path(__file__).parent / "data" / "golden-requests.json"


def readings() -> dict[str, Any]:
    """What every recorded line says, by version and title."""
    found: dict[str, Any] = {}
    for version in VERSIONS:
        dialect = RequestJson(zone_named("UTC"))
        for number, (title, line) in enumerate(recorded(version)):
            found[f"{version} {number:02d} {title}"] = plain(dialect.read(line, "b/request/i", 0, len(line) + 1))
    return found


def plain(reading: Reading) -> Any:
    """A reading as JSON: fields by name, zeros left out."""
    if isinstance(reading, str):
        return reading
    if isinstance(reading, list):
        return [plain(one) for one in reading]
    named = reading._asdict()
    named["kind"] = Kind(reading.kind).name
    for instant in ("logged_at_ms", "arrived_at_ms", "handled_at_ms", "decided_at_ms"):
        named[instant] = round(named[instant], 3)
    return {name: value for name, value in named.items() if value not in ("", None) and name != "source"}


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(readings(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
