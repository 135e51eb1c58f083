"""Looks at the end of one log: is it there, what dialect, which APIs, is it filtered, does its clock agree.

Reads the last few megabytes at most, through the dialects that the collector uses. The stamps of a log carry no zone;
what tells is the file's own time of change, which the same host wrote within a second of the last line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from ingest.blocks import AHEAD_MS
from ingest.dialects import MAX_LINE_BYTES, Dialect
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.dialects.text_layout import MARK, whole
from ingest.doctor import Finding, Level
from ingest.tail.followable import NEXT, why_not
from ingest.tail.wrapped import LOOKED_AT_BYTES, EntrySplitter, form_in
from kardia.events import Event, Kind

TAIL_BYTES = 8 << 20
"""How much of the end is read: a minute or more of most brokers."""

QUARTER_MS = 900_000.0
"""Zones differ by whole quarters of an hour."""

NEAR_MS = 60_000.0
"""A log that was last written so long before or after a whole quarter is taken to be in another zone."""

SKEW_MS = 5_000.0
"""A file that changed so long after its last stamp was copied, is buffered, or has a clock that is off."""

OTHERS_MAX = 0.5
"""Share of lines of other APIs above which the missing filter is worth a sentence."""

_WANTED = {Kind.JOIN: "JOIN_GROUP", Kind.SYNC: "SYNC_GROUP", Kind.HEARTBEAT: "HEARTBEAT", Kind.FETCH: "FETCH"}


@dataclass
class Sample:
    """What the end of a log held."""

    lines: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Refused lines by reason and what was expected."""

    first_ms: float | None = None
    last_ms: float | None = None
    """Stamp of the last line that has one."""

    stamps: list[float] = field(default_factory=list)
    """Stamps of all lines."""

    text: int = 0
    """Completed requests of brokers 2.0 to 2.7."""

    size: int = 0
    bytes_read: int = 0


def examine(
    path: Path,
    zone: tzinfo | None,
    switch_on: tuple[str, ...] = (),
    *,
    server: bool = False,
    log_pattern: str = "",
) -> list[Finding]:
    """Findings about one log. `zone`: in which its stamps are to be read, None if nobody has said. `switch_on`: what to
    do where the request logger seems to be off (`remedies`)."""
    subject = str(path)
    dialect: Dialect = RequestJson(zone or UTC, log_pattern=log_pattern)
    if server:
        dialect = ServerLog(zone or UTC, log_pattern=log_pattern)
    try:
        unfit = why_not(path, log_pattern)
        if unfit:
            return [_unfit(subject, unfit)]
        sample = sample_of(path, dialect, subject)
        changed_ms = path.stat().st_mtime * 1000
    except FileNotFoundError:
        if server:
            sentence = "There is no such file here: this is not the broker's machine, or it writes elsewhere."
            return [Finding(Level.BAD, subject, sentence, _ELSEWHERE)]
        sentence = "There is no such file yet: the logger is off, or writes elsewhere."
        return [Finding(Level.BAD, subject, sentence, switch_on)]
    except OSError as error:
        return [
            Finding(Level.BAD, subject, f"The log cannot be read: {error.strerror or type(error).__name__}.", _ACCESS)
        ]
    if sample.size == 0:
        return [
            Finding(
                Level.BAD, subject, "The log is empty: the logger is off, or its filter lets nothing pass.", switch_on
            )
        ]
    said = _server_lines(subject, sample) if server else _request_lines(subject, sample, switch_on)
    return [*said, *_clock(subject, sample, zone, changed_ms), *_ahead(subject, sample, changed_ms)]


def _unfit(subject: str, unfit: str) -> Finding:
    sentence = f"{unfit[:1].upper()}{unfit[1:]}: a collector cannot follow it, a replay can read it."
    return Finding(Level.BAD, subject, sentence, (f"{NEXT[:1].upper()}{NEXT[1:]}.",))


def sample_of(path: Path, dialect: Dialect, source: str, hear: Callable[[Event], None] | None = None) -> Sample:
    """What the end of a log holds. `hear` gets each event of it. Raises OSError."""
    sample = Sample()
    with path.open("rb") as file:
        sample.size = file.seek(0, 2)
        file.seek(0)
        form = form_in(file.read(LOOKED_AT_BYTES))
        start = max(0, sample.size - TAIL_BYTES)
        file.seek(start)
        if start:
            start += len(file.readline(MAX_LINE_BYTES))  # the rest of a line
        lines: list[bytes] = []
        if form is not None:
            data = file.read(TAIL_BYTES)
            sample.bytes_read = len(data)
            lines = [line.text for line in EntrySplitter(form, start).feed(data).lines if line.refused is None]
        while line := file.readline(MAX_LINE_BYTES):
            if not line.endswith(b"\n"):
                break  # half a line, or one that is too long: the collector's business
            lines.append(line.rstrip(b"\r\n"))
            sample.bytes_read += len(line)
    for record in whole(lines):
        sample.text += MARK in record
        _take(sample, dialect, record, source, start, hear)
        start += len(record) + 1
    return sample


def _take(
    sample: Sample, dialect: Dialect, line: bytes, source: str, start: int, hear: Callable[[Event], None] | None
) -> None:
    sample.lines += 1
    at_ms = dialect.stamp_ms(line)
    if at_ms is not None:
        sample.first_ms = at_ms if sample.first_ms is None else min(sample.first_ms, at_ms)
        sample.last_ms = at_ms  # not the highest: one line may be stamped far ahead of all others
        sample.stamps.append(at_ms)
    reading = dialect.read(line, source, start, start + len(line))
    if isinstance(reading, str):
        sample.ignored[reading] += 1
        return
    events: Sequence[Event] = [reading] if isinstance(reading, Event) else reading
    if hear is not None:
        for event in events:
            hear(event)
    for event in events[:1]:
        kind = Kind(event.kind)
        sample.kinds[kind] += 1
        if kind is Kind.REJECTED and isinstance(event.detail, dict):
            sample.rejected[(str(event.detail["reason"]), str(event.detail["expected"]))] += 1


def _request_lines(subject: str, sample: Sample, switch_on: tuple[str, ...]) -> list[Finding]:
    found: list[Finding] = []
    understood = sum(count for kind, count in sample.kinds.items() if kind is not Kind.REJECTED)
    other = sample.ignored["other_api"]
    if not understood and not other:
        sentence = f"None of the last {sample.lines} lines is a completed request that Kardia can read."
        return [Finding(Level.BAD, subject, sentence + _why(sample), switch_on)]
    span_s = ((sample.last_ms or 0) - (sample.first_ms or 0)) / 1000
    rate = f", {sample.bytes_read / span_s / 1000:.0f} kB/s" if span_s >= 1 else ""
    sentence = f"{understood} of the last {sample.lines} lines are requests that Kardia reads{rate}."
    found.append(Finding(Level.GOOD if understood else Level.BAD, subject, sentence, () if understood else switch_on))
    if sample.text:
        found.append(Finding(Level.NOTE, subject, f"{sample.text} of them are text, of a broker 2.0 to 2.7: {_TEXT}"))
    missing = [name for kind, name in _WANTED.items() if not sample.kinds[kind]]
    groups = [name for name in missing if name != "FETCH"]
    if groups:
        sentence = f"No {' and no '.join(groups)} among them: no group was active, or the filter keeps them out."
        found.append(Finding(Level.NOTE, subject, sentence))
    if "FETCH" in missing:
        sentence = "No FETCH: whether an application polls can then be told for few libraries only."
        found.append(Finding(Level.NOTE, subject, sentence))
    if other > OTHERS_MAX * sample.lines:
        share = other * 100 // sample.lines
        sentence = f"{share} % of the lines are of APIs that Kardia does not use; a filter saves the disk."
        found.append(Finding(Level.NOTE, subject, sentence, switch_on))
    if sample.rejected:
        found.append(Finding(Level.BAD, subject, f"{sample.kinds[Kind.REJECTED]} lines are refused." + _why(sample)))
    return found


def _server_lines(subject: str, sample: Sample) -> list[Finding]:
    understood = sum(count for kind, count in sample.kinds.items() if kind is not Kind.REJECTED)
    if understood:
        sentence = f"{understood} of the last {sample.lines} lines are the coordinator's."
        return [Finding(Level.GOOD, subject, sentence)]
    sentence = (
        f"None of the last {sample.lines} lines is the coordinator's: its level is above INFO, or no group moved."
    )
    return [Finding(Level.NOTE, subject, sentence)]


def _clock(subject: str, sample: Sample, zone: tzinfo | None, changed_ms: float) -> list[Finding]:
    """Compare the last stamp with the file's time of change."""
    if sample.last_ms is None:
        return [Finding(Level.BAD, subject, "No line begins with a stamp such as [2026-11-20 10:47:18,113].")]
    ahead_ms = sample.last_ms - changed_ms
    quarters = round(ahead_ms / QUARTER_MS)
    if quarters and abs(ahead_ms - quarters * QUARTER_MS) <= NEAR_MS and abs(quarters) <= 14 * 4:
        # Stamps read in a zone that is too far west come out late, by as much as the zone is off.
        offset = (0 if zone is None else _offset_minutes(zone, changed_ms)) + quarters * 15
        name = f"{'+' if offset >= 0 else '-'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
        read_as = "UTC, as no --log-timezone is given" if zone is None else str(zone)
        off = f"the last line is {_span(ahead_ms)} the file's last change"
        sentence = f"Read as {read_as}, {off}: the zone seems to be {name}."
        return [Finding(Level.BAD, subject, sentence, (f"--log-timezone {name}",))]
    if abs(ahead_ms) > SKEW_MS:
        why = "a copy, a buffered log, or a clock that is off"
        sentence = f"The last line is {_span(ahead_ms)} the file's last change: {why}; so the zone cannot be checked."
        return [Finding(Level.UNKNOWN if zone is None else Level.NOTE, subject, sentence)]
    if zone is None:
        return [Finding(Level.GOOD, subject, "The stamps are in UTC.", ("--log-timezone UTC",))]
    idle_s = time.time() - changed_ms / 1000
    idle = f" Nothing was written for {idle_s:.0f} s." if idle_s > 60 else ""
    return [Finding(Level.GOOD, subject, f"Its stamps fit the zone that was given.{idle}")]


def _ahead(subject: str, sample: Sample, changed_ms: float) -> list[Finding]:
    """Lines of the future among others: a log as a whole is a matter of its zone."""
    if sample.last_ms is None or sample.last_ms > changed_ms + AHEAD_MS:
        return []
    ahead = [at_ms for at_ms in sample.stamps if at_ms > changed_ms + AHEAD_MS]
    if not ahead:
        return []
    count = "One line is" if len(ahead) == 1 else f"{len(ahead)} lines are"
    sentence = (
        f"{count} stamped up to {_span(max(ahead) - changed_ms)} the file's last change: a collector refuses such "
    )
    return [Finding(Level.BAD, subject, sentence + "lines (future_timestamp).", _AHEAD)]


def _offset_minutes(zone: tzinfo, at_ms: float) -> int:
    offset = datetime.fromtimestamp(at_ms / 1000, zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds() / 60)


def _span(ahead_ms: float) -> str:
    seconds = abs(ahead_ms) / 1000
    text = f"{seconds / 3600:.1f} h" if seconds >= 3_600 else f"{seconds:.0f} s"
    return f"{text} {'after' if ahead_ms > 0 else 'before'}"


def _why(sample: Sample) -> str:
    if not sample.rejected:
        return ""
    (reason, expected), count = sample.rejected.most_common(1)[0]
    return f" {count} times {reason}: expected {expected}."


_TEXT = (
    "subscriptions, assignments, reasons and, before 2.5, the client's library are not in them; FETCH lines hold the "
    "paths of the broker's files."
)

_AHEAD = ("See whether the broker's clock was set forward, and who else may write this file.",)

_ELSEWHERE = (
    "Kafka writes server.log below kafka.logs.dir, by default the folder logs of its own; run this there, or bring the "
    "file here.",
)

_ACCESS = ("Name the file that the broker writes, and run as a user who may read it.",)
