"""A logging filter that bounds repeats: so many records of a kind per minute, then how many more there were.

A kind is a logger and the text of a record before its values are put in, so the kinds are as many as the program has
lines that log. A table that is torn was logged with its trace 66 times a second, 3.6 GB a day; two Kafka clients whose
broker is down, 22 times a second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

KEPT = 10
"""Records of one kind that are written in one window."""

WINDOW_S = 60.0

KINDS_MAX = 1_000
"""Kinds that are counted apart; beyond that the one seen first is forgotten, and may write again."""

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class Bounded(logging.Filter):
    """Lets a kind of record through `KEPT` times in a window. The next one that it lets through says how many it did
    not. `values`: so many values of a record, from its first on, belong to its kind."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic, values: int = 0) -> None:
        super().__init__()
        self._values = values
        self._monotonic_s = monotonic_s
        self._kinds: dict[tuple[object, ...], list[float]] = {}
        """Kind -> [begin of its window, records in it]."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it."""
        values = record.args[: self._values] if isinstance(record.args, tuple) else ()
        kind, now = (record.name, str(record.msg), *map(str, values)), self._monotonic_s()
        window = self._kinds.pop(kind, None)
        if window is None or now - window[0] >= WINDOW_S:
            left_out = 0 if window is None else max(0, int(window[1]) - KEPT)
            self._kinds[kind] = [now, 1]
            if len(self._kinds) > KINDS_MAX:
                del self._kinds[next(iter(self._kinds))]
            if left_out:
                record.msg = f"{record.getMessage()} ({left_out} more like it were left out)"
                record.args = ()
            return True
        window[1] += 1
        self._kinds[kind] = window
        return window[1] <= KEPT


def begin(level: int) -> None:
    """Write to standard error from `level` on."""
    logging.basicConfig(level=level, format=FORMAT)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Bounded())
