"""A conversion pattern of log4j, as a person gives it (`--log-pattern`), compiled into expressions of bounded work.

    %d{ISO8601} %p %m (%c) [%t]%n

What stands before the message is one expression in which nothing is tried twice: each free part ends at the character
that follows it in the pattern. What stands behind the message is looked for in the last `TAIL_BYTES` of the line.
Truth: the manual of log4j 1.2 and 2, "Pattern Layout".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ingest.errors import SettingsError
from ingest.layouts.dates import DateFormat, date_format

HEAD_BYTES = 2_048
TAIL_BYTES = 1_024
MAX_PATTERN = 500
"""Characters of a pattern."""

_LEVEL = "(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_LOGGER = r"(?P<logger>[\w$.-]{1,250}+)"
_NUMBER = "[0-9]{0,19}+"
_KINDS = {
    **dict.fromkeys(("d", "date"), "date"),
    **dict.fromkeys(("p", "level", "le"), _LEVEL),
    **dict.fromkeys(("c", "lo", "logger"), _LOGGER),
    **dict.fromkeys(("m", "msg", "message"), "message"),
    **dict.fromkeys(("n",), "end"),
    **dict.fromkeys(("L", "line", "r", "relative", "sn", "sequenceNumber", "pid", "processId", "N", "nano"), _NUMBER),
    **dict.fromkeys(("T", "tid", "threadId", "tp", "threadPriority"), _NUMBER),
    **dict.fromkeys(("t", "tn", "thread", "threadName", "M", "method", "F", "file", "l", "location"), "free"),
    **dict.fromkeys(("C", "class", "x", "NDC", "X", "mdc", "MDC", "K", "map", "MAP", "u", "uuid", "marker"), "free"),
    **dict.fromkeys(("ex", "throwable", "xEx", "rEx", "exception", "xThrowable", "rThrowable"), ""),
    **dict.fromkeys(("highlight", "style"), "within"),
}
"""Conversion words -> what they write. Those of a pattern are read longest first, as log4j does."""

_WORDS = "|".join(sorted(_KINDS, key=len, reverse=True))
_CONVERSION = re.compile(rf"%(?P<least>-?0?[0-9]*)(?:\.-?[0-9]+)?(?P<word>{_WORDS})")
_LOOKUP = re.compile(r"\$\{[^}]*\}")


class Compiled(NamedTuple):
    """A pattern."""

    head: re.Pattern[bytes]
    tail: re.Pattern[bytes]
    """What is behind the message, with it (group `message`)."""
    date: DateFormat


class _Part(NamedTuple):
    """A piece of a pattern: a literal, or a conversion with its options."""

    literal: str
    word: str = ""
    options: tuple[str, ...] = ()
    padded: bool = False


def compiled(pattern: str) -> Compiled:
    """Compile a pattern. Raises `SettingsError`."""
    if len(pattern) > MAX_PATTERN:
        raise _refused(pattern, f"it is longer than {MAX_PATTERN} characters")
    parts = list(_parts(pattern))
    kinds = [_KINDS.get(part.word, "") for part in parts]
    if kinds.count("message") != 1 or kinds.count("date") != 1 or kinds.count(_LEVEL) > 1 or kinds.count(_LOGGER) > 1:
        raise _refused(pattern, "it needs one %d and one %m, and at most one %p and one %c")
    at = kinds.index("message")
    if kinds.index("date") > at:
        raise _refused(pattern, "%d is to stand before %m")
    date = date_format(*_of_date(next(part for part in parts if _KINDS.get(part.word) == "date")))
    head = _expression(parts[:at], date)
    tail = _expression(parts[at + 1 :], date)
    try:
        return Compiled(
            re.compile(rf"\s*{head}".encode(), re.DOTALL),
            re.compile(rf"(?P<message>.*){tail}\s*\Z".encode(), re.DOTALL),
            date,
        )
    except re.error as error:
        raise _refused(pattern, str(error)) from error


def _of_date(part: _Part) -> tuple[str, str]:
    name, zone, *_ = (*part.options, "", "")
    return name, zone


def _parts(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    at = 0
    while at < len(pattern):
        found = _CONVERSION.match(pattern, at)
        if found is None:
            if pattern.startswith("%", at) and not pattern.startswith("%%", at):
                raise _refused(pattern, f"the conversion at {pattern[at : at + 12]!r} is not known")
            lookup = _LOOKUP.match(pattern, at)
            size = len(lookup[0]) if lookup else 2 if pattern.startswith("%%", at) else 1
            parts.append(_Part("", "X") if lookup else _Part(pattern[at]))
            at += size
            continue
        at = found.end()
        options: list[str] = []
        while pattern.startswith("{", at):
            end = _closing(pattern, at)
            options.append(pattern[at + 1 : end])
            at = end + 1
        if _KINDS[found["word"]] == "within":
            parts += _parts(options[0] if options else "")
        else:
            parts.append(_Part("", found["word"], tuple(options), bool(found["least"])))
    return parts


def _closing(pattern: str, at: int) -> int:
    depth = 0
    for place in range(at, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[place], 0)
        if not depth:
            return place
    raise _refused(pattern, "a { is not closed")


def _expression(parts: list[_Part], date: DateFormat) -> str:
    pieces: list[str] = []
    for number, part in enumerate(parts):
        kind = _KINDS.get(part.word, "")
        if part.literal:
            pieces.append(r"[ \t]++" if part.literal in " \t" else re.escape(part.literal))
            if part.literal in " \t" and len(pieces) > 1 and pieces[-2] == pieces[-1]:
                pieces.pop()
        elif kind == "date":
            pieces.append(date.expression)
        elif kind == "free":
            pieces.append(_free(parts[number + 1 :]))
        elif kind != "end":
            pieces.append(kind)
        if part.padded:
            pieces[-1] = f"[ ]*{pieces[-1]}[ ]*"
    return "".join(pieces)


def _free(behind: list[_Part]) -> str:
    """A part of any text: up to what follows it in the pattern."""
    follows = behind[0].literal if behind else ""
    kept = rf"[^{re.escape(follows)}\n]" if follows else r"\S" if behind and behind[0].word != "n" else r"[^\n]"
    return rf"{kept}{{0,250}}+"


def _refused(pattern: str, why: str) -> SettingsError:
    return SettingsError(
        f"the log pattern {pattern[:MAX_PATTERN]!r} cannot be read: {why}",
        "log-pattern",
        "a conversion pattern of log4j such as '%d{ISO8601} %p %m (%c) [%t]%n'",
        "copy it from the appender's ConversionPattern, or from `pattern` of its PatternLayout",
    )
