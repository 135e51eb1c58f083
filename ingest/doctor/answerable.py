"""Which questions can be answered by what was looked at, and which step would answer the others.

The same list as of each group that is shown later (`kardia.rungs`), for whoever has not collected anything yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from pathlib import Path

from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.doctor import Finding, Level
from ingest.doctor.logs import sample_of
from kardia.events import Kind
from kardia.rungs import Answerable, Read, questions

SUBJECT = "what can be asked"

COST = "what that costs the broker is measured there"

_CAPTURE = ("kardia capture --bootstrap-server BROKER --out offsets.jsonl",)
_FOLLOW = ("kardia collect --bootstrap-server BROKER --topic kardia.events --positions FOLDER",)
_OF_GROUPS = frozenset({Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE, Kind.MODERN_HEARTBEAT})


def read_of(
    request_logs: Iterable[Path],
    server_logs: Iterable[Path],
    *,
    offsets: bool,
    zone: tzinfo | None,
    topic_ends: bool = False,
) -> Read:
    """What the ends of these logs show. A log that cannot be read shows nothing; its own finding says why. `offsets`,
    `topic_ends`: whether the cluster lets them be read."""
    kinds: set[Kind] = set()
    for path in request_logs:
        try:
            kinds |= set(sample_of(path, RequestJson(zone or UTC), str(path)).kinds)
        except OSError:
            continue
    server = False
    for path in server_logs:
        try:
            server = server or bool(sample_of(path, ServerLog(zone or UTC), str(path)).stamps)
        except OSError:
            continue
    polls = bool(kinds & {Kind.FETCH, Kind.TELEMETRY})
    requests = bool(kinds & _OF_GROUPS)
    return Read(
        requests=requests, polls=requests and polls, server_log=server, offsets=offsets, ends=offsets and topic_ends
    )


def findings(read: Read, switch_on: Sequence[str]) -> list[Finding]:
    """One finding per question. `switch_on`: lines that switch the request log on; they stand below the last question
    that takes them, so that the list is read in one piece."""
    asked = questions(read)
    takes = [one for one in asked if one.answered == "no" and "request log" in one.needs]
    return [_finding(one, tuple(switch_on) if takes and one is takes[-1] else ()) for one in asked]


def _finding(one: Answerable, switch_on: tuple[str, ...]) -> Finding:
    if one.answered == "yes":
        return Finding(Level.GOOD, SUBJECT, f"“{one.question}” can be answered.")
    can = "can be answered in part" if one.answered == "partly" else "cannot be answered yet"
    by_records = "__consumer_offsets" in one.needs
    cost = f"; {COST}" if "request log" in one.needs and not by_records else ""
    return Finding(Level.NOTE, SUBJECT, f"“{one.question}” {can}: it {one.needs}{cost}.", _remedy(one, switch_on))


def _remedy(one: Answerable, switch_on: tuple[str, ...]) -> tuple[str, ...]:
    if "kardia capture" in one.needs:
        return _CAPTURE
    return _FOLLOW if "the ends of its partitions" in one.needs else switch_on
