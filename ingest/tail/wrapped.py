"""Lines of a growing log that a container runtime wrapped: what `ingest.blocks.Splitter` is for plain ones.

Entries are read by their form (`ingest.archives.envelopes`). A line that was cut is given out when its last part has
come, with the bytes of all its parts; lines behind its first part wait for it, so that a position is always the begin
of an entry before which everything was given out. What is held is bounded. Knows no file and no clock.

A line whose begin stands in one file and whose end in the next one is refused in the first; its end is read as a line
of its own, which no dialect takes for one of a broker unless it looks like a whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import zip_longest

from ingest.archives.envelopes import (
    MAX_ENTRY_BYTES,
    PLAIN,
    Entry,
    Form,
    Refusal,
    container_form,
    has_plain_lines,
)
from ingest.blocks import Cut, Line, Splitter
from ingest.dialects import MAX_LINE_BYTES
from ingest.dialects.text_layout import MARK, whole_end

LOOKED_AT_BYTES = 64 * 1024
"""So much of the begin or the end of a file is looked at, for its form and for a stamp: a container runtime cuts lines
at 16 KiB, and most are of some hundred bytes."""

MAX_SPAN_BYTES = MAX_ENTRY_BYTES
"""A line that was cut may lie over so many bytes of the file; a longer one is refused."""

_EXCERPT_BYTES = 1_024
_TOO_LONG = "line_too_long", f"at most {MAX_LINE_BYTES} bytes, and its parts within {MAX_SPAN_BYTES}"
_DAMAGED = "incomplete_line", "all parts of a line that was cut; an entry between them cannot be read"
_ENDS = "incomplete_line", "a whole line; the file ends in the middle of this one"
_SEVERAL = "unknown_shape", "the text of one line in an entry"


def form_in(head: bytes) -> Form | None:
    """The form that a collector unwraps, by the head of a file; None for plain lines, and all other forms. An id with
    line breaks forges lines of a plain log, never all of them."""
    return None if has_plain_lines(head) else container_form(head)


def texts_in(data: bytes) -> list[bytes]:
    """Lines in some bytes of a log, of which the first and the last may be cut, without what wraps them."""
    data = data.lstrip(b"\0")
    form = form_in(data) or form_in(data.partition(b"\n")[2])
    if form is None:
        return data.splitlines()
    return [found.text for found, *_ in form.read(BytesIO(data)) if isinstance(found, Entry)]


def splitter_of(head: bytes, *, shared: bool) -> Callable[[int], Splitter | EntrySplitter] | None:
    """What cuts a file with this head; None while too little of it is written to tell. `shared`: several logs stand in
    it, so that its lines are to be told apart one by one."""
    if b"\n" not in head.lstrip(b"\0\r\n") and len(head) < LOOKED_AT_BYTES:
        return None
    form = form_in(head) or (PLAIN if shared else None)
    return Splitter if form is None else partial(EntrySplitter, form)


@dataclass(slots=True)
class _Open:
    """A line whose last part has not come."""

    start: int
    end: int
    text: bytes = b""
    refused: tuple[str, str] | None = None


class EntrySplitter:
    """Cuts a stream of bytes into entries, and puts lines together. Held back are at most `MAX_SPAN_BYTES` and an
    entry."""

    def __init__(self, form: Form, position: int = 0) -> None:
        """`position`: where in the file the bytes that are fed begin; always the start of an entry."""
        self.position = position
        """First byte that has not been given out."""
        self._form = form
        self._waiting = 0
        """Bytes of whole entries from `position` on."""
        self._carry = b""
        """The begin of the entry behind them."""
        self._dropped = 0
        """Bytes of it that were dropped because it is over the bound."""
        self._open: dict[str, _Open] = {}
        self._skipped: set[str] = set()
        """Channels in which a refused line goes on."""
        self._lines: list[Line] = []

    @property
    def read_to(self) -> int:
        """Where the next bytes belong."""
        return self.position + self._waiting + self._dropped + len(self._carry)

    def feed(self, data: bytes) -> Cut:
        """Take the next bytes."""
        begin = self.position + self._waiting
        data = self._carry + data
        end = data.rfind(b"\n") + 1
        if self._dropped and end:
            first = data.find(b"\n") + 1
            after = begin + self._dropped + first
            self._refuse(_TOO_LONG, begin, after, b"")
            self._waiting += after - begin
            begin, data, end, self._dropped = after, data[first:], end - first, 0
        for found, start, stop, head in self._form.read(BytesIO(data[:end])):
            if isinstance(found, Refusal):
                self._refuse(found, begin + start, begin + stop, head)
            elif found is not None:
                self._take(found, begin + start, begin + stop)
        self._waiting += end
        self._carry = data[end:]
        if self._dropped or len(self._carry) > MAX_ENTRY_BYTES:
            self._dropped += len(self._carry)
            self._carry = b""
        return self._given()

    def finish(self) -> tuple[bytes, Cut]:
        """No more bytes will come: what is not whole is refused."""
        begin = self.position + self._waiting
        for line in self._open.values():
            self._lines.append(Line(line.text[:_EXCERPT_BYTES], line.start, line.end, line.refused or _ENDS))
        if self.read_to > begin:
            self._lines.append(Line(self._carry[:_EXCERPT_BYTES], begin, self.read_to, _ENDS))
        start, self.position = self.position, self.read_to
        lines = tuple(_in_order(self._lines))
        self._open, self._lines, self._waiting, self._dropped, self._carry = {}, [], 0, 0, b""
        return b"", Cut(start, _joined(lines), lines=lines, ended=True)

    def _refuse(self, why: tuple[str, str], start: int, end: int, head: bytes) -> None:
        """An entry that cannot be read, which may be a part of any line."""
        self._lines.append(Line(head, start, end, (why[0], why[1])))
        for line in self._open.values():
            line.refused = _DAMAGED

    def _take(self, entry: Entry, start: int, end: int) -> None:
        if b"\n" in entry.text:
            self._refuse(_SEVERAL, start, end, entry.text[:_EXCERPT_BYTES])
            return
        if entry.channel in self._skipped:
            if not entry.goes_on:
                self._skipped.remove(entry.channel)
        elif entry.goes_on or entry.channel in self._open:
            line = self._open.setdefault(entry.channel, _Open(start, end))
            line.end = end
            if len(line.text) <= MAX_LINE_BYTES:
                line.text += entry.text
            if not entry.goes_on:
                del self._open[entry.channel]
                self._lines.append(_line(line.text, line.start, end, line.refused))
        else:
            self._lines.append(_line(entry.text, start, end))
        for channel, line in tuple(self._open.items()):
            if end - line.start > MAX_SPAN_BYTES:
                del self._open[channel]
                self._skipped.add(channel)
                self._lines.append(Line(line.text[:_EXCERPT_BYTES], line.start, line.end, _TOO_LONG))

    def _given(self) -> Cut:
        """Give out the lines before the first one that is not whole."""
        start = self.position
        to = min([start + self._waiting, *(line.start for line in self._open.values())])
        lines = _in_order(self._lines)
        ready = [line for line in lines if line.start < to]
        # A request of several lines, as brokers up to 2.7 write it, waits for its last one.
        block = _joined(ready)
        if MARK in block:
            whole = block.count(b"\n", 0, whole_end(block, len(block), MAX_LINE_BYTES))
            if whole < len(ready):
                to = ready[whole].start
                ready = ready[:whole]
                block = _joined(ready)
        self._lines = lines[len(ready) :]
        self._waiting -= to - start
        self.position = to
        return Cut(start, block, lines=tuple(ready))


def _in_order(lines: list[Line]) -> list[Line]:
    """In the order in which they begin. A line of the other channel between two parts of one ends its range: whoever
    reads events takes them by their ranges, which do not overlap."""
    ordered = sorted(lines, key=lambda line: line.start)
    return [
        line if after is None or line.end <= after.start else line._replace(end=after.start)
        for line, after in zip_longest(ordered, ordered[1:])
    ]


def _line(text: bytes, start: int, end: int, refused: tuple[str, str] | None = None) -> Line:
    if refused is None and len(text) > MAX_LINE_BYTES:
        refused = _TOO_LONG
    return Line(text if refused is None else text[:_EXCERPT_BYTES], start, end, refused)


def _joined(lines: list[Line] | tuple[Line, ...]) -> bytes:
    return b"".join(line.text + b"\n" for line in lines)
