"""A line of a broker in whatever layout: its stamp, level, logger and words, wherever they stand.

In front of the words stand: what others put there (containers, `kubectl`, syslog, exports, indents, marks of Markdown),
then in any order the stamp, the level, threads, the logger, numbers and `key=value`. Behind them: the logger, the
thread. What a client chose stands within the words; so the front is read from the left and ends where the words
begin, and the logger behind them is the last one of the line. A line whose logger is another one is not the
coordinator's, whatever its words look like.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from ingest.dialects.request_layout import LOGGER, MARK
from ingest.layouts.dates import DateFormat, date_format
from ingest.layouts.log_pattern import HEAD_BYTES, TAIL_BYTES, Compiled, compiled

FRONT_BYTES = 1_024
"""The broker's own stamp begins within: labels of Loki and the fields of Kubernetes are the longest before it."""

MAX_PARTS = 16
"""Parts between the stamp and the words."""

PART_BYTES = 1_024
"""One part, or what separates two, is looked for within so many bytes: no more of a line is handed to an expression at
once, however long a client has made it. The longest logger that is known as one has 833."""

TAG_BYTES = 64
"""The same of how a component begins its words; the longest name that is known has 24."""

MAX_STAMPS = 8
"""Stamps of a front that are looked at."""

_DATES = (
    "yyyy-MM-dd HH:mm:ss,SSS",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy/MM/dd HH:mm:ss,SSS",
    "yyyy/MM/dd HH:mm:ss",
    "dd MMM yyyy HH:mm:ss,SSS",
    "dd/MMM/yyyy:HH:mm:ss,SSS",
    "dd.MM.yyyy HH:mm:ss,SSS",
    "ISO8601_BASIC",
)
"""Stamps that say by themselves which number is the month; the others are given by their pattern."""

_ZONE = r"(?P<zone>[ ]?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?(?![\w:.,-])"


def _stamp(name: str) -> tuple[DateFormat, re.Pattern[bytes]]:
    date = date_format(name)
    expression = date.expression.replace("{3})", "{3,9})")
    return date, re.compile(rf"(?<![\w:.-])\[?{expression}{_ZONE}\]?".encode())


_STAMPS = tuple(map(_stamp, _DATES))
_YEAR = re.compile(rb"(?:20|19)[0-9]{2}")

_LEVEL = rb"(?P<level>TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)(?![\w.-])"
_LEVEL_BEFORE = re.compile(rb"(?<![\w.-])[\[(]?" + _LEVEL + rb"[ ]*[\])]?[ \t|:,-]{0,8}\Z")
_TAG = re.compile(
    rb"\[(?:Group(?:Coordinator|MetadataManager)|KafkaApi|KafkaServer|KafkaRaftServer|SocketServer|BrokerServer|"
    rb"BrokerLifecycleManager|ControllerServer|Controller|Replica[A-Z]\w*|Partition|Transaction[A-Z]\w*|Share[A-Z]\w*|"
    rb"Log[A-Z]\w*|UnifiedLog|Raft[A-Z]\w*|Expiration[A-Z]\w*|Throttled[A-Z]\w*|Metadata[A-Z]\w*|Admin[A-Z]\w*)[-:,\] ]"
)
"""How components of a broker begin their words."""
COORDINATOR_TAG = re.compile(rb"\[Group(?:Coordinator|MetadataManager)[ \]]")
COORDINATOR_LOGGER = re.compile(
    rb"(?:org\.apache\.)?kafka\.coordinator\.(?:group|common)\.[\w$.]+"
    rb"|(?:\w{1,20}\.){0,6}(?:GroupCoordinator|GroupMetadataManager|GroupMetadata|CoordinatorRuntime)\w*\$?"
)
"""Loggers of the coordinator's classes, whole or shortened (`k.c.g.GroupCoordinator`, `GroupCoordinator`)."""

_DOTTED = rb"(?:[\w$-]{1,60}+\.){1,12}+[\w$-]{1,100}+"
_SEPARATOR = re.compile(rb"[ \t|:,]*+(?:-{1,3}[ \t]++)?")
_PART = re.compile(
    rb"(?:[\w.-]{1,40}+=)?[\[(]?" + _LEVEL + rb"[ ]*[\])]?"
    rb"|\[?(?:category=)?(?P<logger>" + _DOTTED + rb"|[A-Z][\w$]{1,80}+(?=(?::[0-9?]{1,6}+)?:?[ \t]+[\[-])"
    rb"|\w[\w$]{1,80}+(?=:[0-9?]{1,6}+:?[ \t]))"
    rb"(?::[0-9?]{1,6}+)?[ ]*\]?(?=[\s:\[])"
    rb"|\[(?!\[?[0-9]{4}[-/]|[A-Z]\w* \w+=)[^\[\]\n]{1,200}+\]"
    rb"|\([^()\n]{1,200}+\)"
    rb"|[0-9]{1,10}+(?=[ \t])"
    rb"|[\w.-]{1,40}+=[^\s\[\],]{0,200}+"
    rb"|[a-z]\w{0,100}+(?=[ \t]++-[ \t]|:[ \t])"
)
"""What may stand between the stamp and the words: a level, a logger, a thread, a process id, `key=value`, a method."""

_AT_END = re.compile(
    rb"[ \t]++(?:\[(?P<thread>[^\[\]\n]{1,200}+)\]"
    rb"|[(<{](?P<logger>(?:[\w$]{1,60}+\.){1,12}+[\w$]{1,100}+|[A-Z][\w$]{1,80}+)(?::[0-9?]{1,6}+)?[)>}]"
    rb"|-[ ](?P<dashed>" + _DOTTED + rb"))\Z"
)
_THREAD = re.compile(
    rb"(?:(?:data|control)-plane-|kafka-|executor-|group-|share-|transaction-|broker-|main\b|pool-|Thread-|ForkJoin)"
)
"""How threads of a broker are called."""
_FRONT = re.compile(rb"\[[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}[,.][0-9]{3,9}[Z0-9:+-]{0,6}\] [A-Z]{4,5} ")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_QUOTES = b"`\"'"
_LEVELS = {b"WARNING": b"WARN"}


class Laid(NamedTuple):
    """The parts of a line."""

    begin: int
    """Where the broker's own part begins."""
    stamp: bytes
    """`yyyy-MM-dd HH:mm:ss,SSS`, with its offset if it has one."""
    level: bytes
    logger: bytes
    """Empty where the layout writes none."""
    words: bytes
    has_millis: bool = True
    whole: bytes = b""
    """The line without colours."""

    @property
    def before(self) -> bytes:
        """What stands before the broker's own part."""
        return self.whole[: self.begin]

    @property
    def own(self) -> bytes:
        """The broker's own part: as it is if it looks like the shipped layout, else brought into it."""
        own, quote = self.whole[self.begin :], self.before[-1:]
        if quote and quote in _QUOTES and own.rstrip().endswith(quote):
            own = own.rstrip()[:-1].replace(quote * 2, quote)  # a column of an export
        return own if is_shipped(own) else self.line

    @property
    def line(self) -> bytes:
        """The line as Kafka's shipped layout writes it."""
        logger = LOGGER if self.words.startswith(MARK) else b" (%s)" % self.logger if self.logger else b""
        return b"[%s] %s %s%s" % (self.stamp, self.level, self.words, logger)


class Layouts:
    """Reads lines. A pattern that was given is tried first."""

    def __init__(self, pattern: str = "") -> None:
        """`pattern`: a conversion pattern of log4j. Raises `SettingsError`."""
        self._pattern = compiled(pattern) if pattern else None

    def laid(self, line: bytes) -> Laid | None:
        """The parts of a line; None for one that has none (it goes on with another one, or is nobody's)."""
        if b"\x1b" in line:
            line = _COLOUR.sub(b"", line)
        by_pattern = None if self._pattern is None else _by_pattern(self._pattern, line)
        return by_pattern or _recognised(line)

    def shipped(self, line: bytes) -> bytes | None:
        """The line as the shipped layout writes it."""
        found = self.laid(line)
        return None if found is None else found.line

    def stamp(self, line: bytes) -> bytes | None:
        """What `Stamps.at_ms` reads of a line."""
        found = self.laid(line)
        return None if found is None or not found.has_millis else b"[%s]" % found.stamp


@lru_cache(maxsize=16)
def layouts(pattern: str = "") -> Layouts:
    """The layouts that are known, with one that was given. Raises `SettingsError`."""
    return Layouts(pattern)


def is_shipped(line: bytes) -> bool:
    """Whether a line begins as the shipped layout writes it. What follows the level, and how it ends, is looked at by
    who reads it: its words may go on in further lines."""
    return _FRONT.match(line) is not None


def _by_pattern(pattern: Compiled, line: bytes) -> Laid | None:
    front = pattern.head.match(line, 0, HEAD_BYTES)
    if front is None:
        return None
    at = max(front.end(), len(line) - TAIL_BYTES)
    back = pattern.tail.match(line, at)
    if back is None:
        return None
    parts = {**front.groupdict(), **back.groupdict()}
    words = line[front.end() : at] + parts["message"]
    level = parts.get("level") or (b"DEBUG" if words.startswith(MARK) else b"INFO")
    stamp = pattern.date.iso(front)
    logger = parts.get("logger") or b""
    return Laid(0, stamp, level, logger, words.strip(b" \t"), pattern.date.has_millis, line)


def _recognised(line: bytes) -> Laid | None:
    if _YEAR.search(line, 0, FRONT_BYTES) is None:
        return None
    chosen: Laid | None = None
    for date, expression in _STAMPS:
        chosen = _by_stamps(line, date, expression)
        if chosen is not None:
            break
    if chosen is None:
        return None
    words, logger = _words_and_logger(chosen, line)
    return chosen._replace(words=words, logger=logger)


def _by_stamps(line: bytes, date: DateFormat, expression: re.Pattern[bytes]) -> Laid | None:
    """The parts from the broker's own stamp on, of those in one format that the front has."""
    mark = line.find(MARK, 0, FRONT_BYTES)
    first: Laid | None = None
    for found in islice(expression.finditer(line, 0, FRONT_BYTES if mark < 0 else mark), MAX_STAMPS):
        laid = _front(line, found, date)
        if laid is None:
            continue
        if first is None and _is_begun(laid.words):
            return laid
        # Behind another line's front only with the coordinator's logger at the end: else a client wrote it.
        if _is_begun(laid.words) and COORDINATOR_LOGGER.fullmatch(_words_and_logger(laid, line)[1]):
            return laid
        first = first or laid
    return first


def _front(line: bytes, found: re.Match[bytes], date: DateFormat) -> Laid | None:
    """The parts from a stamp on; None if it belongs to no line of a broker."""
    begin, at = found.start(), found.end()
    before = _LEVEL_BEFORE.search(line, max(0, begin - 20), begin)
    level, logger = b"", b""
    if before is not None:
        begin, level = before.start(), before["level"]
    for _ in range(MAX_PARTS):
        separator = _SEPARATOR.match(line, at, at + PART_BYTES)
        at = separator.end() if separator else at
        is_begun = line.startswith(MARK, at) or _TAG.match(line, at, at + TAG_BYTES)
        part = None if is_begun else _PART.match(line, at, at + PART_BYTES)
        if part is None or (level and part["level"]):
            break
        level, logger = level or part["level"] or b"", logger or part["logger"] or b""
        at = part.end()
    words = line[at:]
    if not level:
        if not _is_begun(words):
            return None
        level = b"DEBUG" if words.startswith(MARK) else b"INFO"
    if words.startswith(MARK):
        words = MARK + words[len(MARK) :].lstrip(b" \t")
    return Laid(begin, date.iso(found), _LEVELS.get(level, level), logger, words, date.has_millis, line)


def _is_begun(words: bytes) -> bool:
    """Whether these are the words that are looked for."""
    return words.startswith(MARK) or _TAG.match(words, 0, TAG_BYTES) is not None


def _words_and_logger(laid: Laid, line: bytes) -> tuple[bytes, bytes]:
    """The words without what the layout writes behind them, and the logger."""
    words, logger = laid.words.rstrip(b" \t\r"), laid.logger
    before = line[max(0, laid.begin - 1) : laid.begin]
    if before and before in _QUOTES and words.endswith(before):
        words = words[:-1]
    thread = None
    for _ in range(2):
        found = _AT_END.search(words, max(0, len(words) - TAIL_BYTES))
        if found is None:
            break
        if found["thread"] is None:
            return words[: found.start()], logger or found["logger"] or found["dashed"]
        if thread is not None:
            break
        thread = found
        words = words[: found.start()]
    if thread is not None and not _THREAD.match(thread["thread"]):
        words += thread[0]  # a list of the sentence's own
    return words, logger
