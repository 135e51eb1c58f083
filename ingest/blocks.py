"""Cutting bytes into blocks of complete lines, and what reading a block gives: events by lane, counts by reason.

The inner loop of both readers, live (`ingest.tail.tailer`) and offline (`ingest.archives.ranges`). A block is bytes
that end with a line end; positions are byte positions in the file. Damage is met here: CR before the line end is
trimmed, a run of NUL bytes before a line (a writer that kept its offset over a truncate) is skipped and counted, a byte
order mark at the head of the file is skipped, a line over `MAX_LINE_BYTES` is rejected with its length. A request of
several lines (a broker that does not escape line breaks, up to 2.7) is one line here, and never cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from math import inf
from typing import Any, NamedTuple

from ingest.dialects import MAX_LINE_BYTES, Dialect, rejection
from ingest.dialects.quiet_columns import Folded
from ingest.dialects.request_layout import LOGGER, MARK_AT
from ingest.dialects.request_layout import MARK as REQUEST_MARK
from ingest.dialects.text_layout import MARK, whole, whole_end
from ingest.layouts.recogniser import FRONT_BYTES
from ingest.quiet_requests import NONE, Rows
from ingest.router import UNROUTED, ClientKey, Directory
from kardia import slowness
from kardia.events import ALL_SHARDS, SILENCE_MS, Event, Kind
from kardia.slowness import Windows

AHEAD_MS = 5_000.0
"""A live line may be stamped that far beyond the wall clock of the collector: less than the shortest session that
brokers allow by default (6 s, `group.min.session.timeout.ms`), so that no line within it can end one. Clocks that are
kept by NTP differ by milliseconds. A line beyond it is `future_timestamp`."""

HELD_AHEAD_MS = 60_000.0
"""Lines at the end of a log that are stamped further ahead than that by no more than this wait until the clock has come
to them: it is the clock of this machine that is behind, and no line is lost by it. A line of a whole hour ahead is of a
wrong zone, or of somebody who wants the log to stand still."""

FUTURE = "future_timestamp"
"""Reason of a line or record beyond the wall clock and its allowance."""

_BOM = b"\xef\xbb\xbf"
_LONG_HEAD_BYTES = 64 * 1024
_REQUEST_END = LOGGER + b"\n"
_FETCH, _TELEMETRY = UNROUTED
_REJECTED = int(Kind.REJECTED)
_OUTSIDE = (_REJECTED, _TELEMETRY)
"""Kinds that the inner loop hands over, because they are rare."""


def of_the_future(text: bytes, source: str, start: int, end: int, stamped_ms: float, wall_ms: float) -> Event:
    """The refusal of a line or record that is stamped beyond the wall clock, dated with that clock."""
    ahead_s = (stamped_ms - wall_ms) / 1000
    expected = f"a stamp at most {AHEAD_MS / 1000:.0f} s beyond the wall clock; this one is {ahead_s:.0f} s"
    return rejection(FUTURE, expected, text, source, start, end, wall_ms)


@dataclass(slots=True)
class Gathered:
    """Where the events of blocks go. `unrouted` holds what names no group, by client, until a directory routes it."""

    lanes: int
    directory: Directory
    events: list[list[Event]] = field(default_factory=list)
    unrouted: dict[ClientKey, list[Event]] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    nul_bytes: int = 0
    first_at_ms: float | None = None
    """Stamp of the first line that has one."""
    last_at_ms: float | None = None
    """Highest stamp seen."""
    silences: list[tuple[float, float]] = field(default_factory=list)
    """Between two lines nothing was logged for `SILENCE_MS` or longer: from, to."""
    slow: Windows = field(default_factory=dict)
    not_after_ms: float = inf
    """Later stamps are of the future. A replay has no clock: then none is."""
    ahead_ms_max: float = 0.0
    """How far the furthest refused line was beyond the wall clock."""
    quiet: Rows = NONE
    """What was folded; fetches name no group."""

    def __post_init__(self) -> None:
        """One list per lane."""
        if not self.events:
            self.events = [[] for _ in range(self.lanes)]

    def size(self) -> int:
        """Events held."""
        return sum(map(len, self.events)) + sum(map(len, self.unrouted.values()))

    def add(self, event: Event) -> None:
        """Put one event where it belongs."""
        kind = event[0]
        if kind in UNROUTED and event[1] == ALL_SHARDS:
            client = (event[12], event[13])
            waiting = self.unrouted.get(client)
            if waiting is None:
                self.unrouted[client] = [event]
            else:
                waiting.append(event)
        elif kind == _REJECTED:
            self.rejected[(event.detail or {})["reason"]] += 1
            self.events[0].append(event)
        elif event[1] == ALL_SHARDS:
            for lane in self.events:
                lane.append(event)
        else:
            self.events[event[1] % self.lanes].append(event)
            self.directory.learn(event)

    def add_all(self, events: Iterable[Event]) -> None:
        """Put those of one line where they belong."""
        for event in events:
            self.add(event)

    def signs(self, alive_to_ms: float = 0.0) -> dict[str, Any]:
        """When the log was alive, for a TICK; `alive_to_ms` is the last line before what is gathered here."""
        signs: dict[str, Any] = {"last_line_at_ms": max(alive_to_ms, self.last_at_ms or 0.0)}
        if self.first_at_ms is not None:
            signs["first_line_at_ms"] = self.first_at_ms
        if self.silences:
            signs["silences"] = [list(pair) for pair in self.silences]
        if self.slow:
            signs["slow"] = list(self.slow.values())
        return signs

    def future(self, line: bytes, source: str, start: int, end: int, logged_at_ms: float) -> None:
        """Refuse a line of the future. It is dated with the wall clock: its own stamp would move whoever reads it."""
        wall_ms = self.not_after_ms - AHEAD_MS
        self.ahead_ms_max = max(self.ahead_ms_max, logged_at_ms - wall_ms)
        self.add(of_the_future(line, source, start, end, logged_at_ms, wall_ms))

    def seen_at(self, at_ms: float) -> None:
        """A line with this stamp has been read."""
        if self.first_at_ms is None:
            self.first_at_ms = at_ms
        if self.last_at_ms is None or at_ms > self.last_at_ms:
            self.last_at_ms = at_ms


def read_block(dialect: Dialect, block: bytes, source: str, start: int, gathered: Gathered) -> None:
    """Read a block of complete lines that begins at byte `start` of the file."""
    if not block:
        return
    before = gathered.last_at_ms or 0.0
    lines, folded = _folded(dialect, block, source, start, gathered)
    _read_folded(dialect, block, lines, folded, source, gathered, before)


def _read_folded(
    dialect: Dialect,
    block: bytes,
    lines: list[bytes] | None,
    folded: Folded,
    source: str,
    gathered: Gathered,
    before: float,
) -> None:
    """Read what is to be read line by line. `before`: the highest stamp until then."""
    rest, highest, quiet, count = folded
    gathered.lines += count
    read, add, ignored = dialect.read, gathered.add, gathered.ignored
    lanes, events, unrouted, learn = gathered.lanes, gathered.events, gathered.unrouted, gathered.directory.learn
    not_after = gathered.not_after_ms
    for line, begin, at in rest:
        try:
            reading = read(line, source, begin, at)
        except Exception as error:  # a dialect never raises; if it does, the line is passed, or it is met for ever
            expected = f"a line that Kardia can read; a defect, please report it: {error!r}"[:400]
            reading = rejection("not_applied", expected, line, source, begin, at, None)
        if isinstance(reading, str):
            ignored[reading] += 1
        elif isinstance(reading, Event):
            kind = reading[0]
            logged_at = reading[5]
            if logged_at > highest:
                if logged_at > not_after:
                    gathered.future(line, source, begin, at, logged_at)
                    continue
                quiet = quiet or logged_at - highest >= SILENCE_MS
                highest = logged_at
            if kind == _FETCH:
                client = (reading[12], reading[13])
                waiting = unrouted.get(client)
                if waiting is None:
                    unrouted[client] = [reading]
                else:
                    waiting.append(reading)
            elif kind in _OUTSIDE or reading[1] == ALL_SHARDS:
                add(reading)
            else:
                events[reading[1] % lanes].append(reading)
                learn(reading)
        elif reading and reading[0].logged_at_ms > not_after:
            gathered.future(line, source, begin, at, reading[0].logged_at_ms)
        else:
            gathered.add_all(reading)
    _note_slow(dialect, gathered)
    _note_stamps(dialect, block, lines, gathered, highest)
    if quiet or (gathered.last_at_ms or 0.0) - highest >= SILENCE_MS:
        _note_silences(dialect, _lines_of(block) if lines is None else lines, gathered, before)


def _note_slow(dialect: Dialect, gathered: Gathered) -> None:
    """Take over when the broker was slow, by the lines that the dialect has read."""
    if not dialect.slow:
        return
    for window in dialect.slow.values():
        if window[slowness.FROM] <= gathered.not_after_ms:
            slowness.note(gathered.slow, window)
    dialect.slow.clear()


def _folded(
    dialect: Dialect, block: bytes, source: str, start: int, gathered: Gathered
) -> tuple[list[bytes] | None, Folded]:
    """What is to be read line by line, which is everything in a block that is damaged and where the dialect folds
    nothing; and the lines, if they had to be cut."""
    before, fold = gathered.last_at_ms or 0.0, dialect.quiet
    damaged = b"\0" in block or _has_crlf(block) or (start == 0 and block.startswith(_BOM)) or _has_too_long(block)
    if fold is not None and not damaged and len(block) >= fold.least_bytes:
        folded = fold.fold(block, source, start, before, gathered.not_after_ms)
        if folded is not None:
            return None, folded
    lines = _lines_of(block)
    count = len(lines)
    if MARK in block:
        lines = _with_continuations(lines, gathered)
        damaged = damaged or max(map(len, lines)) > MAX_LINE_BYTES
    if damaged:
        return lines, Folded(_mended(dialect, lines, source, start, gathered), before, silence=False, lines=count)
    if fold is None or len(block) < fold.least_bytes:
        return lines, Folded(_placed(lines, start), before, silence=False, lines=count)
    return lines, fold.fold_text(lines, source, start, before, gathered.not_after_ms)._replace(lines=count)


def _lines_of(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    lines.pop()  # what stands after the last line end: nothing
    return lines


def _has_crlf(block: bytes) -> bool:
    """One byte is looked for many times faster than two."""
    return b"\r" in block and b"\r\n" in block


def _has_too_long(block: bytes) -> bool:
    """Whether a line is over the bound: one that is lies over a multiple of it."""
    return any(
        block.find(b"\n", at) - block.rfind(b"\n", 0, at) - 1 > MAX_LINE_BYTES
        for at in range(MAX_LINE_BYTES, len(block), MAX_LINE_BYTES)
    )


def _with_continuations(lines: list[bytes], gathered: Gathered) -> list[bytes]:
    """Lines of a text log, each with those that go on with it; these are counted as ignored."""
    joined = whole(lines)
    if len(joined) < len(lines):
        gathered.ignored["continuation"] += len(lines) - len(joined)
    return joined


def _placed(lines: list[bytes], start: int) -> Iterable[tuple[bytes, int, int]]:
    """Lines with their start and end in the file."""
    ends = list(accumulate(map(len, lines), lambda end, length: end + length + 1, initial=start))
    return zip(lines, ends, ends[1:], strict=False)


def _mended(
    dialect: Dialect, lines: list[bytes], source: str, start: int, gathered: Gathered
) -> Iterator[tuple[bytes, int, int]]:
    """The same without their damage; what is too long is rejected here."""
    for raw, begin, end in _placed(lines, start):
        line, at = _repaired(raw, begin, gathered)
        if len(line) > MAX_LINE_BYTES:
            gathered.add(too_long(dialect, line, len(line), source, at, end))
        else:
            yield line, at, end


def _note_silences(dialect: Dialect, lines: list[bytes], gathered: Gathered, before: float) -> None:
    """Events were far apart: look at every line, because ignored ones show as well that the log was alive."""
    last = before
    for line in lines:
        at_ms = dialect.stamp_ms(line)
        if at_ms is not None and last < at_ms <= gathered.not_after_ms:
            if last and at_ms - last >= SILENCE_MS:
                gathered.silences.append((last, at_ms))
            last = at_ms


def _note_stamps(dialect: Dialect, block: bytes, lines: list[bytes] | None, gathered: Gathered, highest: float) -> None:
    """Stamps of the block: ignored lines show as well that the log is alive, so its last stamped line counts."""
    if gathered.first_at_ms is None:
        _note_first(dialect, _forwards(block) if lines is None else lines, gathered)
    _note_first(dialect, _backwards(block) if lines is None else reversed(lines), gathered)
    if highest:
        gathered.seen_at(highest)


def _note_first(dialect: Dialect, lines: Iterable[bytes], gathered: Gathered) -> None:
    """The stamp of the first of these lines that has one."""
    for line in lines:
        at_ms = dialect.stamp_ms(line)
        if at_ms is not None and at_ms <= gathered.not_after_ms:
            gathered.seen_at(at_ms)
            break


def _forwards(block: bytes) -> Iterator[bytes]:
    begin = 0
    while begin < len(block):
        end = block.index(b"\n", begin)
        yield block[begin:end]
        begin = end + 1


def _backwards(block: bytes) -> Iterator[bytes]:
    end = len(block) - 1
    while end >= 0:
        begin = block.rfind(b"\n", 0, end) + 1
        yield block[begin:end]
        end = begin - 1


def _repaired(raw: bytes, begin: int, gathered: Gathered) -> tuple[bytes, int]:
    line = raw.removesuffix(b"\r")
    if line[:1] == b"\0":
        bare = line.lstrip(b"\0")
        gathered.nul_bytes += len(line) - len(bare)
        begin += len(line) - len(bare)
        line = bare
    if begin == 0 and line.startswith(_BOM):
        line = line[len(_BOM) :]
    return line, begin


def too_long(dialect: Dialect, head: bytes, length: int, source: str, start: int, end: int) -> Event:
    """Rejection of a line over the bound; `head` is at least its beginning."""
    expected = f"at most {MAX_LINE_BYTES} bytes; this line has {length}"
    return rejection("line_too_long", expected, head, source, start, end, dialect.stamp_ms(head))


class Line(NamedTuple):
    """A line that was wrapped: its text, and the bytes of all its entries in the file."""

    text: bytes
    start: int
    end: int
    refused: tuple[str, str] | None = None
    """Why it cannot be used: reason, and what was expected."""


class Cut(NamedTuple):
    """What `Splitter.feed` gives: complete lines from `start` on, and a line over the bound that ended before them."""

    start: int
    block: bytes
    long_start: int = -1
    long_end: int = -1
    long_head: bytes = b""
    nul_bytes: int = 0
    """Of a hole behind the lines, which is skipped."""
    lines: tuple[Line, ...] = ()
    """Of a wrapped log: `block` has their texts, which say nothing of their places."""
    ended: bool = False
    """Of a wrapped log: the file will not grow."""


class Splitter:
    """Cuts a stream of bytes at its line ends, in bounded memory: at most one line of `MAX_LINE_BYTES` is held back."""

    __slots__ = ("_long_head", "carry", "position", "skipping")

    def __init__(self, position: int = 0) -> None:
        """`position`: where in the file the bytes that are fed begin; always the start of a line."""
        self.position = position
        """First byte that has not been given out."""
        self.carry = b""
        """Bytes of the line at `position` that have come so far."""
        self.skipping = 0
        """Bytes of the line at `position` that were dropped because it is over the bound."""
        self._long_head = b""

    @property
    def read_to(self) -> int:
        """Where the next bytes belong."""
        return self.position + len(self.carry) + self.skipping

    def feed(self, data: bytes) -> Cut:
        """Take the next bytes."""
        long: tuple[int, int, bytes] = (-1, -1, b"")
        end = data.rfind(b"\n") + 1
        if not self.skipping and data.endswith(_REQUEST_END, 0, end):  # as `whole_end` says, without a copy of it all
            block, data = b"".join((self.carry, memoryview(data)[:end])), data[end:]
            return self._held_back(block, data, long)
        data = self.carry + data if self.carry else data
        if self.skipping:
            line_end = data.find(b"\n") + 1
            if not line_end:
                self.skipping += len(data)
                return Cut(self.position, b"")
            long = (self.position, self.position + self.skipping + line_end, self._long_head)
            self.position, self.skipping = long[1], 0
            data = data[line_end:]
        cut = whole_end(data, data.rfind(b"\n") + 1, MAX_LINE_BYTES)
        return self._held_back(data[:cut], data[cut:], long)

    def _held_back(self, block: bytes, rest: bytes, long: tuple[int, int, bytes]) -> Cut:
        """Give a block out, and hold back what is behind it."""
        start, hole = self.position, 0
        self.position += len(block)
        self.carry = rest
        if len(self.carry) > MAX_LINE_BYTES and self.carry[:1] == b"\0":
            # A hole may be as long as the file was: it is no part of the line behind it.
            bare = self.carry.lstrip(b"\0")
            hole = len(self.carry) - len(bare)
            self.carry = bare
            self.position += hole
        if len(self.carry) > MAX_LINE_BYTES:
            self.skipping, self._long_head, self.carry = len(self.carry), self.carry[:_LONG_HEAD_BYTES], b""
        return Cut(start, block, *long, hole)

    def finish(self) -> tuple[bytes, Cut]:
        """No more bytes will come: the incomplete line at the end, or the line over the bound that never ended."""
        carry, start = self.carry, self.position
        self.position = self.read_to
        cut = Cut(start, b"", start, self.position, self._long_head) if self.skipping else Cut(start, b"")
        self.carry, self.skipping = b"", 0
        return carry, cut


def held_from(dialect: Dialect, block: bytes, not_after_ms: float) -> int:
    """Where the lines at the end of a block begin that are to wait, because all of them are stamped a little beyond
    `not_after_ms`; the length of the block if there are none. A line that others follow which are not is none of them.
    """
    held, end = len(block), len(block)
    while end > 0:
        begin = block.rfind(b"\n", 0, end - 1) + 1
        at_ms = dialect.stamp_ms(block[begin:end])
        if at_ms is not None:
            if not not_after_ms < at_ms <= not_after_ms + HELD_AHEAD_MS:
                break
            held = begin
        end = begin
    return held


def read_cut(dialect: Dialect, cut: Cut, source: str, gathered: Gathered) -> None:
    """Read what `Splitter.feed` gave."""
    gathered.nul_bytes += cut.nul_bytes
    if cut.long_end >= 0:
        gathered.lines += 1
        length = cut.long_end - cut.long_start - 1
        gathered.add(too_long(dialect, cut.long_head, length, source, cut.long_start, cut.long_end))
    if cut.lines:
        _read_unwrapped(dialect, cut.lines, source, gathered)
    elif cut.block:
        read_block(dialect, cut.block, source, cut.start, gathered)


def _read_unwrapped(dialect: Dialect, lines: Iterable[Line], source: str, gathered: Gathered) -> None:
    """Read lines that were wrapped, in the order in which they stand, those that cannot be used among the others."""
    for is_refused, run in groupby(lines, lambda line: line.refused is not None):
        if not is_refused:
            _read_run(dialect, list(run), source, gathered)
            continue
        for line in run:
            gathered.lines += 1
            at_ms = dialect.stamp_ms(line.text)
            reason, expected = line.refused or ("", "")
            at_ms = gathered.last_at_ms if at_ms is None or at_ms > gathered.not_after_ms else at_ms
            gathered.add(rejection(reason, expected, line.text, source, line.start, line.end, at_ms))


def _read_run(dialect: Dialect, lines: list[Line], source: str, gathered: Gathered) -> None:
    before, number = gathered.last_at_ms or 0.0, 0
    own: list[Line] = []
    for text in _with_continuations([line.text for line in lines], gathered):
        last = number + text.count(b"\n")
        if _is_of(dialect.stream, text):
            own.append(Line(text, lines[number].start, lines[last].end))
        else:
            gathered.ignored["other_logger"] += 1
        number = last + 1
    texts = [line.text for line in own]
    folded = Folded(_within_bound(dialect, own, source, gathered), before, silence=False, lines=len(lines))
    _read_folded(dialect, b"", texts, folded, source, gathered, before)


def _is_of(stream: str, text: bytes) -> bool:
    """Whether a line of an output that holds several logs may be of this one: a log whose lines have stopped is not
    alive because those of another one go on. What only looks like a request its dialect tells."""
    if stream == "request":
        return text.find(REQUEST_MARK, 0, FRONT_BYTES) >= 0
    return not any(text.startswith(REQUEST_MARK, at) for at in (MARK_AT, MARK_AT - len(b"[]")))


def _within_bound(
    dialect: Dialect, lines: list[Line], source: str, gathered: Gathered
) -> Iterator[tuple[bytes, int, int]]:
    for text, start, end, _ in lines:
        if len(text) > MAX_LINE_BYTES:
            gathered.add(too_long(dialect, text, len(text), source, start, end))
        else:
            yield text, start, end


def held_lines(dialect: Dialect, lines: tuple[Line, ...], not_after_ms: float) -> int:
    """The same as `held_from` for lines that were wrapped: the number of the first of them."""
    held = len(lines)
    for number in range(len(lines) - 1, -1, -1):
        at_ms = dialect.stamp_ms(lines[number].text)
        if at_ms is not None:
            if not not_after_ms < at_ms <= not_after_ms + HELD_AHEAD_MS:
                break
            held = number
    return held


def read_last(dialect: Dialect, line: bytes, source: str, start: int, gathered: Gathered) -> None:
    """Read the last line of a file that has no line end: a line if it can be read as one, else `incomplete_line`."""
    before = len(gathered.events[0])
    read_block(dialect, line + b"\n", source, start, gathered)
    gathered.events[0][before:] = [_incomplete(event, gathered) for event in gathered.events[0][before:]]


def _incomplete(event: Event, gathered: Gathered) -> Event:
    if event.kind != _REJECTED:
        return event
    detail = dict(event.detail or {})
    gathered.rejected.subtract((detail["reason"],))
    gathered.rejected = +gathered.rejected
    gathered.rejected["incomplete_line"] += 1
    detail.update(reason="incomplete_line", expected="a whole line; the file ends in the middle of this one")
    return event._replace(detail=detail)
