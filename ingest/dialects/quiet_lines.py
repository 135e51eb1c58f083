"""Heartbeats and fetches put into columns, a block of lines at a time: no object is kept for each of them.

They are nearly all of a request log. A sender is known by everything that its lines have in common; what is left of a
line is seven numbers. A line that says more than "as before" (another API, an error, a follower's fetch,
anything unusual) is handed back, to be read by itself.

Where lines end, what they begin and end with and when they were stamped is found for all lines of a block at once. A
candidate is then recognised as like a line before it (`line_patterns`), or decoded whole, so that nothing is folded
that is not JSON; and its numbers are reckoned in columns. Text lines are looked at one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import inf
from struct import Struct
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ingest.dialects import request_shapes as shapes
from ingest.dialects.line_patterns import TIMES, Patterns
from ingest.dialects.quiet_columns import SENDERS_MAX, Block, Columns, Folded
from ingest.dialects.quiet_text import HEAD_END, Quiet
from ingest.dialects.request_events import Builder, RequestEvents
from ingest.dialects.request_layout import JSON_AT, LOGGER, LOGGER_BYTES, MARK, MARK_AT, PREFIX
from ingest.dialects.request_text import RequestText
from ingest.dialects.text_layout import HEAD
from ingest.dialects.text_layout import MARK as TEXT_MARK
from ingest.quiet_requests import Numbers, Places, Rows
from ingest.stamps import MILLIS, Stamps
from kardia.events import QUEUED_MS, SILENCE_MS, Event, Kind
from kardia.slowness import SLOW_MS
from kardia.stretches import ARRIVED, BYTES, DECIDED, END, HANDLED, LOGGED, START, WIDTH

_pack = Struct(f"{WIDTH}d").pack
_HEARTBEAT, _FETCH = int(Kind.HEARTBEAT), int(Kind.FETCH)
_BEGIN = MARK + PREFIX
_KINDS = {b'1,"': _FETCH, b"12,": _HEARTBEAT}
"""How a line of either API goes on after that, three bytes into the number."""

_KIND_AT = MARK_AT + len(_BEGIN)
_SHORTEST = _KIND_AT + 3 + LOGGER_BYTES
_SECOND_BYTES = 21
"""`[yyyy-MM-dd HH:mm:ss,`"""
_LONGEST_MS = 1e10
"""As `request_shapes.Duration`."""
_AT_ONCE = 300
_SOURCE_AT = 3
"""Where a key has its source."""
_ZERO = ord("0")


class _Found(NamedTuple):
    """Lines of one kind that say nothing that is told by itself, as far as what was looked at shows."""

    kind: int
    lines: Places
    """Their numbers in the block."""
    times: Numbers
    """Total, queue, local and remote times, a row each."""
    sizes: Sequence[int] | Places
    keys: Sequence[Hashable]
    """What the lines of a sender have in common, and only they."""
    recognised: bool = False
    """Keys are then bytes, see `line_patterns`; else tuples."""


class _Decoded:
    """The same, line by line."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._lines: list[int] = []
        self._times: list[float] = []
        self.sizes: list[int] = []
        self.keys: list[Hashable] = []

    def take(self, lines: Places, parsed: list[Any], chosen: list[bool]) -> list[Any]:
        """Keep where they are and the times of those that are chosen; gives these."""
        if not all(chosen):
            lines = lines[np.array(chosen, bool)]
            parsed = [line for line, good in zip(parsed, chosen, strict=True) if good]
        self._lines.extend(lines.tolist())
        self._times.extend(
            [
                time_ms
                for line in parsed
                for time_ms in (line.total_time_ms, line.request_queue_time_ms, line.local_time_ms, line.remote_time_ms)
            ]
        )
        return parsed

    def ended(self) -> _Found:
        """All of them."""
        times = np.frombuffer(array("d", self._times), np.float64).reshape(-1, TIMES)
        return _Found(self._kind, np.array(self._lines, np.int64), times, self.sizes, self.keys)


class QuietLines:
    """The columns that are being filled."""

    def __init__(
        self,
        single: RequestEvents,
        stamps: Stamps,
        text: RequestText,
        least_bytes: int = 0,
        patterns: Patterns | None = None,
    ) -> None:
        """`single` builds the head of a sender, `text` that of one of text lines. Shorter blocks than `least_bytes`
        are better read line by line. `patterns`: with what lines are recognised; None: all are decoded."""
        self.least_bytes = least_bytes
        self._stamps = stamps
        self._text = text
        self._single: dict[int, tuple[Callable[[bytes], Any], Builder]] = {
            kind: (msgspec.json.Decoder(single.by_api[api][0]).decode, single.by_api[api][1])
            for kind, api in ((_HEARTBEAT, 12), (_FETCH, 1))
        }
        self._columns = Columns()
        self.rows = self._columns.rows
        self._patterns = patterns
        self._known: dict[bytes, int] = {}
        """Key of a recognised line of a source -> number of its sender, until numbers are given anew."""
        self._known_of = ""
        self._keys: dict[bytes, tuple[Hashable, ...]] = {}
        """Key of a recognised line -> the key that the decoded line has; of senders of the source last met."""

    def take(self) -> Rows:
        """What has been folded, in the order of the log. Who sent it is remembered."""
        taken = self._columns.take()
        if not self._columns.number_of:
            self._known = {}
        return taken

    def fold(
        self, data: bytes, source: str, start: int, highest_at_ms: float, not_after_ms: float = inf
    ) -> Folded | None:
        """Fold what can be folded of complete lines, undamaged, that begin at byte `start`; None, and nothing is done,
        if there are text lines among them: `fold_text` is for those."""
        block = Block(data)
        of_kind = _candidates(block)
        quiet = np.sort(np.concatenate(list(of_kind.values())))
        left = np.ones(len(block), bool)
        left[quiet] = False
        rest = block.cut(left)
        if any(TEXT_MARK in line for line, _, _ in rest):
            return None
        at_ms = np.full(len(block), np.nan)
        at_ms[quiet] = self._at_ms(block, quiet)
        at_ms[at_ms > not_after_ms] = np.nan
        parts = [part for kind, lines in of_kind.items() for part in self._found(block, kind, lines, source)]
        folded = self._add(block, parts, at_ms, source, start)
        highest_at_ms, silence = _highest(at_ms[folded], highest_at_ms)
        if len(folded) < len(quiet):
            left[:] = True
            left[folded] = False
            rest = block.cut(left)
        if start:
            rest = [(line, begin + start, end + start) for line, begin, end in rest]
        return Folded(rest, highest_at_ms, silence, len(block))

    def _at_ms(self, block: Block, lines: Places) -> Numbers:
        """Stamps of lines, NaN where there is none. Seconds are looked up in the order of the lines."""
        if not len(lines):
            return np.empty(0)
        seconds = block.bytes_at(lines, 0, _SECOND_BYTES)
        digits = np.frombuffer(block.bytes_at(lines, _SECOND_BYTES, 4).tobytes(), np.uint8).reshape(-1, 4)
        millis = digits[:, :3].astype(np.int64) - _ZERO
        usual = ((millis >= 0) & (millis <= 9)).all(axis=1) & (digits[:, 3] == ord("]"))
        at_ms: Numbers = (millis @ np.array((100, 10, 1))).astype(np.float64)
        firsts = [0, *(np.flatnonzero(seconds[1:] != seconds[:-1]) + 1).tolist()]
        known = self._stamps.seconds
        for first, last in zip(firsts, [*firsts[1:], len(lines)], strict=True):
            line = block.line(int(lines[first]))
            base = known.get(line[:_SECOND_BYTES])
            if base is None and usual[first]:
                self._stamps.at_ms(line)
                base = known.get(line[:_SECOND_BYTES])
            if base is None:
                usual[first:last] = False
            else:
                at_ms[first:last] += base
            for odd in (np.flatnonzero(~usual[first:last]) + first).tolist():
                stamped = self._stamps.at_ms(block.line(int(lines[odd])))
                at_ms[odd] = np.nan if stamped is None else stamped
        return at_ms

    def _found(self, block: Block, kind: int, lines: Places, source: str) -> Iterator[_Found]:
        """What is quiet of these lines, as far as they show: those that are recognised, and of the others those that
        decode."""
        patterns = self._patterns
        recognised = patterns.recognise(kind, block, lines, (JSON_AT, LOGGER_BYTES)) if patterns else None
        if recognised is not None:
            yield _Found(
                kind, lines[recognised.chosen], recognised.times, recognised.sizes, recognised.keys, recognised=True
            )
            lines = lines[~recognised.chosen]
        decoded = _DECODED[kind](block, lines, source)
        if patterns and len(decoded.lines):
            number = int(decoded.lines[-1])
            times, size, key = decoded.times[-1].tolist(), int(decoded.sizes[-1]), decoded.keys[-1]
            patterns.learn(
                kind,
                block.line(number)[JSON_AT:-LOGGER_BYTES],
                lambda one: (
                    one.times[0].tolist() == times
                    and one.sizes[0] == size
                    and _key_of(kind, patterns.sender(one.keys[0]), source) == key
                ),
            )
        yield decoded

    def _add(self, block: Block, parts: Sequence[_Found], at_ms_of: Numbers, source: str, start: int) -> Places:
        """Keep what is quiet of these lines; gives their numbers, in order."""
        lines = np.concatenate([part.lines for part in parts])
        if not len(lines):
            return lines
        keys = [key for part in parts for key in part.keys]
        kinds = np.repeat([part.kind for part in parts], [len(part.lines) for part in parts])
        at_ms = at_ms_of[lines]
        times = np.concatenate([part.times for part in parts]).T
        total, queue, local, remote = times
        delay = queue + local
        delay[kinds == _HEARTBEAT] += remote[kinds == _HEARTBEAT]  # a FETCH waits for data there
        senders: Places = np.concatenate([self._senders(part, source) for part in parts])
        good = (delay < SLOW_MS) & ~np.isnan(at_ms)
        good &= (queue <= QUEUED_MS) | (kinds != _HEARTBEAT)
        if times.min() < 0 or times.max() > _LONGEST_MS:
            good &= ((times >= 0) & (times <= _LONGEST_MS)).all(axis=0)
        strangers = np.flatnonzero((senders < 0) & good)
        for place in strangers[np.argsort(lines[strangers])].tolist():
            number, kind = int(lines[place]), int(kinds[place])
            senders[place] = self._begin(block, number, keys[place], kind, at_ms[place], source, start)
        good &= senders >= 0
        arrived = at_ms - total
        handled = arrived + queue + local
        rows = np.empty((len(lines), WIDTH))
        rows[:, START] = block.begins[lines] + start
        rows[:, END] = block.ends[lines] + (start + 1)
        rows[:, LOGGED] = at_ms
        rows[:, ARRIVED] = arrived
        rows[:, HANDLED] = handled
        rows[:, DECIDED] = handled + remote
        rows[:, BYTES] = np.concatenate([part.sizes for part in parts])
        in_order = np.argsort(lines)
        if not good.all():
            in_order = in_order[good[in_order]]
        self._columns.add(senders[in_order], rows[in_order])
        return lines[in_order]

    def _senders(self, part: _Found, source: str) -> Places:
        """Numbers of senders, -1 of who was not met before."""
        if source != self._known_of:
            self._known, self._known_of = {}, source
        known: dict[Any, int] = self._known if part.recognised else self._columns.number_of
        get = known.get
        return np.array([get(key, -1) for key in part.keys], np.int64)

    def _begin(self, block: Block, number: int, key: Hashable, kind: int, at_ms: float, source: str, start: int) -> int:
        """Number of a sender that is met for the first time, by this line; -1 if the line says no event."""
        if isinstance(key, bytes) and self._patterns is not None:
            sender = self._decoded_key(key, kind, source, self._patterns)
            begun = self._begin(block, number, sender, kind, at_ms, source, start)
            if begun >= 0:
                self._known[key] = begun
            return begun
        known = self._columns.number_of.get(key)
        if known is not None:
            return known
        decode, build = self._single[kind]
        begin, end = int(block.begins[number]) + start, int(block.ends[number]) + start + 1
        try:
            head = build(decode(block.line(number)[JSON_AT:-LOGGER_BYTES]), source, begin, end, float(at_ms))
        except (msgspec.DecodeError, RecursionError, AttributeError):
            return -1
        return self._columns.begin(key, head) if isinstance(head, Event) else -1

    def _decoded_key(self, key: bytes, kind: int, source: str, patterns: Patterns) -> tuple[Hashable, ...]:
        """The key of the decoded line, by which a sender is known whose first line was decoded."""
        known = self._keys.get(key)
        if known is None or known[_SOURCE_AT] != source:
            if len(self._keys) >= SENDERS_MAX:
                self._keys.clear()
            known = self._keys[key] = _key_of(kind, patterns.sender(key), source)
        return known

    # --- text lines --------------------------------------------------------------------------------------------------

    def fold_text(
        self, lines: Iterable[bytes], source: str, start: int, highest_at_ms: float, not_after_ms: float = inf
    ) -> Folded:
        """The same of the text lines among these; all others are left."""
        rest: list[tuple[bytes, int, int]] = []
        senders: list[int] = []
        rows = bytearray()
        silence = False
        seconds, at_ms_of = self._stamps.seconds, self._stamps.at_ms
        read_text = self._text.quiet.read
        end = start
        for line in lines:
            begin, end = end, end + len(line) + 1
            if line[JSON_AT:HEAD_END] != HEAD or not line.isascii():
                rest.append((line, begin, end))
                continue
            at_ms = seconds.get(line[:_SECOND_BYTES])
            millis = MILLIS.get(line[_SECOND_BYTES : _SECOND_BYTES + 4])
            at_ms = at_ms_of(line) if at_ms is None or millis is None else at_ms + millis
            quiet = read_text(line, source)
            sender = -1
            if at_ms is not None and quiet is not None and at_ms <= not_after_ms:
                sender = self._add_text(quiet, line, source, begin, end, at_ms, rows)
            if at_ms is None or sender < 0:
                rest.append((line, begin, end))
                continue
            senders.append(sender)
            if at_ms > highest_at_ms:
                silence = silence or at_ms - highest_at_ms >= SILENCE_MS
                highest_at_ms = at_ms
        if senders:
            self._columns.add(np.array(senders, np.int64), np.frombuffer(rows, np.float64).reshape(-1, WIDTH))
        return Folded(rest, highest_at_ms, silence, len(rest) + len(senders))

    def _add_text(
        self, quiet: Quiet, line: bytes, source: str, start: int, end: int, at_ms: float, rows: bytearray
    ) -> int:
        """Add the row of a text line; gives its sender, -1 if it is to be read by itself."""
        kind, key, total_ms, queue_ms, local_ms, after_ms, size = quiet
        arrived = at_ms - total_ms
        handled = arrived + queue_ms + local_ms
        waited_ms = total_ms - queue_ms - local_ms - after_ms
        decided = handled + waited_ms if waited_ms > 0.0 else handled
        if queue_ms + local_ms >= SLOW_MS or (kind == _HEARTBEAT and (total_ms >= SLOW_MS or queue_ms > QUEUED_MS)):
            return -1
        sender = self._columns.number_of.get(key)
        if sender is None:
            head = self._text.read(line, JSON_AT, source, start, end, at_ms)
            if not isinstance(head, Event):
                return -1
            sender = self._columns.begin(key, head)
        rows += _pack(start, end, at_ms, arrived, handled, decided, size)
        return sender


# --- what JSON lines say ---------------------------------------------------------------------------------------------

_decode_heartbeat = msgspec.json.Decoder(shapes.QuietHeartbeat).decode
_decode_fetch = msgspec.json.Decoder(shapes.QuietFetch).decode


def _candidates(block: Block) -> dict[int, Places]:
    """Lines that may be folded, by how they begin and end: of either API, in the shipped layout, ASCII."""
    lines = np.flatnonzero(block.ends - block.begins >= _SHORTEST)
    begin_alike = block.bytes_at(lines, MARK_AT, len(_BEGIN)) == _BEGIN
    lines = lines[begin_alike & (block.bytes_before_end(lines, LOGGER_BYTES) == LOGGER)]
    if not block.data.isascii():
        high = np.flatnonzero(np.frombuffer(block.data, np.uint8) > 0x7F)
        lines = np.setdiff1d(lines, np.searchsorted(block.ends, high))
    goes_on = block.bytes_at(lines, _KIND_AT, 3)
    return {kind: lines[goes_on == begin] for begin, kind in _KINDS.items()}


def _decoded(block: Block, lines: Places, decode: Callable[[memoryview], Any]) -> tuple[Places, list[Any]]:
    """Lines that are what they seem to be, and what they say."""
    data = memoryview(block.data)  # a tenth of what decoding takes is the copy of a kilobyte
    begins, ends = (block.begins[lines] + JSON_AT).tolist(), (block.ends[lines] - LOGGER_BYTES).tolist()
    try:
        return lines, [decode(data[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    except (msgspec.DecodeError, RecursionError):
        pass
    good: list[int] = []
    parsed: list[Any] = []
    for place, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        try:
            parsed.append(decode(data[begin:end]))
        except (msgspec.DecodeError, RecursionError):
            continue  # it is read by itself, and refused with the reason
        good.append(place)
    return lines[good], parsed


def _some(lines: Places) -> Iterator[Places]:
    """Few lines at a time, so that what was decoded of them is still in the processor's cache when it is looked at."""
    return (lines[at : at + _AT_ONCE] for at in range(0, len(lines), _AT_ONCE))


def _fetches(block: Block, lines: Places, source: str) -> _Found:
    """Fetches of consumers that were answered without error."""
    found = _Decoded(_FETCH)
    for some in _some(lines):
        numbers, parsed = _decoded(block, some, _decode_fetch)
        quiet = [
            line.response.__class__ is shapes.QuietFetchResponse
            and (request := line.request).__class__ is shapes.FetchRequest
            and line.response.error_code == 0
            and request.replica_id < 0
            and request.replica_state is None
            for line in parsed
        ]
        parsed = found.take(numbers, parsed, quiet)
        found.keys.extend(
            [
                (line.connection, (header := line.request_header).client_id, header.request_api_version, source)
                for line in parsed
            ]
        )
        found.sizes.extend([_fetched_bytes(line.response) if line.response.responses else 0 for line in parsed])
    return found.ended()


def _fetched_bytes(response: shapes.QuietFetchResponse) -> int:
    """As `request_events.fetched_bytes`."""
    size = 0
    for topic in response.responses:
        for partition in topic.partitions or topic.partition_responses or ():
            size += partition.records_size_in_bytes + partition.record_set_size_in_bytes
    return size


def _heartbeats(block: Block, lines: Places, source: str) -> _Found:
    """Heartbeats that were answered without error and without making the client wait."""
    found = _Decoded(_HEARTBEAT)
    for some in _some(lines):
        numbers, parsed = _decoded(block, some, _decode_heartbeat)
        quiet = [
            line.response.__class__ is shapes.ErrorOnly
            and line.request.__class__ is shapes.HeartbeatRequest
            and line.response.error_code == 0
            and not line.throttle_time_ms
            for line in parsed
        ]
        parsed = found.take(numbers, parsed, quiet)
        # A connection announces its software once, so that needs no place in the key.
        found.keys.extend(
            [
                (
                    line.connection,
                    (header := line.request_header).client_id,
                    header.request_api_version,
                    source,
                    (request := line.request).member_id,
                    request.generation_id,
                    request.group_id,
                    request.group_instance_id,
                )
                for line in parsed
            ]
        )
        found.sizes.extend([0] * len(parsed))
    return found.ended()


_DECODED = {_FETCH: _fetches, _HEARTBEAT: _heartbeats}


def _key_of(kind: int, sender: dict[str, str], source: str) -> tuple[Hashable, ...]:
    """The key that the decoded line has, of what was recognised."""
    get = sender.get
    key = (get("connection"), get("clientId"), int(sender["requestApiVersion"]), source)
    if kind == _FETCH:
        return key
    return (*key, get("memberId"), int(sender["generationId"]), get("groupId"), get("groupInstanceId"))


def _highest(at_ms: Numbers, highest_at_ms: float) -> tuple[float, bool]:
    """Highest stamp after these, and whether any of them is `SILENCE_MS` above all before it."""
    highest = np.maximum.accumulate(np.concatenate(([highest_at_ms], at_ms)))
    return float(highest[-1]), bool((np.diff(highest) >= SILENCE_MS).any())
