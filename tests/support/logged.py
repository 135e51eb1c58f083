"""What the classes of a jar log: the sentence, its level and its class, read from their byte code.

Follows no branch: the last text that was loaded before a call of the logger is its sentence, which is how the compiler
writes `log.info("… {} …", …)`. Where the sentence is put together by concatenation its recipe is taken. Scala's classes
log through functions of their own, and are not read.
Truth: The Java Virtual Machine Specification, chapters 4 and 6.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LEVELS = ("trace", "debug", "info", "warn", "error")
LOGGER = "org/slf4j/Logger"

_WIDTHS = {
    **dict.fromkeys((0x10, 0x12, *range(0x15, 0x1A), *range(0x36, 0x3B), 0xA9, 0xBC), 1),
    **dict.fromkeys((0x11, 0x13, 0x14, 0x84, *range(0x99, 0xA9), *range(0xB2, 0xB9), 0xBB, 0xBD, 0xC0, 0xC1), 2),
    **dict.fromkeys((0xC6, 0xC7), 2),
    0xC5: 3,
    **dict.fromkeys((0xB9, 0xBA, 0xC8, 0xC9), 4),
}
"""Bytes after an opcode, where there are any and always as many."""

_TABLESWITCH, _LOOKUPSWITCH, _WIDE, _IINC = 0xAA, 0xAB, 0xC4, 0x84
_LDC, _LDC_W, _DYNAMIC = 0x12, 0x13, 0xBA
_CALLS = range(0xB6, 0xBA)


class Logged(NamedTuple):
    """One call of a logger."""

    class_name: str
    level: str
    sentence: str
    """With `{}` where something is put in."""


def logged(jar: Path, *folders: str) -> Iterator[Logged]:
    """What the classes in these folders of a jar log."""
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".class") and name.startswith(folders):
                yield from _of_class(name.rpartition("/")[2].removesuffix(".class"), archive.read(name))


def _of_class(name: str, data: bytes) -> Iterator[Logged]:
    pool, place = _pool(data)
    place += 6  # access, this, super
    place += 2 + 2 * _u2(data, place)  # interfaces
    for _ in range(_u2(data, place)):  # fields
        place = _member(data, place + 2, [])[0] - 2
    place += 2
    codes: list[bytes] = []
    methods = _u2(data, place)
    place += 2
    for _ in range(methods):
        place, codes = _member(data, place, codes, pool)
    recipes = _recipes(data, place, pool)
    for code in codes:
        yield from _calls(name, code, pool, recipes)


def _pool(data: bytes) -> tuple[dict[int, Any], int]:
    """Constants by number, and where they end."""
    pool: dict[int, Any] = {}
    place, number, count = 10, 1, _u2(data, 8)
    while number < count:
        tag = data[place]
        if tag == 1:
            length = _u2(data, place + 1)
            pool[number] = data[place + 3 : place + 3 + length].decode("utf-8", "replace")
            place += 3 + length
        elif tag in (3, 4, 9, 10, 11, 12, 17, 18):
            pool[number] = (tag, _u2(data, place + 1), _u2(data, place + 3))
            place += 5
        elif tag in (5, 6):
            place, number = place + 9, number + 1
        elif tag == 15:
            pool[number] = (tag, data[place + 1], _u2(data, place + 2))
            place += 4
        else:
            pool[number] = (tag, _u2(data, place + 1))
            place += 3
        number += 1
    return pool, place


def _member(data: bytes, place: int, codes: list[bytes], pool: dict[int, Any] | None = None) -> tuple[int, list[bytes]]:
    """Where a field or method ends; its code, if it has any, among `codes`."""
    attributes = _u2(data, place + 6)
    place += 8
    for _ in range(attributes):
        name, length = _u2(data, place), struct.unpack_from(">I", data, place + 2)[0]
        body = data[place + 6 : place + 6 + length]
        if pool is not None and pool[name] == "Code":
            codes.append(body[8 : 8 + struct.unpack_from(">I", body, 4)[0]])
        place += 6 + length
    return place, codes


def _recipes(data: bytes, place: int, pool: dict[int, Any]) -> list[str]:
    """Recipe of each bootstrap method that concatenates; empty for others."""
    for _ in range(_u2(data, place)):
        name, length = _u2(data, place + 2), struct.unpack_from(">I", data, place + 4)[0]
        if pool[name] == "BootstrapMethods":
            return list(_bootstraps(data[place + 8 : place + 8 + length], pool))
        place += 6 + length
    return []


def _bootstraps(body: bytes, pool: dict[int, Any]) -> Iterator[str]:
    place = 2
    for _ in range(_u2(body, 0)):
        count = _u2(body, place + 2)
        first = pool[_u2(body, place + 4)] if count else None
        yield pool[first[1]].replace("\x01", "{}") if first and first[0] == 8 else ""
        place += 4 + 2 * count


def _calls(name: str, code: bytes, pool: dict[int, Any], recipes: list[str]) -> Iterator[Logged]:
    text = ""
    for place, opcode in _instructions(code):
        if opcode in (_LDC, _LDC_W):
            found = pool.get(code[place + 1] if opcode == _LDC else _u2(code, place + 1))
            if isinstance(found, tuple) and found[0] == 8:
                text = pool[found[1]]
        elif opcode == _DYNAMIC:
            recipe = recipes[pool[_u2(code, place + 1)][1]]
            text = recipe or text
        elif opcode in _CALLS:
            _, owner, described = pool[_u2(code, place + 1)]
            called = pool[pool[described][1]]
            if pool[pool[owner][1]] == LOGGER and called in LEVELS:
                yield Logged(name, called, text)


def _instructions(code: bytes) -> Iterator[tuple[int, int]]:
    place = 0
    while place < len(code):
        opcode = code[place]
        yield place, opcode
        if opcode == _WIDE:
            place += 6 if code[place + 1] == _IINC else 4
        elif opcode in (_TABLESWITCH, _LOOKUPSWITCH):
            at = place + 4 - place % 4
            first, second, third = struct.unpack_from(">iii", code + bytes(12), at)
            place = at + (12 + 4 * (third - second + 1) if opcode == _TABLESWITCH else 8 + 8 * second)
            del first
        else:
            place += 1 + _WIDTHS.get(opcode, 0)


def _u2(data: bytes, place: int) -> int:
    return int(struct.unpack_from(">H", data, place)[0])
