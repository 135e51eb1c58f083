"""Offset commits as the broker's own request log shows them: the second part of what the verdict compares with.

server.log says when a group rebalanced, but never that a member committed meanwhile; the request log does. Read without
Kardia's own reader (`ingest`), on purpose. Stamps are UTC, as the demo's broker writes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_OFFSET_COMMIT = '"requestApiKey":8,'


@dataclass(frozen=True)
class Commit:
    """One completed OffsetCommit of a member; `at_ms` is when the answer was ready."""

    at_ms: float
    group_id: str
    member_id: str
    accepted: bool


def commits(path: Path) -> list[Commit]:
    """All commits of members in the order of the log; commits without a member are left out."""
    found = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            # The last line may still be in the making.
            if _OFFSET_COMMIT in line and line.endswith("\n"):
                commit = _commit(line)
                if commit.member_id:
                    found.append(commit)
    return found


def _commit(line: str) -> Commit:
    body: dict[str, Any] = json.loads(line[line.index("{") : line.rindex("}") + 1])
    stamp = datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    waited_ms = body["responseQueueTimeMs"] + body["sendTimeMs"]
    codes = [part["errorCode"] for topic in body["response"]["topics"] for part in topic["partitions"]]
    return Commit(
        at_ms=stamp.timestamp() * 1000 - waited_ms,
        group_id=body["request"]["groupId"],
        member_id=body["request"]["memberId"],
        accepted=bool(codes) and not any(codes),
    )
