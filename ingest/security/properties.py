"""Reads a file of client settings: lines `NAME=VALUE` as librdkafka's tools take them, or a properties file of Java.

The two differ in backslashes: to librdkafka `a\\b` are three characters, in Java it is an escape, and at the end of a
line it goes on with the next one. Java's rules: `java.util.Properties.load`. Values never appear in a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ingest.errors import SettingsError

MAX_BYTES = 64 * 1024
"""A file with keys inline has some 8 KiB; beyond this it is something else."""


@dataclass(frozen=True)
class Entry:
    """One setting."""

    line: int
    name: str
    value: str = field(repr=False)


def text_of(path: Path) -> str:
    """The file, or a `SettingsError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise wrong(path, f"cannot be read: {error.strerror or type(error).__name__}") from None
    if len(data) > MAX_BYTES:
        raise wrong(path, f"is longer than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise wrong(path, "cannot be read: it is not UTF-8") from None


def plain(text: str) -> tuple[list[Entry], list[int]]:
    """Lines as librdkafka's tools take them; and the numbers of those that are none."""
    entries: list[Entry] = []
    others: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in bare.partition("="))
        if equals and name:
            entries.append(Entry(number, name, value))
        else:
            others.append(number)
    return entries, others


_KEY = re.compile(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def java(text: str) -> tuple[list[Entry], list[int]]:
    """Settings of a properties file of Java; and the numbers of lines without a name."""
    entries: list[Entry] = []
    others: list[int] = []
    for number, line in _logical(text):
        found = _KEY.fullmatch(line)
        name = _unescaped(found[1]) if found else ""
        if found and name:
            entries.append(Entry(number, name, _unescaped(found[2])))
        else:
            others.append(number)
    return entries, others


def _logical(text: str) -> list[tuple[int, str]]:
    """Lines, those that end in an odd number of backslashes together with the next one."""
    lines: list[tuple[int, str]] = []
    begun = 0
    held = ""
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(" \t\f")
        if not begun:
            if not line or line[0] in "#!":
                continue
            begun = number
        held += line
        if (len(held) - len(held.rstrip("\\"))) % 2:
            held = held[:-1]
            continue
        lines.append((begun, held))
        begun, held = 0, ""
    if begun:
        lines.append((begun, held))
    return lines


def _unescaped(text: str) -> str:
    found = _ESCAPE.sub(lambda one: chr(int(one[1], 16)) if one[1] else _LETTERS.get(one[2], one[2]), text)
    # Beyond 16 bits Java writes a pair of escapes.
    return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def written(settings: dict[str, str]) -> str:
    """A properties file of Java, in ASCII."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    found = "".join(
        {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}.get(char, char)
        if " " <= char < "\x7f" or char in "\n\r\t\f"
        else "".join(f"\\u{int.from_bytes(pair, 'big'):04x}" for pair in _units(char))
        for char in value
    )
    return "\\" + found if found.startswith(" ") else found


def _units(char: str) -> list[bytes]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def wrong(path: Path, what: str, next_step: str = "correct it and start again", *, line: int = 0) -> SettingsError:
    """What is wrong with a file, or with a line of it."""
    return SettingsError(
        f"line {line} {what}" if line else f"the file of client settings {what}",
        str(path),
        "lines such as security.protocol=SASL_SSL, with the names of librdkafka or those of Java",
        next_step,
    )
