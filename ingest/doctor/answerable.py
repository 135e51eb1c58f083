"""Which questions can be answered by what was looked at, by which commands, and which step would answer the others.

The same list as of each group that is shown later (`kardia.evidence_levels`), for whoever has not collected anything
yet.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path

from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.doctor import Finding, Level
from ingest.doctor.cost import measured
from ingest.doctor.logs import sample_of
from kardia.events import Kind
from kardia.evidence_levels import RUNGS, Answerable, Read, questions

SUBJECT = "what can be asked"

NOW = "an answer now"

TABLES = "kardia-tables"

NEEDS_SERVER_LOG = "kardia replay --server-log 'server.log*' --tables " + TABLES
"""What whoever has no log at hand does on a broker's machine."""


@dataclass(frozen=True)
class Looked:
    """What was given to look at, as it is named again in commands."""

    bootstrap: str = ""
    """A cluster that answered; empty if none did."""
    client_config: Path | None = None
    request_logs: tuple[Path, ...] = ()
    server_logs: tuple[Path, ...] = ()
    log_timezone: str = ""
    log_pattern: str = ""

    @property
    def reach(self) -> str:
        """Options that reach the cluster."""
        config = f" --client-config {shlex.quote(str(self.client_config))}" if self.client_config else ""
        return f"--bootstrap-server {self.bootstrap or 'BROKER'}{config}"


_OF_GROUPS = frozenset({Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE, Kind.MODERN_HEARTBEAT})


def read_of(
    request_logs: Iterable[Path],
    server_logs: Iterable[Path],
    *,
    offsets: bool,
    zone: tzinfo | None,
    topic_ends: bool = False,
    samples: bool = False,
    log_pattern: str = "",
) -> Read:
    """What the ends of these logs show. A log that cannot be read shows nothing; its own finding says why. `offsets`,
    `topic_ends`, `samples`: whether the cluster lets them be read, and groups be described."""
    kinds: set[Kind] = set()
    for path in request_logs:
        try:
            kinds |= set(sample_of(path, RequestJson(zone or UTC, log_pattern=log_pattern), str(path)).kinds)
        except OSError:
            continue
    server = False
    for path in server_logs:
        try:
            dialect = ServerLog(zone or UTC, log_pattern=log_pattern)
            server = server or bool(sample_of(path, dialect, str(path)).stamps)
        except OSError:
            continue
    polls = bool(kinds & {Kind.FETCH, Kind.TELEMETRY})
    requests = bool(kinds & _OF_GROUPS)
    return Read(requests, requests and polls, server, offsets, samples, offsets and topic_ends)


def findings(read: Read, looked: Looked, switch_on: Sequence[str] = ()) -> list[Finding]:
    """One finding per question, and the commands that answer those that can be answered. `switch_on`: what to do for a
    request log; it stands below the last question that takes one, so that the list is read in one piece."""
    asked = questions(read)
    takes = [
        one for one in asked if one.answered == "no" and "request log" in one.needs and "server.log" not in one.needs
    ]
    found = [_finding(one, looked, tuple(switch_on) if takes and one is takes[-1] else ()) for one in asked]
    commands = _commands(read, looked)
    if commands:
        sentence = f"With what was found ({RUNGS[read.rung]}: level {read.rung} of {max(RUNGS)}):"
        found.append(Finding(Level.NOTE, NOW, sentence, commands))
    return found


def _finding(one: Answerable, looked: Looked, switch_on: tuple[str, ...]) -> Finding:
    if one.answered == "yes":
        return Finding(Level.GOOD, SUBJECT, f"“{one.question}” can be answered.")
    can = "can be answered in part" if one.answered == "partly" else "cannot be answered yet"
    return Finding(
        Level.NOTE, SUBJECT, f"“{one.question}” {can}: it {one.needs}{_cost(one)}.", _step(one, looked) or switch_on
    )


def _cost(one: Answerable) -> str:
    """What a step costs the broker, where only that step helps and it was measured."""
    found = measured()
    if found is None or not one.needs.startswith("needs the request log"):
        return ""
    least, most = found.with_fetch if "FETCH" in one.needs else found.group_apis
    return f", at {least:.2f} to {most:.2f} times the broker's CPU per request"


def _step(one: Answerable, looked: Looked) -> tuple[str, ...]:
    if "kardia capture" in one.needs:
        return (f"kardia capture {looked.reach} --out offsets.jsonl",)
    if "the ends of its partitions" in one.needs:
        return (f"kardia collect {looked.reach} --cluster NAME --positions FOLDER",)
    return (NEEDS_SERVER_LOG,) if "server.log" in one.needs else ()


def _commands(read: Read, looked: Looked) -> tuple[str, ...]:
    """From what was found to a first answer, without anything that has to be set up."""
    lines, sources = [], []
    if read.offsets:
        lines.append(f"kardia capture {looked.reach} --out offsets.jsonl")
        sources.append("--offsets offsets.jsonl")
    elif read.samples and not (read.server_log or read.requests):
        lines.append(f"kardia capture --admin {looked.reach} --for-s 60 --out samples.jsonl")
        sources.append("samples.jsonl")
    for name, paths, has in (
        ("--server-log", looked.server_logs, read.server_log),
        ("--request-log", looked.request_logs, read.requests),
    ):
        if has:
            sources.append(f"{name} {shlex.join(str(path) for path in paths)}")
    if not sources:
        return ()
    read_as = "".join(
        f" {option} {shlex.quote(value)}"
        for option, value in (("--log-timezone", looked.log_timezone), ("--log-pattern", looked.log_pattern))
        if value and read.rung > _NO_LOG
    )
    return (
        *lines,
        f"kardia replay --tables {TABLES} {' '.join(sources)}{read_as}",
        f"kardia groups --tables {TABLES}",
        f"kardia why GROUP --tables {TABLES}",
    )


_NO_LOG = 2
"""Rungs up to this one have no log of a broker, and so no zone."""
