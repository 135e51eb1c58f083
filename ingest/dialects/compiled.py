"""The inner loop of `line_patterns`: bytes of lines held against patterns. Compiled by numba when it is first called;
the machine code is kept on disk (`NUMBA_CACHE_DIR`, else beside this file or in the user's cache), so that later
processes only load it.

In the loops over bytes places are unsigned: with a sign each look at an array would first ask whether it counts from
the end, and the loop that compares literals would not be turned into one over many bytes at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])

END, TEXT, KEY_TEXT, NUMBER, KEY_NUMBER, SIZE, TOTAL, QUEUE, LOCAL, REMOTE = range(10)
"""What follows a literal: the end of the line; text or a number that says nothing here; text or a number that belongs
to who sent the request; the bytes of records; one of four durations."""

_QUOTE, _BACKSLASH, _SPACE, _MINUS, _DOT, _ZERO, _NINE = b'"\\ -.09'
_DIGITS_MAX = 15
"""So many digits are a whole number that a double holds exactly; that by a power of ten is rounded once, as it is when
the decimal number is read."""


def _compiled(function: _F) -> _F:
    made: Any
    try:
        made = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no directory to keep the code in can be written
        made = numba.njit(nogil=True)(function)
    return cast(_F, made)


@_compiled
def _is_alike(data: Any, at: int, literals: Any, begin: int, size: int) -> bool:
    """Whether `size` bytes are those of the literal."""
    differ = np.uint8(0)
    one, other = np.uint64(at), np.uint64(begin)
    for place in range(np.uint64(size)):
        differ = np.uint8(differ | np.uint8(data[one + place] ^ literals[other + place]))
    return bool(differ == 0)


@_compiled
def _text_end(data: Any, at: int, end: int) -> Any:
    """Where text ends that has nothing escaped in it."""
    place, last = np.uint64(at), np.uint64(end)
    while place < last:
        byte = data[place]
        if byte < _SPACE or byte in (_QUOTE, _BACKSLASH):
            break
        place += np.uint64(1)
    return np.int64(place)  # an unsigned number and one with a sign make a double


@_compiled
def _number(data: Any, at: int, end: int, has_fraction: bool) -> tuple[int, float]:
    """A JSON number without exponent, as far as `_DIGITS_MAX` reach: where it ends, and itself. -1: it is none."""
    place, value, digits = at, 0, 0
    while place < end and _ZERO <= data[place] <= _NINE and digits < _DIGITS_MAX:
        value = value * 10 + (data[place] - _ZERO)
        digits += 1
        place += 1
    if digits == 0 or (digits > 1 and data[at] == _ZERO):
        return -1, 0.0
    scale = 1.0
    if has_fraction and place < end and data[place] == _DOT:
        place += 1
        point = place
        while place < end and _ZERO <= data[place] <= _NINE and digits < _DIGITS_MAX:
            value = value * 10 + (data[place] - _ZERO)
            scale *= 10.0
            digits += 1
            place += 1
        if place == point:
            return -1, 0.0
    return place, value / scale


@_compiled
def _take(
    data: Any, begin: int, end: int, literals: Any, ends: Any, slots: Any, first: int, last: int,
    sender: int, times: Any, sizes: Any, number: int, keys: Any, key_at: int,
) -> int:  # fmt: skip
    """Hold one line against one pattern. Gives where its key ends in `keys`, -1 if it is not alike."""
    at, size = begin, 0
    keys[key_at] = sender
    key_at += 1
    for place in range(first, last):
        literal = ends[place - 1] if place else 0
        length = ends[place] - literal
        if at + length > end or not _is_alike(data, at, literals, literal, length):
            return -1
        at += length
        slot = slots[place]
        if slot == END:
            break
        start = at
        if slot in (TEXT, KEY_TEXT):
            at = _text_end(data, at, end)
        else:
            if slot in (NUMBER, KEY_NUMBER) and at < end and data[at] == _MINUS:
                at += 1
            at, value = _number(data, at, end, slot == NUMBER or slot >= TOTAL)
            if at < 0:
                return -1
            if slot == SIZE:
                size += int(value)
            elif slot >= TOTAL:
                times[number, slot - TOTAL] = value
        if slot in (KEY_TEXT, KEY_NUMBER):
            for byte in range(np.uint64(start), np.uint64(at)):
                keys[key_at] = data[byte]
                key_at += 1
            keys[key_at] = 0
            key_at += 1
    sizes[number] = size
    return key_at if at == end else -1


@_compiled
def recognise(
    data: Any, begins: Any, ends: Any, literals: Any, literal_ends: Any, slots: Any, firsts: Any,
    senders: Any, found: Any, times: Any, sizes: Any, keys: Any, key_ends: Any,
) -> None:  # fmt: skip
    """Hold lines against patterns, the one that fitted last first. For each line: the number of its pattern, -1 if it
    is like none; its four durations; the bytes of its records; and, one behind the other in `keys`, who sent it:
    the byte that `senders` has for the pattern, and key texts and numbers as they stand there, each with a NUL behind
    it."""
    patterns = len(firsts) - 1
    recent = key_at = 0
    for number in range(len(begins)):
        found[number] = -1
        for turn in range(patterns):
            pattern = (recent + turn) % patterns
            key_end = _take(
                data, begins[number], ends[number], literals, literal_ends, slots, firsts[pattern],
                firsts[pattern + 1], senders[pattern], times, sizes, number, keys, key_at,
            )  # fmt: skip
            if key_end >= 0:
                found[number] = recent = pattern
                key_at = key_end
                break
        key_ends[number] = key_at
