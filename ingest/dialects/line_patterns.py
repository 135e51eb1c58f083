"""Lines that are like ones that were decoded, recognised without decoding them.

A pattern is what quiet lines of one structure have in common: literals, and between them slots, which are numbers and
texts that may differ. It is made from a line that was decoded, and the slots are known by their names. A line that has
the same literals, and in each slot a number or a text without escapes, is the same JSON object with other values in the
slots; so it says what the decoder would say, and needs no decoding. All else (an error code, a null, a list that is
longer) is in the literals, so a line that differs there is not alike. What is recognised of a line is held against what
was decoded once, when a pattern is made.

Structures are few: of each kind `PATTERNS_MAX` are kept, those that fit most. Where most lines are like none (each
fetch brings data of other partitions), looking is left out for some blocks.

The loop is compiled (`compiled`). Loading that takes half a second and 100 MB: it is for who reads `WORTH_BYTES`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ingest.dialects.quiet_columns import Block
from ingest.quiet_requests import Numbers, Places

PATTERNS_MAX = 8
"""Each that does not fit costs a look as far as the first literal that differs."""

WORTH_BYTES = 512 << 20
"""Who reads less decodes each line: loading the compiled loop costs what it spares in about 300 MB."""

COMPILES = find_spec("numba") is not None
"""Whether the loop can be compiled: numba is an extra. Without it every line is decoded, with the same events."""

PAUSE_BLOCKS = 15
"""Blocks in which nothing is looked for, after one in which most lines were like no pattern."""

TIMES = 4
"""Durations of a line: total, queue, local, remote."""

_END, _TEXT, _KEY_TEXT, _NUMBER, _KEY_NUMBER, _SIZE, _TOTAL = range(7)
"""As in `compiled`, which is not loaded yet, and whose machine code is kept for as long as its own file is the same."""

_SLOTS = {
    **dict.fromkeys((b"clientId", b"connection", b"groupId", b"memberId", b"groupInstanceId"), _KEY_TEXT),
    **dict.fromkeys((b"requestApiVersion", b"generationId"), _KEY_NUMBER),
    **dict.fromkeys((b"topic", b"topicId", b"principal", b"softwareName", b"softwareVersion", b"rackId"), _TEXT),
    **dict.fromkeys((b"recordsSizeInBytes", b"recordSetSizeInBytes"), _SIZE),
    **{
        name: _TOTAL + place
        for place, name in enumerate((b"totalTimeMs", b"requestQueueTimeMs", b"localTimeMs", b"remoteTimeMs"))
    },
    **dict.fromkeys(
        (
            *(b"correlationId", b"sessionId", b"sessionEpoch", b"maxWaitMs", b"minBytes", b"maxBytes", b"partition"),
            *(b"partitionMaxBytes", b"currentLeaderEpoch", b"fetchOffset", b"lastFetchedEpoch", b"logStartOffset"),
            *(b"partitionIndex", b"highWatermark", b"lastStableOffset", b"preferredReadReplica"),
            *(b"responseQueueTimeMs", b"sendTimeMs"),
        ),
        _NUMBER,
    ),
}
_NUMBERS_ONLY = frozenset(name for name, slot in _SLOTS.items() if slot not in (_TEXT, _KEY_TEXT))
_MEMBER = re.compile(
    rb'[{,]"(?P<name>%b)":(?:"(?P<text>[^"\\]*)"|(?P<number>-?\d+(?:\.\d+)?)(?=[,}]))' % b"|".join(_SLOTS)
)
"""A name and its value. Quotes inside a text are escaped, so this is never found inside one: there a quote would stand
behind a backslash, not behind a brace or a comma and before a colon."""


class Recognised(NamedTuple):
    """Of some lines, those that are like a pattern."""

    chosen: np.ndarray[Any, np.dtype[np.bool_]]
    """Which of the lines they are."""
    times: Numbers
    """`TIMES` of each, a row each."""
    sizes: Places
    keys: list[bytes]
    """Who sent each, as bytes: the same bytes are the same sender."""


class _Pattern(NamedTuple):
    literals: list[bytes]
    slots: list[int]
    names: tuple[str, ...]
    """Of the slots that are a key, in their order."""


class _Arrays(NamedTuple):
    literals: np.ndarray[Any, np.dtype[np.uint8]]
    """All, one behind the other."""
    ends: Places
    """Where each of them ends."""
    slots: Places
    """What follows each."""
    firsts: Places
    """The first literal of each pattern, and the end."""


class _Kind:
    """Patterns of one kind of lines."""

    def __init__(self) -> None:
        self.patterns: list[_Pattern] = []
        self.hits: list[int] = []
        self.pause = 0
        self.arrays = _arrays([])

    def put(self, pattern: _Pattern) -> None:
        """Keep a pattern, in place of the one that fitted least if there are too many."""
        if len(self.patterns) == PATTERNS_MAX:
            place = self.hits.index(min(self.hits))
            del self.patterns[place], self.hits[place]
        self.patterns.append(pattern)
        self.hits.append(0)
        self.arrays = _arrays(self.patterns)

    def count(self, found: Places) -> None:
        """Which patterns fitted how often in a block; what was long ago counts less."""
        lines = np.bincount(found + 1, minlength=len(self.patterns) + 1)[1:].tolist()
        self.hits = [before // 2 + hits for before, hits in zip(self.hits, lines, strict=True)]
        if len(self.patterns) == PATTERNS_MAX and sum(lines) * 2 < len(found):
            self.pause = PAUSE_BLOCKS


class Patterns:
    """The patterns of one process, for all that it reads."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kinds: dict[int, _Kind] = {}
        self._senders: list[tuple[str, ...]] = []

    def recognise(self, kind: int, block: Block, lines: Places, skip: tuple[int, int]) -> Recognised | None:
        """Those of these lines that are like a line that was learned; None if there is nothing to look for. `skip`:
        bytes at the begin and at the end of each line that are not part of a pattern."""
        known = self._kinds.get(kind)
        if known is None or not known.patterns or not len(lines):
            return None
        if known.pause:
            known.pause -= 1
            return None
        found, recognised = self._found(known, block.data, block.begins[lines] + skip[0], block.ends[lines] - skip[1])
        known.count(found)
        return recognised

    def learn(self, kind: int, line: bytes, is_right: Callable[[Recognised], bool]) -> None:
        """Make a pattern of a line that was decoded and is quiet. `is_right`: whether what the pattern says of this
        line is what was decoded; if not, it is not kept."""
        known = self._kinds.setdefault(kind, _Kind())
        if known.pause:
            return
        pattern = _pattern(line)
        alone = _Kind()
        alone.put(pattern)
        found, recognised = self._found(alone, line, np.zeros(1, np.int64), np.full(1, len(line)))
        if found[0] >= 0 and is_right(recognised):
            known.put(pattern)

    def sender(self, key: bytes) -> dict[str, str]:
        """What a key of `Recognised` says, by name; what is null in the line is left out."""
        texts = key[1:-1].split(b"\0")
        return dict(zip(self._senders[key[0]], (text.decode("ascii") for text in texts), strict=True))

    def _found(self, known: _Kind, data: bytes, begins: Places, ends: Places) -> tuple[Places, Recognised]:
        from ingest.dialects.compiled import recognise  # loads a compiler

        count = len(begins)
        found, key_ends, sizes = (np.empty(count, np.int64) for _ in range(3))
        times = np.empty((count, TIMES))
        keys = np.empty(int((ends - begins).sum()), np.uint8)  # a NUL takes the place of a quote or a comma
        senders = np.array([self._number_of(pattern.names) for pattern in known.patterns], np.uint8)
        recognise(
            np.frombuffer(data, np.uint8), begins, ends, *known.arrays, senders, found, times, sizes, keys, key_ends
        )
        chosen = found >= 0
        texts = keys[: key_ends[-1]].tobytes()
        places = [0, *key_ends[chosen].tolist()]
        told = [texts[begin:end] for begin, end in itertools.pairwise(places)]
        return found, Recognised(chosen, times[chosen], sizes[chosen], told)

    def _number_of(self, names: tuple[str, ...]) -> int:
        """Keys of different names never have the same bytes: there are a few sets of names."""
        if names not in self._senders:
            self._senders.append(names)
        return self._senders.index(names)


def _pattern(line: bytes) -> _Pattern:
    """Cut a line into what must be the same and what may differ."""
    literals, slots, names, at = list[bytes](), list[int](), list[str](), 0
    for match in _MEMBER.finditer(line):
        which = "text" if match["number"] is None else "number"
        slot = _SLOTS[match["name"]]
        if (match["name"] in _NUMBERS_ONLY) != (which == "number"):
            continue
        literals.append(line[at : match.start(which)])
        slots.append(slot)
        at = match.end(which)
        if slot in (_KEY_TEXT, _KEY_NUMBER):
            names.append(match["name"].decode())
    return _Pattern([*literals, line[at:]], [*slots, _END], tuple(names))


def _arrays(patterns: list[_Pattern]) -> _Arrays:
    """Patterns as `compiled.recognise` takes them."""
    literals = [literal for pattern in patterns for literal in pattern.literals]
    counts = [len(pattern.literals) for pattern in patterns]
    return _Arrays(
        np.frombuffer(b"".join(literals), np.uint8),
        np.cumsum([len(literal) for literal in literals]),
        np.array([slot for pattern in patterns for slot in pattern.slots]),
        np.cumsum([0, *counts]),
    )
