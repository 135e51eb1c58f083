"""Holds what Kardia says was lost against what was: no line is lost uncounted, none is there twice, and a gap is no
wider than what made it. Pure: values in, findings out.

Two things lose lines in a night. A log that is copied and emptied loses what was written in between: the gap lies
between the last line of the copy and the first behind the emptying. The topic of events that is made again loses what
the job had not read: the gap lies between what it had and what the collector sent into the new one. Everything else
that befalls collector and job loses nothing, and no gap may tell of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from demo.tables import Record
from demo.told import Span
from kardia.events import lane_of, shard_of
from tests.night.compare import DOUBLED, MISSED, UNTRUE, WITHIN_MS, Finding
from tests.night.faults import EVENTS_TOPIC, REQUEST_LOG, SERVER_LOG

STREAM_OF = {REQUEST_LOG: "request", SERVER_LOG: "server"}
"""Log -> the last word of its source in `progress`."""

SENT_WITHIN_MS = 10_000
"""A collector that is well sends a line within a second, and after a topic was made again as soon as it has found its
partitions; a job that is well has read it a second later. On a busy machine it may be ten."""

AGAIN_WITHIN_MS = 90_000
"""Until who was killed, or went on after a stop, has done what was waiting: Spark takes a minute to start on a busy
machine."""

ARCHIVE_WITHIN_MS = 600_000
"""So far the archive may be behind at the end: it runs every two minutes, and a job that is killed takes it along."""

UNARCHIVED_MS = 180_000
"""So much the archive has not read at any time: it runs every two minutes, and a busy machine lets it wait."""

BESIDE_MS = 30_000
"""Lines so near to an emptying tell how far stamps went back at that time."""

KIND_OF = {8: "commit", 11: "join", 12: "heartbeat", 13: "leave", 14: "sync"}
"""API -> kind of the event that each of its lines gives."""

_STAMP = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]", re.MULTILINE)
_LINE = re.compile(
    rb'^\[(?P<at>[^\]]{23})\][^\n]*?"requestApiKey":(?P<api>8|11|12|13|14),[^\n]*?"groupId":"(?P<group>[^"]+)"'
    rb'[^\n]*"connection":"(?P<connection>[^"]+)"',
    re.MULTILINE,
)


class Line(NamedTuple):
    """A line of a request log that gives an event of a group, by what tells it from others."""

    at_ms: int
    kind: str
    group_id: str
    connection: str


class Emptied(NamedTuple):
    """A log was copied and emptied."""

    log: str
    copied_to_ms: int
    """The latest stamp in the copy."""
    lost: Span | None
    """The earliest and the latest stamp of lines that are in no file."""
    next_ms: int
    """The earliest stamp behind the emptying; the end of the night if there is none."""
    back_ms: int = 0
    """So far stamps went back in the log at that time: its lines are not in the order of their stamps."""


@dataclass(frozen=True)
class Ledger:
    """Everything that is compared."""

    lines: Sequence[Line]
    """All that the request logs ever had of groups, in any order."""
    emptied: Sequence[Emptied]
    done: Sequence[Mapping[str, Any]]
    """Steps with their instants."""
    progress: Sequence[Record]
    events: Sequence[Record] | None
    """Rows of the archive: `event_id`, `kind`, `group_id`, `logged_at_ms`, `connection`. None: there is none."""
    outages: Sequence[Span]
    """Of the broker."""
    until_ms: int
    lanes: int


@dataclass(frozen=True)
class Account:
    """What came of it."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]
    gaps: Sequence[Span]
    """Of what Kardia said that it knows nothing."""


def lines_in(pieces: Iterable[bytes]) -> list[Line]:
    """Lines of groups in a request log of JSON. Its stamps are UTC."""
    return [
        Line(_at_ms(found["at"]), KIND_OF[int(found["api"])], found["group"].decode(), found["connection"].decode())
        for piece in pieces
        for found in _LINE.finditer(piece)
    ]


def stamps_in(piece: bytes) -> list[int]:
    """Stamps of all lines, as they come."""
    return [_at_ms(stamp) for stamp in _STAMP.findall(piece)]


def emptied_of(log: str, copy: bytes, lost: bytes, pieces: Sequence[Sequence[int]], until_ms: int) -> Emptied | None:
    """One emptying; `pieces`: stamps of everything that was ever in the log, as they stand. None of a log without a
    line."""
    copied, gone = stamps_in(copy), stamps_in(lost)
    if not copied:
        return None
    last_ms = max([*copied, *gone])
    next_ms = min((at_ms for piece in pieces for at_ms in piece if at_ms > last_ms), default=until_ms)
    back_ms = max(_back_ms([at_ms for at_ms in piece if abs(at_ms - last_ms) <= BESIDE_MS]) for piece in pieces)
    return Emptied(log, max(copied), (min(gone), max(gone)) if gone else None, next_ms, back_ms)


def _back_ms(stamps: Sequence[int]) -> int:
    """How far the furthest one goes back behind the highest one ahead of it."""
    return max((highest - at_ms for at_ms, highest in zip(stamps, accumulate(stamps, max), strict=True)), default=0)


def account(ledger: Ledger) -> Account:
    """All findings by instant."""
    counts: Counter[str] = Counter()
    findings = [*_bounds(ledger, counts), *_untold(ledger, counts), *_lines(ledger, counts), *_twice(ledger)]
    bounded = (row for row in ledger.progress if row["gaps"] and row["gap_from_ms"] is not None)
    gaps = sorted({(row["gap_from_ms"], row["gap_to_ms"]) for row in bounded})
    return Account(tuple(sorted(findings, key=lambda one: (one.at_ms, one.told))), dict(counts), gaps)


def _bounds(ledger: Ledger, counts: Counter[str]) -> Iterator[Finding]:
    """Gaps that are wider than what made them, or that nothing made."""
    again = [_loss_with_topic(ledger, one) for one in _made_again(ledger)]
    for row in ledger.progress:
        lane, stream = row["lane"], row["source"].rpartition("/")[2]
        if not row["gaps"]:
            continue
        counts[f"gaps told: {stream}"] += row["gaps"]
        told = (row["gap_from_ms"], row["gap_to_ms"])
        if None in told:
            yield Finding(
                row["at_ms"], "", UNTRUE, f"lane {lane}: a gap of {stream} that says neither since when nor until"
            )
            continue
        emptied = (one for one in ledger.emptied if STREAM_OF[one.log] == stream)
        made = [(one.copied_to_ms - one.back_ms, one.next_ms + one.back_ms) for one in emptied]
        made = [span for span in (*made, *again) if span[0] - WITHIN_MS <= told[1] and told[0] <= span[1] + WITHIN_MS]
        who = f"lane {lane}: a gap of {stream} from {told[0]} to {told[1]} ({told[1] - told[0]} ms)"
        if not made:
            yield Finding(told[0], "", UNTRUE, f"{who}: nothing was lost there")
            continue
        first, last = min(span[0] for span in made), max(span[1] for span in made)
        if told[0] < first - WITHIN_MS or told[1] > last + WITHIN_MS:
            yield Finding(told[0], "", UNTRUE, f"{who}: nothing was lost outside of {first} to {last}")


def _untold(ledger: Ledger, counts: Counter[str]) -> Iterator[Finding]:
    """What was lost by an emptying, and no gap says so in each lane. Lines that a collector read before they were
    emptied are not lost: the gap may begin at any of them, and a line before it that was not read is found by
    `_lines`."""
    for one in ledger.emptied:
        counts[f"copied and emptied: {one.log}"] += 1
        if one.lost is None:
            continue
        counts[f"copied and emptied, with a loss: {one.log}"] += 1
        told = [
            row["lane"]
            for row in ledger.progress
            if row["gaps"]
            and row["gap_from_ms"] is not None
            and row["source"].endswith(STREAM_OF[one.log])
            and row["gap_from_ms"] <= one.lost[1] + WITHIN_MS
            and row["gap_to_ms"] >= one.lost[1] - WITHIN_MS
        ]
        missing = sorted({*range(ledger.lanes)} - {*told})
        if missing:
            text = (
                f"{one.log} was emptied, lines from {one.lost[0]} to {one.lost[1]} are lost: no gap in lanes {missing}"
            )
            yield Finding(one.lost[0], "", MISSED, text)


def _lines(ledger: Ledger, counts: Counter[str]) -> Iterator[Finding]:
    """Lines that are not in the archive, and lie in no gap. The archive follows every two minutes: it loses more with
    a topic than the other tables do, all from what it had on."""
    if ledger.events is None:
        return
    archived = Counter(
        Line(int(row["logged_at_ms"]), row["kind"], row["group_id"], row["connection"] or "")
        for row in ledger.events
        if row["kind"] in KIND_OF.values()  # other sources have an order of their own
    )
    reached: dict[int, list[int]] = {}
    for line in archived:
        reached.setdefault(_lane(line, ledger), []).append(line.at_ms)
    for instants in reached.values():
        instants.sort()
    gaps: dict[int, list[Span]] = {}
    for row in ledger.progress:
        if row["gaps"] and row["gap_from_ms"] is not None:
            gaps.setdefault(row["lane"], []).append((row["gap_from_ms"], row["gap_to_ms"]))
    again = [one["until_ms"] for one in _made_again(ledger)]
    for line, count in sorted(Counter(ledger.lines).items()):
        missing = count - archived[line]
        if missing <= 0 or line.at_ms > ledger.until_ms:
            counts["lines of groups in the archive"] += count
            continue
        lane = _lane(line, ledger)
        instants = reached.get(lane, [])
        behind = bisect_right(instants, line.at_ms)
        next_ms = instants[behind] if behind < len(instants) else ledger.until_ms + 1
        if any(first - WITHIN_MS <= line.at_ms <= last + WITHIN_MS for first, last in gaps.get(lane, ())):
            counts["lines of groups lost in a gap that was told"] += missing
        elif any(line.at_ms <= at_ms <= max(next_ms + SENT_WITHIN_MS, line.at_ms + UNARCHIVED_MS) for at_ms in again):
            counts["lines of groups that the archive lost with its topic"] += missing
        elif next_ms > ledger.until_ms and line.at_ms > ledger.until_ms - ARCHIVE_WITHIN_MS:
            counts["lines of groups that were not archived yet"] += missing
        else:
            yield Finding(line.at_ms, line.group_id, MISSED, f"a line of {line.connection} ({line.kind}) is nowhere")


def _twice(ledger: Ledger) -> Iterator[Finding]:
    for event_id, count in Counter(row["event_id"] for row in ledger.events or ()).items():
        if count > 1:
            yield Finding(0, "", DOUBLED, f"event {event_id} stands {count} times in the archive")


def _made_again(ledger: Ledger) -> list[Mapping[str, Any]]:
    return [one for one in ledger.done if one["whom"] == EVENTS_TOPIC]


def _loss_with_topic(ledger: Ledger, again: Mapping[str, Any]) -> Span:
    """What can be lost when the topic is made again: from what the job had read on to what the collector sends into the
    new one. Either may be away, and so may the broker, which has the topic."""
    first, last = again["at_ms"] - SENT_WITHIN_MS, again["until_ms"] + SENT_WITHIN_MS
    outages = [(begin, end + AGAIN_WITHIN_MS) for begin, end in ledger.outages]
    for begin, end in sorted((*_away(ledger, "stream"), *outages), reverse=True):
        if begin <= first <= end:
            first = begin - SENT_WITHIN_MS
    for begin, end in sorted((*_away(ledger, "collect"), *outages)):
        if begin <= last <= end:
            last = end
    return first, last


def _away(ledger: Ledger, role: str) -> list[Span]:
    """From when a role is killed or stopped until it has done what was waiting."""
    return [
        (one["at_ms"], one["at_ms"] + AGAIN_WITHIN_MS)
        for one in ledger.done
        if one["whom"] == role and one["what"] in ("kill", "freeze", "thaw")
    ]


def _lane(line: Line, ledger: Ledger) -> int:
    return lane_of(shard_of(line.group_id), ledger.lanes)


def _at_ms(stamp: bytes) -> int:
    return round(datetime.fromisoformat(f"{stamp.decode()}+00:00").timestamp() * 1_000)
