"""Offset commits as the broker's own request log shows them: the second part of what the verdict compares with.

server.log says when a group rebalanced, but never that a member committed meanwhile; the request log does. Read without
Kardia's own reader (`ingest`), on purpose. Stamps are UTC, as the demo's broker writes them. Lines are JSON from Kafka
2.8 on; before they are text, in which nothing is quoted: the demo's own names have no comma and no bracket.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_OFFSET_COMMIT = '"requestApiKey":8,'
_OFFSET_COMMIT_AS_TEXT = "RequestHeader(apiKey=OFFSET_COMMIT,"

_AS_TEXT = re.compile(
    r" -- \{group_id=(?P<group>[^,]*),generation_id=-?\d+,member_id=(?P<member>[^,]*),.*?,response:(?P<answer>.*?)"
    r" from connection .*,responseQueueTime:(?P<queue>[\d.]+),sendTime:(?P<send>[\d.]+),"
)
_ERROR_AS_TEXT = re.compile(r"error_code=(-?\d+)")


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
            if not line.endswith("\n"):
                continue
            commit = None
            if _OFFSET_COMMIT in line:
                commit = _commit(line)
            elif _OFFSET_COMMIT_AS_TEXT in line:
                commit = _commit_as_text(line)
            if commit is not None and commit.member_id:
                found.append(commit)
    return found


def _commit(line: str) -> Commit:
    body: dict[str, Any] = json.loads(line[line.index("{") : line.rindex("}") + 1])
    waited_ms = body["responseQueueTimeMs"] + body["sendTimeMs"]
    codes = [part["errorCode"] for topic in body["response"]["topics"] for part in topic["partitions"]]
    return Commit(
        at_ms=_stamp_ms(line) - waited_ms,
        group_id=body["request"]["groupId"],
        member_id=body["request"]["memberId"],
        accepted=bool(codes) and not any(codes),
    )


def _commit_as_text(line: str) -> Commit:
    found = _AS_TEXT.search(line)
    if found is None:
        raise ValueError(f"a line of OffsetCommit of another shape than known: {line[:400]}")
    codes = [int(code) for code in _ERROR_AS_TEXT.findall(found["answer"])]
    return Commit(
        at_ms=_stamp_ms(line) - float(found["queue"]) - float(found["send"]),
        group_id=found["group"],
        member_id=found["member"],
        accepted=bool(codes) and not any(codes),
    )


def _stamp_ms(line: str) -> float:
    return datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp() * 1000
