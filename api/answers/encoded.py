"""Answers encoded once for as long as what they tell does not change: JSON with holes for what the clock moves.

A route makes its answer with an `Open` freshness: what is left of a deadline is a hole in the JSON then, filled in when
the answer is sent, now or again. Whoever looks at the clock in any other way while the answer is made, as for how long
a rebalance lasts, makes it one of that instant: it is sent, and not kept. A hole stands between NUL bytes, which JSON
text never has: inside of strings they are escaped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from api.present.freshness import Freshness

KEPT_BYTES_MAX = 16 << 20
"""Of all answers that are kept; with more, those go that nobody has asked for longest."""

_END = b"\0"

Left = tuple[int, bool, int | None]
"""A deadline, whether it is the least that it may be, and up to when all is known of what it is about."""


class Open(Freshness):
    """Freshness of an answer in the making: `fresh` says it anew for each time that the answer is sent."""

    fresh: Callable[[], Freshness]
    holes: list[Left]
    clock: list[bool]
    """Not empty: the clock was looked at."""

    @classmethod
    def of(cls, fresh: Callable[[], Freshness]) -> Open:
        """An answer that has no hole yet."""
        return cls(*fresh())._sharing(fresh, [], [])

    def _sharing(self, fresh: Callable[[], Freshness], holes: list[Left], clock: list[bool]) -> Open:
        self.fresh, self.holes, self.clock = fresh, holes, clock
        return self

    @property
    def now_ms(self) -> int:
        """The instant at which the answer is made."""
        self.clock.append(True)
        return self[1]

    def as_of(self, complete_as_of_ms: int | None) -> Open:
        """The same for something that is complete up to another instant."""
        return Open(complete_as_of_ms, *self[1:])._sharing(self.fresh, self.holes, self.clock)

    def left_json(self, deadline_ms: int, *, is_least: bool) -> bytes:
        """A hole."""
        self.holes.append((deadline_ms, is_least, self[0]))
        return b"\0%d\0" % (len(self.holes) - 1)

    def left_ms(self, deadline_ms: int | None, *, is_least: bool) -> Any:
        """A hole, for `orjson`."""
        return None if deadline_ms is None else orjson.Fragment(self.left_json(deadline_ms, is_least=is_least))


class Encoded(NamedTuple):
    """An answer: its JSON behind the freshness, around the holes."""

    fresh: Callable[[], Freshness]
    parts: list[bytes]
    holes: list[Left]
    """What belongs between the parts, one less than those."""
    is_kept: bool
    """Whether it may be sent again."""

    @property
    def size_bytes(self) -> int:
        """Length of the parts."""
        return sum(map(len, self.parts))

    def filled(self) -> bytes:
        """The answer as of now."""
        fresh = self.fresh()
        now_ms, known_from_ms = fresh.now_ms, fresh.now_ms - fresh.stale_after_ms
        found = [b'{"freshness":', orjson.dumps(fresh.as_answer()), self.parts[0]]
        for (deadline_ms, is_least, complete_ms), part in zip(self.holes, self.parts[1:], strict=True):
            left_ms = deadline_ms - now_ms
            # As in `Freshness.left_ms`, without its calls: an answer may have some hundred of them.
            is_told = complete_ms is not None and complete_ms >= known_from_ms and not (is_least and left_ms < 0)
            found += (b"%d" % left_ms if is_told else b"null", part)
        return b"".join(found)


def encode(freshness: Open, members: dict[str, Any]) -> Encoded:
    """Encode what an answer tells beside its freshness."""
    texts = (b"," + orjson.dumps(members)[1:]).split(_END) if members else [b"}"]
    holes = [freshness.holes[int(place)] for place in texts[1::2]]
    return Encoded(freshness.fresh, texts[0::2], holes, not freshness.clock)


class Kept:
    """Answers of one state of the view, by what names them. Belongs to the event loop."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._state: tuple[Any, ...] = ()
        self._found: OrderedDict[str, Encoded] = OrderedDict()
        self._bytes = 0

    def of(self, state: tuple[Any, ...], name: str) -> Encoded | None:
        """An answer of this state; those of another one are let go."""
        if state != self._state:
            self._state, self._bytes = state, 0
            self._found.clear()
        found = self._found.get(name)
        if found is not None:
            self._found.move_to_end(name)
        return found

    def keep(self, name: str, answer: Encoded) -> None:
        """Keep one of the state that was last asked for, in place of those that nobody has asked for longest."""
        if not answer.is_kept or answer.size_bytes > KEPT_BYTES_MAX:
            return
        self._found[name] = answer
        self._bytes += answer.size_bytes
        while self._bytes > KEPT_BYTES_MAX:
            _, oldest = self._found.popitem(last=False)
            self._bytes -= oldest.size_bytes
