"""Dialects: parsers, one per kind of log. Bytes of a line in, an event or the reason for ignoring it out.

A new form of log is a new file here; where forms are told apart is `request_json` (by the first word of a line), and
`request_events` makes the events of both. A dialect keeps no state that changes what a line means, except the order
rule of `ingest.stamps`. It never raises for a line, whatever its bytes are: what cannot be understood becomes a
REJECTED event, what says nothing about groups a reason from `kardia.events.IGNORE_REASONS`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kardia.events import ALL_SHARDS, Event, Kind
from kardia.slowness import Windows

if TYPE_CHECKING:
    from ingest.dialects.quiet_lines import QuietLines

Reading = Event | list[Event] | str
"""What a line says: an event (also a rejection), several events (one request about several groups), or the reason why
it is ignored."""

MAX_LINE_BYTES = 1024 * 1024
"""Longest line read, the newline not counted. FETCH lines grow with partitions (about 0.35 kB each way): 1 MiB holds
about 1,500 of them, a telemetry push is bounded by `telemetry.max.bytes` (1 MiB before base64, a few kB in practice).
Vector's default is 100 KiB, which cuts FETCH lines of wide consumers."""

EXCERPT_CHARS = 200
"""Characters of a rejected line that are kept."""


UNNAMED = "broker"
"""Name of a broker of which no line tells one. With its node id behind it (`broker-1`), that of one of which server.log
alone is read."""


def is_numbered(broker: str) -> bool:
    """Whether this is the name of a broker by its node id."""
    name, _, number = broker.rpartition("-")
    return name == UNNAMED and number.isdecimal()


class Asked(IntEnum):
    """Who asks on a listener, as far as one line shows it; a higher one names the broker better."""

    BY_ANYBODY = 0
    """It may be the listener of the controllers, which a broker that is a controller as well has beside its own."""
    BY_BROKERS = 1
    BY_CLIENTS = 2


class Listener(NamedTuple):
    """What names a broker: one of its listeners, or in server.log its node id."""

    address: str
    """`host:port` of the broker's end of a connection, or as `is_numbered`."""
    asked: Asked


def better(one: Listener | None, other: Listener | None) -> Listener | None:
    """Which of two listeners names the broker: the one that clients ask on; among equals the first."""
    if one is None or (other is not None and other.asked > one.asked):
        return other
    return one


class Dialect(Protocol):
    """A plug-in for one kind of log."""

    stream: str
    """Middle part of `Event.source`: request or server."""

    def read(self, line: bytes, source: str, start: int, end: int) -> Reading:
        """Read one line without its line end; `start` and `end` are its bytes in the file."""
        ...

    @property
    def quiet(self) -> QuietLines | None:
        """Folds lines of a whole block before the rest is read one by one; None if the dialect does not fold."""
        ...

    @property
    def slow(self) -> Windows | None:
        """Slow requests among the lines read; who takes them empties it. None if the log does not tell."""
        ...

    def stamp_ms(self, line: bytes) -> float | None:
        """Instant of the line's own stamp."""
        ...

    def broker_of(self, line: bytes) -> Listener | None:
        """What names the broker that wrote the line, None when the line does not tell."""
        ...


MILLIS_NEEDED = (
    "a stamp with milliseconds: what is told is told to the millisecond, and which of two lines of a second was first "
    "says who began it; give the broker's appender a pattern with %d{ISO8601}, no option replaces that"
)
"""What is expected where a layout writes whole seconds. They are not read with a bound of a second: a session and a
join phase are judged by tens of milliseconds, in both logs together."""


def rejection(reason: str, expected: str, line: bytes, source: str, start: int, end: int, at_ms: float | None) -> Event:
    """REJECTED event of a line: reason from the closed list, bounded and escaped excerpt."""
    at = 0.0 if at_ms is None else at_ms
    detail = {"reason": reason, "excerpt": excerpt(line), "expected": expected}
    return Event(Kind.REJECTED, ALL_SHARDS, source, start, end, at, at, at, at, detail=detail)


def excerpt(line: bytes) -> str:
    """At most `EXCERPT_CHARS` characters with everything a terminal would act on escaped."""
    text = line[: EXCERPT_CHARS * 4].decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text[:EXCERPT_CHARS]
    escaped: list[str] = []
    room = EXCERPT_CHARS
    for char in text:
        piece = char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        room -= len(piece)
        if room < 0:
            break
        escaped.append(piece)
    return "".join(escaped)
